// What a program does with CUDA's driver, counted: work WHAT...
//
// Each WHAT is one of
//   threads=N      so many threads do what follows; 1 to begin with
//   launch=N       launches of an empty kernel by each thread, on a stream of its own, and a wait for them
//   async=N        the same without the wait
//   copy=N         copies of 64 KiB, to the device, on it and back by turns
//   fill=N         fills of 64 KiB
//   graph=N        launches of a graph with 10 kernels
//   nodes=N        graphs whose first launch comes later have so many kernels, not 10
//   capture=N      launches into a graph that never runs
//   elsewhere=N    as capture, launched by another thread than the one that captures
//   context=N      launches on the default stream of a new context, and as many on a stream of its own
//   sleep=MS       nothing
//   await=N        nothing, until the file awaited-N is there; 0, as the first of all, is before cuInit
//   own            as the first of all: the first context is one of cuCtxCreate, not the primary one
//   marks=N        roctxMarkA, each 100 ms
//   rss            the resident memory, KiB
//   cpu            the CPU time of the process so far, ns, and of that what the recorder's threads took
//   fork=N         children that do nothing with CUDA; the last one ends by _exit, the others return
//   fork-marks=N   the same, each with a mark and 100 ms
//   start, stop    rpdstart and rpdstop, where the recorder is in the process
//   flush          rpdflush
//   drain=MS       rpddrain for so long at most; what it returns
//   free           frees the memory of the threads, which none uses afterwards
//   profile        cuptiSubscribe, as another profiler; where the program is linked with CUPTI. What it answers
//   rate=MS        launches of each thread for so long; how many, and how long one takes
//   until=N        the same for 10 ms of each 100 ms, until the file awaited-N is there
//   _exit, kill, abort, exit   how it ends; otherwise main returns
//
// At each WHAT a line says what was done, with CLOCK_MONOTONIC before and after. libcuda comes by dlopen, as for every real program that
// finds CUDA by cudart.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long long Address;
typedef void *Handle;

static int (*cuInit)(unsigned);
static int (*cuDeviceGet)(int *, int);
static int (*cuDevicePrimaryCtxRetain)(Handle *, int);
static int (*cuCtxCreate)(Handle *, unsigned, int);
static int (*cuCtxSetCurrent)(Handle);
static int (*cuModuleLoadData)(Handle *, const void *);
static int (*cuModuleGetFunction)(Handle *, Handle, const char *);
static int (*cuStreamCreate)(Handle *, unsigned);
static int (*cuStreamSynchronize)(Handle);
static int (*cuLaunchKernel)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle,
                             void **, void **);
static int (*cuMemAlloc)(Address *, size_t);
static int (*cuMemFree)(Address);
static int (*cuMemcpyHtoDAsync)(Address, const void *, size_t, Handle);
static int (*cuMemcpyDtoDAsync)(Address, Address, size_t, Handle);
static int (*cuMemcpyDtoHAsync)(void *, Address, size_t, Handle);
static int (*cuMemsetD8Async)(Address, unsigned char, size_t, Handle);
static int (*cuStreamBeginCapture)(Handle, int);
static int (*cuStreamEndCapture)(Handle, Handle *);
static int (*cuGraphInstantiate)(Handle *, Handle, unsigned long long);
static int (*cuGraphLaunch)(Handle, Handle);

static const char module_text[] =
    ".version 7.0\n.target sm_52\n.address_size 64\n"
    ".visible .entry _Z5emptyv()\n{\n ret;\n}\n";

extern int cuptiSubscribe(Handle *, void (*)(Handle, unsigned, unsigned, const void *), Handle)
    __attribute__((weak));

enum { MOST = 64, BYTES = 65536 };

static Handle context, kernel, streams[MOST], graphs[MOST];
static Address memory[MOST];
static void *host[MOST];
static int threads = 1, nodes = 10;

static void check(int status, const char *what) {
    if (status) {
        printf("%s failed: %d\n", what, status);
        fflush(stdout);
        _Exit(3);
    }
}
#define CHECK(call) check(call, #call)

static uint64_t ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
static uint64_t now(void) { return ns(CLOCK_MONOTONIC); }

