// Calls HIP where the recorder cannot take a record: in a handler that interrupts marks, and in a destructor of thread-local data. Prints
// how many calls the handler, the destructor and the program itself made.
#include "../../../fixtures/programs/check.h"

#include <csignal>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/time.h>

static volatile sig_atomic_t handled, destroyed;
static pthread_key_t key;

static void call() {
    int size;
    if (hipDeviceGetAttribute(&size, hipDeviceAttributeWarpSize, 0) != hipSuccess) abort();
}

static void handler(int) {
    call();
    handled = handled + 1;
}

static void destructor(void *) {
    call();
    destroyed = destroyed + 1;
}

static void *thread(void *) {
    call();
    pthread_setspecific(key, &key);
    return nullptr;
}

int main() {
    typedef void (*marker)(const char *, const char *, const char *);
    marker mark = (marker)dlsym(RTLD_DEFAULT, "rpd_mark");
    // The runtime's threads inherit the mask: while a handler runs, the next signal waits for this thread and goes to none of them.
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
    HIP(hipSetDevice(0));
    call();
    pthread_key_create(&key, destructor);
    pthread_t other;
    if (pthread_create(&other, nullptr, thread, nullptr)) abort();
    pthread_join(other, nullptr);
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
    itimerval every = {{0, 100}, {0, 100}}, never = {};
    setitimer(ITIMER_REAL, &every, nullptr);
    while (handled < 500)
        if (mark) mark("hip", "mark", "");
    setitimer(ITIMER_REAL, &never, nullptr);
    printf("%d %d 2\n", (int)handled, (int)destroyed);
}
