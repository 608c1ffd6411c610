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
int rocsolver_sgesvdx(void *handle, int left, int right, int range, int m, int n, float *a, int lda, float vl, float vu, int il, int iu,
                      int *nsv, float *s, float *u, int ldu, float *v, int ldv, int *ifail, int *info);
}

enum { NONE = 111, TRANSPOSE = 112, INVALID_SIZE = 4 };

static void fail(const char *what) { printf("wrong: %s\n", what); }
