/* What one marker costs the thread that pushes it, measured from inside. The functions are found by dlsym, so that the
 * same program runs, and measures itself, without the recorder.
 *
 *   markers paced THREADS COUNT    bursts with pauses: buffers never fill. COUNT calls of each kind per thread
 *   markers flood THREADS COUNT    one call after the other, each with a text of its own
 *   markers short THREADS          that many threads, one after the other, each with one marker
 *
 * Prints lines "name value..." in ns; "memory" is the largest resident size in kB, when all rows are written.
 * Compile: cc -O2 markers.c -o markers -ldl -lpthread */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

enum { BURST = 64, TEXT = 40 };
enum { EMPTY, CLOCKS, MARK, RANGE, KINDS };
static const char *const names[KINDS] = {"empty", "clocks", "mark", "range"};

static void (*range_push)(const char *domain, const char *api, const char *args);
static void (*range_pop)(void);
static void (*mark)(const char *domain, const char *api, const char *args);
static void (*flush)(void);

static int count;
static uint32_t *samples[KINDS]; /* ticks; thread after thread */
static pthread_barrier_t begin;

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* The processor's counter costs less than half of clock_gettime, and is the same ruler for everything measured here. */
static inline uint64_t ticks(void) {
    _mm_lfence();
    uint64_t now = __rdtsc();
    _mm_lfence();
    return now;
}

/* A text that no other call has. */
static void unique(char *text, int thread, uint64_t number) {
    static const char digits[] = "0123456789abcdef";
    memset(text, '.', TEXT);
    memcpy(text, "step", 4);
    text[4] = digits[thread & 15];
    for (int at = TEXT; at > TEXT - 12; number >>= 4) text[--at] = digits[number & 15];
}

static inline void act(int kind, const char *text) {
    switch (kind) {
    case CLOCKS:
        now_ns();
        now_ns();
        break;
    case MARK:
        if (mark) mark("bench", "hipLaunchKernel", "");
        break;
    case RANGE:
        if (range_push) range_push("bench", "UserMarker", text), range_pop();
        break;
    }
}

static inline void measure(int kind, const char *text, size_t place) {
    uint64_t before = ticks();
    act(kind, text);
    uint64_t taken = ticks() - before;
    samples[kind][place] = taken > UINT32_MAX ? UINT32_MAX : taken;
}

static void *paced(void *argument) {
    const int thread = (int)(intptr_t)argument;
    char text[TEXT + 1] = {0};
    pthread_barrier_wait(&begin);
    for (int i = 0; i < count; i++) {
        if (i % BURST == 0) nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        unique(text, thread, i);
        for (int kind = 0; kind < KINDS; kind++) measure(kind, text, (size_t)thread * count + i);
    }
    return NULL;
}

static void *flood(void *argument) {
    const int thread = (int)(intptr_t)argument;
    char text[TEXT + 1] = {0};
    /* The floor: what the machine alone does to a thread. */
    for (int i = 0; i < count; i++) measure(CLOCKS, text, (size_t)thread * count + i);
    pthread_barrier_wait(&begin);
    for (int i = 0; i < count; i++) {
        unique(text, thread, i);
        const size_t place = (size_t)thread * count + i;
        uint64_t before = ticks();
        if (mark) mark("bench", "UserMarker", text);
        uint64_t taken = ticks() - before;
        samples[MARK][place] = taken > UINT32_MAX ? UINT32_MAX : taken;
    }
    return NULL;
}

static void *once(void *argument) {
    char text[TEXT + 1] = {0};
    unique(text, 0, (uintptr_t)argument);
    if (mark) mark("bench", "UserMarker", text);
    return NULL;
}

static int ascending(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static void report(int kind, size_t total, double ns_per_tick) {
    uint32_t *all = samples[kind];
    double sum = 0;
    for (size_t i = 0; i < total; i++) sum += all[i];
    qsort(all, total, sizeof *all, ascending);
    printf("%s %.1f %.1f %.1f %.1f %.1f\n", names[kind], ns_per_tick * all[total / 2], ns_per_tick * all[total / 100 * 99],
           ns_per_tick * all[total / 1000 * 999], ns_per_tick * all[total - 1], ns_per_tick * sum / total);
}

static void memory(void) {
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "VmHWM:", 6)) printf("memory %ld\n", atol(line + 6));
    if (status) fclose(status);
}

static void together(int threads, void *(*body)(void *)) {
    pthread_t running[threads];
    pthread_barrier_init(&begin, NULL, threads);
    for (int i = 0; i < threads; i++) pthread_create(&running[i], NULL, body, (void *)(intptr_t)i);
    for (int i = 0; i < threads; i++) pthread_join(running[i], NULL);
}

int main(int argc, char **argv) {
    const char *mode = argc > 2 ? argv[1] : "";
    const int threads = argc > 2 ? atoi(argv[2]) : 0;
    count = argc > 3 ? atoi(argv[3]) : 1;
    if (threads < 1 || count < 1 || (strcmp(mode, "paced") && strcmp(mode, "flood") && strcmp(mode, "short"))) {
        fputs("usage: markers paced|flood THREADS COUNT, or: markers short THREADS\n", stderr);
        return 2;
    }
    *(void **)&range_push = dlsym(RTLD_DEFAULT, "rpd_rangePush");
    *(void **)&range_pop = dlsym(RTLD_DEFAULT, "rpd_rangePop");
    *(void **)&mark = dlsym(RTLD_DEFAULT, "rpd_mark");
    *(void **)&flush = dlsym(RTLD_DEFAULT, "rpdflush");
    const size_t total = (size_t)threads * count;
    const int is_short = !strcmp(mode, "short");
    const int kinds = is_short ? 0 : KINDS, paces = !strcmp(mode, "paced");
    const int wanted[KINDS] = {paces, 1, 1, paces};
    for (int kind = 0; kind < kinds; kind++) {
        if (!wanted[kind]) continue;
        samples[kind] = malloc(total * sizeof **samples);
        /* Touched now: the first write to a page must not be measured. */
        memset(samples[kind], 1, total * sizeof **samples);
    }
    const uint64_t start_ns = now_ns(), start = ticks();
    if (paces) {
        together(threads, paced);
    } else if (!strcmp(mode, "flood")) {
        together(threads, flood);
    } else {
        for (int i = 0; i < threads; i++) {
            pthread_t thread;
            pthread_create(&thread, NULL, once, (void *)(intptr_t)i);
            pthread_join(thread, NULL);
        }
    }
    const double ns_per_tick = (double)(now_ns() - start_ns) / (ticks() - start);
    if (flush) flush();
    printf("wall %llu\n", (unsigned long long)(now_ns() - start_ns));
    memory();
    for (int kind = 0; kind < kinds; kind++)
        if (wanted[kind]) report(kind, total, ns_per_tick);
    return 0;
}
