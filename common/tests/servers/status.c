/* The status: /status.json says what the server is at, and to whom.
 *
 * Clients are held in known states, and the board has to come to say exactly that. Who answers is
 * on it as well: "reading", since its own response has not begun.
 */
#include "tests/harness/harness.h"

#include <ctype.h>
#include <ifaddrs.h>
#include <net/if.h>

#define COUNT(array)   (sizeof(array) / sizeof((array)[0]))
#define GET_LAST(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
#define GET_KEPT(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\n\r\n"

static const char *json; /* what it said last */

static void read_status(const struct answer *a)
{
    check(a->status == 200, "status %d", a->status);
    json = strdup(a->body);
}

/* What /status.json says, in `json`. */
static void look(void)
{
    read_status(get("/status.json"));
}

/* Looks again and again over one connection: each new one would be a knock, to which an idle client
 * of chapters 3 and 5 may have to give way. */
static void look_on(void)
{
    static struct client *onlooker;
    if (onlooker && is_closed_by_server(onlooker)) {
        hang_up(onlooker);
        onlooker = NULL;
    }
    if (!onlooker)
        onlooker = dial();
    say(onlooker, GET_KEPT("/status.json"));
    read_status(hear(onlooker));
}

/* Looks a name up, such as "now.fresh" or "slots.0.state". Whether all of it is JSON is not asked
 * here: a browser reads it in clients/wall.py. Returns a string without its quotation marks, or
 * NULL. */
static const char *json_text(const char *path)
{
    const char *at = json;
    char name[64];
    for (size_t len; at && *path; path += len + (path[len] == '.')) {
        len = strcspn(path, ".");
        snprintf(name, sizeof(name), "\"%.*s\":", (int)len, path);
        if (strspn(path, "0123456789") < len)
            at = (at = strstr(at, name)) ? at + strlen(name) : NULL;
        else /* a member of an array of objects */
            for (int i = atoi(path); at && i >= 0; i--)
                at = (at = strchr(at, '{')) ? at + 1 : NULL;
    }
    if (!at)
        return NULL;
    at += strspn(at, " ");
    return *at == '"' ? strndup(at + 1, strcspn(at + 1, "\"")) : strndup(at, strcspn(at, ",}\n"));
}

/* -1: there is none, or it is no number. */
static long long json_number(const char *path)
{
    const char *text = json_text(path);
    return text && isdigit((unsigned char)text[0]) ? atoll(text) : -1;
}

static const char *text_of(int slot, const char *name)
{
    char path[64];
    snprintf(path, sizeof(path), "slots.%d.%s", slot, name);
    const char *text = json_text(path);
    return text ? text : "";
}

static int count_slots(void)
{
    int count = 0;
    while (*text_of(count, "state"))
        count++;
    return count;
}

/* The slots in a state; the last one of them in *slot. */
static int count_in(const char *state, int *slot)
{
    int count = 0;
    for (int i = 0; *text_of(i, "state"); i++)
        if (strcmp(text_of(i, "state"), state) == 0) {
            *slot = i;
            count++;
        }
    return count;
}

/* ---- the document -------------------------------------------------------------------------- */

/* In their order, as status.h documents them. */
EVERY_SERVER(its_fields_are_those_that_are_documented)
{
    static const char *const head[] = {
        "server",   "version",     "architecture", "pid",  "uptime_ms", "workers_most",
        "requests", "connections", "responses",    "2xx",  "3xx",       "4xx",
        "5xx",      "now",         "fresh",        "idle", "reading",   "asking",
        "writing",  "lingering",   "cpu_ms",       "user", "system",    "processes",
        "threads",  "pss_kib",     "slots",
    };
    static const char *const slot[] = {"slot",     "id",       "state",      "request",
                                       "since_ms", "requests", "connections"};
    start_server();
    look();
    const size_t slots = (size_t)count_slots(), fields = COUNT(head) + slots * COUNT(slot);
    const char *at = json;
    check(slots >= 1, "nobody answers");
    for (size_t i = 0; i < fields; i++) {
        const char *name = i < COUNT(head) ? head[i] : slot[(i - COUNT(head)) % COUNT(slot)];
        at = strstr(at, "\":");
        check(at && memcmp(at - strlen(name), name, strlen(name)) == 0, "no %s: %s", name, json);
        at += 2;
    }
    check(!strstr(at, "\":"), "another field: %s", at);
}

