/* Times a call of the HSA runtime that does nearly nothing. Prints the median and the 99th percentile, ns.
 *
 *   hsa_calls COUNT */
#include <hsa/hsa.h>

#include "times.h"

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 0;
    hsa_signal_t signal;
    if (count < 100 || hsa_init() || hsa_signal_create(1, 0, NULL, &signal)) return 1;
    long long *times = malloc(count * sizeof *times);
    for (int i = 0; i < count; i++) {
        long long begin = now();
        (void)hsa_signal_load_relaxed(signal);
        times[i] = now() - begin;
    }
    print_times("load", times, count);
    hsa_shut_down();
    free(times);
    return 0;
}
