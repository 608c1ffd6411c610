// A kernel that never ends, if the device is told so (`hanging_kernel`), behind eight that do.
//
// Usage: hang WAY     alarm: when the file "go" exists, waits for it and is ended by its own alarm after a second
//                     exit, _exit: says so and ends with status 3 by that call
#include "../../fixtures/programs/check.h"

#include <cstring>
#include <unistd.h>

__global__ void short_kernel(int *count) { *count += 1; }

__global__ void hanging_kernel(int *count) { *count += 1; }

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    int *count, counted = 0;
    HIP(hipMalloc(&count, sizeof(int)));
    HIP(hipMemset(count, 0, sizeof(int)));
    for (int i = 0; i < 8; i++) short_kernel<<<1, 1>>>(count);
    HIP(hipMemcpy(&counted, count, sizeof counted, hipMemcpyDeviceToHost));
    expect(counted == 8, "number of short kernels");
    hanging_kernel<<<1, 1>>>(count);
    HIP(hipGetLastError());
    puts("launched");
    fflush(stdout);
    if (!strcmp(way, "alarm")) {
        while (access("go", F_OK) != 0) usleep(5000);
        alarm(1);
        HIP(hipDeviceSynchronize());
    } else if (!strcmp(way, "exit")) {
        exit(3);
    } else if (!strcmp(way, "_exit")) {
        _exit(3);
    }
    return 0;
}
