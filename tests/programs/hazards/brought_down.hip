// A hundred kernels that complete, and one that brings the program down: `trap` as a failed assert on the device does, `fault` by
// writing to memory that is nobody's.
#include "../../../fixtures/programs/check.h"

#include <cstring>

__global__ void step(int *count) { *count += 1; }
__global__ void failing(int *count, int how) {
    if (how == 1) __builtin_trap();
    *count = how;
}

int main(int, char **arguments) {
    int *count;
    HIP(hipMalloc(&count, sizeof(int)));
    HIP(hipMemset(count, 0, sizeof(int)));
    for (int i = 0; i < 100; i++) step<<<1, 1>>>(count);
    if (strcmp(arguments[1], "trap") == 0) failing<<<1, 1>>>(count, 1);
    else failing<<<1, 1>>>((int *)0x1000, 2);
    HIP(hipDeviceSynchronize());
    puts("not reached");
    return 0;
}
