# Servers under load. The Makefile includes this file.

## load         ten seconds of clients for running servers: SERVER=epoll or all CLIENTS=50 HELD=200 KEPT=1
#  Without CLIENTS and HELD: 500 clients. KEPT=1: on kept connections; HELD=200: idle ones.
load: $(NEED)-load
	@common/tools/load

## compare      the seven side by side under load: a table and a report, in six minutes (QUICK=1: a minute)
## dials        compare --work 0,0.1,1,10, and then --work 2 --cores 1,2: with work to do, and with more cores
## burst        compare --path /index.html: 100 clients on one file, beside lighttpd, nginx and Apache
## latency      how long do answers take at loads that rise, and how many a second are answered in time?
## connections  latency --path /index.html: connections a second before errors, beside the same
## ramp         latency --levels 1000,2000 and so on: what happens to load that a server cannot hold?
## sweep        how throughput holds from 20 clients to 15,000
## cost         what a request costs: system calls, CPU time, context switches, memory
## xray         waits as swim lanes: SERVER=./mine CLIENTS=4 DELAY=10 WORK=0 URL=/ PAUSE=10
#  PAUSE=10: clients take their time to ask, the last one 10 ms.
## which        which of the seven is your server? SERVER='node server.js --port {port}' URL=/
EXPERIMENTS  = compare dials sweep cost xray which
BESIDE_PEERS = burst latency connections ramp
PEERS        = $(shell echo $(SERVERS) lighttpd nginx apache floor | tr ' ' ,)
IS_dials       = compare --work 0,0.1,1,10 && PLAIN=$(PLAIN) loadtest/compare --work 2 --cores 1,2
IS_burst       = compare --path /index.html --levels 100 --servers $(PEERS)
IS_connections = latency --path /index.html --servers $(PEERS)
IS_ramp        = latency --servers preforking,epoll --levels 1000,2000,3000,4000,5000,6000,8000,10000,12000,15000
## results      makes the stored runs again that are missing, noisy or old; ONLY="compare burst"
#  All of them take hours, on a machine that does nothing else.
results: deps-compare deps-experiments all instruments companions
	@PLAIN=$(PLAIN) loadtest/publish $(ONLY)

## explore      the model of public/explore.html beside every stored measurement
explore: $(NEED)-explore
	@loadtest/explore

$(EXPERIMENTS) $(BESIDE_PEERS): deps-compare all instruments
	@PLAIN=$(PLAIN) loadtest/$(or $(IS_$@),$@)
$(BESIDE_PEERS): deps-experiments

## instruments  what the load tests bring with them: a Redis further away, the least a server can do
INSTRUMENTS = $(addprefix $(OUT)/loadtest/,slow_redis floor)
instruments: $(INSTRUMENTS)
$(INSTRUMENTS): %: %.o
	$(TELL)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(PUT)

## companions   the guestbook in Node, Python, PHP, Ruby, Go, Java and Erlang, to stand beside the seven
#  What is not there after deps-companions is left out: `loadtest/compare --servers epoll,node,go` names it.
companions: deps-companions
	@mkdir -p $(PLAIN)/loadtest/companions
	-@cd loadtest/companions && GO111MODULE=off GOPATH=/usr/share/gocode go build -o $(abspath $(PLAIN))/loadtest/companions/go guestbook.go work.go
	-@javac -d $(PLAIN)/loadtest/companions loadtest/companions/*.java

.PHONY: load explore instruments companions results $(EXPERIMENTS) $(BESIDE_PEERS)
