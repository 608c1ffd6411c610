// A sample as public collections have it: the best alignment of two strings by Needleman and Wunsch. Tiles of a diagonal are computed at once, each by one
// workgroup in dynamic LDS, on two streams in turn that wait for each other by events. The host has the whole table.
#include "../../../fixtures/programs/check.h"
#include <algorithm>
#include <vector>

#define TILE 16
#define TILES 4
#define SIDE (TILE * TILES + 1)
#define GAP 2

static __host__ __device__ int best(int corner, int above, int left, bool equal) {
    int score = corner + (equal ? 3 : -1);
    if (above - GAP > score) score = above - GAP;
    if (left - GAP > score) score = left - GAP;
    return score;
}

__global__ void tiles(int *table, const char *one, const char *other, int diagonal, int first) {
    extern __shared__ int tile[];
    const int side = TILE + 1, me = threadIdx.x;
    int row = first + blockIdx.x, top = row * TILE, left = (diagonal - row) * TILE;
    tile[me + 1] = table[top * SIDE + left + me + 1];
    tile[(me + 1) * side] = table[(top + me + 1) * SIDE + left];
    if (!me) tile[0] = table[top * SIDE + left];
    __syncthreads();
    for (int wave = 0; wave < 2 * TILE - 1; wave++) {
        int x = wave - me;
        if (x >= 0 && x < TILE) {
            int *at = &tile[(me + 1) * side + x + 1];
            *at = best(at[-side - 1], at[-side], at[-1], one[top + me] == other[left + x]);
        }
        __syncthreads();
    }
    for (int x = 0; x < TILE; x++) table[(top + me + 1) * SIDE + left + x + 1] = tile[(me + 1) * side + x + 1];
}

int main() {
    std::vector<int> host(SIDE * SIDE), got(SIDE * SIDE);
    std::vector<char> one(SIDE - 1), other(SIDE - 1);
    unsigned number = 99;
    for (auto *text : {&one, &other}) for (char &letter : *text) letter = "ACGT"[(number = number * 1664525 + 1013904223) >> 30];
    for (int at = 0; at < SIDE; at++) host[at] = host[at * SIDE] = -GAP * at;
    int *table;
    char *first, *second;
    HIP(hipMalloc(&table, host.size() * sizeof(int)));
    HIP(hipMalloc(&first, one.size()));
    HIP(hipMalloc(&second, other.size()));
    HIP(hipMemcpy(table, host.data(), host.size() * sizeof(int), hipMemcpyHostToDevice));
    HIP(hipMemcpy(first, one.data(), one.size(), hipMemcpyHostToDevice));
    HIP(hipMemcpy(second, other.data(), other.size(), hipMemcpyHostToDevice));
    hipStream_t streams[2];
    hipEvent_t done;
    for (hipStream_t &stream : streams) HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    HIP(hipEventCreateWithFlags(&done, hipEventDisableTiming));
    for (int diagonal = 0; diagonal < 2 * TILES - 1; diagonal++) {
        int from = std::max(0, diagonal - TILES + 1), count = std::min(diagonal, TILES - 1) - from + 1;
        hipStream_t stream = streams[diagonal % 2];
        if (diagonal) HIP(hipStreamWaitEvent(stream, done, 0));
        tiles<<<count, TILE, (TILE + 1) * (TILE + 1) * sizeof(int), stream>>>(table, first, second, diagonal, from);
        HIP(hipEventRecord(done, stream));
    }
    HIP(hipDeviceSynchronize());
    HIP(hipMemcpy(got.data(), table, got.size() * sizeof(int), hipMemcpyDeviceToHost));
    for (int y = 1; y < SIDE; y++) {
        for (int x = 1; x < SIDE; x++) {
            int *at = &host[y * SIDE + x];
            *at = best(at[-SIDE - 1], at[-SIDE], at[-1], one[y - 1] == other[x - 1]);
        }
    }
    for (size_t at = 0; at < got.size(); at++) expect(got[at] == host[at], "a score", at);
    printf("score %d\n", got.back());
    return 0;
}
