// Small copies of every direction between pinned and device memory, and of two in a graph, which has no call for each of them. With GPU_FORCE_BLIT_COPY_SIZE=1024 HIP makes them with kernels.
#include "../../../fixtures/programs/check.h"

int main() {
    const size_t size = 4096;
    unsigned *host, *other, *device, *second;
    hipStream_t stream;
    HIP(hipHostMalloc((void **)&host, size));
    HIP(hipHostMalloc((void **)&other, size));
    HIP(hipMalloc(&device, size));
    HIP(hipMalloc(&second, size));
    HIP(hipStreamCreate(&stream));
    for (unsigned i = 0; i < size / 4; i++) host[i] = i;
    for (int i = 0; i < 5; i++) {
        // The addresses say it where the call does not.
        hipMemcpyKind kind = i % 2 ? hipMemcpyHostToDevice : hipMemcpyDefault;
        HIP(hipMemcpyAsync(device, host, size, kind, stream));
    }
    for (int i = 0; i < 3; i++) HIP(hipMemcpyAsync(second, device, size, hipMemcpyDeviceToDevice, stream));
    for (int i = 0; i < 4; i++) HIP(hipMemcpyAsync(other, second, size, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamSynchronize(stream));
    for (unsigned i = 0; i < size / 4; i++) expect(other[i] == i, "copied", i);

    hipGraph_t graph;
    hipGraphExec_t launchable;
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    HIP(hipMemcpyAsync(device, other, size, hipMemcpyHostToDevice, stream));
    HIP(hipMemcpyAsync(host, device, size, hipMemcpyDeviceToHost, stream));
    HIP(hipStreamEndCapture(stream, &graph));
    HIP(hipGraphInstantiate(&launchable, graph, nullptr, nullptr, 0));
    HIP(hipGraphLaunch(launchable, stream));
    HIP(hipStreamSynchronize(stream));
    puts("14 copies");
    return 0;
}
