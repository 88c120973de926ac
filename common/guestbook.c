#include "guestbook.h"

#include "text.h"

#include <stdio.h>
#include <string.h>

#define VISITORS_KEY "guestbook:visitors"
#define ENTRIES_KEY  "guestbook:entries"

enum { TIME_SIZE = sizeof("2026-11-21T02:45:37Z") - 1 };

/* The reply with a page's entries must be within the limits of redis.h. A character has up to four
 * bytes. */
_Static_assert(GUESTBOOK_PAGE_ENTRIES + 1 <= REDIS_MAX_ELEMENTS, "a page");
_Static_assert(TIME_SIZE + 2 + 4 * (GUESTBOOK_MAX_NAME + GUESTBOOK_MAX_REMARKS) <= REDIS_MAX_STRING,
               "an entry");

static struct redis_command command(int count, const char *const words[])
{
    struct redis_command c = {.count = count};
    for (int i = 0; i < count; i++) {
        c.words[i] = words[i];
        c.lens[i] = strlen(words[i]);
    }
    return c;
}

/* ---- the page: INCR, GET, LRANGE ----------------------------------------------------------- */

/* The commands of nearly every visit, and of one post in a hundred, once the list is full. Made at
 * start, read afterwards. */
static struct redis_command count_visitor, read_count, list_newest, trim_entries;

/* The newest entry is the last of the list. The command asks for one more than a page holds. If
 * that comes, there is an older page. */
static struct redis_command list_entries(long page, char first[24], char last[24])
{
    snprintf(first, 24, "%ld", -page * GUESTBOOK_PAGE_ENTRIES - 1);
    snprintf(last, 24, "%ld", -(page - 1) * GUESTBOOK_PAGE_ENTRIES - 1);
    return command(4, (const char *[]){"LRANGE", ENTRIES_KEY, first, last});
}

void guestbook_start(void)
{
    static char first[24], last[24], oldest_kept[24];
    count_visitor = command(2, (const char *[]){"INCR", VISITORS_KEY});
    read_count = command(2, (const char *[]){"GET", VISITORS_KEY});
    list_newest = list_entries(1, first, last);
    snprintf(oldest_kept, sizeof(oldest_kept), "%d", -GUESTBOOK_MAX_ENTRIES);
    trim_entries = command(4, (const char *[]){"LTRIM", ENTRIES_KEY, oldest_kept, "-1"});
    redis_prepare(&count_visitor);
    redis_prepare(&read_count);
    redis_prepare(&list_newest);
}

/* N of the first "page=N" in the query. 1 if there is none, 0 if N is not a positive number. */
static long page_number(struct span query)
{
    while (query.len > 0) {
        struct span value = span_take_until(&query, '&');
        struct span key = span_take_until(&value, '=');
        uint64_t page;
        if (!span_is(key, "page") || value.at == key.at + key.len)
            continue; /* another field, or no "=" */
        if (!span_take_number(&value, &page) || value.len > 0)
            return 0;
        return page < GUESTBOOK_MAX_PAGE ? (long)page : GUESTBOOK_MAX_PAGE;
    }
    return 1;
}

int guestbook_view(struct guestbook *g, struct span query, struct redis_command *ask)
{
    g->page = page_number(query);
    if (g->page < 1)
        return 400;
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
        long key_len = http_decode_form((char *)key.at, key.len);
        long len = http_decode_form((char *)value.at, value.len);
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
    else if (text_is_blank(g->name))
        error = "Please enter your name.";
    else if (text_is_blank(g->remarks))
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

/* A text that is far too long is not shown again to its end. Escaped, it would be six times as
 * large as the request. The cut is in front of a whole UTF-8 character. */
static void shorten(struct span *text)
{
    if (text->len <= GUESTBOOK_MAX_SHOWN)
        return;
    text->len = GUESTBOOK_MAX_SHOWN;
    while (text->len > 0 && (text->at[text->len] & 0xc0) == 0x80)
        text->len--;
}

int guestbook_post(struct guestbook *g, const struct http_request *request, time_t now,
                   struct buffer *entry, struct redis_command *ask)
{
    struct span type = http_field(request, "Content-Type");
    /* Parameters, such as a charset, are ignored: the type is defined without them. */
    if (!type.at || !span_is_nocase(span_trim(span_take_until(&type, ';')),
                                    "application/x-www-form-urlencoded"))
        return 415;
    g->page = 1;
    const char *broken = read_form(g, request->body);
    const char *wrong = check_entry(g); /* also clears a field that cannot be shown */
    g->error = broken ? broken : wrong;
    if (g->error) {
        shorten(&g->name);
        shorten(&g->remarks);
        return 400;
    }

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
        .count = 3,
        .words = {"RPUSH", ENTRIES_KEY, entry->bytes},
        .lens = {strlen("RPUSH"), strlen(ENTRIES_KEY), entry->len},
    };
    return 0;
}

/* ---- rendering ----------------------------------------------------------------------------- */

