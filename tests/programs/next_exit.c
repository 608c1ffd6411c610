/* An interposer of _exit and _Exit that says so and passes on.
 *
 * Compile: cc -O2 -shared -fPIC next_exit.c -o next_exit.so -ldl */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

void _exit(int status) {
    void (*next)(int);
    *(void **)&next = dlsym(RTLD_NEXT, "_exit");
    if (write(1, "behind\n", 7) == 7) next(status);
    for (;;) pause();
}
