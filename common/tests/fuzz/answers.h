/* fuzz_answers: are these the responses to those requests?
 *
 *  - What the requests are is told by http_parse(), reading at once all that
 *    the client has sent; fuzz_http sees to it that this does not depend on cuts.
 *    What the server reads after it has answered 408 does not count. Only if it had
 *    read the request line by then does it know of HEAD, and leave out the content.
 *  - Each response is well-formed, whole, and as long as it says; none to HEAD,
 *    204 and 304 has content, an interim one comes only where it was waited for.
 *  - A refusal has the parser's status (or 408), closes, and is the last.
 *  - If a part of 100 Continue has gone out, no refusal can follow it: the connection just ends.
 */
#ifndef FUZZ_ANSWERS_H
#define FUZZ_ANSWERS_H

#include "fuzz.h"
#include "http.h"

struct answers {
    struct span heard; /* what is not taken apart yet */
    bool cut_short;    /* the last may be missing, or end too early */
    bool refused;      /* each request with 503; if it waits for 100 Continue, before its body */
};

struct answer {
    int status;
    bool close;
};

/* The response's head, with its last CRLF; false if it is not there in full. */
static bool take_head(struct span heard, struct span *head)
{
    const char *end = memmem(heard.at, heard.len, "\r\n\r\n", 4);
    if (!end)
        return false;
    *head = (struct span){heard.at, (size_t)(end + 2 - heard.at)};
    must(head->len > 15 && memcmp(head->at, "HTTP/1.1 ", 9) == 0 && head->at[12] == ' ');
    const char *at = head->at;
    while ((at = (const char *)memchr(at, '\n', (size_t)(end + 2 - at)) + 1) < end + 2)
        must(memchr(at, ':', (size_t)(end - at)) && *at != ' ');
    return true;
}

/* Takes a whole response; false if it is not there in full, and then `answer` stays as it was. */
static bool take_answer(struct answers *all, bool to_head, struct answer *answer)
{
    struct span head, value, length = {0};
    if (!take_head(all->heard, &head))
        return false;
    int status = atoi(head.at + 9);
    bool interim = status == 100;
    must(interim || strcmp(http_reason(status), "Unknown") != 0);
    struct span fields = head;
    must(http_next_field(&fields, "Connection", &value) != interim);
    bool close = !interim && span_is(value, "close");
    fields = head;
    bool measured = http_next_field(&fields, "Content-Length", &length);
    must(measured == (!interim && status != 204 && status != 304));
    bool content = measured && !to_head;
    size_t whole = head.len + 2 + (content ? strtoul(length.at, NULL, 10) : 0);
    if (all->heard.len < whole)
        return false;
    all->heard = (struct span){all->heard.at + whole, all->heard.len - whole};
    *answer = (struct answer){status, close};
    return true;
}

/* Is this the beginning of 100 Continue? */
static bool is_broken_off(struct span heard)
{
    return heard.len > 0 && heard.len < strlen(HTTP_CONTINUE) &&
           memcmp(heard.at, HTTP_CONTINUE, heard.len) == 0;
}

/* Takes all of them apart, and returns how many there were, interim ones not counted. sent[0, len)
 * ends with the last byte that the server had read when it answered 408, if it did. */
static size_t must_answer(struct answers *all, char *sent, size_t len)
{
    struct http_request request = {0};
    struct answer answer = {0};
    size_t count = 0;
    int verdict = 0;

    for (bool more = true; more && !answer.close; count += more) {
        struct http_parser parser = {0};
        verdict = len > 0 ? http_parse(&parser, sent, &len, &request) : 0;
        request =
            http_partial_request(&parser, sent); /* perhaps it is refused before it is whole */
        do
            more = take_answer(all, request.method == HTTP_HEAD, &answer);
        while (more && answer.status == 100 && parser.continue_due && !all->refused);
        if (!more)
            break;
        bool at_the_head = all->refused && parser.continue_due; /* its body is not waited for */
        must(answer.status != 100);
        must((answer.status == 408) == (verdict == 0 && !at_the_head));
        must(verdict >= 0 || answer.status == -verdict || (at_the_head && answer.status == 503));
        must(answer.close || (verdict > 0 && !all->refused));
        sent += verdict > 0 ? verdict : 0;
        len -= verdict > 0 ? (size_t)verdict : 0;
    }
    must(answer.close ? all->heard.len == 0
                      : all->cut_short || (verdict < 0 && is_broken_off(all->heard)) ||
                            (all->heard.len == 0 && verdict == 0));
    return count;
}

#endif
