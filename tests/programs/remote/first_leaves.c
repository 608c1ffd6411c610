/* Its first thread ends by pthread_exit; the process ends with the second, when the file "end" exists.
 *
 * Compile: cc -O2 first_leaves.c -o first_leaves -lpthread */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *second(void *none) {
    puts("ready");
    fflush(stdout);
    while (access("end", F_OK) != 0) usleep(5000);
    puts("last");
    return none;
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, second, NULL) != 0) return 1;
    pthread_exit(NULL);
}
