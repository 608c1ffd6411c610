/* A library with an `_exit` of its own, which it calls itself: opened with RTLD_DEEPBIND, nobody else's is meant.
 *
 * Compile: cc -O2 -shared -fPIC own_exit.c -o own_exit.so */
#include <stdlib.h>
#include <unistd.h>

void _exit(int status) {
    if (write(1, "its own\n", 8) == 8) quick_exit(status + 1);
    for (;;) pause();
}

void leave(void) { _exit(3); }
