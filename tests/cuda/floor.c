// The least that any profiler by CUPTI costs: the driver loads this (CUDA_INJECTION64_PATH), kernels and launches are recorded, and their
// buffers are thrown away. FLOOR_CUPTI names the libcupti; kinds and numbers are those that the recorder asks for.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "discard.h"

static int (*flush_all)(uint32_t);

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
