// RCCL: the sum of what all GPUs have, on all GPUs.
//
// Status 0 only if every number is right.
#include "../../../fixtures/programs/check.h"

#include <rccl/rccl.h>

#include <vector>

enum { FLOATS = 1024 };

#define RCCL(call) expect((call) == ncclSuccess, #call)

int main() {
    int gpus = 0;
    HIP(hipGetDeviceCount(&gpus));
    std::vector<ncclComm_t> communicator(gpus);
    std::vector<float *> memory(gpus);
    std::vector<hipStream_t> stream(gpus);
    RCCL(ncclCommInitAll(communicator.data(), gpus, nullptr));
    for (int gpu = 0; gpu < gpus; gpu++) {
        std::vector<float> mine(FLOATS, float(gpu + 1));
        HIP(hipSetDevice(gpu));
        HIP(hipMalloc(&memory[gpu], FLOATS * sizeof(float)));
        HIP(hipMemcpy(memory[gpu], mine.data(), FLOATS * sizeof(float), hipMemcpyHostToDevice));
        HIP(hipStreamCreate(&stream[gpu]));
    }
    RCCL(ncclGroupStart());
    for (int gpu = 0; gpu < gpus; gpu++)
        RCCL(ncclAllReduce(memory[gpu], memory[gpu], FLOATS, ncclFloat, ncclSum, communicator[gpu], stream[gpu]));
    RCCL(ncclGroupEnd());
    for (int gpu = 0; gpu < gpus; gpu++) {
        std::vector<float> all(FLOATS);
        HIP(hipSetDevice(gpu));
        HIP(hipStreamSynchronize(stream[gpu]));
        HIP(hipMemcpy(all.data(), memory[gpu], FLOATS * sizeof(float), hipMemcpyDeviceToHost));
        for (int i = 0; i < FLOATS; i++) expect(all[i] == gpus * (gpus + 1) / 2, "sum", i);
    }
    printf("the sum is right on %d GPUs\n", gpus);
    return 0;
}
