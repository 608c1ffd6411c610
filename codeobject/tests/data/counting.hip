// Kernels whose blocks are counted: see make.sh and ../counting.rs. All have the same arguments: n results, n numbers.
#include <hip/hip_runtime.h>

#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define ITEM (blockIdx.x * blockDim.x + threadIdx.x)

__constant__ int table[4] = {3, 5, 7, 11};
__device__ int total;

// Conditions in SCC that are wanted behind a block's start.
KERNEL straight(int *out, const int *in, int n) {
    int i = ITEM;
    if (i < n) out[i] = in[i] * table[i & 3] + 1;
}

KERNEL loops(int *out, const int *in, int n) {
    int i = ITEM;
    if (i >= n) return;
    int sum = 0;
    for (int k = 0; k < (in[i] & 15); k++) {
        if ((in[i] >> k) & 1) sum += k * table[k & 3];
        else if (k > 7) break;
    }
    for (int k = 0; k < n / 16; k++) sum ^= in[k] + k;
    out[i] = sum;
}

KERNEL switches(int *out, const int *in, int n) {
    int i = ITEM;
    if (i >= n) return;
    int x = in[i];
    switch (x & 7) {
    case 0: x += 5; break;
    case 1: x *= 3; [[fallthrough]];
    case 2: x ^= 0x55; break;
    case 3: atomicAdd(&total, 1); break;
    case 4: x = x / 3; break;
    case 6: x = -x; break;
    default: x = 0;
    }
    out[i] = x;
}

KERNEL reduces(int *out, const int *in, int n) {
    __shared__ int part[256];
    int t = threadIdx.x;
    part[t] = (int)ITEM < n ? in[ITEM] : 0;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s) part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}

KERNEL scratch(int *out, const int *in, int n) {
    int i = ITEM;
    if (i >= n) return;
    int a[24];
    for (int k = 0; k < 24; k++) a[k] = in[(i + k) % n];
    int at = 0;
    for (int k = 0; k < 24; k++) at = (at + a[at] + k) & 15;
    out[i] = a[at] + at;
}

__device__ __attribute__((noinline)) int helper(int x, int depth) {
    if (depth <= 0) return x + table[x & 3];
    return helper(x * 3 + 1, depth - 1) ^ depth;
}

KERNEL calls(int *out, const int *in, int n) {
    int i = ITEM;
    if (i >= n) return;
    int sum = 0;
    for (int k = 0; k < 3; k++) sum += helper(in[i], k);
    out[i] = sum;
}

KERNEL shares(int *out, const int *in, int n) {
    int i = ITEM;
    if (i < n) out[i] = helper(in[i], 2) - helper(i, 1);
}

__device__ __attribute__((noinline)) int plus(int x) { return x + 1; }
__device__ __attribute__((noinline)) int times(int x) { return x * 7; }
typedef int (*Function)(int);
__device__ Function functions[2] = {plus, times};

KERNEL points(int *out, const int *in, int n) {
    int i = ITEM;
    if (i >= n) return;
    Function f = functions[in[0] & 1];
    int x = f(in[i]) + plus(i);
    out[i] = functions[blockIdx.x & 1](x);
}

KERNEL doubles(int *out, const int *in, int n) {
    int i = ITEM;
    if (i >= n) return;
    double x = in[i];
    while (x > 10.0) x = x / 3.0 - 1.0;
    out[i] = (int)(x * 1000.0);
}
