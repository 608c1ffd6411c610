// A sample as public collections have it: clusters by k-means, in whole numbers. One kernel finds each point's nearest centre, one adds the points of
// each centre up by atomic operations in LDS; the host moves the centres. Compared with the host's own.
#include "../../../fixtures/programs/check.h"
#include <vector>

#define POINTS 1500
#define CENTRES 7

__constant__ int2 centres[CENTRES];

static __host__ __device__ int nearest(int2 point, const int2 *centres) {
    int best = 0, least = 0x7fffffff;
    for (int centre = 0; centre < CENTRES; centre++) {
        int x = point.x - centres[centre].x, y = point.y - centres[centre].y, distance = x * x + y * y;
        if (distance < least) best = centre, least = distance;
    }
    return best;
}

__global__ void assign(const int2 *points, int *of, unsigned *moved) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    if (me >= POINTS) return;
    int best = nearest(points[me], centres);
    if (best != of[me]) {
        of[me] = best;
        atomicAdd(moved, 1);
    }
}

__global__ void sums(const int2 *points, const int *of, int *all) {
    __shared__ int own[CENTRES][3];
    for (int at = threadIdx.x; at < CENTRES * 3; at += blockDim.x) own[at / 3][at % 3] = 0;
    __syncthreads();
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < POINTS; at += gridDim.x * blockDim.x) {
        atomicAdd(&own[of[at]][0], points[at].x);
        atomicAdd(&own[of[at]][1], points[at].y);
        atomicAdd(&own[of[at]][2], 1);
    }
    __syncthreads();
    for (int at = threadIdx.x; at < CENTRES * 3; at += blockDim.x) atomicAdd(&all[at], own[at / 3][at % 3]);
}

int main() {
    std::vector<int2> points(POINTS);
    unsigned number = 2024;
    auto next = [&] { return int((number = number * 1664525 + 1013904223) >> 20); };
    for (int2 &point : points) point = {next(), next()};
    int2 here[CENTRES];
    for (int centre = 0; centre < CENTRES; centre++) here[centre] = points[centre * 31];
    int2 *device;
    int *of, *all;
    unsigned *moved, some = 1;
    HIP(hipMalloc(&device, POINTS * sizeof(int2)));
    HIP(hipMalloc(&of, POINTS * sizeof(int)));
    HIP(hipMalloc(&all, CENTRES * 3 * sizeof(int)));
    HIP(hipMalloc(&moved, sizeof some));
    HIP(hipMemcpy(device, points.data(), POINTS * sizeof(int2), hipMemcpyHostToDevice));
    HIP(hipMemset(of, 0xff, POINTS * sizeof(int)));
    int rounds = 0;
    for (; some && rounds < 40; rounds++) {
        HIP(hipMemcpyToSymbol(HIP_SYMBOL(centres), here, sizeof here));
        HIP(hipMemset(moved, 0, sizeof some));
        HIP(hipMemset(all, 0, CENTRES * 3 * sizeof(int)));
        assign<<<(POINTS + 127) / 128, 128>>>(device, of, moved);
        sums<<<3, 192>>>(device, of, all);
        std::vector<int> got(CENTRES * 3), expected(CENTRES * 3), own(POINTS);
        HIP(hipMemcpy(got.data(), all, got.size() * sizeof(int), hipMemcpyDeviceToHost));
        HIP(hipMemcpy(own.data(), of, POINTS * sizeof(int), hipMemcpyDeviceToHost));
        HIP(hipMemcpy(&some, moved, sizeof some, hipMemcpyDeviceToHost));
        for (int at = 0; at < POINTS; at++) {
            int best = nearest(points[at], here);
            expect(own[at] == best, "nearest centre", at);
            expected[best * 3] += points[at].x, expected[best * 3 + 1] += points[at].y, expected[best * 3 + 2]++;
        }
        expect(got == expected, "sums of a cluster");
        for (int centre = 0; centre < CENTRES; centre++) {
            const int *sum = &got[centre * 3];
            if (sum[2]) here[centre] = {sum[0] / sum[2], sum[1] / sum[2]};
        }
    }
    printf("%d rounds\n", rounds);
    return 0;
}
