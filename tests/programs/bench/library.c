/* Stands in for a library of rocBLAS's and hipBLASLt's functions that does nothing. */
#include <stddef.h>

int rocblas_saxpy(void *handle, int n, const float *alpha, const float *x, int incx, float *y, int incy) {
    return !handle + !n + !alpha + !x + !incx + !y + !incy == 0 ? 0 : 1;
}

int hipblasLtMatmulDescCreate(void **product, int compute, int scale) {
    (void)compute, (void)scale;
    *product = (void *)0x6000;
    return 0;
}

int hipblasLtMatrixLayoutCreate(void **layout, int type, unsigned long rows, unsigned long columns, long leading) {
    (void)type, (void)columns, (void)leading;
    *layout = (void *)rows;
    return 0;
}

int hipblasLtMatmul(void *handle, void *product, const void *alpha, const void *a, void *a_layout, const void *b, void *b_layout, const void *beta,
                    const void *c, void *c_layout, void *d, void *d_layout, const void *algorithm, void *workspace, size_t bytes, void *stream) {
    (void)handle, (void)a, (void)b, (void)c, (void)d, (void)algorithm, (void)workspace, (void)bytes, (void)stream;
    return !product + !alpha + !beta + !a_layout + !b_layout + !c_layout + !d_layout == 0 ? 0 : 1;
}
