// A program that uses GPUs of two vendors: both FIRST SECOND MS. Each of the two is hip, cuda or none; so many milliseconds lie between them.
#include <dlfcn.h>
#include <hip/hip_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HIP_LAUNCHES = 30, CUDA_LAUNCHES = 50 };

static void check(int status, const char *what) {
    if (status == 0) return;
    fprintf(stderr, "%s: %d\n", what, status);
    exit(1);
}

__global__ void add_one(float *x) { x[threadIdx.x] += 1; }

static void by_hip() {
    float *x;
    check(hipMalloc(&x, 256), "hipMalloc");
    for (int i = 0; i < HIP_LAUNCHES; i++) add_one<<<1, 64>>>(x);
    check(hipDeviceSynchronize(), "hipDeviceSynchronize");
}

template <typename Function> static Function *find(const char *name) {
    static void *library = dlopen("libcuda.so.1", RTLD_NOW);
    auto *function = library ? (Function *)dlsym(library, name) : nullptr;
    if (!function) check(1, name);
    return function;
}

static void by_cuda() {
    typedef void *Handle;
    Handle context, module, kernel, stream;
    check(find<int(unsigned)>("cuInit")(0), "cuInit");
    check(find<int(Handle *, int)>("cuDevicePrimaryCtxRetain")(&context, 0), "cuDevicePrimaryCtxRetain");
    check(find<int(Handle)>("cuCtxSetCurrent")(context), "cuCtxSetCurrent");
    const char *text = ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry _Z5emptyv()\n{\n ret;\n}\n";
    check(find<int(Handle *, const void *)>("cuModuleLoadData")(&module, text), "cuModuleLoadData");
    check(find<int(Handle *, Handle, const char *)>("cuModuleGetFunction")(&kernel, module, "_Z5emptyv"), "cuModuleGetFunction");
    check(find<int(Handle *, unsigned)>("cuStreamCreate")(&stream, 1), "cuStreamCreate");
    auto *launch = find<int(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **, void **)>("cuLaunchKernel");
    for (int i = 0; i < CUDA_LAUNCHES; i++) check(launch(kernel, 3, 2, 1, 64, 1, 1, 128, stream, nullptr, nullptr), "cuLaunchKernel");
    check(find<int(Handle)>("cuStreamSynchronize")(stream), "cuStreamSynchronize");
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    for (int turn = 1; turn <= 2; turn++) {
        if (turn == 2) usleep((useconds_t)atoi(argv[3]) * 1000);
        if (!strcmp(argv[turn], "hip")) by_hip();
        if (!strcmp(argv[turn], "cuda")) by_cuda();
    }
    puts("done");
    return 0;
}
