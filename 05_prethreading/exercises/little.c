/* Exercise 05/little: how many pages a second a fixed number of threads can serve.
 *
 *     little WORKERS MS CLIENTS      prints a number
 *
 * WORKERS threads of ./prethreading, a Redis that takes MS milliseconds for whatever it is
 * asked, and CLIENTS who come back with a new connection as soon as they have their page.
 * A prediction, no measurement: the check measures.
 */
#include <stdio.h>
#include <stdlib.h>

/* Here: to be right within 15 %. The processor is not what anybody waits for. */
static double pages_per_second(double workers, double ms, double clients)
{
    (void)clients;
    return workers * 1000 / ms;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "Usage: little WORKERS MS CLIENTS\n");
        return 2;
    }
    printf("%.2f\n",
           pages_per_second(strtod(argv[1], NULL), strtod(argv[2], NULL), strtod(argv[3], NULL)));
    return 0;
}
