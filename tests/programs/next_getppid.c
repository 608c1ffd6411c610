// A library that stands in front of another's function and finds that by RTLD_NEXT.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

pid_t getppid(void) {
    pid_t (*plain)(void) = dlsym(RTLD_NEXT, "getppid");
    pid_t (*versioned)(void) = dlvsym(RTLD_NEXT, "getppid", "GLIBC_2.2.5");
    return plain == versioned ? plain() : -1;
}
