/* Marks that cannot be written yet, then forks: one while the recorder waits for the file, the others after SIGUSR1, while it writes.
 *
 * Usage: backlog MARKS CHILDREN     each child marks once and ends by _exit
 * Compile: cc -O2 backlog.c -o backlog -ldl */
#include "markers.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void child(int number) {
    char text[40];
    snprintf(text, sizeof text, "child %d", number);
    if (fork() == 0) {
        mark(text);
        _exit(0);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    sigset_t signals;
    int marks = atoi(argv[1]), children = atoi(argv[2]), number, status;
    char text[40];
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    for (int i = 0; i < marks; i++) {
        snprintf(text, sizeof text, "parent %d", i);
        mark(text);
    }
    child(0);
    puts("full");
    fflush(stdout);
    sigwait(&signals, &number);
    for (int i = 1; i < children; i++) {
        usleep(100 * 1000);
        child(i);
    }
    while (wait(&status) > 0)
        if (status != 0) return 1;
    printf("%d children\n", children);
    return 0;
}
