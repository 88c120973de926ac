#include "template.h"

#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- compiling ----------------------------------------------------------------------------- */

enum { MAX_DEPTH = 8 }; /* sections within sections */

/* A SECTION knows the step behind its END, and an END knows its SECTION. So rendering is a walk
 * with two kinds of jump. */
struct step {
    enum { TEXT, VARIABLE, SECTION, END } kind;
    struct span text; /* TEXT. SECTION: its tag */
    int id;           /* VARIABLE, SECTION, END */
    size_t jump;      /* SECTION: behind its END. END: its SECTION */
};

struct template
{
    struct step *steps;
    size_t count;
    char source[]; /* the texts of the steps point into this */
};

struct compiler {
    struct template *template;
    const struct template_name *names;
    const char *file;
    size_t open[MAX_DEPTH]; /* the open SECTION steps, outermost first */
    int depth;
    const char *at; /* the tag that is being read, for a message's line number */
    char *error;
    size_t error_size;
};

static bool fail(struct compiler *c, const char *what, struct span name)
{
    int line = 1;
    for (const char *at = c->template->source; at < c->at; at++)
        line += *at == '\n';
    char shown[256]; /* of the name, to the end of its line */
    const char *lf = memchr(name.at, '\n', name.len);
    text_escape(name.at, lf ? (size_t)(lf - name.at) : name.len, shown, sizeof(shown));
    snprintf(c->error, c->error_size, "%s:%d: %s%s", c->file, line, what, shown);
    return false;
}

static void add_step(struct compiler *c, struct step step)
{
    c->template->steps[c->template->count++] = step;
}

/* Looks a name up, and checks whether it may be used in this way in this place. */
static const struct template_name *find_name(struct compiler *c, struct span name, bool is_list)
{
    const struct template_name *n = c->names;
    while (n->name && !span_is(name, n->name))
        n++;
    bool in_its_list = n->in == 0;
    for (int i = 0; i < c->depth; i++)
        in_its_list = in_its_list || c->template->steps[c->open[i]].id == n->in;
    if (!n->name)
        fail(c, "unknown name: ", name);
    else if (n->is_list != is_list)
        fail(c, is_list ? "not a list: " : "a list, to be written {{#...}}: ", name);
    else if (!in_its_list)
        fail(c, "used outside its list: ", name);
    else
        return n;
    return NULL;
}

/* One tag, without its braces. */
static bool compile_tag(struct compiler *c, struct span tag)
{
    struct template *template = c->template;
    char kind = tag.len > 0 ? tag.at[0] : '\0';
    bool section = kind == '#' || kind == '/';
    if (kind == '!')
        return true;
    struct span name = span_trim(span_skip(tag, section));
    const struct template_name *known = find_name(c, name, section);
    if (!known)
        return false;
    if (kind == '#') {
        if (c->depth == MAX_DEPTH)
            return fail(c, "sections too deep: ", name);
        c->open[c->depth++] = template->count;
        add_step(c, (struct step){.kind = SECTION, .id = known->id, .text = tag});
    } else if (kind == '/') {
        if (c->depth == 0 || template->steps[c->open[c->depth - 1]].id != known->id)
            return fail(c, "closed but not open: ", name);
        size_t start = c->open[--c->depth];
        add_step(c, (struct step){.kind = END, .id = known->id, .jump = start});
        template->steps[start].jump = template->count;
    } else {
        add_step(c, (struct step){.kind = VARIABLE, .id = known->id});
    }
    return true;
}

static void add_text(struct compiler *c, const char *from, const char *to)
{
    if (from < to)
        add_step(c, (struct step){.kind = TEXT, .text = {from, (size_t)(to - from)}});
}

