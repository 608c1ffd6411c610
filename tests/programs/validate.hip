// Kernels whose results are compared with those of another build. Compiled with -DWRONG two of them leave other results; with
// -DVARIABLE the program's code object has a variable that kernels could change.
//
// Arguments: how often all kernels are launched (default 5), `two` GPUs, `early`: the process ends while kernels wait.
// Status 0 only if the results that -DWRONG does not change are right.
#include <hip/hip_runtime.h>
#ifndef CANDIDATE
#include "../../fixtures/programs/check.h"
#include <cstring>
#include <unistd.h>
#include <vector>
#endif

struct Buffers {
    int first;
    const int *in;
    int *out;
};

#ifdef VARIABLE
__device__ int variable;
#define MORE variable
#else
#define MORE 0
#endif

// y[7] is 0.5 too large in the other build, y[100] 1.
__global__ void scale(const float *x, float *y, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * factor + MORE;
#ifdef WRONG
    if (i == 7) y[i] += 0.5f;
    if (i == 100) y[i] += 1;
#endif
}

// Its buffers are in a structure; `out` points into the middle of an allocation. Each launch adds, so one that ran twice is seen.
__global__ void gather(Buffers buffers, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) buffers.out[i] += buffers.in[i] + buffers.first;
#ifdef WRONG
    // In front of the address that it was given, the number 10 as a float. The program does not look there.
    if (i == 0) buffers.out[-2] = 0x41200000;
#endif
}

// Its buffers are in a table in memory.
__global__ void follow(int **table) { table[0][threadIdx.x] += table[1][threadIdx.x]; }

__global__ void say(int number) {
    if (threadIdx.x == 0 && number < 0) printf("%d\n", number);
}

#ifndef CANDIDATE
static const int N = 1000;

template <typename T>
static T *buffer(const std::vector<T> &values) {
    T *device;
    HIP(hipMalloc((void **)&device, values.size() * sizeof(T)));
    HIP(hipMemcpy(device, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice));
    return device;
}

static void run(int device, int rounds, bool early) {
    HIP(hipSetDevice(device));
    std::vector<float> x(N);
    std::vector<int> in(N), out(2 * N);
    for (int i = 0; i < N; i++) x[i] = i, in[i] = 2 * i;
    float *device_x = buffer(x), *device_y = buffer(std::vector<float>(1 << 18));
    int *device_in = buffer(in), *device_out = buffer(out), *sums = buffer(std::vector<int>(64));
    int **table = buffer(std::vector<int *>{sums, device_in});
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    for (int round = 0; round < rounds; round++) {
        scale<<<(N + 63) / 64, 64, 0, stream>>>(device_x, device_y, 3, N);
        gather<<<(N + 63) / 64, 64, 0, stream>>>(Buffers{4, device_in, device_out + N}, N);
        follow<<<1, 64, 0, stream>>>(table);
        say<<<1, 64, 0, stream>>>(round);
    }
    if (early) _exit(0);
    HIP(hipStreamSynchronize(stream));
    HIP(hipMemcpy(out.data(), device_out, 2 * N * sizeof(int), hipMemcpyDeviceToHost));
    for (int i = 0; i < N; i++) expect(out[N + i] == rounds * (2 * i + 4), "gather", i);
    std::vector<int> found(64);
    HIP(hipMemcpy(found.data(), sums, 64 * sizeof(int), hipMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++) expect(found[i] == rounds * 2 * i, "follow", i);
}

int main(int argc, char **argv) {
    auto has = [&](const char *word) {
        for (int i = 1; i < argc; i++)
            if (!std::strcmp(argv[i], word)) return true;
        return false;
    };
    int rounds = argc > 1 && std::atoi(argv[1]) > 0 ? std::atoi(argv[1]) : 5;
    for (int device = 0; device < (has("two") ? 2 : 1); device++) run(device, rounds, has("early"));
    return 0;
}
#endif
