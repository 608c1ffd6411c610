// rocBLAS: the product of two matrices of small whole numbers.
//
// Status 0 only if every number is right.
#include "../../../fixtures/programs/check.h"

#include <rocblas/rocblas.h>

#include <cstdlib>
#include <unistd.h>
#include <vector>

enum { N = 64 };

#define ROCBLAS(call) expect((call) == rocblas_status_success, #call)

int main(int argc, char **argv) {
    rocblas_handle handle;
    ROCBLAS(rocblas_create_handle(&handle));
    std::vector<float> factor(N * N), product(N * N);
    for (int i = 0; i < N * N; i++) factor[i] = float(i % 7);
    float *from, *to, one = 1, zero = 0;
    HIP(hipMalloc(&from, N * N * sizeof(float)));
    HIP(hipMalloc(&to, N * N * sizeof(float)));
    HIP(hipMemcpy(from, factor.data(), N * N * sizeof(float), hipMemcpyHostToDevice));
    ROCBLAS(rocblas_sgemm(handle, rocblas_operation_none, rocblas_operation_none, N, N, N, &one, from, N, from, N, &zero, to, N));
    if (argc > 1) {
        sleep(atoi(argv[1]));
        ROCBLAS(rocblas_sgemm(handle, rocblas_operation_none, rocblas_operation_none, N, N, N, &one, from, N, from, N, &zero, to, N));
    }
    HIP(hipDeviceSynchronize());
    HIP(hipMemcpy(product.data(), to, N * N * sizeof(float), hipMemcpyDeviceToHost));
    for (int column = 0; column < N; column++) {
        for (int row = 0; row < N; row++) {
            float sum = 0;
            for (int k = 0; k < N; k++) sum += factor[k * N + row] * factor[column * N + k];
            expect(product[column * N + row] == sum, "number", column * N + row);
        }
    }
    ROCBLAS(rocblas_destroy_handle(handle));
    puts("the product is right");
    return 0;
}