static bool compile(struct compiler *c, const char *end)
{
    const char *at = c->template->source;
    while ((c->at = memmem(at, (size_t)(end - at), "{{", 2))) {
        const char *close = memmem(c->at, (size_t)(end - c->at), "}}", 2);
        if (!close)
            return fail(c, "{{ without }}", SPAN(""));
        add_text(c, at, c->at);
        if (!compile_tag(c, (struct span){c->at + 2, (size_t)(close - c->at - 2)}))
            return false;
        at = close + 2;
    }
    add_text(c, at, end);
    if (c->depth > 0) {
        c->at = c->template->steps[c->open[c->depth - 1]].text.at;
        return fail(c, "a section is not closed", SPAN(""));
    }
    return true;
}

struct template *template_compile(const char *file, struct span text,
                                  const struct template_name *names, char *error, size_t error_size)
{
    size_t most = 1; /* steps: one for each tag, one for the text before it, and one for the rest */
    for (size_t i = 0; i + 1 < text.len; i++)
        most += text.at[i] == '{' && text.at[i + 1] == '{' ? 2 : 0;
    struct template *template = malloc(sizeof(*template) + text.len);
    struct step *steps = malloc(most * sizeof(*steps));
    if (!template || !steps) {
        snprintf(error, error_size, "%s: out of memory", file);
        free(template);
        free(steps);
        return NULL;
    }
    *template = (struct template){.steps = steps};
    if (text.len > 0)
        memcpy(template->source, text.at, text.len);
    struct compiler c = {.template = template,
                         .names = names,
                         .file = file,
                         .error = error,
                         .error_size = error_size};
    if (!compile(&c, template->source + text.len)) {
        template_free(template);
        return NULL;
    }
    return template;
}

void template_free(struct template *template)
{
    if (template)
        free(template->steps);
    free(template);
}

/* ---- rendering ----------------------------------------------------------------------------- */

/* A table, because this is asked of every byte that a visitor has written. */
static const char *const escapes[256] = {
    ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;",
};

/* Appends text in runs: as much as needs no escape at a time. */
static void append_escaped(struct buffer *out, struct span text)
{
    for (size_t start = 0, i = 0; start < text.len; start = ++i) {
        const char *escape = NULL;
        while (i < text.len && !(escape = escapes[(unsigned char)text.at[i]]))
            i++;
        buffer_append(out, text.at + start, i - start);
        if (escape)
            buffer_append(out, escape, strlen(escape));
    }
}

void template_render(const struct template *template, const struct template_values *values,
                     struct buffer *out)
{
    size_t index[MAX_DEPTH] = {0}; /* of the item each open section is at */
    int depth = 0;

    for (size_t i = 0, next; i < template->count; i = next) {
        const struct step *step = &template->steps[i];
        next = i + 1;
        switch (step->kind) {
        case TEXT:
            buffer_append(out, step->text.at, step->text.len);
            break;
        case VARIABLE:
            append_escaped(out, values->text(values->data, step->id));
            break;
        case SECTION:
            index[depth] = 0;
            if (values->item(values->data, step->id, 0))
                depth++;
            else
                next = step->jump;
            break;
        case END:
            if (values->item(values->data, step->id, ++index[depth - 1]))
                next = step->jump + 1;
            else
                depth--;
            break;
        }
    }
}

/* ---- loading ------------------------------------------------------------------------------- */

struct template *template_load(int root, const char *file, const struct template_name *names,
                               const char *server)
{
    enum { PIECE = 4096 };
    char error[256];
    struct buffer text = {0};
    int fd = openat(root, file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0 && buffer_reserve(&text, PIECE)) {
        n = read(fd, text.bytes + text.len, PIECE);
        text.len += n > 0 ? (size_t)n : 0;
    }
    if (n != 0)
        process_die(server, "%s: %s; start it where templates/ is, or use --root", file,
                    strerror(errno));
    close(fd);
    struct template *template =
        template_compile(file, (struct span){text.bytes, text.len}, names, error, sizeof(error));
    if (!template)
        process_die(server, "%s", error);
    buffer_clear(&text, 0);
    return template;
}
