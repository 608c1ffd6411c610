// Threads that launch a kernel on a stream of their own and wait for the GPU, in one way after the other.
//
// Usage: waits THREADS ROUNDS
//        waits THREADS fork    until there is a file `fork`: then forks, says so, and ends when there is a file `end`
#include "../../../fixtures/programs/check.h"

#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

__global__ void tick(int *count) { *count += 1; }

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    bool forks = !std::strcmp(argv[2], "fork");
    int rounds = std::atoi(argv[2]);
    int *counts = nullptr;
    HIP(hipMalloc(&counts, 64 * sizeof(int)));
    std::vector<std::thread> threads;
    for (int number = 0; number < std::atoi(argv[1]); number++)
        threads.emplace_back([=] {
            hipStream_t stream;
            hipEvent_t event;
            HIP(hipStreamCreate(&stream));
            HIP(hipEventCreate(&event));
            for (int round = 0; forks ? access("fork", F_OK) : round < rounds; round++) {
                tick<<<1, 1, 0, stream>>>(counts + number);
                if (round % 3 == 0) {
                    HIP(hipDeviceSynchronize());
                } else if (round % 3 == 1) {
                    HIP(hipStreamSynchronize(stream));
                } else {
                    HIP(hipEventRecord(event, stream));
                    HIP(hipEventSynchronize(event));
                }
                if (forks) usleep(500);
            }
        });
    for (auto &thread : threads) thread.join();
    if (!forks) return 0;
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (child < 0 || waitpid(child, nullptr, 0) != child) return 1;
    std::printf("forked\n");
    std::fflush(stdout);
    while (access("end", F_OK)) usleep(1000);
}
