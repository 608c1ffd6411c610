// Times single calls of HIP: one that does nearly nothing, and a launch. Prints the medians and 99th percentiles, ns.
//
//   calls COUNT
#include "../../../fixtures/programs/check.h"

#include <algorithm>
#include <ctime>
#include <vector>

__global__ void nothing() {}

static long long now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

template <class Call> static void measure(const char *name, int count, Call call) {
    std::vector<long long> times(count);
    for (long long &time : times) {
        long long begin = now();
        call();
        time = now() - begin;
    }
    std::sort(times.begin(), times.end());
    printf("%s %lld %lld\n", name, times[count / 2], times[count - 1 - count / 100]);
}

int main(int, char **arguments) {
    int count = atoi(arguments[1]);
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    HIP(hipStreamSynchronize(stream));
    measure("query", count, [&] { (void)hipStreamQuery(stream); });
    measure("launch", count / 10, [&] { nothing<<<1, 64, 0, stream>>>(); });
    HIP(hipStreamSynchronize(stream));
}
