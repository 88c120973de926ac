#include "log.h"

#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

void log_peer(int client, char peer[LOG_PEER_SIZE])
{
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);
    if (getpeername(client, (struct sockaddr *)&address, &size) != 0 ||
        getnameinfo((struct sockaddr *)&address, size, peer, LOG_PEER_SIZE, NULL, 0,
                    NI_NUMERICHOST) != 0)
        memcpy(peer, "-", sizeof("-"));
}

static void write_line(int fd, const char *line, size_t len)
{
    if (!log_wait_for_room(fd, 0) || write(fd, line, len) < 0)
        return; /* nobody to tell */
}

void log_request(const char *peer, struct span line, int status, uint64_t bytes)
{
    enum { LONGEST = 512 }; /* bytes of a request line that are shown */
    char date[40], shown[4 * LONGEST + 1], entry[LOG_PEER_SIZE + sizeof(shown) + 128];
    time_t when = time(NULL);
    text_escape(line.at, line.len < LONGEST ? line.len : LONGEST, shown, sizeof(shown));
    struct tm utc;
    gmtime_r(&when, &utc);
    strftime(date, sizeof(date), "%d/%b/%Y:%H:%M:%S +0000", &utc);
    int n = snprintf(entry, sizeof(entry), "%s - - [%s] \"%s\" %d %llu\n", peer, date, shown,
                     status, (unsigned long long)bytes);
    write_line(STDOUT_FILENO, entry, (size_t)n);
}

void log_message(const char *name, const char *format, ...)
{
    char line[1200];
    va_list arguments;
    int n = snprintf(line, sizeof(line), "%s: ", name);
    va_start(arguments, format);
    n += vsnprintf(line + n, sizeof(line) - (size_t)n, format, arguments);
    va_end(arguments);
    n = n < (int)sizeof(line) - 1 ? n : (int)sizeof(line) - 2;
    line[n++] = '\n';
    write_line(STDERR_FILENO, line, (size_t)n);
}

bool log_wait_for_room(int fd, int ms)
{
    struct pollfd out = {.fd = fd, .events = POLLOUT};
    return poll(&out, 1, ms) == 1;
}
