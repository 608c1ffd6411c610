// Kernels of every shape of control flow. Arguments: what to run, in that order; several times each with `NAME=COUNT`. Prints a sum of each
// kernel's results; status 0 only if all of them are as the processor computes them. Between them, what happens to programs:
//   graph=COUNT        replays a graph of collatz so often
//   grids=COUNT        has so many grids of collatz in flight at once
//   busy=COUNT         launches collatz so often, and always has some of them in flight
//   pause=SECONDS      sleeps
//   module=FILE        loads the code object, runs its kernel aql_count, and unloads it, three times
//   reset              hipDeviceReset
//   fork               a child that ends at once, and one that does something else first
//   stop, start        of recording
//   leave, exit, quick, kill  ends with kernels in flight: by _exit, exit, quick_exit, SIGKILL
#include <hip/hip_runtime.h>

#include "../../fixtures/programs/check.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define ITEMS 192
#define GROUPS 3
#define ALL (ITEMS * GROUPS)

#define KERNEL extern "C" __global__ void

KERNEL straight(int *out) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    out[me] = me * 3;
}

// Lanes leave the loop one by one.
KERNEL collatz(int *out) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    int number = me + 1, count = 0;
    for (; number != 1; count++) number = number % 2 ? 3 * number + 1 : number / 2;
    out[me] = count;
}

KERNEL choose(int *out) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    int value = me;
    switch (me % 7) {
    case 0: value *= 5; break;
    case 1: value -= 11; break;
    case 2: for (int turn = 0; turn < me % 5; turn++) value ^= turn << turn; break;
    case 3: value = ~value; break;
    case 4: value = value << 3 | 1; break;
    default: value += 1000;
    }
    out[me] = value;
}

// LDS, static and dynamic, with barriers.
KERNEL reduce(int *out) {
    extern __shared__ int added[];
    __shared__ int all[ITEMS];
    int me = threadIdx.x;
    added[me] = me;
    all[me] = blockIdx.x * blockDim.x + me;
    __syncthreads();
    for (int half = 128; half; half /= 2) {
        if (me < half && me + half < ITEMS) all[me] += all[me + half];
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + me] = all[0] + added[ITEMS - 1 - me];
}

__device__ __attribute__((noinline)) int twice(int value) {
    if (value % 3 == 0) return value * 2;
    return value * 2 + 1;
}

__device__ __attribute__((noinline)) int deep(int value, int depth) {
    return depth ? deep(twice(value) % 1009, depth - 1) : value;
}

KERNEL calls(int *out) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    out[me] = deep(me, 1 + me % 3) + twice(me);
}

__device__ int plus(int value, int) { return value + 1; }
__device__ int times(int value, int turn) { return value * (turn + 2); }
typedef int (*Function)(int, int);
__device__ Function functions[2] = {plus, times};

// Functions that only data name.
KERNEL pointers(int *out) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    int value = me;
    for (int turn = 0; turn < 4; turn++) value = functions[turn % 2](value, turn);
    out[me] = value;
}

// An array in scratch memory.
KERNEL scratch(int *out) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    int own[32];
    for (int place = 0; place < 32; place++) own[place] = me + place * place;
    int value = 0;
    for (int turn = 0; turn < 10; turn++) value += own[(me * 7 + turn * 5) % 32];
    out[me] = value;
}

// A workgroup of 16 waves.
KERNEL large(int *out) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    int value = me;
    for (int turn = me % 4; turn; turn--) value += turn;
    out[me] = value;
}

// A workgroup of 16 waves that has all vector registers of its compute unit.
extern "C" __global__ void __launch_bounds__(1024) crowded(int *out) {
    asm volatile("v_mov_b32 v63, 0" ::: "v63");
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    out[me] = me ^ 5;
}

// Ends when the host says so.
KERNEL held(int *go_on) {
    while (__hip_atomic_load(go_on, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) == 0) __builtin_amdgcn_s_sleep(1);
}

KERNEL nothing(int *out) {
    if (out == nullptr) __builtin_trap();
}

