/* Linked into servers with the address sanitizer. Its search for leaks is left out by who ends with
 * _exit(2), as chapter 2's children and chapter 3's workers do: so it is made up for here. Not in
 * each of them: a hundred who end together would keep the processors busy with nothing else.
 */
#include <sanitizer/lsan_interface.h>
#include <sys/syscall.h>
#include <unistd.h>

_Noreturn void _exit(int status)
{
    enum { ONE_IN = 16 };
    if (status == 0 && getpid() % ONE_IN == 0)
        __lsan_do_leak_check(); /* ends the process if there is a leak */
    syscall(SYS_exit_group, status);
    __builtin_unreachable();
}
