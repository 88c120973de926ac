#include "log.h"

#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void log_request(int client, struct span line, time_t when, int status, uint64_t bytes)
{
    enum { LONGEST = 512 }; /* bytes of a request line that are shown */
    char peer[NI_MAXHOST] = "-", date[40], shown[4 * LONGEST + 1],
         entry[sizeof(peer) + sizeof(shown) + 128];
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);
    if (getpeername(client, (struct sockaddr *)&address, &size) == 0)
        getnameinfo((struct sockaddr *)&address, size, peer, sizeof(peer), NULL, 0, NI_NUMERICHOST);

    text_escape(line.at, line.len < LONGEST ? line.len : LONGEST, shown, sizeof(shown));
    struct tm utc;
    gmtime_r(&when, &utc);
    strftime(date, sizeof(date), "%d/%b/%Y:%H:%M:%S +0000", &utc);
    int n = snprintf(entry, sizeof(entry), "%s - - [%s] \"%s\" %d %llu\n", peer, date, shown,
                     status, (unsigned long long)bytes);
    if (!log_wait_for_room(STDOUT_FILENO, 0) || write(STDOUT_FILENO, entry, (size_t)n) < 0)
        return; /* nobody to tell */
}

bool log_wait_for_room(int fd, int ms)
{
    struct pollfd out = {.fd = fd, .events = POLLOUT};
    return poll(&out, 1, ms) == 1;
}
