// Plays HIP towards the recorder: offers dispatch tables of any size through rocprofiler_set_api_table, then calls every entry as HIP's own
// header declares it, with different bytes in each argument, and looks at what its original is called with.
//
//   hip LIST SIZE        LIST: description/dispatch.txt; SIZE: bytes of the table
//
// functions.inc has a line `DECLARED(number, name, type)` for each function that the header declares, and `PLAIN(number, name, widths)` for
// the others that the recorder describes: 'p' 8 bytes, 'i' 4, 's' 2, 'b' 1.
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

extern "C" {
#include "any_call.h"
}

[[noreturn]] static void fail(const std::string &what) {
    fprintf(stderr, "%s\n", what.c_str());
    exit(1);
}

// Two copies of the library: the second one's originals are others.
static const char *calling;
static int copy_called, calls;

// Where arguments that are addresses point: the recorder looks at what stands there. Zeros.
static char arena[1 << 20];

// The bytes of argument `place`: an address, or something that no other argument has.
template <class T> static T value(int place) {
    T made;
    if constexpr (std::is_pointer<T>::value) {
        made = (T)(arena + 4096 * (place + 1));
    } else if constexpr (std::is_same<T, bool>::value) {
        made = place % 2;
    } else {
        memset(&made, 0x11 + place, sizeof made);
    }
    return made;
}

template <class T> static void expect(const T &argument, int place) {
    T expected = value<T>(place);
    if (memcmp(&argument, &expected, sizeof expected))
        fail(std::string(calling) + ": argument " + std::to_string(place) + " has changed");
}

// The original of a declared function: number `N`, of copy `C`.
template <int N, int C, class F> struct Original;
template <int N, int C, class R, class... A> struct Original<N, C, R(A...)> {
    static_assert(sizeof(R) == 4, "a status");
    static R called(A... arguments) {
        int place = 0;
        (void)place;
        (expect<A>(arguments, place++), ...);
        copy_called = C;
        calls++;
        errno = 5;
        return (R)(1 + 2 * N + C);
    }
    static void call(void *entry, const char *name) {
        std::tuple<A...> arguments;
        int place = 0;
        (void)place;
        std::apply([&](A &...a) { ((a = value<A>(place++)), ...); }, arguments);
        calling = name;
        calls = 0;
        errno = 77;
        R status = std::apply((R(*)(A...))entry, arguments);
        if (errno != 5) fail(std::string(name) + ": errno is not the original's");
        if (calls != 1 || copy_called != C) fail(std::string(name) + ": its original is not called once");
        if ((int)status != 1 + 2 * N + C) fail(std::string(name) + ": another status");
    }
};

static const char *widths;
extern "C" uint64_t any_called(const struct any_call *call) {
    for (int i = 0; widths[i]; i++) {
        uint64_t mask = widths[i] == 'p' ? ~0ull : widths[i] == 'i' ? 0xffffffff : widths[i] == 's' ? 0xffff : 0xff;
        uint64_t expected = (uint64_t)(arena + 4096 * (i + 1));
        if ((any_argument(call, i) ^ expected) & mask) fail(std::string(calling) + ": argument " + std::to_string(i) + " has changed");
    }
    copy_called = (int)call->index % 2;
    calls++;
    errno = 5;
    return 1 + call->index;
}

static void call_plain(void *entry, const char *name, const char *its_widths, int number, int copy) {
    typedef int (*anything)(char *, char *, char *, char *, char *, char *, char *, char *, char *, char *, char *, char *, char *, char *);
    char *a[14];
    for (int i = 0; i < 14; i++) a[i] = arena + 4096 * (i + 1);
    calling = name;
    widths = its_widths;
    calls = 0;
    errno = 77;
    int status =
        ((anything)entry)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13]);
    if (errno != 5) fail(std::string(name) + ": errno is not the original's");
    if (calls != 1 || copy_called != copy) fail(std::string(name) + ": its original is not called once");
    if (status != 1 + 2 * number + copy) fail(std::string(name) + ": another status");
}

struct Function {
    const char *name;
    void *original[2];
    void (*call[2])(void *, const char *);
    const char *widths;
    int number;
};
#define DECLARED(number, name, ...)                                                                                                 \
    {#name,                                                                                                                         \
     {(void *)Original<number, 0, __VA_ARGS__>::called, (void *)Original<number, 1, __VA_ARGS__>::called},                         \
     {Original<number, 0, __VA_ARGS__>::call, Original<number, 1, __VA_ARGS__>::call},                                              \
     nullptr,                                                                                                                       \
     number},
#define PLAIN(number, name, widths) {#name, {(void *)any_function(2 * number), (void *)any_function(2 * number + 1)}, {}, widths, number},
static const Function functions[] = {
#include "functions.inc"
};

struct Table {
    std::vector<uint64_t> words, before;
    std::vector<std::string> names;
};

// A table of `size` bytes; entries behind it belong to somebody else.
static Table build(const char *list, size_t size, int copy) {
    Table table;
    FILE *file = fopen(list, "r");
    char name[100];
    int index, offset;
    table.words.push_back(size);
    table.names.push_back("size");
    while (file && fscanf(file, "%d %d %99s", &index, &offset, name) == 3) {
        if (offset != (int)(8 * table.words.size())) fail("the list has gaps");
        void *original = (void *)any_function(1000 + copy);
        for (const Function &function : functions)
            if (!strcmp(function.name, name)) original = function.original[copy];
        table.words.push_back((uint64_t)original);
        table.names.push_back(name);
    }
    // Entries that a newer version has.
    while (table.words.size() < 520) table.words.push_back((uint64_t)any_function(1002)), table.names.push_back("newer");
    table.before = table.words;
    return table;
}

static int call_all(Table &table, size_t size, int copy) {
    int replaced = 0;
    for (size_t i = 0; i < table.words.size(); i++) {
        if (table.words[i] == table.before[i]) continue;
        replaced++;
        if (8 * (i + 1) > size) fail(table.names[i] + " stands behind the table and was replaced");
        const Function *called = nullptr;
        for (const Function &function : functions)
            if (function.name == table.names[i]) called = &function;
        if (!called) fail(table.names[i] + " is replaced, but not tested");
        if (called->widths) call_plain((void *)table.words[i], called->name, called->widths, called->number, copy);
        else called->call[copy]((void *)table.words[i], called->name);
    }
    return replaced;
}

int main(int, char **arguments) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    size_t size = strtoul(arguments[2], nullptr, 10);
    auto set = (int (*)(const char *, uint64_t, uint64_t, void **, uint64_t))dlsym(RTLD_DEFAULT, "rocprofiler_set_api_table");
    uint64_t compiler[] = {80, 1, 2, 3, 4, 5, 6, 7, 8, 9}, compiler_before[10];
    memcpy(compiler_before, compiler, sizeof compiler);
    void *offered = compiler;
    if (set("hip_compiler", 60200, 0, &offered, 1) || memcmp(compiler, compiler_before, sizeof compiler)) fail("hip_compiler");
    Table tables[] = {build(arguments[1], size, 0), build(arguments[1], size, 1), build(arguments[1], size, 0)};
    // Each copy of the library, and the first one again.
    for (int copy : {0, 1, 2, 0}) {
        offered = tables[copy].words.data();
        if (set("hip", 60200, copy, &offered, 1)) fail("a table is not taken");
    }
    if (tables[2].words != tables[2].before) fail("the table of a third copy was changed");
    int replaced = call_all(tables[0], size, 0);
    if (call_all(tables[1], size, 1) != replaced) fail("the copies differ");
    printf("replaced %d\n", replaced);
    return 0;
}
