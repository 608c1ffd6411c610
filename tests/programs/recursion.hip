// Functions that call each other and themselves by pointers in a table, to a depth of their own for each lane.
#include <hip/hip_runtime.h>

#include "../../fixtures/programs/check.h"
#include <vector>

#define BOTH __host__ __device__ __attribute__((noinline))
#define ITEMS 64
#define GROUPS 4

typedef int (*function)(int, int);
BOTH int down(int value, int depth);
BOTH int across(int value, int depth);
__device__ function of_device[] = {down, across};
static function of_host[] = {down, across};

BOTH int call(int which, int value, int depth) {
#ifdef __HIP_DEVICE_COMPILE__
    return of_device[which & 1](value, depth);
#else
    return of_host[which & 1](value, depth);
#endif
}

BOTH int down(int value, int depth) {
    if (depth == 0) return value + 1;
    return call(value, value * 3 + depth, depth - 1) + 1;
}

BOTH int across(int value, int depth) {
    if (depth == 0) return value ^ 5;
    int first = call(value >> 1, value + 7, depth - 1);
    return first % 1000 + call(first, value ^ depth, depth / 2);
}

extern "C" __global__ void recurses(int *out) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    out[me] = of_device[me & 1](me, me % 5);
}

int main() {
    std::vector<int> found(ITEMS * GROUPS);
    int *out;
    HIP(hipMalloc(&out, found.size() * sizeof(int)));
    recurses<<<GROUPS, ITEMS>>>(out);
    HIP(hipGetLastError());
    HIP(hipMemcpy(found.data(), out, found.size() * sizeof(int), hipMemcpyDeviceToHost));
    for (int me = 0; me < ITEMS * GROUPS; me++) expect(found[me] == call(me, me, me % 5), "recurses", me);
    return 0;
}
