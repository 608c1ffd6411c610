// Threads with streams of their own: launches by the compiler's stubs and of a module's kernel, copies, fills, events. Every launch has a
// grid of its own.
//
//   symbols CODE_OBJECT       aql_kernel.hip, compiled for the device
#include "../../fixtures/programs/check.h"

#include <thread>
#include <vector>

__global__ void add(int *data, int what) { data[blockIdx.x * blockDim.x + threadIdx.x] += what; }

static const int THREADS = 4, ROUNDS = 8, BLOCK = 64;

static void work(int number, hipFunction_t count) {
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    std::vector<int> host(BLOCK * 2 * THREADS * ROUNDS, number);
    size_t bytes = host.size() * sizeof(int);
    int *data;
    unsigned *counters, counted[2];
    HIP(hipMalloc((void **)&data, bytes));
    HIP(hipMalloc((void **)&counters, sizeof counted));
    HIP(hipMemsetAsync(counters, 0, sizeof counted, stream));
    HIP(hipMemcpyAsync(data, host.data(), bytes, hipMemcpyHostToDevice, stream));
    unsigned items = 0;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned blocks = 1 + 2 * (number * ROUNDS + round);
        add<<<blocks, BLOCK, 0, stream>>>(data, 1);
        HIP(hipGetLastError());
        void *arguments[] = {&counters};
        HIP(hipModuleLaunchKernel(count, blocks + 1, 1, 1, BLOCK, 1, 1, 0, stream, arguments, nullptr));
        items += (blocks + 1) * BLOCK;
    }
    hipEvent_t event;
    HIP(hipEventCreate(&event));
    HIP(hipEventRecord(event, stream));
    HIP(hipEventSynchronize(event));
    HIP(hipEventDestroy(event));
    HIP(hipMemcpyAsync(host.data(), data, bytes, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamSynchronize(stream));
    HIP(hipMemcpy(counted, counters, sizeof counted, hipMemcpyDeviceToHost));
    expect(host[0] == number + ROUNDS, "sums");
    expect(counted[0] == items && counted[1] == ROUNDS, "work-items");
    HIP(hipFree(counters));
    HIP(hipFree(data));
    HIP(hipStreamDestroy(stream));
}

int main(int, char **arguments) {
    hipModule_t module;
    hipFunction_t count;
    HIP(hipModuleLoad(&module, arguments[1]));
    HIP(hipModuleGetFunction(&count, module, "aql_count"));
    std::vector<std::thread> threads;
    for (int number = 0; number < THREADS; number++) threads.emplace_back(work, number, count);
    for (std::thread &thread : threads) thread.join();
    HIP(hipModuleUnload(module));
    puts("done");
}
