#include "guestbook.h"

#include "text.h"
#include "uri.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define VISITORS_KEY "guestbook:visitors"
#define ENTRIES_KEY  "guestbook:entries"

enum { TIME_SIZE = sizeof("2026-11-21T02:45:37Z") - 1 };

/* ---- the page: INCR, GET, LRANGE ----------------------------------------------------------- */

/* The commands of nearly every visit, and of one post in a hundred, once the list is full. Made at
 * start, read afterwards. */
static struct redis_command count_visitor = {.words = {SPAN("INCR"), SPAN(VISITORS_KEY)}};
static struct redis_command read_count = {.words = {SPAN("GET"), SPAN(VISITORS_KEY)}};
static struct redis_command list_newest, trim_entries;

/* The newest entry is the last of the list. The command asks for one more than a page holds. If
 * that comes, there is an older page. */
static struct redis_command list_entries(long page, char first[24], char last[24])
{
    snprintf(first, 24, "%ld", -page * GUESTBOOK_PAGE_ENTRIES - 1);
    snprintf(last, 24, "%ld", -(page - 1) * GUESTBOOK_PAGE_ENTRIES - 1);
    return (struct redis_command){
        .words = {SPAN("LRANGE"), SPAN(ENTRIES_KEY), span_of(first), span_of(last)},
    };
}

void guestbook_start(void)
{
    static char first[24], last[24], oldest_kept[24];
    list_newest = list_entries(1, first, last);
    snprintf(oldest_kept, sizeof(oldest_kept), "%d", -GUESTBOOK_MAX_ENTRIES);
    trim_entries = (struct redis_command){
        .words = {SPAN("LTRIM"), SPAN(ENTRIES_KEY), span_of(oldest_kept), SPAN("-1")},
    };
    redis_prepare(&count_visitor);
    redis_prepare(&read_count);
    redis_prepare(&list_newest);
}

/* The page is N of the first "page=N" in the query. */
int guestbook_view(struct guestbook *g, struct span query, struct redis_command *ask)
{
    uint64_t page = 1;
    bool is_found = false;
    while (query.len > 0 && !is_found) {
        struct span value = span_take_until(&query, '&');
        is_found = span_is(span_take_until(&value, '='), "page");
        if (is_found && (!span_take_number(&value, &page) || value.len > 0 || page == 0))
            return 400;
    }
    g->page = page < GUESTBOOK_MAX_PAGE ? (long)page : GUESTBOOK_MAX_PAGE;
    g->step = GUESTBOOK_COUNTING;
    *ask = count_visitor;
    return 0;
}

/* Writes "1234567" as "1,234,567". Returns false if the reply is no such string. */
static bool group_thousands(const redisReply *reply, char *out, size_t size)
{
    if (reply->type != REDIS_REPLY_STRING || reply->len == 0 || reply->len > 20)
        return false;
    size_t n = 0, len = (size_t)reply->len;
    for (size_t i = 0; i < len && n + 2 < size; i++) {
        if (i > 0 && (len - i) % 3 == 0 && out[n - 1] != '-')
            out[n++] = ',';
        out[n++] = reply->str[i];
    }
    out[n] = '\0';
    return true;
}

/* LRANGE answers with strings only. A reply with anything else among them, such as an array within
 * the array, did not come from a Redis list. */
static bool is_list_of_strings(const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY)
        return false;
    for (size_t i = 0; i < reply->elements; i++)
        if (reply->element[i]->type != REDIS_REPLY_STRING)
            return false;
    return true;
}

int guestbook_reply(struct guestbook *g, const redisReply *reply, struct redis_command *ask)
{
    switch (g->step) {
    case GUESTBOOK_COUNTING:
        if (reply->type != REDIS_REPLY_INTEGER)
            return 503;
        g->step = GUESTBOOK_READING_COUNT;
        *ask = read_count;
        return 0;
    case GUESTBOOK_READING_COUNT:
        if (!group_thousands(reply, g->visitors, sizeof(g->visitors)))
            return 503;
        g->step = GUESTBOOK_LISTING;
        *ask = g->page == 1 ? list_newest : list_entries(g->page, g->first, g->last);
        return 0;
    case GUESTBOOK_LISTING:
        if (!is_list_of_strings(reply))
            return 503;
        g->entries = reply;
        return 200;
    case GUESTBOOK_POSTING:
        if (reply->type != REDIS_REPLY_INTEGER)
            return 503;
        if (reply->integer <= GUESTBOOK_MAX_ENTRIES + GUESTBOOK_SLACK) /* entries are in the list */
            return 303;
        /* Redis counts LTRIM's -10000 from the end that the list has when LTRIM is run. So the
         * newest entries stay even if LTRIM runs late, or if several servers trim at once. It takes
         * Redis one step for each entry that it removes. */
        g->step = GUESTBOOK_TRIMMING;
        *ask = trim_entries;
        return 0;
    case GUESTBOOK_TRIMMING:
        return 303; /* even after an error: the next post trims what this one did not */
    }
    return 503;
}

