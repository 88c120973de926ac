/* wire_cases: what may come over the wire, and what has to follow.
 *
 *  - A row: the numbers of the rules of common/book/HTTP.md it holds, a sentence, the
 *    bytes, what becomes of the connection, and the statuses of the responses
 *    in order; HEAD_(200) is one without a body, 100 an interim one.
 *  - The expectations come from HTTP.md and the RFCs (9110, 9112, 3986, 6585)
 *    and not from what the servers do. Where those leave a choice, the stricter
 *    reading is taken.
 *  - {a*7985} stands for 7985 times "a", {X: y\r\n*99} for 99 lines, {ETAG} for
 *    the tag of /ten.txt, and {?abc} for one of these bytes: the row is tried with
 *    each. Braces that do not look like that are braces.
 *  - The servers get every row whole and byte by byte (servers/wire.c), and the
 *    parser alone also in two pieces, cut at every position (unit/http.c).
 *  - public/ holds index.html, sub/index.html, empty/, .hidden, two links that lead out, and
 *    ten.txt, which is ten bytes long and of Sun, 06 Nov 1994 08:49:37 GMT.
 */
#ifndef WIRE_CASES_H
#define WIRE_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum fate {
    KEPT,   /* a further request on the connection is answered */
    CLOSED, /* what follows on the connection is not looked at */
    LEFT,   /* nothing follows: the client half-closes behind the case */
};

struct wire_case {
    const char *rules, *sentence, *bytes;
    size_t len; /* so that NUL is a byte like others */
    enum fate fate;
    int statuses[12]; /* 0 ends them */
};

