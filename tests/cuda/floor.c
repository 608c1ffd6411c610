// The least that any profiler by CUPTI costs: the driver loads this (CUDA_INJECTION64_PATH), kernels and launches are recorded, and their
// buffers are thrown away. FLOOR_CUPTI names the libcupti; kinds and numbers are those that the recorder asks for.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE (1 << 20)

static int (*flush_all)(uint32_t);

static void requested(uint8_t **buffer, size_t *size, size_t *records) {
    *buffer = aligned_alloc(4096, SIZE);
    *size = SIZE;
    *records = 0;
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size, (void)valid;
    free(buffer);
}

static void nothing(void *data, uint32_t domain, uint32_t number, const void *info) {
    (void)data, (void)domain, (void)number, (void)info;
}

static void ended(void) { flush_all(1); }

int InitializeInjection(void) {
    const char *path = getenv("FLOOR_CUPTI");
    void *cupti = dlopen(path ? path : "libcupti.so.13", RTLD_NOW);
    if (!cupti) {
        fprintf(stderr, "floor: no CUPTI\n");
        return 0;
    }
    int (*subscribe)(void **, void *, void *) = (int (*)(void **, void *, void *))dlsym(cupti, "cuptiSubscribe");
    int (*callbacks)(void *, void *) = (int (*)(void *, void *))dlsym(cupti, "cuptiActivityRegisterCallbacks");
    int (*enable)(uint32_t) = (int (*)(uint32_t))dlsym(cupti, "cuptiActivityEnable");
    int (*driver)(uint32_t, uint8_t) = (int (*)(uint32_t, uint8_t))dlsym(cupti, "cuptiActivityEnableDriverApi");
    int (*runtime)(uint32_t, uint8_t) = (int (*)(uint32_t, uint8_t))dlsym(cupti, "cuptiActivityEnableRuntimeApi");
    flush_all = (int (*)(uint32_t))dlsym(cupti, "cuptiActivityFlushAll");
    void *subscriber;
    if (subscribe(&subscriber, nothing, NULL) || callbacks(requested, completed)) return 0;
    static const uint32_t kinds[] = {10, 1, 22, 2};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) enable(kinds[i]);
    // cuLaunchKernel, cuLaunchKernelEx, cuGraphLaunch; cudaLaunchKernel, cudaLaunchKernelExC, cudaGraphLaunch, cudaMemcpyAsync.
    static const uint32_t of_driver[] = {307, 652, 514}, of_runtime[] = {211, 430, 311, 41};
    for (size_t i = 0; i < sizeof of_driver / sizeof *of_driver; i++) driver(of_driver[i], 1);
    for (size_t i = 0; i < sizeof of_runtime / sizeof *of_runtime; i++) runtime(of_runtime[i], 1);
    atexit(ended);
    return 1;
}
