// Threads that launch a kernel on a stream of their own and wait for the GPU, again and again.
//
// Usage: waits THREADS ROUNDS
#include "../../../fixtures/programs/check.h"

#include <cstdlib>
#include <thread>
#include <vector>

__global__ void tick(int *count) { *count += 1; }

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int rounds = std::atoi(argv[2]);
    int *counts = nullptr;
    HIP(hipMalloc(&counts, 64 * sizeof(int)));
    std::vector<std::thread> threads;
    for (int number = 0; number < std::atoi(argv[1]); number++)
        threads.emplace_back([=] {
            hipStream_t stream;
            HIP(hipStreamCreate(&stream));
            for (int round = 0; round < rounds; round++) {
                tick<<<1, 1, 0, stream>>>(counts + number);
                HIP(hipDeviceSynchronize());
            }
        });
    for (auto &thread : threads) thread.join();
}
