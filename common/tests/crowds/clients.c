/* Crowds: as many clients at once as an architecture is made for, and more than
 * one with a fixed number of workers has workers. Nobody may be turned away.
 *
 * A crowd of thousands is driven by one epoll loop with a reader of its own:
 * everybody has to get a whole page, and each visit has to be counted.
 */
#include "around.h"
#include "tests/harness/harness.h"

#include <sys/epoll.h>

enum {
    PAGE_ROOM = 4096,            /* bytes: a head, and the page of an empty guestbook, */
    LONG_PAGE_ROOM = 128 * 1024, /* or of twenty entries that are as long as most may be */
    BURST = 3750,     /* connections made before we look whether they are accepted; a backlog */
                      /* holds 4096 at most, and a client it has no room for tries a second later */
    CROWD_MS = 60000, /* that it gets through at all; how fast is not asked here */
};

struct member {
    int fd;
    size_t len;
    char *heard; /* page_room bytes, zero behind what has come */
};

static struct member *crowd;
static int crowd_size;
static size_t page_room;

static void gather_for(int count, size_t room)
{
    crowd = calloc((size_t)count, sizeof(*crowd));
    char *heard = calloc((size_t)count, room);
    check(crowd && heard, "no memory");
    for (int i = 0; i < count; i++)
        crowd[i].heard = heard + (size_t)i * room;
    crowd_size = count;
    page_room = room;
}

static void gather(int count)
{
    gather_for(count, PAGE_ROOM);
}

/* One address has half of its ports for the kernel to choose from quickly; 127.0.0.1 is not the
 * only one we have. */
static void join(struct member *member)
{
    enum { CLIENTS_AN_ADDRESS = 5000 };
    const int on = 1;
    uint32_t own = INADDR_LOOPBACK + (uint32_t)((member - crowd) / CLIENTS_AN_ADDRESS);
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = {htonl(own)}};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)server_port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    member->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(member->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    check(bind(member->fd, (struct sockaddr *)&from, sizeof(from)) == 0 &&
              connect(member->fd, (struct sockaddr *)&to, sizeof(to)) == 0,
          "client %td of %d: %s", member - crowd, crowd_size, strerror(errno));
}

static void ask_for_page(const struct member *member)
{
    static const char request[] = "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n";
    check(send(member->fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request),
          "client %td: %s", member - crowd, strerror(errno));
}

/* ---- hearing them all ---------------------------------------------------------------------- */

/* Is this the whole page? */
static bool is_page(const struct member *member)
{
    const char *heard = member->heard, *body = strstr(heard, "\r\n\r\n");
    const char *length = strstr(heard, "\r\nContent-Length: ");
    check(memcmp(heard, "HTTP/1.1 200 ", member->len < 13 ? member->len : 13) == 0,
          "client %td: %s", member - crowd, heard);
    if (!body)
        return false;
    check(length && length < body, "client %td: no length: %s", member - crowd, heard);
    size_t whole = (size_t)(body + 4 - heard) + strtoul(length + 18, NULL, 10);
    check(member->len <= whole, "client %td: more than a page: %s", member - crowd, heard);
    check(member->len < whole || strstr(body, "You are visitor number "), "client %td: no page: %s",
          member - crowd, heard);
    return member->len == whole;
}

/* Receives what has come; true if that makes the page whole. */
static bool hear_some(struct member *member)
{
    ssize_t n =
        recv(member->fd, member->heard + member->len, page_room - 1 - member->len, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return false;
    check(n > 0, "client %td of %d gets %zu bytes, and then: %s", member - crowd, crowd_size,
          member->len, n < 0 ? strerror(errno) : "the end");
    member->len += (size_t)n;
    return is_page(member);
}

static void hear_everybody(void)
{
    enum { EVENTS = 256 };
    struct epoll_event events[EVENTS];
    int epoll = epoll_create1(EPOLL_CLOEXEC), missing = crowd_size;
    int64_t limit = now_ms() + patience(CROWD_MS);
    for (struct member *member = crowd; member < crowd + crowd_size; member++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = member};
        check(epoll_ctl(epoll, EPOLL_CTL_ADD, member->fd, &event) == 0, "%s", strerror(errno));
    }
    while (missing > 0) {
        int64_t left = limit - now_ms();
        int count = left > 0 ? epoll_wait(epoll, events, EVENTS, (int)left) : 0;
        check(count > 0, "%d of %d have no answer", missing, crowd_size);
        for (int i = 0; i < count; i++) {
            struct member *member = events[i].data.ptr;
            if (hear_some(member)) {
                epoll_ctl(epoll, EPOLL_CTL_DEL, member->fd, NULL);
                missing--;
            }
        }
    }
    close(epoll);
    check(redis_number("GET guestbook:visitors") == crowd_size, "not one visit for each");
}

/* The rude way, which leaves nothing behind: thousands of ports that rest for a minute would be in
 * the way of the next crowd. */
static void break_up(void)
{
    const struct linger rudely = {.l_onoff = 1, .l_linger = 0};
    for (int i = 0; i < crowd_size; i++) {
        setsockopt(crowd[i].fd, SOL_SOCKET, SO_LINGER, &rudely, sizeof(rudely));
        close(crowd[i].fd);
    }
    free(crowd[0].heard);
    free(crowd);
    wait_until(count_clients() == 0, SOON_MS, "%d are still there", count_clients());
}

