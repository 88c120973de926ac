# Servers under load. The Makefile includes this file.

## load         ten seconds of clients for running servers: SERVER=epoll or all CLIENTS=50 HELD=200 KEPT=1
#  Without CLIENTS and HELD: 500 clients. KEPT=1: on kept connections; HELD=200: idle ones.
load: $(NEED)-compare
	@PLAIN=$(PLAIN) common/tools/load

## compare      the seven side by side under load: two tables, in about four minutes (QUICK=1: 45 s)
## dials        the seven with work to do, and with more cores: two tables
## latency      how long do answers take at a quarter, half and nearly all of what a server can do?
## mixes        a hundred clients beside 5,000 idle ones, slow readers, and a burst every second
## sweep        how throughput holds from 20 clients to 15,000
## connections  how many new connections a second before errors, beside lighttpd, nginx and Apache
## files        one client: 5,000 small files, and a large one, beside the same
## burst        100 clients on one file for ten seconds, beside the same and the least a server can do
## ramp         load that rises in steps whatever the replies do: how much of it does a server hold?
## cost         what a request costs: system calls, CPU time, context switches, memory, the parser
## xray         waits as swim lanes: SERVER=./mine CLIENTS=4 DELAY=10 WORK=0 URL=/ KEPT=1 SLOW=1 CRASH=1
#  KEPT=1: each client asks twice; SLOW=1: the first is silent; CRASH=1: its worker dies.
## which        which of the seven is your server? SERVER='node server.js --port {port}' URL=/
EXPERIMENTS  = compare dials sweep mixes cost xray which
BESIDE_PEERS = connections files burst ramp latency
## results      makes the stored runs again that are missing, noisy or old; ONLY="compare files"
#  All of them take hours, on a machine that does nothing else.
results: deps-compare deps-experiments all instruments companions
	@PLAIN=$(PLAIN) loadtest/publish $(ONLY)

## publish-mine packs your latest run of each experiment as one file: loadtest/diff reads it
publish-mine:
	@PLAIN=$(PLAIN) loadtest/publish --mine

## soak         seven million requests of all kinds: do the seven hold more than before? REQUESTS=86000000
soak: all $(NEED)-compare
	@PLAIN=$(PLAIN) loadtest/soak $(if $(REQUESTS),--requests $(REQUESTS))

## explore      the model of public/explore.html beside every stored measurement
explore: $(NEED)-explore
	@loadtest/explore

$(EXPERIMENTS) $(BESIDE_PEERS): deps-compare
$(BESIDE_PEERS): deps-experiments
$(EXPERIMENTS) $(BESIDE_PEERS): all instruments
	@PLAIN=$(PLAIN) loadtest/$(if $(filter dials,$@),compare --dials,$@)

## instruments  what the load tests bring with them: a Redis further away, the least a server can do
INSTRUMENTS = $(addprefix $(OUT)/loadtest/,slow_redis floor)
instruments: $(INSTRUMENTS)
$(INSTRUMENTS): %: %.o
	$(TELL)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ -o $@

## companions   the guestbook in Node, Python, PHP, Ruby, Go, Java and Erlang, to stand beside the seven
#  What is not there after deps-companions is left out: `loadtest/compare --servers epoll,node,go` names it.
companions: deps-companions
	@mkdir -p $(PLAIN)/loadtest/companions
	-@cd loadtest/companions && GO111MODULE=off GOPATH=/usr/share/gocode go build -o $(abspath $(PLAIN))/loadtest/companions/go guestbook.go work.go
	-@javac -d $(PLAIN)/loadtest/companions loadtest/companions/*.java

.PHONY: load soak explore instruments companions results publish-mine $(EXPERIMENTS) $(BESIDE_PEERS)
