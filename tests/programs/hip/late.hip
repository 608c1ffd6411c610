// Uses HIP, loads the recorder that RECORDER names (if any), and goes on: on the queue that it had before and on a new one.
// `early` is launched before, `late` after with a grid of its own each time; prints what came out. Status 0 if all is right.
#include "../../../fixtures/programs/check.h"

#include <dlfcn.h>

__global__ void early(unsigned *sum) { atomicAdd(sum, 1); }
__global__ void late(unsigned *sum) {
    if (threadIdx.x == 0) atomicAdd(sum, 1);
}

int main() {
    hipStream_t old_stream, new_stream;
    unsigned *sum, *copy, host = 0;
    HIP(hipMalloc(&sum, 1 << 20));
    HIP(hipMalloc(&copy, 1 << 20));
    HIP(hipMemset(sum, 0, 1 << 20));
    HIP(hipStreamCreate(&old_stream));
    for (int i = 0; i < 10; i++) early<<<1, 1, 0, old_stream>>>(sum);
    HIP(hipStreamSynchronize(old_stream));

    if (const char *recorder = getenv("RECORDER")) {
        if (!dlopen(recorder, RTLD_NOW | RTLD_LOCAL)) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
    }

    unsigned blocks = 0;
    for (unsigned i = 1; i <= 50; i++) {
        late<<<dim3(i), dim3(64), 0, old_stream>>>(sum);
        blocks += i;
    }
    HIP(hipStreamCreate(&new_stream));
    HIP(hipStreamSynchronize(old_stream));
    for (unsigned i = 51; i <= 60; i++) {
        late<<<dim3(i), dim3(64), 0, new_stream>>>(sum);
        blocks += i;
    }
    HIP(hipStreamSynchronize(new_stream));
    HIP(hipMemcpy(copy, sum, 1 << 20, hipMemcpyDeviceToDevice));
    HIP(hipMemset(sum, 0, 1 << 20));
    HIP(hipMemcpy(&host, copy, sizeof host, hipMemcpyDeviceToHost));
    HIP(hipMemcpy(sum, &host, sizeof host, hipMemcpyHostToDevice));
    HIP(hipDeviceSynchronize());
    printf("%u of %u workgroups\n", host, blocks + 10);
    expect(host == blocks + 10, "number of workgroups");
}
