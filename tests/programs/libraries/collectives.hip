// RCCL: each collective once on all GPUs, and a message from each to the next.
#include "../../../fixtures/programs/check.h"

#include <rccl/rccl.h>

#include <vector>

enum { COUNT = 1024 };

#define RCCL(call) expect((call) == ncclSuccess, #call)

template <class Call> void on_all(int gpus, Call call) {
    RCCL(ncclGroupStart());
    for (int gpu = 0; gpu < gpus; gpu++) {
        HIP(hipSetDevice(gpu));
        call(gpu);
    }
    RCCL(ncclGroupEnd());
}

int main() {
    int gpus = 0;
    HIP(hipGetDeviceCount(&gpus));
    std::vector<ncclComm_t> comm(gpus);
    std::vector<hipStream_t> stream(gpus);
    std::vector<float *> from(gpus), to(gpus);
    for (int gpu = 0; gpu < gpus; gpu++) {
        HIP(hipSetDevice(gpu));
        HIP(hipMalloc(&from[gpu], gpus * COUNT * sizeof(float)));
        HIP(hipMalloc(&to[gpu], gpus * COUNT * sizeof(float)));
        HIP(hipStreamCreate(&stream[gpu]));
    }
    RCCL(ncclCommInitAll(comm.data(), gpus, nullptr));
    on_all(gpus, [&](int i) { RCCL(ncclAllReduce(from[i], to[i], COUNT, ncclFloat, ncclSum, comm[i], stream[i])); });
    on_all(gpus, [&](int i) { RCCL(ncclBroadcast(from[i], to[i], COUNT, ncclFloat, 0, comm[i], stream[i])); });
    on_all(gpus, [&](int i) { RCCL(ncclAllGather(from[i], to[i], COUNT, ncclFloat, comm[i], stream[i])); });
    on_all(gpus, [&](int i) { RCCL(ncclReduceScatter(from[i], to[i], COUNT, ncclHalf, ncclMax, comm[i], stream[i])); });
    on_all(gpus, [&](int i) {
        RCCL(ncclSend(from[i], COUNT, ncclInt8, (i + 1) % gpus, comm[i], stream[i]));
        RCCL(ncclRecv(to[i], COUNT, ncclInt8, (i + gpus - 1) % gpus, comm[i], stream[i]));
    });
    for (int gpu = 0; gpu < gpus; gpu++) {
        HIP(hipSetDevice(gpu));
        HIP(hipStreamSynchronize(stream[gpu]));
        RCCL(ncclCommDestroy(comm[gpu]));
    }
    puts("done");
    return 0;
}