static int expected(const char *name, int me) {
    if (!strcmp(name, "straight")) return me * 3;
    if (!strcmp(name, "collatz")) {
        int number = me + 1, count = 0;
        for (; number != 1; count++) number = number % 2 ? 3 * number + 1 : number / 2;
        return count;
    }
    if (!strcmp(name, "choose")) {
        int value = me;
        switch (me % 7) {
        case 0: return value * 5;
        case 1: return value - 11;
        case 2: for (int turn = 0; turn < me % 5; turn++) value ^= turn << turn; return value;
        case 3: return ~value;
        case 4: return value << 3 | 1;
        }
        return value + 1000;
    }
    if (!strcmp(name, "reduce")) {
        int first = me / ITEMS * ITEMS;
        return ITEMS * first + ITEMS * (ITEMS - 1) / 2 + ITEMS - 1 - me % ITEMS;
    }
    auto two = [](int value) { return value % 3 == 0 ? value * 2 : value * 2 + 1; };
    if (!strcmp(name, "calls")) {
        int value = me;
        for (int depth = 1 + me % 3; depth; depth--) value = two(value) % 1009;
        return value + two(me);
    }
    if (!strcmp(name, "pointers")) return ((me + 1) * 3 + 1) * 5;
    if (!strcmp(name, "scratch")) {
        int value = 0;
        for (int turn = 0; turn < 10; turn++) {
            int place = (me * 7 + turn * 5) % 32;
            value += me + place * place;
        }
        return value;
    }
    if (!strcmp(name, "large")) {
        int value = me;
        for (int turn = me % 4; turn; turn--) value += turn;
        return value;
    }
    if (!strcmp(name, "crowded")) return me ^ 5;
    return -1;
}

static void replay(int count) {
    int *out;
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t ready;
    HIP(hipMalloc(&out, ALL * sizeof(int)));
    HIP(hipStreamCreate(&stream));
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    collatz<<<GROUPS, ITEMS, 0, stream>>>(out);
    HIP(hipStreamEndCapture(stream, &graph));
    HIP(hipGraphInstantiate(&ready, graph, nullptr, nullptr, 0));
    for (int turn = 0; turn < count; turn++) HIP(hipGraphLaunch(ready, stream));
    HIP(hipStreamSynchronize(stream));
    std::vector<int> host(ALL);
    HIP(hipMemcpy(host.data(), out, ALL * sizeof(int), hipMemcpyDeviceToHost));
    for (int me = 0; me < ALL; me++) {
        if (host[me] != expected("collatz", me)) exit(1);
    }
    HIP(hipGraphExecDestroy(ready));
    HIP(hipGraphDestroy(graph));
    HIP(hipStreamDestroy(stream));
    HIP(hipFree(out));
}

// None of the grids ends before all are launched.
static void launch_grids(int count) {
    int *out, *go_on;
    HIP(hipMalloc(&out, count * ITEMS * sizeof(int)));
    HIP(hipHostMalloc(&go_on, sizeof(int)));
    *go_on = 0;
    held<<<1, 1>>>(go_on);
    for (int groups = 1; groups <= count; groups++) collatz<<<groups, ITEMS>>>(out);
    *(volatile int *)go_on = 1;
    HIP(hipDeviceSynchronize());
    std::vector<int> host(count * ITEMS);
    HIP(hipMemcpy(host.data(), out, host.size() * sizeof(int), hipMemcpyDeviceToHost));
    for (size_t me = 0; me < host.size(); me++) {
        if (host[me] != expected("collatz", me)) exit(1);
    }
    HIP(hipHostFree(go_on));
    HIP(hipFree(out));
}

static void keep_busy(int count) {
    int *out;
    hipEvent_t behind[4];
    HIP(hipMalloc(&out, ALL * sizeof(int)));
    for (auto &event : behind) HIP(hipEventCreate(&event));
    for (int turn = 0; turn < count; turn++) {
        hipEvent_t event = behind[turn % 4];
        if (turn >= 4) HIP(hipEventSynchronize(event));
        collatz<<<GROUPS, ITEMS>>>(out);
        HIP(hipEventRecord(event));
    }
    HIP(hipDeviceSynchronize());
    HIP(hipFree(out));
}

