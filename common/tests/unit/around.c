/* What stands around the tests: the runner's last look, and what sanitizers are told. */
#include "unit.h"

#include <criterion/hooks.h>
#include <glob.h>

/* A test that crashes cannot tidy up after itself: the runner does. */
ReportHook(POST_ALL)(struct criterion_global_stats *stats)
{
    char pattern[40];
    glob_t left;
    (void)stats;
    snprintf(pattern, sizeof(pattern), "/tmp/unit-%d-*", (int)getpid());
    if (glob(pattern, 0, NULL, &left) == 0)
        for (size_t i = 0; i < left.gl_pathc; i++)
            nftw(left.gl_pathv[i], scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    globfree(&left);
}

/* ---- sanitizers, if there are any ---------------------------------------------------------- */

const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__lsan_default_suppressions(void);

/* malloc() may fail, as it does elsewhere. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* The runner of the tests sometimes loses a few bytes of its own. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libcriterion\n";
}
