// An indirect function whose resolver looks something up; it runs while the libraries that the program was started with are relocated.
#define _GNU_SOURCE
#include <dlfcn.h>

static int answer(void) { return 42; }

static int (*resolve(void))(void) {
    dlsym(RTLD_DEFAULT, "getppid");
    return answer;
}

static int indirect(void) __attribute__((ifunc("resolve")));

int (*volatile pointer)(void) = indirect;
