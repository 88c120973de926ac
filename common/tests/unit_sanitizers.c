/* What the tests tell the sanitizers, if they are built with any. */

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

/* The runner of the tests sometimes loses a few octets of its own. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libcriterion\n";
}
