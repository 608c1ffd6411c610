// Looks HIP's functions up in all the ways there are. What each finds is called once, with a size of its own.
//
// With OWN defined it has a dlsym of its own, as programs do that look into what is looked up.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int hipMalloc(void **, size_t);
int hipFree(void *);

#ifdef OWN
void *dlsym(void *handle, const char *name) {
    void *(*real)(void *, const char *) = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return real(handle, name);
}
#endif

static void call(const char *way, void *function, size_t size) {
    void *memory = 0;
    const char *error = dlerror();
    int status = function ? ((int (*)(void **, size_t))function)(&memory, size) : -1;
    printf("%s: status %d, %s\n", way, status, error ? error : "no error");
    hipFree(memory);
}

int main(void) {
    void *hip = 0;
    const char *names[] = {"libamdhip64.so.5", "libamdhip64.so.6"};
    for (int i = 0; !hip && i < 2; i++) hip = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!hip) return puts(dlerror()), 1;
    void *by_handle = dlsym(hip, "hipMalloc"), *by_version = dlvsym(hip, "hipMalloc", "hip_4.2");
    void *by_default = dlsym(RTLD_DEFAULT, "hipMalloc");
    void *by_default_version = dlvsym(RTLD_DEFAULT, "hipMalloc", "hip_4.2");
    call("linked", (void *)hipMalloc, 0x1001);
    call("handle", by_handle, 0x1002);
    call("handle, version", by_version, 0x1003);
    call("default", by_default, 0x1004);
    call("default, version", by_default_version, 0x1005);
    call("next", dlsym(RTLD_NEXT, "hipMalloc"), 0x1006);
    call("program", dlsym(dlopen(0, RTLD_NOW), "hipMalloc"), 0x1007);
#ifndef OWN
    int same = by_handle == (void *)hipMalloc && by_version == by_handle && by_default == by_handle;
    printf("one function: %d\n", same && by_default_version == by_handle);
#endif

    // What is not there, and what is not HIP's.
    printf("%d ", dlsym(hip, "hipNoSuchFunction") == 0);
    puts(dlerror());
    printf("%d ", dlvsym(hip, "hipMalloc", "hip_0.1") == 0);
    puts(dlerror());
    printf("%d ", dlsym(RTLD_NEXT, "no_such_function") == 0);
    puts(strrchr(dlerror(), ' '));
    void *old = dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_2.2.5"), *new = dlvsym(RTLD_DEFAULT, "memcpy", "GLIBC_2.14");
    printf("memcpy %d, dlsym %d\n", old && new && old != new, dlsym(RTLD_NEXT, "dlsym") != 0);
    printf("getppid %d\n", getppid() > 0);
    return 0;
}
