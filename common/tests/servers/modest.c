/* Nothing more than it needs: the files it opens, what it writes, the address it listens on, and
 * the descriptors it may have.
 */
#include "tests/harness/harness.h"

/* ---- files --------------------------------------------------------------------------------- */

#define CALLS "trace=/^(open|creat|mk|link|symlink|unlink|rm|rename|f?truncate|listen)"

/* Prints what a server must not do, from strace's log: change something, open a file for more than
 * reading, or open one that is none of its business once it listens. Its business is what it
 * serves, what the status is made of (proc(5)), and two files that malloc(3) looks at. */
static const char trespasses[] =
    "grep -q ' listen(' \"$0\" || echo 'it does not listen'\n"
    "grep -vE '^[0-9]+ +(open|listen\\(|[-+<])' \"$0\"\n"
    "grep -E 'O_(WRONLY|RDWR|CREAT|TRUNC|TMPFILE)' \"$0\"\n"
    "sed '1,/ listen(/d; s/.*) = //' \"$0\" | sed -nE 's/^[0-9]+<(.*)>$/\\1/p' |\n"
    "while read -r path; do case $path in\n"
    "    \"$1\" | \"$1\"/* | \"$2\" | \"$2\"/*) ;;\n"
    "    /proc/*/stat | /proc/*/status | /proc/*/smaps_rollup | /proc/*/fd) ;;\n"
    "    /sys/devices/system/cpu/online | /proc/sys/vm/overcommit_memory) ;;\n"
    "    *) echo \"$path\" ;;\n"
    "esac; done\n";

/* The next server is watched by strace(1): every call that could open a file or change one, by it
 * and all it starts. A filter in the kernel (seccomp) leaves all other calls as fast as they are.
 */
static void watch_opens(void)
{
    if (server_has_sanitizer())
        cr_skip_test("a sanitizer has files of its own");
    if (system("strace -qqo /dev/null true 2>/dev/null") != 0)
        cr_skip_test("strace is not installed, or may not trace");
    run_under("strace", "-DD", "-fqy", "--seccomp-bpf", "-e", CALLS, "-o", place("opens"));
}

/* When it has ended, and strace has noticed. */
static void check_opens(void)
{
    char end[64];
    const char *log;
    const char *const words[] = {"sh",
                                 "-c",
                                 trespasses,
                                 place("opens"),
                                 realpath(place("root/public"), NULL),
                                 realpath(place("root/templates"), NULL),
                                 NULL};
    stop_server();
    snprintf(end, sizeof(end), "%-5d +++ exited", (int)server_pid);
    wait_until((log = read_whole(place("opens"), NULL)) && strstr(log, end), SOON_MS,
               "strace did not notice its end");
    int out = open(place("trespasses"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    pid_t shell = spawn(words, out, out);
    wait_until(waitpid(shell, NULL, WNOHANG) == shell, SOON_MS, "the shell stays");
    const char *found = read_whole(place("trespasses"), NULL);
    check(!*found, "it opens what is none of its business: %s", found);
}

/* Something of everything a server does. */
static void ask_for_everything(void)
{
    static const char *const targets[] = {
        "/",
        "/index.html",
        "/not-there",
        "/folder",
        "/folder/",
        "/guestbook?page=2",
        "/guestbook",
        "/link-that-leads",
        "/../secret",
        "/status/",
        "/status.json",
        "/%2fetc/passwd",
        "/.hidden",
        "/folder/%2e%2e/%2e%2e/templates",
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
    check_opens();
}

/* ---- the address --------------------------------------------------------------------------- */

/* Every address in 127.0.0.0/8 is this machine: whoever listens on all addresses is found there. */
EVERY_SERVER(it_listens_on_loopback_unless_told_otherwise)
{
    start_server();
    check(strcmp(server_host, "127.0.0.1") == 0 && is_reached_at("127.0.0.1"), "it is at %s",
          server_host);
    check(!is_reached_at("127.0.0.2"), "it listens on other addresses too");
    stop_server();
    start_server("--bind", "0.0.0.0");
    check(is_reached_at("127.0.0.1") && is_reached_at("127.0.0.2"), "it was told otherwise");
}

/* ---- descriptors --------------------------------------------------------------------------- */

EVERY_SERVER(it_may_have_as_many_descriptors_as_the_machine_allows)
{
    if (system("prlimit --nofile=256:1024 true 2>/dev/null") != 0)
        cr_skip_test("prlimit is not installed, or 1,024 descriptors are more than it may give");
    run_under("prlimit", "--nofile=256:1024");
    start_server(POOL_OF("1"));
    const char *limit = strstr(read_process(serving_process(), "limits"), "\nMax open files");
    const char *most;
    check(strtoul(limit + 15, (char **)&most, 10) == 1024 && strtoul(most, NULL, 10) == 1024,
          "%.80s", limit);
}

/* Who starts it may have closed them. The next descriptors must not take their places, or an error
 * message would go to a client. */
EVERY_SERVER(what_it_writes_goes_to_no_client)
{
    char path[64], target[64] = "";
    run_under("sh", "-c", "exec \"$0\" \"$@\" 0<&- 2>&-");
    start_server();
    for (int fd = 0; fd <= 2; fd += 2) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)server_pid, fd);
        check(readlink(path, target, sizeof(target) - 1) > 0, "%d: %s", fd, strerror(errno));
        check(strncmp(target, "/dev/null", sizeof(target)) == 0, "%d is %s", fd, target);
    }
}