#define CASE(rules, sentence, bytes, fate, ...)                                                    \
    {                                                                                              \
        rules, sentence, bytes, sizeof(bytes) - 1, fate,                                           \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
/* A request that is malformed. */
#define BAD(rules, sentence, bytes) CASE(rules, sentence, bytes, CLOSED, 400)
#define HEAD_(status)               (-(status))

/* "\r\n" is the line's end, and so the head's where a field line stands before it. */
#define HOST                   "Host: test\r\n"
#define GET                    "GET / HTTP/1.1\r\n" HOST
#define GET_OF(target)         "GET " target " HTTP/1.1\r\n" HOST "\r\n"
#define GET_1_0(options)       "GET / HTTP/1.0\r\nConnection: " options "\r\n\r\n"
#define LINE(line)             line "\r\n" HOST "\r\n"
#define LINE_AND(line, fields) line "\r\n" HOST fields "\r\n\r\n"
#define HOST_IS(value)         "GET / HTTP/1.1\r\nHost:" value "\r\n\r\n"
#define SMUGGLED               GET_OF("/smuggled") /* 38 bytes: 26 in hexadecimal */
#define HIDDEN                 "Content-Length: 38\r\n\r\n" SMUGGLED

/* Of ten.txt, and with a date. */
#define TEN(fields)    LINE_AND("GET /ten.txt HTTP/1.1", fields)
#define SINCE(date)    TEN("If-Modified-Since: " date)
#define UNLESS(date)   TEN("If-Unmodified-Since: " date)
#define PART(range)    TEN("Range: bytes=" range)
#define PART_IF(known) PART("0-0\r\nIf-Range: " known)
#define BEFORE         "Sun, 06 Nov 1994 08:49:36 GMT"
#define THEN           "Sun, 06 Nov 1994 08:49:37 GMT"
#define LATER          "Sun, 06 Nov 1994 08:49:38 GMT"

/* Forms. */
#define FORM_TYPE             "Content-Type: application/x-www-form-urlencoded\r\n"
#define POST                  "POST /guestbook HTTP/1.1\r\n" HOST FORM_TYPE
#define FORM                  "guest-name=Ada&guest-remarks=hello" /* 34 bytes: 22 */
#define LENGTH(value)         POST "Content-Length:" value "\r\n\r\n" FORM
#define POSTED                LENGTH(" 34")
#define POST_OF(length, form) POST "Content-Length: " #length "\r\n\r\n" form
#define EXPECT(value)         POST "Expect: " value "\r\nContent-Length: 34\r\n\r\n" FORM
#define EXPECTED              "Expect: 100-continue\r\nContent-Length: 34\r\n\r\n" FORM
#define CODED(value)          POST "Transfer-Encoding: " value "\r\n\r\n"
#define CODING(value)         POST "Transfer-Encoding:" value "\r\n\r\n0\r\n\r\n"
#define CHUNKED               "Transfer-Encoding: chunked\r\n\r\n"
#define CHUNK                 POST CHUNKED "22\r\n" FORM "\r\n" /* and what comes behind it */
#define SIZE(line)            POST CHUNKED line "\r\n" FORM "\r\n0\r\n\r\n"

static const struct wire_case wire_cases[] = {
    /* ---- 1: the request line ---------------------------------------------------------------- */
    CASE("1 3 5", "a plain GET is answered", GET "\r\n", KEPT, 200),
    CASE("1", "a query is no part of the file's name", GET_OF("/index.html?a=b&c=/?:@"), KEPT, 200),
    CASE("1", "every character a path may hold may be there", GET_OF("/-._~!$&'()*+,;=:@azAZ09/x"),
         KEPT, 404),
    BAD("1", "two spaces before the target", LINE("GET  / HTTP/1.1")),
    BAD("1", "two spaces behind the target", LINE("GET /  HTTP/1.1")),
    BAD("1", "a space before the method", LINE(" GET / HTTP/1.1")),
    BAD("1", "a space behind the version", LINE("GET / HTTP/1.1 ")),
    BAD("1", "another byte for a space", LINE("GET{?\t\v\f\0}/ HTTP/1.1")),
    BAD("1", "no target", LINE("GET HTTP/1.1")),
    BAD("1", "no version, as in HTTP/0.9", "GET /\r\n"),
    BAD("1", "a byte that a method may not hold", LINE("G{?@:\"/(\0\x7f\xc3}T / HTTP/1.1")),
    CASE("1", "a first byte with which no method begins, as that of TLS, and nothing more",
         "{?\x16\0\x01\t\v\n \"(),/:;<=>?@[\\]{\x7f\x80\xff}", LEFT, 400),
    CASE("1", "the same behind an empty line", "\r\n{?\x16\0\t \"/:[\x7f\xff}", LEFT, 400),
    CASE("1", "a first byte with which a method may begin", "{?!#$%&'*+-.^_`|~0123456789azAZ\r}",
         LEFT, 0),
    BAD("1", "a byte that no target may hold", GET_OF("/{?\0\x01\x1b\x1f\x7f\xc3\xff\"<>\\#}")),
    BAD("1", "a byte that no query may hold", GET_OF("/?{?\0\x01\x1f\x7f\xff\"<>\\#}")),
    CASE("1", "a byte that browsers send though no URI holds it", GET_OF("/a{?^`|[]'{}b"), KEPT,
         404),
    CASE("1", "also in the query", GET_OF("/?a{?^`|[]'{}=b"), KEPT, 200),
    CASE("1", "and a closing brace", GET_OF("/{a}?{b}"), KEPT, 404),
    CASE("1", "a request line of 8,000 bytes", GET_OF("/?{a*7985}"), KEPT, 200),
    CASE("1", "a request line of 8,001 bytes", GET_OF("/?{a*7986}"), CLOSED, 414),
    CASE("1", "a name longer than a file's may be", GET_OF("/{a*300}"), KEPT, 404),
    CASE("1", "a path longer than the kernel takes", GET_OF("/{a/*2500}"), KEPT, 404),
    CASE("1", "a line without an end", "GET /{a*12000}", CLOSED, 414),
    CASE("1", "a method without an end", "{A*9000}", CLOSED, 414),

    /* ---- 2: versions ------------------------------------------------------------------------ */
    CASE("2", "HTTP/1.2 is answered like 1.1", LINE("GET / HTTP/1.2"), KEPT, 200),
    CASE("2", "HTTP/1.0 is closed", "GET / HTTP/1.0\r\n\r\n", CLOSED, 200),
    CASE("2", "HTTP/1.0 is kept if it asks for it, among other options", GET_1_0("foo, Keep-Alive"),
         KEPT, 200),
    CASE("2", "close wins over keep-alive in 1.0", GET_1_0("close, keep-alive"), CLOSED, 200),
    CASE("2 7", "a form in 1.0, kept",
         "POST /guestbook HTTP/1.0\r\nConnection: keep-alive\r\n" FORM_TYPE
         "Content-Length: 34\r\n\r\n" FORM,
         KEPT, 303),
    CASE("2 11", "no interim response to 1.0",
         "POST /guestbook HTTP/1.0\r\nExpect: 100-continue\r\n" FORM_TYPE
         "Content-Length: 34\r\n\r\n" FORM,
         CLOSED, 303),
    CASE("2", "HTTP/2.0", LINE("GET / HTTP/2.0"), CLOSED, 505),
    CASE("2", "the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", CLOSED, 505),
    BAD("2", "a byte for the dot of a version", LINE("GET / HTTP/1{?1,-: }1")),
    BAD("2", "something behind a version", LINE("GET / HTTP/1.1{?10.x\t\r\0}")),
    BAD("2", "a major number of two digits", LINE("GET / HTTP/01.1")),
    BAD("2", "a minor number that is no digit", LINE("GET / HTTP/1.{?xA-. \xb2}")),
    BAD("2", "lower case", LINE("GET / http/1.1")),

    /* ---- 3: the ends of lines --------------------------------------------------------------- */
    CASE("3", "two empty lines before a request", "\r\n\r\n" GET "\r\n", KEPT, 200),
    BAD("3", "three empty lines before a request", "\r\n\r\n\r\n" GET "\r\n"),
    CASE("3 13", "an empty line behind a body", POSTED "\r\n" GET "\r\n", KEPT, 303, 200),
    CASE("3 13", "three empty lines between two requests", GET "\r\n\r\n\r\n\r\n" GET "\r\n",
         CLOSED, 200, 400),
    BAD("3", "a bare LF before a request", "\n" GET "\r\n"),
    BAD("3", "a bare CR before a request", "\r" GET "\r\n"),
    BAD("3", "a bare LF behind the request line", "GET / HTTP/1.1\n" HOST "\r\n"),
    BAD("3", "a bare LF behind a field", "GET / HTTP/1.1\r\nHost: test\n\r\n"),
    BAD("3", "a bare LF for the empty line", GET "\n"),
    BAD("3 8", "a field hidden behind a bare LF",
        POST "X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    BAD("3 8", "a field hidden behind a bare CR",
        POST "X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    BAD("3", "a bare CR behind the request line", "GET / HTTP/1.1\rHost: test\r\n\r\n"),
    BAD("3", "two CR and LF behind a field", GET "X: a\r\r\n\r\n"),
    BAD("3", "a NUL between CR and LF", "GET / HTTP/1.1\r\0\n" HOST "\r\n"),

    /* ---- 4: hosts and target forms ---------------------------------------------------------- */
    BAD("4", "no host in 1.1", "GET / HTTP/1.1\r\n\r\n"),
    CASE("4", "a host among tabs and spaces", HOST_IS(" \t test \t "), KEPT, 200),
    CASE("4", "a name of any case", "GET / HTTP/1.1\r\nhOsT:test\r\n\r\n", KEPT, 200),
    CASE("4", "a host with an empty port", HOST_IS(" test:"), KEPT, 200),
    CASE("4", "the highest port", HOST_IS(" test:65535"), KEPT, 200),
    BAD("4", "a port above the highest", HOST_IS(" test:65536")),
    BAD("4", "a port that overflows", HOST_IS(" test:4294967376")),
    BAD("4", "a port that is no number", HOST_IS(" test:{?+- x:}80")),
    BAD("4", "a port of six digits", HOST_IS(" test:000080")),
    CASE("4", "an IPv4 address", HOST_IS(" 127.0.0.1:8000"), KEPT, 200),
    CASE("4", "an IPv6 address with a port", HOST_IS(" [2001:DB8::1]:8000"), KEPT, 200),
    CASE("4", "an IPv6 address with an IPv4 one in it", HOST_IS(" [::ffff:127.0.0.1]"), KEPT, 200),
    BAD("4", "an IPv6 address without brackets", HOST_IS(" ::1")),
    BAD("4", "an IPv6 address with one bracket", HOST_IS(" [::1")),
    BAD("4", "brackets and nothing in them", HOST_IS(" []")),
    BAD("4", "something behind the brackets", HOST_IS(" [::1]x")),
    BAD("4", "an IPv6 address with a letter that is no digit", HOST_IS(" [::g]")),
    BAD("4", "an IPv6 address of very many groups", HOST_IS(" [{0000:*9}0000]")),
    CASE("4", "every character a host name may hold", HOST_IS(" a-b_c~d.e!$&'()*+;="), KEPT, 200),
    CASE("4", "an escape in a host name", HOST_IS(" t%65st"), KEPT, 200),
    BAD("4", "a bad escape in a host name", HOST_IS(" t%zzst")),
    BAD("4", "an empty host", HOST_IS("{? \t}")),
    BAD("4", "a port and no host", HOST_IS(" :80")),
    BAD("4", "a byte that no host may hold", HOST_IS(" te{? @/?#\"|{^`\\\0\xc3<>}st")),
    BAD("4", "two hosts", GET HOST "\r\n"),
    BAD("4", "a host and an empty one", GET "Host:\r\n\r\n"),
    BAD("4", "two hosts in 1.0", "GET / HTTP/1.0\r\n" HOST HOST "\r\n"),

    CASE("4", "absolute-form", GET_OF("http://test/"), KEPT, 200),
    CASE("4", "absolute-form with a host that differs", GET_OF("http://other:1234/"), KEPT, 200),
    CASE("4", "absolute-form without a path", GET_OF("http://test"), KEPT, 200),
    CASE("4", "absolute-form in 1.0", "GET http://test/ HTTP/1.0\r\n\r\n", CLOSED, 200),
    BAD("4", "absolute-form in 1.1 without a host", "GET http://test/ HTTP/1.1\r\n\r\n"),
    BAD("4", "absolute-form with an empty authority", GET_OF("http:///")),
    BAD("4", "absolute-form with a byte that no host may hold", GET_OF("http://te{?@|{[\\%}st/")),
    BAD("4", "absolute-form with a backslash", GET_OF("http:\\\\test\\")),
    BAD("4", "absolute-form of a scheme not spoken here", GET_OF("https://test/")),
    CASE("4", "two slashes are no authority", GET_OF("//other.example/x"), KEPT, 404),
    BAD("4", "a target without its slash", GET_OF("index.html")),
    BAD("4", "an escaped slash is no slash", GET_OF("%2f")),

    CASE("4 15", "OPTIONS of the server", LINE("OPTIONS * HTTP/1.1"), KEPT, 204),
    CASE("4", "OPTIONS of a file", LINE("OPTIONS /index.html HTTP/1.1"), KEPT, 204),
    CASE("4 17", "OPTIONS of a bad path", LINE("OPTIONS /%zz HTTP/1.1"), KEPT, 400),
    BAD("4", "GET of a star", GET_OF("*")),
    BAD("4", "OPTIONS of a star with a query", LINE("OPTIONS *?x HTTP/1.1")),
    CASE("4", "a file whose name is a star", GET_OF("/*"), KEPT, 404),
    BAD("4", "authority-form", LINE("CONNECT test:80 HTTP/1.1")),

    /* ---- 5: fields -------------------------------------------------------------------------- */
    CASE("5", "a field without a value", GET "X:\r\n\r\n", KEPT, 200),
    CASE("5", "a value with colons", GET "X: a:b::c:\r\n\r\n", KEPT, 200),
    CASE("5", "a value with tabs in it", GET "X: a\tb\r\n\r\n", KEPT, 200),
    CASE("5", "a value with bytes above 127", GET "X: \xc3\xa9\x80\xff\r\n\r\n", KEPT, 200),
    CASE("5", "every character a name may hold", GET "!#$%&'*+-.^_`|~09azAZ: y\r\n\r\n", KEPT, 200),
    CASE("5", "the same field twice", GET "X: a\r\nX: b\r\n\r\n", KEPT, 200),
    BAD("5", "a byte that a name may not hold",
        GET "X{? \t\0\x01\x1f\x7f\xc3(),;/<=>?@[\\]{\"}: y\r\n\r\n"),
    BAD("5", "a field without a name", GET ": y\r\n\r\n"),
    BAD("5", "a field without a colon", GET "X\r\n\r\n"),
    BAD("5", "a folded line", GET "X: y\r\n{? \t}Z: a\r\n\r\n"),
    BAD("5", "white space before the first field", "GET / HTTP/1.1\r\n{? \t}" HOST "\r\n"),
    BAD("5 8", "a folded coding", CODING("\r\n chunked")),
    BAD("5", "a byte that a value may not hold", GET "X: a{?\0\x01\b\v\f\x1b\x1f\x7f}\r\n\r\n"),

    /* ---- 6: how many, and how long ---------------------------------------------------------- */
    CASE("6", "100 fields", GET "{X: y\r\n*99}\r\n", KEPT, 200),
    CASE("6", "101 fields", GET "{X: y\r\n*100}\r\n", CLOSED, 431),
    CASE("6", "fields of 16,384 bytes", GET "X: {a*16367}\r\n\r\n", KEPT, 200),
    CASE("6", "fields of 16,385 bytes", GET "X: {a*16368}\r\n\r\n", CLOSED, 431),
    CASE("6", "fields of 16,385 bytes in two lines", GET "X: {a*8000}\r\nY: {b*8363}\r\n\r\n",
         CLOSED, 431),
    CASE("6", "a name without an end", GET "{X*20000}", CLOSED, 431),
    CASE("6", "a value without an end", GET "X: {y*20000}", CLOSED, 431),
    CASE("6 1", "the longest line and the longest fields together",
         "GET /?{a*7985} HTTP/1.1\r\n" HOST "X: {a*16367}\r\n\r\n", KEPT, 200),

    /* ---- 7: Content-Length ------------------------------------------------------------------ */
    CASE("7", "a form is stored", POSTED, KEPT, 303),
    CASE("7", "a length among white space", LENGTH(" \t34 \t"), KEPT, 303),
    CASE("7", "a length with many zeros before it", LENGTH(" {0*500}34"), KEPT, 303),
    CASE("7", "a form without a length has no body", POST "\r\n", KEPT, 400),
    CASE("7 13", "a body that looks like a request is a body", GET HIDDEN, KEPT, 200),
    CASE("7", "a body of 65,536 bytes", POST_OF(65536, FORM "&x={a*65499}"), KEPT, 303),
    CASE("7 12", "a body of 65,537 bytes", POST_OF(65537, FORM "&x={a*65500}"), CLOSED, 413),
    CASE("7", "a length above 64 KiB is refused at once", POST_OF(65537, ""), CLOSED, 413),
    CASE("7", "a length of 2^64 and 34", LENGTH(" 18446744073709551650"), CLOSED, 413),
    BAD("7", "a length with a byte before it", LENGTH("{?+-x\"\v,\0}34")),
    BAD("7", "a length with a byte behind it", LENGTH("34{?a.;,\"\v\0\xa0}")),
    BAD("7", "a length with a byte in it", LENGTH("3{?ex_ .,\t}4")),
    BAD("7", "an empty length", LENGTH("")),
    BAD("7", "a length that is too large, and no number", LENGTH(" 99999999999x")),
    BAD("7", "a list of the same length", LENGTH(" 34, 34")),
    BAD("7", "the same length twice", LENGTH(" 34\r\nContent-Length: 34")),
    BAD("7", "two lengths", LENGTH(" 0\r\nContent-Length: 34")),
    BAD("7 5", "a length with a byte before its colon",
        POST "Content-Length{? \t\0}: 34\r\n\r\n" FORM),
    CASE("7", "a name that only looks like that of a length", GET "Content_Length: 38\r\n\r\n",
         KEPT, 200),
    CASE("7 13", "one byte less than was sent begins the next request",
         POST_OF(33, "") FORM GET "\r\n", KEPT, 303, 501),

    /* ---- 8: Transfer-Encoding --------------------------------------------------------------- */
    CASE("8 9", "a form in one chunk", SIZE("22"), KEPT, 303),
    CASE("8", "a coding of any case",
         POST "tRANSFER-eNCODING: CHUNKED\r\n\r\n22\r\n" FORM "\r\n0\r\n\r\n", KEPT, 303),
    BAD("8 7 12", "a coding and a length",
        POST "Content-Length: 34\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    BAD("8 7", "a coding and a length that hides a request",
        POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED),
    BAD("8 2", "a coding in 1.0 that would be kept",
        "POST /guestbook HTTP/1.0\r\nConnection: keep-alive\r\n" FORM_TYPE CHUNKED "0\r\n\r\n"),
    CASE("8", "another coding", CODED("gzip"), CLOSED, 501),
    CASE("8", "identity", CODED("identity"), CLOSED, 501),
    CASE("8", "another coding before chunked", CODED("gzip, chunked"), CLOSED, 501),
    CASE("8", "something that begins like chunked", CODED("chunkedx"), CLOSED, 501),
    BAD("8", "chunked twice", CODING(" chunked, chunked")),
    BAD("8", "chunked twice, in two lines",
        POST "Transfer-Encoding: chunked\r\n" CHUNKED "0\r\n\r\n"),
    BAD("8", "chunked and not last", CODING(" chunked, gzip")),
    BAD("8", "chunked with a parameter (RFC 9112, 7.1)", CODING(" chunked;a=b")),
    BAD("8", "no coding", CODING("")),
    BAD("8", "chunked with a byte in it", CODING(" chun{? \"=/\0}ked")),
    BAD("8 5", "a byte before chunked", CODING(" {?,\"\v\f\0\xa0}chunked")),
    BAD("8 5", "a byte behind chunked", CODING(" chunked{?,;\"\v\f\0\r\xa0}")),
    BAD("8 5", "a byte before the colon of a coding",
        POST "Transfer-Encoding{? \t\0}: chunked\r\n\r\n0\r\n\r\n"),
    CASE("8", "a name that only looks like that of a coding",
         GET "Transfer_Encoding: chunked\r\n\r\n", KEPT, 200),

    /* ---- 9: chunks -------------------------------------------------------------------------- */
    CASE("9", "a form in three chunks",
         POST CHUNKED "b\r\nguest-name=\r\n3\r\nAda\r\n14\r\n&guest-remarks=hello\r\n0\r\n\r\n",
         KEPT, 303),
    CASE("9", "no chunk at all is an empty body", GET CHUNKED "0\r\n\r\n", KEPT, 200),
    CASE("9", "hexadecimal digits of either case",
         POST CHUNKED "2A\r\n" FORM "&x=12345\r\n3b\r\n&x={1*56}\r\n0\r\n\r\n", KEPT, 303),
    CASE("9", "a chunk's line of 256 bytes", SIZE("{0*254}22"), KEPT, 303),
    BAD("9", "a chunk's line of 257 bytes", SIZE("{0*255}22")),
    CASE("9 13", "a body in chunks that looks like a request is a body",
         GET CHUNKED "26\r\n" SMUGGLED "\r\n0\r\n\r\n", KEPT, 200),
    CASE("9 13", "what follows the last chunk is the next request",
         CHUNK "0\r\n\r\n" GET "\r\n" POSTED, KEPT, 303, 200, 303),

    CASE("9", "an extension of the last chunk", CHUNK "0;a=b\r\n\r\n", KEPT, 303),
    CASE("9", "extensions, one of them quoted", SIZE("22;a;b=c;d=\"e;\\\"f\x80=g\""), KEPT, 303),
    CASE("9", "white space around an extension's parts (RFC 9112, 7.1.1)", SIZE("22 ; a\t= b ;c"),
         KEPT, 303),
    BAD("9", "a size and extensions of 257 bytes", SIZE("22;a={b*252}")),
    BAD("9", "an extension without a name", SIZE("22;=b")),
    BAD("9", "an extension without its value", SIZE("22;a=")),
    BAD("9", "an unfinished quotation", SIZE("22;a=\"b")),
    BAD("9", "a quotation that ends with a backslash", SIZE("22;a=\"b\\\"")),
    BAD("9 5", "a byte that no quotation may hold", SIZE("22;a=\"{?\0\x01\r\n\x7f}\"")),
    BAD("9", "a size without an end", POST CHUNKED "{0*5000}"),
    BAD("9", "a semicolon and no extension", SIZE("22;")),
    BAD("9", "a byte that no extension may hold", SIZE("22;a{? \"\0\r\n\xe9}b")),
    BAD("9", "an extension without an end", POST CHUNKED "22;{a*5000}"),

    BAD("9", "no size", SIZE("")),
    BAD("9", "a byte before a size", SIZE("{?g+-; \t\"\xd9}22")),
    BAD("9", "a byte behind a size", SIZE("22{?h,\t \"\0\r\xa3}")),
    BAD("9", "a byte in a size", SIZE("2{?x_ .\r}2")),
    BAD("9 3", "a bare LF or CR behind a size", POST CHUNKED "22{?\n\r}" FORM "\r\n0\r\n\r\n"),
    CASE("9", "a size of 2^64 and 34", SIZE("10000000000000022"), CLOSED, 413),
    CASE("9", "a second size that overflows the sum", CHUNK "FFFFFFFFFFFFFFDE\r\nx", CLOSED, 413),
    CASE("9", "65,536 bytes in two chunks",
         POST CHUNKED "ffff\r\n" FORM "&x={a*65498}\r\n1\r\na\r\n0\r\n\r\n", KEPT, 303),
    CASE("9", "a chunk of 65,537 bytes is refused at once", POST CHUNKED "10001\r\n", CLOSED, 413),

    BAD("9", "a chunk shorter than its size", SIZE("23")),
    BAD("9", "a chunk longer than its size", SIZE("21")),
    BAD("9 3", "a byte behind a chunk", POST CHUNKED "22\r\n" FORM "{?\n\r 0}\r\n0\r\n\r\n"),
    BAD("9 13", "a request where a chunk's end should be",
        POST CHUNKED "22\r\n" FORM SMUGGLED "0\r\n\r\n"),

    CASE("9", "trailers are dropped", CHUNK "0\r\nX: y\r\nZ:\r\n\r\n", KEPT, 303),
    CASE("9", "trailers have no say about the body",
         POST CHUNKED "22\r\n" FORM
                      "\r\n0\r\nContent-Length: 38\r\nTransfer-Encoding: gzip\r\n\r\n",
         KEPT, 303),
    CASE("9", "nor about the host or the connection",
         CHUNK "0\r\nHost: other\r\nConnection: close\r\nExpect: miracles\r\n\r\n", KEPT, 303),
    CASE("9", "nor about the form",
         "POST /guestbook HTTP/1.1\r\n" HOST CHUNKED "22\r\n" FORM "\r\n0\r\n" FORM_TYPE "\r\n",
         KEPT, 415),
    BAD("9 5", "a trailer without a colon", CHUNK "0\r\nX\r\n\r\n"),
    BAD("9 5", "a folded trailer", CHUNK "0\r\nX: y\r\n z\r\n\r\n"),
    BAD("9 5", "a trailer with a byte that its name may not hold",
        CHUNK "0\r\nX{? \0/}: y\r\n\r\n"),
    BAD("9 5", "a trailer with a byte that its value may not hold",
        CHUNK "0\r\nX: {?\0\n\x7f}\r\n\r\n"),
    BAD("9 3", "a bare LF for the last line", CHUNK "0\r\n\n"),
    BAD("9 13", "a request where the last line should be", CHUNK "0\r\n" SMUGGLED),
    CASE("9 6", "97 trailers and 3 fields", CHUNK "0\r\n{X: y\r\n*97}\r\n", KEPT, 303),
    CASE("9 6", "98 trailers and 3 fields", CHUNK "0\r\n{X: y\r\n*98}\r\n", CLOSED, 431),
    CASE("9 6", "fields and trailers of 16,384 bytes", CHUNK "0\r\nX: {a*16290}\r\n\r\n", KEPT,
         303),
    CASE("9 6", "fields and trailers of 16,385 bytes", CHUNK "0\r\nX: {a*16291}\r\n\r\n", CLOSED,
         431),
    CASE("9 6", "a trailer without an end", CHUNK "0\r\nX: {a*20000}", CLOSED, 431),

    /* ---- 10: what does not arrive in full --------------------------------------------------- */
    CASE("10", "a client that says nothing gets nothing", "", LEFT, 0),
    CASE("10", "a head without its end", GET, LEFT, 0),
    CASE("10", "a form of which a byte is missing", LENGTH(" 35"), LEFT, 0),
    CASE("10", "half a chunk", POST CHUNKED "23\r\n" FORM, LEFT, 0),
    CASE("10", "chunks without a last one", CHUNK "", LEFT, 0),
    CASE("10", "that line without its last byte", CHUNK "0\r\n\r", LEFT, 0),
    CASE("10 11", "a form that was asked for and never came",
         POST "Expect: 100-continue\r\nContent-Length: 34\r\n\r\n", LEFT, 100),
    CASE("10 13", "a whole request and half of one", GET "\r\n" LENGTH(" 35"), LEFT, 200),

    /* ---- 11: Expect ------------------------------------------------------------------------- */
    CASE("11", "a client that asks is told to go on", EXPECT("100-continue"), KEPT, 100, 303),
    CASE("11", "in whatever case it asks",
         POST "expect:100-Continue\r\nContent-Length: 34\r\n\r\n" FORM, KEPT, 100, 303),
    CASE("11 9", "also with chunks",
         POST "Expect: 100-continue\r\n" CHUNKED "22\r\n" FORM "\r\n0\r\n\r\n", KEPT, 100, 303),
    CASE("11", "not if there is no body", GET "Expect: 100-continue\r\n\r\n", KEPT, 200),
    CASE("11 13", "once for each of two", EXPECT("100-continue") EXPECT("100-continue"), KEPT, 100,
         303, 100, 303),
    CASE("11 7", "a body that is too large is refused at once",
         POST "Expect: 100-continue\r\nContent-Length: 65537\r\n\r\n", CLOSED, 413),
    CASE("11 8", "another coding is refused at once",
         POST "Expect: 100-continue\r\nTransfer-Encoding: gzip\r\n\r\n", CLOSED, 501),
    BAD("11 4", "a missing host is refused at once",
        "POST /guestbook HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 34\r\n\r\n"),
    CASE("11", "the method is judged after the body", "POST /index.html HTTP/1.1\r\n" HOST EXPECTED,
         KEPT, 100, 405),
    CASE("11", "a body that turns out to be malformed",
         POST "Expect: 100-continue\r\n" CHUNKED "x\r\n", CLOSED, 100, 400),
    CASE("11 9", "a body that turns out to be too large",
         POST "Expect: 100-continue\r\n" CHUNKED "10001\r\n", CLOSED, 100, 413),
    CASE("11 12", "another expectation", GET "Expect: miracles\r\n\r\n", CLOSED, 417),
    CASE("11", "an empty expectation", EXPECT(""), CLOSED, 417),
    CASE("11", "one expectation too many", EXPECT("100-continue, miracles"), CLOSED, 417),
    CASE("11", "two fields, which are a list", POST "Expect: 100-continue\r\n" EXPECTED, CLOSED,
         417),

    /* ---- 12: refusals, and errors that are none --------------------------------------------- */
    BAD("12", "a refusal is the only response to what came with it",
        "GET / HTTP/1.1\r\n\r\n" SMUGGLED SMUGGLED),
    BAD("12", "however much that was", "BAD\r\n{x*30000}\r\n\r\n" SMUGGLED),
    CASE("12", "an error on a connection that was to be closed",
         LINE_AND("GET /nothing HTTP/1.1", "Connection: close"), CLOSED, 404),

    /* ---- 13: pipelines, and Connection ------------------------------------------------------ */
    CASE("13", "ten at once",
         GET "\r\n" GET_OF("/a") GET "\r\n" GET_OF("/b") GET "\r\n" GET_OF("/c") GET
         "\r\n" GET_OF("/d") GET "\r\n" GET_OF("/e"),
         KEPT, 200, 404, 200, 404, 200, 404, 200, 404, 200, 404),
    CASE("13 15", "of all kinds",
         LINE("HEAD / HTTP/1.1") POSTED LINE("OPTIONS * HTTP/1.1") POST CHUNKED
         "22\r\n" FORM "\r\n0\r\n\r\n" GET_OF("/guestbook") GET_OF("/sub") LINE("PUT / HTTP/1.1")
             GET_OF("/%zz"),
         KEPT, HEAD_(200), 303, 204, 303, 200, 301, 405, 400),
    CASE("13", "nothing behind a close is looked at",
         GET "Connection: close\r\n\r\n" GET_OF("/nothing"), CLOSED, 200),
    CASE("13 12", "a refusal in the middle", GET "\r\nGET / HTTP/1.1\r\n\r\n" SMUGGLED, CLOSED, 200,
         400),
    CASE("13", "close in a list", GET "Connection: foo , close,bar\r\n\r\n", CLOSED, 200),
    CASE("13", "close wins", GET "Connection: close, keep-alive\r\n\r\n", CLOSED, 200),
    CASE("13", "what only begins like close", GET "Connection: closed\r\n\r\n", KEPT, 200),

    /* ---- 14: half-closed -------------------------------------------------------------------- */
    CASE("14", "a file for a client that half-closes", GET "\r\n", LEFT, 200),
    CASE("14", "the guestbook for one", GET_OF("/guestbook"), LEFT, 200),
    CASE("14", "chunks of one are stored", SIZE("22"), LEFT, 303),
    CASE("14 13", "three requests of one", GET "\r\n" POSTED GET_OF("/nothing"), LEFT, 200, 303,
         404),
    CASE("14 12", "a refusal for one", "GET / HTTP/1.1\r\n\r\n", LEFT, 400),

    /* ---- 15: no body ------------------------------------------------------------------------ */
    CASE("15", "HEAD of a file", LINE("HEAD / HTTP/1.1"), KEPT, HEAD_(200)),
    CASE("15", "HEAD of what is not there", LINE("HEAD /nothing HTTP/1.1"), KEPT, HEAD_(404)),
    CASE("15 12", "HEAD that is refused", "HEAD / HTTP/1.1\r\n\r\n", CLOSED, HEAD_(400)),
    CASE("15 13", "HEAD between two", GET LINE("\r\nHEAD / HTTP/1.1") GET "\r\n", KEPT, 200,
         HEAD_(200), 200),
    CASE("15 20", "304 has no body", TEN("If-None-Match: *"), KEPT, 304),

    /* ---- 16: methods and pages -------------------------------------------------------------- */
    CASE("16", "methods are spelled as they are", LINE("get / HTTP/1.1"), KEPT, 501),
    CASE("16", "every character a method may hold", LINE("!#$%&'*+-.^_`|~09azAZ / HTTP/1.1"), KEPT,
         501),
    CASE("16", "TRACE shows nobody anything", LINE_AND("TRACE / HTTP/1.1", "Cookie: a"), KEPT, 405),
    CASE("16", "a page past the end", GET_OF("/guestbook?page=1000000"), KEPT, 200),
    CASE("16", "page 0", GET_OF("/guestbook?page=0"), KEPT, 400),
    CASE("16", "a page that is no number", GET_OF("/guestbook?page={?-+xt.}1"), KEPT, 400),
    CASE("16", "no page", GET_OF("/guestbook?page="), KEPT, 400),
    CASE("16", "another key", GET_OF("/guestbook?xpage=0"), KEPT, 200),
    CASE("16", "the guestbook's name with a slash behind it", GET_OF("/guestbook/"), KEPT, 404),
    CASE("16 17", "a bad path of PUT", LINE("PUT /.. HTTP/1.1"), KEPT, 400),
    CASE("16", "a form that says its characters",
         "POST /guestbook HTTP/1.1\r\n" HOST "Content-Type: APPLICATION/x-www-form-urlencoded ; "
         "charset=UTF-8\r\nContent-Length: 34\r\n\r\n" FORM,
         KEPT, 303),
    CASE("16", "a form of another type",
         "POST /guestbook HTTP/1.1\r\n" HOST
         "Content-Type: application/x-www-form-urlencodedx\r\nContent-Length: 34\r\n\r\n" FORM,
         KEPT, 415),
    CASE("16", "a name of 65 characters", POST_OF(92, "guest-name={A*65}&guest-remarks=b"), KEPT,
         400),
    CASE("16", "a name of 64 characters of two bytes",
         POST_OF(411, "guest-name={%C3%A9*64}&guest-remarks=b"), KEPT, 303),
    CASE("16", "remarks of 1,000 characters, of which a line break is one",
         POST_OF(6022, "guest-name=a&guest-remarks=b{%0D%0A*999}"), KEPT, 303),
    CASE("16", "remarks of 1,001 characters",
         POST_OF(6023, "guest-name=a&guest-remarks=bb{%0D%0A*999}"), KEPT, 400),

    /* ---- 17: paths -------------------------------------------------------------------------- */
    CASE("17", "an escaped letter", GET_OF("/%69ndex.html"), KEPT, 200),
    CASE("17", "an escaped slash", GET_OF("/sub%2findex.html"), KEPT, 200),
    CASE("17", "escapes are decoded once", GET_OF("/%2569ndex.html"), KEPT, 404),
    CASE("17", "a plus sign is a plus sign", GET_OF("/a+b"), KEPT, 404),
    CASE("17", "escaped bytes that are no UTF-8", GET_OF("/%FF"), KEPT, 404),
    CASE("17", "an escaped question mark is no query", GET_OF("/index.html%3fx"), KEPT, 404),
    CASE("17", "an escape that is none", GET_OF("/%{?zu+%/}1"), KEPT, 400),
    CASE("17", "half an escape", GET_OF("/%4{?gZ-/?}"), KEPT, 400),
    CASE("17", "an escaped NUL", GET_OF("/index.html%00"), KEPT, 400),
    CASE("17", "an escaped control character", GET_OF("/%0{?9ad}"), KEPT, 400),
    CASE("17", "a dot segment", GET_OF("/./index.html"), KEPT, 200),
    CASE("17", "a way up and down again", GET_OF("/sub/../index.html"), KEPT, 200),
    CASE("17", "a way up from what is not there", GET_OF("/nothing/../index.html"), KEPT, 200),
    CASE("17", "an escaped way up and down again", GET_OF("/sub/%2e%2E%2findex.html"), KEPT, 200),
    CASE("17", "an odd way to the guestbook", GET_OF("//x/../%67uestbook"), KEPT, 200),
    CASE("17", "above the root", GET_OF("/../secret"), KEPT, 400),
    CASE("17", "above the root after all", GET_OF("/sub/../../secret"), KEPT, 400),
    CASE("17", "escaped above the root", GET_OF("/%2e%2e/secret"), KEPT, 400),
    CASE("17", "above the root with an escaped slash", GET_OF("/sub/..%2f..%2fsecret"), KEPT, 400),
    CASE("17", "far above the root", GET_OF("/%2e%2E/.%2e//./%2e./../etc/passwd"), KEPT, 400),
    CASE("17", "escaped twice it is only a name", GET_OF("/%252e%252e%252fsecret"), KEPT, 404),
    CASE("17", "an escaped backslash is only a name", GET_OF("/..%5csecret"), KEPT, 404),
    CASE("17 4", "above the root in absolute-form", GET_OF("http://test/../secret"), KEPT, 400),
    CASE("17", "a link that leads out", GET_OF("/link"), KEPT, 404),
    CASE("17", "a folder that is one", GET_OF("/up/secret"), KEPT, 404),
    CASE("17", "more than two dots are a name", GET_OF("/..{?.;}/index.html"), KEPT, 404),

    /* ---- 18: what is a file ----------------------------------------------------------------- */
    CASE("18", "a file in a folder", GET_OF("/sub/index.html"), KEPT, 200),
    CASE("18", "a folder without its slash", GET_OF("/sub"), KEPT, 301),
    CASE("18", "a folder without its slash but with a query", GET_OF("/sub?a=%0d%0aX:y"), KEPT,
         301),
    CASE("18", "a folder without a page is not listed", GET_OF("/empty/"), KEPT, 404),
    CASE("18", "a folder that is none", GET_OF("/index.html/"), KEPT, 404),
    CASE("18", "a dot file", GET_OF("/.hidden"), KEPT, 404),
    CASE("18", "names have their case", GET_OF("/INDEX.HTML"), KEPT, 404),
    CASE("19", "a file of a known type", GET_OF("/ten.txt"), KEPT, 200),

    /* ---- 20: conditions --------------------------------------------------------------------- */
    CASE("20", "a tag that fits", TEN("If-None-Match: {ETAG}"), KEPT, 304),
    CASE("20", "a weak tag that fits", TEN("If-None-Match: W/{ETAG}"), KEPT, 304),
    CASE("20", "a tag in a list", TEN("If-None-Match: \"a,b\", {ETAG} , \"c\""), KEPT, 304),
    CASE("20", "a tag in a second line", TEN("If-None-Match: \"a\"\r\nIf-None-Match: {ETAG}"), KEPT,
         304),
    CASE("20", "a tag that does not fit", TEN("If-None-Match: \"a\""), KEPT, 200),
    CASE("20", "no tag can fit what is not there",
         LINE_AND("GET /nothing HTTP/1.1", "If-None-Match: *"), KEPT, 404),
    CASE("20", "not modified since, in the form to be sent", SINCE(THEN), KEPT, 304),
    CASE("20", "not modified since, in the form of RFC 850",
         SINCE("Sunday, 06-Nov-94 08:49:37 GMT"), KEPT, 304),
    CASE("20", "not modified since, in the form of asctime", SINCE("Sun Nov  6 08:49:37 1994"),
         KEPT, 304),
    CASE("20", "a year of two digits that has begun with 20",
         SINCE("Wednesday, 27-Sep-00 23:59:59 GMT"), KEPT, 304),
    CASE("20", "a leap day", SINCE("Tue, 29 Feb 2000 00:00:00 GMT"), KEPT, 304),
    CASE("20", "a date with something behind it", SINCE(THEN "{?+,:x1}1"), KEPT, 200),
    CASE("20", "a date with much behind it", SINCE(THEN "{ *99}x"), KEPT, 200),
    CASE("20", "a date without its zone", SINCE("Sun, 06 Nov 1994 08:49:37"), KEPT, 200),
    CASE("20", "a date of another zone", SINCE("Sun, 06 Nov 1994 08:49:37 UTC"), KEPT, 200),
    CASE("20", "an hour that is none", SINCE("Sun, 06 Nov 1994 25:49:37 GMT"), KEPT, 200),
    CASE("20", "a second that is none", SINCE("Sun, 06 Nov 1994 08:49:60 GMT"), KEPT, 200),
    CASE("20", "a day that is none", SINCE("Wed, 30 Feb 2000 00:00:00 GMT"), KEPT, 200),
    CASE("20", "a date in another form", SINCE("1994-11-06T08:49:37Z"), KEPT, 200),
    CASE("20", "a date in seconds", SINCE("784111777"), KEPT, 200),
    CASE("20", "modified since, in the form to be sent", SINCE(BEFORE), KEPT, 200),
    CASE("20", "a date that is none is ignored", SINCE("yesterday"), KEPT, 200),
    CASE("20", "two dates are ignored", SINCE(THEN "\r\nIf-Modified-Since: " THEN), KEPT, 200),
    CASE("20", "a tag that does not fit beats a date that does",
         TEN("If-None-Match: \"a\"\r\nIf-Modified-Since: " THEN), KEPT, 200),
    CASE("20", "a tag that fits beats a date that does not",
         SINCE(BEFORE "\r\nIf-None-Match: {ETAG}"), KEPT, 304),
    CASE("20", "only if the tag fits, and it does", TEN("If-Match: {ETAG}"), KEPT, 200),
    CASE("20", "only if the tag fits, and it does not", TEN("If-Match: \"a\""), KEPT, 412),
    CASE("20", "only if the tag fits, and it is weak", TEN("If-Match: W/{ETAG}"), KEPT, 412),
    CASE("20", "only if there is any", TEN("If-Match: *"), KEPT, 200),
    CASE("20", "one condition behind the other, the first holds",
         TEN("If-Match: {ETAG}\r\nIf-None-Match: *"), KEPT, 304),
    CASE("20", "one condition behind the other, the first does not hold",
         TEN("If-Match: \"a\"\r\nIf-None-Match: *"), KEPT, 412),
    CASE("20", "a tag beats a date that would forbid it",
         TEN("If-Match: {ETAG}\r\nIf-Unmodified-Since: " BEFORE), KEPT, 200),
    CASE("20", "one date behind the other", UNLESS(BEFORE "\r\nIf-Modified-Since: " LATER), KEPT,
         412),
    CASE("20", "only if unmodified, and it is modified", UNLESS("Sun Nov  6 08:49:36 1994"), KEPT,
         412),
    CASE("20", "only if unmodified since 1970", UNLESS("Thu, 01 Jan 1970 00:00:00 GMT"), KEPT, 412),
    CASE("20", "only if unmodified since a date that is none", UNLESS("yesterday"), KEPT, 200),

    /* ---- 21: ranges ------------------------------------------------------------------------- */
    CASE("21", "the first byte", PART("0-0"), KEPT, 206),
    CASE("21", "from the third on", PART("2-"), KEPT, 206),
    CASE("21", "the last three", PART("-3"), KEPT, 206),
    CASE("21", "more than there is", PART("5-99"), KEPT, 206),
    CASE("21", "more than a number holds", PART("5-99999999999999999999999999"), KEPT, 206),
    CASE("21", "the last hundred of ten", PART("-100"), KEPT, 206),
    CASE("21", "a unit of any case", TEN("Range: BYTES=0-0"), KEPT, 206),
    CASE("21", "behind the end", PART("10-"), KEPT, 416),
    CASE("21", "the last none", PART("-0"), KEPT, 416),
    CASE("21", "two ranges are ignored", PART("0-0,2-2"), KEPT, 200),
    CASE("21", "two fields of ranges are ignored", PART("0-0\r\nRange: bytes=2-2"), KEPT, 200),
    CASE("21", "two conditions on a range are none that can hold",
         PART_IF("{ETAG}\r\nIf-Range: {ETAG}"), KEPT, 200),
    CASE("21", "a range that runs backwards", PART("5-2"), KEPT, 200),
    CASE("21", "a range that is none", PART("{?a+- ,}1-2"), KEPT, 200),
    CASE("21", "something behind a range", PART("3-5{?x-,.}"), KEPT, 200),
    CASE("21", "a name that begins like that of a range", TEN("Range-X: bytes=0-0"), KEPT, 200),
    CASE("21", "another unit", TEN("Range: lines=0-0"), KEPT, 200),
    CASE("21 15", "HEAD knows no ranges", LINE_AND("HEAD /ten.txt HTTP/1.1", "Range: bytes=0-0"),
         KEPT, HEAD_(200)),
    CASE("21", "a range of what is not there",
         LINE_AND("GET /nothing HTTP/1.1", "Range: bytes=0-0"), KEPT, 404),
    CASE("21", "a range of the same file", PART_IF("{ETAG}"), KEPT, 206),
    CASE("21", "a range of another file", PART_IF("\"a\""), KEPT, 200),
    CASE("21", "a weak tag is not enough", PART_IF("W/{ETAG}"), KEPT, 200),
    CASE("21", "a range of a file of that date", PART_IF(THEN), KEPT, 206),
    CASE("21", "a range of a file of another date", PART_IF(LATER), KEPT, 200),
    CASE("21 20", "a range of what has changed", PART("0-0\r\nIf-None-Match: \"a\""), KEPT, 206),
    CASE("21 20", "what has not changed needs no range", PART("0-0\r\nIf-None-Match: {ETAG}"), KEPT,
         304),
    CASE("21 20", "a range that cannot be, of what has changed", PART("99-\r\nIf-Match: \"a\""),
         KEPT, 412),

    /* ---- 22: pages -------------------------------------------------------------------------- */
    CASE("22", "a page says what it may fetch", GET_OF("/sub/index.html"), KEPT, 200),
    CASE("22", "and so does one about an error", GET_OF("/nothing.html"), KEPT, 404),
};

enum { WIRE_CASES = sizeof(wire_cases) / sizeof(wire_cases[0]) };

/* The bytes that {?abc} stands for; NULL: there is no such in the row. */
static inline const char *wire_choice(const struct wire_case *row, size_t *count)
{
    const char *at = memmem(row->bytes, row->len, "{?", 2);
    const char *close = at ? memchr(at, '}', row->len - (size_t)(at - row->bytes)) : NULL;
    *count = close ? (size_t)(close - at) - 2 : 0;
    return *count ? at + 2 : NULL;
}

/* How many requests a row stands for. */
static inline size_t wire_variants(const struct wire_case *row)
{
    size_t count;
    return wire_choice(row, &count) ? count : 1;
}

/* Writes {TEXT*COUNT} at `at` in full, and returns what is behind it; NULL if it is none. */
static inline const char *wire_write_braces(FILE *out, const char *at, const char *end,
                                            const char *etag)
{
    const char *close = *at == '{' ? memchr(at, '}', (size_t)(end - at)) : NULL;
    const char *star = close ? memrchr(at, '*', (size_t)(close - at)) : NULL;
    char *stop = NULL;
    long count = star ? strtol(star + 1, &stop, 10) : 0;
    if (close && close - at == 5 && memcmp(at, "{ETAG", 5) == 0)
        fputs(etag, out);
    else if (!star || stop != close || stop == star + 1)
        return NULL;
    for (; count > 0; count--)
        fwrite(at + 1, 1, (size_t)(star - at - 1), out);
    return close + 1;
}

/* The bytes of a row, with one byte of {?abc}; `etag` is the tag of /ten.txt. */
static inline void wire_write(FILE *out, const struct wire_case *row, size_t variant,
                              const char *etag)
{
    const char *end = row->bytes + row->len;
    size_t count;
    const char *choice = wire_choice(row, &count);
    for (const char *at = row->bytes, *behind; at < end; at = behind) {
        behind = wire_write_braces(out, at, end, etag);
        if (at + 2 == choice) {
            putc(choice[variant], out);
            behind = choice + count + 1;
        } else if (!behind) {
            putc(*at, out);
            behind = at + 1;
        }
    }
}

#endif
