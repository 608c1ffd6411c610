// Threads that are cancelled before they call HIP, and must come out of it: none of these calls is a cancellation point in a program without
// the recorder. They are more than small buffers hold.
//
//   cancelled COUNT   calls of each kind on each of 4 threads
//
// Prints how many threads were cancelled, and how many came out.
#include "../../../fixtures/programs/check.h"

#include <atomic>
#include <pthread.h>

__global__ void nothing() {}

static int count;
static hipStream_t stream;
static std::atomic<int> came_out;

static void *calls(void *) {
    pthread_cancel(pthread_self());
    for (int i = 0; i < count; i++) {
        (void)hipStreamQuery(stream);
        if (i % 16 == 0) nothing<<<1, 64, 0, stream>>>();
    }
    came_out++;
    pthread_testcancel();
    return nullptr;
}

int main(int, char **arguments) {
    count = atoi(arguments[1]);
    HIP(hipStreamCreate(&stream));
    // HIP loads the kernel, which has cancellation points.
    nothing<<<1, 64, 0, stream>>>();
    HIP(hipStreamSynchronize(stream));
    int cancelled = 0;
    for (int round = 0; round < 4; round++) {
        pthread_t thread;
        void *result = nullptr;
        if (pthread_create(&thread, nullptr, calls, nullptr)) abort();
        pthread_join(thread, &result);
        cancelled += result == PTHREAD_CANCELED;
        HIP(hipStreamSynchronize(stream));
    }
    printf("%d cancelled, %d came out\n", cancelled, came_out.load());
}
