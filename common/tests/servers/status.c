/* The status: /status.json and /status say what the server is at, and to whom.
 *
 * Clients are held in known states, and the board has to come to say exactly that. Who answers is
 * on it as well: "reading", since its own response has not begun.
 */
#include "tests/harness/harness.h"

#include "tests/json.h"
#include "tests/status_fields.h"

#include <ifaddrs.h>
#include <net/if.h>

#define GET_LAST(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
#define GET_KEPT(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\n\r\n"

static struct json json;

static void read_status(const struct answer *a)
{
    check(a->status == 200, "status %d", a->status);
    check(json_read(&json, a->body), "no JSON at: %s", json.at);
}

/* What /status.json says, in `json`. */
static void look(void)
{
    let_it_look_at_itself();
    read_status(get("/status.json"));
}

static const char *text_of(int slot, const char *name)
{
    char path[64];
    snprintf(path, sizeof(path), "slots.%d.%s", slot, name);
    const char *text = json_text(&json, path);
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

static void check_field(int at, const char *path)
{
    check(at < json.count && strcmp(json.values[at].path, path) == 0, "%s instead of %s",
          at < json.count ? json.values[at].path : "nothing", path);
}

EVERY_SERVER(its_fields_are_all_there_in_the_order_that_is_documented)
{
    char path[64];
    int at = 0;
    start_server();
    look();
    for (; at < HEAD_FIELDS; at++)
        check_field(at, head_fields[at]);
    int slots = count_slots();
    check(slots >= 1, "nobody answers");
    for (int slot = 0; slot < slots; slot++)
        for (int i = 0; i < SLOT_FIELDS; i++, at++) {
            snprintf(path, sizeof(path), "slots.%d.%s", slot, slot_fields[i]);
            check_field(at, path);
        }
    check(at == json.count, "and %s", json.values[at].path);
}

/* Asks for both by this name, as a page of that origin has its visitor's browser do. */
static void check_status_of(const char *host, const char *origin, int status, bool may_read)
{
    static const char *const targets[] = {"/status", "/status.json"};
    for (int i = 0; i < 2; i++) {
        char request[300];
        snprintf(request, sizeof(request),
                 "GET %s HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nConnection: close\r\n\r\n",
                 targets[i], host, origin);
        const struct answer *a = ask(request);
        check(a->status == status, "%s of %s: %d", targets[i], host, a->status);
        check(a->status == 200 || !body_has(a, "pid"), "%s", a->body);
        bool allowed = field(a, "Access-Control-Allow-Origin") != NULL;
        check(allowed == (i == 1 && may_read), "%s of %s for %s", targets[i], host, origin);
    }
}

EVERY_SERVER(strangers_pages_do_not_see_the_status)
{
    static const struct {
        const char *origin;
        bool is_local;
    } rows[] = {
        {"http://127.0.0.1:8006", true},
        {"http://127.8.9.10", true},
        {"http://localhost:8006", true},
        {"HTTP://LocalHost", true},
        {"http://[::1]:8006", true},
        {"http://128.0.0.1:8006", false},
        {"http://[::2]:8006", false},
        {"http://[localhost]:8006", false},
        {"https://localhost:8006", false},
        {"https://example.org", false},
        {"http://localhost.example.org", false},
        {"http://localhost:8006.example.org", false},
        {"http://localhost:80@example.org", false},
        {"http://127.0.0.1.example.org:8006", false},
        {"http://127.0.0.1:80.example.org", false},
        {"http://", false},
        {"null", false},
    };
    let_it_look_at_itself();
    start_server();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_status_of("localhost", rows[i].origin, 200, rows[i].is_local);
    check(!field(get("/status.json"), "Access-Control-Allow-Origin"), "whoever asks does");
}

EVERY_SERVER(it_says_who_it_is)
{
    let_it_look_at_itself();
    start_server();
    int64_t start = now_ms();
    const struct answer *a = get("/status.json");
    read_status(a);
    check(strcmp(field(a, "Content-Type"), "application/json") == 0, "a type");
    check(strcmp(field(a, "Cache-Control"), "no-store") == 0, "it may be kept");
    check(field(a, "X-Content-Type-Options") || !server_is_ours(), "a browser may guess");
    check(strcmp(json_text(&json, "server"), server_says) == 0, "%s", json_text(&json, "server"));
    check(*json_text(&json, "version") && *json_text(&json, "architecture"), "it says nothing");
    check(json_number(&json, "pid") == server_pid, "%lld", json_number(&json, "pid"));
    check(json_number(&json, "uptime_ms") <= now_ms() - start + patience(SOON_MS), "older");
    long long most = server_has_pool()        ? 8
                     : server_is("forking")   ? 2048
                     : server_is("threading") ? 16384
                                              : 1;
    check(json_number(&json, "workers_most") == most, "%lld", json_number(&json, "workers_most"));
}

/* The page is for people: what it looks like is its template's business. */
EVERY_SERVER(the_page_says_it_too)
{
    let_it_look_at_itself();
    start_server();
    const struct answer *a = get("/status");
    check(a->status == 200 && strcmp(field(a, "Content-Type"), "text/html; charset=utf-8") == 0,
          "%d", a->status);
    check(strcmp(field(a, "Cache-Control"), "no-store") == 0, "it may be kept");
    check(strstr(field(a, "Content-Security-Policy"), "default-src 'self'"), "no policy");
    check(body_has(a, server_says), "it does not say whose it is: %s", a->body);
    check(body_has(a, "GET /status"), "it does not say what is asked: %s", a->body);
}

/* ---- numbers ------------------------------------------------------------------------------- */

EVERY_SERVER(it_counts_what_the_statistics_at_the_end_count)
{
    let_it_look_at_itself();
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
    check(json_number(&json, "requests") == 6, "%lld", json_number(&json, "requests"));
    check(json_number(&json, "connections") == 5, "%lld", json_number(&json, "connections"));
    check(json_number(&json, "responses.2xx") == 3, "2xx");
    check(json_number(&json, "responses.3xx") == 0, "3xx");
    check(json_number(&json, "responses.4xx") == 2, "4xx");
    check(json_number(&json, "responses.5xx") == 1, "5xx");
    struct statistics s = stop_server();
    check(has_counted(s, 7, 5), "%llu on %llu", s.requests, s.connections);
}

/* Is it a child of the server, or one of its threads? Or the server itself, where there are none.
 */
static bool is_worker(pid_t id)
{
    enum { ROOM = 64 };
    char path[64];
    pid_t children[ROOM];
    if (!server_has_workers())
        return id == server_pid;
    snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)server_pid, (int)id);
    if (id != server_pid && access(path, F_OK) == 0)
        return true;
    for (int i = list_children(server_pid, children, ROOM, NULL) - 1; i >= 0; i--)
        if (children[i] == id)
            return true;
    return false;
}

