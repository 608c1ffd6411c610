// Makes each call that is recorded with its arguments, and prints it as the recorder should write it: `name|arguments`, where what a
// launch's or copy's own row holds is left out. Results are checked. CODE_OBJECT is that of fixtures/programs/aql_kernel.hip.
#include "call.h"

#include <hip/hip_ext.h>

__global__ void add(unsigned *to, unsigned value) {
    if (threadIdx.x == 0) atomicAdd(to, value);
}
__device__ unsigned symbol[16];

static void allocations() {
    void *p, *q;
    size_t pitch, free_bytes, total;
    CALL(hipMalloc, (&p, 4096), "ptr=%#llx | size=0x1000", at(p));
    CALL(hipFree, (p), "ptr=%#llx", at(p));
    CALL(hipHostMalloc, (&p, 8192, hipHostMallocMapped), "ptr=%#llx | size=0x2000 | flags=2", at(p));
    CALL(hipHostGetDevicePointer, (&q, p, 0), "devPtr=%#llx | hstPtr=%#llx | flags=0", at(q), at(p));
    CALL(hipHostFree, (p), "ptr=%#llx", at(p));
    CALL(hipMallocPitch, (&p, &pitch, 100, 10), "ptr=%#llx | pitch=%#zx | width=0x64 | height=0xa", at(p), pitch);
    CALL(hipFree, (p), "ptr=%#llx", at(p));
    CALL(hipExtMallocWithFlags, (&p, 4096, 0), "ptr=%#llx | sizeBytes=0x1000 | flags=0", at(p));
    CALL(hipFree, (p), "ptr=%#llx", at(p));
    CALL(hipMallocManaged, (&p, 4096, hipMemAttachGlobal), "dev_ptr=%#llx | size=0x1000 | flags=1", at(p));
    CALL(hipFree, (p), "ptr=%#llx", at(p));
    q = malloc(1 << 16);
    CALL(hipHostRegister, (q, 1 << 16, 0), "hostPtr=%#llx | sizeBytes=0x10000 | flags=0", at(q));
    CALL(hipHostUnregister, (q), "hostPtr=%#llx", at(q));
    free(q);
    CALL(hipMemGetInfo, (&free_bytes, &total), "free=%#zx | total=%#zx", free_bytes, total);
    CALL(hipFree, (nullptr), "ptr=0x0");
}

static void streams_and_events() {
    hipStream_t stream, flagged, high;
    hipEvent_t begin, end;
    float ms;
    CALL(hipStreamCreate, (&stream), "stream=%#llx", at(stream));
    CALL(hipStreamCreateWithFlags, (&flagged, hipStreamNonBlocking), "stream=%#llx | flags=1", at(flagged));
    CALL(hipStreamCreateWithPriority, (&high, hipStreamDefault, -1), "stream=%#llx | flags=0 | priority=-1", at(high));
    CALL(hipEventCreate, (&begin), "event=%#llx", at(begin));
    CALL(hipEventCreate, (&end), "event=%#llx", at(end));
    HIP(hipEventRecord(begin, stream));
    HIP(hipEventRecord(end, stream));
    CALL(hipStreamWaitEvent, (flagged, end, 0), "stream=%#llx | event=%#llx | flags=0", at(flagged), at(end));
    CALL(hipEventSynchronize, (end), "event=%#llx", at(end));
    CALL(hipEventElapsedTime, (&ms, begin, end), "ms=%s | start=%#llx | stop=%#llx", "*", at(begin), at(end));
    CALL(hipStreamSynchronize, (flagged), "stream=%#llx", at(flagged));
    CALL(hipStreamQuery, (flagged), "stream=%#llx", at(flagged));
    CALL(hipEventDestroy, (begin), "event=%#llx", at(begin));
    CALL(hipEventDestroy, (end), "event=%#llx", at(end));
    CALL(hipStreamDestroy, (high), "stream=%#llx", at(high));
    CALL(hipStreamDestroy, (flagged), "stream=%#llx", at(flagged));
    CALL(hipStreamDestroy, (stream), "stream=%#llx", at(stream));
    CALL(hipDeviceSynchronize, (), "%s", "");
}

static void sets_and_copies() {
    unsigned char *a, *b, *host = (unsigned char *)malloc(1 << 16);
    hipStream_t stream;
    CALL(hipMalloc, ((void **)&a, 1 << 16), "ptr=%#llx | size=0x10000", at(a));
    CALL(hipMalloc, ((void **)&b, 1 << 16), "ptr=%#llx | size=0x10000", at(b));
    CALL(hipStreamCreate, (&stream), "stream=%#llx", at(stream));
    CALL(hipMemset, (a, 7, 4096), "dst=%#llx | value=7 | sizeBytes=0x1000", at(a));
    CALL(hipMemsetAsync, (a, 8, 4096, stream), "dst=%#llx | value=8 | sizeBytes=0x1000 | stream=%#llx", at(a), at(stream));
    CALL(hipMemsetD8, (a, 9, 16), "dest=%#llx | value=9 | count=0x10", at(a));
    CALL(hipMemsetD16, (a, 9, 16), "dest=%#llx | value=9 | count=0x10", at(a));
    CALL(hipMemsetD32, (a, 9, 16), "dest=%#llx | value=9 | count=0x10", at(a));
    CALL(hipMemset2D, (a, 256, 1, 64, 4), "dst=%#llx | pitch=0x100 | value=1 | width=0x40 | height=0x4", at(a));
    CALL(hipMemcpy, (a, host, 4096, hipMemcpyHostToDevice), "%s", "");
    CALL(hipMemcpyAsync, (b, a, 4096, hipMemcpyDeviceToDevice, stream), "%s", "");
    CALL(hipMemcpyWithStream, (host, b, 4096, hipMemcpyDeviceToHost, stream), "%s", "");
    CALL(hipMemcpyHtoD, (a, host, 1024), "%s", "");
    CALL(hipMemcpyDtoD, (b, a, 1024), "%s", "");
    CALL(hipMemcpyDtoH, (host, b, 1024), "%s", "");
    CALL(hipMemcpy2D, (a, 256, host, 128, 64, 8, hipMemcpyHostToDevice), "dpitch=0x100 | spitch=0x80");
    CALL(hipMemcpyToSymbol, (symbol, host, 64, 0, hipMemcpyHostToDevice), "offset=0x0");
    CALL(hipMemcpyFromSymbol, (host, symbol, 64, 0, hipMemcpyDeviceToHost), "offset=0x0");
    CALL(hipStreamSynchronize, (stream), "stream=%#llx", at(stream));
    CALL(hipStreamDestroy, (stream), "stream=%#llx", at(stream));
    CALL(hipFree, (a), "ptr=%#llx", at(a));
    CALL(hipFree, (b), "ptr=%#llx", at(b));
    free(host);
}

