// The program of docs/inside-a-kernel.md: what its kernels do inside. Status 0 only if all results are right.
#include <hip/hip_runtime.h>
#include <rpd_probe.h>

#include "../../fixtures/programs/check.h"
#include <vector>

#define N 256

// Turns rows into columns.
__global__ void transpose(const float *in, float *out, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    out[x * n + y] = in[y * n + x];
}

RPD_INSTRUMENTED(_Z9transposePKfPfi)(const float *in, float *out, int n, void *probe) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    float value = RPD_LOAD(probe, &in[y * n + x]);
    RPD_STORE(probe, &out[x * n + y], value);
}

// How many steps of Collatz's lead from a number to 1.
__global__ void collatz(int *steps) {
    int number = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int count = 0;
    for (; number != 1; count++) {
        if (number % 2) number = 3 * number + 1;
        else number /= 2;
    }
    steps[blockIdx.x * blockDim.x + threadIdx.x] = count;
}

RPD_INSTRUMENTED(_Z7collatzPi)(int *steps, void *probe) {
    RPD_BLOCK(probe, 0);
    int number = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int count = 0;
    for (; number != 1; count++) {
        if (number % 2) {
            RPD_BLOCK(probe, 1);
            number = 3 * number + 1;
        } else {
            RPD_BLOCK(probe, 2);
            number /= 2;
        }
    }
    RPD_BLOCK(probe, 3);
    steps[blockIdx.x * blockDim.x + threadIdx.x] = count;
}

int main() {
    std::vector<float> numbers(N * N), turned(N * N);
    for (size_t i = 0; i < numbers.size(); i++) numbers[i] = float(i);
    std::vector<int> counts(N);
    float *in, *out;
    int *steps;
    HIP(hipMalloc(&in, numbers.size() * sizeof(float)));
    HIP(hipMalloc(&out, numbers.size() * sizeof(float)));
    HIP(hipMalloc(&steps, counts.size() * sizeof(int)));
    HIP(hipMemcpy(in, numbers.data(), numbers.size() * sizeof(float), hipMemcpyHostToDevice));
    for (int round = 0; round < 4; round++) {
        transpose<<<dim3(N / 16, N / 16), dim3(16, 16)>>>(in, out, N);
        collatz<<<N / 64, 64>>>(steps);
        HIP(hipGetLastError());
    }
    HIP(hipMemcpy(turned.data(), out, turned.size() * sizeof(float), hipMemcpyDeviceToHost));
    HIP(hipMemcpy(counts.data(), steps, counts.size() * sizeof(int), hipMemcpyDeviceToHost));
    for (int x = 0; x < N; x++)
        for (int y = 0; y < N; y++) expect(turned[x * N + y] == numbers[y * N + x], "transpose", x * N + y);
    for (int first = 1; first <= N; first++) {
        int count = 0;
        for (int number = first; number != 1; count++) number = number % 2 ? 3 * number + 1 : number / 2;
        expect(counts[first - 1] == count, "collatz", first);
    }
    return 0;
}