EVERY_SERVER(it_says_who_it_is)
{
    start_server();
    int64_t start = now_ms();
    const struct answer *a = get("/status.json");
    read_status(a);
    check(strcmp(field(a, "Content-Type"), "application/json") == 0, "a type");
    check(strcmp(field(a, "Cache-Control"), "no-store") == 0, "it may be kept");
    check(field(a, "X-Content-Type-Options") || !server_is_ours(), "a browser may guess");
    check(strcmp(json_text("server"), server_says) == 0, "%s", json_text("server"));
    check(*json_text("version") && *json_text("architecture"), "it says nothing");
    check(json_number("pid") == server_pid, "%lld", json_number("pid"));
    check(json_number("uptime_ms") <= now_ms() - start + patience(SOON_MS), "older");
    long long most = server_has_pool()        ? 8
                     : server_is("forking")   ? 2048
                     : server_is("threading") ? 16384
                                              : 1;
    check(json_number("workers_most") == most, "%lld", json_number("workers_most"));
}

/* ---- numbers ------------------------------------------------------------------------------- */

EVERY_SERVER(it_counts_what_the_statistics_at_the_end_count)
{
    start_server();
    get("/");
    get("/not-there");
    get("/guestbook"); /* without Redis */
    ask("nonsense\r\n\r\n");
    struct client *c = dial_and_say(GET_KEPT("/") GET_KEPT("/") GET_LAST("/status.json"));
    hear(c);
    hear(c);
    read_status(hear(c));
    hang_up(c);
    check(json_number("requests") == 6, "%lld", json_number("requests"));
    check(json_number("connections") == 5, "%lld", json_number("connections"));
    check(json_number("responses.2xx") == 3, "2xx");
    check(json_number("responses.3xx") == 0, "3xx");
    check(json_number("responses.4xx") == 2, "4xx");
    check(json_number("responses.5xx") == 1, "5xx");
    struct statistics s = stop_server(); /* by SIGTERM: with status 0, and no child left */
    check(s.told && s.requests == 7 && s.connections == 5, "%s", server_output());
    check(count_lines(server_output()) == 2 || !server_is_ours(), "a log that nobody wants: %s",
          server_output());
}

/* A worker is on the board as soon as it runs. */
static bool knows_all_of_them(void)
{
    long long processes = server_is("forking") ? 2 : server_is("preforking") ? 9 : 1;
    long long threads = server_is("threading") ? 2 : server_is("prethreading") ? 9 : processes;
    look_on();
    return json_number("processes") == processes && json_number("threads") >= threads;
}

EVERY_SERVER(it_knows_its_processes_and_threads)
{
    char path[64];
    start_server();
    wait_until(knows_all_of_them(), SOON_MS, "%s", json);
    for (int i = 0; i < count_slots(); i++) { /* the server itself, where there are no workers */
        pid_t id = atoi(text_of(i, "id"));
        snprintf(path, sizeof(path), "/proc/%d", (int)id); /* a thread has one, too (proc(5)) */
        check(access(path, F_OK) == 0 && (id == server_pid) == !server_has_workers(),
              "%d is no worker", (int)id);
    }
    check(json_number("pss_kib") > 100, "%lld KiB", json_number("pss_kib"));
}

/* ---- clients held in known states ---------------------------------------------------------- */

enum { STATES = 6, HELD = 7 };
static const char *const states[STATES] = {"fresh",  "idle",    "reading",
                                           "asking", "writing", "lingering"};
