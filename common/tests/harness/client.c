/* The client of the black-box tests: bytes out, bytes in, and no mercy for a
 * response that breaks a rule (RFC 9112, and rule 16 of HTTP.md).
 */
#include "harness.h"

#include <ctype.h>
#include <netinet/tcp.h>
#include <utlist.h>

/* ---- for whoever wonders why ---------------------------------------------------------------- */

static struct client *last; /* who has spoken or heard */

/* What comes in pieces is one request, until somebody has heard something. */
static void remember_said(struct client *c, const void *bytes, size_t len)
{
    if (c->has_answer)
        c->said_len = 0;
    c->has_answer = false;
    size_t room = sizeof(c->said) - c->said_len;
    memcpy(c->said + c->said_len, bytes, len < room ? len : room);
    c->said_len += len < room ? len : room;
    last = c;
}

const char *last_exchange(void)
{
    static const char special[] = "\r\n\t\"\\", names[] = "rnt\"\\";
    char *text = NULL;
    size_t len = 0;
    FILE *out = last ? open_memstream(&text, &len) : NULL;
    if (!out)
        return "";
    fputs("\nSent: \"", out);
    for (size_t i = 0; i < last->said_len; i++) {
        unsigned char byte = (unsigned char)last->said[i];
        const char *found = byte ? strchr(special, byte) : NULL;
        if (found)
            fprintf(out, "\\%c", names[found - special]);
        else
            fprintf(out, isprint(byte) ? "%c" : "\\%03o", byte);
    }
    fprintf(out, "\"%s", last->said_len == sizeof(last->said) ? " and so on" : "");
    if (last->has_answer)
        fprintf(out, "\nAnswered: %.*s", (int)strcspn(last->fields, "\r"), last->fields);
    fclose(out);
    return text;
}

/* ---- talking ------------------------------------------------------------------------------- */

static struct client *clients; /* who are there */

struct client *dial(void)
{
    return dial_with_room(0);
}

struct client *dial_with_room(int bytes)
{
    const int on = 1;
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)server_port)};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6,
                                .sin6_port = htons((uint16_t)server_port),
                                .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bool six = server_host[0] == '[';
    check(six || inet_pton(AF_INET, server_host, &ipv4.sin_addr) == 1, "it is at %s", server_host);
    struct sockaddr *address = six ? (struct sockaddr *)&ipv6 : (struct sockaddr *)&ipv4;
    struct client *c = calloc(1, sizeof(*c));
    c->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bytes > 0) /* to be said before the kernel offers the server any room */
        setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    check(connect(c->fd, address, six ? sizeof(ipv6) : sizeof(ipv4)) == 0, "connect: %s",
          strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* a piece is a packet */
    DL_APPEND(clients, c);
    return c;
}

/* Sleeps until the socket is ready for one of the events. */
static void await(const struct client *c, short events, int64_t limit)
{
    struct pollfd fd = {.fd = c->fd, .events = events};
    int64_t left = limit - now_ms();
    check(poll(&fd, 1, left > 0 ? (int)left : 0) > 0, "the server neither %s",
          events & POLLOUT ? "reads nor closes" : "answers nor closes");
}

bool try_to_say(struct client *c, const void *bytes, size_t len)
{
    int64_t limit = now_ms() + patience(SOON_MS);
    remember_said(c, bytes, len);
    for (size_t sent = 0; sent < len;) {
        ssize_t n =
            send(c->fd, (const char *)bytes + sent, len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN)
            return false;
        if (n < 0)
            await(c, POLLOUT, limit);
        else
            sent += (size_t)n;
    }
    return true;
}

void say_bytes(struct client *c, const void *bytes, size_t len)
{
    check(try_to_say(c, bytes, len), "cannot send: %s", strerror(errno));
}

void say(struct client *c, const char *text)
{
    say_bytes(c, text, strlen(text));
}

void say_and_be_read(struct client *c, const char *text)
{
    say(c, text);
    wait_until(is_read(c), SOON_MS, "it was not read");
}

struct client *dial_and_say(const char *text)
{
    struct client *c = dial();
    say(c, text);
    return c;
}

struct client *dial_and_be_read(const char *text)
{
    struct client *c = dial();
    say_and_be_read(c, text);
    return c;
}

void say_no_more(struct client *c)
{
    shutdown(c->fd, SHUT_WR);
}

static void forget_answer(struct client *c)
{
    free(c->fields);
    free(c->body);
    c->fields = c->body = NULL;
    c->answer = (struct answer){0};
    c->has_answer = false;
}

void hang_up(struct client *c)
{
    if (last == c)
        last = NULL;
    close(c->fd);
    DL_DELETE(clients, c);
    forget_answer(c);
    free(c->in);
    free(c);
}

void hang_up_all(void)
{
    while (clients)
        hang_up(clients);
}

void reset(struct client *c)
{
    const struct linger rudely = {.l_onoff = 1, .l_linger = 0};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &rudely, sizeof(rudely));
    hang_up(c);
}

/* ---- hearing ------------------------------------------------------------------------------- */

