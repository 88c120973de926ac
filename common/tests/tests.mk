# How the project is tested. The Makefile includes this file.

## test         everything; PARTS='unit book' some of it, ONLY='poll/*' one server's cases, SAN= AGAIN=3
#  SAN: the servers under test are built with sanitizers. AGAIN=3: a case that fails has to fail again,
#  by itself, within three times. common/tests/README.md says more.
ALL_PARTS = unit book servers weather crowds clients site grader mutants exercises loadtest
PARTS     = $(ALL_PARTS)
UNKNOWN   = $(filter-out $(ALL_PARTS),$(PARTS))
ifneq ($(UNKNOWN),)
$(error there is no part $(UNKNOWN). The parts are $(ALL_PARTS))
endif

# The programs that test the servers from outside have no sanitizers, whatever the servers have.
PLAIN = $(if $(SAN),build/plain,$(OUT))
RUN   = OUT=$(OUT) PLAIN=$(PLAIN) SAN=$(SAN) SERVERS=$(or $(BIN),.) common/tests/run
test: deps-test all
	@PATIENCE=$(if $(SAN),3,1) ONLY='$(ONLY)' $(RUN) $(PARTS)

## check        its first half minute: the unit tests, and whether the documents are still right
check: $(NEED)-test all
	@$(RUN) unit book

# The unit tests are linked with common/; the others know the servers from outside only.
COMMON  = $(patsubst %.c,$(OUT)/%.o,$(wildcard common/*.c))
TESTS   = $(patsubst %.c,$(OUT)/%.o,$(wildcard common/tests/*/*.c))
HARNESS = $(filter $(OUT)/common/tests/harness/%,$(TESTS))
$(OUT)/unit:    $(filter $(OUT)/common/tests/unit/%,$(TESTS)) $(COMMON)
$(OUT)/servers: $(filter $(OUT)/common/tests/servers/%,$(TESTS)) $(HARNESS)
$(OUT)/weather: $(filter $(OUT)/common/tests/weather/%,$(TESTS)) $(HARNESS)
$(OUT)/crowds:  $(filter $(OUT)/common/tests/crowds/%,$(TESTS)) $(HARNESS)
$(OUT)/unit $(OUT)/servers $(OUT)/weather $(OUT)/crowds:
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -lcriterion -o $@

## tables       fills the tables of the documents in, from the stored runs
tables:
	@common/tests/book/figures.py

## mutants      would the suite notice? Plants a fault in a server, MUTANTS="markup two-lengths" or all
mutants: $(NEED)-test all build/plain/servers build/plain/weather
	@common/tests/mutants/mutants.py $(MUTANTS)

## sanitize     test again with sanitizers, and an eye on every file a server opens; half an hour
sanitize:
	$(MAKE) test SAN=address,undefined
	$(MAKE) test SAN=thread PARTS='servers weather crowds' ONLY='*threading/*'
	WATCH_OPENS=1 $(MAKE) test PARTS=servers

## elsewhere    test, compare and the Containerfile, on a bare Debian: SUITE="bookworm trixie"
#  VALKEY=1: with Valkey. COMMANDS=arm64: servers for arm64.
elsewhere: $(NEED)-elsewhere
	@common/tools/elsewhere $(SUITE)

## fuzz         the parsers, the templates and a connection on made-up input, for FUZZ_SECONDS=60 each
FUZZ_TARGETS = http decode page conn
FUZZ_SECONDS = 60
fuzz:
	@FUZZ_SECONDS=$(FUZZ_SECONDS) common/tests/fuzz/run $(FUZZ_TARGETS)

# Built by fuzz/run, with clang and into build/fuzz; libFuzzer brings their main().
$(FUZZ_TARGETS:%=$(OUT)/fuzz_%): $(OUT)/fuzz_%: $(OUT)/common/tests/fuzz/%.o $(COMMON)
	$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer $(LDFLAGS) $^ $(LDLIBS) -o $@
$(OUT)/fuzz_seeds: $(OUT)/common/tests/fuzz/seeds.o
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ -o $@

## lint         layout, suspicious code, scripts, and both compilers with every warning an error
lint: $(NEED)-build
	@common/tools/lint

## format       applies .clang-format
format:
	clang-format -i $(wildcard */*.[ch] */*/*.[ch] */*/*/*.[ch])

.PHONY: test check tables mutants sanitize elsewhere fuzz lint format