static const int state_of[HELD] = {0, 0, 1, 2, 3, 4, 5}; /* each who is held, by the table above */
static struct client *held[HELD];

/* Does the board say that there are so many in each state, and who answers, and nobody else? */
static bool says_exactly(const int expected[STATES])
{
    char path[64];
    int slot = 0;
    look_on();
    for (int i = 0; i < STATES; i++) {
        int count = expected[i] + (strcmp(states[i], "reading") == 0); /* it answers us */
        snprintf(path, sizeof(path), "now.%s", states[i]);
        if (json_number(path) != count ||
            (!server_is_loop() && count_in(states[i], &slot) != count))
            return false;
    }
    return true;
}

/* Two who say nothing, one who is kept, one who says half a request, one whose page Redis sits on,
 * one who does not read, one who is refused and does not close. */
static void hold_seven(void)
{
    start_redis();
    start_server("--root", make_root_with_file(64 << 20), "--timeout", "600", "-k", "60",
                 POOL_OF("12")); /* a minute for lingering */
    freeze_redis();
    for (int i = 0; i < HELD; i++)
        held[i] = dial();
    wait_until(says_exactly((int[STATES]){HELD}), SOON_MS, "the board says: %s", json);
    say(held[2], GET_KEPT("/"));
    check(hear(held[2])->kept, "not kept");
    say(held[3], "GET /half HTTP/1.1\r\n");
    say(held[4], GET_KEPT("/x/../%67uestbook?page=1"));
    say(held[5], GET_KEPT("/file.bin"));
    say(held[6], "nonsense\r\n\r\n");
    check(hear(held[6])->status == 400, "%d", held[6]->answer.status);
}

static void check_requests(void)
{
    int slot = -1;
    check(count_in("asking", &slot) == 1 &&
              strcmp(text_of(slot, "request"), "GET /x/../%67uestbook") == 0,
          "%s", text_of(slot, "request"));
    check(count_in("writing", &slot) == 1 && strcmp(text_of(slot, "request"), "GET /file.bin") == 0,
          "%s", text_of(slot, "request"));
    check(count_in("idle", &slot) == 1 && !*text_of(slot, "request"), "idle, at %s",
          text_of(slot, "request"));
}

CONCURRENT_SERVERS(seven_clients_in_known_states_are_on_the_board_exactly_until_they_leave)
{
    int expected[STATES] = {2, 1, 1, 1, 1, 1};
    hold_seven();
    wait_until(says_exactly(expected), SOON_MS, "the board says: %s", json);
    if (server_is_loop())
        check(count_slots() == 1 && strcmp(text_of(0, "state"), "loop") == 0 &&
                  strcmp(text_of(0, "since_ms"), "null") == 0,
              "%d slots", count_slots());
    else
        check_requests();
    for (int i = 0; i < HELD - 1; i++) {
        if (i == 4) {
            thaw_redis(); /* while Redis is asked, nobody looks whether the client is still there */
            check(hear(held[4])->status == 200, "%d", held[4]->answer.status);
            freeze_redis();
        }
        reset(held[i]);
        expected[state_of[i]]--;
        wait_until(says_exactly(expected), SOON_MS, "%d left: %s", i + 1, json);
    }
    thaw_redis();
    hang_up(held[6]);
}

/* ---- a worker that is killed --------------------------------------------------------------- */

/* The id of the worker that asks Redis, and of as many others as there are besides who answers. */
static pid_t worker_that_asks(void)
{
    int slot = 0;
    return look(), count_in("asking", &slot) == 1 ? atoi(text_of(slot, "id")) : 0;
}

/* By a fault of its own, say. It costs one client, and its slot is its successor's, who is there
 * within a second. */