static void launches(const char *code_object) {
    unsigned *sum, host;
    hipModule_t module;
    hipFunction_t function;
    CALL(hipMalloc, ((void **)&sum, 4096), "ptr=%#llx | size=0x1000", at(sum));
    CALL(hipMemset, (sum, 0, 4096), "dst=%#llx | value=0 | sizeBytes=0x1000", at(sum));
    add<<<dim3(3, 2), dim3(64), 256>>>(sum, 1);
    printf("hipLaunchKernel|\n");
    hipExtLaunchKernelGGL(add, dim3(2), dim3(32), 0, 0, nullptr, nullptr, 0, sum, 1u);
    printf("hipExtLaunchKernel|startEvent=0x0 | stopEvent=0x0 | flags=0\n");
    CALL(hipModuleLoad, (&module, code_object), "module=%#llx | fname=%s", at(module), code_object);
    HIP(hipModuleGetFunction(&function, module, "aql_count"));
    void *arguments[] = {&sum};
    CALL(hipModuleLaunchKernel, (function, 5, 1, 1, 64, 1, 1, 0, 0, arguments, nullptr), "%s", "");
    CALL(hipDeviceSynchronize, (), "%s", "");
    CALL(hipMemcpy, (&host, sum, sizeof host, hipMemcpyDeviceToHost), "%s", "");
    expect(host == 6 + 2 + 5 * 64, "sum of the launches");
    CALL(hipModuleUnload, (module), "module=%#llx", at(module));
    CALL(hipFree, (sum), "ptr=%#llx", at(sum));
}

static void graphs() {
    unsigned *sum, host = 0;
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t executable;
    CALL(hipMalloc, ((void **)&sum, 4096), "ptr=%#llx | size=0x1000", at(sum));
    CALL(hipMemset, (sum, 0, 4096), "dst=%#llx | value=0 | sizeBytes=0x1000", at(sum));
    CALL(hipStreamCreate, (&stream), "stream=%#llx", at(stream));
    CALL(hipStreamBeginCapture, (stream, hipStreamCaptureModeRelaxed), "stream = %#llx | mode = 2", at(stream));
    add<<<dim3(7), dim3(64), 0, stream>>>(sum, 1);
    printf("hipLaunchKernel|\n");
    CALL(hipStreamEndCapture, (stream, &graph), "stream = %#llx | graph = %#llx", at(stream), at(graph));
    CALL(hipGraphInstantiate, (&executable, graph, nullptr, nullptr, 0), "graphExec = %#llx | graph = %#llx",
         at(executable), at(graph));
    CALL(hipGraphLaunch, (executable, stream), "graphExec = %#llx | stream = %#llx", at(executable), at(stream));
    CALL(hipStreamSynchronize, (stream), "stream=%#llx", at(stream));
    CALL(hipMemcpy, (&host, sum, sizeof host, hipMemcpyDeviceToHost), "%s", "");
    expect(host == 7, "sum of the graph");
    CALL(hipGraphExecDestroy, (executable), "%s=%#llx", "*", at(executable));
    CALL(hipGraphDestroy, (graph), "graph=%#llx", at(graph));
    CALL(hipStreamDestroy, (stream), "stream=%#llx", at(stream));
    CALL(hipFree, (sum), "ptr=%#llx", at(sum));
}

static void peers() {
    int can;
    unsigned char *here, *there;
    CALL(hipDeviceCanAccessPeer, (&can, 0, 1), "canAccessPeer=%d | deviceId=0 | peerDeviceId=1", can);
    CALL(hipDeviceEnablePeerAccess, (1, 0), "peerDeviceId=1 | flags=0");
    CALL(hipMalloc, ((void **)&here, 4096), "ptr=%#llx | size=0x1000", at(here));
    HIP(hipSetDevice(1));
    CALL(hipMalloc, ((void **)&there, 4096), "ptr=%#llx | size=0x1000", at(there));
    HIP(hipSetDevice(0));
    CALL(hipMemcpyPeer, (there, 1, here, 0, 4096), "%s", "");
    CALL(hipDeviceDisablePeerAccess, (1), "peerDeviceId=1");
    CALL(hipFree, (here), "ptr=%#llx", at(here));
    CALL(hipFree, (there), "ptr=%#llx", at(there));
}

int main(int count, char **arguments) {
    int devices;
    expect(count == 2, "usage: calls CODE_OBJECT");
    HIP(hipGetDeviceCount(&devices));
    allocations();
    streams_and_events();
    sets_and_copies();
    launches(arguments[1]);
    graphs();
    if (devices > 1) peers();
}
