/* How much memory there is, and a budget of it. */
#include "memory.h"
#include "unit.h"

#include <sys/resource.h>

TestSuite(memory, .timeout = 30, .init = scratch_make, .fini = scratch_remove);

enum { MIB = 1024 * 1024 };

Test(memory, is_the_least_that_a_control_group_allows)
{
    scratch_file("proc/self/cgroup", "0::/a/b\n4:memory:/c\n0::/a\n");
    scratch_file("sys/fs/cgroup/a/b/memory.max", "12582912\n");
    expect_number("version 2", memory_limit(scratch), 12 * MIB);
    scratch_file("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "8388608\n");
    expect_number("and 1", memory_limit(scratch), 8 * MIB);
    scratch_file("sys/fs/cgroup/a/memory.max", "4194304\n");
    expect_number("and a last one", memory_limit(scratch), 4 * MIB);
}

Test(memory, is_what_a_group_around_it_allows)
{
    scratch_file("proc/self/cgroup", "0::/a/b\n");
    scratch_file("sys/fs/cgroup/a/b/memory.max", "max\n");
    scratch_file("sys/fs/cgroup/a/memory.max", "8388608\n");
    expect_number("version 2", memory_limit(scratch), 8 * MIB);
}

/* Of the longest root that there may be. */
Test(memory, is_what_version_1_allows)
{
    char root[491];
    memset(root, '/', sizeof(root));
    memcpy(root, scratch, strlen(scratch));
    root[sizeof(root) - 1] = '\0';
    scratch_file("proc/self/cgroup", "5:devices:/a\n4:memory:/a/b\n0::/\n");
    scratch_file("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    scratch_file("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4194304\n");
    expect_number("version 1", memory_limit(root), 4 * MIB);
}

/* A container may be told the host's path, and see its own group as the top. */
Test(memory, is_what_the_top_allows_where_the_path_is_not_there)
{
    scratch_file("proc/self/cgroup", "4:memory:/docker/1234\n");
    scratch_file("sys/fs/cgroup/memory/memory.limit_in_bytes", "4194304\n");
    expect_number("the top", memory_limit(scratch), 4 * MIB);
}

Test(memory, without_a_group_is_that_of_the_machine)
{
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    struct rlimit addresses = {.rlim_cur = 4096 * (rlim_t)MIB, .rlim_max = RLIM_INFINITY};
    expect_number("nothing there", memory_limit(scratch), machine);
    scratch_file("proc/self/cgroup", "no line of any kind\n0::\n4:memory\n::::\n");
    expect_number("nonsense", memory_limit(scratch), machine);
    cr_assert(getrlimit(RLIMIT_AS, &addresses) == 0);
    addresses.rlim_cur = machine / 2;
    cr_assert(setrlimit(RLIMIT_AS, &addresses) == 0);
    expect_number("RLIMIT_AS", memory_limit(scratch), machine / 2);
}

Test(memory, is_taken_until_the_budget_is_used_up)
{
    memory_set_budget(1000);
    cr_expect(memory_reserve(600) && !memory_reserve(401) && memory_reserve(400) &&
              !memory_reserve(1));
    expect_number("a refusal takes nothing", memory_in_use(), 1000);
    memory_release(600);
    cr_expect(memory_reserve(600));
    memory_release(1000);
    expect_number("all given back", memory_in_use(), 0);
}

Test(memory, is_a_quarter_of_the_limit_for_large_requests)
{
    memory_start();
    cr_expect(memory_reserve(memory_limit("") / 4) && !memory_reserve(1));
}

Test(memory, is_short_before_it_is_used_up)
{
    memory_set_budget(1000);
    cr_expect(memory_reserve(750) && !memory_is_short());
    cr_expect(memory_reserve(1) && memory_is_short());
    memory_release(1);
    cr_expect(!memory_is_short());
}
