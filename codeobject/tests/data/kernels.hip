// Kernels whose facts differ in every field that a code object states.
#include <hip/hip_runtime.h>

// A plain C name, arguments of odd size, so that the arguments' length is no multiple of 8.
extern "C" __global__ void plain(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] + 1;
}

// Static LDS, a limit on the work-group, a mangled template name.
template <typename T, int N> __global__ void __launch_bounds__(N) reversed(T *out, const T *in) {
    __shared__ T tile[N];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[N - 1 - threadIdx.x];
}
template __global__ void reversed<double, 128>(double *, const double *);

// More live values than registers: scratch and spills.
__global__ void __attribute__((amdgpu_num_vgpr(24))) spilling(float *data) {
    float v[48];
    for (int i = 0; i < 48; i++) v[i] = data[i * 64 + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 48; i++) data[i * 64 + threadIdx.x] = v[(i * 7) % 48] * v[i];
}

// A call through a pointer: a stack whose depth the compiler does not know.
__global__ void indirect(int (*function)(int), int *data) { data[0] = function(data[0]); }

#if defined(__gfx908__) || defined(__gfx90a__)
// Accumulation registers.
typedef float floatx32 __attribute__((ext_vector_type(32)));
__global__ void accumulate(float *out, float a, float b) {
    floatx32 sum = {0};
    asm volatile("v_accvgpr_write_b32 a15, %0" : : "v"(a) : "a15");
    sum = __builtin_amdgcn_mfma_f32_32x32x1f32(a, b, sum, 0, 0, 0);
    for (int i = 0; i < 32; i++) out[i * 64 + threadIdx.x] = sum[i];
}
#endif

__global__ void nothing() {}
