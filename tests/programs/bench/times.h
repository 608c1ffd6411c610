/* Times of single calls, and what is printed of them. */
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

/* The median and the 99th percentile, ns. */
static void print_times(const char *name, long long *times, int count) {
    qsort(times, (size_t)count, sizeof *times, by_size);
    printf("%s %lld %lld\n", name, times[count / 2], times[count - 1 - count / 100]);
}
