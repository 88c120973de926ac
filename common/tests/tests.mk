# How the project is tested. The Makefile includes this file.

## test         unit tests, documents, servers: PARTS=servers ONLY='poll/*'
#  SAN=address,undefined or SAN=thread: with sanitizers
## test-all     all parts, with all that deps-all installs
#  WITHOUT='book typed'
ALL_PARTS = book typed clients unit documents servers weather mutants exercises loadtest
SMALL     = unit documents servers weather# that need no more than deps-test brings
PARTS     = unit documents servers
test-all: PARTS = $(filter-out $(WITHOUT),$(ALL_PARTS))
UNKNOWN   = $(filter-out $(ALL_PARTS),$(PARTS) $(WITHOUT))
ifneq ($(UNKNOWN),)
$(error there is no part $(UNKNOWN). The parts are $(ALL_PARTS))
endif

# The programs that test the servers from outside have no sanitizers, whatever the servers have.
PLAIN = $(if $(SAN),build/plain,$(OUT))
RUN   = OUT=$(OUT) PLAIN=$(PLAIN) SAN=$(SAN) SERVERS=$(or $(BIN),.) common/tests/run
test: deps-$(if $(filter-out $(SMALL),$(PARTS)),all,test) all
test-all: deps-all all
test test-all:
	@PATIENCE=$(if $(SAN),3,1) ONLY='$(ONLY)' $(RUN) $(PARTS)

## check        the unit tests and the documents, in a minute
check: $(NEED)-test all
	@$(RUN) unit documents

# The unit tests are linked with common/; the others know the servers from outside only.
COMMON  = $(patsubst %.c,$(OUT)/%.o,$(wildcard common/*.c))
TESTS   = $(patsubst %.c,$(OUT)/%.o,$(wildcard common/tests/*/*.c))
HARNESS = $(filter $(OUT)/common/tests/harness/%,$(TESTS))
$(OUT)/unit:    $(filter $(OUT)/common/tests/unit/%,$(TESTS)) $(COMMON)
$(OUT)/servers: $(filter $(OUT)/common/tests/servers/%,$(TESTS)) $(HARNESS)
$(OUT)/weather: $(filter $(OUT)/common/tests/weather/%,$(TESTS)) $(HARNESS)
$(OUT)/unit $(OUT)/servers $(OUT)/weather:
	$(TELL)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -lcriterion $(PUT)

$(OUT)/servers: | $(OUT)/common/tests/scarce_memory.so

# These are tests of the part unit, too.
STATES = $(OUT)/states_poll $(OUT)/states_epoll
$(STATES): $(OUT)/states_%: $(OUT)/common/tests/states/%.o $(LOOP) \
    $(addprefix $(OUT)/common/tests/states/,kernel.o search.o world.o)
$(OUT)/unit: | $(STATES)
$(STATES):
	$(TELL)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(LDLIBS) $(PUT)

## states       the loops of chapters 6 and 7, in every order of events
MISHAPS = 2
states: $(NEED)-build $(STATES)
	@for program in $(STATES); do $$program $(MISHAPS) || exit; done

## tables       fills the documents' tables in, from the stored runs
tables: $(NEED)-python
	@common/tests/documents/figures.py

## soak         do servers hold more the longer they work? SECONDS=600
soak: $(NEED)-test all
	@SOAK_SECONDS=$(or $(SECONDS),600) ONLY='$(or $(SERVER),*)/twenty_thousand*' $(RUN) weather

## mutants      plants faults: would the tests notice?
mutants: $(NEED)-test all build/plain/servers build/plain/weather
	@common/tests/mutants/mutants $(MUTANTS)

## sanitize     test again with sanitizers
sanitize:
	$(MAKE) test SAN=address,undefined PARTS='unit servers weather clients'
	$(MAKE) test SAN=thread PARTS='servers weather' ONLY='*threading/*'

## elsewhere    COMMAND='make test' on a bare Debian; SUITE=trixie
elsewhere: $(NEED)-elsewhere
	@common/tools/elsewhere "$${SUITE:-trixie}" "$${COMMAND:-make test}"

## dist         the release, build/dist/zerohttpd-VERSION.tar.gz
# No part of it may be beyond its bound (common/tests/README.md). A test between releases takes archive.
dist: $(NEED)-python
	@$(COMMITTED)RELEASE=yes python3 -B -m unittest discover -s common/tests/documents -k more_lines
	@$(MAKE) --no-print-directory archive

# The same commit gives the same bytes: git sorts the files, and dates them by the commit.
COMMITTED = $(if $(wildcard .git),,$(error a release is made from what git has committed, and there is no .git here))
archive:
	@$(COMMITTED)mkdir -p $(BUILD)/dist
	@git='git -c safe.directory=* -c tar.umask=022'; \
	    version=$$($$git show HEAD:./common/options.h | sed -n 's/.*ZEROHTTPD_VERSION "\(.*\)"/\1/p') && \
	    [ "$$version" ] && name=zerohttpd-$$version && archive=$(BUILD)/dist/$$name.tar && \
	    $$git archive --prefix="$$name/" --output="$$archive" HEAD && \
	    gzip -9nf "$$archive" && echo "$$archive.gz"

## fuzz         made-up input for the parsers; FUZZ_SECONDS=60
FUZZ_SECONDS = 60
fuzz: $(NEED)-fuzz
	@FUZZ_SECONDS=$(FUZZ_SECONDS) common/tests/fuzz/run

# Built by fuzz/run, with clang and into build/fuzz; libFuzzer brings its main().
$(OUT)/fuzz: $(OUT)/common/tests/fuzz/request.o $(COMMON)
	$(TELL)$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer $(LDFLAGS) $^ $(LDLIBS) $(PUT)

## lint         layout, suspicious code, scripts, and both compilers
lint: $(NEED)-build
	@common/tools/lint

## format       applies .clang-format
format: $(NEED)-format
	clang-format -i $(wildcard */*.[ch] */*/*.[ch] */*/*/*.[ch])

.PHONY: test test-all check soak states tables mutants sanitize elsewhere dist archive fuzz lint format
