#include "template.h"

#include "clock.h"
#include "log.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- compiling ----------------------------------------------------------------------------- */

enum { MAX_DEPTH = 8 }; /* sections within sections */

/* A template becomes a list of steps. A SECTION knows the step behind its END, and an END knows its
 * SECTION. So rendering is a walk with two kinds of jump. */
struct step {
    enum { TEXT, VARIABLE, SECTION, END } kind;
    struct span text; /* TEXT */
    int id;           /* VARIABLE, SECTION, END */
    size_t jump;      /* SECTION: behind its END. END: its SECTION */
};

struct compiled {
    struct step *steps;
    size_t count, size;
    char source[]; /* the texts of the steps point into this */
};

struct compiler {
    struct compiled *compiled;
    const struct template_name *names;
    const char *file;
    size_t open[MAX_DEPTH];        /* the open SECTION steps, outermost first */
    const char *opened[MAX_DEPTH]; /* their tags */
    int depth;
    const char *at; /* the tag that is being read, for a message's line number */
    char *error;
    size_t error_size;
};

static bool fail(struct compiler *c, const char *what, struct span name)
{
    int line = 1;
    for (const char *at = c->compiled->source; at < c->at; at++)
        line += *at == '\n';
    char shown[256]; /* of the name, to the end of its line */
    const char *lf = memchr(name.at, '\n', name.len);
    text_escape(name.at, lf ? (size_t)(lf - name.at) : name.len, shown, sizeof(shown));
    snprintf(c->error, c->error_size, "%s:%d: %s%s", c->file, line, what, shown);
    return false;
}

static bool add_step(struct compiler *c, struct step step)
{
    struct compiled *compiled = c->compiled;
    if (compiled->count == compiled->size) {
        size_t size = compiled->size ? 2 * compiled->size : 32;
        struct step *steps = realloc(compiled->steps, size * sizeof(*steps));
        if (!steps)
            return fail(c, "out of memory", SPAN(""));
        compiled->steps = steps;
        compiled->size = size;
    }
    compiled->steps[compiled->count++] = step;
    return true;
}

/* Looks a name up, and checks whether it may be used in this way in this place. */
static const struct template_name *find_name(struct compiler *c, struct span name, bool is_list)
{
    const struct template_name *n = c->names;
    while (n->name && !span_is(name, n->name))
        n++;
    bool in_its_list = n->in == 0;
    for (int i = 0; i < c->depth; i++)
        in_its_list = in_its_list || c->compiled->steps[c->open[i]].id == n->in;
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
    struct compiled *compiled = c->compiled;
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
        c->opened[c->depth] = c->at;
        c->open[c->depth++] = compiled->count;
        return add_step(c, (struct step){.kind = SECTION, .id = known->id});
    }
    if (kind == '/') {
        if (c->depth == 0 || compiled->steps[c->open[c->depth - 1]].id != known->id)
            return fail(c, "closed but not open: ", name);
        size_t start = c->open[--c->depth];
        if (!add_step(c, (struct step){.kind = END, .id = known->id, .jump = start}))
            return false;
        compiled->steps[start].jump = compiled->count;
        return true;
    }
    return add_step(c, (struct step){.kind = VARIABLE, .id = known->id});
}

/* If a section's tag or a comment is alone on its line, widens [*from, *to), the tag with its
 * braces, to the whole line. */
static void widen_to_line(const char *source, const char *end, const char **from, const char **to)
{
    const char *before = *from, *after = *to;
    while (before > source && (before[-1] == ' ' || before[-1] == '\t'))
        before--;
    while (after < end && (*after == ' ' || *after == '\t'))
        after++;
    bool alone = (before == source || before[-1] == '\n') && (after == end || *after == '\n');
    if (alone && strchr("#/!", (*from)[2])) {
        *from = before;
        *to = after < end ? after + 1 : end;
    }
}

static bool add_text(struct compiler *c, const char *from, const char *to)
{
    struct span text = {from, (size_t)(to - from)};
    return from >= to || add_step(c, (struct step){.kind = TEXT, .text = text});
}

static bool compile(struct compiler *c, const char *end)
{
    const char *at = c->compiled->source;
    const char *tag;
    while ((tag = memmem(at, (size_t)(end - at), "{{", 2))) {
        c->at = tag;
        const char *close = memmem(tag, (size_t)(end - tag), "}}", 2);
        if (!close)
            return fail(c, "{{ without }}", SPAN(""));
        const char *from = tag, *to = close + 2;
        widen_to_line(c->compiled->source, end, &from, &to);
        if (!add_text(c, at, from) ||
            !compile_tag(c, (struct span){tag + 2, (size_t)(close - tag - 2)}))
            return false;
        at = to;
    }
    if (!add_text(c, at, end))
        return false;
    if (c->depth > 0) {
        c->at = c->opened[c->depth - 1];
        return fail(c, "a section is not closed", SPAN(""));
    }
    return true;
}

