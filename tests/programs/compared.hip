// Kernels whose results are compared with those of another build, in situations in which that is not simple. The other build is of the
// same source, compiled with -DCANDIDATE.
//
// Arguments: the situation, see `main`, and a file with the other build. Status 0 only if all results are right.
#include <hip/hip_runtime.h>
#ifndef CANDIDATE
#include "../../fixtures/programs/check.h"
#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <thread>
#include <unistd.h>
#include <vector>
#endif

struct Range {
    int *begin, *end;
};

// Each launch adds, so one that ran twice is seen.
__global__ void add(int *values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] += 1;
}

// What it changes lies between two addresses, of which the second may be that of another buffer, or nobody's.
__global__ void between(Range range) {
    for (int *value = range.begin + threadIdx.x; value < range.end; value += blockDim.x) *value += 1;
}
__global__ void until(int *begin, int *end) {
    for (int *value = begin + threadIdx.x; value < end; value += blockDim.x) *value += 1;
}

__global__ void both(int *a, int *b, int *nothing) {
    if (!nothing) a[threadIdx.x] += 1, b[64 + threadIdx.x] += 2;
}

__global__ void wait_for(volatile int *go) {
    while (!*go) __builtin_amdgcn_s_sleep(100);
}

#ifndef CANDIDATE
static const int N = 1024;
// A file with the other build.
static const char *other;

static void are(const int *values, int n, int value, const char *what) {
    for (int i = 0; i < n; i++) expect(values[i] == value, what, i);
}

static int *zeros(int n) {
    int *device;
    HIP(hipMalloc((void **)&device, n * sizeof(int)));
    HIP(hipMemset(device, 0, n * sizeof(int)));
    return device;
}

static void on_device(const int *device, int n, int value, const char *what) {
    std::vector<int> found(n);
    HIP(hipMemcpy(found.data(), device, n * sizeof(int), hipMemcpyDeviceToHost));
    are(found.data(), n, value, what);
}

static void ends() {
    std::vector<int *> buffers;
    for (int i = 0; i < 4; i++) buffers.push_back(zeros(N));
    for (int *buffer : buffers) {
        between<<<1, 64>>>(Range{buffer, buffer + N});
        until<<<1, 64>>>(buffer, buffer + N);
        HIP(hipDeviceSynchronize());
    }
    for (int *buffer : buffers) on_device(buffer, N, 2, "between");
}

// A thread of the program writes to the same allocation all the time, far behind what the kernel changes.
static void neighbour() {
    int n = 1 << 22, *shared;
    HIP(hipHostMalloc((void **)&shared, n * sizeof(int), 0));
    std::memset(shared, 0, n * sizeof(int));
    std::atomic<bool> done{false};
    std::thread writer([&] {
        for (volatile int round = 1; !done; round = round + 1)
            for (int i = n / 2; i < n; i += 4096) ((volatile int *)shared)[i] = round;
    });
    for (int i = 0; i < 5; i++) add<<<N / 64, 64>>>(shared, N);
    HIP(hipDeviceSynchronize());
    done = true;
    writer.join();
    are(shared, N, 5, "neighbour");
}

// More dispatches than can wait at a time.
static void burst() {
    int *values = zeros(N);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 60; i++) add<<<N / 64, 64>>>(values, N);
        HIP(hipDeviceSynchronize());
        // What has completed is noticed meanwhile.
        usleep(200000);
    }
    on_device(values, N, 180, "burst");
}

static void host() {
    int *pinned, *managed, *mapped;
    HIP(hipHostMalloc((void **)&pinned, N * sizeof(int), 0));
    HIP(hipMallocManaged((void **)&managed, N * sizeof(int), hipMemAttachGlobal));
    std::vector<int> registered(N);
    HIP(hipHostRegister(registered.data(), N * sizeof(int), hipHostRegisterMapped));
    HIP(hipHostGetDevicePointer((void **)&mapped, registered.data(), 0));
    std::memset(pinned, 0, N * sizeof(int));
    std::memset(managed, 0, N * sizeof(int));
    for (int i = 0; i < 3; i++) {
        add<<<N / 64, 64>>>(pinned, N);
        add<<<N / 64, 64>>>(managed, N);
        add<<<N / 64, 64>>>(mapped, N);
    }
    HIP(hipDeviceSynchronize());
    are(pinned, N, 3, "pinned");
    are(managed, N, 3, "managed");
    are(registered.data(), N, 3, "registered");
}

