/* A library that the program frames.c loads for a call. SIZE is what the call allocates, NAME what the function below is called: two
 * libraries of the same size, the second of which comes to lie where the first one was.
 *
 * Compile: cc -g -O2 -shared -fPIC -DNAME=first -DSIZE=0x8001 frames_library.c */
#include <stddef.h>

__attribute__((noinline)) static void NAME(void (*take)(size_t)) {
    take(SIZE); /* library */
    __asm__ volatile("" ::: "memory");
}

void through(void (*take)(size_t)) {
    NAME(take); /* through */
    __asm__ volatile("" ::: "memory");
}
