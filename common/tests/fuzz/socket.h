/* fuzz_socket: the client's socket, in memory. It defines the system calls that conn.c makes, so
 * that they do not reach the kernel. That doubles the speed, and a send(2) can end at any byte, as
 * with TCP.
 *
 *  - THE_SOCKET is its descriptor. Every other descriptor is a real one, of a file.
 *  - To use it after close(2) is a mistake of the server, and so is to send after shutdown(2).
 */
#ifndef FUZZ_SOCKET_H
#define FUZZ_SOCKET_H

#include "fuzz.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THE_SOCKET = 1 << 20, HEARD = 1 << 24 /* bytes */ };

static struct wire {
    bool is_open, is_shut;   /* by the server */
    bool has_ended, is_gone; /* the client: sends no more; has reset the connection */
    const char *unread;      /* by the server; owned by the target */
    size_t unread_len;
    size_t room; /* bytes that the socket takes until the client reads on */
    size_t heard_len;
    int in_flight; /* bytes that the client has not acknowledged */
} wire;
static char heard[HEARD]; /* what the client has received, or will */

static int fail(int why)
{
    errno = why;
    return -1;
}

int close(int fd)
{
    if (fd != THE_SOCKET)
        return (int)syscall(SYS_close, fd);
    must(wire.is_open);
    wire.is_open = false;
    return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    (void)level, (void)value, (void)size;
    must(fd == THE_SOCKET && wire.is_open && name == SO_LINGER);
    return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list rest;
    must(fd == THE_SOCKET && wire.is_open && request == SIOCOUTQ);
    va_start(rest, request);
    *va_arg(rest, int *) = wire.in_flight;
    va_end(rest);
    return 0;
}

int shutdown(int fd, int how)
{
    must(fd == THE_SOCKET && wire.is_open && how == SHUT_WR);
    wire.is_shut = true;
    return wire.is_gone ? fail(ENOTCONN) : 0;
}

ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
    size_t len = size < wire.unread_len ? size : wire.unread_len;
    must(fd == THE_SOCKET && wire.is_open && size > 0);
    if (wire.is_gone)
        return fail(ECONNRESET);
    if (len == 0)
        return wire.has_ended ? 0 : fail(EAGAIN);
    memcpy(bytes, wire.unread, len);
    if (!(flags & MSG_PEEK)) {
        wire.unread += len;
        wire.unread_len -= len;
    }
    return (ssize_t)len;
}

/* How many of `len` bytes the socket takes now; -1: none. */
static ssize_t take(int fd, size_t len)
{
    must(fd == THE_SOCKET && wire.is_open && !wire.is_shut);
    must(wire.heard_len + len <= HEARD);
    if (wire.is_gone || wire.room == 0)
        return fail(wire.is_gone ? EPIPE : EAGAIN);
    len = len < wire.room ? len : wire.room;
    wire.room -= len;
    return (ssize_t)len;
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    ssize_t n = take(fd, len);
    must(flags & MSG_NOSIGNAL);
    if (n > 0)
        memcpy(heard + wire.heard_len, bytes, (size_t)n);
    wire.heard_len += n > 0 ? (size_t)n : 0;
    return n;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    ssize_t sent = 0, n;
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        const struct iovec *part = &message->msg_iov[i];
        n = send(fd, part->iov_base, part->iov_len, flags);
        if (n < 0)
            return sent > 0 ? sent : -1;
        sent += n;
        if ((size_t)n < part->iov_len)
            break;
    }
    return sent;
}

ssize_t sendfile(int fd, int file, off_t *at, size_t len)
{
    ssize_t n = take(fd, len);
    if (n > 0)
        n = pread(file, heard + wire.heard_len, (size_t)n, *at);
    *at += n > 0 ? n : 0;
    wire.heard_len += n > 0 ? (size_t)n : 0;
    return n;
}

#endif