struct compiled *template_compile(const char *file, struct span text,
                                  const struct template_name *names, char *error, size_t error_size)
{
    struct compiled *compiled = calloc(1, sizeof(*compiled) + text.len + 1);
    if (!compiled) {
        snprintf(error, error_size, "%s: out of memory", file);
        return NULL;
    }
    if (text.len > 0)
        memcpy(compiled->source, text.at, text.len);
    struct compiler c = {.compiled = compiled,
                         .names = names,
                         .file = file,
                         .error = error,
                         .error_size = error_size};
    if (!compile(&c, compiled->source + text.len)) {
        template_free(compiled);
        return NULL;
    }
    return compiled;
}

/* Reads a whole file. Returns 0, or why that failed. Does not ask for the file's size, because it
 * may grow meanwhile. */
static int read_file(int fd, struct buffer *text)
{
    while (text->len <= TEMPLATE_MAX_SIZE) {
        if (!buffer_reserve(text, 4096))
            return ENOMEM;
        ssize_t n = read(fd, text->bytes + text->len, text->size - text->len);
        if (n == 0)
            return 0;
        if (n > 0)
            text->len += (size_t)n;
        else if (errno != EINTR)
            return errno;
    }
    return EFBIG;
}

struct compiled *template_read(int root, const char *file, const struct template_name *names,
                               char *error, size_t error_size)
{
    struct buffer text = {0};
    struct compiled *compiled = NULL;
    struct stat about;
    int fd = -1, why = 0;
    /* Look first, because opening has effects: it wakes a program that waits to write to a FIFO.
     * O_NONBLOCK: if a FIFO has come between, opening must not wait. */
    bool is_there = fstatat(root, file, &about, 0) == 0;
    if (is_there && !S_ISREG(about.st_mode))
        why = S_ISDIR(about.st_mode) ? EISDIR : EINVAL;
    else if (!is_there ||
             (fd = openat(root, file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) < 0)
        why = errno;
    else
        why = read_file(fd, &text);
    if (why) {
        snprintf(error, error_size, "%s: %s", file,
                 why == EINVAL ? "not a regular file" : strerror(why));
    } else if (text.len == 0) {
        snprintf(error, error_size, "%s: empty", file);
    } else {
        errno = 0;
        compiled =
            template_compile(file, (struct span){text.bytes, text.len}, names, error, error_size);
        why = errno; /* ENOMEM is not the template's fault */
    }
    if (fd >= 0)
        close(fd);
    buffer_free(&text);
    errno = why;
    return compiled;
}

void template_free(struct compiled *compiled)
{
    if (!compiled)
        return;
    free(compiled->steps);
    free(compiled);
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

void template_render(const struct compiled *compiled, const struct template_values *values,
                     struct buffer *out)
{
    size_t index[MAX_DEPTH] = {0}; /* of the item each open section is at */
    int depth = 0;

    for (size_t i = 0, next; i < compiled->count; i = next) {
        const struct step *step = &compiled->steps[i];
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

/* ---- templates in use ---------------------------------------------------------------------- */

enum { CHECK_EVERY_MS = 1000 };

/* Compiles the file again if it has changed. If it does not compile, that is reported, and the
 * template stays as it was. At start there is none yet, and the program ends. */
static void reload(struct template *t)
{
    char error[256];
    struct stat about;
    if (fstatat(t->root, t->file, &about, 0) < 0) {
        if (!t->compiled)
            process_die(t->name, "%s: %s; start it where templates/ is, or use --root", t->file,
                        strerror(errno));
        return;
    }
    if (t->compiled && about.st_ctim.tv_sec == t->changed.tv_sec &&
        about.st_ctim.tv_nsec == t->changed.tv_nsec)
        return;
    struct compiled *compiled = template_read(t->root, t->file, t->names, error, sizeof(error));
    int reason = compiled ? 0 : errno; /* 0: it was read */
    if (reason == 0)
        t->changed = about.st_ctim; /* a file that was not read is tried again */
    if (!compiled && !t->compiled)
        process_die(t->name, "%s", error);
    if (compiled) {
        template_free(t->compiled);
        t->compiled = compiled;
    } else if (reason == 0 || reason != t->error) {
        log_message(t->name, "%s", error);
    }
    t->error = reason;
}

void template_check(struct template *t)
{
    int64_t now = clock_now_ms();
    if (now - t->checked < CHECK_EVERY_MS)
        return;
    pthread_rwlock_wrlock(&t->lock);
    if (now - t->checked >= CHECK_EVERY_MS) { /* no other thread came first */
        reload(t);
        t->checked = now;
    }
    pthread_rwlock_unlock(&t->lock);
}

struct compiled *template_acquire(struct template *t)
{
    template_check(t);
    pthread_rwlock_rdlock(&t->lock);
    return t->compiled;
}

void template_release(struct template *t)
{
    pthread_rwlock_unlock(&t->lock);
}

void template_load(struct template *t, int root, const char *name)
{
    t->root = root;
    t->name = name;
    reload(t);
}
