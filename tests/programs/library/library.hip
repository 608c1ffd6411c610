// Stands in for rocBLAS, hipBLAS and RCCL: says so if it is not passed what the program passes.
#include "calls.h"

#include <hip/hip_runtime.h>

static const void *streams[2];
static int grouped, open_group, layouts;

__global__ void multiply(float *c) { c[threadIdx.x] += 1; }
__global__ void reduce(float *c) { c[threadIdx.x] += 2; }

static float *memory() {
    static float *memory = nullptr;
    if (!memory) (void)hipMalloc(&memory, 256);
    return memory;
}

extern "C" {
int rocblas_create_handle(void **handle) { return *handle = (void *)0x1234, 0; }

int rocblas_set_pointer_mode(void *, int) { return 0; }

int rocblas_sgemm(void *handle, int trans_a, int trans_b, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b,
                  int ldb, const float *beta, float *c, int ldc) {
    if (m < 0) return INVALID_SIZE;
    if (handle != (void *)0x1234 || trans_a != TRANSPOSE || trans_b != NONE || m != 32 || n != 64 || k != 48 || !alpha ||
        !beta || a != (float *)0xa000 || lda != 48 || b != (float *)0xb000 || ldb != 49 || c != (float *)0xc000 || ldc != 33)
        fail("rocblas_sgemm");
    multiply<<<1, 64>>>(memory());
    return 0;
}

// Calls another function of its own by its name, as libraries do.
int rocblas_dgemm(void *handle, int trans_a, int trans_b, int m, int n, int k, const double *, const double *a, int lda,
                  const double *b, int ldb, const double *, double *c, int ldc) {
    float one = 1, zero = 0;
    return rocblas_sgemm(handle, trans_a, trans_b, m, n, k, &one, (const float *)a, lda, (const float *)b, ldb, &zero, (float *)c, ldc);
}

int rocblas_saxpy(void *, int n, const float *, const float *, int, float *, int) {
    if (n == 7) throw n;
    return 0;
}

int hipblasSgemm(void *handle, int trans_a, int trans_b, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b,
                 int ldb, const float *beta, float *c, int ldc) {
    return rocblas_sgemm(handle, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

int ncclCommInitRank(void **comm, int nranks, UniqueId id, int rank) {
    for (int i = 0; i < 128; i++)
        if (id.internal[i] != (char)(3 * i)) fail("unique id");
    if (nranks != 4 || rank != 2) fail("ranks");
    return *comm = (void *)0x4000, 0;
}

int ncclCommInitAll(void **comm, int ndev, const int *) {
    for (int i = 0; i < ndev; i++) comm[i] = (void *)(0x5000 + 16L * i);
    return 0;
}

int ncclGroupStart() { return open_group++, 0; }

static void launch(const void *stream) { reduce<<<1, 64, 0, (hipStream_t)stream>>>(memory()); }

int ncclGroupEnd() {
    if (--open_group) return 0;
    for (; grouped > 0; grouped--) launch(streams[grouped - 1]);
    return 0;
}

int ncclAllReduce(const void *, void *, size_t count, int datatype, int op, void *, void *stream) {
    if (count != 1024 || datatype != 7 || op != 0) fail("ncclAllReduce");
    if (open_group)
        streams[grouped++] = stream;
    else
        launch(stream);
    return 0;
}

int hipblasLtMatmulDescCreate(void **product, int, int) { return *product = (void *)0x6000, 0; }
int hipblasLtMatmulDescSetAttribute(void *, int, const void *, size_t bytes) { return bytes == 0; }
int hipblasLtMatmulDescDestroy(void *) { return 0; }

// As an allocator does, which gives out first what was freed last.
int hipblasLtMatrixLayoutCreate(void **layout, int, unsigned long, unsigned long, long) {
    return *layout = (void *)(0x6100 + 16L * layouts++), 0;
}
int hipblasLtMatrixLayoutSetAttribute(void *, int, const void *, size_t bytes) { return bytes == 0; }
int hipblasLtMatrixLayoutDestroy(void *) { return layouts--, 0; }

int hipblasLtMatmul(void *, void *product, const void *, const void *, void *, const void *, void *, const void *, const void *, void *c_layout,
                    void *, void *d_layout, const void *, void *, size_t bytes, void *stream) {
    if (product != (void *)0x6000 || c_layout != d_layout || bytes != 77) fail("hipblasLtMatmul");
    multiply<<<1, 64, 0, (hipStream_t)stream>>>(memory());
    return 0;
}

int miopenSet4dTensorDescriptor(void *, int, int n, int, int, int) { return n < 0; }
int miopenSetTensorDescriptor(void *, int, int dimensions, const int *, const int *) { return dimensions < 0; }
int miopenDestroyTensorDescriptor(void *) { return 0; }
int miopenInitConvolutionDescriptor(void *, int, int, int, int, int, int, int) { return 0; }
int miopenSetConvolutionGroupCount(void *, int) { return 0; }

int miopenConvolutionForward(void *, const void *, void *, const void *, void *, const void *, void *, int, const void *, void *, void *, void *,
                             size_t bytes) {
    if (bytes != 88) fail("miopenConvolutionForward");
    reduce<<<1, 64>>>(memory());
    return 0;
}

int cudnnSetTensor4dDescriptor(void *, int, int, int, int, int, int) { return 0; }
int cudnnSetFilter4dDescriptor(void *, int, int, int, int, int, int) { return 0; }
int cudnnSetConvolution2dDescriptor(void *, int, int, int, int, int, int, int, int) { return 0; }
int cudnnSetConvolutionGroupCount(void *, int) { return 0; }
int cudnnDestroyFilterDescriptor(void *) { return 0; }

int cudnnConvolutionForward(void *, const void *, void *, const void *, void *, const void *, void *, int, void *, size_t bytes, const void *,
                            void *, void *) {
    if (bytes != 99) fail("cudnnConvolutionForward");
    reduce<<<1, 64>>>(memory());
    return 0;
}

int cufftCreate(int *plan) {
    static int plans;
    return *plan = ++plans, 0;
}

int cufftXtMakePlanMany(int plan, int rank, long long *n, long long *inembed, long long, long long, int input, long long *, long long, long long,
                        int output, long long batch, size_t *bytes, int execution) {
    if (plan < 1 || rank != 2 || n[0] != 32 || n[1] != 64 || inembed || output != COMPLEX_FLOATS || batch != 3 || execution != COMPLEX_FLOATS)
        fail("cufftXtMakePlanMany");
    *bytes = (size_t)input;
    return 0;
}

int cufftXtExec(int, void *, void *, int) {
    reduce<<<1, 64>>>(memory());
    return 0;
}

int rocsolver_sgesvdx(void *, int, int, int, int m, int n, float *, int lda, float vl, float vu, int il, int iu, int *, float *, float *,
                      int ldu, float *, int ldv, int *, int *info) {
    if (m != 5 || n != 6 || lda != 7 || vl != 0.5f || vu != 1.5f || il != 1 || iu != 2 || ldu != 8 || ldv != 9 || info != (int *)0xf0)
        fail("rocsolver_sgesvdx");
    return 0;
}
}
