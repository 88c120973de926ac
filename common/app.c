#include "app.h"

#include "status.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- what all requests share: set at start, read afterwards -------------------------------- */

static const char *name; /* "epoll" */
static char server[64];  /* "ZeroHTTPd/0.1.0 (epoll)" */
static int root = -1;    /* where templates/ is */

const char *app_server(void)
{
    return server;
}

/* A template, and the page compiled from it. Chapters 4 and 5 share it among their threads: many
 * render at once, and one of them, once a second, holds all others off while it looks whether the
 * file has changed. */
struct template
{
    const char *file;
    const struct page_name *names;
    struct page *page;
    struct timespec changed; /* st_ctim, which nobody can set: an archive brings its own st_mtim */
    int error;               /* errno of the last attempt to read it, told once */
    _Atomic int64_t looked;  /* net_now() of the last look */
    pthread_rwlock_t lock;   /* of all the above, but for the quick look at `looked` */
};

enum { LOOK_EVERY_MS = 1000 };

enum { CODE = 1, REASON, EXPLANATION, SERVER };

static const struct page_name refusal_names[] = {
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
static struct template status_template = {
    .file = "templates/status/index.html",
    .names = refusal_names,
    .lock = PTHREAD_RWLOCK_INITIALIZER,
};
static struct template server_status_template = {
    .file = "templates/server-status/index.html",
    .names = status_names,
    .lock = PTHREAD_RWLOCK_INITIALIZER,
};

static struct template *const templates[] = {
    &guestbook_template,
    &status_template,
    &server_status_template,
};
enum { TEMPLATES = sizeof(templates) / sizeof(templates[0]) };

/* Compiles the file anew if it has changed. What does not compile is reported, and the page stays
 * as it was: only at start, when there is none, that is the end. */
static void read_template(struct template *t)
{
    char error[256];
    struct stat about;
    if (fstatat(root, t->file, &about, 0) < 0) {
        if (!t->page)
            net_die(name, "%s: %s; start it where templates/ is, or use --root", t->file,
                    strerror(errno));
        return;
    }
    if (t->page && about.st_ctim.tv_sec == t->changed.tv_sec &&
        about.st_ctim.tv_nsec == t->changed.tv_nsec)
        return;
    struct page *page = page_load(root, t->file, t->names, error, sizeof(error));
    int reason = page ? 0 : errno; /* 0: it was read */
    if (reason == 0)
        t->changed = about.st_ctim; /* what was not is tried again at the next look */
    if (!page && !t->page)
        net_die(name, "%s", error);
    if (page) {
        page_free(t->page);
        t->page = page;
    } else if (reason == 0 || reason != t->error) {
        fprintf(stderr, "%s: %s\n", name, error);
    }
    t->error = reason;
}

static void look_at(struct template *t)
{
    int64_t now = net_now();
    if (now - t->looked >= LOOK_EVERY_MS) {
        pthread_rwlock_wrlock(&t->lock);
        if (now - t->looked >= LOOK_EVERY_MS) {
            read_template(t);
            t->looked = now;
        }
        pthread_rwlock_unlock(&t->lock);
    }
}

static struct page *take_template(struct template *t)
{
    look_at(t);
    pthread_rwlock_rdlock(&t->lock);
    return t->page;
}

static void give_template(struct template *t)
{
    pthread_rwlock_unlock(&t->lock);
}

void app_start(const struct options *o)
{
    name = o->name;
    snprintf(server, sizeof(server), "ZeroHTTPd/%s (%s)", ZEROHTTPD_VERSION, name);
    root = open(o->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        net_die(name, "--root %s: %s", o->root, strerror(errno));
    if (!files_open_root(root, "public"))
        net_die(name, "public: %s; start it where public/ is, or use --root", strerror(errno));
    guestbook_start();
    for (size_t i = 0; i < TEMPLATES; i++)
        read_template(templates[i]);
    tzset(); /* reads /etc/localtime, which every child's first gmtime_r() would read otherwise */
}

void app_look(void)
{
    for (size_t i = 0; i < TEMPLATES; i++)
        look_at(templates[i]);
}

/* The first route whose path and method fit answers. A new page is a new row. */
struct route {
    const char *path; /* NULL: any */
    unsigned methods;
    enum effect (*request)(struct app *, const struct http_request *, const char *path);
    enum effect (*reply)(struct app *, const redisReply *, int why); /* to app.ask; NULL: none */
    const char *html_fields;                                         /* of a file that is HTML */
};

/* ---- answers ------------------------------------------------------------------------------- */

/* Pages of ours run no script but our own files, fetch nothing from another host, and are shown in
 * nobody's frame. */
#define NOSNIFF "X-Content-Type-Options: nosniff\r\n"
#define SAFE_FIELDS_AND(more)                                                                      \
    NOSNIFF                                                                                        \
    "Content-Security-Policy: default-src 'self'; base-uri 'none'; form-action 'self'; "           \
    "frame-ancestors 'none'" more "\r\n"
#define SAFE_FIELDS SAFE_FIELDS_AND("")
/* The wall's script looks at the other six, which are other origins: ports of this machine, under
 * the name the wall was fetched by. (A policy cannot name [::1].) */
#define WALL_FIELDS   SAFE_FIELDS_AND("; connect-src 'self' http://127.0.0.1:* http://localhost:*")
#define ANY_ORIGIN    "Access-Control-Allow-Origin: *\r\n"
#define NOT_KEPT      "Cache-Control: no-store\r\n"
#define RETRY_AFTER   "Retry-After: 1\r\n"
#define ACCEPT_RANGES "Accept-Ranges: bytes\r\n"

static const char html[] = "text/html; charset=utf-8";

/* Redis may have done what was asked, though its reply was lost. */
#define LOOK_FIRST                                                                                 \
    " An entry just posted may or may not have been stored: look before you post it again."

/* What a status means, for somebody who sees it for the first time. */
static const char *explain(int status)
{
    switch (status) {
    case 400:
        return "The request does not follow the rules of HTTP, so it was not understood.";
    case 403:
        return "Not everybody may see this: it is a file that this server is not permitted to "
               "read, or the scoreboard, which is shown on the server's own machine only.";
    case 404:
        return "There is nothing under this address.";
    case 405:
        return "This address does not answer to that method. The Allow field of this response "
               "names those it answers to.";
    case 408:
        return "The request did not arrive in full in the time it had.";
    case 412:
        return "The file has changed since; that is what the request asked to be told.";
    case 413:
        return "The request's body is larger than the 64 KiB this server takes.";
    case 414:
        return "The address is longer than the 8,000 octets this server takes.";
    case 415:
        return "A form has to come as application/x-www-form-urlencoded.";
    case 416:
        return "The file is not as long as the range that was asked for.";
    case 417:
        return "The only expectation this server can meet is 100-continue.";
    case 421:
        return "The server's own status is shown only under a name that always means the machine "
               "it runs on: localhost, or an address such as 127.0.0.1.";
    case 431:
        return "The request has more fields, or longer ones, than this server takes.";
    case 501:
        return "This server does not know the method, or the transfer coding, of the request.";
    case 503:
        return "Something this server needs is not there right now. For the guestbook that is "
               "Redis: redis-server --port 6379 starts one." LOOK_FIRST;
    case 504:
        return "Redis did not answer in time." LOOK_FIRST;
    case 505:
        return "This server speaks HTTP/1.1 and HTTP/1.0.";
    default:
        return "Something went wrong on this side.";
    }
}

/* What Redis' refusal means, for a visitor, by how its error begins. Whoever runs the server finds
 * the error itself on standard error. What was refused was not done. */
#define NOT_STORED                                                                                 \
    " An entry just posted was not stored. What Redis says is on this server's standard error."
#define NOT_ADMITTED "Redis does not let this server in: it expects another password."

static const char *explain_refusal(const char *error)
{
    static const struct {
        const char *begins, *explanation;
    } refusals[] = {
        {"NOAUTH ", NOT_ADMITTED NOT_STORED},
        {"NOPERM ", "Redis does not permit this server to keep a guestbook." NOT_STORED},
        {"OOM ", "Redis has used all the memory it may have." NOT_STORED},
        {"READONLY ", "This Redis is a copy of another one, and may only be read." NOT_STORED},
        {"NOREPLICAS ", "Redis waits for its copies, and stores nothing without them." NOT_STORED},
        {"LOADING ", "Redis has just been started, and is still loading its data." NOT_STORED},
        {"MISCONF ", "Redis cannot save its data, and stores nothing until it can." NOT_STORED},
        {"WRONGTYPE ", "What Redis keeps under the guestbook's name is no guestbook." NOT_STORED},
        {"ERR max number of clients", "Redis has all the clients it may have." NOT_STORED},
    };
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        if (strncmp(error, refusals[i].begins, strlen(refusals[i].begins)) == 0)
            return refusals[i].explanation;
    return "Redis refused what this server asked for." NOT_STORED;
}

struct status_page {
    char code[8];
    int status;
    const char *explanation;
};

static struct span status_text(void *data, int id)
{
    const struct status_page *page = data;
    switch (id) {
    case CODE:
        return span_of(page->code);
    case REASON:
        return span_of(http_reason(page->status));
    case EXPLANATION:
        return span_of(page->explanation);
    default:
        return span_of(name);
    }
}

/* Responds with what was rendered, or without content if there was no memory for it. */
static enum effect respond_page(struct app *app, int status)
{
    status = app->page.failed ? 503 : status;
    app->response.status = status;
    app->response.type = html;
    app->response.fields = status == 503 ? SAFE_FIELDS NOT_KEPT RETRY_AFTER : SAFE_FIELDS NOT_KEPT;
    if (!app->page.failed)
        app->content = (struct span){app->page.bytes, app->page.len};
    return RESPOND;
}

static enum effect respond_because(struct app *app, int status, const char *explanation)
{
    struct status_page page = {.status = status, .explanation = explanation};
    snprintf(page.code, sizeof(page.code), "%d", status);
    app->page.len = 0;
    page_render(take_template(&status_template),
                &(struct page_values){.text = status_text, .data = &page}, &app->page);
    give_template(&status_template);
    return respond_page(app, status);
}

static enum effect respond_status(struct app *app, int status)
{
    return respond_because(app, status, explain(status));
}

/* Sends the client elsewhere. The address is kept in app.page; there is no content. */
static enum effect respond_location(struct app *app, int status)
{
    buffer_append(&app->page, "", 1); /* its NUL */
    if (app->page.failed)
        return respond_page(app, 503);
    app->response.status = status;
    app->response.location = app->page.bytes;
    return RESPOND;
}

/* ---- whose page asks ----------------------------------------------------------------------- */

/* A server as a browser names it, "host:port". */
struct authority {
    struct span host; /* an IPv6 address is in brackets */
    struct span port; /* digits */
};

static struct authority authority_of(struct span text)
{
    struct authority authority = {text, SPAN("80")};
    size_t len = text.len;
    while (len > 0 && text.at[len - 1] >= '0' && text.at[len - 1] <= '9')
        len--;
    if (len == 0 || text.at[len - 1] != ':')
        return authority;
    authority.host.len = len - 1;
    if (len < text.len)
        authority.port = (struct span){text.at + len, text.len - len};
    return authority;
}

/* Takes an Origin field apart (RFC 6454, 7). False for "null", and for a page that did not come by
 * http. */
static bool read_origin(struct span origin, struct authority *page)
{
    static const char scheme[] = "http://";
    size_t prefix = strlen(scheme);
    if (origin.len <= prefix || strncasecmp(origin.at, scheme, prefix) != 0)
        return false;
    *page = authority_of((struct span){origin.at + prefix, origin.len - prefix});
    return true;
}

static bool is_same(struct span a, struct span b)
{
    return a.len == b.len && strncasecmp(a.at, b.at, a.len) == 0;
}

/* Does a page of another site have its visitor's browser send this form? Browsers say which page a
 * form comes from. Programs such as curl say nothing, and nobody can lead them astray. */
static bool is_cross_site(const struct http_request *request)
{
    struct span origin = http_field(request, "Origin");
    struct authority page, here = authority_of(request->host);
    if (span_is(http_field(request, "Sec-Fetch-Site"), "cross-site"))
        return true;
    return origin.at && !(read_origin(origin, &page) && is_same(page.host, here.host) &&
                          is_same(page.port, here.port));
}

/* localhost, 127.0.0.0/8 and ::1 always mean this machine. Any other name means what its owner's
 * name server says, and that may be 127.0.0.1 as well (DNS rebinding). */
static bool is_loopback(struct span host)
{
    char text[INET6_ADDRSTRLEN];
    struct in_addr ipv4;
    struct in6_addr ipv6;
    bool in_brackets = host.len > 2 && host.at[0] == '[' && host.at[host.len - 1] == ']';
    if (in_brackets)
        host = (struct span){host.at + 1, host.len - 2};
    if (span_is_nocase(host, "localhost"))
        return !in_brackets;
    if (host.len >= sizeof(text))
        return false;
    snprintf(text, sizeof(text), "%.*s", (int)host.len, host.at);
    if (in_brackets)
        return inet_pton(AF_INET6, text, &ipv6) == 1 && IN6_IS_ADDR_LOOPBACK(&ipv6);
    return inet_pton(AF_INET, text, &ipv4) == 1 && ntohl(ipv4.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* ---- the guestbook ------------------------------------------------------------------------- */

static enum effect guestbook_page(struct app *app, int status)
{
    app->guestbook.server = name;
    app->page.len = 0;
    guestbook_render(&app->guestbook, take_template(&guestbook_template), &app->page);
    give_template(&guestbook_template);
    return respond_page(app, status);
}

static enum effect view_guestbook(struct app *app, const struct http_request *request,
                                  const char *path)
{
    (void)path;
    int refused = guestbook_view(&app->guestbook, request->query, &app->ask);
    return refused ? respond_status(app, refused) : ASK_REDIS;
}

static enum effect post_guestbook(struct app *app, const struct http_request *request,
                                  const char *path)
{
    (void)path;
    int refused = guestbook_post(&app->guestbook, request, time(NULL), &app->page, &app->ask);
    if (refused == 400)
        return guestbook_page(app, 400);
    if (refused || app->page.failed)
        return respond_status(app, refused ? refused : 503);
    return ASK_REDIS;
}

static enum effect answer_guestbook(struct app *app, const redisReply *reply, int why)
{
    int status = reply ? guestbook_reply(&app->guestbook, reply, &app->ask)
                       : guestbook_no_reply(&app->guestbook, why);
    switch (status) {
    case 0:
        return ASK_REDIS;
    case 200:
        return guestbook_page(app, 200);
    case 303:
        app->page.len = 0;
        buffer_append(&app->page, "/guestbook", strlen("/guestbook"));
        return respond_location(app, 303);
    case REDIS_NOT_ADMITTED:
        return respond_because(app, 503, NOT_ADMITTED LOOK_FIRST);
    default:
        return reply && reply->type == REDIS_REPLY_ERROR
                   ? respond_because(app, status, explain_refusal(reply->str))
                   : respond_status(app, status);
    }
}

/* ---- files --------------------------------------------------------------------------------- */

/* Back to the same folder, with its slash. The address is made from the decoded path: a client's
 * own "//elsewhere" would be another host's. */
static enum effect respond_folder(struct app *app, const struct http_request *request,
                                  const char *path)
{
    struct buffer *address = &app->page;
    if (buffer_reserve(address, 3 * strlen(path) + 1))
        address->len = http_encode_path(path, address->bytes);
    buffer_append(address, "/", 1);
    if (request->query.at) {
        buffer_append(address, "?", 1);
        if (buffer_reserve(address, 3 * request->query.len + 1))
            address->len += http_encode_query(request->query, address->bytes + address->len);
    }
    return respond_location(app, 301);
}

/* What every response about a file says of it. */
static void describe_file(struct app *app, int status)
{
    const struct file *file = &app->file;
    struct http_response *response = &app->response;
    unsigned long long first = (unsigned long long)file->at, size = file->size;
    if (status == 206)
        snprintf(app->range, sizeof(app->range), "bytes %llu-%llu/%llu", first,
                 first + file->left - 1, size);
    if (status == 416)
        snprintf(app->range, sizeof(app->range), "bytes */%llu", size);
    response->status = status;
    response->content_range = app->range[0] ? app->range : NULL;
    response->last_modified = file->last_modified[0] ? file->last_modified : NULL;
    response->etag = file->etag;
    response->fields = response->type && strcmp(response->type, html) == 0 ? app->route->html_fields
                                                                           : NOSNIFF ACCEPT_RANGES;
}

/* The octets of a small file are in memory already. Those of one of which only the description is
 * wanted are not sent at all. */
static void take_octets(struct app *app, bool wanted)
{
    struct file *file = &app->file;
    if (wanted && file->fd >= 0)
        return;
    if (wanted)
        app->content = (struct span){app->page.bytes + file->at, file->left};
    else if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    file->left = 0;
}

static enum effect send_file(struct app *app, const struct http_request *request, const char *path)
{
    int status = files_load(path, &app->file, &app->page);
    if (status == 301)
        return respond_folder(app, request, path);
    if (status != 200)
        return respond_status(app, status);

    status = files_select(&app->file, request);
    bool wanted = status == 200 || status == 206;
    if (status == 412 || status == 416)
        respond_status(app, status);
    if (wanted)
        app->response.type = app->file.type;
    describe_file(app, status);
    take_octets(app, wanted);
    return RESPOND;
}

/* ---- the scoreboard ------------------------------------------------------------------------ */

static void write_page(struct status *status, struct buffer *out)
{
    status_render(status, take_template(&server_status_template), out);
    give_template(&server_status_template);
}

static void write_json(struct status *status, struct buffer *out)
{
    status_write_json(status, out);
}

/* It says more of a machine, and of what is asked there, than is everybody's business. */
static enum effect respond_scoreboard(struct app *app, const struct http_request *request,
                                      void (*write)(struct status *, struct buffer *))
{
    struct status status;
    if (!is_loopback(authority_of(request->host).host))
        return respond_status(app, 421);
    if (!net_peer_is_local(app->client))
        return respond_status(app, 403);
    if (!status_take(&status))
        return respond_status(app, 503);
    write(&status, &app->page);
    status_free(&status);
    return respond_page(app, 200);
}

static enum effect show_status(struct app *app, const struct http_request *request,
                               const char *path)
{
    (void)path;
    return respond_scoreboard(app, request, write_page);
}

/* Does a page of this machine ask, as another of the seven's wall does? A browser asks for the
 * pages of others as well, but lets them see an answer only if it allows that (Fetch, 3.3). */
static bool is_from_this_machine(const struct http_request *request)
{
    struct authority page;
    return read_origin(http_field(request, "Origin"), &page) && is_loopback(page.host);
}

static enum effect show_status_as_json(struct app *app, const struct http_request *request,
                                       const char *path)
{
    (void)path;
    respond_scoreboard(app, request, write_json);
    if (app->response.status == 200) {
        app->response.type = "application/json";
        app->response.fields =
            is_from_this_machine(request) ? NOSNIFF NOT_KEPT ANY_ORIGIN : NOSNIFF NOT_KEPT;
    }
    return RESPOND;
}

/* ---- routes -------------------------------------------------------------------------------- */

static const struct route routes[] = {
    {"/guestbook", HTTP_GET | HTTP_HEAD, view_guestbook, answer_guestbook, NULL},
    {"/guestbook", HTTP_POST, post_guestbook, answer_guestbook, NULL},
    {"/status", HTTP_GET | HTTP_HEAD, show_status, NULL, NULL},
    {"/status.json", HTTP_GET | HTTP_HEAD, show_status_as_json, NULL, NULL},
    {"/wall.html", HTTP_GET | HTTP_HEAD, send_file, NULL, WALL_FIELDS ACCEPT_RANGES},
    {NULL, HTTP_GET | HTTP_HEAD, send_file, NULL, SAFE_FIELDS ACCEPT_RANGES},
};

/* Most paths differ behind the slash they all begin with: that spares most of the comparing. */
static bool is_at(const struct route *route, const char *path)
{
    return route->path[1] == path[1] && strcmp(route->path, path) == 0;
}

/* Finds the route. If the path is known but not with this method, the result is NULL and *allowed
 * the methods it is known with. */
static const struct route *find_route(const char *path, enum http_method method, unsigned *allowed)
{
    const struct route *end = routes + sizeof(routes) / sizeof(routes[0]);
    *allowed = 0;
    for (const struct route *r = routes; r < end; r++) {
        if (r->path ? !is_at(r, path) : *allowed != 0)
            continue;
        if (r->methods & method)
            return r;
        *allowed |= r->methods;
    }
    return NULL;
}

static const char *allow(unsigned methods)
{
    return methods & HTTP_POST ? "GET, HEAD, POST, OPTIONS" : "GET, HEAD, OPTIONS";
}

enum effect app_request(struct app *app, const struct http_request *request)
{
    static const char cross_site[] =
        "The form was sent by a page of another site, so nothing was stored. To write into the "
        "guestbook, open it under this address and fill in its own form.";
    char path[HTTP_MAX_REQUEST_LINE + 1];
    unsigned allowed = HTTP_POST; /* by OPTIONS *: whatever any route is known with */

    if (request->method == HTTP_UNKNOWN)
        return respond_status(app, 501);
    if (!span_is(request->path, "*")) {
        if (!http_decode_path(request->path, path))
            return respond_status(app, 400);
        app->route = find_route(path, request->method, &allowed);
        if (app->route && request->method == HTTP_POST && is_cross_site(request))
            return respond_because(app, 403, cross_site);
        if (app->route)
            return app->route->request(app, request, path);
    }
    app->response.allow = allow(allowed);
    if (request->method != HTTP_OPTIONS)
        return respond_status(app, 405);
    app->response.status = 204;
    return RESPOND;
}

enum effect app_reply(struct app *app, const redisReply *reply, int why)
{
    return app->route->reply(app, reply, why);
}

void app_refuse(struct app *app, int status)
{
    static const char no_hands[] = "This server has no process or thread left for you. Nothing of "
                                   "your request was done: ask again in a moment.";
    respond_because(app, status, status == 503 ? no_hands : explain(status));
}

void app_refuse_for_memory(struct app *app)
{
    respond_because(app, 503,
                    "This server is short of memory, because many large requests arrive at once. "
                    "Nothing of your request was done: ask again in a moment.");
}

void app_clear(struct app *app, size_t keep)
{
    if (app->file.fd >= 0)
        close(app->file.fd);
    struct buffer page = app->page;
    buffer_clear(&page, keep);
    *app =
        (struct app){.client = app->client, .page = page, .content = SPAN(""), .file = {.fd = -1}};
}
