// Threads launch kernels while main returns. The argument: how many each launches before it waits for them. Prints how many were launched
// and waited for before that. HIP's destructors run below the threads, which may end them by a signal, with a recorder and without.
#include <atomic>
#include <thread>

#include <cstdlib>

#include "../../../fixtures/programs/check.h"

__global__ void increment(int *cells) { cells[threadIdx.x] += 1; }

static std::atomic<int> waited_for;

static void launch(int *cells, int at_once) {
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    for (;;) {
        for (int i = 0; i < at_once; i++)
            increment<<<1, 64, 0, stream>>>(cells);
        if (hipStreamSynchronize(stream) == hipSuccess)
            waited_for += at_once;
    }
}

int main(int, char **arguments) {
    int *cells;
    HIP(hipMalloc(&cells, 64 * sizeof(int)));
    for (int i = 0; i < 4; i++)
        std::thread(launch, cells, atoi(arguments[1])).detach();
    while (waited_for < 1000)
        std::this_thread::yield();
    printf("%d\n", waited_for.load());
    fflush(stdout);
}
