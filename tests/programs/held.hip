// A kernel that runs on one stream (`held_kernel`) until short ones on another (`short_kernel`) have brought about a file.
//
// Usage: held FILE
// Status 0 only if each ran once; 1 if the file is not there after a million short ones.
#include "../../fixtures/programs/check.h"
#include <unistd.h>

__global__ void held_kernel(int *go_on, int *done) {
    while (__hip_atomic_load(go_on, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) == 0) __builtin_amdgcn_s_sleep(1);
    *done += 1;
}

__global__ void short_kernel(unsigned *count) { *count += 1; }

int main(int, char **argv) {
    hipStream_t slow, fast;
    int *shared; // go_on, done
    unsigned *count, counted = 0, launched = 0;
    HIP(hipStreamCreateWithFlags(&slow, hipStreamNonBlocking));
    HIP(hipStreamCreateWithFlags(&fast, hipStreamNonBlocking));
    HIP(hipHostMalloc(&shared, 2 * sizeof(int)));
    HIP(hipMalloc(&count, sizeof(unsigned)));
    shared[0] = shared[1] = 0;
    HIP(hipMemset(count, 0, sizeof(unsigned)));
    HIP(hipDeviceSynchronize());
    held_kernel<<<1, 1, 0, slow>>>(shared, shared + 1);
    while (access(argv[1], F_OK) && launched < 1000000) {
        for (int i = 0; i < 500; i++) short_kernel<<<1, 1, 0, fast>>>(count);
        HIP(hipStreamSynchronize(fast));
        launched += 500;
    }
    expect(shared[1] == 0, "the held kernel has ended");
    *(volatile int *)shared = 1;
    HIP(hipStreamSynchronize(slow));
    expect(shared[1] == 1, "the held kernel");
    HIP(hipMemcpy(&counted, count, sizeof counted, hipMemcpyDeviceToHost));
    expect(counted == launched, "number of short kernels");
    return access(argv[1], F_OK) ? 1 : 0;
}
