// HIP calls below DEPTH functions: CALLS launches of an empty kernel, waited for every 100, and CALLS of hipStreamQuery.
//
//   deep_calls DEPTH CALLS
//
// Prints ns of wall time per call, its two clock readings included: "launch P50 P99" and "query P50 P99".
#include "../../../fixtures/programs/check.h"

#include <algorithm>
#include <time.h>
#include <vector>

__global__ void short_kernel() {}

static double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void print(const char *name, std::vector<double> &ns) {
    std::sort(ns.begin(), ns.end());
    printf("%s %.0f %.0f\n", name, ns[ns.size() / 2], ns[ns.size() * 99 / 100]);
}

static void measure(int calls) {
    std::vector<double> launch, query;
    for (int i = 0; i < calls; i++) {
        const double before = now();
        short_kernel<<<1, 1>>>();
        launch.push_back(now() - before);
        if (i % 100 == 99) HIP(hipStreamSynchronize(nullptr));
    }
    HIP(hipGetLastError());
    for (int i = 0; i < calls; i++) {
        const double before = now();
        HIP(hipStreamQuery(nullptr));
        query.push_back(now() - before);
    }
    print("launch", launch);
    print("query", query);
}

__attribute__((noinline)) static void below(int depth, int calls) {
    if (depth > 0) below(depth - 1, calls);
    else measure(calls);
    asm volatile("" ::: "memory"); // so that the call above is no jump
}

int main(int argc, char **argv) {
    if (argc < 3 || atoi(argv[2]) < 1) {
        fputs("usage: deep_calls DEPTH CALLS\n", stderr);
        return 2;
    }
    short_kernel<<<1, 1>>>();
    HIP(hipDeviceSynchronize());
    below(atoi(argv[1]), atoi(argv[2]));
    return 0;
}