EVERY_SERVER(it_knows_its_processes_and_threads)
{
    let_it_look_at_itself();
    start_server();
    await_workers(8);
    struct client *c = dial(); /* who stays, as long as its worker is looked for */
    say(c, GET_KEPT("/status.json"));
    read_status(hear(c));
    for (int i = 0; i < count_slots(); i++)
        check(is_worker(atoi(text_of(i, "id"))), "%s is no worker", text_of(i, "id"));
    hang_up(c);
    long long processes = json_number(&json, "processes"), threads = json_number(&json, "threads");
    check(processes == (server_is("forking")      ? 2
                        : server_is("preforking") ? 9
                                                  : 1),
          "%lld", processes);
    check(threads >= (server_is("threading")      ? 2
                      : server_is("prethreading") ? 9
                                                  : processes),
          "%lld", threads);
    check(json_number(&json, "pss_kib") > 100, "%lld KiB", json_number(&json, "pss_kib"));
    check(json_number(&json, "descriptors") >= 5 * processes, "%lld descriptors",
          json_number(&json, "descriptors"));
    wait_until((look(), json_number(&json, "switches.voluntary") > 0), SOON_MS, "it never slept");
}

/* The page costs Redis nothing, and needs none. */
EVERY_SERVER(it_asks_redis_nothing)
{
    let_it_look_at_itself();
    start_redis();
    start_server();
    check(get("/guestbook")->status == 200, "no page");
    long long before = redis_number("DBSIZE");
    redis("CONFIG RESETSTAT");
    for (int i = 0; i < 5; i++)
        check(get("/status")->status == 200 && get("/status.json")->status == 200, "no status");
    redisReply *stats = redis("INFO stats");
    check(strstr(stats->str, "total_commands_processed:1\r\n"), "%s", stats->str);
    check(before == redis_number("DBSIZE"), "something is stored");
    kill_redis();
    look();
}

