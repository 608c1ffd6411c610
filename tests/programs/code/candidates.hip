// Other builds of the kernels of load.hip, module.hip and library.hip.
#include <hip/hip_runtime.h>

static __device__ int detour(int number) {
    __shared__ volatile int room[64];
    room[threadIdx.x] = number;
    return room[threadIdx.x];
}

__global__ void of_the_program(int *value) { *value += detour(2); }
extern "C" __global__ void scale(int *value, int by) { *value *= detour(by); }
extern "C" __global__ void of_first(int *value) { *value += detour(5); }
extern "C" __global__ void of_second(int *value) { *value += detour(5); }
