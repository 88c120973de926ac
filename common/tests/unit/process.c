/* What a process may have: descriptors. */
#include "process.h"
#include "unit.h"

#include <sys/resource.h>

TestSuite(process, .timeout = 60);

static int table_size(void)
{
    char line[256];
    int size = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof(line), status))
        sscanf(line, "FDSize: %d", &size);
    fclose(status);
    return size;
}

Test(process, reserves_descriptors_and_keeps_none)
{
    const struct rlimit limit = {.rlim_cur = 1000, .rlim_max = 1000};
    int next = dup(STDERR_FILENO);
    close(next);
    setrlimit(RLIMIT_NOFILE, &limit);
    process_reserve_descriptors(5000);
    cr_expect(table_size() >= 1000 && table_size() < 5000, "room for %d", table_size());
    expect_number("the next", dup(STDERR_FILENO), next);
}
