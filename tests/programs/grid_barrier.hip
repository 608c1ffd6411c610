// Kernels whose workgroups wait for each other until all of them have come. Arguments: WORKGROUPS, or WORKGROUPS:LDS with so many bytes of
// dynamic LDS, for a launch each; in between `alone` for kernels that do not wait, `wait` for those that do, `mask=WORDS` for streams
// that may use the compute units of so many words of a mask, and `cooperative` for launches by hipLaunchCooperativeKernel. Prints for each launch how many
// workgroups have seen all the others. `both=WORKGROUPS`: two kernels of so many, on two streams, each of whose workgroups wait for those of both.
#include <hip/hip_runtime.h>

#include "../../fixtures/programs/check.h"
#include <cstring>
#include <dlfcn.h>
#include <vector>

#define ITEMS 256
// How often a workgroup looks before it gives up: a kernel that would hang ends, too.
#define LOOKS 4000

// 128 vector registers: a compute unit has room for two workgroups. With more it has room for one.
#define KERNEL extern "C" __global__ void __launch_bounds__(ITEMS)
#define LARGE asm volatile("v_mov_b32 v127, 0" ::: "v127")

KERNEL meet(unsigned *arrived, unsigned *seen, unsigned groups) {
    LARGE;
    if (threadIdx.x) return;
    __hip_atomic_fetch_add(arrived, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    unsigned all = 0;
    for (int look = 0; look < LOOKS && all < groups; look++)
        all = __hip_atomic_load(arrived, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT);
    seen[blockIdx.x] = all;
}

// No workgroup waits for another one: those that come late see more.
KERNEL pass(unsigned *arrived, unsigned *seen, unsigned groups) {
    LARGE;
    if (threadIdx.x) return;
    seen[blockIdx.x] = __hip_atomic_fetch_add(arrived, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) + 1;
}

// Waits until the recorder, if it is here, has seen the end of what ran before: for it a kernel is in flight until then.
static void drain() {
    auto rpd_drain = (unsigned long (*)(unsigned long))dlsym(RTLD_DEFAULT, "rpddrain");
    if (rpd_drain) rpd_drain(10000000000ul);
}

static void together(unsigned *memory, unsigned groups) {
    hipStream_t streams[2];
    unsigned all = 2 * groups, complete = 0;
    HIP(hipMemset(memory, 0, (1 << 16) * sizeof(unsigned)));
    HIP(hipDeviceSynchronize());
    for (hipStream_t &stream : streams) HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    for (int number = 0; number < 2; number++)
        meet<<<groups, ITEMS, 0, streams[number]>>>(memory, memory + 64 + number * groups, all);
    for (hipStream_t stream : streams) HIP(hipStreamSynchronize(stream));
    std::vector<unsigned> seen(all);
    HIP(hipMemcpy(seen.data(), memory + 64, all * sizeof(unsigned), hipMemcpyDeviceToHost));
    for (unsigned one : seen) complete += one == all;
    printf("%u: %u\n", all, complete);
    drain();
}

int main(int count, char **arguments) {
    unsigned *memory;
    HIP(hipMalloc(&memory, (1 << 16) * sizeof(unsigned)));
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    auto kernel = meet;
    bool is_cooperative = false;
    for (int number = 1; number < count; number++) {
        const char *argument = arguments[number];
        if (!strcmp(argument, "alone")) kernel = pass;
        else if (!strcmp(argument, "wait")) kernel = meet;
        else if (!strcmp(argument, "cooperative")) is_cooperative = true;
        else if (!strncmp(argument, "both=", 5)) together(memory, atoi(argument + 5));
        else if (!strncmp(argument, "mask=", 5)) {
            std::vector<uint32_t> mask(atoi(argument + 5), ~0u);
            HIP(hipExtStreamCreateWithCUMask(&stream, mask.size(), mask.data()));
        } else {
            unsigned groups = atoi(argument), complete = 0;
            const char *lds = strchr(argument, ':');
            HIP(hipMemset(memory, 0, (1 << 16) * sizeof(unsigned)));
            HIP(hipDeviceSynchronize());
            unsigned *seen_at = memory + 64;
            unsigned bytes = lds ? atoi(lds + 1) : 0;
            void *values[] = {&memory, &seen_at, &groups};
            if (is_cooperative) HIP(hipLaunchCooperativeKernel((void *)kernel, dim3(groups), dim3(ITEMS), values, bytes, stream));
            else kernel<<<groups, ITEMS, bytes, stream>>>(memory, seen_at, groups);
            HIP(hipGetLastError());
            HIP(hipStreamSynchronize(stream));
            std::vector<unsigned> seen(groups);
            HIP(hipMemcpy(seen.data(), memory + 64, groups * sizeof(unsigned), hipMemcpyDeviceToHost));
            for (unsigned all : seen) complete += all == groups;
            printf("%s: %u\n", argument, complete);
            drain();
        }
    }
    return 0;
}
