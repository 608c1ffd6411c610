// A sample as public collections have it: Conway's game of life on a torus, 64 cells in a word, replayed as a graph that is captured once. The host plays too.
#include "../../../fixtures/programs/check.h"
#include <vector>

#define WORDS 4
#define ROWS 96
#define TURNS 10

typedef unsigned long long Word;

static __host__ __device__ Word next(const Word *cells, int row, int word) {
    Word ones = 0, twos = 0, fours = 0;
    // The neighbours of 64 cells at once, added bit by bit.
    for (int y = ROWS - 1; y <= ROWS + 1; y++) {
        const Word *line = &cells[(row + y) % ROWS * WORDS];
        Word here = line[word], before = line[(word + WORDS - 1) % WORDS], after = line[(word + 1) % WORDS];
        Word sides[] = {here << 1 | before >> 63, y == ROWS ? 0 : here, here >> 1 | after << 63};
        for (Word side : sides) {
            Word carry = ones & side;
            ones ^= side;
            fours |= twos & carry;
            twos ^= carry;
        }
    }
    Word alive = cells[row * WORDS + word];
    return twos & ~fours & (ones | alive);
}

__global__ void turn(const Word *from, Word *to) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, word = blockIdx.y;
    if (row < ROWS) to[row * WORDS + word] = next(from, row, word);
}

__global__ void population(const Word *cells, unsigned *count) {
    unsigned mine = 0;
    for (int at = threadIdx.x; at < ROWS * WORDS; at += blockDim.x) mine += __popcll(cells[at]);
    for (int half = 32; half; half /= 2) mine += __shfl_down(mine, half);
    if (threadIdx.x % 64 == 0) atomicAdd(count, mine);
}

int main() {
    std::vector<Word> host(ROWS * WORDS), other(ROWS * WORDS);
    Word number = 1;
    for (Word &word : host) {
        number = number * 6364136223846793005ull + 1442695040888963407ull;
        word = number ^ number >> 29;
    }
    const size_t bytes = host.size() * sizeof(Word);
    Word *from, *to;
    unsigned *count, counted;
    HIP(hipMalloc(&from, bytes));
    HIP(hipMalloc(&to, bytes));
    HIP(hipMalloc(&count, sizeof counted));
    HIP(hipMemcpy(from, host.data(), bytes, hipMemcpyHostToDevice));
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t ready;
    HIP(hipStreamCreate(&stream));
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    turn<<<dim3(2, WORDS), 64, 0, stream>>>(from, to);
    turn<<<dim3(2, WORDS), 64, 0, stream>>>(to, from);
    HIP(hipStreamEndCapture(stream, &graph));
    HIP(hipGraphInstantiate(&ready, graph, nullptr, nullptr, 0));
    for (int two = 0; two < TURNS / 2; two++) HIP(hipGraphLaunch(ready, stream));
    HIP(hipMemsetAsync(count, 0, sizeof counted, stream));
    population<<<1, 256, 0, stream>>>(from, count);
    HIP(hipStreamSynchronize(stream));
    unsigned alive = 0;
    for (int step = 0; step < TURNS; step++) {
        for (int at = 0; at < ROWS * WORDS; at++) other[at] = next(host.data(), at / WORDS, at % WORDS);
        std::swap(host, other);
    }
    for (Word word : host) alive += __builtin_popcountll(word);
    HIP(hipMemcpy(&counted, count, sizeof counted, hipMemcpyDeviceToHost));
    HIP(hipMemcpy(other.data(), from, bytes, hipMemcpyDeviceToHost));
    for (size_t at = 0; at < other.size(); at++) expect(other[at] == host[at], "cells", at);
    expect(counted == alive && alive > 0, "the population");
    printf("%u cells live\n", counted);
    return 0;
}