// Its kernel adds to a number how many work-items it has.
static void load(const char *file) {
    for (int turn = 0; turn < 3; turn++) {
        hipModule_t module;
        hipFunction_t kernel;
        unsigned long *count, host = 0;
        HIP(hipModuleLoad(&module, file));
        HIP(hipModuleGetFunction(&kernel, module, "aql_count"));
        HIP(hipMalloc(&count, sizeof host));
        HIP(hipMemset(count, 0, sizeof host));
        void *arguments[] = {&count};
        HIP(hipModuleLaunchKernel(kernel, 4, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
        HIP(hipMemcpy(&host, count, sizeof host, hipMemcpyDeviceToHost));
        HIP(hipFree(count));
        HIP(hipModuleUnload(module));
        printf("module %lu\n", host);
    }
}

static void children() {
    for (int turn = 0; turn < 2; turn++) {
        fflush(stdout);
        pid_t child = fork();
        if (!child) {
            if (turn) execl("/bin/true", "true", (char *)nullptr);
            _exit(0);
        }
        int status;
        if (waitpid(child, &status, 0) != child || status) exit(1);
    }
}

// Ends while kernels run.
static void end(const std::string &how) {
    int *out;
    HIP(hipMalloc(&out, ALL * sizeof(int)));
    for (int turn = 0; turn < 300; turn++) collatz<<<GROUPS, ITEMS>>>(out);
    fflush(stdout);
    if (how == "leave") _exit(0);
    if (how == "quick") quick_exit(0);
    if (how == "kill") raise(SIGKILL);
    exit(0);
}

// What is no kernel; false for what is nothing of these.
static bool act(const std::string &name, const char *value, int devices) {
    if (name == "graph") {
        replay(atoi(value));
    } else if (name == "grids") {
        launch_grids(atoi(value));
    } else if (name == "busy") {
        keep_busy(atoi(value));
    } else if (name == "pause") {
        sleep(atoi(value));
    } else if (name == "module") {
        load(value);
    } else if (name == "reset") {
        for (int device = 0; device < devices; device++) {
            HIP(hipSetDevice(device));
            HIP(hipDeviceReset());
        }
    } else if (name == "fork") {
        children();
    } else if (name == "stop" || name == "start") {
        auto change = (void (*)())dlsym(RTLD_DEFAULT, name == "stop" ? "rpdstop" : "rpdstart");
        if (change) change();
    } else if (name == "leave" || name == "exit" || name == "quick" || name == "kill") {
        end(name);
    } else {
        return false;
    }
    return true;
}

int main(int argc, char **argv) {
    const struct { const char *name; void (*kernel)(int *); } kernels[] = {
        {"straight", straight}, {"collatz", collatz}, {"choose", choose}, {"reduce", reduce}, {"calls", calls},
        {"pointers", pointers}, {"scratch", scratch}, {"large", large}, {"crowded", crowded}, {"nothing", nothing},
    };
    int devices;
    HIP(hipGetDeviceCount(&devices));
    for (int number = 1; number < argc; number++) {
        const char *end = strchr(argv[number], '=');
        std::string name(argv[number], end ? end - argv[number] : strlen(argv[number]));
        int count = end ? atoi(end + 1) : 1;
        bool known = false;
        for (auto &kernel : kernels) {
            if (name != kernel.name) continue;
            known = true;
            for (int device = 0; device < devices; device++) {
                HIP(hipSetDevice(device));
                int items = name == "large" || name == "crowded" ? 1024 : ITEMS;
                int all = items * GROUPS;
                int *out;
                HIP(hipMalloc(&out, all * sizeof(int)));
                HIP(hipMemset(out, 0xff, all * sizeof(int)));
                for (int turn = 0; turn < count; turn++) kernel.kernel<<<GROUPS, items, ITEMS * sizeof(int)>>>(out);
                std::vector<int> host(all);
                HIP(hipMemcpy(host.data(), out, all * sizeof(int), hipMemcpyDeviceToHost));
                long sum = 0;
                for (int me = 0; me < all; me++) {
                    sum += host[me];
                    if (host[me] != expected(name.c_str(), me)) {
                        printf("%s: item %d is %d, not %d\n", name.c_str(), me, host[me], expected(name.c_str(), me));
                        return 1;
                    }
                }
                printf("%s %ld\n", name.c_str(), sum);
                HIP(hipFree(out));
            }
        }
        if (!known && !act(name, end ? end + 1 : "", devices)) return 2;
    }
    return 0;
}
