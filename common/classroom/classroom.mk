# What a class needs: exercises, copies, grades. The Makefile includes this file.

## exercises    all of them, by chapter, and which are done
#  JSON=1: checks those begun, or EX='01/reader 02/cap'
exercises: $(NEED)-build $(NEED)-$(if $(JSON),exercise,python)
	@common/classroom/exercises/run $(if $(JSON),--json $(EX),--list) || [ $$? = 141 ] # `| head` has enough

## exercise     checks one: EX=03/supervisor; your copy is in .mine/
exercise: $(NEED)-exercise $(if $($(notdir $(EX))_LIBS),$(NEED)-$(notdir $(EX)))
	@common/classroom/exercises/run '$(EX)' || { [ $$? != 2 ] && [ -t 1 ]; } # on a terminal, the verdict is the last line

## lab          tries your own server: CH=3, or SERVER='./mine {port}'
lab: $(NEED)-compare instruments
	@common/classroom/lab/lab '$(CH)' || { [ $$? != 2 ] && [ -t 1 ]; }

## course       a copy for a class, without the solutions: DIR=../course
course: $(NEED)-python
	@common/classroom/course '$(DIR)'

## grade        how many tests does any server pass? SERVER=./mine
grade: $(NEED)-test
	@common/classroom/grade || { [ $$? != 2 ] && [ -t 1 ]; }

# ---- the programs of exercises -------------------------------------------------------------

# An exercise is a whole program, linked with what its chapter's server uses. It is built from three
# files: the starting file, the learner's copy of it, and the solution, which a patch makes of it.
# A starting file is plain C; or a patch makes it of the chapter's main.c without its first comment,
# so that a change of the chapter reaches the exercise or stops make. Where an exercise changes loop.c,
# that stands before it.
PATCHED   = $(patsubst %.patch,%,$(subst exercises/,,$(wildcard 0*/exercises/*.patch)))
WHOLE     = $(patsubst %.c,%,$(subst exercises/,,$(wildcard 0*/exercises/*.c)))
EXERCISES = $(PATCHED) $(WHOLE)
LEARNERS  = $(patsubst .mine/%.c,%,$(wildcard .mine/0*/*.c))
STARTING  = $(EXERCISES:%=$(BUILD)/exercises/%)
SOLUTIONS = $(EXERCISES:%=$(BUILD)/solutions/%)
MADE      = $(PATCHED:%=$(BUILD)/exercises/%) $(SOLUTIONS)
MINE      = $(LEARNERS:%=$(BUILD)/mine/%)

01_iterative_USES    = $(BLOCKING)
02_forking_USES      = $(BLOCKING) $(CHILDREN)
03_preforking_USES   = $(BLOCKING) $(CHILDREN)
04_threading_USES    = $(BLOCKING)
05_prethreading_USES = $(BLOCKING)
06_poll_USES         = $(LOOP)
07_epoll_USES        = $(LOOP)
WITH_LOOP = 06_poll/limit 07_epoll/drain 07_epoll/workers
uses = $(filter-out $(if $(filter $1/$2,$(WITH_LOOP)),%/loop.o),$($1_USES))

# An exercise that takes a library of its own names it, and is skipped where the library is missing;
# deps has a group of its name.
uring_LIBS  = -luring
uring_LACKS = $(if $(wildcard /usr/include/liburing.h /usr/local/include/liburing.h),,uring-lacks)
uring-lacks:
	@echo 'skipped: liburing.h is missing; make deps-uring installs it'; false

# Expanded a second time for each target, prerequisites may use its name: of build/mine/01_iterative/queue,
# *D is 01_iterative and *F is queue.
$(WHOLE:%=$(BUILD)/exercises/%): $(BUILD)/exercises/%: \
    $$($$(*F)_LACKS) $(OUT)/$$(*D)/exercises/$$(*F).o $$($$(*D)_USES)
$(MADE): $(BUILD)/%: $$($$(*F)_LACKS) $(BUILD)/%.o $$(call uses,$$(notdir $$(*D)),$$(*F))
$(MINE): $(BUILD)/mine/%: $$($$(*F)_LACKS) $(OUT)/.mine/%.o $$(call uses,$$(*D),$$(*F))
$(STARTING) $(SOLUTIONS) $(MINE):
	@mkdir -p $(@D)
	$(TELL)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $($(@F)_LIBS) $(LDLIBS) $(PUT)

$(BUILD)/exercises/%/server.c: %/main.c
	@mkdir -p $(@D)
	sed '1,/\*\//d' $< >$@
$(BUILD)/exercises/%/whole.c: common/loop.c $(BUILD)/exercises/%/server.c
	cat $^ >$@
$(PATCHED:%=$(BUILD)/exercises/%.c): $(BUILD)/exercises/%.c: \
    $(BUILD)/exercises/$$(*D)/$$(if $$(filter $$*,$(WITH_LOOP)),whole,server).c $$(*D)/exercises/$$(*F).patch
$(PATCHED:%=$(BUILD)/solutions/%.c): $(BUILD)/solutions/%.c: \
    $(BUILD)/exercises/%.c $$(*D)/exercises/solutions/$$(*F).patch
$(WHOLE:%=$(BUILD)/solutions/%.c): $(BUILD)/solutions/%.c: \
    $$(*D)/exercises/$$(*F).c $$(*D)/exercises/solutions/$$(*F).patch
$(MADE:%=%.c):
	@mkdir -p $(@D)
	patch --silent --fuzz=0 --read-only=ignore --output=$@ $^ || \
	    { echo '$(lastword $^) does not fit $(<:$(BUILD)/exercises/%/server.c=%/main.c)'; false; }
$(MADE:%=%.o): %.o: %.c | $(NEED)-build
	$(TELL)$(CC) $(ALL_CFLAGS) -MMD -MP -MF $(@:o=d) -MT $@ -c $< $(PUT)
-include $(wildcard $(OUT)/.mine/*/*.d $(BUILD)/exercises/*/*.d $(BUILD)/solutions/*/*.d)

# All starting files and solutions, for their tests. A course's copy has no solutions.
BUILDABLE = $(if $(uring_LACKS),$(filter-out %/uring,$(EXERCISES)),$(EXERCISES))
SOLVED    = $(patsubst %.patch,%,$(subst exercises/solutions/,,$(wildcard 0*/exercises/solutions/*.patch)))
exercise-programs: $(BUILDABLE:%=$(BUILD)/exercises/%) \
    $(patsubst %,$(BUILD)/solutions/%,$(filter $(SOLVED),$(BUILDABLE)))

# How an exercise is compiled whose SOURCE lies elsewhere.
compile-command: $($(notdir $(EX))_LACKS)
	@echo $(CC) $(ALL_CFLAGS) $(LDFLAGS) $(SOURCE) $(call uses,$(subst /,,$(dir $(EX))),$(notdir $(EX))) \
	    $($(notdir $(EX))_LIBS) $(LDLIBS) -o $(PROGRAM)

.PHONY: exercises exercise lab course grade exercise-programs compile-command uring-lacks
