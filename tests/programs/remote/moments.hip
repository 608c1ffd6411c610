// The kernels of moments.c, as a library.
#include "../../../fixtures/programs/check.h"

__global__ void work(int *count) { *count += 1; }

static int *count;

extern "C" void initialise() {
    HIP(hipInit(0));
    HIP(hipMalloc(&count, sizeof(int)));
}

extern "C" void launch() {
    work<<<1, 1>>>(count);
    HIP(hipGetLastError());
    HIP(hipDeviceSynchronize());
}