/* Receives some more; false at the connection's end. */
static bool receive(struct client *c, int64_t limit)
{
    enum { ROOM = 256 * 1024 };
    last = c;
    await(c, POLLIN, limit);
    c->in = realloc(c->in, c->len + ROOM);
    ssize_t n = recv(c->fd, c->in + c->len, ROOM, 0);
    check(n >= 0, "the response is cut off: %s", strerror(errno));
    c->len += (size_t)n;
    return n > 0;
}

void hear_continue(struct client *c)
{
    static const char go_ahead[] = "HTTP/1.1 100 Continue\r\n\r\n";
    int64_t limit = now_ms() + patience(SOON_MS);
    while (c->len - c->used < strlen(go_ahead))
        check(receive(c, limit), "closed instead of 100");
    check(memcmp(c->in + c->used, go_ahead, strlen(go_ahead)) == 0, "not 100: %.*s",
          (int)(c->len - c->used), c->in + c->used);
    c->used += strlen(go_ahead);
}

bool has_heard(const struct client *c)
{
    struct pollfd fd = {.fd = c->fd, .events = POLLIN};
    return c->len > c->used || poll(&fd, 1, 0) > 0;
}

void hear_end(struct client *c)
{
    int64_t limit = now_ms() + patience(SOON_MS);
    while (c->used == c->len && receive(c, limit))
        ;
    check(c->used == c->len, "more than was asked for: %.*s", (int)(c->len - c->used),
          c->in + c->used);
}

uint64_t hear_slowly(struct client *c, size_t piece, int every_ms)
{
    static char bytes[1024 * 1024];
    uint64_t count = c->len - c->used;
    for (ssize_t n = 1; n > 0; count += n > 0 ? (uint64_t)n : 0) {
        poll(NULL, 0, every_ms); /* that is how slow it is */
        await(c, POLLIN, now_ms() + patience(SOON_MS));
        n = recv(c->fd, bytes, piece, 0);
    }
    return count;
}

uint64_t hear_rest(struct client *c)
{
    return hear_slowly(c, 1024 * 1024, 0);
}

const char *field(const struct answer *a, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = a->fields; *at; at += strlen(at) + 1)
        if (strncasecmp(at, name, len) == 0 && at[len] == ':')
            return at + len + 2;
    return NULL;
}

bool says_when_to_come_again(const struct answer *a)
{
    const char *retry = field(a, "Retry-After");
    return retry ? atoi(retry) > 0 : !server_is_ours();
}

/* Is there a name, which is a token, then ": ", then a value without white space around it? */
static bool is_field(const char *line)
{
    size_t len = 0;
    while (isalnum((unsigned char)line[len]) || (line[len] && strchr("!#$%&'*+-.^_`|~", line[len])))
        len++;
    const char *value = line + len + 2;
    return len > 0 && strncmp(line + len, ": ", 2) == 0 && *value && *value != ' ' &&
           value[strlen(value) - 1] != ' ';
}

bool says_what_all_say(const struct answer *a)
{
    const char *date = field(a, "Date"), *server = field(a, "Server");
    const char *connection = field(a, "Connection"), *type = field(a, "Content-Type");
    char again[64] = "", product[64];
    struct tm utc = {0};
    int n = 0;
    if (!date || !server || !connection || !strptime(date, "%a, %d %b %Y %H:%M:%S GMT", &utc))
        return false;
    strftime(again, sizeof(again), "%a, %d %b %Y %H:%M:%S GMT", &utc);
    snprintf(product, sizeof(product), "ZeroHTTPd/%%*[0-9.] (%s)%%n", server_says);
    sscanf(server, product, &n);
    return strcmp(date, again) == 0 && llabs((long long)(timegm(&utc) - time(NULL))) < 60 &&
           n > 0 && !server[n] && strcmp(connection, a->kept ? "keep-alive" : "close") == 0 &&
           (!type || strncmp(type, "text/", 5) != 0 || strstr(type, "; charset=utf-8"));
}

/* Well-formed fields, each once, a length; and of ours, what each response says of itself. */
static void check_fields(struct answer *a, const char *head)
{
    for (const char *at = a->fields; *at; at += strlen(at) + 1) {
        size_t len = strcspn(at, ":");
        check(is_field(at), "a malformed field: %s", at);
        for (const char *other = at + strlen(at) + 1; *other; other += strlen(other) + 1)
            check(strncasecmp(at, other, len + 1) != 0, "twice: %s", at);
    }
    const char *connection = field(a, "Connection");
    a->kept = !connection || strcasecmp(connection, "close") != 0; /* RFC 9112, 9.3 */
    check(!field(a, "Transfer-Encoding"), "%s", head);
    if (server_is_ours())
        check(says_what_all_say(a), "%s", head);
}