static void a_killed_workers_slot_is_given_to_its_successor(void)
{
    pid_t worker = 0;
    start_redis();
    start_server("--timeout", "100");
    freeze_redis();
    struct client *c = dial_and_say(GET_KEPT("/guestbook"));
    wait_until((worker = worker_that_asks()) != 0, SOON_MS, "nobody asks Redis");
    check(kill(worker, SIGKILL) == 0, "no worker: %d", (int)worker);
    hear_end(c);
    hang_up(c);
    thaw_redis();
    wait_until(kill(worker, 0) < 0, SOON_MS, "nobody has waited for it"); /* it counts until then */
    if (server_has_pool())
        wait_until(count_children() == 8, 3000, "it was not replaced");
    wait_until(worker_that_asks() == 0 && json_number("now.asking") == 0, SOON_MS,
               "it is still on the board");
    for (int i = 0; i < 50; i++) { /* a child each */
        check(get("/guestbook")->status == 200, "nobody is left");
        look();
        check(json_number("now.asking") == 0, "what the dead one was at is on the board");
        for (int slot = 0; *text_of(slot, "slot"); slot++)
            check(atoi(text_of(slot, "id")) != worker &&
                      atoi(text_of(slot, "slot")) < (server_has_pool() ? 8 : 20),
                  "slot %s is that of %s", text_of(slot, "slot"), text_of(slot, "id"));
    }
}
AGAINST(forking, a_killed_workers_slot_is_given_to_its_successor)
AGAINST(preforking, a_killed_workers_slot_is_given_to_its_successor)

/* ---- who may see it ------------------------------------------------------------------------ */

/* An IPv4 address of this machine that is not of its loopback interface: who connects to that,
 * comes from there too. */
static bool find_outer_address(char address[INET_ADDRSTRLEN])
{
    struct ifaddrs *all, *one;
    bool found = false;
    if (getifaddrs(&all) < 0)
        return false;
    for (one = all; one && !found; one = one->ifa_next)
        if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET &&
            !(one->ifa_flags & IFF_LOOPBACK) && (one->ifa_flags & IFF_UP))
            found = inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)one->ifa_addr)->sin_addr,
                              address, INET_ADDRSTRLEN) != NULL;
    freeifaddrs(all);
    return found;
}

/* A page of this origin has its visitor's browser ask for both by this name. */
struct visit {
    const char *host, *origin; /* NULL: http:// and the host */
    int status;
    bool may_read;
};

static void check_visit(struct visit v)
{
    char request[300], origin[100];
    snprintf(origin, sizeof(origin), "http://%s", v.host);
    if (!v.origin)
        v.origin = origin;
    snprintf(request, sizeof(request),
             "GET /status.json HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nConnection: close\r\n\r\n",
             v.host, v.origin);
    const struct answer *a = ask(request);
    check(a->status == v.status, "%s: %d", v.host, a->status);
    check(a->status == 200 || !body_has(a, "pid"), "%s", a->body);
    bool allowed = field(a, "Access-Control-Allow-Origin") != NULL;
    check(allowed == v.may_read, "%s for %s", v.host, v.origin);
}

/* Rule 24. */
EVERY_SERVER(strangers_pages_do_not_see_the_status)
{
    static const char *const local[] = {"http://127.8.9.10:8006", "HTTP://LocalHost",
                                        "http://[::1]:8006"};
    static const char *const strange[] = {"http://128.0.0.1:8006",
                                          "http://[localhost]:8006",
                                          "https://localhost:8006",
                                          "http://localhost.example.org",
                                          "http://localhost:80@example.org",
                                          "http://127.0.0.1:80.example.org",
                                          "http://",
                                          "null"};
    start_server();
    for (size_t i = 0; i < COUNT(local); i++)
        check_visit((struct visit){"localhost", local[i], 200, true});
    for (size_t i = 0; i < COUNT(strange); i++)
        check_visit((struct visit){"localhost", strange[i], 200, false});
    check(!field(get("/status.json"), "Access-Control-Allow-Origin"), "whoever asks does");
}

