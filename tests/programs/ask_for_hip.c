// Asks for HIP's functions by name, as programs do that use HIP where it is there.
//
//   ask_for_hip [LIBRARY [all]]  LIBRARY is loaded first, for this program alone or for all; one that can ask does it
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int ask(void) {
    int (*device_count)(int *) = dlsym(RTLD_DEFAULT, "hipGetDeviceCount");
    int (*synchronize)(void) = dlsym(RTLD_DEFAULT, "hipDeviceSynchronize");
    if (!device_count || !synchronize) return puts(dlerror() ? "no HIP" : "no HIP, no error"), 0;
    if (dlerror()) return puts("an error"), 0;
    int devices = -1, status = device_count(&devices);
    printf("status %d, %d devices\n", status, devices);
    printf("status %d\n", synchronize());
    return 0;
}

int main(int count, char **arguments) {
    if (count == 1) return ask();
    void *library = dlopen(arguments[1], RTLD_NOW | (count > 2 ? RTLD_GLOBAL : RTLD_LOCAL));
    if (!library) return puts(dlerror()), 1;
    printf("program's handle %d\n", dlsym(dlopen(0, RTLD_NOW), "hipGetDeviceCount") != 0);
    int (*its)(void) = dlsym(library, "ask");
    dlerror();
    return its ? its() : ask();
}
