/* fuzz_template: any text as a template, and any text as its values.
 *
 *  - The first byte says which share of the rest is the template, what is
 *    behind is the value of every variable; the second, how many items a list has.
 *  - A template compiles, or the error is one line, "file:line: what", and the
 *    line is one the template has.
 *  - A variable is asked for only within its list, and items in order.
 *  - What is rendered holds no & < > " ' but the template's own and the
 *    escapes: rendered with empty values it is shorter by the escaped values.
 */
#include "template.h"
#include "fuzz.h"

enum {
    LONGEST = 400, /* bytes: sections in sections multiply what is rendered */
    ERROR_SIZE = LONGEST + 80,
};
enum { ANYWHERE = 1, LIST, IN_LIST, INNER, IN_INNER, IDS };

static const struct template_name names[] = {
    {"a", ANYWHERE, 0, false}, {"L", LIST, 0, true},          {"b", IN_LIST, LIST, false},
    {"M", INNER, LIST, true},  {"c", IN_INNER, INNER, false}, {NULL, 0, 0, false},
};

struct rendering {
    struct span value;
    size_t items;
    size_t open[IDS];    /* how many sections of each list are open */
    size_t at[IDS][8];   /* the item each of them is at */
    size_t longer, amps; /* bytes, and "&", that the values have brought */
};

static size_t count(struct span text, const char *wanted)
{
    size_t found = 0;
    for (size_t i = 0; i < text.len; i++)
        found += text.at[i] && strchr(wanted, text.at[i]);
    return found;
}

static struct span text(void *data, int id)
{
    struct rendering *r = data;
    must(id == ANYWHERE || (id == IN_LIST && r->open[LIST]) || (id == IN_INNER && r->open[INNER]));
    r->amps += count(r->value, "&<>\"'");
    r->longer += r->value.len + 3 * count(r->value, "<>") + 4 * count(r->value, "&'") +
                 5 * count(r->value, "\"");
    return r->value;
}

static bool item(void *data, int list, size_t index)
{
    struct rendering *r = data;
    must(list == LIST || (list == INNER && r->open[LIST] > 0));
    if (index == 0 && r->items > 0)
        must(++r->open[list] <= 8);
    else if (index > 0)
        must(r->open[list] > 0 && index == r->at[list][r->open[list] - 1] + 1);
    if (index < r->items)
        r->at[list][r->open[list] - 1] = index;
    else if (index > 0)
        r->open[list]--;
    return index < r->items;
}

static struct buffer render(const struct compiled *page, struct rendering *r)
{
    struct buffer out = {0};
    template_render(page, &(struct template_values){text, item, r}, &out);
    must(!out.failed && r->open[LIST] == 0 && r->open[INNER] == 0);
    return out;
}

static void must_be_escaped(const struct compiled *page, struct span value, size_t items)
{
    struct rendering with = {.value = value, .items = items};
    struct rendering without = {.value = SPAN(""), .items = items};
    struct buffer a = render(page, &with), b = render(page, &without);
    struct span full = {a.bytes, a.len}, bare = {b.bytes, b.len};
    must(full.len == bare.len + with.longer);
    must(count(full, "<>\"'") == count(bare, "<>\"'"));
    must(count(full, "&") == count(bare, "&") + with.amps);
    buffer_free(&a);
    buffer_free(&b);
}

/* One line: "file:N: what". Behind one more line the same mistake is at N + 1. */
static void must_be_an_error(const char *error, struct span source)
{
    char again[ERROR_SIZE], *shifted = malloc(source.len + 1), *what, *what_again;
    must(shifted);
    shifted[0] = '\n';
    memcpy(shifted + 1, source.at, source.len);
    must(!template_compile("file", (struct span){shifted, source.len + 1}, names, again,
                           ERROR_SIZE));
    must(strncmp(error, "file:", 5) == 0 && strncmp(again, "file:", 5) == 0);
    unsigned long line = strtoul(error + 5, &what, 10);
    must(line >= 1 && line <= 1 + count(source, "\n"));
    must(strtoul(again + 5, &what_again, 10) == line + 1 && strcmp(what, what_again) == 0);
    must(strncmp(what, ": ", 2) == 0 && what[2] && !strchr(what, '\n'));
    free(shifted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > LONGEST)
        return 0;
    size_t len = (size - 2) * data[0] / 255;
    char *source = exact_copy(data + 2, len), *value = exact_copy(data + 2 + len, size - 2 - len);
    struct span template = {source, len};
    char error[ERROR_SIZE] = "";
    struct compiled *page = template_compile("file", template, names, error, ERROR_SIZE);
    if (page)
        must_be_escaped(page, (struct span){value, size - 2 - len}, data[1] % 3);
    else
        must_be_an_error(error, template);
    free(source);
    free(value);
    template_free(page);
    return 0;
}
