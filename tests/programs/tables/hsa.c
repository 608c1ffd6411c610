// Plays ROCr towards the recorder, with tables of any version: builds them from a list of offsets (fixtures/tables), offers them
// in one of two ways, then calls every entry that was replaced and looks at what its original is called with.
//
//   hsa LIST tool|register|register,tool|tool,register|tool,copy [cut=TABLE:BYTES]
//
// tool: OnLoad; register: rocprofiler_set_api_table. The second of two finds the work done. copy: the tables of a second runtime, as
// register. cut: the table says it is shorter than it is.
#define _GNU_SOURCE
#include "any_call.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OUTSIDE 0x00dead00
#define CPU_AGENT 0x1c0
#define GPU_AGENT 0x2c0

struct entry {
    char table[32], name[80];
    uint32_t offset;
};
static struct entry entries[ANY_FUNCTIONS];
static int entry_count;

// A table of at most 1 KiB, and what lies behind it: somebody else's.
#define MOST 4096
struct table {
    const char *name;
    uint32_t size;
    _Alignas(16) uint8_t bytes[MOST], before[MOST];
};
static struct table tables[] = {{.name = "HsaApiTable"},        {.name = "CoreApiTable"},  {.name = "AmdExtTable"},
                                {.name = "FinalizerExtTable"},  {.name = "ImageExtTable"}, {.name = "ToolsApiTable"},
                                {.name = "PcSamplingExtTable"}};
enum { ROOT, CORE, AMD, TABLES = 7 };

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static struct table *table_of(const char *name) {
    for (int i = 0; i < TABLES; i++)
        if (!strcmp(tables[i].name, name)) return &tables[i];
    fail("no table is called %s", name);
}

static const struct entry *find(const char *name) {
    char member[84];
    snprintf(member, sizeof member, "%s_fn", name);
    for (int i = 0; i < entry_count; i++)
        if (!strcmp(entries[i].name, member)) return &entries[i];
    return NULL;
}

static uintptr_t *slot(const struct entry *entry) { return (uintptr_t *)(table_of(entry->table)->bytes + entry->offset); }

// The runtime -------------------------------------------------------------------------------------------------------------------

struct signal {
    int64_t kind;
    _Atomic int64_t value;
    uint64_t mailbox;
    uint32_t event, reserved;
    _Atomic uint64_t start, end;
    uint64_t queue, rest;
};
struct queue {
    uint32_t type, features;
    void *base;
    uint64_t doorbell;
    uint32_t size, reserved;
    uint64_t id;
    uint8_t rest[216];
};
struct packet {
    uint16_t header, setup, workgroup[3], reserved0;
    uint32_t grid[3], private_size, group_size;
    uint64_t kernel, kernarg, reserved2, completion;
};
typedef void (*writer)(const struct packet *, uint64_t);
typedef void (*interceptor)(const struct packet *, uint64_t, uint64_t, void *, writer);

static struct {
    interceptor call;
    void *data;
    struct queue *queue;
} intercepted[64];
static int intercepted_count;

// The last call of each entry by this thread, and how many there were.
static _Thread_local struct {
    uint64_t argument[12];
    int count;
} last[ANY_FUNCTIONS];

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_BOOTTIME, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void complete(uint64_t handle) {
    struct signal *signal = (void *)handle;
    signal->start = now();
    signal->end = now();
    atomic_fetch_sub(&signal->value, 1);
}

// Copies of a batch.
enum { BATCH = 5 };

static uint64_t new_signal(int64_t value) {
    struct signal *signal = aligned_alloc(64, sizeof *signal);
    *signal = (struct signal){.kind = 1};
    signal->value = value;
    return (uint64_t)signal;
}

static uint64_t new_queue(uint32_t size) {
    struct queue *queue = calloc(1, sizeof *queue);
    queue->size = size;
    return (uint64_t)queue;
}

static uint64_t agent_info(uint64_t agent, uint32_t info, void *value) {
    switch (info) {
    case 0: strcpy(value, "gfx90a"); return 0;
    case 14: *(uint32_t *)value = 131072; return 0;
    case 17: *(uint32_t *)value = agent == GPU_AGENT; return 0;
    case 0xa004: *(uint32_t *)value = agent == GPU_AGENT; return 0;
    case 0xa006: *(uint32_t *)value = 0x300; return 0;
    case 0xa009: strcpy(value, "Table GPU"); return 0;
    case 0xa00f: *(uint32_t *)value = 0; return 0;
    default: return 0x1001;
    }
}

