// The least that a good profiler by CUPTI costs: the driver loads this (CUDA_INJECTION64_PATH). It asks CUPTI for the kinds of records, the calls
// and the callbacks that the recorder asks for by default, and throws the records away. Buffers of 1 MiB come from a pool. They are filled with zeros
// before CUPTI gets them, and again by a thread of their own when it gives them back, so CUPTI does not fill them on the program's threads.
//
// FLOOR_CUPTI names the libcupti. FLOOR_RECORDS=FILE: a line for each copy and fill, with CUPTI's kind of copy and its bytes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 1 << 20, READY = 8, MOST = 4096 };
enum { MEMCPY = 1, MEMSET, DRIVER = 4, RUNTIME, CONTEXT = 9, CONCURRENT_KERNEL, OVERHEAD = 17, MEMCPY2 = 22, STREAM = 37, MEMORY2 = 49 };

struct filled {
    uint8_t *start;
    size_t valid;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint8_t *empty[READY];
static struct filled filled[MOST];
static int empties, fills, busy;
static FILE *records;
static pid_t owner;

static int (*flush_all)(uint32_t);
static int (*next_record)(uint8_t *, size_t, uint8_t **);

static uint8_t *zeroed(void) {
    uint8_t *buffer = aligned_alloc(4096, SIZE);
    return buffer ? memset(buffer, 0, SIZE) : NULL;
}

static void requested(uint8_t **buffer, size_t *size, size_t *most) {
    pthread_mutex_lock(&lock);
    *buffer = empties ? empty[--empties] : NULL;
    pthread_mutex_unlock(&lock);
    if (!*buffer) *buffer = zeroed();
    *size = *buffer ? SIZE : 0;
    *most = 0;
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size;
    pthread_mutex_lock(&lock);
    if (fills == MOST) abort();
    filled[fills++] = (struct filled){buffer, valid};
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void say(struct filled from) {
    for (uint8_t *record = NULL; !next_record(from.start, from.valid, &record);) {
        uint32_t kind = *(uint32_t *)(void *)record;
        unsigned long bytes = *(uint64_t *)(void *)(record + 8);
        if (kind == MEMCPY || kind == MEMCPY2) fprintf(records, "copy %u %lu\n", record[4], bytes);
        if (kind == MEMSET) fprintf(records, "fill 0 %lu\n", bytes);
    }
}

static void *consume(void *unused) {
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!fills) pthread_cond_wait(&changed, &lock);
        struct filled one = filled[--fills];
        busy = 1;
        pthread_mutex_unlock(&lock);
        if (records) say(one);
        memset(one.start, 0, SIZE);
        pthread_mutex_lock(&lock);
        busy = 0;
        if (empties < READY) empty[empties++] = one.start;
        else free(one.start);
        pthread_cond_broadcast(&changed);
    }
    return unused;
}

// CUPTI does not return in a forked child.
static void ended(void) {
    if (owner != getpid()) return;
    flush_all(1);
    pthread_mutex_lock(&lock);
    while (fills || busy) pthread_cond_wait(&changed, &lock);
    if (records) fclose(records);
    pthread_mutex_unlock(&lock);
}

static void nothing(void *data, uint32_t domain, uint32_t number, const void *info) {
    (void)data, (void)domain, (void)number, (void)info;
}

// Of a function's name: what comes behind cuda or cu.
static const char *plain(const char *name) {
    if (strncmp(name, "cu", 2)) return "";
    return name + (strncmp(name, "cuda", 4) ? 2 : 4);
}

// The calls that the recorder has by default: tracer/src/sources/cuda/filter.rs.
static int is_recorded(const char *name) {
    static const char *const starts[] = {
        "Launch",  "GraphLaunch", "GraphInstantiate", "StreamBeginCapture", "StreamEndCapture", "Memcpy",  "Memset",     "MemPrefetch",
        "Malloc",  "MemAlloc",    "HostAlloc",        "MemHostAlloc",       "Free",             "MemFree", "ModuleLoad", "LibraryLoad",
    };
    const char *rest = plain(name);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (!strncmp(rest, starts[i], strlen(starts[i]))) return 1;
    return strstr(rest, "Synchronize") != NULL;
}

// Those of them that CUPTI calls back for: functions.rs. The runtime's have a version behind their names.
static int is_called_back(const char *name) {
    static const char *const waits[] = {
        "StreamSynchronize", "StreamSynchronize_ptsz", "DeviceSynchronize", "ThreadSynchronize", "CtxSynchronize",
    };
    const char *rest = plain(name), *version = strstr(rest, "_v");
    size_t length = version && strlen(version) >= 6 ? (size_t)(version - rest) : strlen(rest);
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        if (strlen(waits[i]) == length && !strncmp(rest, waits[i], length)) return 1;
    return 0;
}

static void find(void *cupti, const char *name, void *place) {
    void *address = dlsym(cupti, name);
    memcpy(place, &address, sizeof address);
}

int InitializeInjection(void) {
    const char *path = getenv("FLOOR_CUPTI"), *file = getenv("FLOOR_RECORDS");
    void *cupti = dlopen(path ? path : "libcupti.so.13", RTLD_NOW);
    if (!cupti) {
        fprintf(stderr, "floor: no CUPTI\n");
        return 0;
    }
    int (*subscribe)(void **, void *, void *), (*callbacks)(void *, void *), (*enable)(uint32_t), (*set)(uint32_t, size_t *, void *);
    int (*name_of)(uint32_t, uint32_t, const char **), (*call_back)(uint32_t, void *, uint32_t, uint32_t), (*single[2])(uint32_t, uint8_t);
    find(cupti, "cuptiSubscribe", &subscribe);
    find(cupti, "cuptiActivityRegisterCallbacks", &callbacks);
    find(cupti, "cuptiActivityEnable", &enable);
    find(cupti, "cuptiActivitySetAttribute", &set);
    find(cupti, "cuptiGetCallbackName", &name_of);
    find(cupti, "cuptiEnableCallback", &call_back);
    find(cupti, "cuptiActivityEnableDriverApi", &single[0]);
    find(cupti, "cuptiActivityEnableRuntimeApi", &single[1]);
    find(cupti, "cuptiActivityFlushAll", &flush_all);
    find(cupti, "cuptiActivityGetNextRecord", &next_record);
    while (empties < READY) empty[empties++] = zeroed();
    pthread_t thread;
    pthread_create(&thread, NULL, consume, NULL);
    records = file ? fopen(file, "w") : NULL;
    owner = getpid();
    void *subscriber;
    if (subscribe(&subscriber, nothing, NULL)) {
        fprintf(stderr, "floor: another has CUPTI\n");
        return 0;
    }
    // CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER
    uint8_t yes = 1;
    size_t size = sizeof yes;
    set(5, &size, &yes);
    callbacks(requested, completed);
    static const uint32_t kinds[] = {CONCURRENT_KERNEL, MEMCPY, MEMCPY2, MEMSET, MEMORY2, STREAM, CONTEXT, OVERHEAD};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) enable(kinds[i]);
    for (uint32_t domain = 1; domain <= 2; domain++) {
        const char *name;
        for (uint32_t number = 0; number < MOST && !name_of(domain, number, &name); number++) {
            if (!name || !is_recorded(name)) continue;
            if (is_called_back(name)) call_back(1, subscriber, domain, number);
            if (single[domain - 1]) single[domain - 1](number, 1);
        }
        if (!single[domain - 1]) enable(domain == 1 ? DRIVER : RUNTIME);
    }
    atexit(ended);
    return 1;
}
