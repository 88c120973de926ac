#include "explain.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Redis may have done what was asked, though its reply was lost. */
#define LOOK_FIRST                                                                                 \
    " An entry just posted may or may not have been stored: look before you post it again."

static const struct {
    int status;
    const char *explanation;
} statuses[] = {
    {400, "The request does not follow the rules of HTTP, so it was not understood."},
    {403, "Not everybody may see this. Either it is a file that this server is not permitted to "
          "read, or it is the scoreboard. The server shows its scoreboard to other machines only "
          "if it was started with --status all."},
    {404, "There is nothing under this address."},
    {405, "This address does not support that method. The Allow field of this response lists "
          "the methods that it supports."},
    {408, "The request did not arrive completely within the time limit."},
    {412, "The file has changed, and the request was to be carried out only if it had not."},
    {413, "The request's body is larger than the 64 KiB this server takes."},
    {414, "The address is longer than the 8,000 bytes this server takes."},
    {415, "A form has to come as application/x-www-form-urlencoded."},
    {416, "The file ends before the range that was asked for."},
    {417, "The only expectation this server can meet is 100-continue."},
    {421, "The server's own status is shown only under a name that always means the machine "
          "it runs on: localhost, or an address such as 127.0.0.1. With --status all, the server "
          "shows it under every address of that machine, but under no other name."},
    {431, "The request has more fields, or longer ones, than this server takes."},
    {501, "This server does not know the method, or the transfer coding, of the request."},
    {503, "Something that this server needs is missing at the moment. For the guestbook that is "
          "Redis: redis-server --port 6379 starts one." LOOK_FIRST},
    {504, "Redis did not answer in time." LOOK_FIRST},
    {505, "This server speaks HTTP/1.1 and HTTP/1.0."},
};

const char *explain_status(int status)
{
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        if (statuses[i].status == status)
            return statuses[i].explanation;
    return "Something went wrong in the server.";
}

#define SEE_ERRORS   " What Redis says is on this server's standard error."
#define NOT_ADMITTED "Redis does not let this server in, because it expects another password."

void explain_redis_error(const char *error, bool posted, char text[EXPLAIN_SIZE])
{
    static const struct {
        const char *begins, *explanation;
    } refusals[] = {
        {"NOAUTH ", NOT_ADMITTED},
        {"NOPERM ", "Redis does not permit this server to keep a guestbook."},
        {"OOM ", "Redis has used all the memory it may have."},
        {"READONLY ", "This Redis is a copy of another one, and may only be read."},
        {"NOREPLICAS ", "Redis waits for its copies, and stores nothing without them."},
        {"LOADING ", "Redis has just been started, and is still loading its data."},
        {"MISCONF ", "Redis cannot save its data, and stores nothing until it can."},
        {"WRONGTYPE ", "What Redis keeps under the guestbook's name is no guestbook."},
        {"ERR max number of clients", "Redis has all the clients it may have."},
    };
    const char *explanation = "Redis refused what this server asked for.";
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        if (strncmp(error, refusals[i].begins, strlen(refusals[i].begins)) == 0)
            explanation = refusals[i].explanation;
    snprintf(text, EXPLAIN_SIZE, "%s%s%s", explanation, posted ? " Your entry was not stored." : "",
             SEE_ERRORS);
}

const char explain_not_admitted[] = NOT_ADMITTED LOOK_FIRST;
const char explain_not_ready[] = "Redis is there, but does not serve this server yet. Perhaps it "
                                 "is still loading its data, or has "
                                 "all the clients it may have." SEE_ERRORS LOOK_FIRST;
