// rocSOLVER: the factors of a matrix of 3 rows, which is its own lower triangle.
#include "../../../fixtures/programs/check.h"

#include <rocsolver/rocsolver.h>

#define ROCSOLVER(call) expect((call) == rocblas_status_success, #call)

int main() {
    rocblas_handle handle;
    ROCSOLVER(rocblas_create_handle(&handle));
    float matrix[] = {4, 2, 1, 0, 3, 1, 0, 0, 2}, *memory;
    int *pivots, *info, pivot[3], failed = 1;
    HIP(hipMalloc(&memory, sizeof matrix));
    HIP(hipMalloc(&pivots, sizeof pivot));
    HIP(hipMalloc(&info, sizeof failed));
    HIP(hipMemcpy(memory, matrix, sizeof matrix, hipMemcpyHostToDevice));
    ROCSOLVER(rocsolver_sgetrf(handle, 3, 3, memory, 3, pivots, info));
    HIP(hipMemcpy(matrix, memory, sizeof matrix, hipMemcpyDeviceToHost));
    HIP(hipMemcpy(pivot, pivots, sizeof pivot, hipMemcpyDeviceToHost));
    HIP(hipMemcpy(&failed, info, sizeof failed, hipMemcpyDeviceToHost));
    const float factors[] = {4, 0.5f, 0.25f, 0, 3, 1 / 3.0f, 0, 0, 2};
    for (int i = 0; i < 9; i++) expect(fabsf(matrix[i] - factors[i]) < 1e-6f, "the factors");
    for (int i = 0; i < 3; i++) expect(pivot[i] == i + 1, "the order of rows");
    expect(failed == 0, "info");
    ROCSOLVER(rocblas_destroy_handle(handle));
    puts("done");
    return 0;
}
