/* Nothing more than it needs: the files it opens, what it writes, the rights it has, the address it
 * listens on, and the descriptors it may have.
 */
#include "tests/harness/harness.h"

#include <netdb.h>

/* ---- files --------------------------------------------------------------------------------- */

/* Something of everything a server does. */
static void ask_for_everything(void)
{
    static const char *const targets[] = {
        "/",          "/index.html",       "/not-there",
        "/folder",    "/folder/",          "/guestbook?page=2",
        "/guestbook", "/link-that-leads",  "/..%2fsecret",
        "/../secret", "//etc/passwd",      "/%2fetc/passwd",
        "/.hidden",   "/folder/../../etc", "/folder/%2e%2e/%2e%2e/templates",
    };
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
        check(!body_has(get(targets[i]), SECRET), "%s", targets[i]);
    check(post("guest-name=Ada&guest-remarks=hello")->status == 303, "not posted");
    check(post("guest-name=&guest-remarks=")->status == 400, "posted");
    check(ask("nonsense\r\n\r\n")->status == 400, "understood");
    check(ask("GET / HTTP/1.1\r\nHost: test\r\nRange: bytes=1-2\r\nConnection: close\r\n\r\n")
                  ->status == 206,
          "no range");
}

EVERY_SERVER(it_opens_nothing_outside_public_and_templates_and_writes_no_file)
{
    const char *root = make_root();
    check(mkdir(place("root/public/folder"), 0755) == 0 &&
              symlink("../secret", place("root/public/link-that-leads")) == 0,
          "%s", strerror(errno));
    start_redis();
    watch_opens();
    start_server("--root", root, "--verbose");
    ask_for_everything();
    kill_redis();
    check(get("/guestbook")->status == 503, "a page without Redis");
    start_redis();
    wait_until(get("/guestbook")->status == 200, SOON_MS, "Redis is back, and is not found");
    stop_server(); /* checks what was opened */
}

/* A name is looked up at the start, and not each time it is connected to. */
EVERY_SERVER(it_opens_nothing_to_find_redis_again)
{
    struct addrinfo *found;
    if (getaddrinfo("localhost", NULL, NULL, &found) != 0)
        cr_skip_test("no name can be looked up: this machine does not know localhost");
    freeaddrinfo(found);
    watch_opens();
    start_server("--redis", "localhost:1");
    for (int i = 0; i < 3; i++)
        check(get("/guestbook")->status == 503, "there is a Redis at port 1");
}

/* ---- rights -------------------------------------------------------------------------------- */

#define AS_NOBODY                                                                                  \
    "setpriv", "--pdeathsig=keep", "--reuid=65534", "--regid=65534", "--clear-groups",             \
        "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"

static void let_everybody_use_redis(void)
{
    check(chmod(place(""), 0711) == 0 && chmod(place("redis"), 0777) == 0, "%s", strerror(errno));
}

static void need_root(void)
{
    if (geteuid() != 0)
        cr_skip_test("without root, everything here runs without rights");
}

/* Sees to it that the next server is nobody's, who may do nothing but what everybody may. */
static void run_as_nobody(void)
{
    char test[512];
    const char *servers = getenv("SERVERS");
    need_root();
    snprintf(test, sizeof(test),
             "nobody='setpriv --reuid=65534 --regid=65534 --clear-groups'; exec >/dev/null 2>&1; "
             "$nobody test -r templates/guestbook/index.html && $nobody '%s/%s' --version",
             servers ? servers : ".", server_name);
    if (system(test) != 0)
        cr_skip_test("nobody may not read this folder, or setpriv is not installed");
    let_everybody_use_redis();
    run_under(AS_NOBODY);
}

EVERY_SERVER(it_needs_no_rights)
{
    start_redis();
    run_as_nobody();
    start_server();
    const char *status = read_process(server_pid);
    check(strstr(status, "\nUid:\t65534\t65534") &&
              strstr(status, "\nCapEff:\t0000000000000000\n") &&
              strstr(status, "\nCapBnd:\t0000000000000000\n"),
          "it runs with rights: %s", status);
    check_file(get("/"), "public/index.html");
    check(post("guest-name=Ada&guest-remarks=hello")->status == 303, "not posted");
    check(body_has(get("/guestbook"), "Ada"), "no page");
}

/* The user, the group, the other groups, and the rights, of which none is left. */
static void check_is_nobodys(pid_t pid)
{
    const char *status = read_process(pid);
    check(strstr(status, "\nUid:\t65534\t65534\t65534\t65534\n") &&
              strstr(status, "\nGid:\t65534\t65534\t65534\t65534\n") &&
              strstr(status, "\nGroups:\t65534 \n") &&
              strstr(status, "\nCapPrm:\t0000000000000000\n") &&
              strstr(status, "\nCapEff:\t0000000000000000\n"),
          "it has kept rights: %s", status);
}

