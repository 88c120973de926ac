"""Wrong answers to the exercises of chapter 4: see test_exercises."""

# ---- pool ----------------------------------------------------------------------------------

WAIT = "    while (idle_count == 0)\n        pthread_cond_wait(&given_back, &lock);\n"

POOL = {
    "the array is used without the lock": [
        (WAIT, WAIT + "    pthread_mutex_unlock(&lock);\n"),
        ("    redisContext *redis = idle[--idle_count];\n    pthread_mutex_unlock(&lock);\n",
         "    redisContext *redis = idle[--idle_count];\n"),
        ("    pthread_mutex_lock(&lock);\n    idle[idle_count++] = redis;\n    pthread_mutex_unlock(&lock);\n",
         "    idle[idle_count++] = redis;\n")],
    "it naps, and looks again": [(WAIT, """\
    while (idle_count == 0) {
        pthread_mutex_unlock(&lock);
        usleep(1000);
        pthread_mutex_lock(&lock);
    }
""")],
}

# ---- rooms ---------------------------------------------------------------------------------

ORDER = "    int low = from < to ? from : to, high = from < to ? to : from;\n"

ROOMS = {
    "in any order, with locks of another kind": [
        (ORDER, "    int low = from, high = to;\n"), ("    pthread_mutex_t lock;\n", "    pthread_rwlock_t lock;\n"),
        ("#include <stdio.h>\n", "#include <stdio.h>\n#define pthread_mutex_lock pthread_rwlock_wrlock\n"
         "#define pthread_mutex_unlock pthread_rwlock_unlock\n#define pthread_mutex_init pthread_rwlock_init\n")],
    "the sum is made without a lock": [
        ("        pthread_mutex_lock(&rooms[i].lock);\n", "        ;\n"),
        ("        pthread_mutex_unlock(&rooms[i].lock);\n", "        ;\n")],
}

# ---- flag ----------------------------------------------------------------------------------

FLAG_LINE = "static bool is_open; /* once it is, it stays open; but the number may change */\n"
WAITS = ("    pthread_mutex_lock(&lock);\n    while (!is_open)\n"
         "        pthread_cond_wait(&opened, &lock);\n    int number = number_on_door;\n"
         "    pthread_mutex_unlock(&lock);\n")
NO_LOCK = (WAITS, WAITS.replace("    int number = number_on_door;\n", "") + "    int number = number_on_door;\n")

FLAG = {
    "the number is read without the lock": [NO_LOCK],
    "and assembly, where no sanitizer looks": [
        (WAITS, WAITS.replace("    int number = number_on_door;\n", "")
         + '    int number;\n    __asm__ volatile("mov %1, %0" : "=r"(number) : "m"(number_on_door));\n')],
    "and an attribute, in two pieces, hides that": [
        NO_LOCK, (FLAG_LINE, FLAG_LINE + "#define PASTE(a, b) a##b\n"),
        ("static int wait_at_door", '__attribute__((PASTE(no_, sanitize)("thread"))) static int wait_at_door')],
}

ANSWERS = {"pool": POOL, "rooms": ROOMS, "flag": FLAG}
