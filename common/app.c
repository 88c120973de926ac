#include "app.h"

#include "clock.h"
#include "explain.h"
#include "net.h"
#include "options.h"
#include "origin.h"
#include "process.h"
#include "status.h"
#include "template.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- what all requests share: set at start, read afterwards -------------------------------- */

static const char *name;    /* "epoll" */
static int work_us;         /* of --work */
static bool status_for_all; /* of --status */
static char server[64];     /* "ZeroHTTPd/1.1.0 (epoll)" */

const char *app_server(void)
{
    return server;
}

enum { CODE = 1, REASON, EXPLANATION, SERVER };

static const struct template_name error_names[] = {
    {"code", CODE, 0, false},
    {"reason", REASON, 0, false},
    {"explanation", EXPLANATION, 0, false},
    {"server", SERVER, 0, false},
    {NULL, 0, 0, false},
};

static struct template guestbook_template = {
    .file = "templates/guestbook/index.html",
    .names = guestbook_names,
    .lock = PTHREAD_RWLOCK_INITIALIZER,
};
static struct template error_template = {
    .file = "templates/error/index.html",
    .names = error_names,
    .lock = PTHREAD_RWLOCK_INITIALIZER,
};
static struct template status_template = {
    .file = "templates/status/index.html",
    .names = status_names,
    .lock = PTHREAD_RWLOCK_INITIALIZER,
};

static struct template *const templates[] = {
    &guestbook_template,
    &error_template,
    &status_template,
};
enum { TEMPLATES = sizeof(templates) / sizeof(templates[0]) };

/* Our pages run no script but our own files, fetch nothing from another host, and are shown in no
 * frame of another page. */
#define NOSNIFF "X-Content-Type-Options: nosniff\r\n"
#define SAFE_FIELDS_AND(more)                                                                      \
    NOSNIFF                                                                                        \
    "Content-Security-Policy: default-src 'self'; base-uri 'none'; form-action 'self'; "           \
    "frame-ancestors 'none'" more "\r\n"
#define SAFE_FIELDS SAFE_FIELDS_AND("")
/* The wall's script fetches the status of the other six servers. They are other origins: other
 * ports of this machine, under the name that the wall was fetched by. (A policy cannot name
 * [::1].) With --status all, that name may be any address of the machine, and a policy cannot list
 * them all. */
#define WALL_FIELDS      SAFE_FIELDS_AND("; connect-src 'self' http://127.0.0.1:* http://localhost:*")
#define OPEN_WALL_FIELDS SAFE_FIELDS_AND("; connect-src 'self' http:")
#define ANY_ORIGIN       "Access-Control-Allow-Origin: *\r\n"
#define NOT_KEPT         "Cache-Control: no-store\r\n"
#define RETRY_AFTER      "Retry-After: 1\r\n"
#define OF_FILES         "Accept-Ranges: bytes\r\nCache-Control: no-cache\r\n" /* ask each time */

/* The fields of files in HTML. */
static const char *const safe_fields = SAFE_FIELDS OF_FILES;
static const char *wall_fields = WALL_FIELDS OF_FILES;

