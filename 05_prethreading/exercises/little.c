/* Exercise 05/little: how many pages a second a fixed number of threads can serve.
 *
 *     little WORKERS MS CLIENTS PAUSE      prints a number
 *
 * The task is in 05_prethreading/exercises/little.md.
 */
#include <stdio.h>
#include <stdlib.h>

/* Here: be right within 15 %. Nobody waits for the processor. */
static double pages_per_second(double workers, double ms, double clients, double pause)
{
    (void)clients;
    (void)pause;
    return workers * 1000 / ms;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "Usage: little WORKERS MS CLIENTS PAUSE\n");
        return 2;
    }
    printf("%.2f\n", pages_per_second(strtod(argv[1], NULL), strtod(argv[2], NULL),
                                      strtod(argv[3], NULL), strtod(argv[4], NULL)));
    return 0;
}