/* ---- idle, and then all at once ------------------------------------------------------------ */

/* All of them connect, and say nothing. */
static void come_in(void)
{
    for (int i = 0; i < crowd_size; i++) {
        join(&crowd[i]);
        if ((i + 1) % BURST == 0 || i + 1 == crowd_size)
            wait_until(count_clients() == i + 1, CROWD_MS, "%d accepted of %d", count_clients(),
                       i + 1);
    }
}

/* What the crowd costs the server, as its architecture says: a child or a thread each, or nothing
 * but a descriptor. */
static void check_cost(int descriptors_before)
{
    if (server_is_loop())
        check(count_descriptors(server_pid) == descriptors_before + crowd_size &&
                  count_workers() == 0,
              "%d descriptors, %d before", count_descriptors(server_pid), descriptors_before);
    else
        wait_until(count_workers() == crowd_size, SOON_MS, "workers: %d", count_workers());
}

static void serve_a_crowd(void)
{
    int descriptors = count_descriptors(server_pid);
    long memory = server_pss_kib();
    come_in();
    check_cost(descriptors);
    long idle = server_pss_kib() - memory;
    for (int i = 0; i < crowd_size; i++)
        ask_for_page(&crowd[i]);
    hear_everybody();
    check(count_clients() == crowd_size, "kept are %d", count_clients());
    cr_log_info("%s: %d clients cost %ld KiB, and %ld once they are served", server_name,
                crowd_size, idle, server_pss_kib() - memory);
    break_up();
    struct statistics s = stop_server();
    check(s.requests == (unsigned)crowd_size && s.connections == (unsigned)crowd_size,
          "%llu requests on %llu connections", s.requests, s.connections);
}

/* Long enough for a connection to stay, and for all pages to go through one Redis. */
#define UNHURRIED "--keep-alive", "600", "--timeout", "600"

/* The server is started before our own limit is raised: it has to raise its own. */
static void two_thousand_idle_clients_are_kept_and_served(void)
{
    gather(as_many_as(2000, 200));
    need_threads(crowd_size);
    start_redis();
    start_server(UNHURRIED, "--workers", "2100");
    need_descriptors(crowd_size);
    serve_a_crowd();
}
AGAINST(forking, two_thousand_idle_clients_are_kept_and_served)

static void fifteen_thousand_idle_clients_are_kept_and_served(void)
{
    gather(as_many_as(15000, 1500));
    if (server_is("threading"))
        need_threads(crowd_size);
    start_redis();
    start_server(UNHURRIED);
    need_descriptors(crowd_size);
    serve_a_crowd();
}
AGAINST(threading, fifteen_thousand_idle_clients_are_kept_and_served)
AGAINST(poll, fifteen_thousand_idle_clients_are_kept_and_served)
AGAINST(epoll, fifteen_thousand_idle_clients_are_kept_and_served)

/* ---- all at once, for long pages ------------------------------------------------------------- */

/* Redis is near and well, and answers without a pause: that so many others ask is no reason for a
 * 504, though it takes longer than the 0.6 s that Redis may be silent for. Each reply is 84 KB, and
 * thousands of them wait in line. */
static void three_thousand_clients_that_ask_together_get_their_long_pages(void)
{
    static char entry[4096];
    memset(entry, 'x', sizeof(entry));
    memcpy(entry, "2026-01-05T09:00:00Z\nAda\n", 25);
    gather_for(as_many_as(3000, 300), LONG_PAGE_ROOM);
    start_redis();
    start_server("--keep-alive", "600", "--timeout", "3");
    need_descriptors(crowd_size);
    for (int i = 0; i < 21; i++)
        redis("RPUSH guestbook:entries %b", entry, sizeof(entry));
    for (int i = 0; i < crowd_size; i++)
        join(&crowd[i]);
    for (int i = 0; i < crowd_size; i++)
        ask_for_page(&crowd[i]);
    hear_everybody();
    break_up();
}
AGAINST(threading, three_thousand_clients_that_ask_together_get_their_long_pages)
AGAINST(poll, three_thousand_clients_that_ask_together_get_their_long_pages)
AGAINST(epoll, three_thousand_clients_that_ask_together_get_their_long_pages)

/* ---- more than there are workers ----------------------------------------------------------- */

/* All connect and ask at once. The backlog has room for those who wait; each is served when its
 * turn has come, and kept by nobody for whom another waits. */
static void two_thousand_clients_get_a_page_from_fewer_workers(void)
{
    gather(as_many_as(2000, 500));
    start_redis();
    start_server(UNHURRIED);
    need_descriptors(crowd_size);
    for (int i = 0; i < crowd_size; i++) {
        join(&crowd[i]);
        ask_for_page(&crowd[i]);
    }
    hear_everybody();
    break_up();
    struct statistics s = stop_server();
    check(s.requests == (unsigned)crowd_size && s.connections == (unsigned)crowd_size,
          "%llu requests on %llu connections", s.requests, s.connections);
}
AGAINST(iterative, two_thousand_clients_get_a_page_from_fewer_workers)
AGAINST(preforking, two_thousand_clients_get_a_page_from_fewer_workers)
AGAINST(prethreading, two_thousand_clients_get_a_page_from_fewer_workers)
