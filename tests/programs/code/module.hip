// A module with one kernel. -DVARIANT: another build of it; -DTABLE=N: with so many numbers beside it.
#include <hip/hip_runtime.h>

#ifdef TABLE
__constant__ int table[TABLE] = {1};
#endif

extern "C" __global__ void scale(int *value, int by) {
#if VARIANT
    __shared__ volatile int room[64];
    room[threadIdx.x] = by;
    by = room[threadIdx.x];
#endif
#ifdef TABLE
    by *= table[by - by];
#endif
    *value *= by;
}
