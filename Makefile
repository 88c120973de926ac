# ZeroHTTPd: `make` builds the seven servers, `make help` says what else there is.

CC        ?= cc
CFLAGS    ?= -O2 -g $(if $(SAN),,$(HARDENING))
HARDENING  = -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong # many overruns end the program
WARN       = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64 -pthread -Icommon $(WARN) $(CFLAGS) $(SAN_FLAGS)
LDLIBS     = -lhiredis -pthread
ALL_LDFLAGS = -Wl,-z,now $(LDFLAGS) # functions are found at start, not by each child of chapter 2
# In front of a command: a line for each file, none with -s, and the whole command with V=1.
TELL = $(if $(V),,@$(if $(findstring s,$(firstword -$(MAKEFLAGS))),,$(info $(or $(patsubst %.o,CC $<,$(filter %.o,$@)),$(filter $(BUILD)/book/%,$@),LINK $@))))
PUT  = -o $@.$$$$ && mv -f $@.$$$$ $@# behind it: two runs of make at once never meet half a file

# The user's locale may not be installed, and then Redis does not start. What the user has preloaded, or tells the
# sanitizers, would reach each server.
export LC_ALL = C.UTF-8
unexport LD_PRELOAD ASAN_OPTIONS LSAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS

# Objects go to build/plain, and the servers to this folder. With any other OUT, both go there.
OUT   = build/plain
BIN   = $(if $(filter-out build/plain,$(OUT)),$(OUT)/)
BUILD = $(if $(BIN),$(OUT),build)# and here, whatever else is made
ifdef SAN # thread, or address,undefined: builds with sanitizers, apart from the rest
comma    := ,
OUT       = build/san-$(subst $(comma),-,$(SAN))
SAN_FLAGS = -fsanitize=$(SAN)$(if $(findstring address,$(SAN)),$(comma)pointer-compare$(comma)pointer-subtract) -fno-omit-frame-pointer -fno-sanitize-recover=all
endif

# A root may have built here before, or this folder may be read-only.
ifneq ($(filter-out help doctor exercises deps%,$(or $(MAKECMDGOALS),all)),)
NOT_YOURS := $(shell find '$(BUILD)' -maxdepth 2 -type d ! -path '*/loadtest/*' ! -writable -print -quit 2>/dev/null \
    || find '$(dir $(BUILD))' -maxdepth 0 ! -writable 2>/dev/null)
$(if $(NOT_YOURS),$(error you may not write $(NOT_YOURS:/=)/. If root has made it, type sudo chown -R "$$USER" . or build elsewhere, with make OUT=/tmp/zerohttpd))
endif

# These install what they need. Others stop, and name what does. With DEPS=no, neither happens.
INSTALLING = test test-all load compare dials latency sweep cost xray which connections burst ramp results
NEED       = $(if $(filter $(INSTALLING),$(MAKECMDGOALS)),deps,need)
MISSING    = $(shell DEPS='$(DEPS)' CC='$(CC)' CFLAGS='$(CFLAGS)' common/tools/deps --missing $*)

# ---- the seven servers ---------------------------------------------------------------------

SERVERS  = iterative forking preforking threading prethreading poll epoll
## all          the seven servers, each also by its name: `make epoll`
#  V=1: prints whole commands
all: $(addprefix $(BIN),$(SERVERS))

# What they share: all of them, those that block (chapters 1 to 5), those with a loop (6 and 7).
CORE     = $(addprefix $(OUT)/common/,text.o uri.o http.o template.o \
    board.o guestbook.o files.o origin.o status.o app.o \
    conn.o log.o options.o process.o net.o redis.o)
BLOCKING = $(CORE) $(OUT)/common/serve.o $(OUT)/common/redis_pool.o
LOOP     = $(CORE) $(OUT)/common/redis_async.o $(OUT)/common/loop.o
CHILDREN = $(OUT)/common/children.o

