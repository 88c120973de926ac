/* The fields of /status.json in their order, as status.h documents them. */
#ifndef STATUS_FIELDS_H
#define STATUS_FIELDS_H

static const char *const head_fields[] = {
    "server",
    "version",
    "architecture",
    "pid",
    "uptime_ms",
    "workers_most",
    "requests",
    "connections",
    "responses.2xx",
    "responses.3xx",
    "responses.4xx",
    "responses.5xx",
    "now.fresh",
    "now.idle",
    "now.reading",
    "now.asking",
    "now.writing",
    "now.lingering",
    "cpu_ms.user",
    "cpu_ms.system",
    "switches.voluntary",
    "switches.involuntary",
    "processes",
    "threads",
    "pss_kib",
    "descriptors",
};

/* Of each slot. */
static const char *const slot_fields[] = {
    "slot",
    "id",
    "state",
    "request",
    "since_ms",
    "requests",
    "connections",
    "by_state.fresh",
    "by_state.idle",
    "by_state.reading",
    "by_state.asking",
    "by_state.writing",
    "by_state.lingering",
};

enum {
    HEAD_FIELDS = sizeof(head_fields) / sizeof(head_fields[0]),
    SLOT_FIELDS = sizeof(slot_fields) / sizeof(slot_fields[0]),
};

#endif
