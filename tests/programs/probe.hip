// Kernels and the instrumented builds of them. Compiled with -DPLAIN the program has only its own kernels; with -DCANDIDATE there are
// only the instrumented ones, as a module; with -DMISSPELT there is one more, for no kernel.
//
// Arguments: what is done, any number of them. A number: how often all kernels are launched (default 1); `endless`: until it is killed.
// `two`: on two GPUs, and on two streams of each. `pair`: a kernel that waits for one of another stream. `fault`: one that fails.
// `pour=N`: one of N messages. `scribble`: one that says wrong sizes. `parted`: one whose lanes part. `scattered`: one
// that goes about in a large buffer. `fork`: children meanwhile. `leave`,
// `exit`: the program returns, or calls _exit, without waiting for kernels. Status 0 only if all results are right.
#include <hip/hip_runtime.h>
#ifndef PLAIN
#include <rpd_probe.h>
#endif

// Of each kernel there are so many workgroups of so many work-items, a wavefront each.
#define BLOCKS 8
#define ITEMS 64

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
#define SHUFFLED (INDEX * 37 % (BLOCKS * ITEMS))
#define WALK 5
// Numbers of a buffer of 16 MiB, more of the first ones than of the last, and how many a work-item goes to.
#define SCATTER (4u << 20)
#define SCATTERED(i) uint32_t(uint64_t(INDEX * 40503u * (i + 1) % SCATTER) * (INDEX * 30011u * (i + 3) % SCATTER) / SCATTER)
#define STEPS 20

#ifndef CANDIDATE
#include "../../fixtures/programs/check.h"
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

__global__ void coalesced(const float *in, float *out) { out[INDEX] = in[INDEX] * 2; }
__global__ void strided(const float *in, float *out) { out[INDEX] = in[INDEX * 16] * 2; }
__global__ void shuffled(const double *in, float *out) { out[INDEX] = float(in[SHUFFLED] * 2); }
__global__ void conflicting(int *out) {
    __shared__ int words[ITEMS * 8];
    words[threadIdx.x * 8] = int(threadIdx.x);
    __syncthreads();
    out[INDEX] = words[(ITEMS - 1 - threadIdx.x) * 8];
}
__global__ void walk(int *out) {
    int sum = 0;
    for (int step = 0; step < WALK; step++)
        if (int(threadIdx.x) >= 16 * step) sum += step;
    out[blockIdx.x * ITEMS + threadIdx.x] = sum;
}
__global__ void await(int *told) {
    while (!__hip_atomic_load(told, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM)) __builtin_amdgcn_s_sleep(1);
}
__global__ void tell(int *told) { __hip_atomic_store(told, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM); }
__global__ void pour(int *out, int count) { *out = count; }
__global__ void parted(const int *in, int *out) { out[threadIdx.x] = in[threadIdx.x]; }
__global__ void scattered(int *numbers) {
    for (uint32_t i = 0; i < STEPS; i++)
        if (numbers[SCATTERED(i)] != 2) numbers[SCATTERED(i)] = 1;
}
__global__ void scribble(int *out) { out[threadIdx.x] = 7; }
__global__ void failing(int *nowhere, int *out) {
    out[threadIdx.x] = 1;
    *nowhere = 1;
}
#endif

