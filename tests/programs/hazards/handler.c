/* A timer interrupts marks with a handler that marks, and ranges with a handler that opens and closes one.
 *
 * Usage: handler [MARKS]     Prints how many marks the program and the handler pushed.
 * Compile: cc -O2 handler.c -o handler -ldl */
#include "markers.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static volatile sig_atomic_t handled;
static rpd_marker marker;

static void tick(int number) {
    int before = errno;
    (void)number;
    errno = 77;
    if (marker) marker("hazards", "UserMarker", "handler");
    if (errno != 77) abort();
    errno = before;
    handled++;
}

int main(int argc, char **argv) {
    int marks = argc > 1 ? atoi(argv[1]) : 100000;
    struct sigaction action;
    struct itimerval every = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    memset(&action, 0, sizeof action);
    action.sa_handler = tick;
    marker = (rpd_marker)rpd_function("rpd_mark");
    if (marker) marker("hazards", "UserMarker", "program");
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    for (int i = 1; i < marks; i++)
        if (marker) marker("hazards", "UserMarker", "program");
    setitimer(ITIMER_REAL, &never, NULL);
    fprintf(stderr, "%d %d\n", marks, (int)handled);
    return 0;
}