/* The head, from its first byte to the empty line: a copy with a NUL for each line's end. */
static void take_head(struct client *c, size_t len)
{
    char *head = c->fields = calloc(1, len + 1), reason = 0;
    memcpy(head, c->in + c->used, len);
    for (size_t i = 0; i < len; i++) {
        bool line_end = memcmp(head + i, "\r\n", 2) == 0;
        check(line_end || (head[i] >= ' ' && head[i] < 127), "a control character: %s", head);
        i += line_end;
    }
    c->has_answer = true;
    check(sscanf(head, "HTTP/1.1 %3d %c", &c->answer.status, &reason) == 2 && head[12] == ' ' &&
              isalpha((unsigned char)reason) && c->answer.status >= 200 && c->answer.status < 600,
          "a malformed status line: %s", head);

    char *fields = strstr(head, "\r\n") + 2, *to = fields;
    for (char *at = fields; at < head + len; at++)
        if (*at != '\n')
            *to++ = *at == '\r' ? '\0' : *at;
    *to = '\0';
    c->answer.fields = fields;
    check_fields(&c->answer, c->in + c->used);
    c->used += len;
}

static size_t content_length(const struct answer *a)
{
    const char *length = field(a, "Content-Length");
    bool none = a->status == 204 || a->status == 304;
    check(none == !length, "status %d, Content-Length: %s", a->status, length ? length : "none");
    check(none || strspn(length, "0123456789") == strlen(length), "Content-Length: %s", length);
    return none ? 0 : (size_t)strtoull(length, NULL, 10);
}

/* A page says why, in words of its own for each status, and nobody keeps it, as a file is kept. */
static bool is_explained(const struct answer *a)
{
    const char *cache = field(a, "Cache-Control");
    bool is_of_file = a->status == 412 || a->status == 416;
    return cache && strcmp(cache, is_of_file ? "no-cache" : "no-store") == 0 &&
           !body_has(a, "Something went wrong in the server") && !body_has(a, "<p></p>");
}

static const struct answer *hear_answer(struct client *c, bool to_head)
{
    int64_t limit = now_ms() + patience(SOON_MS);
    const char *end;
    forget_answer(c);
    while (
        !(end = c->len > c->used ? memmem(c->in + c->used, c->len - c->used, "\r\n\r\n", 4) : NULL))
        check(receive(c, limit), "closed without a whole head: %.*s", (int)(c->len - c->used),
              c->in ? c->in + c->used : "");
    take_head(c, (size_t)(end + 4 - (c->in + c->used)));

    struct answer *a = &c->answer;
    a->body_len = to_head ? 0 : content_length(a);
    while (c->len - c->used < a->body_len)
        check(receive(c, limit), "the body ends after %zu bytes of %zu", c->len - c->used,
              a->body_len);
    a->body = c->body = calloc(1, a->body_len + 1);
    memcpy(c->body, c->in + c->used, a->body_len);
    c->used += a->body_len;
    check(a->status < 400 || to_head || !server_is_ours() || is_explained(a), "status %d: %s",
          a->status, a->body);
    if (!a->kept)
        hear_end(c);
    return a;
}

const struct answer *hear(struct client *c)
{
    return hear_answer(c, false);
}

const struct answer *hear_head(struct client *c)
{
    const struct answer *a = hear_answer(c, true);
    content_length(a);
    return a;
}

/* ---- the other side ------------------------------------------------------------------------- */

bool is_read(const struct client *c)
{
    struct inet_diag_msg socket;
    /* what nobody has accepted has no inode yet */
    return find_server_end(c, &socket) && socket.idiag_inode != 0 && socket.idiag_rqueue == 0;
}

bool is_closed_by_server(const struct client *c)
{
    struct inet_diag_msg socket;
    return !find_server_end(c, &socket) || socket.idiag_state != TCP_ESTABLISHED;
}

bool is_reached_at(const char *address)
{
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)server_port)};
    check(inet_pton(AF_INET, address, &ipv4.sin_addr) == 1, "%s", address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool reached = connect(fd, (struct sockaddr *)&ipv4, sizeof(ipv4)) == 0;
    close(fd);
    return reached;
}

/* ---- one request --------------------------------------------------------------------------- */

const struct answer *ask(const char *request)
{
    static struct client *asker;
    if (asker)
        hang_up(asker);
    asker = dial_and_say(request);
    return strncmp(request, "HEAD ", 5) == 0 ? hear_head(asker) : hear(asker);
}

const struct answer *get(const char *target)
{
    char request[1024];
    snprintf(request, sizeof(request),
             "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", target);
    return ask(request);
}

const struct answer *post(const char *form)
{
    char request[16384];
    snprintf(request, sizeof(request),
             "POST /guestbook HTTP/1.1\r\nHost: test\r\nConnection: close\r\n"
             "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n\r\n%s",
             strlen(form), form);
    return ask(request);
}

bool body_has(const struct answer *a, const char *text)
{
    return memmem(a->body, a->body_len, text, strlen(text)) != NULL;
}

void check_file(const struct answer *a, const char *path)
{
    size_t len = 0;
    const char *bytes = read_whole(path, &len);
    check(bytes, "no such file: %s", path);
    check(a->status == 200, "%s: status %d", path, a->status);
    check(a->body_len == len && memcmp(a->body, bytes, len) == 0, "%s: %zu bytes for %zu", path,
          a->body_len, len);
}
