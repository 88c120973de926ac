# How the project is tested. The Makefile includes this file.

## test         everything; PARTS='unit book' some of it, ONLY='poll/*' one server's cases, SAN= AGAIN=3
#  SAN: the servers under test are built with sanitizers. AGAIN=3: a case that fails has to fail again,
#  by itself, within three times. common/tests/README.md says more.
ALL_PARTS = site unit book servers weather crowds clients grader typed mutants teaching exercises loadtest
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

## check        two parts, in a minute: the unit tests, and whether the documents are still right
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
	$(TELL)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -lcriterion -o $@

# These are tests of the part unit, too. Python starts them.
STATES = $(OUT)/states_poll $(OUT)/states_epoll
$(STATES): $(OUT)/states_%: $(OUT)/common/tests/states/%.o $(LOOP) \
    $(addprefix $(OUT)/common/tests/states/,kernel.o search.o world.o)
$(OUT)/reader: $(OUT)/common/tests/differential/reader.o $(CORE)
$(OUT)/unit: | $(STATES) $(OUT)/reader
$(STATES) $(OUT)/reader:
	$(TELL)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

## states       the loops of chapters 6 and 7: every order of events, with MISHAPS=2 among them
MISHAPS = 2
states: $(NEED)-build $(STATES)
	@for program in $(STATES); do $$program $(MISHAPS) || exit; done

## differential the parser against a reading of the wire contract in Python: N=100000 SEED=7
N = 100000
differential: $(NEED)-build $(OUT)/reader
	@OUT=$(OUT) common/tests/differential/test_differential.py $(N) $(SEED)

## tables       fills the tables of the documents in, from the stored runs and by counting lines
tables:
	@common/tests/book/figures.py
	@common/tests/book/budget.py

## mutants      would the suite notice? Plants a fault in a server, MUTANTS="markup two-lengths" or all
#  SAMPLE=100 SEED=1: so many that a tool makes, drawn by that seed
mutants: $(NEED)-test all build/plain/servers build/plain/weather $(if $(SAMPLE),build/universalmutator)
ifdef SAMPLE
	@$(MAKE) -s SAN=address,undefined build/san-address-undefined/unit
	@common/tests/mutants/sample.py $(SAMPLE) $(SEED)
else
	@common/tests/mutants/mutants.py $(MUTANTS)
endif

build/universalmutator: # what its command needs besides, we do not call
	python3 -m pip install --quiet --no-deps --target=$@ universalmutator==1.14.1

## sanitize     test again with sanitizers, and an eye on every file a server opens; half an hour
sanitize:
	$(MAKE) test SAN=address,undefined
	$(MAKE) test SAN=thread PARTS='servers weather crowds' ONLY='*threading/*'
	WATCH_OPENS=1 $(MAKE) test PARTS=servers

## elsewhere    test and compare on a bare Debian, and the container: SUITE="bookworm trixie"
#  VALKEY=1: with Valkey. COMMANDS=release: test in make dist's archive; arm64: servers for arm64.
elsewhere: $(NEED)-elsewhere
	@common/tools/elsewhere $(SUITE)

## typed        types the commands of the pages that take too long for `make test`: two hours
typed: $(NEED)-test all
	@common/tests/typed/typed.py --slow

## dist         the release, build/dist/zerohttpd-VERSION.tar.gz, from what is committed
#  The same commit gives the same bytes: git sorts the files, and dates them by the commit.
dist:
	@mkdir -p $(BUILD)/dist
	@git='git -c safe.directory=* -c tar.umask=022'; \
	    version=$$($$git show HEAD:./common/options.h | sed -n 's/.*ZEROHTTPD_VERSION "\(.*\)"/\1/p') && \
	    [ "$$version" ] && name=zerohttpd-$$version && archive=$(BUILD)/dist/$$name.tar && \
	    $$git archive --prefix="$$name/" --output="$$archive" HEAD && \
	    gzip -9nf "$$archive" && echo "$$archive.gz"

## fuzz         the parsers, the templates and a connection on made-up input, for FUZZ_SECONDS=60 each
#  FUZZ_RUNS=1000000000 FUZZ_TARGETS=http: again and again, until there were so many; it may be stopped.
FUZZ_TARGETS = http decode template conn
FUZZ_SECONDS = 60
fuzz:
	@FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_RUNS=$(FUZZ_RUNS) common/tests/fuzz/run $(FUZZ_TARGETS)

# Built by fuzz/run, with clang and into build/fuzz; libFuzzer brings their main().
$(FUZZ_TARGETS:%=$(OUT)/fuzz_%): $(OUT)/fuzz_%: $(OUT)/common/tests/fuzz/%.o $(COMMON)
	$(TELL)$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer $(LDFLAGS) $^ $(LDLIBS) -o $@
$(OUT)/fuzz_seeds: $(OUT)/common/tests/fuzz/seeds.o
	$(TELL)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ -o $@

## lint         layout, suspicious code, scripts, and both compilers with every warning an error
lint: $(NEED)-build
	@common/tools/lint

## format       applies .clang-format
format:
	clang-format -i $(wildcard */*.[ch] */*/*.[ch] */*/*/*.[ch])

.PHONY: test check states differential tables mutants sanitize elsewhere typed dist fuzz lint format