/* ---- posting: RPUSH, and at times LTRIM ---------------------------------------------------- */

/* Forms send line breaks as CR LF; they are stored as LF. Works in place. */
static size_t unify_line_breaks(char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        if (text[i] != '\r')
            text[n++] = text[i];
        else if (i + 1 == len || text[i + 1] != '\n')
            text[n++] = '\n'; /* a CR alone */
    return n;
}

/* Reads the body's two fields, and ignores others. Returns what is wrong with the form itself, or
 * NULL. The fields that could be read are kept in any case, to be shown again. */
static const char *read_form(struct guestbook *g, struct span body)
{
    const char *error = NULL;
    g->name = g->remarks = (struct span){0};
    while (body.len > 0) {
        struct span value = span_take_until(&body, '&');
        struct span key = span_take_until(&value, '='), *field = NULL;
        /* Decoded in place: the buffer is the connection's, and this request its only reader. */
        long key_len = uri_decode_form((char *)key.at, key.len);
        long len = uri_decode_form((char *)value.at, value.len);
        key.len = key_len < 0 ? 0 : (size_t)key_len;
        if (span_is(key, "guest-name"))
            field = &g->name;
        else if (span_is(key, "guest-remarks"))
            field = &g->remarks;
        if (key_len < 0 || len < 0)
            error = "The form holds a broken escape: % and no two hexadecimal digits.";
        else if (field && field->at)
            error = field == &g->name ? "The form holds the name twice."
                                      : "The form holds the remarks twice.";
        else if (field)
            *field = (struct span){value.at, unify_line_breaks((char *)value.at, (size_t)len)};
    }
    if (!error && (!g->name.at || !g->remarks.at))
        error = g->name.at ? "The form lacks the remarks." : "The form lacks the name.";
    g->name = g->name.at ? g->name : SPAN("");
    g->remarks = g->remarks.at ? g->remarks : SPAN("");
    return error;
}

/* Shortens a text to as many bytes as so many characters can have, or to a few less if one would be
 * cut in two. */
static bool shorten(struct span *text, int characters)
{
    size_t most = (size_t)characters * 4;
    if (text->len <= most)
        return false;
    while (most > 0 && (text->at[most] & 0xc0) == 0x80)
        most--;
    text->len = most;
    return true;
}

static bool is_blank(struct span text)
{
    while (text.len > 0 && isspace((unsigned char)text.at[0]))
        text = span_skip(text, 1);
    return text.len == 0;
}

/* Returns what the visitor has to correct, or NULL. */
static const char *check_entry(struct guestbook *g)
{
    long name = text_count_characters(g->name, false);
    long remarks = text_count_characters(g->remarks, true);
    const char *error = NULL;
    if (name < 0)
        error = "The name holds bytes that are not text (UTF-8), or control characters.";
    else if (remarks < 0)
        error = "The remarks hold bytes that are not text (UTF-8), or control characters.";
    else if (is_blank(g->name))
        error = "Please enter your name.";
    else if (is_blank(g->remarks))
        error = "Please write something into the remarks.";
    else if (name > GUESTBOOK_MAX_NAME)
        error = "The name is too long: at most 64 characters.";
    else if (remarks > GUESTBOOK_MAX_REMARKS)
        error = "The remarks are too long: at most 1000 characters.";
    /* Bytes that are not text are not shown again. */
    if (name < 0)
        g->name = SPAN("");
    if (remarks < 0)
        g->remarks = SPAN("");
    return error;
}

int guestbook_post(struct guestbook *g, const struct http_request *request, time_t now,
                   struct buffer *entry, struct redis_command *ask)
{
    static const char far_too_long[] =
        "What you typed is far too long: a name has at most 64 characters, and the remarks have at "
        "most 1000. The form holds only the beginning.";
    struct span type = http_field(request, "Content-Type");
    /* Parameters, such as a charset, are ignored: the type is defined without them. */
    if (!type.at || !span_is_nocase(span_trim(span_take_until(&type, ';')),
                                    "application/x-www-form-urlencoded"))
        return 415;
    g->page = 1;
    const char *broken = read_form(g, request->body);
    bool is_cut = shorten(&g->name, GUESTBOOK_MAX_NAME);
    is_cut = shorten(&g->remarks, GUESTBOOK_MAX_REMARKS) || is_cut;
    const char *wrong = check_entry(g); /* also clears a field that cannot be shown */
    g->error = is_cut ? far_too_long : broken ? broken : wrong;
    if (g->error)
        return 400;

    char when[TIME_SIZE + 1];
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
    buffer_append(entry, when, TIME_SIZE);
    buffer_append(entry, "\n", 1);
    buffer_append(entry, g->name.at, g->name.len);
    buffer_append(entry, "\n", 1);
    buffer_append(entry, g->remarks.at, g->remarks.len);

    g->step = GUESTBOOK_POSTING;
    *ask = (struct redis_command){
        .words = {SPAN("RPUSH"), SPAN(ENTRIES_KEY), {entry->bytes, entry->len}},
    };
    return 0;
}

