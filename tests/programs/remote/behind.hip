// Launches kernels that the GPU is far from having done: says `ready`, waits for the file `go`, launches 8 of `first`, one of `slow` and 20
// of `last` without waiting for them, says `launched`, and ends, without its runtime's end, when the file `end` exists.
#include "../../../fixtures/programs/check.h"

#include <unistd.h>

__global__ void first(int *count) { *count += 1; }
__global__ void slow(int *count) { *count += 1; }
__global__ void last(int *count) { *count += 1; }

static void wait_for(const char *file) {
    for (int i = 0; i < 12000 && access(file, F_OK) != 0; i++) usleep(5000);
}

int main() {
    int *count;
    HIP(hipMalloc(&count, sizeof(int)));
    first<<<1, 1>>>(count);
    HIP(hipDeviceSynchronize());
    puts("ready");
    fflush(stdout);
    wait_for("go");
    for (int i = 0; i < 8; i++) first<<<1, 1>>>(count);
    HIP(hipDeviceSynchronize());
    slow<<<1, 1>>>(count);
    for (int i = 0; i < 20; i++) last<<<1, 1>>>(count);
    HIP(hipGetLastError());
    puts("launched");
    fflush(stdout);
    wait_for("end");
    _exit(0);
}
