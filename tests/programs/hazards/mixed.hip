// Everything at once: on every GPU threads with streams that launch kernels and copy, and launch a graph of twenty kernels.
//
// Usage: mixed THREADS STREAMS DISPATCHES COPIES GRAPHS     threads per GPU, streams per thread; the rest per stream, graphs per thread
// Status 0 only if every kernel counted and every copy arrived.
#include "../../../fixtures/programs/check.h"

#include <mutex>
#include <thread>
#include <vector>

enum { NODES = 20, INTS = 1000 };

__global__ void counted(int *count) { atomicAdd(count, 1); }
__global__ void node(int *count) { atomicAdd(count, 1); }

// HIP 5.2.3 loses kernels, or its head, where a graph is launched while it runs, or two threads launch graphs at once; building is kept apart too.
static std::mutex one_graph;

static void launch(hipGraphExec_t graph, hipStream_t stream) {
    std::lock_guard<std::mutex> alone(one_graph);
    HIP(hipStreamSynchronize(stream));
    HIP(hipGraphLaunch(graph, stream));
}

static hipGraphExec_t twenty_nodes(int *count) {
    std::lock_guard<std::mutex> alone(one_graph);
    hipGraph_t graph;
    hipGraphExec_t executable;
    HIP(hipGraphCreate(&graph, 0));
    hipGraphNode_t last = nullptr;
    void *arguments[] = {&count};
    for (int i = 0; i < NODES; i++) {
        hipKernelNodeParams kernel = {};
        kernel.func = (void *)node, kernel.kernelParams = arguments;
        kernel.gridDim = dim3(1), kernel.blockDim = dim3(1);
        hipGraphNode_t added;
        HIP(hipGraphAddKernelNode(&added, graph, last ? &last : nullptr, last ? 1 : 0, &kernel));
        last = added;
    }
    HIP(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    return executable;
}

static void work(int gpu, int streams, int dispatches, int copies, int graphs) {
    HIP(hipSetDevice(gpu));
    std::vector<hipStream_t> stream(streams);
    int *count, *host, *device;
    HIP(hipMalloc(&count, (streams + 1) * sizeof(int)));
    HIP(hipMemset(count, 0, (streams + 1) * sizeof(int)));
    HIP(hipMalloc(&device, streams * INTS * sizeof(int)));
    HIP(hipHostMalloc(&host, streams * INTS * sizeof(int)));
    HIP(hipDeviceSynchronize());
    for (auto &one : stream) HIP(hipStreamCreateWithFlags(&one, hipStreamNonBlocking));
    hipGraphExec_t executable = twenty_nodes(count + streams);
    for (int i = 0; i < dispatches; i++) {
        for (int s = 0; s < streams; s++) {
            counted<<<1, 1, 0, stream[s]>>>(count + s);
            // Spread evenly: this many of `copies` are due.
            if (long(i + 1) * copies / dispatches == long(i) * copies / dispatches) continue;
            HIP(hipStreamSynchronize(stream[s]));
            int *from = host + s * INTS, *to = device + s * INTS;
            for (int k = 0; k < INTS; k++) from[k] = i + k;
            HIP(hipMemcpyAsync(to, from, INTS * sizeof(int), hipMemcpyHostToDevice, stream[s]));
        }
        if (long(i + 1) * graphs / dispatches != long(i) * graphs / dispatches) launch(executable, stream[0]);
    }
    for (auto &one : stream) HIP(hipStreamSynchronize(one));
    std::vector<int> counts(streams + 1), arrived(INTS);
    HIP(hipMemcpy(counts.data(), count, counts.size() * sizeof(int), hipMemcpyDeviceToHost));
    for (int s = 0; s < streams; s++) {
        expect(counts[s] == dispatches, "kernels of a stream", s);
        HIP(hipMemcpy(arrived.data(), device + s * INTS, INTS * sizeof(int), hipMemcpyDeviceToHost));
        for (int k = 0; k < INTS; k++) expect(arrived[k] == host[s * INTS + k], "copied number", k);
        HIP(hipStreamDestroy(stream[s]));
    }
    expect(counts[streams] == graphs * NODES, "kernels of the graph");
}

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    int threads = atoi(argv[1]), gpus = 0;
    HIP(hipGetDeviceCount(&gpus));
    std::vector<std::thread> running;
    for (int i = 0; i < gpus * threads; i++)
        running.emplace_back(work, i / threads, atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), atoi(argv[5]));
    for (auto &thread : running) thread.join();
    puts("all counted");
    return 0;
}
