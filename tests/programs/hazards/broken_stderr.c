/* Makes a complaint of the recorder raise a signal, if it raises one, and tells what has become of the program's own.
 *
 * Usage: broken_stderr pipe|pending|handled|file
 *        broken_stderr run PROGRAM ARGUMENTS
 *   pipe      standard error is a pipe that nobody reads
 *   pending   as well, and a SIGPIPE of the program's own is pending
 *   handled   as well, and the program has a handler
 *   file      standard error is a file that may not grow
 *   run       becomes that program, whose standard error is a pipe that nobody reads from its beginning
 * Prints which signals are pending at the end and how often the handler ran.
 * Compile: cc -O2 broken_stderr.c -o broken_stderr -ldl */
#include "markers.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static volatile sig_atomic_t handled;

static void handler(int number) {
    (void)number;
    handled++;
}

static int broken_pipe(void) {
    int ends[2];
    if (pipe(ends)) return -1;
    close(ends[0]);
    return ends[1];
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    struct rlimit before, none;
    sigset_t set;
    sigemptyset(&set);
    getrlimit(RLIMIT_FSIZE, &before);
    none = before;
    none.rlim_cur = 0;
    int is_file = !strcmp(argv[1], "file");
    int errors = is_file ? open("errors", O_CREAT | O_WRONLY | O_TRUNC, 0600) : broken_pipe();
    if (errors < 0 || dup2(errors, STDERR_FILENO) < 0) return 1;
    if (!strcmp(argv[1], "run")) return execvp(argv[2], argv + 2);
    if (!strcmp(argv[1], "pending")) {
        sigaddset(&set, SIGPIPE);
        sigprocmask(SIG_BLOCK, &set, NULL);
        raise(SIGPIPE);
    }
    if (!strcmp(argv[1], "handled")) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_handler = handler;
        sigaction(SIGPIPE, &action, NULL);
        if (write(STDERR_FILENO, "own", 3) != -1) return 1;
    }
    if (is_file) setrlimit(RLIMIT_FSIZE, &none);
    mark("complained");
    if (is_file) setrlimit(RLIMIT_FSIZE, &before);
    sigpending(&set);
    printf("pending %d %d, handled %d\n", sigismember(&set, SIGPIPE), sigismember(&set, SIGXFSZ), (int)handled);
    return 0;
}