enum {
    SERVER = 1,
    VISITORS,
    PAGE,
    TYPED_NAME,
    TYPED_REMARKS,
    ENTRIES,
    ENTRY_NAME,
    ENTRY_REMARKS,
    ENTRY_TIME,
    ENTRY_DAY,
    ENTRY_CLOCK,
    NOBODY,
    NEWER,
    NEWER_PAGE,
    OLDER,
    OLDER_PAGE,
    ERRORS,
    ERROR,
    COUNTED,
};

const struct template_name guestbook_names[] = {
    {"server", SERVER, 0, false},
    {"page", PAGE, 0, false},
    {"typed_name", TYPED_NAME, 0, false},
    {"typed_remarks", TYPED_REMARKS, 0, false},
    {"counted", COUNTED, 0, true}, /* one item if the visitor was counted */
    {"visitors", VISITORS, COUNTED, false},
    {"entries", ENTRIES, 0, true},
    {"name", ENTRY_NAME, ENTRIES, false},
    {"remarks", ENTRY_REMARKS, ENTRIES, false},
    {"time", ENTRY_TIME, ENTRIES, false},   /* 2026-11-21T02:45:37Z */
    {"day", ENTRY_DAY, ENTRIES, false},     /* 2026-11-21 */
    {"clock", ENTRY_CLOCK, ENTRIES, false}, /* 02:45 */
    {"nobody", NOBODY, 0, true},            /* one item if the page shows no entry */
    {"newer", NEWER, 0, true},              /* one item if there is such a page */
    {"newer_page", NEWER_PAGE, NEWER, false},
    {"older", OLDER, 0, true},
    {"older_page", OLDER_PAGE, OLDER, false},
    {"errors", ERRORS, 0, true},
    {"error", ERROR, ERRORS, false},
    {NULL, 0, 0, false},
};

static struct span page_link(struct guestbook *g, long page)
{
    snprintf(g->number, sizeof(g->number), "%ld", page);
    return span_of(g->number);
}

static struct span text(void *data, int id)
{
    struct guestbook *g = data;
    switch (id) {
    case SERVER:
        return span_of(g->server);
    case VISITORS:
        return span_of(g->visitors);
    case PAGE:
        return page_link(g, g->page);
    case NEWER_PAGE:
        return page_link(g, g->page - 1);
    case OLDER_PAGE:
        return page_link(g, g->page + 1);
    case TYPED_NAME:
        return g->name;
    case TYPED_REMARKS:
        return g->remarks;
    case ENTRY_NAME:
        return g->entry_name;
    case ENTRY_REMARKS:
        return g->entry_remarks;
    case ENTRY_TIME:
        return g->entry_time;
    case ENTRY_DAY: /* the first ten of 2026-11-21T02:45:37Z; none for an entry without a time */
        return (struct span){g->entry_time.at, g->entry_time.len ? 10 : 0};
    case ENTRY_CLOCK:
        return g->entry_time.len ? (struct span){g->entry_time.at + 11, 5} : g->entry_time;
    case ERROR:
        return span_of(g->error);
    default:
        return (struct span){0};
    }
}

/* How many entries the reply brought, without the one of the older page. */
static size_t entry_count(const struct guestbook *g)
{
    size_t count = g->entries ? g->entries->elements : 0;
    return count > GUESTBOOK_PAGE_ENTRIES ? GUESTBOOK_PAGE_ENTRIES : count;
}

/* Selects an entry, and takes it apart. Newest first: the list is walked from its end. */
static bool select_entry(struct guestbook *g, size_t index)
{
    if (index >= entry_count(g))
        return false;
    const redisReply *reply = g->entries->element[g->entries->elements - 1 - index];
    struct span entry = {reply->str, (size_t)reply->len};
    /* If another program has put it there, in another form, all of it is shown as remarks. */
    g->entry_time = g->entry_name = (struct span){0};
    g->entry_remarks = entry;
    if (entry.len <= TIME_SIZE || entry.at[TIME_SIZE] != '\n')
        return true;
    struct span rest = span_skip(entry, TIME_SIZE + 1), name = span_take_until(&rest, '\n');
    if (rest.at > name.at + name.len) { /* behind a line end */
        g->entry_time = (struct span){entry.at, TIME_SIZE};
        g->entry_name = name;
        g->entry_remarks = rest;
    }
    return true;
}

static bool item(void *data, int list, size_t index)
{
    struct guestbook *g = data;
    if (list == ENTRIES)
        return select_entry(g, index);
    if (index > 0)
        return false;
    switch (list) {
    case COUNTED:
        return g->visitors[0] != '\0';
    case NOBODY:
        return g->entries && entry_count(g) == 0;
    case NEWER:
        return g->page > 1;
    case OLDER:
        return g->entries && g->entries->elements > GUESTBOOK_PAGE_ENTRIES;
    case ERRORS:
        return g->error != NULL;
    default:
        return false;
    }
}

void guestbook_render(struct guestbook *g, const struct compiled *page, struct buffer *out)
{
    template_render(page, &(struct template_values){.text = text, .item = item, .data = g}, out);
    g->entries = NULL; /* the reply belongs to the caller */
}