$(BIN)iterative:    $(OUT)/01_iterative/main.o    $(BLOCKING)
$(BIN)forking:      $(OUT)/02_forking/main.o      $(BLOCKING) $(CHILDREN)
$(BIN)preforking:   $(OUT)/03_preforking/main.o   $(BLOCKING) $(CHILDREN)
$(BIN)threading:    $(OUT)/04_threading/main.o    $(BLOCKING)
$(BIN)prethreading: $(OUT)/05_prethreading/main.o $(BLOCKING)
$(BIN)poll:         $(OUT)/06_poll/main.o         $(LOOP)
$(BIN)epoll:        $(OUT)/07_epoll/main.o        $(LOOP)
$(addprefix $(BIN),$(SERVERS)):
	$(TELL)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $^ $(LDLIBS) $(PUT)

# -MMD writes down which headers a file includes, so that it is compiled again when one changes.
$(OUT)/%.o: %.c | $(NEED)-build
	@mkdir -p $(@D)
	$(TELL)$(CC) $(ALL_CFLAGS) -MMD -MP -MF $(@:o=d) -MT $@ -c $< $(PUT)
-include $(wildcard $(addprefix $(OUT)/,*/*.d */*/*.d */*/*/*.d))

# A library that a test has a server load before all others (ld.so(8), LD_PRELOAD).
$(OUT)/%.so: %.c | $(NEED)-build
	@mkdir -p $(@D)
	$(TELL)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -pthread $(WARN) -shared -fPIC $< -ldl $(PUT)

## bare         each architecture on one page: build/bare/01, 01-ask, ...
.SECONDEXPANSION: # a prerequisite may use $*, of its target
BARE = 01 02 03 04 05 06 07
bare: $(addprefix $(BUILD)/bare/,$(BARE) $(BARE:=-ask) 05-queue)
bare_source = $(wildcard $(word 1,$1)_*/$(or $(word 2,$1),bare).c)
$(BUILD)/bare/%: $$(call bare_source,$$(subst -, ,$$*)) | $(NEED)-build
	@mkdir -p $(@D)
	$(TELL)$(CC) -std=gnu11 -pthread $(WARN) $(CFLAGS) $< $(if $(findstring ask,$*),-lhiredis) $(PUT)

ifneq ($(BIN),) # by their names, wherever they are built
$(SERVERS): %: $(BIN)%
endif

## serve        a private Redis and all seven, on ports 8001 to 8007
#  BASE=9000: on 9001 to 9007; BIND=0.0.0.0: for others, too
serve: $(NEED)-serve all
	@SERVERS=$(or $(BIN),.) LOGS=$(BUILD)/serve exec common/tools/serve # make's SIGTERM reaches it

include loadtest/loadtest.mk common/tests/tests.mk common/classroom/classroom.mk common/book/book.mk

# ---- setting up ----------------------------------------------------------------------------

## deps         installs what the chapters need (117 MB); deps-all: the rest
deps:
	@common/tools/deps
deps-%: # what cannot be installed is named, and left out
	@common/tools/deps $* || :
deps-build: # without a compiler nothing goes on
	@common/tools/deps build
need-%: # installs nothing
	$(if $(MISSING),$(error missing: $(MISSING). Run `make deps-$*`))

## doctor       says what this machine lacks, and what mends it
doctor:
	@common/tools/doctor

## OUT=DIR      builds in DIR, so that this folder may be read-only
## help         this list
help:
	@sed -n 's/^## /  make /p; s/^#  /                    /p' $(MAKEFILE_LIST)

## clean        removes what was built, and keeps what you made
clean:
	rm -rf $(filter-out build/loadtest build/serve,$(wildcard build/*)) public/book $(SERVERS)

.PHONY: all bare serve deps doctor help clean $(if $(BIN),$(SERVERS))
.DEFAULT:; $(if $(wildcard $@),,$(error there is no target $@. `make help` lists them))
.DELETE_ON_ERROR:
