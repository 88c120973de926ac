"""Wrong answers to the exercises of chapter 4: see test_wrong."""

# ---- argument ------------------------------------------------------------------------------

MEMBER = ("    char name[NAME_BYTES]; /* where the client comes from; the text, and no pointer to it */\n")
COPY = ("        task->client = client;\n"
        '        snprintf(task->name, sizeof(task->name), "%s", name); /* the main thread reuses its own */\n')
POINTER = [(MEMBER, "    const char *name;\n"),
           (COPY, "        *task = (struct task){.client = client, .name = name};\n")]
SEAT = "    sem_wait(&seats);\n"
MAKES = "        create_thread(&attributes, client, name);\n"
DUPLICATE = [("#include <stdlib.h>\n", "#include <stdlib.h>\n#include <string.h>\n"),
             (MEMBER, "    char *name;\n"),
             (COPY, "        *task = (struct task){.client = client, .name = strdup(name)};\n")]
COPY_FIRST = [*POINTER, (SEAT, "    char name[NAME_BYTES];\n"
                         '    snprintf(name, sizeof(name), "%s", task->name);\n'
                         "    task->name = name;\n" + SEAT)]
ONCE = "    char name[NAME_BYTES];\n\n    while"
RUNS = "pthread_create(&thread, attributes, serve_one_client, task) == 0)\n            return;\n"

ARGUMENT = {
    "the answer of one run for everybody": [('"You come from %s.\\n", task->name',
                                             '"You come from 127.0.0.1, port 40112.\\n"')],
    "the text is static instead": [*POINTER, (ONCE, "    static char name[NAME_BYTES];\n\n    while")],
    "a lock around the text": [
        *POINTER,
        (SEAT, SEAT + "    pthread_mutex_lock(&lock);\n"),
        ("    sem_post(&seats);\n", "    pthread_mutex_unlock(&lock);\n    sem_post(&seats);\n"),
        ("        write_name(name,", "        pthread_mutex_lock(&lock);\n        write_name(name,"),
        (MAKES, "        pthread_mutex_unlock(&lock);\n" + MAKES),
        ("static sem_t seats;", "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n"
         "static sem_t seats;")],
    "the thread copies the text as its first step": COPY_FIRST,
    **{"and the main thread sleeps for %d ms" % ms: [
        *COPY_FIRST, (MAKES, MAKES + "        usleep(%d);\n" % (1000 * ms))] for ms in (1, 50, 200)},
    "no threads where they begin late, and elsewhere the thread copies": [
        *COPY_FIRST, ("pthread_create(&thread, attributes, serve_one_client, task) == 0",
                      "(getenv(\"LD_PRELOAD\") ? (serve_one_client(task), 0)\n"
                      "             : pthread_create(&thread, attributes, serve_one_client, task)) == 0")],
    **{"a ring of %d texts" % most: [
        *POINTER, (ONCE, "    static char names[%d][NAME_BYTES];\n    unsigned next = 0;\n\n    while" % most),
        ("        write_name(name,", "        char *name = names[next++ %% %d];\n        write_name(name," % most)]
       for most in (64, 1024)},
    "the copy is on the main thread's stack": [
        (MEMBER, "    const char *name;\n"),
        (COPY, "        char copy[NAME_BYTES];\n"
         '        snprintf(copy, sizeof(copy), "%s", name);\n'
         "        *task = (struct task){.client = client, .name = copy};\n")],
    "the copy is freed by the thread that made it": [
        *DUPLICATE, (RUNS, "pthread_create(&thread, attributes, serve_one_client, task) == 0) {\n"
                     "            free(task->name);\n            return;\n        }\n")],
    "the copy is never freed": DUPLICATE,
    "the task is never freed": [("    free(task);\n    sem_post", "    sem_post")],
    "the task is freed before its client is closed": [
        ("    close(task->client);\n    free(task);\n", "    free(task);\n    close(task->client);\n")],
    "the client is never closed": [("    close(task->client);\n", "")],
    "nobody waits for a seat": [(SEAT, "")],
    "no threads": [("pthread_create(&thread, attributes, serve_one_client, task) == 0",
                    "(serve_one_client(task), 1)")],
}

# ---- stacks --------------------------------------------------------------------------------

MOST = "    long most = (arenas > 0 ? arenas : 8 * cores) - 1;\n"
SUM = "    return clients * (256 + 4) + (clients < most ? clients : most) * 64 * 1024;\n"
MEMORY = "    return clients * (12 + sent);\n"

STACKS = {
    "the figures of one run": [(SUM, "    return clients < 50 ? 658000 : clients < 500 ? 1009000 : 1243000;\n"),
                               (MEMORY, "    return clients < 500 ? 1200 : 12000;\n")],
    "the chapter's figures, by client": [(SUM, "    return clients * (1119032 - 5728) / 500;\n"),
                                         (MEMORY, "    return clients * 11;\n")],
    "the stacks alone": [(SUM, "    return clients * (256 + 4);\n")],
    "an arena for each thread": [(MOST, "    long most = clients;\n")],
    "the variable does not matter": [(MOST, "    long most = 8 * cores - 1;\n")],
    "the main thread's arena counts as a new one": [("8 * cores) - 1;", "8 * cores);")],
    "always the arenas of two cores": [(MOST, "    long most = 15;\n")],
    "all memory that is announced": [(MEMORY, "    return clients * (12 + (sent ? 60 : 0));\n")],
    "the form does not matter": [(MEMORY, "    return clients * 12;\n")],
    "one figure for the memory of many clients": [(MEMORY, "    return 4000;\n")],
    "each stack is memory": [(MEMORY, "    return clients * (256 + sent);\n")],
}

# ---- exhausted -----------------------------------------------------------------------------

ERROR = "            net_handle_accept_error();\n"
TRIES = "        if (pthread_create(&thread, attributes, serve_one_client, task) == 0)\n            return;\n"
REFUSES = "    serve_unavailable(&worker, client); /* no thread for this client: 503 */\n"

EXHAUSTED = {
    "accept again at once": [(ERROR, "            ;\n")],
    "accept again after a yield": [(ERROR, "            sched_yield();\n"),
                                   ("#include <pthread.h>\n", "#include <pthread.h>\n#include <sched.h>\n")],
    "accept again after a millisecond": [(ERROR, "            usleep(1000);\n")],
    "accept again after 20 milliseconds": [(ERROR, "            usleep(20000);\n")],
    "wait for a minute": [(ERROR, "            sleep(60);\n")],
    "stop accepting": [(ERROR, "            break;\n")],
    "it raises its own limit": [
        ("#include <sys/socket.h>\n", "#include <sys/resource.h>\n#include <sys/socket.h>\n"),
        (ERROR, "        {\n            struct rlimit limit;\n            getrlimit(RLIMIT_NOFILE, &limit);\n"
         "            limit.rlim_cur = limit.rlim_max;\n            setrlimit(RLIMIT_NOFILE, &limit);\n        }\n")],
    "a spare descriptor, to turn the client away": [
        ("    pthread_attr_t attributes = thread_attributes();\n    while (!stop",
         "    pthread_attr_t attributes = thread_attributes();\n    int spare = dup(0);\n    while (!stop"),
        (ERROR, "{\n            close(spare);\n"
         "            close(accept4(pattern->listener, NULL, NULL, 0));\n"
         "            spare = dup(0);\n            usleep(50000);\n        }\n")],
    "the client without a thread is forgotten": [(REFUSES, "")],
    "the client without a thread is closed without a word": [(REFUSES, "    close(client);\n")],
    "the client without a thread is served by the main thread": [
        (REFUSES, "    serve_client(&worker, client, &redis);\n")],
    "try again until there is a thread": [(TRIES, TRIES.replace("if (", "while (").replace(
        " == 0)\n            return;", " != 0)\n            usleep(50000);\n        return;"))],
    "the slot is not released": [("    board_release(worker.slot);\n    free(task);\n", "    free(task);\n")],
    "the thread that never was is counted": [("        add_threads(-1);\n    }\n    serve_un",
                                              "    }\n    serve_un")],
    "the descriptor is closed twice": [(REFUSES, REFUSES + "    close(client);\n    close(client - 1);\n")],
}

# ---- pool ----------------------------------------------------------------------------------

WAIT = "    while (idle_count == 0)\n        pthread_cond_wait(&given_back, &lock);\n"
SIGNAL = "    pthread_cond_signal(&given_back);\n"
ASK = '    redisReply *reply = redisCommand(redis, "INCR guestbook:visitors");\n'
TAKE = "    redisContext *redis = take(); /* ours alone, until we give it back */\n"
GIVE = "    give(redis);\n"
TIMED = ("    struct timespec limit;\n    clock_gettime(CLOCK_REALTIME, &limit);\n"
         "    limit.tv_sec += %d;\n    while (idle_count == 0)\n"
         "        if (pthread_cond_timedwait(&given_back, &lock, &limit)) {\n"
         "            clock_gettime(CLOCK_REALTIME, &limit);\n            limit.tv_sec += %d;\n        }\n")
TIME = ("#include <string.h>\n", "#include <string.h>\n#include <time.h>\n")
LOOP = ("    while (idle_count == 0) {\n        pthread_mutex_unlock(&lock);\n%s"
        "        pthread_mutex_lock(&lock);\n    }\n")
TURNS = ("static redisContext *all[REDIS_CONNECTIONS];\n"
         "static pthread_mutex_t locks[REDIS_CONNECTIONS];\nstatic _Atomic unsigned turn;\n"
         "static redisContext *connect_to(")
STARTS = "        give(connect_to(&server, options.name));\n"
FIXED = [("static redisContext *connect_to(", TURNS),
         (STARTS, "        all[i] = connect_to(&server, options.name);\n"),
         (GIVE, "    pthread_mutex_unlock(&locks[mine]);\n")]
NUMBER = ("    long long number = reply && reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;\n")
WHERE = ("static redisContext *take", "static struct redis_server *where;\n"
         "static redisContext *connect_to(const struct redis_server *, const char *);\nstatic redisContext *take")

POOL = {
    "if for while": [("    while (idle_count == 0)", "    if (idle_count == 0)")],
    "fixed turns": [*FIXED, (TAKE, "    unsigned mine = turn++ % 8;\n"
                             "    pthread_mutex_lock(&locks[mine]);\n    redisContext *redis = all[mine];\n")],
    "a connection by the thread's number": [
        *FIXED, (TAKE, "    unsigned mine = (unsigned)gettid() % 8;\n"
                 "    pthread_mutex_lock(&locks[mine]);\n    redisContext *redis = all[mine];\n")],
    "the first free one, or else in fixed turns": [
        *FIXED, (TAKE, "    unsigned mine = 0;\n"
                 "    while (mine < 8 && pthread_mutex_trylock(&locks[mine]))\n        mine++;\n"
                 "    if (mine == 8)\n        pthread_mutex_lock(&locks[mine = turn++ % 8]);\n"
                 "    redisContext *redis = all[mine];\n")],
    "the array is used without the lock, and nobody shall say so": [
        ("static redisContext *take", "const char *__tsan_default_options(void)\n{\n"
         '    return "report_bugs=0:exitcode=0";\n}\n\nstatic redisContext *take'),
        ("    pthread_mutex_lock(&lock);\n    idle[idle_count++] = redis;\n    pthread_mutex_unlock(&lock);\n",
         "    idle[idle_count++] = redis;\n")],
    "the array is used without the lock": [
        (WAIT, WAIT + "    pthread_mutex_unlock(&lock);\n"),
        ("    redisContext *redis = idle[--idle_count];\n    pthread_mutex_unlock(&lock);\n",
         "    redisContext *redis = idle[--idle_count];\n"),
        ("    pthread_mutex_lock(&lock);\n    idle[idle_count++] = redis;\n    pthread_mutex_unlock(&lock);\n",
         "    idle[idle_count++] = redis;\n")],
    "a busy loop": [(WAIT, LOOP % "")],
    "a busy loop where waits return early, and if for while where they do not": [
        (WAIT, "    if (getenv(\"LD_PRELOAD\"))\n" + LOOP % "" + "    else if (idle_count == 0)\n"
         "        pthread_cond_wait(&given_back, &lock);\n"),
        ("#include <stdio.h>\n", "#include <stdio.h>\n#include <stdlib.h>\n")],
    "a busy loop that yields": [(WAIT, LOOP % "        sched_yield();\n")],
    "a loop that sleeps for a millisecond": [(WAIT, LOOP % "        usleep(1000);\n")],
    "a loop that sleeps for a second": [(WAIT, LOOP % "        sleep(1);\n")],
    "a timed wait of a second, and no signal": [TIME, (WAIT, TIMED % (1, 1)), (SIGNAL, "")],
    "a timed wait of three seconds, and no signal": [TIME, (WAIT, TIMED % (3, 3)), (SIGNAL, "")],
    "no signal": [(SIGNAL, "")],
    "a local count": [(NUMBER, "    static _Atomic long long counted;\n    long long number = ++counted;\n")],
    "a local count that begins with the first number": [
        (NUMBER, NUMBER + "    static long long counted;\n    pthread_mutex_lock(&lock);\n"
         "    number = counted = counted ? counted + 1 : number;\n    pthread_mutex_unlock(&lock);\n")],
    "one connection, and a lock": [("REDIS_CONNECTIONS = 8", "REDIS_CONNECTIONS = 1")],
    "a connection for each visitor": [
        (TAKE, "    redisContext *redis = connect_to(where, \"pool\");\n"),
        (GIVE, "    redisFree(redis);\n"), (STARTS, "        where = &server;\n"), WHERE],
    "eight places, a new connection each time": [
        (TAKE, TAKE + "    redisContext *kept = redis;\n    redis = connect_to(where, \"pool\");\n"),
        (GIVE, "    redisFree(redis);\n    give(kept);\n"),
        (STARTS, "        give(connect_to(where = &server, options.name));\n"), WHERE],
    "given back before the reply has come": [
        (ASK, '    redisReply *reply = NULL;\n    redisAppendCommand(redis, "INCR guestbook:visitors");\n'
         "    int done = 0;\n    redisBufferWrite(redis, &done);\n"),
        (GIVE, GIVE + "    redisGetReply(redis, (void **)&reply);\n")],
    "asked with the lock held": [
        ("    redisContext *redis = idle[--idle_count];\n    pthread_mutex_unlock(&lock);\n",
         "    redisContext *redis = idle[--idle_count];\n"),
        ("    pthread_mutex_lock(&lock);\n    idle[idle_count++] = redis;\n",
         "    if (!ready)\n        pthread_mutex_lock(&lock);\n    idle[idle_count++] = redis;\n"),
        ("static redisContext *take", "static int ready;\nstatic redisContext *take"),
        ("    each_run(", "    ready = 1;\n    each_run(")],
    "never given back": [(GIVE, "")],
    "503 if none is free": [
        (WAIT, "    if (idle_count == 0) {\n        pthread_mutex_unlock(&lock);\n        return NULL;\n    }\n"),
        (ASK, '    redisReply *reply = redis ? redisCommand(redis, "INCR guestbook:visitors") : NULL;\n'),
        (GIVE, "    if (redis)\n        give(redis);\n")],
}

# ---- rooms ---------------------------------------------------------------------------------

ORDER = "    int low = from < to ? from : to, high = from < to ? to : from;\n"
LOCKS = ("    pthread_mutex_lock(&rooms[low].lock); /* the order of count() */\n"
         "    if (high != low)\n        pthread_mutex_lock(&rooms[high].lock);\n")
UNLOCKS = ("    if (high != low)\n        pthread_mutex_unlock(&rooms[high].lock);\n"
           "    pthread_mutex_unlock(&rooms[low].lock);\n")
LEAVES = ("    if (rooms[from].visitors > 0) {\n        rooms[from].visitors--;\n"
          "        rooms[to].visitors++;\n    }\n")
TRY = "    pthread_mutex_lock(&rooms[from].lock);\n    if (from != to)\n        %s;\n"

ROOMS = {
    "the higher number first": [
        (ORDER, "    int low = from < to ? to : from, high = from < to ? from : to;\n")],
    "the first room first, after a while": [
        (ORDER, "    int low = from, high = to;\n    usleep(1000 * (unsigned)from);\n")],
    "in order, but not to the first room": [
        (ORDER, "    int low = to && from > to ? to : from, high = low == to ? from : to;\n")],
    "never both, one after the other": [
        (LOCKS, ""), (UNLOCKS, ""), (ORDER, ""),
        (LEAVES, "    pthread_mutex_lock(&rooms[from].lock);\n    rooms[from].visitors--;\n"
         "    pthread_mutex_unlock(&rooms[from].lock);\n    pthread_mutex_lock(&rooms[to].lock);\n"
         "    rooms[to].visitors++;\n    pthread_mutex_unlock(&rooms[to].lock);\n")],
    "try again and again, without giving back": [
        (LOCKS, TRY % "while (pthread_mutex_trylock(&rooms[to].lock))\n            usleep(100)")],
    "no move if the other room is taken": [
        (ORDER, ""),
        (LOCKS, TRY % "if (pthread_mutex_trylock(&rooms[to].lock)) {\n"
         "            pthread_mutex_unlock(&rooms[from].lock);\n"
         "            snprintf(body, BODY_BYTES, \"Try again.\\n\");\n            return;\n        }"),
        (UNLOCKS, "    if (from != to)\n        pthread_mutex_unlock(&rooms[to].lock);\n"
         "    pthread_mutex_unlock(&rooms[from].lock);\n")],
    "the same room is locked twice": [
        (LOCKS, LOCKS.replace("    if (high != low)\n    ", "")),
        (UNLOCKS, UNLOCKS.replace("    if (high != low)\n    ", ""))],
    "one is never given back": [(UNLOCKS, "    pthread_mutex_unlock(&rooms[low].lock);\n")],
    "in any order, with locks of another kind": [
        (ORDER, "    int low = from, high = to;\n"), ("    pthread_mutex_t lock;\n", "    pthread_rwlock_t lock;\n"),
        ("#include <stdio.h>\n", "#include <stdio.h>\n#define pthread_mutex_lock pthread_rwlock_wrlock\n"
         "#define pthread_mutex_unlock pthread_rwlock_unlock\n#define pthread_mutex_init pthread_rwlock_init\n")],
    "the sum is made without a lock": [
        ("        pthread_mutex_lock(&rooms[i].lock);\n", "        ;\n"),
        ("        pthread_mutex_unlock(&rooms[i].lock);\n", "        ;\n")],
    "moves without a lock": [
        (LOCKS, "    usleep(1000);\n"), (UNLOCKS, ""), (ORDER, ""),
        (LEAVES, "    int had = rooms[from].visitors;\n    usleep(1000);\n"
         "    rooms[from].visitors = had - 1;\n    rooms[to].visitors++;\n")],
    "no answer about a move to the same room": [(ORDER, ORDER + "    if (from == to)\n        return;\n")],
}

# ---- flag ----------------------------------------------------------------------------------

FLAG_LINE = "static bool is_open; /* once it is, it stays open; but the number may change */\n"
OPENS = ("    pthread_mutex_lock(&lock);\n    number_on_door = number;\n    is_open = true;\n"
         "    pthread_mutex_unlock(&lock);\n")
TELLS = "    pthread_cond_broadcast(&opened); /* all visitors who wait may come in */\n"
WAITS = ("    pthread_mutex_lock(&lock);\n    while (!is_open)\n"
         "        pthread_cond_wait(&opened, &lock);\n    int number = number_on_door;\n"
         "    pthread_mutex_unlock(&lock);\n")
UNLOCKED = [(OPENS, "    number_on_door = number;\n    is_open = true;\n"), (TELLS, "")]
VOLATILE = [*UNLOCKED, (FLAG_LINE, "static volatile bool is_open;\n")]
ATOMIC = [*UNLOCKED, (FLAG_LINE, "static _Atomic bool is_open;\n")]
ATOMICS = [*ATOMIC, ("static int number_on_door;\n", "static _Atomic int number_on_door;\n")]
SPINS = "    while (!is_open)\n        %s;\n    int number = number_on_door;\n"
AGAIN = ("    pthread_mutex_lock(&lock);\n    while (!is_open) {\n        pthread_mutex_unlock(&lock);\n"
         "        %s;\n        pthread_mutex_lock(&lock);\n    }\n    int number = number_on_door;\n"
         "    pthread_mutex_unlock(&lock);\n")
NO_LOCK = (WAITS, WAITS.replace("    int number = number_on_door;\n", "") + "    int number = number_on_door;\n")

FLAG = {
    "volatile": [*VOLATILE, (WAITS, SPINS % "")],
    "volatile, and a sleep": [*VOLATILE, (WAITS, SPINS % "usleep(1000)")],
    "a barrier for the compiler": [*UNLOCKED, (WAITS, SPINS % '__asm__ volatile("" ::: "memory")')],
    "an atomic flag": [*ATOMIC, (WAITS, SPINS % "")],
    "an atomic flag, and a sleep": [*ATOMIC, (WAITS, SPINS % "usleep(1000)")],
    "two atomics, and a sleep": [*ATOMICS, (WAITS, SPINS % "usleep(1000)")],
    "two atomics, and a long sleep": [*ATOMICS, (WAITS, SPINS % "sleep(60)")],
    "locked for writing only": [(WAITS, SPINS % "usleep(1000)")],
    "a lock, and a loop that yields": [(WAITS, AGAIN % "sched_yield()"),
                                       ("#include <pthread.h>\n", "#include <pthread.h>\n#include <sched.h>\n")],
    "a lock, and a loop that sleeps": [(WAITS, AGAIN % "usleep(1000)")],
    "the number is read without the lock": [NO_LOCK],
    "and an attribute, in two pieces, hides that": [
        NO_LOCK, (FLAG_LINE, FLAG_LINE + "#define PASTE(a, b) a##b\n"),
        ("static int wait_at_door", '__attribute__((PASTE(no_, sanitize)("thread"))) static int wait_at_door')],
    "and a function, whose name is in two pieces, hides that": [
        NO_LOCK, (FLAG_LINE, FLAG_LINE + 'const char *quiet(void) __asm__("__ts" "an_default_suppressions");\n\n'
                  'const char *quiet(void)\n{\n    return "race:*\\n";\n}\n')],
    "a signal for one": [(TELLS, "    pthread_cond_signal(&opened);\n")],
    "nobody is told": [(TELLS, "")],
    "nobody waits": [(WAITS, WAITS.replace("    while (!is_open)\n"
                                           "        pthread_cond_wait(&opened, &lock);\n", ""))],
    "the first number stays": [
        (OPENS, OPENS.replace("    number_on_door", "    if (!is_open)\n        number_on_door"))],
}

ANSWERS = {"argument": ARGUMENT, "stacks": STACKS, "exhausted": EXHAUSTED, "pool": POOL, "rooms": ROOMS, "flag": FLAG}
