// Calls of GPU libraries, of which library.hip is the stand-in.
#include "calls.h"

#include <dlfcn.h>
#include <hip/hip_runtime.h>

int main(int argc, char **argv) {
    void *handle = nullptr;
    rocblas_create_handle(&handle);
    float alpha = 2.5f, beta = 0;
    double one = 1;
    auto sgemm = [&](int m) {
        return rocblas_sgemm(handle, TRANSPOSE, NONE, m, 64, 48, &alpha, (float *)0xa000, 48, (float *)0xb000, 49, &beta, (float *)0xc000, 33);
    };
    sgemm(32);
    sgemm(32);
    if (sgemm(-1) != INVALID_SIZE) fail("a failure");
    rocblas_dgemm(handle, TRANSPOSE, NONE, 32, 64, 48, &one, (double *)0xa000, 48, (double *)0xb000, 49, &one, (double *)0xc000, 33);
    hipblasSgemm(handle, TRANSPOSE, NONE, 32, 64, 48, &alpha, (float *)0xa000, 48, (float *)0xb000, 49, &beta, (float *)0xc000, 33);

    // An exception goes through.
    try {
        rocblas_saxpy(handle, 7, &alpha, nullptr, 1, nullptr, 1);
        fail("no exception");
    } catch (int n) {
        if (n != 7) fail("exception");
    }
    rocblas_saxpy(handle, 8, &alpha, nullptr, 1, nullptr, 1);

    UniqueId id;
    for (int i = 0; i < 128; i++) id.internal[i] = (char)(3 * i);
    void *rank, *all[2];
    ncclCommInitRank(&rank, 4, id, 2);
    ncclCommInitAll(all, 2, nullptr);
    hipStream_t stream[2];
    for (auto &one : stream) (void)hipStreamCreate(&one);
    ncclAllReduce((void *)0x10, (void *)0x20, 1024, 7, 0, rank, nullptr);
    ncclGroupStart();
    for (int i = 0; i < 2; i++) ncclAllReduce((void *)0x10, (void *)0x20, 1024, 7, 0, all[i], stream[i]);
    ncclGroupEnd();
    rocsolver_sgesvdx(handle, 191, 191, 231, 5, 6, nullptr, 7, 0.5f, 1.5f, 1, 2, nullptr, nullptr, nullptr, 8, nullptr, 9, nullptr, (int *)0xf0);

    // Scalars in the GPU's memory are not looked at.
    rocblas_set_pointer_mode(handle, 1);
    rocblas_saxpy(handle, 9, (float *)0x5000, nullptr, 1, nullptr, 1);

    // What nobody has is not found.
    if (dlsym(RTLD_DEFAULT, "cublasSgemm_v2") || dlsym(RTLD_DEFAULT, "rocfft_execute")) fail("a function that is not there");
    if (!dlsym(RTLD_DEFAULT, "rocblas_sgemm")) fail("a function that is there");
    (void)hipDeviceSynchronize();
    printf("done %d\n", argc > 1 ? argv[1][0] : 0);
    return 3;
}
