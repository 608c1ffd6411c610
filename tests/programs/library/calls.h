// Functions of GPU libraries, with as many parameters as the real ones, and what they are called with here.
#include <cstddef>
#include <cstdio>

struct UniqueId {
    char internal[128];
};

extern "C" {
int rocblas_create_handle(void **handle);
int rocblas_set_pointer_mode(void *handle, int mode);
int rocblas_sgemm(void *handle, int trans_a, int trans_b, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b,
                  int ldb, const float *beta, float *c, int ldc);
int rocblas_dgemm(void *handle, int trans_a, int trans_b, int m, int n, int k, const double *alpha, const double *a, int lda,
                  const double *b, int ldb, const double *beta, double *c, int ldc);
int rocblas_saxpy(void *handle, int n, const float *alpha, const float *x, int incx, float *y, int incy);
int hipblasSgemm(void *handle, int trans_a, int trans_b, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b,
                 int ldb, const float *beta, float *c, int ldc);
int ncclCommInitRank(void **comm, int nranks, UniqueId id, int rank);
int ncclCommInitAll(void **comm, int ndev, const int *devices);
int ncclGroupStart();
int ncclGroupEnd();
int ncclAllReduce(const void *send, void *receive, size_t count, int datatype, int op, void *comm, void *stream);
int hipblasLtMatmulDescCreate(void **product, int compute, int scale);
int hipblasLtMatmulDescSetAttribute(void *product, int attribute, const void *value, size_t bytes);
int hipblasLtMatmulDescDestroy(void *product);
int hipblasLtMatrixLayoutCreate(void **layout, int type, unsigned long rows, unsigned long cols, long ld);
int hipblasLtMatrixLayoutSetAttribute(void *layout, int attribute, const void *value, size_t bytes);
int hipblasLtMatrixLayoutDestroy(void *layout);
int hipblasLtMatmul(void *handle, void *product, const void *alpha, const void *a, void *a_layout, const void *b, void *b_layout, const void *beta,
                    const void *c, void *c_layout, void *d, void *d_layout, const void *algorithm, void *workspace, size_t bytes, void *stream);
int miopenSet4dTensorDescriptor(void *tensor, int type, int n, int c, int h, int w);
int miopenSetTensorDescriptor(void *tensor, int type, int dimensions, const int *lengths, const int *strides);
int miopenDestroyTensorDescriptor(void *tensor);
int miopenInitConvolutionDescriptor(void *convolution, int mode, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h, int dilation_w);
int miopenSetConvolutionGroupCount(void *convolution, int groups);
int miopenConvolutionForward(void *handle, const void *alpha, void *x_tensor, const void *x, void *w_tensor, const void *w, void *convolution,
                             int algorithm, const void *beta, void *y_tensor, void *y, void *workspace, size_t bytes);
int cudnnSetTensor4dDescriptor(void *tensor, int format, int type, int n, int c, int h, int w);
int cudnnSetFilter4dDescriptor(void *filter, int type, int format, int k, int c, int h, int w);
int cudnnSetConvolution2dDescriptor(void *convolution, int pad_h, int pad_w, int u, int v, int dilation_h, int dilation_w, int mode, int compute);
int cudnnSetConvolutionGroupCount(void *convolution, int groups);
int cudnnDestroyFilterDescriptor(void *filter);
int cudnnConvolutionForward(void *handle, const void *alpha, void *x_tensor, const void *x, void *w_filter, const void *w, void *convolution,
                            int algorithm, void *workspace, size_t bytes, const void *beta, void *y_tensor, void *y);
int cufftCreate(int *plan);
int cufftXtMakePlanMany(int plan, int rank, long long *n, long long *inembed, long long istride, long long idist, int input, long long *onembed,
                        long long ostride, long long odist, int output, long long batch, size_t *bytes, int execution);
int cufftXtExec(int plan, void *input, void *output, int direction);
int rocsolver_sgesvdx(void *handle, int left, int right, int range, int m, int n, float *a, int lda, float vl, float vu, int il, int iu,
                      int *nsv, float *s, float *u, int ldu, float *v, int ldv, int *ifail, int *info);
}

enum { NONE = 111, TRANSPOSE = 112, INVALID_SIZE = 4 };

// Of hipBLASLt: HIPBLAS_COMPUTE_32F, HIP_R_32F and HIP_R_16F, attributes of layouts and products.
enum { COMPUTE_32F = 2, R_32F = 0, R_16F = 2, BATCH_COUNT = 0, BATCH_OFFSET = 1, TRANS_A = 0, EPILOGUE = 2, WITH_BIAS = 4 };
// Of cuDNN.
enum { CHANNELS_FIRST = 0, FLOATS = 0, CROSS_CORRELATION = 1 };
// Of cuFFT: CUDA_R_32F and CUDA_C_32F, CUFFT_FORWARD.
enum { REAL_FLOATS = 0, COMPLEX_FLOATS = 4, FORWARD = -1 };
// Of MIOpen.
enum { FLOAT = 1, CONVOLUTION = 0 };

static void fail(const char *what) { printf("wrong: %s\n", what); }