uint64_t any_called(const struct any_call *call) {
    const char *name = entries[call->index].name;
    for (int i = 0; i < 12; i++) last[call->index].argument[i] = any_argument(call, i);
    last[call->index].count++;
#define IS(function) (!strcmp(name, function "_fn"))
    if (IS("hsa_iterate_agents")) {
        uint32_t (*visit)(uint64_t, void *) = (void *)call->reg[0];
        visit(CPU_AGENT, (void *)call->reg[1]);
        return visit(GPU_AGENT, (void *)call->reg[1]);
    }
    if (IS("hsa_agent_get_info")) return agent_info(call->reg[0], (uint32_t)call->reg[1], (void *)call->reg[2]);
    if (IS("hsa_system_get_info")) {
        struct timespec now;
        clock_gettime(CLOCK_BOOTTIME, &now);
        uint64_t value = (uint32_t)call->reg[0] == 2 ? now.tv_sec * 1000000000ull + now.tv_nsec : 1000000000;
        *(uint64_t *)call->reg[1] = value;
        return 0;
    }
    if (IS("hsa_signal_create") || IS("hsa_amd_signal_create")) {
        // Attributes of the second come before the result.
        *(uint64_t *)call->reg[IS("hsa_signal_create") ? 3 : 4] = new_signal((int64_t)call->reg[0]);
        return 0;
    }
    if (IS("hsa_amd_profiling_convert_tick_to_system_domain")) {
        *(uint64_t *)call->reg[2] = call->reg[1];
        return 0;
    }
    if (IS("hsa_amd_profiling_get_async_copy_time")) {
        const struct signal *signal = (const void *)call->reg[0];
        ((uint64_t *)call->reg[1])[0] = signal->start;
        ((uint64_t *)call->reg[1])[1] = signal->end;
        return 0;
    }
    if (IS("hsa_queue_create") || IS("hsa_amd_queue_intercept_create")) {
        *(uint64_t *)call->stack[1] = new_queue((uint32_t)call->reg[1]);
        return 0;
    }
    if (IS("hsa_amd_queue_intercept_register")) {
        intercepted[intercepted_count].queue = (void *)call->reg[0];
        intercepted[intercepted_count].call = (interceptor)call->reg[1];
        intercepted[intercepted_count++].data = (void *)call->reg[2];
        return 0;
    }
    if (!strncmp(name, "hsa_amd_memory_async_copy", 25)) {
        // All forms but the first succeed, at once.
        uint64_t *signal = &last[call->index].argument[IS("hsa_amd_memory_async_copy_rect") ? 9 : 7];
        if (IS("hsa_amd_memory_async_copy")) return 0x4000 + call->index;
        complete(*signal);
        return 0;
    }
    if (IS("hsa_amd_memory_async_batch_copy") || IS("hsa_amd_counted_queue_acquire")) return 0;
    if (IS("hsa_executable_iterate_symbols") || IS("hsa_code_object_reader_destroy")) return 0;
    if (IS("hsa_signal_destroy") || IS("hsa_signal_subtract_screlease") || IS("hsa_init") || IS("hsa_shut_down")) return 0;
    if (IS("hsa_amd_signal_async_handler") || IS("hsa_amd_profiling_set_profiler_enabled")) return 0;
    if (IS("hsa_amd_queue_set_priority") || IS("hsa_amd_queue_cu_set_mask")) return 0;
    // An error, and a different one for each: what a program gets back is what the original said.
    return 0x4000 + call->index;
}

// The tables --------------------------------------------------------------------------------------------------------------------

static uint32_t step = 0, major = 0;

