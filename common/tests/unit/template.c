/* Templates: compiled, refused with the right line, and rendered; and the buffer they grow in. */
#include "template.h"
#include "unit.h"

#include <errno.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(template, .timeout = 30);

/* ---- an application with two lists, one within the other ----------------------------------- */

enum { TITLE = 1, ROWS, ROW, CELLS, CELL, FLAG };

static const struct template_name names[] = {
    {"title", TITLE, 0, false},   {"rows", ROWS, 0, true},      {"row", ROW, ROWS, false},
    {"cells", CELLS, ROWS, true}, {"cell", CELL, CELLS, false}, {"flag", FLAG, 0, true},
    {NULL, 0, 0, false},
};

struct table {
    const char *title;
    const char *rows[4]; /* a row's cells are its letters; NULL ends the list */
    bool flag;
    size_t row, cell; /* which are being shown */
};

static struct span text(void *data, int id)
{
    const struct table *t = data;
    switch (id) {
    case TITLE:
        return span_of(t->title);
    case ROW:
        return span_of(t->rows[t->row]);
    default:
        return (struct span){&t->rows[t->row][t->cell], 1};
    }
}

static bool item(void *data, int list, size_t index)
{
    struct table *t = data;
    switch (list) {
    case ROWS:
        t->row = index;
        return t->rows[index];
    case CELLS:
        t->cell = index;
        return t->rows[t->row][index];
    default:
        return t->flag && index == 0;
    }
}

static struct compiled *compile(const char *source, char *error, size_t size)
{
    return template_compile("file", span_of(source), names, error, size);
}

static void expect_page(const char *about, const struct compiled *page, struct table *table,
                        const char *expected)
{
    struct buffer out = {0};
    template_render(page, &(struct template_values){.text = text, .item = item, .data = table},
                    &out);
    buffer_append(&out, "", 1);
    cr_assert(!out.failed);
    expect_text(about, out.bytes, expected);
    buffer_free(&out);
}

static void expect_render(const char *source, struct table table, const char *expected)
{
    char error[200] = "";
    struct compiled *page = compile(source, error, sizeof(error));
    cr_expect(page, "\"%s\": %s", source, error);
    if (page)
        expect_page(source, page, &table, expected);
    template_free(page);
}

/* ---- rendering ----------------------------------------------------------------------------- */

