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
int __lsan_is_turned_off(void);

/* malloc() may fail, as it does elsewhere. Criterion does not notice that a test which has passed
 * lost memory, unless its process aborts. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:abort_on_error=1";
}

/* Each test has a process of its own. The runner of them all loses a few bytes. */
int __lsan_is_turned_off(void)
{
    return strcmp(program_invocation_short_name, "boxfort-worker") != 0;
}
