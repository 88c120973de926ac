# ZeroHTTPd: `make` builds the seven servers, `make help` says what else there is.

CHAPTERS = 01_iterative 02_forking 03_preforking 04_threading 05_prethreading 06_poll 07_epoll
SERVERS  = $(foreach chapter,$(CHAPTERS),$(word 2,$(subst _, ,$(chapter))))

CC      ?= cc
CFLAGS  ?= -O2 -g
WARN     = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -pthread -Icommon $(WARN) $(CFLAGS) $(SAN_FLAGS)
LDLIBS   = -lhiredis -pthread

# Plain objects go to build/plain and the servers to the top; SAN=thread or
# SAN=address,undefined builds everything apart, in build/san-...
ifdef SAN
comma := ,
OUT       = build/san-$(subst $(comma),-,$(SAN))
BIN       = $(OUT)/
SAN_FLAGS = -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all
LEAKS     = $(if $(findstring address,$(SAN)),$(OUT)/common/tests/leaks_at_exit.o)
else
OUT = build/plain
BIN =
endif
PROGRAMS = $(if $(BIN),$(OUT),build)# and those of the exercises, each kind in a folder there

.PHONY: all instruments serve load test mutants check grade sanitize soak elsewhere fuzz lint format deps doctor help clean
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

## all       the seven servers (the default); each also by its name, as in `make epoll`
all: $(addprefix $(BIN),$(SERVERS))

# Three kinds of targets install what they need, as the README says. Every other one ends with one
# line that names `make deps`. With DEPS=no, neither happens.
EXPERIMENTS  = compare sweep cost
BESIDE_PEERS = connections files burst ramp
INSTALLING   = $(filter test $(EXPERIMENTS) $(BESIDE_PEERS),$(MAKECMDGOALS))
needs        = $(if $(INSTALLING),deps-$(1),need-$(1))
missing      = $(shell DEPS='$(DEPS)' CC='$(CC)' CFLAGS='$(CFLAGS)' common/tools/deps --missing $(1))

# ---- one server: its main.c, and what it uses of common/ ------------------------------------

CORE     = http http_date page board guestbook files status app conn net redis
BLOCKING = serve
LOOP     = redis_async waiting

iterative_USES    = $(CORE) $(BLOCKING)
forking_USES      = $(CORE) $(BLOCKING) children
preforking_USES   = $(CORE) $(BLOCKING) children
threading_USES    = $(CORE) $(BLOCKING)
prethreading_USES = $(CORE) $(BLOCKING)
poll_USES         = $(CORE) $(LOOP)
epoll_USES        = $(CORE) $(LOOP)

# The objects of common/ that a chapter's server uses.
used_in = $(patsubst %,$(OUT)/common/%.o,$($(word 2,$(subst _, ,$(1)))_USES))

define server
$(BIN)$(word 2,$(subst _, ,$(1))): $(OUT)/$(1)/main.o $(call used_in,$(1)) $(LEAKS)
	$$(CC) $$(ALL_CFLAGS) $$(LDFLAGS) $$^ $$(LDLIBS) -o $$@
endef
$(foreach chapter,$(CHAPTERS),$(eval $(call server,$(chapter))))

