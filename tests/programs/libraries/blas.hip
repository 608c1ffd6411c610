// rocBLAS: products of matrices and vectors of known shapes, as fixtures/library-logs has them in rocBLAS's own words.
#include "../../../fixtures/programs/check.h"

#include <rocblas/rocblas.h>

#include <vector>

#define ROCBLAS(call) expect((call) == rocblas_status_success, #call)

int main() {
    rocblas_handle handle;
    ROCBLAS(rocblas_create_handle(&handle));
    const size_t bytes = 4 * 64 * 64 * sizeof(float);
    float *a, *b, *c;
    for (float **memory : {&a, &b, &c}) HIP(hipMalloc(memory, bytes));
    std::vector<float> numbers(bytes / sizeof(float));
    for (size_t i = 0; i < numbers.size(); i++) numbers[i] = float(i % 7);
    HIP(hipMemcpy(a, numbers.data(), bytes, hipMemcpyHostToDevice));
    HIP(hipMemcpy(b, numbers.data(), bytes, hipMemcpyHostToDevice));

    const auto none = rocblas_operation_none, transposed = rocblas_operation_transpose;
    const auto f32 = rocblas_datatype_f32_r;
    const float one = 1, zero = 0, two_and_a_half = 2.5f;
    const double double_one = 1, double_zero = 0;
    float sum;
    for (int i = 0; i < 3; i++) ROCBLAS(rocblas_sgemm(handle, none, none, 64, 64, 64, &one, a, 64, b, 64, &zero, c, 64));
    ROCBLAS(rocblas_sgemm(handle, transposed, none, 32, 64, 48, &two_and_a_half, a, 48, b, 48, &one, c, 32));
    ROCBLAS(rocblas_dgemm(handle, none, none, 16, 16, 16, &double_one, (double *)a, 16, (double *)b, 16, &double_zero, (double *)c, 16));
    ROCBLAS(rocblas_sgemm_strided_batched(handle, none, none, 16, 16, 16, &one, a, 16, 256, b, 16, 256, &zero, c, 16, 256, 4));
    ROCBLAS(rocblas_gemm_ex(handle, none, none, 32, 32, 32, &one, a, f32, 32, b, f32, 32, &zero, c, f32, 32, c, f32, 32, f32,
                            rocblas_gemm_algo_standard, 0, 0));
    ROCBLAS(rocblas_saxpy(handle, 1000, &two_and_a_half, a, 1, b, 1));
    ROCBLAS(rocblas_sscal(handle, 1000, &two_and_a_half, a, 1));
    ROCBLAS(rocblas_sdot(handle, 1000, a, 1, b, 1, &sum));
    ROCBLAS(rocblas_sgemv(handle, none, 64, 64, &one, a, 64, b, 1, &zero, c, 1));
    HIP(hipDeviceSynchronize());
    ROCBLAS(rocblas_destroy_handle(handle));
    puts("done");
    return 0;
}
