// A thread that launches thousands of kernels on a stream which the main thread waits for, and now and then waits for one of its own: by
// HIP's own times commands complete on the threads that wait, so both have calls and operations.
#include "../../../fixtures/programs/check.h"

#include <atomic>
#include <pthread.h>
#include <unistd.h>

__global__ void count_up(unsigned *count) { *count += 1; }

static hipStream_t shared;
static unsigned *count;
static std::atomic<int> ready{0}, done{0};

static void wait_for_one(hipStream_t stream) {
    count_up<<<1, 1, 0, stream>>>(count);
    HIP(hipStreamSynchronize(stream));
}

static void *launch(void *) {
    hipStream_t own;
    HIP(hipStreamCreate(&own));
    for (int i = 0; i < 200; i++) wait_for_one(own);
    ready = 1;
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 12000; i++) count_up<<<1, 1, 0, shared>>>(count);
        usleep(1000);
        wait_for_one(own);
    }
    done = 1;
    return nullptr;
}

int main() {
    HIP(hipStreamCreate(&shared));
    HIP(hipMalloc(&count, sizeof(unsigned)));
    for (int i = 0; i < 200; i++) wait_for_one(shared);
    pthread_t thread;
    pthread_create(&thread, nullptr, launch, nullptr);
    while (!ready) usleep(100);
    while (!done) {
        HIP(hipStreamSynchronize(shared));
        usleep(300000);
    }
    pthread_join(thread, nullptr);
    HIP(hipDeviceSynchronize());
    puts("done");
}
