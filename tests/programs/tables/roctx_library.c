// Plays librocprofiler-sdk-roctx.so.1: its functions go through tables that it offers to tools when it is first used. What arrives at
// the bottom is said, with values to return that nobody else would make up.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

static void mark(const char *text) { printf("<mark %s>\n", text); }
static int push(const char *text) { return printf("<push %s>\n", text), 40; }
static int pop(void) { return printf("<pop>\n"), 41; }
static uint64_t start(const char *text) { return printf("<start %s>\n", text), 4200; }
static void stop(uint64_t id) { printf("<stop %lu>\n", id); }
static int thread_id(uint64_t *id) { return *id = 43, 44; }
static int pause_all(uint64_t tid) { return printf("<pause %lu>\n", tid), 45; }
static int resume(uint64_t tid) { return printf("<resume %lu>\n", tid), 46; }
static int name_thread(const char *text) { return printf("<name %s>\n", text), 47; }

// rocprofiler-sdk-roctx/api_trace.h. The last word of each belongs to somebody else.
static struct {
    uint64_t size;
    void (*mark)(const char *);
    int (*push)(const char *);
    int (*pop)(void);
    uint64_t (*start)(const char *);
    void (*stop)(uint64_t);
    int (*thread_id)(uint64_t *);
    uint64_t behind;
} core = {56, mark, push, pop, start, stop, thread_id, 77};
static struct {
    uint64_t size;
    int (*pause)(uint64_t);
    int (*resume)(uint64_t);
    uint64_t behind;
} control = {24, pause_all, resume, 77};
static struct {
    uint64_t size;
    int (*thread)(const char *);
} name = {16, name_thread};

static void offer(void) {
    static int offered;
    if (offered++) return;
    int (*set)(const char *, uint64_t, uint64_t, void **, uint64_t) = dlsym(RTLD_DEFAULT, "rocprofiler_set_api_table");
    void *tables[] = {&core, &control, &name};
    // Twice, as newer versions of rocprofiler-register may; the table of a third copy is left alone.
    for (int i = 0; set && i < 2; i++) printf("offer %d\n", set("roctx", 700, 0, tables, 3));
    if (core.behind != 77 || control.behind != 77) printf("written behind a table\n");
}
#define THROUGH(table, entry, ...) (offer(), table.entry(__VA_ARGS__))

void roctxMarkA(const char *text) { THROUGH(core, mark, text); }
int roctxRangePushA(const char *text) { return THROUGH(core, push, text); }
int roctxRangePop(void) { return THROUGH(core, pop); }
uint64_t roctxRangeStartA(const char *text) { return THROUGH(core, start, text); }
void roctxRangeStop(uint64_t id) { THROUGH(core, stop, id); }
int roctxGetThreadId(uint64_t *id) { return THROUGH(core, thread_id, id); }
int roctxProfilerPause(uint64_t tid) { return THROUGH(control, pause, tid); }
int roctxProfilerResume(uint64_t tid) { return THROUGH(control, resume, tid); }
int roctxNameOsThread(const char *text) { return THROUGH(name, thread, text); }
