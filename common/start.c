#include "start.h"

#include "app.h"
#include "process.h"

#include <errno.h>
#include <string.h>

struct board *start_server(const struct options *options, struct redis_server *server, int slots,
                           enum status_workers workers, const char *architecture)
{
    process_start();
    app_start(options);
    redis_find(server, options);
    struct board *board = board_open(slots);
    if (!board)
        process_die(options->name, "cannot start: %s", strerror(errno));
    status_start(options, board, workers, architecture);
    return board;
}
