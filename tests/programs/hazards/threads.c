/* Threads that come and go, each with one mark, a range, and a mark from a destructor of its thread-local data, where the
 * recorder's own thread-local data is gone already.
 *
 * Usage: threads COUNT     Prints the count and, when asked (MEMORY=1), how much the resident set grew over the last half.
 * Compile: cc -O2 threads.c -o threads -ldl -lpthread */
#include "markers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { AT_ONCE = 20 };

static pthread_key_t key;

/* With MEMORY set, the same texts from every thread: nothing is new then but the threads. */
static void text_of_thread(char *text, const char *what) {
    sprintf(text, "%s %ld", what, getenv("MEMORY") ? 0 : syscall(SYS_gettid));
}

static void destroy(void *round) {
    char text[64];
    /* The C library runs destructors again while values are set: later than those of C++ and Rust. */
    if (round == (void *)1) {
        pthread_setspecific(key, (void *)2);
        return;
    }
    text_of_thread(text, "destructor");
    mark(text);
}

static void *body(void *nothing) {
    char text[64];
    pthread_setspecific(key, (void *)1);
    text_of_thread(text, "mark");
    mark(text);
    text_of_thread(text, "range");
    push(text);
    call("rpd_rangePop");
    return nothing;
}

static long resident_kb(void) {
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    fclose(file);
    return resident * 4;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 1000;
    long half = 0;
    pthread_t threads[AT_ONCE];
    pthread_key_create(&key, destroy);
    for (int done = 0; done < count; done += AT_ONCE) {
        for (int i = 0; i < AT_ONCE; i++)
            if (pthread_create(&threads[i], NULL, body, NULL) != 0) return 1;
        for (int i = 0; i < AT_ONCE; i++) pthread_join(threads[i], NULL);
        if (half == 0 && done >= count / 2) {
            call("rpdflush");
            half = resident_kb();
        }
    }
    call("rpdflush");
    printf("%d threads\n", count);
    if (getenv("MEMORY")) printf("grown %ld KiB\n", resident_kb() - half);
    return 0;
}