Test(template, values_are_escaped)
{
    static const struct {
        const char *value, *shown;
    } rows[] = {
        {"plain", "plain"},
        {"", ""},
        {"<script>alert('1' & \"2\")</script>",
         "&lt;script&gt;alert(&#39;1&#39; &amp; &quot;2&quot;)&lt;/script&gt;"},
        {"&amp;", "&amp;amp;"},
        {"<", "&lt;"},
        {"<<>>", "&lt;&lt;&gt;&gt;"},
        {"{{title}}", "{{title}}"},
        {"\xc3\xa4 \n\t", "\xc3\xa4 \n\t"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char expected[200];
        snprintf(expected, sizeof(expected), "[%s|%s]", rows[i].shown, rows[i].shown);
        expect_render("[{{title}}|{{ title }}]", (struct table){.title = rows[i].value}, expected);
    }
}

Test(template, text_stays_and_sections_repeat_for_each_item)
{
    static const struct {
        const char *source;
        struct table table;
        const char *shown;
    } rows[] = {
        {"", {0}, ""},
        {"<a href=\"x\">&amp; { } }} {</a>\n\n", {0}, "<a href=\"x\">&amp; { } }} {</a>\n\n"},
        {"a{{! anything: rows {{ # & \n of any length }}b", {0}, "ab"},
        {"a{{!}}b{{!}}", {0}, "ab"},
        {"a{{#rows}}({{row}}){{/rows}}z", {.rows = {"1", "<2>", "3"}}, "a(1)(&lt;2&gt;)(3)z"},
        {"a{{# rows }}({{row}}){{/ rows }}z", {.rows = {"1"}}, "a(1)z"},
        {"a{{#rows}}({{row}}{{#cells}}{{cell}}{{/cells}}){{/rows}}z", {0}, "az"},
        {"{{#rows}}{{/rows}}", {.rows = {"1", "2"}}, ""},
        {"{{#rows}}{{row}}:{{#cells}}[{{cell}}{{title}}]{{/cells}};{{/rows}}",
         {.title = "!", .rows = {"ab", "", "c"}},
         "ab:[a!][b!];:;c:[c!];"},
        {"{{#rows}}{{#flag}}{{row}}{{#cells}}-{{/cells}}{{/flag}}{{/rows}}",
         {.rows = {"ab", "c"}, .flag = true},
         "ab--c-"},
        {"{{#rows}}{{#flag}}{{row}}{{/flag}}.{{/rows}}", {.rows = {"ab", "c"}}, ".."},
        {"{{#rows}}{{row}}{{/rows}}/{{#rows}}{{row}}{{/rows}}", {.rows = {"1", "2"}}, "12/12"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        expect_render(rows[i].source, rows[i].table, rows[i].shown);
}

Test(template, a_tag_alone_on_its_line_takes_the_line_along)
{
    static const struct {
        const char *source, *shown;
    } rows[] = {
        {"{{#rows}}\n{{row}}\n{{/rows}}\n", "1\n2\n"},
        {"<ul>\n  {{#rows}}\n  <li>{{row}}\n  {{/rows}}\n</ul>\n",
         "<ul>\n  <li>1\n  <li>2\n</ul>\n"},
        {"a\n \t{{#rows}} \t\n{{row}}\n\t{{/rows}}", "a\n1\n2\n"},
        {"a\n{{! comment }}\nb", "a\nb"},
        {"a\n{{! comment\nof two lines }}\nb", "a\nb"},
        {"a {{! comment }}\nb", "a \nb"},
        {"{{! comment }} a\n", " a\n"},
        {"{{#rows}}{{row}}\n{{/rows}}\n", "1\n2\n"},
        {"{{#flag}}\n{{/flag}}\n{{#flag}}\n{{/flag}}\n", ""},
        {"{{#rows}}{{/rows}}\n", "\n"},
        {"{{title}}\n", "t\n"}, /* a variable does not */
        {"  {{title}}  \n", "  t  \n"},
        {"\n\n{{! comment }}\n\n", "\n\n\n"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        expect_render(rows[i].source, (struct table){.title = "t", .rows = {"1", "2"}},
                      rows[i].shown);
}

Test(template, appends_to_what_the_buffer_holds)
{
    char error[200];
    struct compiled *page = compile("{{title}}", error, sizeof(error));
    struct buffer out = {0};
    struct table table = {.title = "more"};
    buffer_append(&out, "some ", 5);
    template_render(page, &(struct template_values){.text = text, .item = item, .data = &table},
                    &out);
    expect_span("page", ((struct span){out.bytes, out.len}), "some more");
    buffer_free(&out);
    template_free(page);
}

/* ---- what does not compile ----------------------------------------------------------------- */

Test(template, says_where_a_template_is_wrong)
{
    static const struct {
        const char *source, *error;
    } rows[] = {
        {"{{a\nb}}", "file:1: unknown name: a"},
        {"{{tilte}}", "file:1: unknown name: tilte"},
        {"{{\x1b[1m\xff\t\"\\}}", "file:1: unknown name: \\x1b[1m\\xff\\x09\\x22\\x5c"},
        {"\n\n  {{ tilte }}\n", "file:3: unknown name: tilte"},
        {"{{Title}}", "file:1: unknown name: Title"},
        {"{{title }} {{titles}}", "file:1: unknown name: titles"},
        {"a\n{{}}", "file:2: unknown name: "},
        {"{{#}}", "file:1: unknown name: "},
        {"{{{title}}}", "file:1: unknown name: {title"},
        {"{{&title}}", "file:1: unknown name: &title"},
        {"{{row}}", "file:1: used outside its list: row"},
        {"{{#rows}}\n{{/rows}}\n{{row}}", "file:3: used outside its list: row"},
        {"{{#rows}}\n{{cell}}{{/rows}}", "file:2: used outside its list: cell"},
        {"{{#cells}}{{/cells}}", "file:1: used outside its list: cells"},
        {"{{#title}}{{/title}}", "file:1: not a list: title"},
        {"{{#rows}}\n{{/title}}", "file:2: not a list: title"},
        {"\n{{rows}}", "file:2: a list, to be written {{#...}}: rows"},
        {"{{/rows}}", "file:1: closed but not open: rows"},
        {"{{#rows}}\n{{#flag}}\n{{/rows}}\n{{/flag}}", "file:3: closed but not open: rows"},
        {"{{#flag}}{{/flag}}\n{{/flag}}", "file:2: closed but not open: flag"},
        {"a\n{{#rows}}\nb\nc\n", "file:2: a section is not closed"},
        {"a\nb {{title", "file:2: {{ without }}"},
        {"{{", "file:1: {{ without }}"},
        {"{{title}", "file:1: {{ without }}"},
        {"{{!\n\n", "file:1: {{ without }}"},
        {"{{title}}\n{{! a\n comment }}\n{{x}}", "file:4: unknown name: x"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char error[200] = "";
        struct compiled *page = compile(rows[i].source, error, sizeof(error));
        cr_expect(!page, "\"%s\" compiles", rows[i].source);
        expect_text(rows[i].source, error, rows[i].error);
        template_free(page);
    }
}

Test(template, a_long_message_is_cut)
{
    char error[12];
    memset(error, '!', sizeof(error));
    cr_expect(!compile("{{misspelt}}", error, sizeof(error)));
    expect_text("cut", error, "file:1: unk");
}

Test(template, sections_go_eight_deep)
{
    char source[400] = "", error[200];
    for (int i = 0; i < 8; i++)
        strcat(source, "{{#flag}}");
    strcat(source, "{{title}}");
    for (int i = 0; i < 8; i++)
        strcat(source, "{{/flag}}");
    expect_render(source, (struct table){.title = "deep", .flag = true}, "deep");

    memmove(source + strlen("{{#flag}}"), source, strlen(source) + 1);
    memcpy(source, "{{#flag}}", strlen("{{#flag}}"));
    strcat(source, "{{/flag}}");
    cr_expect(!compile(source, error, sizeof(error)));
    expect_text("nine", error, "file:1: sections too deep: flag");
}

/* ---- loading ------------------------------------------------------------------------------- */

Test(template, loads_a_template_from_a_file, .init = scratch_make, .fini = scratch_remove)
{
    char error[200];
    static char big[10001];
    memset(big, 'b', 10000);
    memcpy(big + 9000, "{{title}}", 9);
    unit_interruptions = 1;
    scratch_file("small", "x{{title}}");
    scratch_file("empty", "");
    scratch_file("big", big);

    struct compiled *page = template_read(scratch_fd, "small", names, error, sizeof(error));
    cr_assert(page, "%s", error);
    expect_page("small", page, &(struct table){.title = "t"}, "xt");
    template_free(page);

    cr_expect(!template_read(scratch_fd, "empty", names, error, sizeof(error)) && errno == 0);
    expect_text("half written", error, "empty: empty");

    page = template_read(scratch_fd, "big", names, error, sizeof(error));
    cr_assert(page, "%s", error);
    template_free(page);
    memcpy(big + 9000, "123456789", 9);
    expect_page("big", (page = compile(big, error, sizeof(error))), &(struct table){0}, big);
    template_free(page);
}

/* The clock of a file system may be coarse: two dates may differ in their seconds alone. */
Test(template, reads_a_file_again_if_either_part_of_its_date_differs, .init = scratch_make,
     .fini = scratch_remove)
{
    struct template t = {.file = "page", .names = names, .lock = PTHREAD_RWLOCK_INITIALIZER};
    scratch_file("page", "x{{title}}");
    template_load(&t, scratch_fd, "test");
    const struct timespec date = t.changed, rows[] = {{date.tv_sec - 1, date.tv_nsec},
                                                      {date.tv_sec, date.tv_nsec - 1}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        t.changed = rows[i];
        t.checked = 0;
        template_check(&t);
        cr_expect(t.changed.tv_sec == date.tv_sec && t.changed.tv_nsec == date.tv_nsec, "%zu", i);
    }
    template_free(t.compiled);
}

Test(template, says_why_a_file_was_not_loaded, .init = scratch_make, .fini = scratch_remove)
{
    char error[200];
    scratch_folder("folder");
    scratch_file("wrong", "\n{{x}}");
    cr_expect(!template_read(scratch_fd, "none", names, error, sizeof(error)));
    expect_text("none", error, "none: No such file or directory");
    cr_expect(!template_read(scratch_fd, "folder", names, error, sizeof(error)));
    expect_text("folder", error, "folder: Is a directory");
    cr_expect(!template_read(scratch_fd, "wrong", names, error, sizeof(error)));
    expect_text("wrong", error, "wrong:2: unknown name: x");
}

Test(template, reads_regular_files_only_and_so_much_of_them, .init = scratch_make,
     .fini = scratch_remove)
{
    static char most[TEMPLATE_MAX_SIZE + 1];
    char error[200];
    memset(most, 'm', sizeof(most));
    scratch_bytes("most", most, TEMPLATE_MAX_SIZE);
    scratch_bytes("more", most, TEMPLATE_MAX_SIZE + 1);
    cr_assert(mkfifoat(scratch_fd, "fifo", 0600) == 0);
    cr_assert(symlinkat("/dev/zero", scratch_fd, "device") == 0);
    char path[100];
    struct inotify_event opened;
    snprintf(path, sizeof(path), "%s/fifo", scratch);
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    cr_assert(inotify_add_watch(watch, path, IN_OPEN) > 0);

    struct compiled *page = template_read(scratch_fd, "most", names, error, sizeof(error));
    cr_expect(page, "%s", error);
    template_free(page);
    static const struct {
        const char *name, *error;
    } rows[] = {
        {"more", "more: File too large"},
        {"fifo", "fifo: not a regular file"},
        {"device", "device: not a regular file"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        errno = 0;
        cr_expect(!template_read(scratch_fd, rows[i].name, names, error, sizeof(error)));
        cr_expect(errno != 0, "%s: not the file's fault", rows[i].name);
        expect_text(rows[i].name, error, rows[i].error);
    }
    cr_expect(read(watch, &opened, sizeof(opened)) < 0, "the FIFO was opened: that wakes a writer");
    close(watch);
}

Test(template, leaves_no_descriptor_open, .init = scratch_make, .fini = scratch_remove)
{
    char error[200];
    scratch_file("good", "");
    scratch_file("wrong", "{{x}}");
    scratch_folder("folder");
    int before = dup(scratch_fd);
    close(before);
    template_free(template_read(scratch_fd, "good", names, error, sizeof(error)));
    template_read(scratch_fd, "wrong", names, error, sizeof(error));
    template_read(scratch_fd, "folder", names, error, sizeof(error));
    int after = dup(scratch_fd);
    expect_number("the next free descriptor", after, before);
}

/* ---- the buffer ---------------------------------------------------------------------------- */

Test(template, a_buffer_grows_and_keeps_what_it_holds)
{
    struct buffer b = {0};
    for (int i = 0; i < 100000; i++) {
        char byte = (char)('a' + i % 26);
        buffer_append(&b, &byte, 1);
    }
    cr_assert(!b.failed && b.len == 100000 && b.size >= b.len && b.size <= 2 * b.len);
    for (int i = 0; i < 100000; i++)
        cr_assert(b.bytes[i] == (char)('a' + i % 26), "byte %d", i);
    buffer_append(&b, NULL, 0);
    expect_number("nothing more", b.len, 100000);
    buffer_free(&b);
    cr_expect(!b.bytes && b.len == 0 && b.size == 0);
}

Test(template, a_buffer_reserves_room)
{
    struct buffer b = {0};
    cr_assert(buffer_reserve(&b, 5000) && b.size >= 5000);
    expect_number("nothing yet", b.len, 0);
    memset(b.bytes, 'x', 5000); /* a sanitizer looks on */
    b.len = 5000;
    char *bytes = b.bytes;
    cr_assert(buffer_reserve(&b, b.size - b.len));
    cr_expect(b.bytes == bytes, "it moved without need");
    cr_assert(buffer_reserve(&b, b.size - b.len + 1) && b.bytes[4999] == 'x');
    buffer_free(&b);
}

Test(template, a_buffer_gives_large_memory_back)
{
    struct buffer b = {0};
    buffer_append(&b, "small", 5);
    size_t size = b.size;
    buffer_clear(&b, size);
    cr_expect(b.bytes && b.size == size && b.len == 0, "as much as may be kept is kept");
    buffer_append(&b, "small", 5);
    buffer_clear(&b, size - 1);
    cr_expect(!b.bytes && b.size == 0 && b.len == 0, "more is given back");
}

Test(template, a_buffer_without_memory_fails_and_recovers)
{
    struct buffer b = {0};
    buffer_append(&b, "kept", 4);
    cr_expect(!buffer_reserve(&b, SIZE_MAX / 4));
    cr_expect(b.failed);
    buffer_append(&b, "lost", 4);
    cr_expect(!buffer_reserve(&b, 1));
    expect_span("what was there", ((struct span){b.bytes, b.len}), "kept");
    buffer_clear(&b, 4096);
    cr_expect(!b.failed);
    buffer_append(&b, "again", 5);
    expect_span("afterwards", ((struct span){b.bytes, b.len}), "again");
    buffer_free(&b);
}
