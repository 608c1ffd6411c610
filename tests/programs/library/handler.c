/* Calls a function of a library while a signal handler calls it too, from the first call on. The argument is the library's file.
 *
 * Compile: cc -O2 handler.c -o handler -ldl */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

typedef int (*Saxpy)(void *handle, int n, const float *alpha, const float *x, int incx, float *y, int incy);

static Saxpy saxpy;

static void call(int signal) {
    float one = 1;
    (void)signal;
    if (saxpy(&one, 1, &one, &one, 1, &one, 1) != 0) abort();
}

int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    *(void **)&saxpy = library ? dlsym(library, "rocblas_saxpy") : NULL;
    if (!saxpy) return 2;
    signal(SIGALRM, call);
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 1000; i++) call(0);
    setitimer(ITIMER_REAL, &never, NULL);
    puts("done");
    return 0;
}