EVERY_SERVER(it_becomes_the_user_that_it_is_told_before_its_first_client)
{
    enum { ROOM = 16 };
    pid_t children[ROOM];
    char path[64];
    need_root();
    start_redis();
    let_everybody_use_redis();
    let_it_look_at_itself();
    start_server("--user", "nobody");
    check_is_nobodys(server_pid);
    struct client *c = dial_and_be_read("GET / HTTP/1.1\r\n"); /* 02 makes a process for it */
    for (int i = list_children(server_pid, children, ROOM, NULL); i-- > 0;) {
        check_is_nobodys(children[i]);
        snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)children[i]);
        wait_until(strcmp(read_whole(path, NULL), "1000\n") == 0, SOON_MS, "%s", path);
    }
    hang_up(c);
    check_file(get("/"), "public/index.html");
    check(post("guest-name=Ada&guest-remarks=hello")->status == 303, "not posted");
    check(get("/status.json")->status == 200, "no status");
}

EVERY_SERVER(a_user_whom_it_cannot_become_ends_it)
{
    need_root();
    const char *const names[] = {"root", "0", "no-such-user"};
    for (int i = 0; i < 3; i++) {
        check(run_server("--user", names[i]) == 2, "%s", names[i]);
        check(strstr(server_errors(), names[i]) && !*server_output(), "%s", server_errors());
    }
    run_under("setpriv", "--bounding-set=-setgid,-setuid");
    check(run_server("--user", "nobody") == 1, "it has become nobody without the right to");
    check(strstr(server_errors(), ": cannot become the user nobody: "), "%s", server_errors());
}

EVERY_SERVER(it_says_that_it_is_roots_if_other_machines_can_reach_it)
{
    need_root();
    start_redis();
    start_server();
    check(!*server_errors(), "on loopback: %s", server_errors());
    stop_server();
    start_server("--bind", "0.0.0.0");
    check(count_lines(server_errors()) == 1 && strstr(server_errors(), ": runs as root, "), "%s",
          server_errors());
    stop_server();
    start_server("--bind", "0.0.0.0", "--user", "nobody");
    check(!*server_errors(), "as nobody: %s", server_errors());
}

/* ---- the address --------------------------------------------------------------------------- */

/* Can somebody connect to the server's port at this address? */
static bool is_reached_at(int family, const char *address)
{
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)server_port)};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_port = ipv4.sin_port};
    bool six = family == AF_INET6;
    check(inet_pton(family, address, six ? (void *)&ipv6.sin6_addr : &ipv4.sin_addr) == 1, "%s",
          address);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool reached = connect(fd, six ? (struct sockaddr *)&ipv6 : (struct sockaddr *)&ipv4,
                           six ? sizeof(ipv6) : sizeof(ipv4)) == 0;
    close(fd);
    return reached;
}

/* Every address in 127.0.0.0/8 is this machine: whoever listens on all addresses is found there. */
EVERY_SERVER(it_listens_on_loopback_unless_told_otherwise)
{
    start_server();
    check(strcmp(server_host, "127.0.0.1") == 0 && is_reached_at(AF_INET, "127.0.0.1"),
          "it is at %s", server_host);
    check(!is_reached_at(AF_INET, "127.0.0.2"), "it listens on other addresses too");
    check(!is_reached_at(AF_INET6, "::1"), "it listens on IPv6 too");
    stop_server();
    start_server("--bind", "0.0.0.0");
    check(is_reached_at(AF_INET, "127.0.0.1") && is_reached_at(AF_INET, "127.0.0.2"),
          "it was told otherwise");
}

/* ---- descriptors --------------------------------------------------------------------------- */

static void check_limit(pid_t pid)
{
    char path[64];
    int soft = 0, hard = 0;
    snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
    const char *limits = read_whole(path, NULL), *line = strstr(limits, "Max open files");
    check(line && sscanf(line, "Max open files %d %d", &soft, &hard) == 2, "%s", limits);
    check(soft == 1024 && hard == 1024, "it may have %d of %d descriptors", soft, hard);
}

EVERY_SERVER(it_may_have_as_many_descriptors_as_the_machine_allows)
{
    pid_t children[16];
    if (system("prlimit --nofile=256:1024 true 2>/dev/null") != 0)
        cr_skip_test("prlimit is not installed, or 1,024 descriptors are more than it may give");
    run_under("prlimit", "--nofile=256:1024");
    start_server();
    check_limit(server_pid);
    struct client *c = dial_and_say("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    check_file(hear(c), "public/index.html");
    for (int i = list_children(server_pid, children, 16, NULL) - 1; i >= 0; i--)
        check_limit(children[i]);
}