static void launch(Handle stream) {
    CHECK(cuLaunchKernel(kernel, 3, 2, 1, 64, 1, 1, 128, stream, NULL, NULL));
}

static void capture(int n, int count, int makes) {
    Handle graph;
    CHECK(cuStreamBeginCapture(streams[n], 2));
    for (int i = 0; i < count; i++) launch(streams[n]);
    CHECK(cuStreamEndCapture(streams[n], &graph));
    if (makes) CHECK(cuGraphInstantiate(&graphs[n], graph, 0));
}

struct launches {
    Handle stream;
    int count;
};

static void *launch_all(void *argument) {
    struct launches *launches = argument;
    CHECK(cuCtxSetCurrent(context));
    for (int i = 0; i < launches->count; i++) launch(launches->stream);
    return NULL;
}

static void capture_elsewhere(int n, int count) {
    Handle graph;
    pthread_t thread;
    struct launches launches = {streams[n], count};
    CHECK(cuStreamBeginCapture(streams[n], 2));
    pthread_create(&thread, NULL, launch_all, &launches);
    pthread_join(thread, NULL);
    CHECK(cuStreamEndCapture(streams[n], &graph));
}

struct job {
    const char *what;
    long count;
    int thread;
    long done;
};

static void *work(void *argument) {
    struct job *job = argument;
    int n = job->thread;
    CHECK(cuCtxSetCurrent(context));
    if (!streams[n]) {
        CHECK(cuStreamCreate(&streams[n], 1));
        CHECK(cuMemAlloc(&memory[n], 2 * BYTES));
        host[n] = calloc(1, BYTES);
    }
    Handle stream = streams[n];
    if (!strcmp(job->what, "rate")) {
        for (uint64_t end = now() + (uint64_t)job->count * 1000000; now() < end;) {
            for (int i = 0; i < 100; i++) launch(stream);
            job->done += 100;
        }
    } else if (!strcmp(job->what, "capture")) {
        capture(n, (int)job->count, 0);
    } else if (!strcmp(job->what, "elsewhere")) {
        capture_elsewhere(n, (int)job->count);
    } else {
        if (!strcmp(job->what, "graph") && !graphs[n]) capture(n, nodes, 1);
        for (long i = 0; i < job->count; i++) {
            if (!strcmp(job->what, "launch") || !strcmp(job->what, "async")) launch(stream);
            else if (!strcmp(job->what, "graph")) CHECK(cuGraphLaunch(graphs[n], stream));
            else if (!strcmp(job->what, "fill")) CHECK(cuMemsetD8Async(memory[n], 7, BYTES, stream));
            else if (i % 3 == 0) CHECK(cuMemcpyHtoDAsync(memory[n], host[n], BYTES, stream));
            else if (i % 3 == 1) CHECK(cuMemcpyDtoDAsync(memory[n] + BYTES, memory[n], BYTES, stream));
            else CHECK(cuMemcpyDtoHAsync(host[n], memory[n], BYTES, stream));
        }
        job->done = job->count;
    }
    if (strcmp(job->what, "async")) CHECK(cuStreamSynchronize(stream));
    return NULL;
}

static void all(const char *what, long count) {
    pthread_t ids[MOST];
    struct job jobs[MOST];
    uint64_t begin = now();
    long done = 0;
    for (int n = 0; n < threads; n++) {
        jobs[n] = (struct job){what, count, n, 0};
        pthread_create(&ids[n], NULL, work, &jobs[n]);
    }
    for (int n = 0; n < threads; n++) {
        pthread_join(ids[n], NULL);
        done += jobs[n].done;
    }
    uint64_t end = now();
    printf("%s %ld %" PRIu64 " %" PRIu64, what, done, begin, end);
    if (!strcmp(what, "rate")) printf(" %.0f ns", (double)(end - begin) * threads / (double)done);
    printf("\n");
    fflush(stdout);
}

static void call(const char *name) {
    void (*function)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, name);
    uint64_t begin = now();
    if (function) function();
    printf("%s %d %" PRIu64 " %" PRIu64 "\n", name, !!function, begin, now());
    fflush(stdout);
}

