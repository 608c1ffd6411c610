/* Threads that fork, several at the same time, and once more in a destructor of their thread-local data, while another thread
 * marks all the time. Each child marks.
 *
 * Usage: forking_threads ROUNDS THREADS
 * Prints how many children there were.
 * Compile: cc -O2 forking_threads.c -o forking_threads -ldl -lpthread */
#include "markers.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_key_t key;
static pthread_barrier_t together;
static volatile int done;

static void fork_one(void) {
    pid_t child = fork();
    if (child == 0) {
        mark("child");
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "child %d: status %#x\n", (int)child, status);
        _exit(1);
    }
}

static void destructor(void *value) {
    (void)value;
    fork_one();
}

static void *forks(void *unused) {
    (void)unused;
    pthread_setspecific(key, &key);
    pthread_barrier_wait(&together);
    fork_one();
    return NULL;
}

static void *marks(void *unused) {
    (void)unused;
    while (!done) {
        for (int i = 0; i < 10; i++) mark("parent");
        usleep(1000);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[16], marker;
    if (argc < 3) return 2;
    int rounds = atoi(argv[1]), count = atoi(argv[2]);
    if (count < 1 || count > 16) return 2;
    pthread_key_create(&key, destructor);
    pthread_barrier_init(&together, NULL, count);
    pthread_create(&marker, NULL, marks, NULL);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, forks, NULL);
        for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    }
    done = 1;
    pthread_join(marker, NULL);
    printf("%d children\n", 2 * rounds * count);
    return 0;
}
