/* json: reads a text as RFC 8259 has it, strictly, and lists what is in it: each value that is no
 * list with the names that lead to it, "slots.0.by_state.idle", in the order they stand in.
 */
#ifndef JSON_H
#define JSON_H

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_MOST = 4096, JSON_PATH = 128, JSON_VALUE = 256, JSON_DEPTH = 8 };

struct json_value {
    char path[JSON_PATH];
    char text[JSON_VALUE]; /* of a string: without quotes, \u0000 to \u00ff as one byte */
};

struct json {
    const char *at;
    bool failed; /* at `at` */
    int depth, count;
    char path[JSON_PATH];
    struct json_value values[JSON_MOST];
};

static inline bool json_fail(struct json *j)
{
    j->failed = true;
    return false;
}

static inline void json_skip_space(struct json *j)
{
    while (*j->at && strchr(" \t\r\n", *j->at))
        j->at++;
}

static inline bool json_take(struct json *j, char c)
{
    json_skip_space(j);
    if (*j->at != c)
        return false;
    j->at++;
    return true;
}

static inline bool json_escape(struct json *j, char *c)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *letter = *j->at ? strchr(letters, *j->at) : NULL;
    unsigned code;
    int n = 0;
    if (letter) {
        *c = meant[letter - letters];
        j->at++;
        return true;
    }
    if (sscanf(j->at, "u%4x%n", &code, &n) != 1 || n != 5 || code > 0xff)
        return json_fail(j);
    *c = (char)code;
    j->at += n;
    return true;
}

static inline bool json_string(struct json *j, char *text, size_t size)
{
    size_t len = 0;
    if (!json_take(j, '"'))
        return json_fail(j);
    while (*j->at != '"') {
        char c = *j->at++;
        if ((unsigned char)c < ' ' || (unsigned char)c > '~' || len + 1 == size)
            return json_fail(j); /* what we write is ASCII */
        if (c == '\\' && !json_escape(j, &c))
            return false;
        text[len++] = c;
    }
    text[len] = '\0';
    j->at++;
    return true;
}

/* A whole number, as all of ours are, or null. */
static inline bool json_plain(struct json *j, char *text)
{
    size_t len = strspn(j->at, "0123456789");
    if (strncmp(j->at, "null", 4) == 0)
        len = 4;
    if (len == 0 || len >= 21 || (len > 1 && *j->at == '0') || isalnum((unsigned char)j->at[len]))
        return json_fail(j);
    memcpy(text, j->at, len);
    text[len] = '\0';
    j->at += len;
    return true;
}

static inline bool json_any(struct json *j);

static inline bool json_member(struct json *j, bool named, int index)
{
    size_t before = strlen(j->path);
    char name[JSON_PATH];
    if (named && (!json_string(j, name, sizeof(name)) || !json_take(j, ':')))
        return json_fail(j);
    if (!named)
        snprintf(name, sizeof(name), "%d", index);
    size_t len = strlen(name);
    if (before + 1 + len + 1 > sizeof(j->path))
        return json_fail(j);
    size_t at = before;
    if (at > 0)
        j->path[at++] = '.';
    memcpy(j->path + at, name, len + 1);
    bool done = json_any(j);
    j->path[before] = '\0';
    return done;
}

static inline bool json_list(struct json *j, bool named)
{
    char end = named ? '}' : ']';
    if (++j->depth > JSON_DEPTH)
        return json_fail(j);
    if (!json_take(j, end)) {
        int index = 0;
        do
            if (!json_member(j, named, index++))
                return false;
        while (json_take(j, ','));
        if (!json_take(j, end))
            return json_fail(j);
    }
    j->depth--;
    return true;
}

static inline bool json_any(struct json *j)
{
    if (json_take(j, '{'))
        return json_list(j, true);
    if (json_take(j, '['))
        return json_list(j, false);
    if (j->count == JSON_MOST)
        return json_fail(j);
    struct json_value *value = &j->values[j->count++];
    memcpy(value->path, j->path, sizeof(value->path));
    return *j->at == '"' ? json_string(j, value->text, sizeof(value->text))
                         : json_plain(j, value->text);
}

/* False: at j->at it is no JSON, or not such as ours. */
static inline bool json_read(struct json *j, const char *text)
{
    memset(j, 0, offsetof(struct json, values));
    j->at = text;
    if (!json_any(j))
        return false;
    json_skip_space(j);
    return *j->at == '\0' || json_fail(j);
}

/* NULL: there is none. */
static inline const char *json_text(const struct json *j, const char *path)
{
    for (int i = 0; i < j->count; i++)
        if (strcmp(j->values[i].path, path) == 0)
            return j->values[i].text;
    return NULL;
}

/* -1: there is none, or it is no number. */
static inline long long json_number(const struct json *j, const char *path)
{
    const char *text = json_text(j, path);
    return text && isdigit((unsigned char)text[0]) ? atoll(text) : -1;
}

#endif