static void read_list(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) fail("%s: %s", path, strerror(errno));
    char line[256];
    uint32_t root_major, root_step, core_major, core_step;
    if (!fgets(line, sizeof line, file) ||
        sscanf(line, "versions api %u.%u core %u.%u amd %u.%u", &root_major, &root_step, &core_major, &core_step, &major, &step) != 6)
        fail("%s: no versions", path);
    uint32_t sizes[5];
    if (!fgets(line, sizeof line, file) || sscanf(line, "sizeof HsaApiTable %u Core %u AmdExt %u Fin %u Img %u", &sizes[0],
                                                  &sizes[1], &sizes[2], &sizes[3], &sizes[4]) != 5)
        fail("%s: no sizes", path);
    for (int i = 0; i < 5; i++) tables[i].size = sizes[i];
    while (fgets(line, sizeof line, file)) {
        struct entry *entry = &entries[entry_count];
        if (sscanf(line, "%31s %u %79s", entry->table, &entry->offset, entry->name) != 3) fail("%s: %s", path, line);
        struct table *table = table_of(entry->table);
        if (table->size < entry->offset + 8) table->size = entry->offset + 8;
        entry_count += strcmp(entry->name, "version") != 0;
    }
    fclose(file);
    major = root_major;
}

static void build(const char *cut) {
    for (int i = 0; i < TABLES; i++)
        for (int at = 0; at < MOST; at += 8) *(uint64_t *)(tables[i].bytes + at) = OUTSIDE;
    for (int i = 0; i < entry_count; i++) *slot(&entries[i]) = any_function(i);
    for (int i = 0; i < TABLES; i++) {
        uint32_t size = tables[i].size, length = strlen(tables[i].name);
        if (cut && !strncmp(cut, tables[i].name, length) && cut[length] == ':') size = atoi(cut + length + 1);
        uint32_t version[4] = {i == ROOT ? major : 1, size, i == AMD ? step : 0, 0};
        memcpy(tables[i].bytes, version, sizeof version);
        if (i != ROOT && tables[ROOT].size >= 16 + 8 * (uint32_t)i) *(void **)(tables[ROOT].bytes + 8 + 8 * i) = tables[i].bytes;
        tables[i].size = size;
    }
    for (int i = 0; i < TABLES; i++) memcpy(tables[i].before, tables[i].bytes, MOST);
}

static bool changed(const struct entry *entry) {
    return *slot(entry) != *(uintptr_t *)(table_of(entry->table)->before + entry->offset);
}

// Nothing but whole entries inside the tables may have changed.
static int replaced(void) {
    int count = 0;
    for (int i = 0; i < entry_count; i++) count += changed(&entries[i]);
    int words = 0;
    for (int i = 0; i < TABLES; i++)
        for (uint32_t at = 0; at < MOST; at += 8)
            if (memcmp(tables[i].bytes + at, tables[i].before + at, 8)) {
                words++;
                if (at + 8 > tables[i].size) fail("%s was written at %u, it ends at %u", tables[i].name, at, tables[i].size);
            }
    if (words != count) fail("%d words were written, %d of them entries", words, count);
    return count;
}

// The tables of another copy of the library, which must be left alone.
static void *second(void) {
    static _Alignas(16) uint8_t root[MOST], core[MOST];
    memcpy(root, tables[ROOT].before, MOST);
    memcpy(core, tables[CORE].before, MOST);
    *(void **)(root + 16) = core;
    return root;
}

static void offer(const char *origin) {
    if (!strcmp(origin, "tool")) {
        bool (*load)(void *, uint64_t, uint64_t, const char *const *) = dlsym(RTLD_DEFAULT, "OnLoad");
        if (!load(tables[ROOT].bytes, major, 0, NULL)) fail("OnLoad answers false");
    } else {
        int (*set)(const char *, uint64_t, uint64_t, void **, uint64_t) = dlsym(RTLD_DEFAULT, "rocprofiler_set_api_table");
        void *offered[] = {strcmp(origin, "copy") ? tables[ROOT].bytes : second()};
        printf("register %d\n", set("hsa", 10000 * major, 0, offered, 1));
        printf("unknown name %d\n", set("rocdecode", 1, 0, offered, 1));
        void *core = *(void **)((uint8_t *)offered[0] + 16);
        if (!strcmp(origin, "copy") && memcmp(core, tables[CORE].before, MOST)) fail("the second runtime's table was changed");
    }
}

// Calls through the tables ------------------------------------------------------------------------------------------------------

typedef uint64_t (*anything)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                             uint64_t, uint64_t);
static int tested;
static bool was_called[ANY_FUNCTIONS];

