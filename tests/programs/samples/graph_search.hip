// A sample as public collections have it: breadth-first search through a graph in rows, level by level with a queue in global memory, and an order of its
// nodes by depth. Depths are compared with the host's.
#include "../../../fixtures/programs/check.h"
#include <vector>

#define NODES 2000

__global__ void level(const int *rows, const int *edges, int *depth, const int *queue, int length, int *next, int *added, int now) {
    for (int me = blockIdx.x * blockDim.x + threadIdx.x; me < length; me += gridDim.x * blockDim.x) {
        int node = queue[me];
        for (int edge = rows[node]; edge < rows[node + 1]; edge++) {
            int other = edges[edge];
            if (atomicCAS(&depth[other], -1, now) == -1) next[atomicAdd(added, 1)] = other;
        }
    }
}

// A place for each node: those of smaller depth come first.
__global__ void place(const int *depth, const int *firsts, int *used, int *order) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= NODES) return;
    int own = depth[node];
    if (own < 0) return;
    order[firsts[own] + atomicAdd(&used[own], 1)] = node;
}

int main() {
    std::vector<int> rows(NODES + 1), edges, depth(NODES, -1), got(NODES), queue{0};
    unsigned number = 5;
    for (int node = 0; node < NODES; node++) {
        rows[node] = edges.size();
        for (int edge = 0, count = (number >> 28) % 5; edge < count; edge++)
            edges.push_back((number = number * 1664525 + 1013904223) % NODES);
        edges.push_back((node * 7 + 1) % NODES);
        number = number * 1664525 + 1013904223;
    }
    rows[NODES] = edges.size();
    depth[0] = 0;
    for (size_t at = 0; at < queue.size(); at++) {
        for (int edge = rows[queue[at]]; edge < rows[queue[at] + 1]; edge++) {
            if (depth[edges[edge]] < 0) depth[edges[edge]] = depth[queue[at]] + 1, queue.push_back(edges[edge]);
        }
    }
    auto device = [](const std::vector<int> &numbers) {
        int *memory;
        HIP(hipMalloc(&memory, numbers.size() * sizeof(int)));
        HIP(hipMemcpy(memory, numbers.data(), numbers.size() * sizeof(int), hipMemcpyHostToDevice));
        return memory;
    };
    std::vector<int> begin(NODES, -1), nothing(NODES);
    begin[0] = 0;
    int *own_rows = device(rows), *own_edges = device(edges), *own_depth = device(begin), *now = device(nothing), *next = device(nothing);
    int *added = device({0}), length = 1, levels = 0;
    std::vector<int> firsts{0};
    while (length) {
        firsts.push_back(firsts.back() + length);
        HIP(hipMemset(added, 0, sizeof(int)));
        level<<<3, 128>>>(own_rows, own_edges, own_depth, now, length, next, added, ++levels);
        HIP(hipMemcpy(&length, added, sizeof(int), hipMemcpyDeviceToHost));
        std::swap(now, next);
    }
    int *used = device(nothing), *order = device(nothing), *device_firsts = device(firsts);
    place<<<(NODES + 255) / 256, 256>>>(own_depth, device_firsts, used, order);
    HIP(hipMemcpy(got.data(), own_depth, NODES * sizeof(int), hipMemcpyDeviceToHost));
    for (int node = 0; node < NODES; node++) expect(got[node] == depth[node], "a depth", node);
    HIP(hipMemcpy(got.data(), order, NODES * sizeof(int), hipMemcpyDeviceToHost));
    for (size_t at = 1; at < queue.size(); at++) expect(depth[got[at - 1]] <= depth[got[at]], "the order", at);
    printf("%zu nodes in %d levels\n", queue.size(), levels);
    return 0;
}
