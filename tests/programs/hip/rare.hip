// Launches, allocations and copies that few programs make, each printed as the recorder should write it. CODE_OBJECT is that of
// fixtures/programs/aql_kernel.hip. Results are checked but for those of two kinds that the software GPU cannot do: it has no cooperative queues, so
// such launches fail, and it does not execute instructions on images, so copies to and from arrays take their time and move nothing.
#include "call.h"

#include <hip/hip_ext.h>

__global__ void add(unsigned *to, unsigned value) {
    if (threadIdx.x == 0) atomicAdd(to, value);
}

static void launches(const char *code_object) {
    unsigned *sum, host;
    hipModule_t module;
    hipFunction_t function;
    CALL(hipMalloc, ((void **)&sum, 4096), "ptr=%#llx | size=0x1000", at(sum));
    CALL(hipMemset, (sum, 0, 4096), "dst=%#llx | value=0 | sizeBytes=0x1000", at(sum));
    CALL(hipModuleLoad, (&module, code_object), "module=%#llx | fname=%s", at(module), code_object);
    HIP(hipModuleGetFunction(&function, module, "aql_count"));
    void *arguments[] = {&sum};
    // Sizes in work-items, not in workgroups.
    CALL(hipExtModuleLaunchKernel, (function, 192, 1, 1, 64, 1, 1, 0, 0, arguments, nullptr, nullptr, nullptr, 0),
         "startEvent=0x0 | stopEvent=0x0 | flags=0");
    CALL(hipHccModuleLaunchKernel, (function, 320, 1, 1, 64, 1, 1, 0, 0, arguments, nullptr, nullptr, nullptr),
         "startEvent=0x0 | stopEvent=0x0");
    unsigned one = 1, expected = 192 + 320 + 5;
    void *values[] = {&sum, &one};
    if (hipLaunchCooperativeKernel((void *)add, dim3(7), dim3(64), values, 0, 0) == hipSuccess) expected += 7;
    printf("hipLaunchCooperativeKernel|\n");
    hipLaunchParams launch = {};
    launch.func = (void *)add;
    launch.gridDim = dim3(5);
    launch.blockDim = dim3(64);
    launch.args = values;
    HIP(hipStreamCreate(&launch.stream));
    printf("hipStreamCreate|stream=%#llx\n", at(launch.stream));
    if (hipLaunchCooperativeKernelMultiDevice(&launch, 1, 0) == hipSuccess) expected += 5;
    printf("hipLaunchCooperativeKernelMultiDevice|numDevices=1 | flags=0\n");
    CALL(hipExtLaunchMultiKernelMultiDevice, (&launch, 1, 0), "numDevices=1 | flags=0");
    CALL(hipDeviceSynchronize, (), "%s", "");
    CALL(hipStreamDestroy, (launch.stream), "stream=%#llx", at(launch.stream));
    CALL(hipMemcpy, (&host, sum, sizeof host, hipMemcpyDeviceToHost), "%s", "");
    expect(host == expected, "sum of the launches");
    CALL(hipModuleUnload, (module), "module=%#llx", at(module));
    CALL(hipFree, (sum), "ptr=%#llx", at(sum));
}

static void arrays() {
    unsigned host[64] = {};
    hipChannelFormatDesc format = hipCreateChannelDesc(32, 0, 0, 0, hipChannelFormatKindUnsigned);
    hipArray *array;
    hipStream_t stream;
    CALL(hipStreamCreate, (&stream), "stream=%#llx", at(stream));
    CALL(hipMallocArray, (&array, &format, 16, 4, 0), "array=%#llx | desc=%#llx | width=0x10 | height=0x4 | flags=0",
         at(array), at(&format));
    CALL(hipMemcpy2DToArray, (array, 0, 0, host, 64, 64, 4, hipMemcpyHostToDevice), "wOffset=0x0 | hOffset=0x0 | spitch=0x40");
    CALL(hipMemcpy2DFromArray, (host, 64, array, 0, 0, 64, 4, hipMemcpyDeviceToHost), "dpitch=0x40 | wOffset=0x0 | hOffset=0x0");
    CALL(hipMemcpyToArray, (array, 0, 0, host, 64, hipMemcpyHostToDevice), "wOffset=0x0 | hOffset=0x0");
    CALL(hipMemcpyFromArray, (host, array, 0, 0, 64, hipMemcpyDeviceToHost), "wOffset=0x0 | hOffset=0x0");
    CALL(hipMemcpyHtoA, (array, 0, host, 64), "dstOffset=0x0");
    CALL(hipMemcpyAtoH, (host, array, 0, 64), "srcOffset=0x0");
    CALL(hipMemcpy2DToArrayAsync, (array, 0, 0, host, 64, 64, 4, hipMemcpyHostToDevice, stream),
         "wOffset=0x0 | hOffset=0x0 | spitch=0x40");
    CALL(hipMemcpy2DFromArrayAsync, (host, 64, array, 0, 0, 64, 4, hipMemcpyDeviceToHost, stream),
         "dpitch=0x40 | wOffset=0x0 | hOffset=0x0");
    CALL(hipStreamSynchronize, (stream), "stream=%#llx", at(stream));
    CALL(hipFreeArray, (array), "array=%#llx", at(array));
    CALL(hipMalloc3DArray, (&array, &format, make_hipExtent(8, 8, 2), 0), "array=%#llx | %s | flags=0", at(array), "*");
    CALL(hipFreeArray, (array), "array=%#llx", at(array));
    CALL(hipStreamDestroy, (stream), "stream=%#llx", at(stream));
}

static void allocations() {
    void *p;
    unsigned host = 0;
    hipStream_t stream;
    CALL(hipStreamCreate, (&stream), "stream=%#llx", at(stream));
    CALL(hipMallocAsync, (&p, 4096, stream), "dev_ptr=%#llx | size=0x1000 | stream=%#llx", at(p), at(stream));
    CALL(hipMemsetAsync, (p, 1, 4096, stream), "dst=%#llx | value=1 | sizeBytes=0x1000 | stream=%#llx", at(p), at(stream));
    CALL(hipMemcpyWithStream, (&host, p, sizeof host, hipMemcpyDeviceToHost, stream), "%s", "");
    CALL(hipFreeAsync, (p, stream), "dev_ptr=%#llx | stream=%#llx", at(p), at(stream));
    // Once memory has been given back so, HIP 5.2 waits for ever when it is to destroy a stream: this one stays, and comes last.
    CALL(hipStreamSynchronize, (stream), "stream=%#llx", at(stream));
    expect(host == 0x01010101, "memory of a stream");
}

int main(int count, char **arguments) {
    expect(count == 2, "usage: rare CODE_OBJECT");
    launches(arguments[1]);
    arrays();
    allocations();
}
