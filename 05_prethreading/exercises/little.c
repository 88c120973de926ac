/* Exercise 05/little: how many pages a second a fixed number of threads can serve.
 *
 *     little WORKERS MS CLIENTS      prints a number
 *
 * ./prethreading has WORKERS threads, and Redis takes MS milliseconds for every command. Each
 * of CLIENTS clients opens a new connection as soon as it has its page. The number is a
 * prediction: the check measures, this program does not.
 */
#include <stdio.h>
#include <stdlib.h>

/* Here: be right within 15 %. Nobody waits for the processor. */
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
