# What a class needs: exercises, copies, grades. The Makefile includes this file.

## exercises    all of them, by chapter, and which are done; HTML=1: build/exercises.html, too
exercises: $(NEED)-build
	@common/classroom/exercises/list $(if $(HTML),'$(BUILD)/exercises.html')

## exercise     checks one: EX=03/supervisor. The first time, you get a copy to work on, in .mine/
exercise: $(NEED)-exercise $(if $($(notdir $(EX))_LIBS),$(NEED)-$(notdir $(EX)))
	@common/classroom/exercises/run '$(EX)'

## course       a copy of the project for a class, without the solutions: DIR=../course
course:
	@common/classroom/course/course '$(DIR)'

## collect      checks what students have handed in, under limits: FROM=handed-in/ EX=01/reader JSON=1
#  FROM holds a `.mine` or a .tar.gz of it for each student. EX: only this exercise. CLASS=class.csv
#  says who is who. The results stay in collected/, a folder for each run. MODEL=epoll: servers, graded.
collect: $(NEED)-$(if $(MODEL),test,exercise)
	@common/classroom/course/collect $(if $(JSON),--json) $(if $(EX),--only '$(EX)') \
	    $(if $(CLASS),--class '$(CLASS)') $(if $(MODEL),--model '$(MODEL)') '$(FROM)'

## grade        any server as one of the seven, on 100 points: SERVER=./mine MODEL=epoll SEED=1 JSON=1
grade: $(NEED)-test
	@common/classroom/grader/grade $(if $(JSON),--json) $(if $(SEED),--seed '$(SEED)') \
	    --lanes build/lanes '$(SERVER)' '$(MODEL)'

# ---- the programs of exercises -------------------------------------------------------------

# An exercise is a whole program, linked with what its chapter's server uses. It is built from three
# files: the starting file, the learner's copy of it, and the solution, which a patch makes of it.
# A starting file is plain C; or a patch makes it of the chapter's main.c without its first comment,
# so that a change of the chapter reaches the exercise or stops make.
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
06_poll_USES         = $(LOOP) $(OUT)/common/redis_pool.o # one exercise asks as chapter 5 does
07_epoll_USES        = $(LOOP)

# An exercise that takes a library of its own names it, and is skipped where the library is missing;
# deps has a group of its name.
uring_LIBS  = -luring
uring_LACKS = $(if $(wildcard /usr/include/liburing.h /usr/local/include/liburing.h),,uring-lacks)
uring-lacks:
	@echo 'skipped: liburing.h is missing; make deps installs it'; false

# Expanded a second time for each target, prerequisites may use its name: of build/mine/01_iterative/queue,
# *D is 01_iterative and *F is queue.
.SECONDEXPANSION:
$(WHOLE:%=$(BUILD)/exercises/%): $(BUILD)/exercises/%: \
    $$($$(*F)_LACKS) $(OUT)/$$(*D)/exercises/$$(*F).o $$($$(*D)_USES)
$(MADE): $(BUILD)/%: $$($$(*F)_LACKS) $(BUILD)/%.o $$($$(notdir $$(*D))_USES)
$(MINE): $(BUILD)/mine/%: $$($$(*F)_LACKS) $(OUT)/.mine/%.o $$($$(*D)_USES)
$(STARTING) $(SOLUTIONS) $(MINE):
	@mkdir -p $(@D)
	$(TELL)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $($(@F)_LIBS) $(LDLIBS) -o $@

$(BUILD)/exercises/%/main.c: %/main.c
	@mkdir -p $(@D)
	sed '1,/\*\//d' $< >$@
$(PATCHED:%=$(BUILD)/exercises/%.c): $(BUILD)/exercises/%.c: \
    $(BUILD)/exercises/$$(*D)/main.c $$(*D)/exercises/$$(*F).patch
$(PATCHED:%=$(BUILD)/solutions/%.c): $(BUILD)/solutions/%.c: \
    $(BUILD)/exercises/%.c $$(*D)/exercises/solutions/$$(*F).patch
$(WHOLE:%=$(BUILD)/solutions/%.c): $(BUILD)/solutions/%.c: \
    $$(*D)/exercises/$$(*F).c $$(*D)/exercises/solutions/$$(*F).patch
$(MADE:%=%.c):
	@mkdir -p $(@D)
	patch --silent --fuzz=0 --read-only=ignore --output=$@ $^ || \
	    { echo '$(lastword $^) does not fit $(<:$(BUILD)/exercises/%/main.c=%/main.c)'; false; }
$(MADE:%=%.o): %.o: %.c | $(NEED)-build
	$(TELL)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@
-include $(wildcard $(OUT)/.mine/*/*.d $(BUILD)/exercises/*/*.d $(BUILD)/solutions/*/*.d)

# All starting files and solutions, for their tests. A course's copy has no solutions.
BUILDABLE = $(if $(uring_LACKS),$(filter-out %/uring,$(EXERCISES)),$(EXERCISES))
SOLVED    = $(patsubst %.patch,%,$(subst exercises/solutions/,,$(wildcard 0*/exercises/solutions/*.patch)))
exercise-programs: $(BUILDABLE:%=$(BUILD)/exercises/%) \
    $(patsubst %,$(BUILD)/solutions/%,$(filter $(SOLVED),$(BUILDABLE)))

# How an exercise is compiled whose SOURCE lies elsewhere, for `make collect`, which sets limits to it.
compile-command: $($(notdir $(EX))_LACKS)
	@echo $(CC) $(ALL_CFLAGS) $(LDFLAGS) $(SOURCE) $($(subst /,,$(dir $(EX)))_USES) \
	    $($(notdir $(EX))_LIBS) $(LDLIBS) -o $(PROGRAM)

.PHONY: exercises exercise course collect grade exercise-programs compile-command uring-lacks
