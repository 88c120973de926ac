/* A library to be preloaded (ld.so(8)) into a server under test: reading and writing do 1 to 7
 * bytes a call, whatever was asked for, on sockets and regular files. servers/faults.c compiles
 * it.
 *
 *  - Signals and the log come and go in one piece, as the kernel promises for them.
 *  - The names with _chk are what a C library with _FORTIFY_SOURCE calls instead.
 */
#include <stdatomic.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __recv_chk(int, void *, size_t, size_t, int);

static size_t few(size_t count)
{
    static _Atomic unsigned calls;
    size_t most = 1 + atomic_fetch_add(&calls, 1) % 7;
    return count < most ? count : most;
}

static size_t few_of(int fd, size_t count)
{
    struct stat about;
    return fstat(fd, &about) == 0 && (S_ISSOCK(about.st_mode) || S_ISREG(about.st_mode))
               ? few(count)
               : count;
}

ssize_t read(int fd, void *bytes, size_t count)
{
    return syscall(SYS_read, fd, bytes, few_of(fd, count));
}

ssize_t __read_chk(int fd, void *bytes, size_t count, size_t room)
{
    return read(fd, bytes, count < room ? count : room);
}

ssize_t write(int fd, const void *bytes, size_t count)
{
    return syscall(SYS_write, fd, bytes, few_of(fd, count));
}

ssize_t recv(int fd, void *bytes, size_t count, int flags)
{
    return syscall(SYS_recvfrom, fd, bytes, few(count), flags, NULL, NULL);
}

ssize_t __recv_chk(int fd, void *bytes, size_t count, size_t room, int flags)
{
    return recv(fd, bytes, count < room ? count : room, flags);
}

ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
    return syscall(SYS_sendto, fd, bytes, few(count), flags, NULL, 0);
}

/* A few bytes of the first part that has any. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    size_t i = 0;
    while (i + 1 < message->msg_iovlen && message->msg_iov[i].iov_len == 0)
        i++;
    return send(fd, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len, flags);
}

ssize_t sendfile(int to, int from, off_t *at, size_t count)
{
    return syscall(SYS_sendfile, to, from, at, few(count));
}

/* The name that -D_FILE_OFFSET_BITS=64 makes of it. */
ssize_t sendfile64(int to, int from, off64_t *at, size_t count)
{
    return syscall(SYS_sendfile, to, from, at, few(count));
}