// Calls `name` through the table, with arguments of these widths ('b' 1 byte, 'i' 4, 'p' 8, '.' changed on the way); `original` must be
// called once, with the same, and errno stay. Returns the status.
static uint32_t through(const char *name, const char *widths, const uint64_t *arguments, const char *original) {
    const struct entry *entry = find(name), *expected = find(original);
    if (!changed(entry)) fail("%s is not replaced", name);
    uint64_t a[12] = {0};
    int count = strlen(widths);
    memcpy(a, arguments, count * sizeof *a);
    int before = last[expected - entries].count;
    errno = 77;
    uint64_t status = ((anything)*slot(entry))(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
    if (errno != 77) fail("%s changed errno", name);
    if (last[expected - entries].count != before + 1) fail("%s does not call %s once", name, original);
    for (int i = 0; i < count; i++) {
        uint64_t mask = widths[i] == 'p' ? ~0ull : widths[i] == 'i' ? 0xffffffff : widths[i] == 'b' ? 0xff : 0;
        uint64_t seen = last[expected - entries].argument[i];
        if ((seen & mask) != (a[i] & mask)) fail("%s: argument %d is %#lx, not %#lx", name, i, seen, a[i]);
    }
    tested++;
    was_called[entry - entries] = true;
    return (uint32_t)status;
}

static void expect_same(const char *name, const char *widths, const uint64_t *arguments) {
    uint32_t status = through(name, widths, arguments, name);
    uint32_t own = 0x4000 + (uint32_t)(find(name) - entries);
    if (status != own && status != 0) fail("%s returns %#x, its original %#x", name, status, own);
}

static const struct packet *written;
static uint64_t written_count;
static struct packet copies[1024];
static void take(const struct packet *packets, uint64_t count) {
    if (written) fail("packets were written twice");
    memcpy(copies, packets, count * sizeof *packets);
    written = copies;
    written_count = count;
}

// Submits `count` packets in one callback and runs them; every third is a barrier, which must go on as it is.
static int submit(int queue, uint64_t count, uint64_t index) {
    static struct packet packets[512];
    int dispatches = 0;
    for (uint64_t i = 0; i < count; i++) {
        packets[i] = (struct packet){.header = i % 3 == 2 ? 3 : 2, .setup = 1, .workgroup = {64, 1, 1}, .grid = {64 * (i + 1), 1, 1},
                                     .kernel = 0x7000, .kernarg = 0x8000 + i};
        dispatches += packets[i].header == 2;
    }
    written = NULL;
    intercepted[queue].call(packets, count, index, intercepted[queue].data, take);
    if (!written || written_count != count) fail("of %lu packets %lu were written", count, written ? written_count : 0);
    for (uint64_t i = 0; i < count; i++) {
        struct packet expected = packets[i];
        expected.completion = copies[i].completion;
        if (memcmp(&expected, &copies[i], sizeof expected)) fail("packet %lu has changed", i);
        if ((packets[i].header == 2) != (copies[i].completion != 0)) fail("packet %lu has the wrong completion signal", i);
        if (copies[i].completion) complete(copies[i].completion);
    }
    return dispatches;
}

static uint64_t visited(uint64_t agent, void *data) { return (void)agent, (void)data, 0; }

// Calls the other entries, which are replaced where their calls are recorded, with addresses in one buffer in all registers.
static void call_others(bool by_register) {
    static _Alignas(64) uint64_t buffer[512];
    for (int i = 0; i < entry_count; i++) {
        char name[80];
        snprintf(name, sizeof name, "%.*s", (int)strlen(entries[i].name) - 3, entries[i].name);
        bool is_later = !strcmp(name, "hsa_queue_destroy") ||
                        (by_register && (!strcmp(name, "hsa_init") || !strcmp(name, "hsa_shut_down")));
        if (!changed(&entries[i]) || was_called[i] || is_later) continue;
        uint64_t arguments[6];
        for (int at = 0; at < 6; at++) arguments[at] = (uint64_t)(buffer + 8 * at);
        if (!strcmp(name, "hsa_iterate_agents")) arguments[0] = (uint64_t)visited;
        through(name, "pppppp", arguments, name);
    }
}

static void call_everything(bool by_register) {
    void *result = NULL;
    const uint64_t where = (uint64_t)&result;
    uint64_t create[] = {CPU_AGENT, 128, 1, 0xca11, 0xda7a, 11, 12, where};
    if (through("hsa_queue_create", "piippiip", create, "hsa_queue_create") != 0) fail("a CPU's queue is refused");
    // The recorder hears of a GPU's queue that fails, and tells the program.
    create[0] = GPU_AGENT;
    if (major < 2) create[1] = 16384; // smaller ones are made larger
    if (through("hsa_queue_create", "pii..iip", create, "hsa_amd_queue_intercept_create") != 0) fail("a GPU's queue is refused");
    void *first = result;
    if (intercepted_count != 1 || intercepted[0].queue != first) fail("a GPU's queue is not intercepted");
    through("hsa_amd_queue_intercept_create", "pii..iip", create, "hsa_amd_queue_intercept_create");
    if (intercepted_count != 2 || intercepted[1].queue != result) fail("another tool's queue is not intercepted");
    expect_same("hsa_amd_profiling_set_profiler_enabled", "pi", (uint64_t[]){(uint64_t)result, 1});

    expect_same("hsa_queue_add_write_index_scacq_screl", "pp", (uint64_t[]){(uint64_t)first, 1ull << 33});
    expect_same("hsa_queue_add_write_index_scacquire", "pp", (uint64_t[]){(uint64_t)first, 2});
    expect_same("hsa_queue_add_write_index_relaxed", "pp", (uint64_t[]){(uint64_t)first, 3});
    expect_same("hsa_queue_add_write_index_screlease", "pp", (uint64_t[]){(uint64_t)first, 4});

    // One packet, several, more than older runtimes' staging area; a batch that a ring's end would split.
    int dispatches = 0;
    uint64_t counts[] = {1, 2, 300, 64}, index = 0;
    for (int i = 0; i < 4; i++) {
        dispatches += submit(0, counts[i], index);
        dispatches += submit(1, counts[i], index);
        index += counts[i];
    }
    printf("dispatches %d\n", dispatches);

    expect_same("hsa_amd_memory_async_copy", "pppppipp",
                (uint64_t[]){0xd0, GPU_AGENT, 0x50, CPU_AGENT, 4096, 2, 0xde95, new_signal(1)});
    uint64_t to[] = {0xd2, 256, 4096}, from[] = {0x52, 512, 8192};
    uint32_t to_at[] = {1, 2, 3}, from_at[] = {4, 5, 6}, range[] = {64, 8, 2};
    uint64_t rect[] = {(uint64_t)to, (uint64_t)to_at, (uint64_t)from, (uint64_t)from_at, (uint64_t)range,
                       GPU_AGENT,    1,               7,              0xde97,            new_signal(1)};
    expect_same("hsa_amd_memory_async_copy_rect", "ppppppiipp", rect);
    if (find("hsa_amd_memory_async_copy_on_engine"))
        expect_same("hsa_amd_memory_async_copy_on_engine", "pppppippib",
                    (uint64_t[]){0xd1, GPU_AGENT, 0x51, CPU_AGENT, 8192, 3, 0xde96, new_signal(1), 4, 1});
    if (find("hsa_amd_memory_async_batch_copy"))
        expect_same("hsa_amd_memory_async_batch_copy", "piip", (uint64_t[]){0xc0, BATCH, 1, 0xde98});
    if (find("hsa_amd_counted_queue_acquire"))
        expect_same("hsa_amd_counted_queue_acquire", "piipppp", (uint64_t[]){GPU_AGENT, 0, 1, 0xca11, 0xda7a, 0, where});
    expect_same("hsa_amd_profiling_async_copy_enable", "b", (uint64_t[]){1});
    expect_same("hsa_signal_destroy", "p", (uint64_t[]){new_signal(0)});

    expect_same("hsa_code_object_reader_create_from_file", "ip", (uint64_t[]){0, where});
    expect_same("hsa_code_object_reader_create_from_memory", "ppp", (uint64_t[]){0x1000, 0x2000, where});
    expect_same("hsa_executable_load_agent_code_object", "ppppp", (uint64_t[]){0xe1, GPU_AGENT, 0x4ead, 0x0b7, where});
    expect_same("hsa_executable_freeze", "pp", (uint64_t[]){0xe2, 0x0b8});
    expect_same("hsa_executable_destroy", "p", (uint64_t[]){0xe3});
    expect_same("hsa_code_object_reader_destroy", "p", (uint64_t[]){0x4eae});

    if (find("hsa_amd_queue_create")) {
        struct {
            uint16_t version, flags;
            uint8_t engine, reserved[3];
            uint32_t bytes, priority;
            uint64_t callback, data;
            void *queue;
            uint64_t mask;
            uint32_t type, private_size, mask_bits, rest[9];
        } wanted[3] = {{.version = 1, .bytes = 256 * 64, .priority = 1, .callback = 0xcb, .data = 0xda, .private_size = 7},
                       {.version = 1, .bytes = 512 * 64, .priority = 2, .mask = 0x3a54, .mask_bits = 32},
                       {.version = 1, .engine = 1, .bytes = 4096}};
        int ours = intercepted_count;
        // The first two become intercept queues, with priority and mask; the last is made as it is.
        uint32_t status = through("hsa_amd_queue_create", "p..", (uint64_t[]){GPU_AGENT, (uint64_t)wanted, 3}, "hsa_amd_queue_create");
        if (status != 0x4000 + (uint32_t)(find("hsa_amd_queue_create") - entries)) fail("the failure of one queue is not returned");
        uint64_t *asked = last[find("hsa_amd_queue_create") - entries].argument;
        if (asked[1] != (uint64_t)&wanted[2] || (uint32_t)asked[2] != 1) fail("another queue was passed on");
        if (intercepted_count != ours + 2 || !wanted[0].queue || !wanted[1].queue) fail("queues by descriptor are not intercepted");
        if (((struct queue *)wanted[1].queue)->size != 512) fail("a queue has another size");
        uint64_t *mask = last[find("hsa_amd_queue_cu_set_mask") - entries].argument;
        if (mask[0] != (uint64_t)wanted[1].queue || (uint32_t)mask[1] != 32 || mask[2] != 0x3a54) fail("a queue has another mask");
        uint64_t *priority = last[find("hsa_amd_queue_set_priority") - entries].argument;
        if (priority[0] != (uint64_t)wanted[1].queue || (uint32_t)priority[1] != 2) fail("a queue has another priority");
        printf("described %d\n", submit(ours, 5, 0));
    }

    call_others(by_register);
    expect_same("hsa_queue_destroy", "p", (uint64_t[]){(uint64_t)first});
    if (by_register) {
        expect_same("hsa_init", "", NULL);
        expect_same("hsa_shut_down", "", NULL);
        submit(1, 1, index++);
        expect_same("hsa_shut_down", "", NULL);
        // The runtime is gone: packets go on, untouched.
        struct packet packet = {.header = 2, .setup = 1};
        written = NULL;
        intercepted[1].call(&packet, 1, index, intercepted[1].data, take);
        if (!written || memcmp(copies, &packet, sizeof packet)) fail("a packet behind the shutdown has changed");
    }
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    read_list(arguments[1]);
    const char *cut = count > 3 ? arguments[3] + strlen("cut=") : NULL;
    build(cut);
    char *origins = arguments[2], *origin = strtok(origins, ",");
    bool by_register = !strcmp(origin, "register");
    offer(origin);
    int hooks = replaced();
    if ((origin = strtok(NULL, ","))) {
        static uint8_t once[TABLES][MOST];
        for (int i = 0; i < TABLES; i++) memcpy(once[i], tables[i].bytes, MOST);
        offer(origin);
        for (int i = 0; i < TABLES; i++)
            if (memcmp(once[i], tables[i].bytes, MOST)) fail("the second offer changed %s", tables[i].name);
    }
    if (hooks) call_everything(by_register);
    printf("hooks %d\n", hooks);
    // Every entry that is replaced was called, hsa_queue_create and hsa_shut_down twice.
    if (hooks && tested != hooks + 1 + by_register) fail("%d entries are replaced, %d calls were made", hooks, tested);
    if (!by_register && hooks) ((void (*)(void))dlsym(RTLD_DEFAULT, "OnUnload"))();
}
