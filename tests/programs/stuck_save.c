/* In front of the C library's write: hangs where a code object is being saved and a file "stuck" is in the working directory.
 *
 * Compile: cc -O2 -shared -fPIC stuck_save.c -o stuck_save.so -ldl */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

ssize_t write(int file, const void *bytes, size_t count) {
    static ssize_t (*next)(int, const void *, size_t);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "write");
    char link[64], path[4096] = "";
    snprintf(link, sizeof link, "/proc/thread-self/fd/%d", file);
    if (readlink(link, path, sizeof path - 1) > 0 && strstr(path, ".part"))
        while (access("stuck", F_OK) == 0) usleep(10000);
    return next(file, bytes, count);
}
