// Small copies of every direction between pinned and device memory. With GPU_FORCE_BLIT_COPY_SIZE=1024 HIP makes them with kernels.
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
    puts("12 copies");
    return 0;
}
