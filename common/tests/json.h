/* json: looks a name up in what /status.json says, such as "now.fresh" or "slots.0.state". Whether
 * all of it is JSON is not asked here: a browser reads it in clients/wall.py. */
#ifndef JSON_H
#define JSON_H

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value, a string without its quotation marks, which nobody frees; NULL: there is none. */
static inline const char *json_text(const char *at, const char *path)
{
    char name[64];
    for (size_t len; at && *path; path += len + (path[len] == '.')) {
        len = strcspn(path, ".");
        snprintf(name, sizeof(name), "\"%.*s\":", (int)len, path);
        if (strspn(path, "0123456789") < len)
            at = (at = strstr(at, name)) ? at + strlen(name) : NULL;
        else /* a member of an array of objects */
            for (int i = atoi(path); at && i >= 0; i--)
                at = (at = strchr(at, '{')) ? at + 1 : NULL;
    }
    if (!at)
        return NULL;
    at += strspn(at, " ");
    return *at == '"' ? strndup(at + 1, strcspn(at + 1, "\"")) : strndup(at, strcspn(at, ",}\n"));
}

/* -1: there is none, or it is no number. */
static inline long long json_number(const char *json, const char *path)
{
    const char *text = json_text(json, path);
    return text && isdigit((unsigned char)text[0]) ? atoll(text) : -1;
}

#endif
