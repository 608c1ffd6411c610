/* What a program with NVTX 3 does, NVTX's part included: the tables of nvtxDetail/nvtxTypes.h, the injection library loaded by
 * NVTX_INJECTION64_PATH. Prints what the calls return. Uses no GPU.
 *
 * nvtx OLD: as a copy of NVTX whose tables end before the domains. nvtx EMPTY: one that has no tables at all.
 * Compile: cc -O2 nvtx.c -o nvtx -ldl -lpthread */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

typedef void (*function)(void);
typedef struct { const char *unused; } *handle;
typedef struct {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    union { uint64_t u; int64_t i; double d; uint32_t u32; int32_t i32; float f; } payload;
    int32_t message_type;
    union { const char *ascii; const wchar_t *unicode; handle registered; } message;
} attributes;

enum { CORE_SIZE = 16, CORE2_SIZE = 16 };
static function core[CORE_SIZE], core2[CORE2_SIZE];
static function *core_places[CORE_SIZE + 1], *core2_places[CORE2_SIZE + 1];
static const char *what;

static int module_table(uint32_t module, function ***table, unsigned *size) {
    int is_core = module == 1, is_core2 = module == 5 && strcmp(what, "OLD");
    if (!is_core && !is_core2) return 0;
    *table = is_core ? core_places : core2_places;
    *size = is_core ? CORE_SIZE : CORE2_SIZE;
    return 1;
}

static struct { size_t size; int (*module_table)(uint32_t, function ***, unsigned *); } callbacks = {sizeof callbacks, module_table};

static const void *export_table(uint32_t id) {
    return id == 1 && strcmp(what, "EMPTY") ? &callbacks : NULL;
}

static int initialize(void) {
    for (int i = 1; i < CORE_SIZE; i++) core_places[i] = &core[i];
    for (int i = 1; i < CORE2_SIZE; i++) core2_places[i] = &core2[i];
    const char *path = getenv("NVTX_INJECTION64_PATH");
    int (*entry)(const void *(*)(uint32_t));
    /* Newer copies look among the loaded libraries first. */
    *(void **)&entry = dlsym(RTLD_DEFAULT, "InitializeInjectionNvtx2");
    if (!entry && path) *(void **)&entry = dlsym(dlopen(path, RTLD_LAZY), "InitializeInjectionNvtx2");
    return entry ? entry(export_table) : -1;
}

#define CALL(place, result, ...) ((result(*)(__VA_ARGS__))place)
#define MarkEx CALL(core[1], void, const attributes *)
#define MarkA CALL(core[2], void, const char *)
#define MarkW CALL(core[3], void, const wchar_t *)
#define RangeStartEx CALL(core[4], uint64_t, const attributes *)
#define RangeStartA CALL(core[5], uint64_t, const char *)
#define RangeStartW CALL(core[6], uint64_t, const wchar_t *)
#define RangeEnd CALL(core[7], void, uint64_t)
#define RangePushEx CALL(core[8], int, const attributes *)
#define RangePushA CALL(core[9], int, const char *)
#define RangePushW CALL(core[10], int, const wchar_t *)
#define RangePop CALL(core[11], int, void)
#define DomainMarkEx CALL(core2[1], void, handle, const attributes *)
#define DomainRangeStartEx CALL(core2[2], uint64_t, handle, const attributes *)
#define DomainRangeEnd CALL(core2[3], void, handle, uint64_t)
#define DomainRangePushEx CALL(core2[4], int, handle, const attributes *)
#define DomainRangePop CALL(core2[5], int, handle)
#define DomainRegisterStringA CALL(core2[10], handle, handle, const char *)
#define DomainRegisterStringW CALL(core2[11], handle, handle, const wchar_t *)
#define DomainCreateA CALL(core2[12], handle, const char *)
#define DomainCreateW CALL(core2[13], handle, const wchar_t *)

static attributes event(int message_type, const void *message) {
    attributes all = {.version = 3, .size = sizeof all, .message_type = message_type, .message.ascii = message};
    return all;
}

static void *other_thread(void *id) {
    RangeEnd(*(uint64_t *)id);
    printf("another thread: push %d", RangePushA("on a thread"));
    printf(", pop %d\n", RangePop());
    return NULL;
}

static void without_a_domain(void) {
    MarkA("mark A");
    MarkW(L"mark W \x1F600 \x110000!");
    attributes ascii = event(1, "mark Ex"), wide = event(2, L"wide \xe4"), none = event(0, NULL), small = event(1, "too small");
    MarkEx(&ascii);
    MarkEx(&wide);
    none.payload_type = 3, none.payload.d = 2.5;
    MarkEx(&none);
    none.payload_type = 5, none.payload.i32 = -7;
    MarkEx(&none);
    small.size = 8;
    MarkEx(&small);
    MarkEx(NULL);
    printf("pop of nothing %s\n", RangePop() < 0 ? "negative" : "not negative");
    printf("push %d\n", RangePushA("push A"));
    printf("push %d\n", RangePushW(L"push W"));
    attributes push = event(1, "push Ex");
    printf("push %d\n", RangePushEx(&push));
    printf("pop %d\n", RangePop());
    printf("pop %d\n", RangePop());
    printf("pop %d\n", RangePop());
    attributes start = event(1, "start Ex");
    uint64_t ids[3] = {RangeStartA("start A"), RangeStartW(L"start W"), RangeStartEx(&start)};
    printf("ids %s\n", ids[0] && ids[1] && ids[2] && ids[0] != ids[1] && ids[1] != ids[2] ? "differ" : "do not differ");
    RangeEnd(ids[1]);
    RangeEnd(ids[0]);
    pthread_t thread;
    pthread_create(&thread, NULL, other_thread, &ids[2]);
    pthread_join(thread, NULL);
}

static void domains(void) {
    handle one = DomainCreateA("one"), two = DomainCreateW(L"two"), again = DomainCreateA("one");
    printf("domains %s\n", one && two && one != two && one == again ? "differ by name" : "are wrong");
    handle a = DomainRegisterStringA(one, "registered A"), w = DomainRegisterStringW(two, L"registered W \xe4");
    attributes first = event(3, a), second = event(3, w), third = event(1, "crossing"), nothing = event(3, NULL);
    printf("push %d", DomainRangePushEx(one, &first));
    printf(" %d", DomainRangePushEx(two, &second));
    printf(" %d", DomainRangePushEx(NULL, &third));
    printf(" %d\n", DomainRangePushEx(one, &third));
    DomainMarkEx(two, &nothing);
    /* Each domain nests by itself. */
    printf("pop %d", DomainRangePop(one));
    printf(" %d", DomainRangePop(one));
    printf(" %d", DomainRangePop(NULL));
    printf(" %d\n", DomainRangePop(two));
    uint64_t id = DomainRangeStartEx(one, &second);
    DomainRangeEnd(one, id);
}

int main(int argc, char **argv) {
    what = argc > 1 ? argv[1] : "";
    printf("initialize %d\n", initialize());
    if (core[1]) without_a_domain();
    if (core2[1]) domains();
    printf("names %s\n", core[14] || core2[8] ? "taken" : "left alone");
    return 0;
}