/* Rule 24. */
EVERY_SERVER(clients_from_elsewhere_get_403)
{
    char address[INET_ADDRSTRLEN];
    if (!find_outer_address(address))
        cr_skip_test("this machine has no address but its loopback's");
    start_server("--bind", "0.0.0.0");
    snprintf(server_host, sizeof(server_host), "%s", address);
    check_visit((struct visit){"localhost", NULL, 403, false});
    check_visit((struct visit){"test", NULL, 421, false});
    check_file(get("/"), "public/index.html");
    snprintf(server_host, sizeof(server_host), "127.0.0.1");
    look();
}

/* Rule 24. A page of a stranger whose name leads to 127.0.0.1 has the browser come from this
 * machine, but with that name in Host (DNS rebinding). */
EVERY_SERVER(the_status_answers_to_names_of_this_machine_only)
{
    static const char *const own[] = {"LocalHost:8007", "127.255.0.1", "[::1]:8007", "[0:0::1]:1"};
    static const char *const others[] = {
        "a.localhost", "localhost.",        "127.1", "0.0.0.0:8000",     "[::ffff:8.8.8.8]",
        "128.0.0.1",   "localhost.example", "[::2]", "127.0.0.1.nip:80", "xlocalhost"};
    start_server();
    for (size_t i = 0; i < COUNT(own); i++)
        check_visit((struct visit){own[i], NULL, 200, true});
    for (size_t i = 0; i < COUNT(others); i++)
        check_visit((struct visit){others[i], NULL, 421, false});
    check(ask("GET /status.json HTTP/1.0\r\n\r\n")->status == 421, "no name at all will do");
}

/* Rule 24, with --status. A name may still lead anywhere, and a page of another host is still
 * another site's. Where there is no address but the loopback's, the clients come from there. */
EVERY_SERVER(with_status_all_clients_from_elsewhere_may_see_it)
{
    static const struct visit visits[] = {
        {"192.0.2.7:8001", "http://192.0.2.7:8007", 200, true},
        {"[2001:db8::7]:8001", "http://[2001:db8::7]:8007", 200, true},
        {"127.0.0.1:8001", "http://localhost:8007", 200, true},
        {"192.0.2.7:8001", "http://192.0.2.8:8007", 200, false},
        {"192.0.2.7:8001", "http://192.0.2.7.example:8001", 200, false},
        {"192.0.2.7:8001", "https://192.0.2.7:8001", 200, false},
        {"192.0.2.7:8001", "null", 200, false},
        {"example.org", NULL, 421, false},
        {"192.0.2.7.example:8001", NULL, 421, false},
        {"192.0.2", NULL, 421, false},
        {"3221225991", NULL, 421, false},
    };
    char address[INET_ADDRSTRLEN] = "127.0.0.1";
    find_outer_address(address);
    start_server("--bind", "0.0.0.0", "--status", "all");
    snprintf(server_host, sizeof(server_host), "%s", address);
    for (size_t i = 0; i < COUNT(visits); i++)
        check_visit(visits[i]);
    check(ask("GET /status.json HTTP/1.0\r\n\r\n")->status == 421, "no name at all will do");
    /* a policy cannot name all of the addresses that the wall may be fetched from */
    const char *policy = strstr(field(get("/wall.html"), "Content-Security-Policy"), "connect-src");
    check(policy && strcmp(policy, "connect-src 'self' http:") == 0, "%s", policy);
}

EVERY_SERVER(it_listens_on_ipv6_too_and_its_loopback_may_see_it)
{
    int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 here = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    if (probe < 0 || bind(probe, (struct sockaddr *)&here, sizeof(here)) < 0)
        cr_skip_test("this machine has no [::1]");
    close(probe);
    start_server("--bind", "::1");
    check(strcmp(server_host, "[::1]") == 0, "it listens on %s", server_host);
    look();
    stop_server();
    start_server("--bind", "::");
    snprintf(server_host, sizeof(server_host), "127.0.0.1"); /* which it sees as ::ffff:127.0.0.1 */
    look();
    check_file(get("/"), "public/index.html");
}
