/* Times calls of a library that do nothing: a sum of vectors, and a product whose sizes lie in descriptors. Prints the median and the 99th
 * percentile of each, ns. In bursts, so that buffers never fill.
 *
 *   library_calls COUNT */
#include <unistd.h>

#include "times.h"

int rocblas_saxpy(void *, int, const float *, const float *, int, float *, int);
int hipblasLtMatmulDescCreate(void **, int, int);
int hipblasLtMatrixLayoutCreate(void **, int, unsigned long, unsigned long, long);
int hipblasLtMatmul(void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *, void *, void *, void *,
                    const void *, void *, size_t, void *);

enum { BURST = 64 };

static float x[1];
static void *product, *a, *b, *d;

static int sum(void) {
    float alpha = 2;
    return rocblas_saxpy(x, 1, &alpha, x, 1, x, 1);
}

static int multiply(void) {
    float alpha = 2, beta = 1;
    return hipblasLtMatmul(NULL, product, &alpha, x, a, x, b, &beta, x, d, x, d, NULL, NULL, 0, NULL);
}

static int measure(const char *name, int (*call)(void), int count) {
    long long *times = malloc((size_t)count * sizeof *times);
    int failed = 0;
    for (int i = 0; i < count; i++) {
        if (i % BURST == 0) usleep(2000);
        long long begin = now();
        failed |= call();
        times[i] = now() - begin;
    }
    print_times(name, times, count);
    free(times);
    return failed;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 0;
    if (count < 100 || hipblasLtMatmulDescCreate(&product, 2, 0)) return 1;
    if (hipblasLtMatrixLayoutCreate(&a, 2, 64, 48, 64) || hipblasLtMatrixLayoutCreate(&b, 2, 48, 32, 48)) return 1;
    if (hipblasLtMatrixLayoutCreate(&d, 2, 65, 32, 65)) return 1;
    return measure("sum", sum, count) | measure("multiply", multiply, count);
}