static void in_a_context(long count) {
    uint64_t begin = now();
    Handle made, stream;
    CHECK(cuCtxCreate(&made, 0, 0));
    CHECK(cuStreamCreate(&stream, 1));
    for (long i = 0; i < count; i++) launch(NULL), launch(stream);
    CHECK(cuStreamSynchronize(NULL));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuCtxSetCurrent(context));
    printf("context %ld %" PRIu64 " %" PRIu64 "\n", count, begin, now());
    fflush(stdout);
}

static void drain(long ms) {
    uint64_t (*function)(uint64_t) = (uint64_t(*)(uint64_t))dlsym(RTLD_DEFAULT, "rpddrain");
    uint64_t begin = now();
    uint64_t open = function ? function((uint64_t)ms * 1000000) : 0;
    printf("drain %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", open, begin, now());
    fflush(stdout);
}

static void mark(void) {
    void (*function)(const char *) = (void (*)(const char *))dlsym(RTLD_DEFAULT, "roctxMarkA");
    if (function) function("mark");
    usleep(100000);
}

static void rss(void) {
    unsigned long size, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu %lu", &size, &resident) != 2) exit(2);
    fclose(file);
    printf("rss %lu 0 0\n", resident * (unsigned long)sysconf(_SC_PAGESIZE) / 1024);
    fflush(stdout);
}

static uint64_t recorders(void) {
    uint64_t taken = 0;
    char path[300], name[16];
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *thread; threads && (thread = readdir(threads));) {
        unsigned long long one = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", thread->d_name);
        FILE *file = fopen(path, "r");
        int is_one = file && fgets(name, sizeof name, file) && !strncmp(name, "rpd-", 4);
        if (file) fclose(file);
        if (!is_one) continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", thread->d_name);
        file = fopen(path, "r");
        if (file && fscanf(file, "%llu", &one) == 1) taken += one;
        if (file) fclose(file);
    }
    if (threads) closedir(threads);
    return taken;
}

static void cpu(void) {
    uint64_t all = ns(CLOCK_PROCESS_CPUTIME_ID);
    printf("cpu %" PRIu64 " %" PRIu64 " 0\n", all, recorders());
    fflush(stdout);
}

static void frees(void) {
    uint64_t begin = now();
    int count = 0;
    for (int n = 0; n < MOST; n++)
        if (memory[n]) {
            CHECK(cuMemFree(memory[n]));
            memory[n] = 0;
            count++;
        }
    printf("free %d %" PRIu64 " %" PRIu64 "\n", count, begin, now());
    fflush(stdout);
}

static void nothing(Handle data, unsigned domain, unsigned number, const void *what) {
    (void)data, (void)domain, (void)number, (void)what;
}

static void profile(void) {
    Handle subscriber;
    uint64_t begin = now();
    int status = cuptiSubscribe ? cuptiSubscribe(&subscriber, nothing, NULL) : -1;
    printf("profile %d %" PRIu64 " %" PRIu64 "\n", status, begin, now());
    fflush(stdout);
}

