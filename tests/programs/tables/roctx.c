// Says what roctx returns; through the symbols that the program has linked, or those of a library it opens.
//
//   roctx [LIBRARY]
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#define CALL(name, type, ...) ((type)dlsym(library, name))(__VA_ARGS__)
typedef int (*with_id)(uint64_t);

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : RTLD_DEFAULT;
    if (count > 1 && !library) return puts(dlerror()), 1;
    CALL("roctxMarkA", void (*)(const char *), "an instant");
    printf("push %d\n", CALL("roctxRangePushA", int (*)(const char *), "a range"));
    printf("pop %d\n", CALL("roctxRangePop", int (*)(void)));
    uint64_t id = CALL("roctxRangeStartA", uint64_t (*)(const char *), "an open range");
    printf("start %lu\n", id);
    printf("pause %d\n", CALL("roctxProfilerPause", with_id, 0));
    CALL("roctxMarkA", void (*)(const char *), "in a pause");
    printf("resume %d\n", CALL("roctxProfilerResume", with_id, 0));
    CALL("roctxRangeStop", void (*)(uint64_t), id);
    uint64_t thread = 0;
    printf("thread %d", CALL("roctxGetThreadId", int (*)(uint64_t *), &thread));
    printf(" %lu\n", thread);
    printf("name %d\n", CALL("roctxNameOsThread", int (*)(const char *), "main"));
    return 0;
}
