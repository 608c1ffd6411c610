/* Every function of roctx, and what it returns, one line each. Uses no GPU.
 *
 * Recorded: "outer" around "inner" and "a mark"; "crossing", stopped by another thread than the one that starts it, and "back", the
 * other way round; "in a pause" not at all; "resumed", begun in a pause; "left open", which nobody ends, on the stack and off it.
 *
 * roctx [LIBRARY]: the functions of that library, found by dlopen as Python and Julia do; without, those the program was linked with
 * (-DLINKED). Compile: cc -O2 roctx.c -o roctx -ldl -lpthread */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef LINKED
#define FUNCTION(result, name, ...) result name(__VA_ARGS__);
#else
#define FUNCTION(result, name, ...) static result (*name)(__VA_ARGS__);
#endif
#define FUNCTIONS \
    FUNCTION(uint32_t, roctx_version_major, void) \
    FUNCTION(uint32_t, roctx_version_minor, void) \
    FUNCTION(void, roctxMarkA, const char *) \
    FUNCTION(int, roctxRangePushA, const char *) \
    FUNCTION(int, roctxRangePop, void) \
    FUNCTION(uint64_t, roctxRangeStartA, const char *) \
    FUNCTION(void, roctxRangeStop, uint64_t) \
    FUNCTION(int, roctxGetThreadId, uint64_t *) \
    FUNCTION(int, roctxProfilerPause, uint64_t) \
    FUNCTION(int, roctxProfilerResume, uint64_t) \
    FUNCTION(int, roctxNameOsThread, const char *) \
    FUNCTION(int, roctxNameHsaAgent, const char *, const void *) \
    FUNCTION(int, roctxNameHipDevice, const char *, int) \
    FUNCTION(int, roctxNameHipStream, const char *, const void *)
FUNCTIONS

static void find(const char *library) {
#ifndef LINKED
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        puts(dlerror());
        exit(3);
    }
#undef FUNCTION
#define FUNCTION(result, name, ...) \
    if (!(*(void **)&name = dlsym(handle, #name))) { \
        puts("there is no " #name); \
        exit(3); \
    }
    FUNCTIONS
#else
    (void)library;
#endif
}

static uint64_t crossing, back;

static void *other_thread(void *nothing) {
    roctxRangeStop(crossing);
    back = roctxRangeStartA("back");
    printf("push on a thread %d\n", roctxRangePushA("on a thread"));
    printf("pop on a thread %d\n", roctxRangePop());
    return nothing;
}

int main(int argc, char **argv) {
    find(argc > 1 ? argv[1] : "");
    printf("version %u.%u\n", roctx_version_major(), roctx_version_minor());
    printf("pop of nothing %d\n", roctxRangePop());
    printf("push %d\n", roctxRangePushA("outer"));
    printf("push %d\n", roctxRangePushA("inner"));
    roctxMarkA("a mark");
    printf("pop %d\n", roctxRangePop());
    printf("pop %d\n", roctxRangePop());
    printf("pop of nothing %d\n", roctxRangePop());

    crossing = roctxRangeStartA("crossing");
    printf("start %d\n", (int)crossing);
    pthread_t thread;
    pthread_create(&thread, NULL, other_thread, NULL);
    pthread_join(thread, NULL);
    printf("start %d\n", (int)back);
    roctxRangeStop(back);
    roctxRangeStop(4711);

    printf("pause %d\n", roctxProfilerPause(0));
    roctxRangePushA("in a pause");
    roctxRangePop();
    uint64_t never = roctxRangeStartA("in a pause"), resumed = roctxRangeStartA("resumed");
    roctxRangeStop(never);
    printf("resume %d\n", roctxProfilerResume(0));
    roctxRangeStop(resumed);
    printf("pause of one thread %d\n", roctxProfilerPause(gettid()));

    uint64_t tid = 0;
    printf("thread %d", roctxGetThreadId(&tid));
    printf(" %s\n", tid == (uint64_t)gettid() ? "right" : "other");
    printf("name %d\n", roctxNameOsThread("main"));
    printf("name %d\n", roctxNameHsaAgent("agent", NULL));
    printf("name %d\n", roctxNameHipDevice("device", 0));
    printf("name %d\n", roctxNameHipStream("stream", NULL));
    roctxMarkA(NULL);
    roctxMarkA("broken \xff\xfe and\nlines");
    roctxRangePushA("left open");
    roctxRangeStartA("left open");
    return 0;
}
