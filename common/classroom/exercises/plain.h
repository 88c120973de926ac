/* plain: how exercises serve a client where the answer is not the subject. A request is read up to
 * its empty line, and answered. The sockets are those of net_listen(true), whose calls end without
 * a byte once a tick.
 *
 * An exercise is one file, so it includes the code along with the declarations.
 */
#ifndef EXERCISES_PLAIN_H
#define EXERCISES_PLAIN_H

#include "net.h"
#include "options.h"
#include "process.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sends a whole response, of such a status: "200 OK". */
static inline void plain_send(int client, const char *status, const char *body)
{
    char text[512];
    int len = snprintf(text, sizeof(text),
                       "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                       "Connection: close\r\n\r\n%s",
                       status, strlen(body), body);
    send(client, text, (size_t)len, MSG_NOSIGNAL);
}

/* Reads a request, however long the client takes. False: it has left, or says too much, or the
 * server is to stop. */
static inline bool plain_read(int client, char *request, size_t room)
{
    size_t len = 0;
    request[0] = '\0';
    while (!strstr(request, "\r\n\r\n")) {
        ssize_t n = recv(client, request + len, room - 1 - len, 0);
        if (n == 0 || stop_requested() || (n < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        len += n > 0 ? (size_t)n : 0;
        request[len] = '\0';
    }
    return true;
}

/* A client's whole visit. Owns client, closes it. */
static inline void plain_serve(int client)
{
    char request[4096];
    if (plain_read(client, request, sizeof(request)))
        plain_send(client, "200 OK", "Hello\n");
    close(client);
}

/* 503; owns client, closes it. If the request stayed unread, the kernel would reset the connection.
 */
static inline void plain_refuse(int client)
{
    char request[4096];
    recv(client, request, sizeof(request), MSG_DONTWAIT);
    plain_send(client, "503 Service Unavailable", "");
    close(client);
}

#endif
