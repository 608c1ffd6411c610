/* In front of the C library's pwrite: hangs where a file "stuck" is in the working directory, as on a disk that does not answer.
 *
 * Compile: cc -O2 -shared -fPIC stuck_write.c -o stuck_write.so -ldl */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    static ssize_t (*next)(int, const void *, size_t, off_t);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "pwrite");
    while (access("stuck", F_OK) == 0) usleep(10000);
    return next(file, bytes, count, offset);
}
