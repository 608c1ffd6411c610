// Launches from THREADS threads on streams of their own and of the whole process, directly and by graphs. Thread t's n-th launch (from 0) has
// a grid of 1000 * (t + 1) + n workgroups, so that whoever sees a kernel knows which call launched it. Graphs of thread t have two kernels
// of 100 * (t + 1) workgroups.
#include "../../../fixtures/programs/check.h"

#include <mutex>
#include <thread>
#include <vector>

static const int THREADS = 4, LAUNCHES = 300;

__global__ void direct(unsigned *) {}
__global__ void captured(unsigned *) {}

// HIP 5.2.3 loses kernels, or its head, where a graph is launched while it runs, or two threads make or launch graphs at once.
static std::mutex one_graph;

static void work(int thread, hipStream_t shared) {
    hipStream_t own;
    hipGraph_t graph;
    hipGraphExec_t executable;
    HIP(hipStreamCreate(&own));
    one_graph.lock();
    HIP(hipStreamBeginCapture(own, hipStreamCaptureModeThreadLocal));
    for (int i = 0; i < 2; i++) captured<<<dim3(100 * (thread + 1)), dim3(64), 0, own>>>(nullptr);
    HIP(hipStreamEndCapture(own, &graph));
    HIP(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    one_graph.unlock();
    for (int i = 0; i < LAUNCHES; i++) {
        hipStream_t stream = i % 3 == 0 ? shared : own;
        direct<<<dim3(1000 * (thread + 1) + i), dim3(64), 0, stream>>>(nullptr);
        if (i % 10 == 0) {
            HIP(hipStreamSynchronize(own));
            std::lock_guard<std::mutex> alone(one_graph);
            HIP(hipGraphLaunch(executable, own));
        }
    }
    HIP(hipStreamSynchronize(own));
    HIP(hipGraphExecDestroy(executable));
    HIP(hipGraphDestroy(graph));
    HIP(hipStreamDestroy(own));
}

int main() {
    hipStream_t shared;
    HIP(hipStreamCreate(&shared));
    std::vector<std::thread> threads;
    for (int thread = 0; thread < THREADS; thread++) threads.emplace_back(work, thread, shared);
    for (std::thread &thread : threads) thread.join();
    HIP(hipDeviceSynchronize());
    HIP(hipStreamDestroy(shared));
    printf("%d launches, %d graph launches\n", THREADS * LAUNCHES, THREADS * (LAUNCHES / 10));
}