void app_start(const struct options *o)
{
    name = o->name;
    work_us = o->work_us;
    status_for_all = o->status_for_all;
    if (status_for_all)
        wall_fields = OPEN_WALL_FIELDS OF_FILES;
    snprintf(server, sizeof(server), "ZeroHTTPd/%s (%s)", ZEROHTTPD_VERSION, name);
    int root = open(o->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        process_die(name, "--root %s: %s", o->root, strerror(errno));
    if (!files_open_root(root, "public"))
        process_die(name, "public: %s; start it where public/ is, or use --root", strerror(errno));
    guestbook_start();
    for (size_t i = 0; i < TEMPLATES; i++)
        template_load(templates[i], root, name);
    tzset(); /* reads /etc/localtime, as each child's first gmtime_r() would do otherwise */
}

void app_check_templates(void)
{
    for (size_t i = 0; i < TEMPLATES; i++)
        template_check(templates[i]);
}

/* The first route whose path and method match gives the answer. A new page is a new row. */
struct route {
    const char *path; /* NULL: any */
    unsigned methods;
    enum effect (*request)(struct app *, const struct http_request *, const char *path);
    enum effect (*reply)(struct app *, const redisReply *, int why); /* to app.ask; NULL: none */
    const char *const *html_fields;                                  /* of a file that is HTML */
};

/* ---- answers ------------------------------------------------------------------------------- */

static const char html[] = "text/html; charset=utf-8";

static struct span error_text(void *values, int id)
{
    return ((const struct span *)values)[id];
}

/* Responds with the rendered page, or without content if there was no memory for it. */
static enum effect respond_page(struct app *app, int status)
{
    status = app->buffer.failed ? 503 : status;
    app->response.status = status;
    app->response.type = html;
    app->response.fields = status == 503 ? SAFE_FIELDS NOT_KEPT RETRY_AFTER : SAFE_FIELDS NOT_KEPT;
    if (!app->buffer.failed)
        app->content = (struct span){app->buffer.bytes, app->buffer.len};
    return RESPOND;
}

static enum effect respond_because(struct app *app, int status, const char *explanation)
{
    char code[16];
    snprintf(code, sizeof(code), "%d", status);
    struct span values[] = {
        [CODE] = span_of(code),
        [REASON] = span_of(http_reason(status)),
        [EXPLANATION] = span_of(explanation),
        [SERVER] = span_of(name),
    };
    app->buffer.len = 0;
    template_render(template_acquire(&error_template),
                    &(struct template_values){.text = error_text, .data = values}, &app->buffer);
    template_release(&error_template);
    return respond_page(app, status);
}

static enum effect respond_error(struct app *app, int status)
{
    return respond_because(app, status, explain_status(status));
}

/* Redirects the client. The address is kept in app.buffer; there is no content. */
static enum effect respond_location(struct app *app, int status)
{
    buffer_append(&app->buffer, "", 1); /* its NUL */
    if (app->buffer.failed)
        return respond_page(app, 503);
    app->response.status = status;
    app->response.location = app->buffer.bytes;
    return RESPOND;
}

/* ---- the guestbook ------------------------------------------------------------------------- */

static enum effect guestbook_page(struct app *app, int status)
{
    app->guestbook.server = name;
    app->buffer.len = 0;
    guestbook_render(&app->guestbook, template_acquire(&guestbook_template), &app->buffer);
    template_release(&guestbook_template);
    return respond_page(app, status);
}

static enum effect view_guestbook(struct app *app, const struct http_request *request,
                                  const char *path)
{
    (void)path;
    int refused = guestbook_view(&app->guestbook, request->query, &app->ask);
    return refused ? respond_error(app, refused) : ASK_REDIS;
}

static enum effect post_guestbook(struct app *app, const struct http_request *request,
                                  const char *path)
{
    (void)path;
    int refused = guestbook_post(&app->guestbook, request, time(NULL), &app->buffer, &app->ask);
    if (refused == 400)
        return guestbook_page(app, 400);
    if (refused || app->buffer.failed)
        return respond_error(app, refused ? refused : 503);
    return ASK_REDIS;
}

static enum effect answer_guestbook(struct app *app, const redisReply *reply, int why)
{
    char text[EXPLAIN_SIZE];
    /* If only LTRIM failed, the entry is stored. A visitor told otherwise would post it again. */
    bool is_stored = app->guestbook.step == GUESTBOOK_TRIMMING;
    if (!reply && !is_stored) {
        if (why == REDIS_NOT_ADMITTED)
            return respond_because(app, 503, explain_not_admitted);
        if (why == REDIS_NOT_READY)
            return respond_because(app, 503, explain_not_ready);
        return respond_error(app, why == REDIS_NO_REPLY ? 504 : 503);
    }
    int status = reply ? guestbook_reply(&app->guestbook, reply, &app->ask) : 303;
    switch (status) {
    case 0:
        return ASK_REDIS;
    case 200:
        clock_burn_cpu(work_us);
        return guestbook_page(app, 200);
    case 303:
        app->buffer.len = 0;
        buffer_append(&app->buffer, "/guestbook", strlen("/guestbook"));
        return respond_location(app, 303);
    default:
        if (reply->type != REDIS_REPLY_ERROR)
            return respond_error(app, status);
        explain_redis_error(reply->str, app->guestbook.step == GUESTBOOK_POSTING, text);
        return respond_because(app, status, text);
    }
}

/* ---- files --------------------------------------------------------------------------------- */

/* Redirects to the same folder with its slash. The address is made from the decoded path, because a
 * client's own "//elsewhere" would name another host. */
static enum effect respond_folder(struct app *app, const struct http_request *request,
                                  const char *path)
{
    struct buffer *address = &app->buffer;
    if (buffer_reserve(address, 3 * strlen(path) + 1))
        address->len = http_encode(span_of(path), false, address->bytes);
    buffer_append(address, "/", 1);
    if (request->query.at) {
        buffer_append(address, "?", 1);
        if (buffer_reserve(address, 3 * request->query.len + 1))
            address->len += http_encode(request->query, true, address->bytes + address->len);
    }
    return respond_location(app, 301);
}

static enum effect send_file(struct app *app, const struct http_request *request, const char *path)
{
    int status = files_load(path, &app->file, &app->buffer);
    if (status == 301)
        return respond_folder(app, request, path);
    if (status != 200)
        return respond_error(app, status);

    status = files_apply_conditions(&app->file, request);
    if (status == 412 || status == 416)
        respond_error(app, status);
    files_respond(&app->file, status, &app->buffer, &app->response, &app->content);
    bool is_html = app->response.type && strcmp(app->response.type, html) == 0;
    app->response.fields = is_html ? *app->route->html_fields : NOSNIFF OF_FILES;
    return RESPOND;
}

/* ---- the scoreboard ------------------------------------------------------------------------ */

/* Refuses clients on other machines, except with --status all: the scoreboard tells much about this
 * machine, and about the requests of other clients. */
static enum effect show_status(struct app *app, const struct http_request *request,
                               const char *path)
{
    struct status status;
    bool as_json = strcmp(path, "/status.json") == 0;
    if (origin_host(request) < (status_for_all ? ORIGIN_ADDRESS : ORIGIN_LOOPBACK))
        return respond_error(app, 421);
    if (!status_for_all && !net_peer_is_local(app->client))
        return respond_error(app, 403);
    if (!status_snapshot(&status))
        return respond_error(app, 503);
    if (as_json) {
        status_write_json(&status, &app->buffer);
    } else {
        status_render(&status, template_acquire(&status_template), &app->buffer);
        template_release(&status_template);
    }
    status_free(&status);
    respond_page(app, 200);
    if (as_json && app->response.status == 200) {
        app->response.type = "application/json";
        app->response.fields =
            origin_is_this_machine(request) ? NOSNIFF NOT_KEPT ANY_ORIGIN : NOSNIFF NOT_KEPT;
    }
    return RESPOND;
}

/* ---- routes -------------------------------------------------------------------------------- */

static const struct route routes[] = {
    {"/guestbook", HTTP_GET | HTTP_HEAD, view_guestbook, answer_guestbook, NULL},
    {"/guestbook", HTTP_POST, post_guestbook, answer_guestbook, NULL},
    {"/status", HTTP_GET | HTTP_HEAD, show_status, NULL, NULL},
    {"/status.json", HTTP_GET | HTTP_HEAD, show_status, NULL, NULL},
    {"/wall.html", HTTP_GET | HTTP_HEAD, send_file, NULL, &wall_fields},
    {NULL, HTTP_GET | HTTP_HEAD, send_file, NULL, &safe_fields},
};

/* Finds the route. If the path is known, but not with this method, returns NULL and sets *allowed
 * to its methods. */
static const struct route *find_route(const char *path, enum http_method method, unsigned *allowed)
{
    const struct route *end = routes + sizeof(routes) / sizeof(routes[0]);
    *allowed = 0;
    for (const struct route *r = routes; r < end; r++) {
        if (r->path ? strcmp(r->path, path) != 0 : *allowed != 0)
            continue;
        if (r->methods & method)
            return r;
        *allowed |= r->methods;
    }
    return NULL;
}

enum effect app_request(struct app *app, const struct http_request *request)
{
    static const char cross_site[] =
        "The form was sent by a page of another site, so nothing was stored. To write into the "
        "guestbook, open it under this address and fill in its own form.";
    char path[HTTP_MAX_REQUEST_LINE + 1];
    unsigned allowed = HTTP_POST; /* for OPTIONS *: the methods of all routes */

    if (request->method == HTTP_UNKNOWN)
        return respond_error(app, 501);
    if (!span_is(request->path, "*")) {
        if (!http_decode_path(request->path, path))
            return respond_error(app, 400);
        app->route = find_route(path, request->method, &allowed);
        if (app->route && request->method == HTTP_POST && origin_is_cross_site(request))
            return respond_because(app, 403, cross_site);
        if (app->route)
            return app->route->request(app, request, path);
    }
    app->response.allow = allowed & HTTP_POST ? "GET, HEAD, POST, OPTIONS" : "GET, HEAD, OPTIONS";
    if (request->method != HTTP_OPTIONS)
        return respond_error(app, 405);
    app->response.status = 204;
    return RESPOND;
}

enum effect app_reply(struct app *app, const redisReply *reply, int why)
{
    return app->route->reply(app, reply, why);
}

void app_refuse(struct app *app, int status)
{
    static const char no_hands[] = "This server has no process or thread left for you. Your "
                                   "request was not carried out. Please try again in a moment.";
    respond_because(app, status, status == 503 ? no_hands : explain_status(status));
}

void app_refuse_for_memory(struct app *app)
{
    respond_because(
        app, 503,
        "This server is short of memory, because many clients send or ask for much at once. "
        "Your request was not carried out. Please try again in a moment.");
}

void app_clear(struct app *app, size_t keep)
{
    if (app->file.fd >= 0)
        close(app->file.fd);
    struct buffer buffer = app->buffer;
    buffer_clear(&buffer, keep);
    *app = (struct app){
        .client = app->client, .buffer = buffer, .content = SPAN(""), .file = {.fd = -1}};
}