/* ---- clients held in known states ---------------------------------------------------------- */

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

/* Does the board say that there are these, and who answers, and nobody else? */
static bool says_exactly(const char *const states[], int count)
{
    char path[64];
    int slot = 0;
    look_on();
    for (int i = 0; i < 6; i++) {
        static const char *const names[] = {"fresh",  "idle",    "reading",
                                            "asking", "writing", "lingering"};
        int expected = strcmp(names[i], "reading") == 0; /* it answers us */
        for (int j = 0; j < count; j++)
            expected += strcmp(states[j], names[i]) == 0;
        snprintf(path, sizeof(path), "now.%s", names[i]);
        if (json_number(&json, path) != expected)
            return false;
        snprintf(path, sizeof(path), "slots.0.by_state.%s", names[i]);
        if (server_is_loop() ? json_number(&json, path) != expected
                             : count_in(names[i], &slot) != expected)
            return false;
    }
    return true;
}

static const char *board_text(void)
{
    return get("/status.json")->body;
}

enum { HELD = 7 };

static const char *const held_states[] = {"fresh",  "fresh",   "idle",     "reading",
                                          "asking", "writing", "lingering"};
static struct client *held[HELD];

/* Two who say nothing, one who is kept, one who says half a request, one whose page Redis sits on,
 * one who does not read, one who is refused and does not close. */
static void hold_seven(void)
{
    start_redis();
    let_it_look_at_itself();
    start_server("--root", make_root_with_file(64 << 20), "--timeout", "100", "-k", "60",
                 POOL_OF("12"));
    await_workers(12);
    freeze_redis();
    for (int i = 0; i < HELD; i++)
        held[i] = dial();
    static const char *const fresh[HELD] = {"fresh", "fresh", "fresh", "fresh",
                                            "fresh", "fresh", "fresh"};
    wait_until(says_exactly(fresh, HELD), SOON_MS, "the board says: %s", board_text());
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
    int slot = -1, i;
    check(count_in("asking", &slot) == 1 &&
              strcmp(text_of(slot, "request"), "GET /x/../%67uestbook") == 0,
          "%s", text_of(slot, "request"));
    check(count_in("writing", &slot) == 1 && strcmp(text_of(slot, "request"), "GET /file.bin") == 0,
          "%s", text_of(slot, "request"));
    check(count_in("idle", &slot) == 1 && !*text_of(slot, "request"), "idle, at %s",
          text_of(slot, "request"));
    check(count_in("lingering", &slot) == 1 && !*text_of(slot, "request"), "at %s",
          text_of(slot, "request"));
    for (i = 0; *text_of(i, "state"); i++)
        if (strcmp(text_of(i, "request"), "GET /status.json") == 0)
            break;
    check(strcmp(text_of(i, "state"), "reading") == 0, "who answers is %s", text_of(i, "state"));
}

CONCURRENT_SERVERS(seven_clients_in_known_states_are_on_the_board_exactly_until_they_leave)
{
    hold_seven();
    wait_until(says_exactly(held_states, HELD), SOON_MS, "the board says: %s", board_text());
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
        wait_until(says_exactly(held_states + i + 1, HELD - 1 - i), SOON_MS, "%d left: %s", i + 1,
                   board_text());
    }
    thaw_redis();
    hang_up(held[6]);
}

/* The iterative server's status waits like everybody else, and then there is nobody but itself. */
ONLY_SERVER(iterative, its_status_waits_its_turn_and_finds_itself_alone)
{
    start_server("--timeout", "1");
    struct client *c = dial(), *watcher = dial();
    say_and_be_read(c, "GET /half HTTP/1.1\r\n");
    let_it_look_at_itself();
    say(watcher, GET_KEPT("/status.json"));
    check(hear(c)->status == 408, "%d", c->answer.status);
    hang_up(c);
    read_status(hear(watcher));
    check(count_slots() == 1 && strcmp(text_of(0, "state"), "reading") == 0 &&
              strcmp(text_of(0, "request"), "GET /status.json") == 0 &&
              json_number(&json, "now.reading") == 1 && json_number(&json, "responses.4xx") == 1,
          "%s", watcher->answer.body);
}

