/* Pushes the first mark of the process, or of a thread, in a signal handler on a small alternate stack with a guard page below it.
 *
 * Usage: small_stack BYTES
 * Prints how many bytes of it a handler that does nothing takes, and how many more the marks do: the first of the process, the first of
 * a thread, and a later one.
 * Compile: cc -O2 small_stack.c -o small_stack -ldl -lpthread */
#include "markers.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, UNTOUCHED = 0xa5 };
static size_t bytes;
static char *stack;
static rpd_marker marker;
static int wanted;

static void handler(int number) {
    (void)number;
    if (wanted) marker("hazards", "UserMarker", "handler");
}

/* Bytes of the stack that one handler takes. */
static long taken(int with_mark) {
    wanted = with_mark && marker;
    memset(stack, UNTOUCHED, bytes);
    raise(SIGUSR1);
    size_t untouched = 0;
    while (untouched < bytes && (unsigned char)stack[untouched] == UNTOUCHED) untouched++;
    return (long)(bytes - untouched);
}

static void use_stack(void) {
    stack = mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, PAGE, PROT_NONE)) abort();
    stack += PAGE;
    stack_t alternate;
    memset(&alternate, 0, sizeof alternate);
    alternate.ss_sp = stack;
    alternate.ss_size = bytes;
    if (sigaltstack(&alternate, NULL)) abort();
}

static void *thread(void *unused) {
    (void)unused;
    use_stack();
    long nothing = taken(0), first = taken(1);
    printf("thread %ld\n", first - nothing);
    return NULL;
}

int main(int argc, char **argv) {
    struct sigaction action;
    pthread_t other;
    if (argc != 2) return 2;
    bytes = strtoul(argv[1], NULL, 10) / PAGE * PAGE;
    marker = (rpd_marker)rpd_function("rpd_mark");
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    use_stack();
    long nothing = taken(0), first = taken(1), later = taken(1);
    printf("nothing %ld\nfirst %ld\nlater %ld\n", nothing, first - nothing, later - nothing);
    fflush(stdout);
    if (pthread_create(&other, NULL, thread, NULL)) return 1;
    pthread_join(other, NULL);
    return 0;
}
