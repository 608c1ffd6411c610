// Something for every hook and every exported function of the recorder: code objects, queues, kernels, copies with signals,
// events, markers, controls. The results are checked, so a packet that is lost or doubled shows.
#include "../../../fixtures/programs/check.h"
#include "markers.h"

__global__ void add(int *sum, int value) { *sum += value; }

int main() {
    int *sum, *host, expected = 0;
    hipStream_t stream;
    hipEvent_t begin, end;
    HIP(hipHostMalloc(&host, sizeof(int)));
    HIP(hipMalloc(&sum, sizeof(int)));
    HIP(hipMemset(sum, 0, sizeof(int)));
    HIP(hipStreamCreate(&stream));
    HIP(hipEventCreate(&begin));
    HIP(hipEventCreate(&end));
    HIP(hipDeviceSynchronize());
    push("a range");
    for (int i = 1; i <= 3; i++) {
        HIP(hipEventRecord(begin, stream));
        add<<<1, 1, 0, stream>>>(sum, i);
        HIP(hipEventRecord(end, stream));
        HIP(hipMemcpyAsync(host, sum, sizeof(int), hipMemcpyDeviceToHost, stream));
        HIP(hipStreamSynchronize(stream));
        expected += i;
        expect(*host == expected, "sum", i);
        float ms = 0;
        HIP(hipEventElapsedTime(&ms, begin, end));
        mark("a mark");
    }
    call("rpdstop");
    call("rpdstart");
    call("rpd_rangePop");
    call("rpdflush");
    HIP(hipStreamDestroy(stream));
    HIP(hipFree(sum));
    printf("sum %d\n", expected);
    return 0;
}
