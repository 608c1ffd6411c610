// A service: launches and marks from several threads until it is told to end. Writes down what it did, for comparison with what was
// recorded: one line per launch with its thread, number, thread id, and CLOCK_MONOTONIC before and after, ns.
//
// Usage: service THREADS END LOG      ends when the file END exists; writes LOG
#include "../../../fixtures/programs/check.h"
#include "../hazards/markers.h"

#include <atomic>
#include <string>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

__global__ void work(int *count) { *count += 1; }

static long long now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static std::atomic<bool> ending{false};
static std::atomic<int> serving{0};

// Into a file, not kept: whoever looks at the memory of this program looks for what others leave there.
static FILE *steps;

static void serve(int thread) {
    hipStream_t stream;
    int *count;
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    HIP(hipMalloc(&count, sizeof(int)));
    work<<<1, 1, 0, stream>>>(count);
    HIP(hipStreamSynchronize(stream));
    serving++;
    for (int number = 0; !ending; number++) {
        const long long before = now();
        mark((std::to_string(thread) + "." + std::to_string(number)).c_str());
        work<<<1, 1, 0, stream>>>(count);
        HIP(hipGetLastError());
        fprintf(steps, "%d %d %d %lld %lld\n", thread, number, gettid(), before, now());
        if (number % 8 == 0) HIP(hipStreamSynchronize(stream));
        usleep(400);
    }
    HIP(hipStreamSynchronize(stream));
    HIP(hipStreamDestroy(stream));
    HIP(hipFree(count));
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fputs("usage: service THREADS END LOG\n", stderr);
        return 2;
    }
    HIP(hipFree(nullptr));
    const int count = atoi(argv[1]);
    steps = fopen(argv[3], "w");
    if (!steps) return 1;
    // The test sees how far it has come.
    setvbuf(steps, nullptr, _IOLBF, BUFSIZ);
    std::vector<std::thread> threads;
    for (int i = 0; i < count; i++) threads.emplace_back(serve, i);
    // HIP 5.2.3 on the software GPU fails to create a stream when a signal handler runs meanwhile, whoever's that is.
    while (serving < count) usleep(1000);
    puts("ready");
    fflush(stdout);
    while (access(argv[2], F_OK) != 0) usleep(5000);
    ending = true;
    for (auto &thread : threads) thread.join();
    return fclose(steps) == 0 ? 0 : 1;
}
