// Ten kernels, for which the program waits one by one (`loop`) or once at the end (`end`): rocmProfileData's two examples for Julia.
#include <hip/hip_runtime.h>
#include <string.h>

__global__ void work(float *values) {
    float value = threadIdx.x;
    for (int i = 0; i < 2000; i++)
        value = value * 0.5f + 1;
    values[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

int main(int count, char **names) {
    const bool each = count > 1 && !strcmp(names[1], "loop");
    float *values;
    if (hipMalloc((void **)&values, 64 * 64 * sizeof *values) != hipSuccess)
        return 1;
    for (int i = 0; i < 10; i++) {
        hipLaunchKernelGGL(work, dim3(64), dim3(64), 0, 0, values);
        if (each && hipDeviceSynchronize() != hipSuccess)
            return 2;
    }
    if (hipDeviceSynchronize() != hipSuccess)
        return 3;
    return hipFree(values) != hipSuccess;
}
