/* Children of every kind between two marks of the parent. A forked child marks too, with its own way of ending; the others
 * execute programs that do nothing.
 *
 * Compile: cc -O2 children.c -o children -ldl */
#include "markers.h"

#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void reap(pid_t child, const char *what, int wanted) {
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != wanted) {
        fprintf(stderr, "%s: status %#x\n", what, status);
        exit(1);
    }
}

int main(void) {
    char *arguments[] = {"true", NULL};
    pid_t child;
    push("open in the parent alone");
    mark("parent before");

    if ((child = fork()) == 0) {
        mark("child that exits");
        exit(11);
    }
    reap(child, "fork, exit", 11);

    if ((child = fork()) == 0) {
        mark("child that _exits");
        _exit(12);
    }
    reap(child, "fork, _exit", 12);

    /* Grandchildren, and a child that does nothing. */
    if ((child = fork()) == 0) {
        if ((child = fork()) == 0) {
            mark("grandchild");
            return 13;
        }
        reap(child, "fork, fork", 13);
        _exit(14);
    }
    reap(child, "fork of a fork", 14);

    if ((child = fork()) == 0) {
        execvp(arguments[0], arguments);
        _exit(127);
    }
    reap(child, "fork, exec", 0);

    if ((child = vfork()) == 0) {
        execvp(arguments[0], arguments);
        _exit(127);
    }
    reap(child, "vfork, exec", 0);

    /* Runs on the parent's memory: its _exit must not end the parent's recording. */
    if ((child = vfork()) == 0) _exit(15);
    reap(child, "vfork, _exit", 15);

    if (posix_spawnp(&child, arguments[0], NULL, NULL, arguments, environ) != 0) return 1;
    reap(child, "posix_spawn", 0);

    if (system("true") != 0) return 1;

    call("rpd_rangePop");
    mark("parent after");
    puts("8 children");
    return 0;
}
