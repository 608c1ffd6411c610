/* Marks in two threads, changes its environment, and ends with status 7: with the address sanitizer, which looks for leaks at the end.
 *
 * Usage: sanitized [leak]    With `leak` something of its own leaks.
 * Compile: cc -O2 -fsanitize=address -static-libasan sanitized.c -o sanitized -ldl -lpthread */
#include "markers.h"

#include <pthread.h>
#include <stdlib.h>

static void *marks(void *unused) {
    for (int i = 0; i < 1000; i++) mark("sanitized");
    return unused;
}

int main(int argc, char **argv) {
    pthread_t other;
    (void)argv;
    setenv("OWN", "1", 1);
    unsetenv("RPDT_LOADED");
    setenv("ANOTHER", "2", 1);
    if (pthread_create(&other, NULL, marks, NULL)) return 1;
    marks(NULL);
    pthread_join(other, NULL);
    if (argc > 1) {
        void *volatile leaked = malloc(100);
        leaked = NULL;
        (void)leaked;
    }
    puts("sanitized");
    return 7;
}