/* ---- rendering ----------------------------------------------------------------------------- */

/* A page while it is rendered: its texts, and how many items its lists have. */
struct view {
    const struct guestbook *g;
    struct span server, page, newer_page, older_page, visitors, error, typed_name, typed_remarks;
    struct span name, remarks, time, day, clock; /* of the entry that is being shown */
    size_t counted, entries, is_signed, nobody, newer, older, errors;
};

#define AT(field) offsetof(struct view, field)

const struct template_name guestbook_names[] = {
    {"server", AT(server), 0, false},
    {"page", AT(page), 0, false},
    {"typed_name", AT(typed_name), 0, false},
    {"typed_remarks", AT(typed_remarks), 0, false},
    {"counted", AT(counted), 0, true}, /* one item if the visitor was counted */
    {"visitors", AT(visitors), AT(counted), false},
    {"entries", AT(entries), 0, true},
    {"remarks", AT(remarks), AT(entries), false},
    {"signed", AT(is_signed), AT(entries), true}, /* no item: another program has put it there */
    {"name", AT(name), AT(is_signed), false},
    {"time", AT(time), AT(is_signed), false},   /* 2026-11-21T02:45:37Z */
    {"day", AT(day), AT(is_signed), false},     /* 2026-11-21 */
    {"clock", AT(clock), AT(is_signed), false}, /* 02:45 */
    {"nobody", AT(nobody), 0, true},            /* one item if the page shows no entry */
    {"newer", AT(newer), 0, true},              /* one item if there is such a page */
    {"newer_page", AT(newer_page), AT(newer), false},
    {"older", AT(older), 0, true},
    {"older_page", AT(older_page), AT(older), false},
    {"errors", AT(errors), 0, true},
    {"error", AT(error), AT(errors), false},
    {NULL, 0, 0, false},
};

/* Does it have the form of 2026-11-21T02:45:37Z and a line end? This is asked of twenty entries for
 * each page. So the digits are not looked at: nobody has these seven in their places by accident.
 */
static bool is_time(const char *at)
{
    return at[4] == '-' && at[7] == '-' && at[10] == 'T' && at[13] == ':' && at[16] == ':' &&
           at[19] == 'Z' && at[20] == '\n';
}

/* Takes an entry apart. Newest first: the list is walked from its end. */
static void select_entry(struct view *view, size_t index)
{
    const redisReply *list = view->g->entries, *reply = list->element[list->elements - 1 - index];
    struct span entry = {reply->str, (size_t)reply->len};
    view->is_signed = 0;
    if (entry.len > TIME_SIZE && is_time(entry.at)) {
        struct span rest = span_skip(entry, TIME_SIZE + 1);
        view->name = span_take_until(&rest, '\n');
        view->remarks = rest;
        view->time = (struct span){entry.at, TIME_SIZE};
        view->day = (struct span){entry.at, 10}; /* of 2026-11-21T02:45:37Z */
        view->clock = (struct span){entry.at + 11, 5};
        view->is_signed = view->name.len > 0 && rest.at > view->name.at + view->name.len;
    }
    /* Otherwise another program has put it there. All of it is shown as remarks. */
    if (!view->is_signed)
        view->remarks = text_count_characters(entry, true) >= 0
                            ? entry
                            : SPAN("Another program has written this, and it is no text.");
}

static struct span text(void *view, int id)
{
    return *(const struct span *)(const void *)((const char *)view + id);
}

static bool item(void *view, int list, size_t index)
{
    bool is_there = index < *(const size_t *)(const void *)((const char *)view + list);
    if (is_there && list == AT(entries))
        select_entry(view, index);
    return is_there;
}

static struct span digits(long number, char text[24])
{
    snprintf(text, 24, "%ld", number);
    return span_of(text);
}

void guestbook_render(struct guestbook *g, const struct template *page, struct buffer *out)
{
    char this[24], newer[24], older[24];
    size_t count = g->entries ? g->entries->elements : 0; /* one more, if there is an older page */
    struct view view = {
        .g = g,
        .server = span_of(g->server),
        .page = digits(g->page, this),
        .visitors = span_of(g->visitors),
        .error = span_of(g->error ? g->error : ""),
        .typed_name = g->name,
        .typed_remarks = g->remarks,
        .counted = g->visitors[0] != '\0',
        .entries = count < GUESTBOOK_PAGE_ENTRIES ? count : GUESTBOOK_PAGE_ENTRIES,
        .nobody = g->entries && count == 0,
        .newer = g->page > 1,
        .older = count > GUESTBOOK_PAGE_ENTRIES,
        .errors = g->error != NULL,
    };
    if (view.newer)
        view.newer_page = digits(g->page - 1, newer);
    if (view.older)
        view.older_page = digits(g->page + 1, older);
    template_render(page, &(struct template_values){.text = text, .item = item, .data = &view},
                    out);
    g->entries = NULL; /* the reply belongs to the caller */
}
