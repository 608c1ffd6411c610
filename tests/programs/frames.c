/* Calls HIP from every kind of place that a walk over the stack meets. Each argument is one of them; each call allocates a size of
 * its own, by which the test finds it. Lines that a frame must name end in a comment with the word the test looks for.
 *
 *   calls           from a function inlined into another one   threads   the same, from two threads at once
 *   deep            below 10,000 calls                         small     on a thread with 16 KB of stack
 *   signal          in a signal handler                        altstack  in a handler that has a stack of its own
 *   coroutine       on a stack made by hand                    made      from code written at run time
 *   library=FILE    from `through` of a library that is loaded for it and unloaded
 *   instead=FILE    the same, then from code written at run time to where that function was
 *   many            twenty thousand times, with 1700 frames each
 *   unlink          no call: the program's file is removed
 *
 * Compile: cc -g -O2 frames.c -lamdhip64 -ldl -lpthread */
#define _GNU_SOURCE
#define __HIP_PLATFORM_AMD__
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* Not inlined, and not left by a jump: its frame is there while it calls. */
#define FRAME __attribute__((noinline))
#define RETURN_BEHIND(call) do { call; __asm__ volatile("" ::: "memory"); } while (0)

FRAME void take(size_t size) {
    void *memory = NULL;
    hipError_t status = hipMalloc(&memory, size); /* take */
    if (status != hipSuccess) {
        fprintf(stderr, "hipMalloc: %s\n", hipGetErrorString(status));
        exit(1);
    }
    hipFree(memory);
}

static inline __attribute__((always_inline)) void inlined(size_t size) {
    RETURN_BEHIND(take(size)); /* inlined */
}

FRAME void outer(size_t size) {
    inlined(size); /* outer */
    RETURN_BEHIND((void)0);
}

FRAME void *on_thread(void *size) {
    RETURN_BEHIND(outer((size_t)size)); /* on_thread */
    return NULL;
}

static void threads(void) {
    pthread_t thread[2];
    for (size_t i = 0; i < 2; i++) pthread_create(&thread[i], NULL, on_thread, (void *)(0x2001 + i));
    for (size_t i = 0; i < 2; i++) pthread_join(thread[i], NULL);
}

FRAME void deep(int levels) {
    if (levels == 0) RETURN_BEHIND(take(0x3001));
    else RETURN_BEHIND(deep(levels - 1));
}

FRAME void many(int levels);
#define INLINED static inline __attribute__((always_inline)) void
INLINED inlined_1(int levels) { RETURN_BEHIND(many(levels)); }
INLINED inlined_2(int levels) { inlined_1(levels); }
INLINED inlined_3(int levels) { inlined_2(levels); }
INLINED inlined_4(int levels) { inlined_3(levels); }
INLINED inlined_5(int levels) { inlined_4(levels); }
INLINED inlined_6(int levels) { inlined_5(levels); }
INLINED inlined_7(int levels) { inlined_6(levels); }
INLINED inlined_8(int levels) { inlined_7(levels); }
INLINED inlined_9(int levels) { inlined_8(levels); }
INLINED inlined_10(int levels) { inlined_9(levels); }
INLINED inlined_11(int levels) { inlined_10(levels); }
INLINED inlined_12(int levels) { inlined_11(levels); }
INLINED inlined_13(int levels) { inlined_12(levels); }
INLINED inlined_14(int levels) { inlined_13(levels); }
INLINED inlined_15(int levels) { inlined_14(levels); }
INLINED inlined_16(int levels) { inlined_15(levels); }

FRAME void many(int levels) {
    if (levels > 0) return inlined_16(levels - 1);
    for (int i = 0; i < 20000; i++) hipFree(NULL);
}

static void *small_thread(void *unused) {
    (void)unused;
    hipStreamQuery(NULL);
    return NULL;
}

static void small(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 16 << 10);
    pthread_t thread;
    if (pthread_create(&thread, &attributes, small_thread, NULL) == 0) pthread_join(thread, NULL);
    else puts("no such thread");
}

static size_t handled;

static void handler(int number) {
    (void)number;
    RETURN_BEHIND(take(handled));
}

FRAME void interrupted(int flags, size_t size) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(SIGUSR2, &action, NULL);
    handled = size;
    RETURN_BEHIND(raise(SIGUSR2)); /* interrupted */
}

static void altstack(void) {
    stack_t own = {.ss_sp = malloc(1 << 20), .ss_size = 1 << 20};
    sigaltstack(&own, NULL);
    interrupted(SA_ONSTACK, 0x5001);
}

static ucontext_t caller, routine;

static void in_routine(void) {
    RETURN_BEHIND(take(0x6001));
}

static void coroutine(void) {
    getcontext(&routine);
    routine.uc_stack.ss_sp = malloc(1 << 20);
    routine.uc_stack.ss_size = 1 << 20;
    routine.uc_link = &caller;
    makecontext(&routine, in_routine, 0);
    swapcontext(&caller, &routine);
}

FRAME void taken_for_made_code(void) {
    RETURN_BEHIND(take(0x7001));
}

FRAME void made(void *place) {
    /* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
    const int fixed = place ? MAP_FIXED_NOREPLACE : 0;
    void *page = mmap(place, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
    if (page == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    memcpy(page, code, sizeof code);
    void (*run)(void (*)(void));
    *(void **)&run = page;
    RETURN_BEHIND(run(taken_for_made_code));
}

/* Where the library's function was. */
FRAME void *library(const char *file) {
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    void (*through)(void (*)(size_t));
    *(void **)&through = dlsym(handle, "through");
    through(take);
    dlclose(handle);
    return (void *)((size_t)through & ~(size_t)4095);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *place = argv[i];
        if (!strcmp(place, "calls")) outer(0x1001);
        else if (!strcmp(place, "threads")) threads();
        else if (!strcmp(place, "deep")) deep(10000);
        else if (!strcmp(place, "small")) small();
        else if (!strcmp(place, "signal")) interrupted(0, 0x4001);
        else if (!strcmp(place, "altstack")) altstack();
        else if (!strcmp(place, "coroutine")) coroutine();
        else if (!strcmp(place, "made")) made(NULL);
        else if (!strcmp(place, "many")) many(100);
        else if (!strcmp(place, "unlink")) unlink(argv[0]);
        else if (!strncmp(place, "library=", 8)) library(place + 8);
        else if (!strncmp(place, "instead=", 8)) made(library(place + 8));
        else {
            fprintf(stderr, "frames: %s is not known\n", place);
            return 2;
        }
        puts(place);
    }
    return 0;
}
