// Kernels of every shape of control flow. Arguments: what to run, in that order; several times each with `NAME=COUNT`. Prints a sum of each
// kernel's results; status 0 only if all of them are as the processor computes them.
#include <hip/hip_runtime.h>

#include "../../fixtures/programs/check.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define ITEMS 192
#define GROUPS 3
#define ALL (ITEMS * GROUPS)

#define KERNEL extern "C" __global__ void

KERNEL straight(int *out) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    out[me] = me * 3;
}

// Lanes leave the loop one by one.
KERNEL collatz(int *out) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    int number = me + 1, count = 0;
    for (; number != 1; count++) number = number % 2 ? 3 * number + 1 : number / 2;
    out[me] = count;
}

KERNEL choose(int *out) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    int value = me;
    switch (me % 7) {
    case 0: value *= 5; break;
    case 1: value -= 11; break;
    case 2: for (int turn = 0; turn < me % 5; turn++) value ^= turn << turn; break;
    case 3: value = ~value; break;
    case 4: value = value << 3 | 1; break;
    default: value += 1000;
    }
    out[me] = value;
}

// LDS, static and dynamic, with barriers.
KERNEL reduce(int *out) {
    extern __shared__ int added[];
    __shared__ int all[ITEMS];
    int me = threadIdx.x;
    added[me] = me;
    all[me] = blockIdx.x * blockDim.x + me;
    __syncthreads();
    for (int half = 128; half; half /= 2) {
        if (me < half && me + half < ITEMS) all[me] += all[me + half];
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + me] = all[0] + added[ITEMS - 1 - me];
}

__device__ __attribute__((noinline)) int twice(int value) {
    if (value % 3 == 0) return value * 2;
    return value * 2 + 1;
}

__device__ __attribute__((noinline)) int deep(int value, int depth) {
    return depth ? deep(twice(value) % 1009, depth - 1) : value;
}

KERNEL calls(int *out) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    out[me] = deep(me, 1 + me % 3) + twice(me);
}

__device__ int plus(int value, int) { return value + 1; }
__device__ int times(int value, int turn) { return value * (turn + 2); }
typedef int (*Function)(int, int);
__device__ Function functions[2] = {plus, times};

// Functions that only data name.
KERNEL pointers(int *out) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    int value = me;
    for (int turn = 0; turn < 4; turn++) value = functions[turn % 2](value, turn);
    out[me] = value;
}

// An array in scratch memory.
KERNEL scratch(int *out) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    int own[32];
    for (int place = 0; place < 32; place++) own[place] = me + place * place;
    int value = 0;
    for (int turn = 0; turn < 10; turn++) value += own[(me * 7 + turn * 5) % 32];
    out[me] = value;
}

// A workgroup of 16 waves.
KERNEL large(int *out) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    int value = me;
    for (int turn = me % 4; turn; turn--) value += turn;
    out[me] = value;
}

KERNEL nothing(int *out) {
    if (out == nullptr) __builtin_trap();
}

static int expected(const char *name, int me) {
    if (!strcmp(name, "straight")) return me * 3;
    if (!strcmp(name, "collatz")) {
        int number = me + 1, count = 0;
        for (; number != 1; count++) number = number % 2 ? 3 * number + 1 : number / 2;
        return count;
    }
    if (!strcmp(name, "choose")) {
        int value = me;
        switch (me % 7) {
        case 0: return value * 5;
        case 1: return value - 11;
        case 2: for (int turn = 0; turn < me % 5; turn++) value ^= turn << turn; return value;
        case 3: return ~value;
        case 4: return value << 3 | 1;
        }
        return value + 1000;
    }
    if (!strcmp(name, "reduce")) {
        int first = me / ITEMS * ITEMS;
        return ITEMS * first + ITEMS * (ITEMS - 1) / 2 + ITEMS - 1 - me % ITEMS;
    }
    auto two = [](int value) { return value % 3 == 0 ? value * 2 : value * 2 + 1; };
    if (!strcmp(name, "calls")) {
        int value = me;
        for (int depth = 1 + me % 3; depth; depth--) value = two(value) % 1009;
        return value + two(me);
    }
    if (!strcmp(name, "pointers")) return ((me + 1) * 3 + 1) * 5;
    if (!strcmp(name, "scratch")) {
        int value = 0;
        for (int turn = 0; turn < 10; turn++) {
            int place = (me * 7 + turn * 5) % 32;
            value += me + place * place;
        }
        return value;
    }
    if (!strcmp(name, "large")) {
        int value = me;
        for (int turn = me % 4; turn; turn--) value += turn;
        return value;
    }
    return -1;
}

int main(int argc, char **argv) {
    const struct { const char *name; void (*kernel)(int *); } kernels[] = {
        {"straight", straight}, {"collatz", collatz}, {"choose", choose}, {"reduce", reduce}, {"calls", calls},
        {"pointers", pointers}, {"scratch", scratch}, {"large", large}, {"nothing", nothing},
    };
    int devices;
    HIP(hipGetDeviceCount(&devices));
    for (int number = 1; number < argc; number++) {
        const char *end = strchr(argv[number], '=');
        std::string name(argv[number], end ? end - argv[number] : strlen(argv[number]));
        int count = end ? atoi(end + 1) : 1;
        bool known = false;
        for (auto &kernel : kernels) {
            if (name != kernel.name) continue;
            known = true;
            for (int device = 0; device < devices; device++) {
                HIP(hipSetDevice(device));
                int items = name == "large" ? 1024 : ITEMS;
                int all = items * GROUPS;
                int *out;
                HIP(hipMalloc(&out, all * sizeof(int)));
                HIP(hipMemset(out, 0xff, all * sizeof(int)));
                for (int turn = 0; turn < count; turn++) kernel.kernel<<<GROUPS, items, ITEMS * sizeof(int)>>>(out);
                std::vector<int> host(all);
                HIP(hipMemcpy(host.data(), out, all * sizeof(int), hipMemcpyDeviceToHost));
                long sum = 0;
                for (int me = 0; me < all; me++) {
                    sum += host[me];
                    if (host[me] != expected(name.c_str(), me)) {
                        printf("%s: item %d is %d, not %d\n", name.c_str(), me, host[me], expected(name.c_str(), me));
                        return 1;
                    }
                }
                printf("%s %ld\n", name.c_str(), sum);
                HIP(hipFree(out));
            }
        }
        if (!known) return 2;
    }
    return 0;
}
