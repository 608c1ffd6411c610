// rocSPARSE: a sparse matrix of 3 rows times a vector, by rows and by blocks of one number.
#include "../../../fixtures/programs/check.h"

#include <rocsparse/rocsparse.h>

#define ROCSPARSE(call) expect((call) == rocsparse_status_success, #call)

// From ROCm 6 on it is passed what an analysis has found out.
#if ROCSPARSE_VERSION_MAJOR >= 3
#define INFORMATION nullptr,
#else
#define INFORMATION
#endif

int main() {
    rocsparse_handle handle;
    rocsparse_mat_descr matrix;
    ROCSPARSE(rocsparse_create_handle(&handle));
    ROCSPARSE(rocsparse_create_mat_descr(&matrix));
    const int rows[] = {0, 1, 2, 3}, columns[] = {0, 1, 2};
    const float values[] = {2, 3, 4}, vector[] = {1, 1, 1}, one = 1, zero = 0;
    int *row_memory, *column_memory;
    float *value_memory, *from, *to;
    HIP(hipMalloc(&row_memory, sizeof rows));
    HIP(hipMalloc(&column_memory, sizeof columns));
    for (float **memory : {&value_memory, &from, &to}) HIP(hipMalloc(memory, sizeof values));
    HIP(hipMemcpy(row_memory, rows, sizeof rows, hipMemcpyHostToDevice));
    HIP(hipMemcpy(column_memory, columns, sizeof columns, hipMemcpyHostToDevice));
    HIP(hipMemcpy(value_memory, values, sizeof values, hipMemcpyHostToDevice));
    HIP(hipMemcpy(from, vector, sizeof vector, hipMemcpyHostToDevice));
    ROCSPARSE(rocsparse_scsrmv(handle, rocsparse_operation_none, 3, 3, 3, &one, matrix, value_memory, row_memory, column_memory, nullptr, from,
                               &zero, to));
    ROCSPARSE(rocsparse_sbsrmv(handle, rocsparse_direction_row, rocsparse_operation_none, 3, 3, 3, &one, matrix, value_memory, row_memory,
                               column_memory, 1, INFORMATION from, &one, to));
    HIP(hipDeviceSynchronize());
    ROCSPARSE(rocsparse_destroy_mat_descr(matrix));
    ROCSPARSE(rocsparse_destroy_handle(handle));
    puts("done");
    return 0;
}