static void children(long count, int marks) {
    for (long i = 0; i < count; i++) {
        pid_t child = fork();
        if (child == 0) {
            if (marks) mark();
            if (i == count - 1) _exit(0);
            exit(0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        if (status) printf("child ended by %d\n", status);
    }
    printf("fork %ld 0 0\n", count);
    fflush(stdout);
}

static int is_awaited(long number) {
    char name[32];
    snprintf(name, sizeof name, "awaited-%ld", number);
    return access(name, F_OK) == 0;
}

static void await(long number) {
    uint64_t begin = now();
    printf("await %ld %" PRIu64 " %" PRIu64 "\n", number, begin, begin);
    fflush(stdout);
    while (!is_awaited(number)) usleep(1000);
}

static void until(long number) {
    while (!is_awaited(number)) {
        all("rate", 10);
        usleep(90000);
    }
}

static void find(Handle library, const char *name, void *place) {
    void *address = dlsym(library, name);
    if (!address) {
        printf("no %s\n", name);
        exit(2);
    }
    memcpy(place, &address, sizeof address);
}

int main(int argc, char **argv) {
    Handle library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        printf("no libcuda.so.1\n");
        return 2;
    }
    find(library, "cuInit", &cuInit);
    find(library, "cuDeviceGet", &cuDeviceGet);
    find(library, "cuDevicePrimaryCtxRetain", &cuDevicePrimaryCtxRetain);
    find(library, "cuCtxCreate_v2", &cuCtxCreate);
    find(library, "cuCtxSetCurrent", &cuCtxSetCurrent);
    find(library, "cuModuleLoadData", &cuModuleLoadData);
    find(library, "cuModuleGetFunction", &cuModuleGetFunction);
    find(library, "cuStreamCreate", &cuStreamCreate);
    find(library, "cuStreamSynchronize", &cuStreamSynchronize);
    find(library, "cuLaunchKernel", &cuLaunchKernel);
    find(library, "cuMemAlloc_v2", &cuMemAlloc);
    find(library, "cuMemFree_v2", &cuMemFree);
    find(library, "cuMemcpyHtoDAsync_v2", &cuMemcpyHtoDAsync);
    find(library, "cuMemcpyDtoDAsync_v2", &cuMemcpyDtoDAsync);
    find(library, "cuMemcpyDtoHAsync_v2", &cuMemcpyDtoHAsync);
    find(library, "cuMemsetD8Async", &cuMemsetD8Async);
    find(library, "cuStreamBeginCapture_v2", &cuStreamBeginCapture);
    find(library, "cuStreamEndCapture", &cuStreamEndCapture);
    find(library, "cuGraphInstantiateWithFlags", &cuGraphInstantiate);
    find(library, "cuGraphLaunch", &cuGraphLaunch);
    int is_before = argc > 1 && !strcmp(argv[1], "await=0"), is_own = argc > 1 && !strcmp(argv[1], "own");
    if (is_before) await(0);
    uint64_t begin = now();
    int status = cuInit(0);
    printf("cuInit %d %" PRIu64 " %" PRIu64 "\n", status, begin, now());
    fflush(stdout);
    if (status) return 4;
    Handle module;
    int device;
    CHECK(cuDeviceGet(&device, 0));
    if (is_own) CHECK(cuCtxCreate(&context, 0, device));
    else CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, module_text));
    CHECK(cuModuleGetFunction(&kernel, module, "_Z5emptyv"));
    for (int i = 1 + is_before + is_own; i < argc; i++) {
        char *number = strchr(argv[i], '=');
        long count = number ? atol(number + 1) : 0;
        if (number) *number = 0;
        if (!strcmp(argv[i], "threads")) threads = (int)count;
        else if (!strcmp(argv[i], "nodes")) nodes = (int)count;
        else if (!strcmp(argv[i], "sleep")) usleep((useconds_t)count * 1000);
        else if (!strcmp(argv[i], "await")) await(count);
        else if (!strcmp(argv[i], "fork")) children(count, 0);
        else if (!strcmp(argv[i], "fork-marks")) children(count, 1);
        else if (!strcmp(argv[i], "context")) in_a_context(count);
        else if (!strcmp(argv[i], "drain")) drain(count);
        else if (!strcmp(argv[i], "rss")) rss();
        else if (!strcmp(argv[i], "cpu")) cpu();
        else if (!strcmp(argv[i], "until")) until(count);
        else if (!strcmp(argv[i], "marks")) while (count--) mark();
        else if (!strcmp(argv[i], "free")) frees();
        else if (!strcmp(argv[i], "profile")) profile();
        else if (!strcmp(argv[i], "start")) call("rpdstart");
        else if (!strcmp(argv[i], "stop")) call("rpdstop");
        else if (!strcmp(argv[i], "flush")) call("rpdflush");
        else if (!strcmp(argv[i], "_exit")) _exit(5);
        else if (!strcmp(argv[i], "exit")) exit(6);
        else if (!strcmp(argv[i], "abort")) abort();
        else if (!strcmp(argv[i], "kill")) kill(getpid(), SIGKILL);
        else all(argv[i], count);
    }
    return 0;
}
