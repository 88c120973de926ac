/* status_json: /status.json (RFC 8259). */
#include "options.h"
#include "status.h"

#include <stdarg.h>
#include <stdio.h>

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

/* Writes a string in ASCII, whatever bytes it holds. So the result is always UTF-8. */
static void put_string(struct buffer *out, const char *text)
{
    buffer_append(out, "\"", 1);
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\')
            put(out, "\\%c", byte);
        else if (byte < ' ' || byte > '~')
            put(out, "\\u%04x", byte);
        else
            buffer_append(out, text, 1);
    }
    buffer_append(out, "\"", 1);
}

/* Counts with their names, as an object. */
static void put_counts(struct buffer *out, const char *const names[], const uint64_t counts[],
                       int many)
{
    for (int i = 0; i < many; i++)
        put(out, "%s\"%s\": %llu", i == 0 ? "{" : ", ", names[i], (unsigned long long)counts[i]);
    put(out, "}");
}

static void put_slot(struct buffer *out, const struct status_slot *s)
{
    put(out, "  {\"slot\": %llu, \"id\": %llu, \"state\": \"%s\", \"request\": ",
        (unsigned long long)s->slot, (unsigned long long)s->id, status_state_names[s->state]);
    put_string(out, s->request);
    if (s->state == STATUS_LOOP)
        put(out, ", \"since_ms\": null");
    else
        put(out, ", \"since_ms\": %llu", (unsigned long long)s->since_ms);
    put(out, ", \"requests\": %llu, \"connections\": %llu, \"by_state\": ",
        (unsigned long long)s->requests, (unsigned long long)s->connections);
    put_counts(out, status_state_names, s->by_state, STATUS_CONNECTION_STATES);
    put(out, "}");
}

static void put_name(struct buffer *out, const char *name, const char *value)
{
    put(out, " \"%s\": ", name);
    put_string(out, value);
    put(out, ",\n");
}

static void put_number(struct buffer *out, const char *name, uint64_t value)
{
    put(out, " \"%s\": %llu,\n", name, (unsigned long long)value);
}

static void put_object(struct buffer *out, const char *name, const char *const names[],
                       const uint64_t counts[], int many)
{
    put(out, " \"%s\": ", name);
    put_counts(out, names, counts, many);
    put(out, ",\n");
}

static void put_slots(struct buffer *out, const struct status *status)
{
    put(out, " \"slots\": [\n");
    for (size_t i = 0; i < status->workers; i++) {
        put_slot(out, &status->slots[i]);
        put(out, i + 1 < status->workers ? ",\n" : "\n");
    }
    put(out, " ]\n");
}

void status_write_json(const struct status *status, struct buffer *out)
{
    static const char *const classes[] = {"2xx", "3xx", "4xx", "5xx"};
    static const char *const modes[] = {"user", "system"};
    static const char *const reasons[] = {"voluntary", "involuntary"};
    const uint64_t cpu_ms[] = {status->cpu_user_ms, status->cpu_system_ms};
    const uint64_t switches[] = {status->voluntary, status->involuntary};
    put(out, "{\n");
    put_name(out, "server", status->server);
    put_name(out, "version", ZEROHTTPD_VERSION);
    put_name(out, "architecture", status->architecture);
    put_number(out, "pid", status->pid);
    put_number(out, "uptime_ms", status->uptime_ms);
    put_number(out, "workers_most", status->workers_most);
    put_number(out, "requests", status->requests);
    put_number(out, "connections", status->connections);
    put_object(out, "responses", classes, status->responses, BOARD_CLASSES);
    put_object(out, "now", status_state_names, status->now, STATUS_CONNECTION_STATES);
    put_object(out, "cpu_ms", modes, cpu_ms, 2);
    put_object(out, "switches", reasons, switches, 2);
    put_number(out, "processes", status->processes);
    put_number(out, "threads", status->threads);
    put_number(out, "pss_kib", status->pss_kib);
    put_number(out, "descriptors", status->descriptors);
    put_slots(out, status);
    put(out, "}\n");
}
