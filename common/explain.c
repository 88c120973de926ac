#include "explain.h"

#include <stddef.h>
#include <string.h>

/* Redis may have done what was asked, though its reply was lost. */
#define LOOK_FIRST                                                                                 \
    " An entry just posted may or may not have been stored: look before you post it again."

const char *explain_status(int status)
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
        return "The address is longer than the 8,000 bytes this server takes.";
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

/* What was refused was not done. */
#define NOT_STORED                                                                                 \
    " An entry just posted was not stored. What Redis says is on this server's standard error."
#define NOT_ADMITTED "Redis does not let this server in: it expects another password."

const char *explain_redis_error(const char *error)
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

const char explain_not_admitted[] = NOT_ADMITTED LOOK_FIRST;
