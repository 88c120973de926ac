#include "app.h"

#include "origin.h"
#include "process.h"
#include "status.h"
#include "template.h"
#include "uri.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

/* ---- what all requests share: set at start, read afterwards -------------------------------- */

static const struct options *options;
static char server[64]; /* "ZeroHTTPd/VERSION (epoll)" */

enum { CODE = 1, REASON, EXPLANATION, SERVER };

static const struct template_name error_names[] = {
    {"code", CODE, 0, false},
    {"reason", REASON, 0, false},
    {"explanation", EXPLANATION, 0, false},
    {"server", SERVER, 0, false},
    {NULL, 0, 0, false},
};

static const struct template *guestbook_template, *error_template;

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

void app_load(const struct options *o)
{
    options = o;
    snprintf(server, sizeof(server), "ZeroHTTPd/%s (%s)", ZEROHTTPD_VERSION, o->name);
    int root = open(o->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        process_die(o->name, "--root %s: %s", o->root, strerror(errno));
    if (!files_open_root(root, "public"))
        process_die(o->name, "public: %s; start it where public/ is, or use --root",
                    strerror(errno));
    guestbook_start();
    guestbook_template =
        template_load(root, "templates/guestbook/index.html", guestbook_names, o->name);
    error_template = template_load(root, "templates/error/index.html", error_names, o->name);
    close(root);
    tzset(); /* reads /etc/localtime, as each child's first gmtime_r() would do otherwise */
}

struct board *app_start(const struct options *o, struct redis_server *redis, int slots,
                        const char *architecture)
{
    process_start();
    app_load(o);
    redis_find(redis, o);
    struct board *board = board_open(slots);
    if (!board)
        process_die(o->name, "no memory for the scoreboard: %s", strerror(errno));
    status_start(o, board, architecture);
    return board;
}

/* The first route whose path and method match gives the answer. A new page is a new row. */
struct route {
    const char *path; /* NULL: any */
    unsigned methods;
    enum effect (*request)(struct app *, const struct http_request *, const char *path);
    enum effect (*reply)(struct app *, const redisReply *, int why); /* to app.ask; NULL: none */
};

/* ---- what went wrong, in words for a visitor who sees it for the first time --------------- */

/* Redis may have done what was asked, though its reply was lost. */
#define LOOK_FIRST                                                                                 \
    " An entry just posted may or may not have been stored: look before you post it again."

static const struct status {
    int code;
    const char *reason, *explanation;
} statuses[] = {
    {200, "OK", NULL},
    {204, "No Content", NULL},
    {206, "Partial Content", NULL},
    {301, "Moved Permanently", NULL},
    {303, "See Other", NULL},
    {304, "Not Modified", NULL},
    {400, "Bad Request",
     "The request does not follow the rules of HTTP, so it was not understood."},
    {403, "Forbidden",
     "Not everybody may see this. Either it is a file that this server is not permitted to "
     "read, or it is the scoreboard. The server shows its scoreboard to other machines only "
     "if it was started with --status all."},
    {404, "Not Found", "There is nothing under this address."},
    {405, "Method Not Allowed",
     "This address does not support that method. The Allow field of this response lists "
     "the methods that it supports."},
    {408, "Request Timeout", "The request did not arrive completely within the time limit."},
    {412, "Precondition Failed",
     "The file has changed, and the request was to be carried out only if it had not."},
    {413, "Content Too Large", "The request's body is larger than the 64 KiB this server takes."},
    {414, "URI Too Long", "The address is longer than the 8,000 bytes this server takes."},
    {415, "Unsupported Media Type", "A form has to come as application/x-www-form-urlencoded."},
    {416, "Range Not Satisfiable", "The file ends before the range that was asked for."},
    {417, "Expectation Failed", "The only expectation this server can meet is 100-continue."},
    {421, "Misdirected Request",
     "The server's own status is shown only under a name that always means the machine "
     "it runs on: localhost, or an address such as 127.0.0.1. With --status all, the server "
     "shows it under every address of that machine, but under no other name."},
    {431, "Request Header Fields Too Large",
     "The request has more fields, or longer ones, than this server takes."},
    {501, "Not Implemented",
     "This server does not know the method, or the transfer coding, of the request."},
    {503, "Service Unavailable",
     "This server has no room for you at the moment: no process, thread, descriptor or memory is "
     "left. Your request was not carried out. Please try again in a moment."},
    {504, "Gateway Timeout", "Redis did not answer in time." LOOK_FIRST},
    {505, "HTTP Version Not Supported", "This server speaks HTTP/1.1 and HTTP/1.0."},
    {500, "Internal Server Error", "Something went wrong in the server."}, /* and all others */
};

static const struct status *find_status(int code)
{
    const struct status *s = statuses;
    while (s->code != code && s->code != 500)
        s++;
    return s;
}

static const char no_redis[] =
    "This server does not reach Redis, which keeps the guestbook. The command redis-server "
    "--save '' starts one." LOOK_FIRST;

/* Redis answered with an error, which is logged. It does nothing of a command that it refuses. */
static const char redis_refused[] =
    "Redis refused what this server asked for. What it says is on this server's standard error.";
static const char redis_refused_post[] =
    "Redis refused what this server asked for, so your entry was not stored. What it says is on "
    "this server's standard error.";

/* ---- answers ------------------------------------------------------------------------------- */

static const char html[] = "text/html; charset=utf-8";

static struct span error_text(void *values, int id)
{
    return ((const struct span *)values)[id];
}

static void render_error(struct app *app, int status, const char *explanation)
{
    char code[16];
    snprintf(code, sizeof(code), "%d", status);
    struct span values[] = {
        [CODE] = span_of(code),
        [REASON] = span_of(find_status(status)->reason),
        [EXPLANATION] = span_of(explanation),
        [SERVER] = span_of(options->name),
    };
    buffer_clear(&app->buffer, BUFFER_FREE);
    template_render(error_template, &(struct template_values){.text = error_text, .data = values},
                    &app->buffer);
}

/* What all responses have. */
static enum effect respond_status(struct app *app, int status)
{
    app->response.status = status;
    app->response.reason = find_status(status)->reason;
    app->response.server = server;
    app->response.date = time(NULL);
    return RESPOND;
}

/* Responds with the rendered page. If there is no memory for it, or not within the budget, a short
 * page says so, for which there nearly always is. */
static enum effect respond_page(struct app *app, int status)
{
    if (app->buffer.failed)
        render_error(app, status = 503, find_status(503)->explanation);
    app->response.type = html;
    app->response.fields = status == 503 ? SAFE_FIELDS NOT_KEPT RETRY_AFTER : SAFE_FIELDS NOT_KEPT;
    if (!app->buffer.failed)
        app->content = (struct span){app->buffer.bytes, app->buffer.len};
    return respond_status(app, status);
}

/* `explanation` is in place of the status' own, unless it is NULL. */
static enum effect respond_error(struct app *app, int status, const char *explanation)
{
    render_error(app, status, explanation ? explanation : find_status(status)->explanation);
    return respond_page(app, status);
}

/* Redirects the client. The address is kept in app.buffer; there is no content. */
static enum effect respond_location(struct app *app, int status)
{
    buffer_append(&app->buffer, "", 1); /* its NUL */
    if (app->buffer.failed)
        return respond_page(app, 503);
    app->response.location = app->buffer.bytes;
    return respond_status(app, status);
}

/* ---- the guestbook ------------------------------------------------------------------------- */

static enum effect guestbook_page(struct app *app, int status)
{
    app->guestbook.server = options->name;
    app->buffer.len = 0;
    guestbook_render(&app->guestbook, guestbook_template, &app->buffer);
    return respond_page(app, status);
}

static enum effect view_guestbook(struct app *app, const struct http_request *request,
                                  const char *path)
{
    (void)path;
    int refused = guestbook_view(&app->guestbook, request->query, &app->ask);
    return refused ? respond_error(app, refused, NULL) : ASK_REDIS;
}

static enum effect post_guestbook(struct app *app, const struct http_request *request,
                                  const char *path)
{
    (void)path;
    int refused = guestbook_post(&app->guestbook, request, time(NULL), &app->buffer, &app->ask);
    if (refused == 400)
        return guestbook_page(app, 400);
    if (refused || app->buffer.failed)
        return respond_error(app, refused ? refused : 503, NULL);
    return ASK_REDIS;
}

static enum effect answer_guestbook(struct app *app, const redisReply *reply, int why)
{
    /* If only LTRIM failed, the entry is stored. A visitor told otherwise would post it again. */
    bool is_stored = app->guestbook.step == GUESTBOOK_TRIMMING;
    if (!reply && !is_stored)
        return why == REDIS_NO_REPLY ? respond_error(app, 504, NULL)
                                     : respond_error(app, 503, no_redis);
    int status = reply ? guestbook_reply(&app->guestbook, reply, &app->ask) : 303;
    switch (status) {
    case 0:
        return ASK_REDIS;
    case 200:
        if (options->work_us > 0)
            clock_burn_cpu(options->work_us);
        return guestbook_page(app, 200);
    case 303:
        app->response.location = "/guestbook"; /* needs no memory: the entry is stored */
        return respond_status(app, 303);
    default:
        if (reply->type != REDIS_REPLY_ERROR)
            return respond_error(app, status, no_redis);
        return respond_error(app, status,
                             app->guestbook.step == GUESTBOOK_POSTING ? redis_refused_post
                                                                      : redis_refused);
    }
}

/* ---- files --------------------------------------------------------------------------------- */

/* Redirects to the same folder with its slash. The address is made from the decoded path, because a
 * client's own "//elsewhere" would name another host. The query comes back as it was sent, but for
 * what browsers do not escape in it. */
static enum effect respond_folder(struct app *app, const struct http_request *request,
                                  const char *path)
{
    struct buffer *address = &app->buffer;
    if (buffer_reserve(address, 3 * strlen(path) + 1))
        address->len = uri_encode(span_of(path), false, address->bytes);
    buffer_append(address, "/", 1);
    if (request->query.at) {
        buffer_append(address, "?", 1);
        if (buffer_reserve(address, 3 * request->query.len + 1))
            address->len += uri_encode(request->query, true, address->bytes + address->len);
    }
    return respond_location(app, 301);
}

static enum effect send_file(struct app *app, const struct http_request *request, const char *path)
{
    struct file *file = &app->file;
    struct http_response *response = &app->response;
    int status = files_open(path, file, &app->buffer);
    if (status == 301)
        return respond_folder(app, request, path);
    if (status != 200)
        return respond_error(app, status, NULL);

    status = files_apply_conditions(file, request);
    if (status == 412 || status == 416) {
        respond_error(app, status, NULL);
        if (app->response.status != status)
            return RESPOND; /* 503: there is no memory for that page */
    }
    response->content_range = file->range[0] ? file->range : NULL;
    response->last_modified = file->last_modified[0] ? file->last_modified : NULL;
    response->etag = file->etag;
    if (status == 200 || status == 206)
        response->type = file->type;
    if (file->left > 0 && file->fd < 0) { /* a small one: sent from memory */
        app->content = (struct span){app->buffer.bytes + file->at, file->left};
        file->left = 0;
    }
    bool is_html = app->response.type && strcmp(app->response.type, html) == 0;
    if (is_html && strcmp(path, "/wall.html") == 0)
        app->response.fields =
            options->status_for_all ? OPEN_WALL_FIELDS OF_FILES : WALL_FIELDS OF_FILES;
    else
        app->response.fields = is_html ? SAFE_FIELDS OF_FILES : NOSNIFF OF_FILES;
    return respond_status(app, status);
}

/* ---- the scoreboard ------------------------------------------------------------------------ */

/* Refuses clients on other machines, except with --status all: the scoreboard tells much about this
 * machine, and about the requests of other clients. */
static enum effect show_status(struct app *app, const struct http_request *request,
                               const char *path)
{
    (void)path;
    if (origin_host_of(request) < (options->status_for_all ? ORIGIN_ADDRESS : ORIGIN_LOOPBACK))
        return respond_error(app, 421, NULL);
    if (!options->status_for_all && !origin_client_is_local(app->client))
        return respond_error(app, 403, NULL);
    status_write_json(&app->buffer);
    respond_page(app, 200);
    if (app->response.status == 200) {
        app->response.type = "application/json";
        app->response.fields =
            origin_is_this_machine(request) ? NOSNIFF NOT_KEPT ANY_ORIGIN : NOSNIFF NOT_KEPT;
    }
    return RESPOND;
}

/* ---- routes -------------------------------------------------------------------------------- */

static const struct route routes[] = {
    {"/guestbook", HTTP_GET | HTTP_HEAD, view_guestbook, answer_guestbook},
    {"/guestbook", HTTP_POST, post_guestbook, answer_guestbook},
    {"/status.json", HTTP_GET | HTTP_HEAD, show_status, NULL},
    {NULL, HTTP_GET | HTTP_HEAD, send_file, NULL},
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
        return respond_error(app, 501, NULL);
    if (!span_is(request->path, "*")) {
        if (!uri_decode_path(request->path, path))
            return respond_error(app, 400, NULL);
        const struct route *route = find_route(path, request->method, &allowed);
        if (route && request->method == HTTP_POST && origin_is_cross_site(request))
            return respond_error(app, 403, cross_site);
        if (route) {
            app->reply = route->reply;
            return route->request(app, request, path);
        }
    }
    app->response.allow = allowed & HTTP_POST ? "GET, HEAD, POST, OPTIONS" : "GET, HEAD, OPTIONS";
    if (request->method != HTTP_OPTIONS)
        return respond_error(app, 405, NULL);
    return respond_status(app, 204);
}

void app_refuse(struct app *app, int status)
{
    respond_error(app, status, NULL);
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
