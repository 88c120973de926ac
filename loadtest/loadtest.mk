# Servers under load. The Makefile includes this file.

## load         loads running servers for ten seconds: SERVER=epoll or all
#  CLIENTS=500 HELD=200 (idle ones) KEPT=1 (kept connections)
load: $(NEED)-load
	@common/tools/load

## compare      the seven under load, in six minutes (QUICK=1: one minute)
## dials        compare, with work to do, and then with more cores
## burst        compare, for one file, beside lighttpd, nginx and Apache
## latency      how long do answers take at loads that rise?
## connections  latency, for one file: connections a second before errors
## ramp         latency, at loads that a server cannot hold
## sweep        how throughput holds from 20 clients to 15,000
## cost         what a request costs: system calls, CPU time, memory
## xray         waits as swim lanes: SERVER=./mine CLIENTS=4 DELAY=10
#  WORK=0 URL=/ PAUSE=10 (the last client takes 10 ms to ask)
## which        which of the seven is your server? SERVER='./mine {port}'
EXPERIMENTS  = compare dials sweep cost xray which
BESIDE_PEERS = burst latency connections ramp
PEERS        = $(shell echo $(SERVERS) lighttpd nginx apache floor | tr ' ' ,)
IS_dials       = compare --work 0,0.1,1,10 && $(if $(filter 1,$(shell nproc)),\
    echo 'More cores are left out: there is only one.',PLAIN=$(PLAIN) loadtest/compare --work 2 --cores 1,2)
IS_burst       = compare --path /index.html --levels 100 --servers $(PEERS)
IS_connections = latency --path /index.html --servers $(PEERS)
IS_ramp        = latency --servers preforking,epoll --levels 1000,2000,3000,4000,5000,6000,8000,10000,12000,15000
## results      makes the stored runs again; ONLY="compare burst"
#  two hours, on a machine that does nothing else
results: deps-compare deps-experiments all instruments companions
	@PLAIN=$(PLAIN) loadtest/publish $(ONLY)

## explore      the model of public/explore.html beside the measurements
explore: $(NEED)-explore
	@loadtest/explore

$(EXPERIMENTS) $(BESIDE_PEERS): deps-compare all instruments
	@PLAIN=$(PLAIN) loadtest/$(or $(IS_$@),$@)
$(BESIDE_PEERS): deps-experiments

## instruments  a Redis further away, and the least a server can do
INSTRUMENTS = $(addprefix $(OUT)/loadtest/,slow_redis floor)
instruments: $(INSTRUMENTS)
$(INSTRUMENTS): %: %.o
	$(TELL)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(PUT)

## companions   the guestbook in seven other languages, to measure beside
#  `loadtest/compare --servers epoll,node,go` measures them
companions: deps-companions
	@mkdir -p $(PLAIN)/loadtest/companions
	-@GO111MODULE=off GOPATH=/usr/share/gocode go build -o $(PLAIN)/loadtest/companions/go loadtest/companions/guestbook.go loadtest/companions/work.go
	-@javac -d $(PLAIN)/loadtest/companions loadtest/companions/*.java

.PHONY: load explore instruments companions results $(EXPERIMENTS) $(BESIDE_PEERS)