#ifndef PLAIN
RPD_INSTRUMENTED(_Z9coalescedPKfPf)(const float *in, float *out, void *probe) {
    float value = RPD_LOAD(probe, &in[INDEX]);    // coalesced load
    RPD_STORE(probe, &out[INDEX], value * 2);     // coalesced store
}
#ifdef MISSPELT
RPD_INSTRUMENTED(_Z10coalescedzPKfPf)(const float *in, float *out, void *probe) { out[INDEX] = RPD_LOAD(probe, &in[INDEX]); }
#endif
RPD_INSTRUMENTED(_Z7stridedPKfPf)(const float *in, float *out, void *probe) {
    float value = RPD_LOAD(probe, &in[INDEX * 16]);    // strided load
    RPD_STORE(probe, &out[INDEX], value * 2);          // strided store
}
RPD_INSTRUMENTED(_Z8shuffledPKdPf)(const double *in, float *out, void *probe) {
    double value = RPD_LOAD(probe, &in[SHUFFLED]);         // shuffled load
    RPD_STORE(probe, &out[INDEX], float(value * 2));       // shuffled store
}
RPD_INSTRUMENTED(_Z11conflictingPi)(int *out, void *probe) {
    __shared__ int words[ITEMS * 8];
    RPD_STORE(probe, &words[threadIdx.x * 8], int(threadIdx.x));    // conflicting store
    __syncthreads();
    out[INDEX] = RPD_LOAD(probe, &words[(ITEMS - 1 - threadIdx.x) * 8]);    // conflicting load
}
RPD_INSTRUMENTED(_Z4walkPi)(int *out, void *probe) {
    int sum = 0;
    RPD_BLOCK(probe, 0);
    uint64_t begin = RPD_BEGIN();
    for (int step = 0; step < WALK; step++) {
        RPD_BLOCK(probe, 1);
        if (int(threadIdx.x) >= 16 * step) {
            RPD_BLOCK(probe, 2);
            sum += step;
        }
    }
    RPD_END(probe, begin);
    RPD_BLOCK(probe, 3);
    out[blockIdx.x * ITEMS + threadIdx.x] = sum;
}
RPD_INSTRUMENTED(_Z5awaitPi)(int *told, void *probe) {
    RPD_BLOCK(probe, 0);
    while (!__hip_atomic_load(told, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM)) __builtin_amdgcn_s_sleep(1);
}
RPD_INSTRUMENTED(_Z4tellPi)(int *told, void *probe) {
    RPD_BLOCK(probe, 0);
    __hip_atomic_store(told, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}
RPD_INSTRUMENTED(_Z4pourPii)(int *out, int count, void *probe) {
    for (int i = 0; i < count; i++) RPD_UPDATED(probe, &out[threadIdx.x]);
    *out = count;
}
// Its lanes part: compilers make code of two branches common.
RPD_INSTRUMENTED(_Z6partedPKiPi)(const int *in, int *out, void *probe) {
    int sum = 0;
    for (int i = 0; i < 10; i++) {
        if ((threadIdx.x ^ i) & 1) sum += RPD_LOAD(probe, &in[threadIdx.x]);    // even load
        else sum += RPD_LOAD(probe, &in[threadIdx.x * 16]);    // odd load
    }
    if (threadIdx.x & 1) RPD_BLOCK(probe, 1);
    else RPD_BLOCK(probe, 2);
    const volatile int *same = in;
    if (threadIdx.x & 2) sum += RPD_LOAD(probe, same);    // the same load
    RPD_STORE(probe, &out[threadIdx.x], sum);    // parted store
}
RPD_INSTRUMENTED(_Z9scatteredPi)(int *numbers, void *probe) {
    for (uint32_t i = 0; i < STEPS; i++) {
        RPD_BLOCK(probe, 4);
        if (RPD_LOAD(probe, &numbers[SCATTERED(i)]) != 2) RPD_STORE(probe, &numbers[SCATTERED(i)], 1);
    }
}
RPD_INSTRUMENTED(_Z8scribblePi)(int *out, void *probe) {
    rpd_probe::Buffers *buffers = static_cast<rpd_probe::Buffers *>(probe);
    out[threadIdx.x] = 7;
    if (threadIdx.x) return;
    *buffers->errors = 1;
    buffers->sizes[0] = ~0ull;
    uint8_t *full = &buffers->full[0];
    __hip_atomic_store(full, uint8_t(1), __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
    while (__hip_atomic_load(full, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) != 0) __builtin_amdgcn_s_sleep(8);
}
RPD_INSTRUMENTED(_Z7failingPiS_)(int *nowhere, int *out, void *probe) {
    RPD_STORE(probe, &out[threadIdx.x], 1);    // last store
    *nowhere = 1;
}
#endif

#ifndef CANDIDATE
// All kernels on one stream, and what they leave.
static void launch(const float *in, const double *wide, float *out, hipStream_t stream) {
    coalesced<<<BLOCKS, ITEMS, 0, stream>>>(in, out);
    strided<<<BLOCKS, ITEMS, 0, stream>>>(in, out + BLOCKS * ITEMS);
    shuffled<<<BLOCKS, ITEMS, 0, stream>>>(wide, out + 2 * BLOCKS * ITEMS);
    conflicting<<<BLOCKS, ITEMS, 0, stream>>>((int *)out + 3 * BLOCKS * ITEMS);
    walk<<<BLOCKS, ITEMS, 0, stream>>>((int *)out + 4 * BLOCKS * ITEMS);
    HIP(hipGetLastError());
}

static void check(const float *out) {
    std::vector<float> found(5 * BLOCKS * ITEMS);
    HIP(hipMemcpy(found.data(), out, found.size() * sizeof(float), hipMemcpyDeviceToHost));
    const int *numbers = (const int *)found.data();
    for (int i = 0; i < BLOCKS * ITEMS; i++) {
        expect(found[i] == 2.f * i, "coalesced", i);
        expect(found[BLOCKS * ITEMS + i] == 2.f * (i * 16), "strided", i);
        expect(found[2 * BLOCKS * ITEMS + i] == 2.f * (i * 37 % (BLOCKS * ITEMS)), "shuffled", i);
        expect(numbers[3 * BLOCKS * ITEMS + i] == ITEMS - 1 - i % ITEMS, "conflicting", i);
        const int sums[] = {0, 1, 3, 6};
        expect(numbers[4 * BLOCKS * ITEMS + i] == sums[i % ITEMS / 16], "walk", i);
    }
}

int main(int argc, char **argv) {
    int rounds = 1, gpus = 1;
    bool fails = false, ends = true, pair = false, forks = false, scribbles = false, parts = false, scatters = false;
    const char *leaves = "";
    int pours = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "two")) gpus = 2;
        else if (!strcmp(argv[i], "pair")) pair = true;
        else if (!strcmp(argv[i], "leave") || !strcmp(argv[i], "exit")) leaves = argv[i];
        else if (!strncmp(argv[i], "pour=", 5)) pours = atoi(argv[i] + 5);
        else if (!strcmp(argv[i], "fork")) forks = true;
        else if (!strcmp(argv[i], "scribble")) scribbles = true;
        else if (!strcmp(argv[i], "parted")) parts = true;
        else if (!strcmp(argv[i], "scattered")) scatters = true;
        else if (!strcmp(argv[i], "fault")) fails = true;
        else if (!strcmp(argv[i], "endless")) ends = false;
        else rounds = atoi(argv[i]);
    }
    std::vector<float> numbers(BLOCKS * ITEMS * 16);
    std::vector<double> wide(BLOCKS * ITEMS);
    for (size_t i = 0; i < numbers.size(); i++) numbers[i] = float(i);
    for (size_t i = 0; i < wide.size(); i++) wide[i] = double(i);
    float *in[2], *out[2][2];
    double *wide_in[2];
    hipStream_t streams[2][2] = {};
    for (int gpu = 0; gpu < gpus; gpu++) {
        HIP(hipSetDevice(gpu));
        HIP(hipMalloc(&in[gpu], numbers.size() * sizeof(float)));
        HIP(hipMalloc(&wide_in[gpu], wide.size() * sizeof(double)));
        HIP(hipMemcpy(in[gpu], numbers.data(), numbers.size() * sizeof(float), hipMemcpyHostToDevice));
        HIP(hipMemcpy(wide_in[gpu], wide.data(), wide.size() * sizeof(double), hipMemcpyHostToDevice));
        for (int stream = 0; stream < gpus; stream++) {
            HIP(hipMalloc(&out[gpu][stream], 5 * BLOCKS * ITEMS * sizeof(float)));
            HIP(hipStreamCreate(&streams[gpu][stream]));
        }
    }
    for (int round = 0; round < rounds || !ends; round++) {
        for (int gpu = 0; gpu < gpus; gpu++) {
            HIP(hipSetDevice(gpu));
            for (int stream = 0; stream < gpus; stream++) launch(in[gpu], wide_in[gpu], out[gpu][stream], streams[gpu][stream]);
        }
        pid_t child = forks ? fork() : 0;
        if (forks && child == 0) _exit(0);
        if (forks) waitpid(child, nullptr, 0);
    }
    if (pours) {
        int *poured;
        HIP(hipMalloc(&poured, ITEMS * sizeof(int)));
        pour<<<1, ITEMS>>>(poured, pours);
        HIP(hipGetLastError());
    }
    if (*leaves) {
        puts("leaving");
        fflush(stdout);
        if (!strcmp(leaves, "exit")) _exit(0);
        return 0;
    }
    for (int gpu = 0; gpu < gpus; gpu++) {
        HIP(hipSetDevice(gpu));
        HIP(hipDeviceSynchronize());
        for (int stream = 0; stream < gpus; stream++) check(out[gpu][stream]);
    }
    if (pair) {
        int *told;
        hipStream_t others[2];
        HIP(hipMalloc(&told, sizeof(int)));
        HIP(hipMemset(told, 0, sizeof(int)));
        for (hipStream_t &stream : others) HIP(hipStreamCreate(&stream));
        await<<<1, ITEMS, 0, others[0]>>>(told);
        tell<<<1, ITEMS, 0, others[1]>>>(told);
        HIP(hipDeviceSynchronize());
    }
    if (parts) {
        parted<<<1, ITEMS>>>((const int *)in[0], (int *)out[0][0]);
        HIP(hipDeviceSynchronize());
    }
    if (scatters) {
        int *numbers;
        HIP(hipMalloc(&numbers, SCATTER * sizeof(int)));
        HIP(hipMemset(numbers, 0, SCATTER * sizeof(int)));
        scattered<<<BLOCKS, ITEMS>>>(numbers);
        HIP(hipDeviceSynchronize());
    }
    if (scribbles) {
        scribble<<<1, ITEMS>>>((int *)out[0][0]);
        HIP(hipDeviceSynchronize());
    }
    if (fails) {
        HIP(hipSetDevice(0));
        failing<<<1, ITEMS>>>((int *)16, (int *)out[0][0]);
        HIP(hipDeviceSynchronize());
    }
    return 0;
}
#endif
