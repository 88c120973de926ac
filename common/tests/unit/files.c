/* public/: what is opened, what is not and why, and what type it has. */
#include "files.h"
#include "process.h"
#include "unit.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* ---- a tree -------------------------------------------------------------------------------- */

static void link_to(const char *target, const char *name)
{
    cr_assert(symlinkat(target, scratch_fd, name) == 0, "%s: %s", name, strerror(errno));
}

static void make_tree(void)
{
    char absolute[100];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    scratch_make();
    scratch_file("secret.txt", "secret");
    scratch_file("public-not/a.txt", "secret"); /* begins like the folder that is served */
    scratch_file("public/index.html", "home");
    scratch_file("public/a.txt", "0123456789");
    scratch_file("public/empty", "");
    scratch_file("public/a b\xc3\xa4", "name");
    scratch_file("public/...x", "hidden");
    scratch_file("public/.hidden", "hidden");
    scratch_file("public/a..b", "dots");
    scratch_file("public/folder/index.html", "folder's");
    scratch_file("public/folder/b.css", "css");
    scratch_folder("public/bare"); /* has no index.html */
    scratch_file("public/.git/config", "hidden");
    scratch_file("public/odd/index.html/x", ""); /* a folder of that name */
    cr_assert(mkfifoat(scratch_fd, "public/fifo", 0644) == 0);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/public/socket", scratch);
    cr_assert(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    close(fd);
    link_to("a.txt", "public/inside");
    link_to("folder", "public/into");
    link_to("../secret.txt", "public/outside");
    link_to("..", "public/up");
    link_to("../public-not", "public/beside");
    snprintf(absolute, sizeof(absolute), "%s/secret.txt", scratch);
    link_to(absolute, "public/absolute");
    snprintf(absolute, sizeof(absolute), "%s/public/a.txt", scratch);
    link_to(absolute, "public/absolute-inside");
    link_to("loop", "public/loop");
    link_to("nowhere", "public/dangling");
    link_to("/proc/self/root", "public/magic");
    link_to("/dev/zero", "public/device");
    cr_assert(files_open_root(scratch_fd, "public"));
}

TestSuite(files, .timeout = 60, .init = make_tree, .fini = scratch_remove);

/* Opens it, and says what is in it. */
static int open_and_read(const char *path, char *content, size_t size)
{
    struct file file = {.fd = -1};
    struct buffer small = {0};
    int status = files_open(path, &file, &small);
    if (status == 200 && file.fd >= 0) { /* an empty one */
        cr_expect(fcntl(file.fd, F_GETFD) & FD_CLOEXEC, "%s is left open to programs", path);
        close(file.fd);
    }
    snprintf(content, size, "%.*s", (int)small.len, small.len > 0 ? small.bytes : "");
    expect_number(path, file.size, small.len);
    buffer_clear(&small, 0);
    return status;
}

struct row {
    const char *path;
    int status;
    const char *content;
};

static void expect_rows(const struct row *rows, size_t count)
{
    int next = dup(scratch_fd);
    close(next);
    for (size_t i = 0; i < count; i++) {
        char content[100];
        expect_number(rows[i].path, open_and_read(rows[i].path, content, sizeof(content)),
                      rows[i].status);
        expect_text(rows[i].path, content, rows[i].content ? rows[i].content : "");
    }
    int after = dup(scratch_fd);
    close(after);
    expect_number("the next free descriptor", after, next);
}

/* ---- what is there ------------------------------------------------------------------------- */

static const struct row plain[] = {
    {"/", 200, "home"},
    {"/index.html", 200, "home"},
    {"/a.txt", 200, "0123456789"},
    {"/empty", 200, ""},
    {"/a b\xc3\xa4", 200, "name"},
    {"/a..b", 200, "dots"},
    {"/folder/", 200, "folder's"},
    {"/folder/b.css", 200, "css"},
    {"/folder", 301, NULL},
    {"/bare", 301, NULL},
    {"/bare/", 404, NULL},
    {"/none", 404, NULL},
    {"/none/", 404, NULL},
    {"/folder/none", 404, NULL},
    {"/A.TXT", 404, NULL},
    {"/a.txt/", 404, NULL},
    {"/a.txt/b", 404, NULL},
    {"/odd/", 404, NULL},
    {"/odd/index.html", 301, NULL},
    {"/odd/index.html/", 404, NULL},
};

/* Rule 18. */
static const struct row refused[] = {
    {"/.hidden", 404, NULL},
    {"/...x", 404, NULL},
    {"/.git/config", 404, NULL},
    {"/.git/", 404, NULL},
    {"/.git", 404, NULL},
    {"/folder/../a.txt", 404, NULL}, /* such a path does not come here: still it does no harm */
    {"/../secret.txt", 404, NULL},
    {"/fifo", 404, NULL},
    {"/fifo/", 404, NULL},
    {"/socket", 404, NULL},
    {"/device", 404, NULL},
};

/* Rule 17. */
static const struct row links_out[] = {
    {"/outside", 404, NULL},          {"/up/secret.txt", 404, NULL}, {"/up", 404, NULL},
    {"/up/public/a.txt", 404, NULL},  {"/up/", 404, NULL},           {"/absolute", 404, NULL},
    {"/absolute-inside", 404, NULL},  {"/beside/a.txt", 404, NULL},  {"/loop", 404, NULL},
    {"/loop/x", 404, NULL},           {"/dangling", 404, NULL},      {"/magic", 404, NULL},
    {"/magic/etc/passwd", 404, NULL},
};

Test(files, opens_what_is_there_and_follows_links_that_stay_inside)
{
    static const struct row rows[] = {
        {"/inside", 200, "0123456789"},
        {"/into/b.css", 200, "css"},
        {"/into/", 200, "folder's"},
        {"/into", 301, NULL},
    };
    expect_rows(plain, COUNT(plain));
    expect_rows(refused, COUNT(refused));
    expect_rows(links_out, COUNT(links_out));
    expect_rows(rows, COUNT(rows));
}

/* ---- where the kernel has no openat2(2) ---------------------------------------------------- */

static bool forbid_openat2(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = COUNT(filter), .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

Test(files, rule_17_holds_on_a_kernel_without_openat2)
{
    static const struct row links_inside[] = {
        {"/inside", 404, NULL},
        {"/into/b.css", 404, NULL},
        {"/into/", 404, NULL},
    };
    if (!forbid_openat2())
        cr_skip_test("no seccomp here");
    expect_rows(plain, COUNT(plain));
    expect_rows(refused, COUNT(refused));
    expect_rows(links_out, COUNT(links_out));
    expect_rows(links_inside, COUNT(links_inside)); /* without it, no link is followed at all */
    char path[5000], content[20];
    snprintf(path, sizeof(path), "/%0256d", 0);
    expect_number("256 bytes", open_and_read(path, content, sizeof(content)), 404);
}
