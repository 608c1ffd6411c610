// What a program does with CUDA's runtime: runtime COUNT
//
// So many launches by cudaLaunchKernel and by cudaLaunchKernelExC, copies of rectangles to the device, allocations and frees, and a wait for all.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct dim3 {
    unsigned x, y, z;
};
struct config {
    struct dim3 grid, block;
    size_t shared;
    void *stream, *attributes;
    unsigned count;
};
int cuInit(unsigned flags);
int cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **arguments, size_t shared, void *stream);
int cudaLaunchKernelExC(const struct config *config, const void *function, void **arguments);
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int cudaMemcpy2DAsync(void *to, size_t pitch, const void *from, size_t pitch_from, size_t width, size_t height, int kind, void *stream);
int cudaDeviceSynchronize(void);

enum { TO_DEVICE = 1 };

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 1, status = cuInit(0);
    static const char plain[] = "_Z5plainv", extended[] = "_Z8extendedv";
    static char host[4096];
    struct config config = {{5, 1, 1}, {32, 2, 1}, 256, NULL, NULL, 0};
    for (int i = 0; i < count; i++) {
        void *memory;
        status |= cudaMalloc(&memory, 4096);
        status |= cudaMemcpy2DAsync(memory, 128, host, 64, 64, 16, TO_DEVICE, NULL);
        status |= cudaLaunchKernel(plain, (struct dim3){3, 2, 1}, (struct dim3){64, 1, 1}, NULL, 128, NULL);
        status |= cudaLaunchKernelExC(&config, extended, NULL);
        status |= cudaDeviceSynchronize();
        status |= cudaFree(memory);
    }
    printf("%d\n", status);
    return status;
}
