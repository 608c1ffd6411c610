// Does what its arguments say, one after the other. How long its kernels take, and how much power, is the software GPU's to say.
//
//   gpu=N  the GPU of what follows    hot=N mild=N  so many kernels of that name, for which nobody waits    copy=MB to the GPU and back
//   sync   until all GPUs are done    say=TEXT a line on standard output    wait=FILE until that file exists
#include "../../fixtures/programs/check.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

__global__ void hot_kernel(int *count) { *count += 1; }
__global__ void mild_kernel(int *count) { *count += 1; }

static int *counters[8];
static int launched[8];
static int gpu;

static void use(int number) {
    gpu = number;
    HIP(hipSetDevice(gpu));
    if (counters[gpu]) return;
    HIP(hipMalloc(&counters[gpu], sizeof(int)));
    HIP(hipMemset(counters[gpu], 0, sizeof(int)));
    HIP(hipDeviceSynchronize());
}

static void copy(int megabytes) {
    std::vector<char> there(megabytes << 20, 7), back(there.size());
    char *memory;
    HIP(hipMalloc(&memory, there.size()));
    HIP(hipMemcpy(memory, there.data(), there.size(), hipMemcpyHostToDevice));
    HIP(hipMemcpy(back.data(), memory, back.size(), hipMemcpyDeviceToHost));
    HIP(hipFree(memory));
    expect(there == back, "what was copied");
}

static void wait_for_gpus() {
    for (int i = 0; i < 8; i++) {
        if (!counters[i]) continue;
        int counted = 0;
        HIP(hipSetDevice(i));
        HIP(hipMemcpy(&counted, counters[i], sizeof counted, hipMemcpyDeviceToHost));
        expect(counted == launched[i], "number of kernels", counted);
    }
    HIP(hipSetDevice(gpu));
}

int main(int, char **arguments) {
    for (char *what; (what = *++arguments);) {
        char *value = strchr(what, '=');
        if (value) *value++ = 0;
        const int number = value ? atoi(value) : 0;
        const std::string is = what;
        if (is == "gpu") use(number);
        else if (is == "hot" || is == "mild")
            for (int i = 0; i < number; i++, launched[gpu]++)
                if (is == "hot") hot_kernel<<<1, 1>>>(counters[gpu]);
                else mild_kernel<<<1, 1>>>(counters[gpu]);
        else if (is == "copy") copy(number);
        else if (is == "sync") wait_for_gpus();
        else if (is == "say") puts(value), fflush(stdout);
        else if (is == "wait")
            while (access(value, F_OK) != 0) usleep(10000);
        else expect(false, what);
    }
    return 0;
}
