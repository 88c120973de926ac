# ZeroHTTPd: `make` builds the seven servers, `make help` says what else there is.

CHAPTERS = 01_iterative 02_forking 03_preforking 04_threading 05_prethreading 06_poll 07_epoll
SERVERS  = $(foreach chapter,$(CHAPTERS),$(word 2,$(subst _, ,$(chapter))))

CC      ?= cc
CFLAGS  ?= -O2 -g
WARN     = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -pthread -Icommon $(WARN) $(CFLAGS) $(SAN_FLAGS)
LDLIBS   = -lhiredis -pthread

# Plain objects go to build/plain and the servers to the top; SAN=thread or
# SAN=address,undefined builds everything apart, in build/san-...
ifdef SAN
comma := ,
OUT       = build/san-$(subst $(comma),-,$(SAN))
BIN       = $(OUT)/
SAN_FLAGS = -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all
else
OUT = build/plain
BIN =
endif

.PHONY: all serve compare test check sanitize fuzz lint format deps deps-all doctor help clean
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

## all       the seven servers (the default); each also by its name, as in `make epoll`
all: $(addprefix $(BIN),$(SERVERS))

# ---- one server: its main.c, and what it uses of common/ ------------------------------------

CORE     = http page board guestbook files app conn net redis
BLOCKING = serve
LOOP     = redis_async waiting

iterative_USES    = $(CORE) $(BLOCKING)
forking_USES      = $(CORE) $(BLOCKING) children
preforking_USES   = $(CORE) $(BLOCKING) children
threading_USES    = $(CORE) $(BLOCKING)
prethreading_USES = $(CORE) $(BLOCKING)
poll_USES         = $(CORE) $(LOOP)
epoll_USES        = $(CORE) $(LOOP)

define server
$(BIN)$(word 2,$(subst _, ,$(1))): $(OUT)/$(1)/main.o \
    $(patsubst %,$(OUT)/common/%.o,$($(word 2,$(subst _, ,$(1)))_USES))
	$$(CC) $$(ALL_CFLAGS) $$(LDFLAGS) $$^ $$(LDLIBS) -o $$@
endef
$(foreach chapter,$(CHAPTERS),$(eval $(call server,$(chapter))))

# -MMD writes down which headers a file includes, so that it is built anew when one changes.
$(OUT)/%.o: %.c | deps-build
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@
-include $(wildcard $(OUT)/*/*.d $(OUT)/*/*/*.d)

## bare      the reader's first server: 01_iterative/bare.c, on its own
$(BIN)bare: 01_iterative/bare.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) $(CFLAGS) $< -o $@

# ---- running -------------------------------------------------------------------------------

## serve     a private Redis and all seven, on ports 8001 to 8007 (BASE=8000), until Ctrl-C
serve: all deps-serve
	@common/tools/serve

## compare   the seven side by side under load: one table, in about a minute
compare: all deps-compare
	@loadtest/compare

# ---- testing -------------------------------------------------------------------------------

tests_of = $(patsubst %.c,$(OUT)/%.o,$(wildcard common/tests/$(1)*.c))

## test      everything: unit tests, then every case and every client against all seven servers
##           (PARTS="unit servers clients loadtest", ONLY='poll/*' for one server's cases, SAN=thread)
PARTS = unit servers clients loadtest
test: deps-test all
	@OUT=$(OUT) SAN=$(SAN) SERVERS=$(or $(BIN),.) PATIENCE=$(if $(SAN),3,1) ONLY='$(ONLY)' \
	    common/tests/run $(PARTS)

## check     its first minute: the unit tests only
check: deps-test
	@OUT=$(OUT) SAN=$(SAN) common/tests/run unit

# The unit tests take the core as it is; the others know the servers from outside only.
$(OUT)/unit: $(call tests_of,unit) $(patsubst %.c,$(OUT)/%.o,$(wildcard common/*.c))
$(OUT)/servers: $(call tests_of,servers)
$(OUT)/unit $(OUT)/servers:
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -lcriterion -o $@

## sanitize  `test` again, under the address and undefined-behaviour sanitizers; 04 and 05 under thread's
sanitize:
	$(MAKE) test SAN=address,undefined
	$(MAKE) test SAN=thread PARTS=servers ONLY='*threading/*'

## fuzz      the parsers, the templates and a connection, fed with what nobody would think of,
##           for FUZZ_SECONDS=60 each
FUZZ_TARGETS = http decode page conn
FUZZ_SECONDS = 60
fuzz:
	@FUZZ_SECONDS=$(FUZZ_SECONDS) common/tests/fuzz_run $(FUZZ_TARGETS)

# Built by fuzz_run, with clang and into build/fuzz; libFuzzer brings their main().
$(FUZZ_TARGETS:%=$(OUT)/fuzz_%): $(OUT)/fuzz_%: $(OUT)/common/tests/fuzz_%.o \
    $(patsubst %.c,$(OUT)/%.o,$(wildcard common/*.c))
	$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer $(LDFLAGS) $^ $(LDLIBS) -o $@
$(OUT)/fuzz_seeds: $(OUT)/common/tests/fuzz_seeds.o
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ -o $@

## lint      layout, suspicious code, scripts, and both compilers with every warning an error
lint: deps-test
	@common/tools/lint

## format    applies .clang-format
format:
	clang-format -i $(wildcard 0*/*.[ch] common/*.[ch] common/*/*.[ch])

# ---- setting up ----------------------------------------------------------------------------

## deps      installs what building, comparing and testing need; deps-all what every experiment needs
deps:
	@common/tools/deps build test compare
deps-all:
	@common/tools/deps all
deps-%: # what cannot be installed here is said, and make goes on with what is there
	@common/tools/deps $* || :

## doctor    says what is missing on this machine or too small, and what mends it
doctor:
	@common/tools/doctor

## help      this list
help:
	@sed -n 's/^## /  make /p' $(MAKEFILE_LIST)

## clean     removes what was built
clean:
	rm -rf build $(SERVERS) bare
