// Libraries with a function of rocBLAS's name, and a program that opens, calls and closes them one after the other, each at an address of
// its own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>

#ifdef ANSWER
int rocblas_sscal(void *handle, int n, const float *alpha, float *x, int incx) { return ANSWER; }
#else
typedef int scal(void *handle, int n, const float *alpha, float *x, int incx);

int main(int count, char **names) {
    float one = 1;
    for (int i = 1; i < count; i++) {
        void *library = dlopen(names[i], RTLD_NOW);
        scal *function = library ? (scal *)dlsym(library, "rocblas_sscal") : NULL;
        printf("%d\n", function ? function(NULL, 3, &one, NULL, 1) : -1);
        fflush(stdout);
        dlclose(library);
        // What comes next is not where this was.
        for (int taken = 0; taken < 64; taken++)
            mmap(NULL, 1 << 14, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    return 0;
}
#endif
