// Asks for HIP's functions by name, as programs do that use HIP where it is there.
//
//   ask_for_hip [LIBRARY]        LIBRARY is loaded first, for this program alone
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
    if (count > 1 && !dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL)) return puts(dlerror()), 1;
    int (*device_count)(int *) = dlsym(RTLD_DEFAULT, "hipGetDeviceCount");
    int (*synchronize)(void) = dlsym(RTLD_DEFAULT, "hipDeviceSynchronize");
    if (!device_count || !synchronize) return puts("no HIP"), 0;
    int devices = -1, status = device_count(&devices);
    printf("status %d, %d devices\n", status, devices);
    printf("status %d\n", synchronize());
    return 0;
}
