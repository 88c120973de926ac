/* status_fields: every field of the status, once. /status.json (RFC 8259) and the page name and
 * order them as this table does. The page's script looks for the same names in the JSON. */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A field's id: how it is written, and where it is in struct status. */
enum {
    KIND = 1 << 16,
    STRING = KIND,       /* a pointer */
    STATE = 2 * KIND,    /* an enum status_state */
    REQUEST = 3 * KIND,  /* bytes that a client has sent */
    NUMBER = 4 * KIND,   /* a uint64_t */
    DURATION = 5 * KIND, /* a uint64_t of ms, which the page shows in words */
    LOOP = 6 * KIND,
    NO_LOOP,
    SLOTS,
};
_Static_assert(sizeof(struct status) < KIND, "a place in it is less than a kind");

#define FIELD(name, kind, member)                                                                  \
    {                                                                                              \
        name, kind + (int)offsetof(struct status, member), 0, false                                \
    }
#define SLOT(name, kind, member)                                                                   \
    {                                                                                              \
        "slots." name, kind + (int)offsetof(struct status, shown.member), SLOTS, false             \
    }

const struct template_name status_names[] = {
    FIELD("server", STRING, server),
    FIELD("version", STRING, version),
    FIELD("architecture", STRING, architecture),
    FIELD("pid", NUMBER, pid),
    FIELD("uptime_ms", DURATION, uptime_ms),
    FIELD("workers_most", NUMBER, workers_most),
    FIELD("requests", NUMBER, requests),
    FIELD("connections", NUMBER, connections),
    FIELD("responses.2xx", NUMBER, responses[0]),
    FIELD("responses.3xx", NUMBER, responses[1]),
    FIELD("responses.4xx", NUMBER, responses[2]),
    FIELD("responses.5xx", NUMBER, responses[3]),
    FIELD("now.fresh", NUMBER, now[STATUS_FRESH]),
    FIELD("now.idle", NUMBER, now[STATUS_IDLE]),
    FIELD("now.reading", NUMBER, now[STATUS_READING]),
    FIELD("now.asking", NUMBER, now[STATUS_ASKING]),
    FIELD("now.writing", NUMBER, now[STATUS_WRITING]),
    FIELD("now.lingering", NUMBER, now[STATUS_LINGERING]),
    FIELD("cpu_ms.user", NUMBER, cpu_user_ms),
    FIELD("cpu_ms.system", NUMBER, cpu_system_ms),
    FIELD("switches.voluntary", NUMBER, voluntary),
    FIELD("switches.involuntary", NUMBER, involuntary),
    FIELD("processes", NUMBER, processes),
    FIELD("threads", NUMBER, threads),
    FIELD("pss_kib", NUMBER, pss_kib),
    FIELD("descriptors", NUMBER, descriptors),
    {"slots", SLOTS, 0, true},
    SLOT("slot", NUMBER, slot),
    SLOT("id", NUMBER, id),
    SLOT("state", STATE, state),
    SLOT("request", REQUEST, request),
    SLOT("since_ms", DURATION, since_ms),
    SLOT("requests", NUMBER, requests),
    SLOT("connections", NUMBER, connections),
    SLOT("by_state.fresh", NUMBER, by_state[STATUS_FRESH]),
    SLOT("by_state.idle", NUMBER, by_state[STATUS_IDLE]),
    SLOT("by_state.reading", NUMBER, by_state[STATUS_READING]),
    SLOT("by_state.asking", NUMBER, by_state[STATUS_ASKING]),
    SLOT("by_state.writing", NUMBER, by_state[STATUS_WRITING]),
    SLOT("by_state.lingering", NUMBER, by_state[STATUS_LINGERING]),
    /* The rest is the page's only. A program that reads the JSON can count the slots itself. */
    FIELD("slots.length", NUMBER, workers),
    FIELD("waiting", NUMBER, waiting),
    {"loop", LOOP, 0, true}, /* one item for an event loop, none for others; the opposite: */
    {"no_loop", NO_LOOP, 0, true},
    {NULL, 0, 0, false},
};

static const char *const states[] = {
    [STATUS_FRESH] = "fresh",     [STATUS_IDLE] = "idle",       [STATUS_READING] = "reading",
    [STATUS_ASKING] = "asking",   [STATUS_WRITING] = "writing", [STATUS_LINGERING] = "lingering",
    [STATUS_WAITING] = "waiting", [STATUS_LOOP] = "loop",
};

/* A field as a string; NULL for a number, which is then in *number. */
static const char *read_field(const struct status *status, int id, unsigned long long *number)
{
    const void *at = (const char *)status + id % KIND;
    switch (id - id % KIND) {
    case STRING:
        return *(const char *const *)at;
    case STATE:
        return states[*(const enum status_state *)at];
    case REQUEST:
        return at;
    default:
        *number = *(const uint64_t *)at;
        return NULL;
    }
}

