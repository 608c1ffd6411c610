// A program with kernels of every kind that may be replaced. Each computes the same in every variant; compiled with
// -DVARIANT=2 they need other registers, LDS and scratch.
//
// Arguments: how often all kernels are launched (default 10), and what more is done: `graph`, `printf`, `two` GPUs, `wait`: before
// each round it says so and waits for the file round.N, or graph.N; `many`: four threads launch one kernel that often; `fork`: a child. Status 0 only if all results are right.
#ifndef VARIANT
#define VARIANT 1
#endif
#if VARIANT == 1
#include "../../fixtures/programs/check.h"
#include <cstring>
#include <dlfcn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>
#else
#include <hip/hip_runtime.h>
#endif

struct Window {
    int first, last;
    double weight;
};

#ifndef BOUNDS
#define BOUNDS 1024
#endif
#ifdef ENDLESS
#define ENDLESS_LOOP while (!threadIdx.y) __builtin_amdgcn_s_sleep(1);
#else
#define ENDLESS_LOOP
#endif
// A variable of the device that the program could set.
#ifdef OWN
__device__ int own;
#endif

// Work that no compiler removes, other for each variant.
static __device__ int detour(int value) {
#if VARIANT > 1
#ifndef ROOM
#define ROOM (64 * VARIANT)
#endif
    __shared__ volatile int room[ROOM];
    volatile int scratch[8 * VARIANT];
    room[threadIdx.x % 64] = value;
    __syncthreads();
    for (int i = 0; i < VARIANT; i++) scratch[(value + i) & 7] = room[threadIdx.x % 64];
    return scratch[value & 7] == room[threadIdx.x % 64] ? value : value + 1;
#else
    return value;
#endif
}

__global__ void __launch_bounds__(BOUNDS) add(const int *x, int *y, int n) {
#ifdef OWN
    n += own;
#endif
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[detour(i)];
}

template <typename T, int STEP, bool FORWARD>
__global__ void shifted_copy_with_a_long_name(const T *in, T *out, T more, int n) {
    int i = detour(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) out[i] = in[FORWARD ? (i + STEP) % n : (i + n - STEP) % n] + more;
}

__global__ void weigh(Window window, double *values, int n) {
    ENDLESS_LOOP
    int i = detour(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n && i >= window.first && i < window.last) values[i] *= window.weight;
}

// Needs dynamic LDS of four bytes for each work-item.
__global__ void reverse(int *values) {
    extern __shared__ int dynamic[];
    int own = detour(threadIdx.x);
    dynamic[own] = values[blockIdx.x * blockDim.x + own];
    __syncthreads();
    values[blockIdx.x * blockDim.x + own] = dynamic[blockDim.x - 1 - own];
}

// A name without parameters in it: another variant has others.
#ifdef PARAMETERS
extern "C" __global__ void plain(int *values, PARAMETERS) { values[threadIdx.x] += 3 * (more > 0); }
#else
extern "C" __global__ void plain(int *values, int more) { values[threadIdx.x] += detour(more); }
#endif

// Writes what the hidden arguments say.
__global__ void geometry(unsigned *out) {
    if (blockIdx.x + blockIdx.y + blockIdx.z + threadIdx.x + threadIdx.y + threadIdx.z) return;
    unsigned all[] = {gridDim.x, gridDim.y, gridDim.z, blockDim.x, blockDim.y, blockDim.z};
    for (int i = 0; i < 6; i++) out[i] = detour(all[i]);
}

#ifndef NO_PRINTF
__global__ void say(int number) {
    if (threadIdx.x == 0) printf("the kernel says %d\n", detour(number));
}
#endif

#if VARIANT == 1

static const int N = 4096;

template <typename T>
struct Buffer {
    std::vector<T> host;
    T *device;
    explicit Buffer(int n) : host(n) {
        for (int i = 0; i < n; i++) host[i] = T(i % 97);
        HIP(hipMalloc((void **)&device, n * sizeof(T)));
        HIP(hipMemcpy(device, host.data(), n * sizeof(T), hipMemcpyHostToDevice));
    }
    // The device's values are those of the host.
    void compare(const char *what) {
        std::vector<T> found(host.size());
        HIP(hipMemcpy(found.data(), device, found.size() * sizeof(T), hipMemcpyDeviceToHost));
        for (size_t i = 0; i < found.size(); i++) expect(found[i] == host[i], what, i);
        HIP(hipFree(device));
    }
};

static void round_of_all(hipStream_t stream, Buffer<int> &x, Buffer<int> &y, Buffer<double> &weights, Buffer<int> &turned) {
    add<<<N / 256, 256, 0, stream>>>(x.device, y.device, N);
    plain<<<1, 64, 0, stream>>>(y.device, 3);
    for (int i = 0; i < 64; i++) y.host[i] += 3;
    weigh<<<N / 64, 64, 0, stream>>>(Window{10, 20, 2.0}, weights.device, N);
    reverse<<<N / 128, 128, 128 * sizeof(int), stream>>>(turned.device);
    for (int i = 0; i < N; i++) y.host[i] += x.host[i];
    for (int i = 10; i < 20; i++) weights.host[i] *= 2;
    for (int b = 0; b < N; b += 128)
        for (int i = 0; i < 64; i++) std::swap(turned.host[b + i], turned.host[b + 127 - i]);
}

