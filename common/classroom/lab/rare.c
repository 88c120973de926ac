/* A library to be preloaded (ld.so(8)) into a server: what the kernel may do, and hardly ever does
 * on an idle machine, happens here. RARE in the environment says which of it:
 *
 *     send    takes ten bytes at a time, as from a socket that is nearly full
 *     recv    says "not yet" every other time, although poll() has said that there is something
 *     accept  finds that the second client to come has left again since poll() told of it
 *     prctl   is so late that the parent may have ended before
 *
 * send and recv only of sockets that do not block, and not if the server is edge-triggered: by
 * epoll(7) it may conclude from either that it has to wait for another edge.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FEW_BYTES = 10, LATE_MS = 2000, LOOK_MS = 5 };

static bool by_edges;

#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

static bool happens(const char *name)
{
    const char *rare = getenv("RARE");
    return rare && strcmp(rare, name) == 0;
}

static bool waits_for_levels(int fd)
{
    return !by_edges && fcntl(fd, F_GETFL) & O_NONBLOCK;
}

static size_t few(int fd, size_t length)
{
    return happens("send") && length > FEW_BYTES && waits_for_levels(fd) ? FEW_BYTES : length;
}

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    by_edges = by_edges || (event && event->events & EPOLLET);
    return REAL(epoll_ctl)(epoll, operation, fd, event);
}

ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
    return REAL(send)(fd, bytes, few(fd, length), flags);
}

ssize_t write(int fd, const void *bytes, size_t length)
{
    return REAL(write)(fd, bytes, few(fd, length));
}

static bool is_not_yet(int fd)
{
    static _Thread_local bool was_early;
    was_early = happens("recv") && waits_for_levels(fd) && !was_early;
    if (was_early)
        errno = EAGAIN;
    return was_early;
}

ssize_t recv(int fd, void *bytes, size_t length, int flags)
{
    return is_not_yet(fd) ? -1 : REAL(recv)(fd, bytes, length, flags);
}

ssize_t read(int fd, void *bytes, size_t length)
{
    return is_not_yet(fd) ? -1 : REAL(read)(fd, bytes, length);
}

static void let_the_second_leave(int fd)
{
    static int clients;
    if (happens("accept") && ++clients == 2)
        close(REAL(accept4)(fd, NULL, NULL, SOCK_NONBLOCK));
}

int accept(int fd, struct sockaddr *address, socklen_t *length)
{
    let_the_second_leave(fd);
    return REAL(accept)(fd, address, length);
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    let_the_second_leave(fd);
    return REAL(accept4)(fd, address, length, flags);
}

int prctl(int option, ...)
{
    unsigned long words[4];
    va_list list;
    va_start(list, option);
    for (int i = 0; i < 4; i++)
        words[i] = va_arg(list, unsigned long);
    va_end(list);
    pid_t parent = getppid();
    bool is_late = happens("prctl") && option == PR_SET_PDEATHSIG;
    for (int ms = 0; is_late && ms < LATE_MS && getppid() == parent; ms += LOOK_MS)
        usleep(LOOK_MS * 1000);
    return REAL(prctl)(option, words[0], words[1], words[2], words[3]);
}