/* ---- the page ------------------------------------------------------------------------------ */

static void write_duration(unsigned long long ms, char *text, size_t size)
{
    unsigned long long s = ms / 1000, min = s / 60, h = min / 60;
    if (ms == STATUS_NO_TIME)
        text[0] = '\0';
    else if (h > 0)
        snprintf(text, size, "%llu h %llu min %llu s", h, min % 60, s % 60);
    else if (min > 0)
        snprintf(text, size, "%llu min %llu s", min, s % 60);
    else if (s > 0)
        snprintf(text, size, "%llu s", s);
    else
        snprintf(text, size, "%llu ms", ms);
}

static struct span text(void *data, int id)
{
    struct status *status = data;
    unsigned long long number = 0;
    const char *string = read_field(status, id, &number);
    switch (id - id % KIND) {
    case NUMBER:
        snprintf(status->text, sizeof(status->text), "%llu", number);
        break;
    case DURATION:
        write_duration(number, status->text, sizeof(status->text));
        break;
    case REQUEST:
        /* Refused requests are shown too, and may hold any byte. A terminal would obey some of
         * them, as when somebody looks at the page with curl, and others are no UTF-8. */
        text_escape(string, strlen(string), status->text, sizeof(status->text));
        break;
    default:
        return span_of(string);
    }
    return span_of(status->text);
}

static bool item(void *data, int list, size_t index)
{
    struct status *status = data;
    bool is_loop = status->workers > 0 && status->slots[0].state == STATUS_LOOP;
    if (list != SLOTS)
        return index == 0 && (list == LOOP) == is_loop;
    if (index < status->workers)
        status->shown = status->slots[index];
    return index < status->workers;
}

void status_render(struct status *status, const struct compiled *page, struct buffer *out)
{
    template_render(page, &(struct template_values){.text = text, .item = item, .data = status},
                    out);
}

/* ---- the JSON ------------------------------------------------------------------------------ */

/* The result must fit in 256 bytes. */
__attribute__((format(printf, 2, 3))) static void put(struct buffer *out, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    buffer_append(out, text, (size_t)len);
}

static void put_value(struct buffer *out, const struct status *status, int id)
{
    unsigned long long number = 0;
    const char *string = read_field(status, id, &number);
    if (!string && number == STATUS_NO_TIME)
        put(out, "null");
    else if (!string)
        put(out, "%llu", number);
    if (!string)
        return;
    /* In ASCII, whatever bytes the string holds. So the result is always UTF-8. */
    put(out, "\"");
    for (; *string; string++) {
        unsigned char byte = (unsigned char)*string;
        if (byte == '"' || byte == '\\')
            put(out, "\\%c", byte);
        else if (byte < ' ' || byte > '~')
            put(out, "\\u%04x", byte);
        else
            buffer_append(out, string, 1);
    }
    put(out, "\"");
}

/* Writes the fields that are in the same list as `row`, from there on, as members of an object.
 * The fields "a.b" and "a.c" become the members of an object "a". Returns the row behind them. */
static const struct template_name *put_fields(struct buffer *out, const struct status *status,
                                              const struct template_name *row, size_t prefix,
                                              const char *separator)
{
    const struct template_name *first = row;
    const char *object = ""; /* "a.", or "" */
    int len = 0;
    for (; row->in == first->in && !row->is_list; row++) {
        const char *name = row->name + prefix, *dot = strchr(name, '.');
        if (len > 0 && strncmp(name, object, (size_t)len) == 0) {
            put(out, ", ");
        } else {
            put(out, "%s%s", len > 0 ? "}" : "", row > first ? separator : "");
            object = name;
            len = dot ? (int)(dot + 1 - name) : 0;
            if (len > 0)
                put(out, "\"%.*s\": {", len - 1, object);
        }
        put(out, "\"%s\": ", name + len);
        put_value(out, status, row->id);
    }
    put(out, "%s", len > 0 ? "}" : "");
    return row;
}

void status_write_json(struct status *status, struct buffer *out)
{
    put(out, "{\n ");
    const struct template_name *slots = put_fields(out, status, status_names, 0, ",\n ");
    put(out, ",\n \"%s\": [\n", slots->name);
    for (size_t i = 0; i < status->workers; i++) {
        status->shown = status->slots[i];
        put(out, "  {");
        put_fields(out, status, slots + 1, strlen("slots."), ", ");
        put(out, i + 1 < status->workers ? "},\n" : "}\n");
    }
    put(out, " ]\n}\n");
}
