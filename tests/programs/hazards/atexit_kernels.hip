// Kernels from an atexit handler: registered before HIP exists, so that it runs when HIP's own handlers may have run.
//
// They are launched by a thread of their own: at that time the C library has destroyed the main thread's thread-local objects, and HIP
// 5.2.3 writes into freed memory when the main thread calls it then, with the recorder or without.
//
// Usage: atexit_kernels [early|late]     when the handler is registered: before the first HIP call, or behind it
#include "../../../fixtures/programs/check.h"

#include <cstring>
#include <thread>

__global__ void usual(int *count) { *count += 1; }
__global__ void at_exit(int *count) { *count += 1; }

static int *count;

static void launch_here() {
    int counted = 0;
    for (int i = 0; i < 5; i++) at_exit<<<1, 1>>>(count);
    HIP(hipMemcpy(&counted, count, sizeof counted, hipMemcpyDeviceToHost));
    printf("%d kernels at the end\n", counted);
}

static void launch() { std::thread(launch_here).join(); }

int main(int argc, char **argv) {
    bool early = argc > 1 && !strcmp(argv[1], "early");
    if (early) atexit(launch);
    HIP(hipMalloc(&count, sizeof(int)));
    HIP(hipMemset(count, 0, sizeof(int)));
    for (int i = 0; i < 10; i++) usual<<<1, 1>>>(count);
    if (!early) atexit(launch);
    return 0;
}
