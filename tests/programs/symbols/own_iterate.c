// Has a dl_iterate_phdr of its own that looks for the C library's at its first call, as sanitizers have.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

int hipGetDeviceCount(int *);

int dl_iterate_phdr(int (*look)(struct dl_phdr_info *, size_t, void *), void *argument) {
    static int (*plain)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    if (!plain) plain = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    return plain(look, argument);
}

int main(void) {
    int devices = -1, status = hipGetDeviceCount(&devices);
    printf("status %d, %d devices, getppid %d\n", status, devices, dlsym(RTLD_DEFAULT, "getppid") != 0);
    return 0;
}
