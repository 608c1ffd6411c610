// Calls of GPU libraries, of which library.hip is the stand-in.
#include "calls.h"

#include <dlfcn.h>
#include <hip/hip_runtime.h>

// A product of m x 64 x 48, so many of them, and layouts that go with it.
static void multiply(void *product, unsigned long m, int batches, const void *alpha) {
    void *a, *b, *d;
    hipblasLtMatrixLayoutCreate(&a, R_16F, 48, m, 50);
    hipblasLtMatrixLayoutCreate(&b, R_16F, 48, 64, 48);
    hipblasLtMatrixLayoutCreate(&d, R_16F, m, 64, (long)m);
    long offset = 5000;
    for (void *layout : {a, b, d}) {
        if (batches == 1) break;
        hipblasLtMatrixLayoutSetAttribute(layout, BATCH_COUNT, &batches, sizeof batches);
        hipblasLtMatrixLayoutSetAttribute(layout, BATCH_OFFSET, &offset, sizeof offset);
    }
    float beta = 0;
    hipblasLtMatmul(nullptr, product, alpha, (void *)0xa, a, (void *)0xb, b, &beta, (void *)0xc, d, (void *)0xd, d, nullptr, nullptr, 77, nullptr);
    for (void *layout : {a, b, d}) hipblasLtMatrixLayoutDestroy(layout);
}

static void by_descriptors() {
    void *product;
    int transpose = TRANSPOSE, epilogue = WITH_BIAS;
    static float alpha = 0.5f;
    hipblasLtMatmulDescCreate(&product, COMPUTE_32F, R_32F);
    hipblasLtMatmulDescSetAttribute(product, TRANS_A, &transpose, sizeof transpose);
    multiply(product, 32, 1, &alpha);
    multiply(product, 32, 1, &alpha);
    hipblasLtMatmulDescSetAttribute(product, EPILOGUE, &epilogue, sizeof epilogue);
    multiply(product, 128, 3, &alpha);
    hipblasLtMatmulDescDestroy(product);
    multiply(product, 32, 1, &alpha);

    int x, w, y, convolution;
    const int lengths[] = {2, 4, 8, 14}, strides[] = {448, 1, 56, 4};
    miopenSet4dTensorDescriptor(&x, FLOAT, 2, 3, 8, 16);
    miopenSet4dTensorDescriptor(&w, FLOAT, 4, 3, 3, 5);
    miopenSetTensorDescriptor(&y, FLOAT, 4, lengths, strides);
    miopenInitConvolutionDescriptor(&convolution, CONVOLUTION, 1, 1, 1, 1, 1, 1);
    auto convolve = [&] {
        miopenConvolutionForward(nullptr, &alpha, &x, nullptr, &w, nullptr, &convolution, 1, &alpha, &y, nullptr, nullptr, 88);
    };
    convolve();
    // One that fails changes nothing.
    if (miopenSet4dTensorDescriptor(&x, FLOAT, -1, 9, 9, 9) == 0) fail("a failure");
    convolve();
    miopenDestroyTensorDescriptor(&x);
    convolve();
}

static void by_descriptors_of_cudnn() {
    static char x, w, y, convolution;
    static float alpha = 1;
    cudnnSetTensor4dDescriptor(&x, CHANNELS_FIRST, FLOATS, 2, 6, 8, 16);
    cudnnSetFilter4dDescriptor(&w, FLOATS, CHANNELS_FIRST, 4, 3, 3, 5);
    cudnnSetTensor4dDescriptor(&y, CHANNELS_FIRST, FLOATS, 2, 4, 8, 14);
    cudnnSetConvolution2dDescriptor(&convolution, 1, 1, 1, 1, 1, 1, CROSS_CORRELATION, FLOATS);
    cudnnSetConvolutionGroupCount(&convolution, 2);
    auto convolve = [&] {
        cudnnConvolutionForward(nullptr, &alpha, &x, nullptr, &w, nullptr, &convolution, 1, nullptr, 99, &alpha, &y, nullptr);
    };
    convolve();
    cudnnDestroyFilterDescriptor(&w);
    convolve();
}

// Two plans alike, and one from real numbers.
static void transform() {
    for (int input : {COMPLEX_FLOATS, COMPLEX_FLOATS, REAL_FLOATS}) {
        int plan;
        long long lengths[] = {32, 64};
        size_t bytes;
        cufftCreate(&plan);
        cufftXtMakePlanMany(plan, 2, lengths, nullptr, 1, 1, input, nullptr, 1, 1, COMPLEX_FLOATS, 3, &bytes, COMPLEX_FLOATS);
        cufftXtExec(plan, (void *)0xa, (void *)0xb, FORWARD);
    }
}

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

    by_descriptors();
    by_descriptors_of_cudnn();
    transform();

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
