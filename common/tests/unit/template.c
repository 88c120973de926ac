/* Templates: compiled, refused with the right line, and rendered; and the buffer they grow in. */
#include "template.h"
#include "unit.h"

#include <stdint.h>

TestSuite(template, .timeout = 60);

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

static struct template *compile(const char *source, char *error, size_t size)
{
    return template_compile("file", span_of(source), names, error, size);
}

static void expect_render(const char *source, struct table table, const char *expected)
{
    char error[200] = "";
    struct buffer out = {0};
    struct template *page = compile(source, error, sizeof(error));
    cr_assert(page, "\"%s\": %s", source, error);
    template_render(page, &(struct template_values){.text = text, .item = item, .data = &table},
                    &out);
    buffer_append(&out, "", 1);
    expect_text(source, out.bytes, expected);
    buffer_clear(&out, 0);
    template_free(page);
}

/* ---- rendering ----------------------------------------------------------------------------- */

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
        struct template *page = compile(rows[i].source, error, sizeof(error));
        cr_expect(!page, "\"%s\" compiles", rows[i].source);
        expect_text(rows[i].source, error, rows[i].error);
        template_free(page);
    }
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

/* ---- the buffer ---------------------------------------------------------------------------- */

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
    buffer_clear(&b, 0);
}