static void wait_for(const char *what, int round) {
    printf("%s %d.\n", what, round);
    fflush(stdout);
    char file[32];
    snprintf(file, sizeof file, "%s.%d", what, round);
    while (access(file, F_OK)) usleep(1000);
}

static void run(int device, int rounds, bool graph, bool wait) {
    HIP(hipSetDevice(device));
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    Buffer<int> x(N), y(N), turned(N);
    Buffer<double> weights(N);
    if (graph) {
        hipGraph_t captured;
        hipGraphExec_t launched;
        HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
        add<<<N / 256, 256, 0, stream>>>(x.device, y.device, N);
        HIP(hipStreamEndCapture(stream, &captured));
        HIP(hipGraphInstantiate(&launched, captured, nullptr, nullptr, 0));
        for (int round = 0; round < rounds; round++) {
            if (wait) wait_for("graph", round);
            HIP(hipGraphLaunch(launched, stream));
            HIP(hipStreamSynchronize(stream));
            for (int i = 0; i < N; i++) y.host[i] += x.host[i];
        }
        HIP(hipGraphExecDestroy(launched));
        HIP(hipGraphDestroy(captured));
    }
    for (int round = 0; round < rounds; round++) {
        if (wait) wait_for("round", round);
        round_of_all(stream, x, y, weights, turned);
        if (wait) HIP(hipStreamSynchronize(stream));
    }
    HIP(hipStreamSynchronize(stream));
    y.compare("add");
    weights.compare("weigh");
    turned.compare("reverse");

    Buffer<long> in(1000), out(1000);
    shifted_copy_with_a_long_name<long, 3, true><<<8, 128, 0, stream>>>(in.device, out.device, 5L, 1000);
    for (int i = 0; i < 1000; i++) out.host[i] = in.host[(i + 3) % 1000] + 5;
    HIP(hipStreamSynchronize(stream));
    in.compare("the input");
    out.compare("shifted copy");

    Buffer<unsigned> extents(6);
    geometry<<<dim3(3, 2, 5), dim3(8, 4, 2), 0, stream>>>(extents.device);
    unsigned expected[] = {3, 2, 5, 8, 4, 2};
    std::memcpy(extents.host.data(), expected, sizeof expected);
    HIP(hipStreamSynchronize(stream));
    extents.compare("geometry");
    HIP(hipStreamDestroy(stream));
}

// Launches one kernel that often, and looks at the result now and then.
static void run_many(int device, int launches) {
    HIP(hipSetDevice(device));
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    int *values, found[64];
    HIP(hipMalloc((void **)&values, sizeof found));
    HIP(hipMemset(values, 0, sizeof found));
    HIP(hipDeviceSynchronize());
    for (int done = 0; done < launches;) {
        for (int i = 0; i < 500 && done < launches; i++, done++) plain<<<1, 64, 0, stream>>>(values, 3);
        HIP(hipMemcpyAsync(found, values, sizeof found, hipMemcpyDeviceToHost, stream));
        HIP(hipStreamSynchronize(stream));
        for (int i = 0; i < 64; i++) expect(found[i] == 3 * done, "a value after many launches", i);
    }
    HIP(hipFree(values));
    HIP(hipStreamDestroy(stream));
}

int main(int argc, char **argv) {
    auto has = [&](const char *word) {
        for (int i = 1; i < argc; i++)
            if (!std::strcmp(argv[i], word)) return true;
        return false;
    };
    int rounds = argc > 1 && std::atoi(argv[1]) > 0 ? std::atoi(argv[1]) : 10;
    if (has("many")) {
        std::vector<std::thread> threads;
        for (int thread = 0; thread < 4; thread++) threads.emplace_back(run_many, has("two") ? thread % 2 : 0, rounds);
        for (auto &thread : threads) thread.join();
        return 0;
    }
    for (int device = 0; device < (has("two") ? 2 : 1); device++) run(device, rounds, has("graph"), has("wait"));
    if (has("fork")) {
        // The child marks. HIP 5.2.3 aborts in its exit handlers, so it has none.
        if (pid_t child = fork()) {
            int status = 0;
            waitpid(child, &status, 0);
            expect(status == 0, "the child's status", status);
        } else {
            auto mark = (void (*)(const char *, const char *, const char *))dlsym(RTLD_DEFAULT, "rpd_mark");
            if (mark) mark("", "child", "");
            _exit(0);
        }
    }
    if (has("printf")) {
        HIP(hipSetDevice(0));
        say<<<1, 64>>>(42);
        HIP(hipDeviceSynchronize());
    }
    return 0;
}

#else

template __global__ void shifted_copy_with_a_long_name<long, 3, true>(const long *, long *, long, int);

#endif
