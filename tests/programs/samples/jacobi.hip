// A sample as public collections have it: Jacobi's method on a grid, until a step changes nothing more. The heat of the edge is fixed. The host takes the
// same steps, with the same rounding.
#include "../../../fixtures/programs/check.h"
#include <cmath>
#include <cstring>
#include <vector>

#define SIDE 48

__global__ void step(const float *from, float *to, unsigned *change) {
    __shared__ float tile[10][18];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    auto at = [&](int x, int y) { return from[min(max(y, 0), SIDE - 1) * SIDE + min(max(x, 0), SIDE - 1)]; };
    tile[threadIdx.y + 1][threadIdx.x + 1] = at(x, y);
    if (threadIdx.x == 0) tile[threadIdx.y + 1][0] = at(x - 1, y);
    if (threadIdx.x == 15) tile[threadIdx.y + 1][17] = at(x + 1, y);
    if (threadIdx.y == 0) tile[0][threadIdx.x + 1] = at(x, y - 1);
    if (threadIdx.y == 7) tile[9][threadIdx.x + 1] = at(x, y + 1);
    __syncthreads();
    int i = threadIdx.y + 1, j = threadIdx.x + 1;
    float old = tile[i][j], heat = old;
    if (x > 0 && x < SIDE - 1 && y > 0 && y < SIDE - 1)
        heat = 0.25f * ((tile[i][j - 1] + tile[i][j + 1]) + (tile[i - 1][j] + tile[i + 1][j]));
    to[y * SIDE + x] = heat;
    // Numbers that are not negative compare as their bits do.
    if (heat != old) atomicMax(change, __float_as_uint(fabsf(heat - old)));
}

int main() {
    const size_t bytes = SIDE * SIDE * sizeof(float);
    std::vector<float> host(SIDE * SIDE), next, got(SIDE * SIDE);
    for (int at = 0; at < SIDE; at++) host[at] = 100, host[at * SIDE] = 50;
    next = host;
    float *from, *to;
    unsigned *change;
    HIP(hipMalloc(&from, bytes));
    HIP(hipMalloc(&to, bytes));
    HIP(hipMalloc(&change, sizeof(unsigned)));
    HIP(hipMemcpy(from, host.data(), bytes, hipMemcpyHostToDevice));
    int steps = 0;
    for (float most = 1e9f; most > 0.5f; steps++) {
        unsigned bits;
        HIP(hipMemset(change, 0, sizeof(unsigned)));
        step<<<dim3(SIDE / 16, SIDE / 8), dim3(16, 8)>>>(from, to, change);
        HIP(hipMemcpy(&bits, change, sizeof bits, hipMemcpyDeviceToHost));
        memcpy(&most, &bits, sizeof most);
        std::swap(from, to);
        for (int y = 1; y < SIDE - 1; y++) {
            for (int x = 1; x < SIDE - 1; x++) {
                const float *at = &host[y * SIDE + x];
                next[y * SIDE + x] = 0.25f * ((at[-1] + at[1]) + (at[-SIDE] + at[SIDE]));
            }
        }
        std::swap(host, next);
    }
    HIP(hipMemcpy(got.data(), from, bytes, hipMemcpyDeviceToHost));
    for (size_t at = 0; at < got.size(); at++) expect(got[at] == host[at], "heat", at);
    printf("%d steps\n", steps);
    return 0;
}