/* ---- a worker that is killed --------------------------------------------------------------- */

/* The id of the worker that asks Redis, and of as many others as there are besides who answers. */
static pid_t worker_that_asks(void)
{
    int slot = 0;
    return look(), count_in("asking", &slot) == 1 ? atoi(text_of(slot, "id")) : 0;
}

static void kill_who_asks(void)
{
    pid_t worker = 0;
    start_redis();
    let_it_look_at_itself();
    start_server();
    freeze_redis();
    struct client *c = dial_and_say(GET_KEPT("/guestbook"));
    wait_until((worker = worker_that_asks()) != 0, SOON_MS, "nobody asks Redis");
    check(kill(worker, SIGKILL) == 0, "no worker: %d", (int)worker);
    hear_end(c);
    hang_up(c);
    thaw_redis();
    wait_until(worker_that_asks() == 0, SOON_MS, "it is still on the board");
    for (int i = 0; *text_of(i, "state"); i++)
        check(atoi(text_of(i, "id")) != worker, "it still has slot %d", i);
    check(json_number(&json, "now.asking") == 0, "somebody asks");
    check(get("/guestbook")->status == 200, "nobody is left");
}

ONLY_SERVER(forking, a_killed_childs_slot_is_given_to_the_next)
{
    kill_who_asks();
    long long slots = 0;
    for (int i = 0; i < 50; i++) {
        look();
        for (int slot = 0; *text_of(slot, "slot"); slot++)
            slots = atoll(text_of(slot, "slot")) > slots ? atoll(text_of(slot, "slot")) : slots;
    }
    check(slots < 20, "one child at a time, and slot %lld", slots);
}

ONLY_SERVER(preforking, a_killed_workers_slot_is_given_to_its_successor)
{
    kill_who_asks();
    await_workers(8);
    look();
    for (int i = 0; i < 8; i++)
        check(atoi(text_of(i, "slot")) == i && is_worker(atoi(text_of(i, "id"))), "slot %d", i);
}

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

/* Rule 24. */
EVERY_SERVER(clients_from_elsewhere_get_403)
{
    char address[INET_ADDRSTRLEN];
    if (!find_outer_address(address))
        cr_skip_test("this machine has no address but its loopback's");
    start_server("--bind", "0.0.0.0");
    snprintf(server_host, sizeof(server_host), "%s", address);
    check_status_of("localhost", "http://localhost", 403, false);
    check_status_of("test", "http://test", 421, false);
    check_file(get("/"), "public/index.html");
    snprintf(server_host, sizeof(server_host), "127.0.0.1");
    look();
}

/* Rule 24. A page of a stranger whose name leads to 127.0.0.1 has the browser come from this
 * machine, but with that name in Host (DNS rebinding). */
EVERY_SERVER(the_status_answers_to_names_of_this_machine_only)
{
    static const struct {
        const char *host;
        int status;
    } rows[] = {{"localhost", 200},
                {"LocalHost:8007", 200},
                {"127.0.0.1:1", 200},
                {"127.1.2.3", 200},
                {"127.255.0.1", 200},
                {"localhost:", 200},
                {"[::1]:8007", 200},
                {"[::1]", 200},
                {"[0:0::1]:1", 200},
                {"a.localhost", 421},
                {"localhost.", 421},
                {"%6cocalhost", 421},
                {"8000", 421},
                {"127", 421},
                {"127.1", 421},
                {"127.0.0.1.", 421},
                {"0.0.0.0:8000", 421},
                {"[::]", 421},
                {"[::ffff:8.8.8.8]", 421},
                {"test", 421},
                {"rebound.example:8007", 421},
                {"localhost.example", 421},
                {"127.0.0.1.nip", 421},
                {"128.0.0.1", 421},
                {"[::2]", 421},
                {"xlocalhost:8007", 421}};
    let_it_look_at_itself();
    start_server();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char origin[100];
        snprintf(origin, sizeof(origin), "http://%s", rows[i].host);
        check_status_of(rows[i].host, origin, rows[i].status, rows[i].status == 200);
    }
    check(ask("GET /status HTTP/1.0\r\n\r\n")->status == 421, "no name at all will do");
    check_file(ask("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"),
               "public/index.html");
}

