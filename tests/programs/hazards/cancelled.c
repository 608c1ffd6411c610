/* Threads that are cancelled while they are in a function of the recorder.
 *
 * Usage: cancelled marks|pending|asynchronous|load LIBRARY|calls LIBRARY
 *   marks         each marks faster than can be written until another thread cancels it
 *   pending       each is cancelled before it calls one of the functions, and must come out of it
 *   asynchronous  each marks and drains, and may be cancelled at any instruction
 *   load          the recorder is loaded by a thread that is cancelled
 *   calls         each is cancelled before it calls a function of that library, more often than buffers hold calls, and must come out
 * Prints how many were cancelled. Without the recorder the same.
 * Compile: cc -O2 cancelled.c -o cancelled -ldl -lpthread */
#include "markers.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char text[3000];
static rpd_marker marker, push_range;
static void (*pop_range)(void);
static uint64_t (*drain)(uint64_t);
static volatile long done;
static int came_out;
static const char *library;

static void *marks(void *unused) {
    (void)unused;
    while (done >= 0) {
        if (marker) marker("hazards", "UserMarker", text);
        done++;
        pthread_testcancel();
    }
    return NULL;
}

static void drain_now(void) {
    if (drain) drain(0);
}

static void *asynchronous(void *unused) {
    (void)unused;
    long rounds = 0;
    done = 1;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    while (done > 0) {
        if (!marker) continue;
        push_range("hazards", "UserMarker", "asynchronous");
        marker("hazards", "UserMarker", "asynchronous");
        pop_range();
        if (++rounds % 16 == 0) drain_now();
    }
    return NULL;
}

static void *pending(void *function) {
    pthread_cancel(pthread_self());
    if (!strcmp(function, "rpd_mark")) mark("pending");
    else if (!strcmp(function, "rpd_setFilename")) {
        int (*name)(const char *) = (int (*)(const char *))rpd_function(function);
        if (name) name("other.rpd");
    } else if (!strcmp(function, "rpddrain")) drain_now();
    else call(function);
    came_out++;
    pthread_testcancel();
    return NULL;
}

static void *load(void *unused) {
    (void)unused;
    pthread_cancel(pthread_self());
    void *handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    if (!handle) abort();
    mark("loaded");
    came_out++;
    pthread_testcancel();
    return NULL;
}

static void *calls(void *function) {
    int (*saxpy)(void *, int, const float *, const float *, int, float *, int) =
        (int (*)(void *, int, const float *, const float *, int, float *, int))function;
    float x[1] = {1}, y[1] = {2}, alpha = 2;
    pthread_cancel(pthread_self());
    for (int i = 0; i < 30000; i++)
        if (saxpy(x, 1, &alpha, x, 1, y, 1)) abort();
    came_out++;
    pthread_testcancel();
    return NULL;
}

/* Starts a thread, cancels it when it has done something, and says whether it was cancelled. */
static int cancelled(void *(*body)(void *), void *argument, int from_outside) {
    pthread_t thread;
    void *result = NULL;
    long before = done = 0;
    if (pthread_create(&thread, NULL, body, argument)) abort();
    if (from_outside) {
        while (done == before) usleep(100);
        usleep(rand() % 3000);
        pthread_cancel(thread);
    }
    pthread_join(thread, &result);
    return result == PTHREAD_CANCELED;
}

int main(int argc, char **argv) {
    static const char *functions[] = {"rpd_mark", "rpdflush", "rpdstop", "rpdstart", "rpdopen",
                                      "rpd_rangePop", "rpddrain", "rpd_setFilename", "rpdfinish"};
    int count = 0;
    if (argc < 2) return 2;
    memset(text, 'x', sizeof text - 1);
    marker = (rpd_marker)rpd_function("rpd_mark");
    push_range = (rpd_marker)rpd_function("rpd_rangePush");
    pop_range = (void (*)(void))rpd_function("rpd_rangePop");
    drain = (uint64_t (*)(uint64_t))rpd_function("rpddrain");
    if (!strcmp(argv[1], "marks"))
        for (int round = 0; round < 20; round++) count += cancelled(marks, NULL, 1);
    if (!strcmp(argv[1], "asynchronous"))
        for (int round = 0; round < 300; round++) count += cancelled(asynchronous, NULL, 1);
    if (!strcmp(argv[1], "pending"))
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
            count += cancelled(pending, (void *)functions[i], 0);
    if (!strcmp(argv[1], "load") && argc > 2) {
        library = argv[2];
        count += cancelled(load, NULL, 0);
    }
    if (!strcmp(argv[1], "calls") && argc > 2) {
        if (!dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL)) abort();
        for (int i = 0; i < 4; i++) count += cancelled(calls, dlsym(RTLD_DEFAULT, "rocblas_saxpy"), 0);
    }
    printf("%d cancelled, %d came out\n", count, came_out);
    return 0;
}
