// Calls every function of a HIP of any version, with arguments where that version's header (hip_prof_str.h) puts them.
//
//   callbacks LIST VERSIONS VERSION SIZE [UNKNOWN]     SIZE: of its hip_api_data_t; UNKNOWN: a function that it has not after all
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "hip_library.h"

// hipLaunchConfig_t and HIP_LAUNCH_CONFIG (hip_runtime_api.h of 7.1), as far as both are the same.
static const struct {
    uint32_t grid[3], block[3], shared, unused;
    uint64_t stream;
} config = {{5, 6, 7}, {64, 2, 1}, 1024, 0, 0};

int main(int count, char **arguments) {
    if (count < 5) return 2;
    be(arguments[1], arguments[2], arguments[3]);
    if (count > 5) forget(arguments[5]);
    size_t size = strtoul(arguments[4], NULL, 10);
    void (*start)(void);
    *(void **)&start = dlsym(RTLD_DEFAULT, "rpdstart");
    if (start) start();
    // In 6.0 arrays became handles, of which no copy is kept: what follows moved.
    size_t array = arguments[3][0] < '6' ? 112 : 48;
    const struct argument given[] = {
        {"hipMalloc", 32, 8, 4096},
        {"hipLaunchKernel", 16, 8, 0x100000},
        {"hipLaunchKernel", 24, 8, 5 | 6ull << 32},
        {"hipLaunchKernel", 32, 8, 7 | 64ull << 32},
        {"hipLaunchKernel", 40, 8, 2 | 1ull << 32},
        {"hipLaunchKernel", 64, 8, 1024},
        {"hipMemcpyToArray", array, 8, 12345},
        {"hipMemcpyToArray", array + 8, 4, 1},
        {"hipLaunchKernelExC", 16, 8, (uint64_t)&config},
        {"hipLaunchKernelExC", 80, 8, 0x100000},
        {"hipDrvLaunchKernelEx", 16, 8, (uint64_t)&config},
        {"hipDrvLaunchKernelEx", 80, 8, 0x100000},
        {0},
    };
    printf("%d\n", call_all(size, given));
    complete_a_command();
    return 0;
}