/* Rule 17. Somebody who holds a route back must not compare the bytes of the target. */
EVERY_SERVER(a_route_has_many_spellings)
{
    static const char *const spellings[] = {"//status", "/%73tatus", "/x/%2e%2e/status"};
    let_it_look_at_itself();
    start_server();
    for (int i = 0; i < 3; i++) {
        const struct answer *a = get(spellings[i]);
        check(a->status == 200 && body_has(a, " - ZeroHTTPd</title>"), "%s: %d", spellings[i],
              a->status);
    }
}

/* Rule 24, with --status. A name may still lead anywhere, and a page of another host is still
 * another site's. Where there is no address but the loopback's, the clients come from there. */
EVERY_SERVER(with_status_all_clients_from_elsewhere_may_see_it)
{
    static const struct {
        const char *host, *origin;
        int status;
        bool may_read;
    } rows[] = {
        {"192.0.2.7:8001", "http://192.0.2.7:8007", 200, true},
        {"192.0.2.7", "http://192.0.2.7", 200, true},
        {"0.0.0.0:8001", "http://0.0.0.0:8007", 200, true},
        {"[2001:db8::7]:8001", "http://[2001:db8::7]:8007", 200, true},
        {"localhost:8001", "http://localhost:8007", 200, true},
        {"127.0.0.1:8001", "http://localhost:8007", 200, true},
        {"192.0.2.7:8001", "http://192.0.2.8:8007", 200, false},
        {"192.0.2.7:8001", "http://192.0.2.7.example:8001", 200, false},
        {"192.0.2.7:8001", "https://192.0.2.7:8001", 200, false},
        {"192.0.2.7:8001", "http://example.org", 200, false},
        {"192.0.2.7:8001", "null", 200, false},
        {"example.org", "http://example.org", 421, false},
        {"192.0.2.7.example:8001", "http://192.0.2.7.example:8001", 421, false},
        {"a.localhost", "http://a.localhost", 421, false},
        {"192.0.2", "http://192.0.2", 421, false},
        {"3221225991", "http://3221225991", 421, false},
    };
    char address[INET_ADDRSTRLEN] = "127.0.0.1";
    bool elsewhere = find_outer_address(address);
    let_it_look_at_itself();
    start_server("--bind", "0.0.0.0", "--status", "all");
    snprintf(server_host, sizeof(server_host), "%s", address);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_status_of(rows[i].host, rows[i].origin, rows[i].status, rows[i].may_read);
    check(ask("GET /status HTTP/1.0\r\n\r\n")->status == 421, "no name at all will do");
    /* a policy cannot name all of the addresses that the wall may be fetched from */
    const char *policy = strstr(field(get("/wall.html"), "Content-Security-Policy"), "connect-src");
    check(policy && strcmp(policy, "connect-src 'self' http:") == 0, "%s", policy);
    stop_server();

    start_server("--bind", "0.0.0.0", "--status", "local");
    snprintf(server_host, sizeof(server_host), "%s", address);
    check_status_of("localhost", "http://localhost", elsewhere ? 403 : 200, !elsewhere);
}

EVERY_SERVER(clients_over_ipv6_loopback_may_see_it)
{
    int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 here = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    if (probe < 0 || bind(probe, (struct sockaddr *)&here, sizeof(here)) < 0)
        cr_skip_test("this machine has no ::1");
    close(probe);
    start_server("--bind", "::");
    snprintf(server_host, sizeof(server_host), "[::1]");
    look();
    snprintf(server_host, sizeof(server_host), "127.0.0.1"); /* which it sees as ::ffff:127.0.0.1 */
    look();
}

/* ---- nothing more than it needs ------------------------------------------------------------ */

EVERY_SERVER(for_the_status_it_opens_its_own_state_and_nothing_else)
{
    watch_opens();
    let_it_look_at_itself();
    start_server();
    for (int i = 0; i < 3; i++)
        check(get("/status")->status == 200 && get("/status.json")->status == 200, "no status");
    stop_server(); /* checks what was opened */
}