# -MMD writes down which headers a file includes, so that it is built anew when one changes.
$(OUT)/%.o: %.c | $(call needs,build)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@
-include $(wildcard $(OUT)/*/*.d $(OUT)/*/*/*.d $(OUT)/*/*/*/*.d \
    $(OUT)/.mine/*/*.d $(OUT)/$(PROGRAMS)/solutions/*/*.d)

## bare      the reader's first server: 01_iterative/bare.c, on its own
$(BIN)bare: 01_iterative/bare.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) $(CFLAGS) $< -o $@

## instruments  what the load tests bring with them: a Redis further away, the least a server can do
INSTRUMENTS = $(addprefix $(OUT)/loadtest/,slow_redis floor)
instruments: $(INSTRUMENTS)
$(INSTRUMENTS): %: %.o
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ -o $@

# ---- exercises -----------------------------------------------------------------------------

## exercises  all of them, by chapter, and which are done
exercises: $(call needs,build)
	@common/classroom/exercises/list

## exercise  checks one: EX=03/supervisor. The first time it makes you a copy to work on, in .mine/
exercise: $(call needs,exercise) $(if $($(notdir $(EX))_NEEDS),$(call needs,$(notdir $(EX))))
	@common/classroom/exercises/run '$(EX)'

# An exercise is a whole program, linked with what its chapter's server uses. It is built of three
# files: the starting file, the learner's copy of it, and the solution, which a patch makes of it.
EXERCISES = $(patsubst %.c,%,$(subst exercises/,,$(wildcard $(CHAPTERS:%=%/exercises/*.c))))
LEARNERS  = $(patsubst .mine/%.c,%,$(wildcard $(CHAPTERS:%=.mine/%/*.c)))

# One that takes a library of its own names it, and the header without which it is skipped; deps
# has a group of its name.
uring_LIBS  = -luring
uring_NEEDS = liburing.h
lacks = $(if $(1),$(if $(wildcard $(addsuffix /$(1),/usr/include /usr/local/include)),,$(1)))

define exercise_program
$(PROGRAMS)/$(1): $(if $(call lacks,$($(notdir $(1))_NEEDS)),$(notdir $(1))-lacks) \
    $(2) $(call used_in,$(word 2,$(subst /, ,$(1))))
	@mkdir -p $$(@D)
	$$(CC) $$(ALL_CFLAGS) $$(LDFLAGS) $$^ $($(notdir $(1))_LIBS) $$(LDLIBS) -o $$@
endef

%-lacks:
	@echo 'skipped: $($*_NEEDS) is missing; make deps installs it'; false

define solution_source
$(PROGRAMS)/solutions/$(1)/$(2).c: $(1)/exercises/$(2).c $(1)/exercises/solutions/$(2).patch
	@mkdir -p $$(@D)
	patch --silent --fuzz=0 --output=$$@ $$^
endef
$(foreach each,$(EXERCISES),\
    $(eval $(call solution_source,$(patsubst %/,%,$(dir $(each))),$(notdir $(each))))\
    $(eval $(call exercise_program,exercises/$(each),$(OUT)/$(dir $(each))exercises/$(notdir $(each)).o))\
    $(eval $(call exercise_program,solutions/$(each),$(OUT)/$(PROGRAMS)/solutions/$(each).o)))
$(foreach each,$(LEARNERS),$(eval $(call exercise_program,mine/$(each),$(OUT)/.mine/$(each).o)))

# All starting files and solutions, for who tests them. A course's copy has no solutions.
BUILDABLE = $(foreach each,$(EXERCISES),$(if $(call lacks,$($(notdir $(each))_NEEDS)),,$(each)))
SOLVED    = $(patsubst %.patch,%,$(subst exercises/solutions/,,\
    $(wildcard $(CHAPTERS:%=%/exercises/solutions/*.patch))))
exercise-programs: $(BUILDABLE:%=$(PROGRAMS)/exercises/%) \
    $(patsubst %,$(PROGRAMS)/solutions/%,$(filter $(SOLVED),$(BUILDABLE)))
.PHONY: exercises exercise exercise-programs

# ---- for teachers --------------------------------------------------------------------------

## course    a copy of the project for a class, without the solutions: DIR=../course
course:
	@common/classroom/course/course '$(DIR)'

## collect   checks what students have handed in, under limits: FROM=handed-in/ holds a `.mine` or a
##           .tar.gz of it for each (EX=01/reader for one exercise, JSON=1: the result as JSON)
collect: $(call needs,exercise)
	@common/classroom/course/collect $(if $(JSON),--json) $(if $(EX),--only '$(EX)') '$(FROM)'

# How an exercise is compiled whose SOURCE lies elsewhere, for who does it under limits.
compile-command: $(if $(call lacks,$($(notdir $(EX))_NEEDS)),$(notdir $(EX))-lacks)
	@echo $(CC) $(ALL_CFLAGS) $(LDFLAGS) $(SOURCE) $(call used_in,$(EX:%/$(notdir $(EX))=%)) \
	    $($(notdir $(EX))_LIBS) $(LDLIBS) -o $(PROGRAM)
.PHONY: course collect compile-command

# ---- running -------------------------------------------------------------------------------

## serve     a private Redis and all seven, on ports 8001 to 8007 (BASE=8000), until Ctrl-C
##           (BIND=0.0.0.0: other machines may come, too)
serve: all $(call needs,serve)
	@common/tools/serve

## load      ten seconds of clients for one that `make serve` runs, or for SERVER=all in turn:
##           (SERVER=epoll CLIENTS=500; KEPT=1: on kept connections; HELD=500: idle ones)
load: $(call needs,compare)
	@common/tools/load

## compare   the seven side by side under load: two tables, in about three minutes (QUICK=1: 45 s)
## sweep     how throughput holds from 20 clients to 15,000
## connections  how many new connections a second before errors, beside lighttpd, nginx and Apache
## files     one client: 5,000 small files, and a large one, beside the same
## burst     100 clients on one file for ten seconds, beside the same and the least a server can do
## ramp      load that rises in steps whatever the replies do: how much of it does a server hold?
## cost      what a request costs: system calls, CPU time, context switches, memory, the parser
$(EXPERIMENTS): deps-compare
$(BESIDE_PEERS): deps-experiments
.PHONY: $(EXPERIMENTS) $(BESIDE_PEERS)
$(EXPERIMENTS) $(BESIDE_PEERS): all instruments
	@loadtest/$@

# ---- testing -------------------------------------------------------------------------------

tests_of = $(patsubst %.c,$(OUT)/%.o,$(wildcard common/tests/$(1)/*.c))

## test      everything: unit tests, then every case, every fault and every client against all seven
##           (PARTS="unit book servers weather crowds clients grader mutants exercises
##           loadtest", ONLY='poll/*' for one server's cases, SAN=thread, AGAIN=3: one that fails
##           has to fail again, by itself, within three times)
PARTS = unit book servers weather crowds clients grader mutants exercises loadtest
test: deps-test all
	@OUT=$(OUT) SAN=$(SAN) SERVERS=$(or $(BIN),.) PATIENCE=$(if $(SAN),3,1) ONLY='$(ONLY)' \
	    common/tests/run $(PARTS)

## mutants   would the suite notice? Builds servers with one fault each, of which it has to find every
##           one (MUTANTS="markup two-lengths" for some of them); a few minutes
mutants: $(call needs,test) all build/plain/servers build/plain/weather
	@common/tests/mutants/mutants.py $(MUTANTS)

## check     its first half minute: the unit tests, and whether what the documents say is still so
check: $(call needs,test) all
	@OUT=$(OUT) SAN=$(SAN) SERVERS=$(or $(BIN),.) common/tests/run unit book

# The unit tests take the core as it is; the others know the servers from outside only.
$(OUT)/unit: $(call tests_of,unit) $(patsubst %.c,$(OUT)/%.o,$(wildcard common/*.c))
$(OUT)/servers: $(call tests_of,harness) $(call tests_of,servers)
$(OUT)/weather: $(call tests_of,harness) $(call tests_of,weather)
$(OUT)/crowds: $(call tests_of,harness) $(call tests_of,crowds)
$(OUT)/unit $(OUT)/servers $(OUT)/weather $(OUT)/crowds:
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -lcriterion -o $@

## grade     a server of anybody's, as one of the seven, on a hundred points, with evidence:
##           SERVER=./mine MODEL=epoll (JSON=1: nothing but the result, as JSON)
grade: $(call needs,test)
	@common/classroom/grader/grade $(if $(JSON),--json) '$(SERVER)' '$(MODEL)'

## sanitize  `test` again, under the address and undefined-behaviour sanitizers; 04 and 05 under thread's;
##           and with an eye on every file that a server opens; half an hour
sanitize:
	$(MAKE) test SAN=address,undefined
	$(MAKE) test SAN=thread PARTS='servers weather crowds' ONLY='*threading/*'
	WATCH_OPENS=1 $(MAKE) test PARTS=servers

## soak      a million requests (REQUESTS=) to each of the seven: do memory and descriptors stay as
##           they were? A few minutes
soak: all $(call needs,compare)
	@SERVERS=$(or $(BIN),.) common/tests/soak

## elsewhere  the README's two commands, and the Containerfile, on a bare Debian of another release:
##           SUITE="bookworm trixie" (VALKEY=1: with Valkey; COMMANDS=arm64: servers for arm64)
elsewhere: $(call needs,elsewhere)
	@common/tools/elsewhere $(SUITE)

## fuzz      the parsers, the templates and a connection, fed with what nobody would think of,
##           for FUZZ_SECONDS=60 each
FUZZ_TARGETS = http decode page conn
FUZZ_SECONDS = 60
fuzz:
	@FUZZ_SECONDS=$(FUZZ_SECONDS) common/tests/fuzz/run $(FUZZ_TARGETS)

# Built by fuzz/run, with clang and into build/fuzz; libFuzzer brings their main().
$(FUZZ_TARGETS:%=$(OUT)/fuzz_%): $(OUT)/fuzz_%: $(OUT)/common/tests/fuzz/%.o \
    $(patsubst %.c,$(OUT)/%.o,$(wildcard common/*.c))
	$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer $(LDFLAGS) $^ $(LDLIBS) -o $@
$(OUT)/fuzz_seeds: $(OUT)/common/tests/fuzz/seeds.o
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ -o $@

## lint      layout, suspicious code, scripts, and both compilers with every warning an error
lint: $(call needs,build)
	@common/tools/lint

## format    applies .clang-format
format:
	clang-format -i $(wildcard */*.[ch] */*/*.[ch] */*/*/*.[ch])

# ---- setting up ----------------------------------------------------------------------------

## deps      installs whatever anything here needs; deps-build, deps-serve, deps-exercise, deps-compare
##           or deps-experiments install a part of it
deps:
	@common/tools/deps
deps-%: # prints what cannot be installed here, and make goes on with what is there
	@common/tools/deps $* || :
need-%:
	$(if $(call missing,$*),$(error missing: $(call missing,$*). Run `make deps`))

## doctor    says what is missing on this machine or too small, and what mends it
doctor:
	@common/tools/doctor

## help      this list
help:
	@sed -n 's/^## /  make /p' $(MAKEFILE_LIST)

## clean     removes what was built, and leaves what you wrote in .mine/
clean:
	rm -rf build $(SERVERS) bare