static void same() {
    int *values = zeros(N);
    for (int i = 0; i < 3; i++) both<<<1, 64>>>(values, values, nullptr);
    HIP(hipDeviceSynchronize());
    on_device(values, 64, 3, "same");
    on_device(values + 64, 64, 6, "same");
}

static void callback(hipStream_t, hipError_t, void *data) { *(int *)data += 1; }

// Streams that wait for each other and for the host.
static void waits() {
    int *values = zeros(N), called = 0;
    hipStream_t a, b;
    hipEvent_t in_a, in_b;
    HIP(hipStreamCreate(&a));
    HIP(hipStreamCreate(&b));
    HIP(hipEventCreate(&in_a));
    HIP(hipEventCreate(&in_b));
    for (int i = 0; i < 10; i++) {
        add<<<N / 64, 64, 0, a>>>(values, N);
        HIP(hipStreamAddCallback(a, callback, &called, 0));
        HIP(hipEventRecord(in_a, a));
        HIP(hipStreamWaitEvent(b, in_a, 0));
        add<<<N / 64, 64, 0, b>>>(values, N);
        HIP(hipEventRecord(in_b, b));
        HIP(hipStreamWaitEvent(a, in_b, 0));
    }
    HIP(hipDeviceSynchronize());
    expect(called == 10, "callbacks");
    on_device(values, N, 20, "waits");
}

// Recording pauses for the first launches.
static void paused() {
    auto stop = (void (*)())dlsym(RTLD_DEFAULT, "rpdstop"), start = (void (*)())dlsym(RTLD_DEFAULT, "rpdstart");
    int *values = zeros(N);
    for (int round = 0; round < 2; round++) {
        if (stop && round == 0) stop();
        for (int i = 0; i < 20; i++) add<<<N / 64, 64>>>(values, N);
        HIP(hipDeviceSynchronize());
        if (start && round == 0) start();
    }
    on_device(values, N, 40, "paused");
}

// Other kernels of the same names are loaded all the time.
static void loads() {
    int *values = zeros(N);
    for (int i = 0; i < 5; i++) {
        hipModule_t module;
        HIP(hipModuleLoad(&module, other));
        for (int launch = 0; launch < 3; launch++) add<<<N / 64, 64>>>(values, N);
        HIP(hipDeviceSynchronize());
    }
    on_device(values, N, 15, "loads");
}

// Each launch ends when the program has let it.
static void lets() {
    int *go;
    HIP(hipHostMalloc((void **)&go, 3 * 4096, 0));
    std::memset(go, 0, 3 * 4096);
    hipEvent_t ended[3];
    for (int i = 0; i < 3; i++) {
        wait_for<<<1, 1>>>(go + i * 1024);
        HIP(hipEventCreate(&ended[i]));
        HIP(hipEventRecord(ended[i], 0));
    }
    for (int i = 0; i < 3; i++) {
        // Copies of what it waits for are made meanwhile.
        usleep(2000000);
        __atomic_store_n(&go[i * 1024], 1, __ATOMIC_SEQ_CST);
        HIP(hipEventSynchronize(ended[i]));
    }
}

int main(int argc, char **argv) {
    other = argv[2];
    const struct {
        const char *name;
        void (*run)();
    } all[] = {
        {"ends", ends}, {"neighbour", neighbour}, {"burst", burst}, {"host", host}, {"same", same},
        {"waits", waits}, {"paused", paused}, {"loads", loads}, {"lets", lets},
    };
    for (auto &situation : all)
        if (argc > 1 && !std::strcmp(argv[1], situation.name)) return situation.run(), 0;
    return 2;
}
#endif
