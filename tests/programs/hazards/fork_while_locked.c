/* Forks while the recorder has the trace locked: its commit waits for a reader. The child forks again and again, and lives on.
 *
 * Usage: fork_while_locked FORKS     of the child; all wait for files: "locked" before the parent marks, "fork" before it forks
 * Compile: cc -O2 fork_while_locked.c -o fork_while_locked -ldl */
#include "markers.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *line) {
    puts(line);
    fflush(stdout);
}

static void wait_for(const char *file) {
    while (access(file, F_OK) != 0) usleep(1000);
}

int main(int argc, char **argv) {
    int forks = argc > 1 ? atoi(argv[1]) : 0;
    mark("before");
    call("rpdflush");
    say("written");
    wait_for("locked");
    mark("in the transaction");
    wait_for("fork");
    if (fork() == 0) {
        for (int i = 0; i < forks; i++) {
            pid_t child = fork();
            if (child == 0) _exit(0);
            if (child < 0 || waitpid(child, NULL, 0) != child) return 1;
        }
        say("child has forked");
        /* Until somebody kills it. */
        for (;;) pause();
    }
    for (;;) pause();
}
