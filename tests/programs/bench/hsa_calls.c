/* Times a call of the HSA runtime that does nearly nothing. Prints the median and the 99th percentile, ns.
 *
 *   hsa_calls COUNT */
#include <hsa/hsa.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static int by_size(const void *one, const void *other) {
    long long difference = *(const long long *)one - *(const long long *)other;
    return (difference > 0) - (difference < 0);
}

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
    qsort(times, count, sizeof *times, by_size);
    printf("load %lld %lld\n", times[count / 2], times[count - 1 - count / 100]);
    hsa_shut_down();
    free(times);
    return 0;
}
