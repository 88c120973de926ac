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

# Objects go to build/plain, and the servers to this folder. With any other OUT, both go there.
OUT   = build/plain
BIN   = $(if $(filter-out build/plain,$(OUT)),$(OUT)/)
BUILD = $(if $(BIN),$(OUT),build)# and here, whatever else is made
ifdef SAN # thread, or address,undefined: builds with sanitizers, apart from the rest
comma    := ,
OUT       = build/san-$(subst $(comma),-,$(SAN))
SAN_FLAGS = -fsanitize=$(SAN)$(if $(LEAKS),$(comma)pointer-compare$(comma)pointer-subtract) -fno-omit-frame-pointer -fno-sanitize-recover=all
LEAKS     = $(if $(findstring address,$(SAN)),$(OUT)/common/tests/leaks_at_exit.o)
endif

# These install what they need. Others stop, and name `make deps`. With DEPS=no, neither happens.
INSTALLING = test compare dials latency mixes sweep cost xray which connections files burst ramp results
NEED       = $(if $(filter $(INSTALLING),$(MAKECMDGOALS)),deps,need)
MISSING    = $(shell DEPS='$(DEPS)' CC='$(CC)' CFLAGS='$(CFLAGS)' common/tools/deps --missing $*)

# ---- the seven servers ---------------------------------------------------------------------

SERVERS  = iterative forking preforking threading prethreading poll epoll
## all          the seven servers; each also by its name, as `make epoll`; V=1: whole commands
all: $(addprefix $(BIN),$(SERVERS))

# What they share: all of them, those that block (chapters 1 to 5), those with a loop (6 and 7).
CORE     = $(addprefix $(OUT)/common/,text.o http.o http_head.o template.o \
    board.o guestbook.o files.o proc.o status.o status_fields.o origin.o explain.o app.o \
    polite.o conn.o start.o log.o options.o process.o stop.o clock.o net.o memory.o redis.o)
BLOCKING = $(CORE) $(OUT)/common/serve.o $(OUT)/common/redis_pool.o
LOOP     = $(CORE) $(OUT)/common/redis_async.o $(OUT)/common/waiting.o
CHILDREN = $(OUT)/common/children.o

$(BIN)iterative:    $(OUT)/01_iterative/main.o    $(BLOCKING)
$(BIN)forking:      $(OUT)/02_forking/main.o      $(BLOCKING) $(CHILDREN)
$(BIN)preforking:   $(OUT)/03_preforking/main.o   $(BLOCKING) $(CHILDREN)
$(BIN)threading:    $(OUT)/04_threading/main.o    $(BLOCKING)
$(BIN)prethreading: $(OUT)/05_prethreading/main.o $(BLOCKING)
$(BIN)poll:         $(OUT)/06_poll/main.o         $(LOOP)
$(BIN)epoll:        $(OUT)/07_epoll/main.o        $(LOOP)
$(addprefix $(BIN),$(SERVERS)): $(LEAKS)
	$(TELL)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $^ $(LDLIBS) -o $@

# -MMD writes down which headers a file includes, so that it is compiled again when one changes.
$(OUT)/%.o: %.c | $(NEED)-build
	@mkdir -p $(@D)
	$(TELL)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@
-include $(wildcard $(addprefix $(OUT)/,*/*.d */*/*.d */*/*/*.d))

## bare         the reader's first server: 01_iterative/bare.c, on its own
$(BIN)bare: 01_iterative/bare.c
	@mkdir -p $(@D)
	$(TELL)$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) $(CFLAGS) $< -o $@

ifneq ($(BIN),) # by their names, wherever they are built
$(SERVERS) bare: %: $(BIN)%
endif

## serve        a private Redis and all seven, on ports 8001 to 8007 (BASE=8000), until Ctrl-C
serve: all $(NEED)-serve
	@SERVERS=$(or $(BIN),.) LOGS=$(BUILD)/serve exec common/tools/serve # make's SIGTERM reaches it

include loadtest/loadtest.mk common/tests/tests.mk common/classroom/classroom.mk common/book/book.mk

# ---- setting up ----------------------------------------------------------------------------

## deps         installs what anything here needs; deps-build, deps-serve and others a part of it
deps:
	@common/tools/deps
deps-%: # what cannot be installed is named, and left out, unless nothing goes without it
	@common/tools/deps $(if $(filter serve,$*),build) $* || $(if $(filter build serve,$*),false,:)
need-%: # installs nothing
	$(if $(MISSING),$(error missing: $(MISSING). Run `make deps`))

## doctor       says what this machine lacks or has too little of, and what mends it
doctor:
	@common/tools/doctor

## OUT=DIR      builds in DIR instead, the servers too, so that this folder may be read-only
## help         this list
help:
	@sed -n 's/^## \(.*\)/  make \1/p' $(MAKEFILE_LIST)

## clean        removes what was built, and leaves what you wrote in .mine/
clean:
	rm -rf build public/book $(SERVERS) bare

.PHONY: all serve deps doctor help clean $(if $(BIN),$(SERVERS) bare)
.DEFAULT_GOAL := all
.DEFAULT:; $(if $(wildcard $@),,$(error there is no target $@. `make help` lists them))
.DELETE_ON_ERROR:
