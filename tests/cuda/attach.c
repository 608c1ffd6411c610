// CUPTI alone, attached by one thread while another creates a context: attach DELAY [own]. DELAY is in us behind cuInit; own: by cuCtxCreate.
// It ends by SIGSEGV where CUPTI has missed the context. ATTACH_CUPTI names the libcupti.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char text[] = ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry empty()\n{\n ret;\n}\n";
static void *cuda, *cupti;
static uint64_t initialised, delay;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void requested(uint8_t **buffer, size_t *size, size_t *most) {
    *size = 1 << 20;
    *buffer = aligned_alloc(4096, *size);
    *most = 0;
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size, (void)valid;
    free(buffer);
}

static void nothing(void *data, uint32_t domain, uint32_t number, const void *info) {
    (void)data, (void)domain, (void)number, (void)info;
}

#define CALL(library, name, types, ...)                                                                                 \
    do {                                                                                                                \
        int (*function) types = (int(*) types)dlsym(library, #name);                                                    \
        int status = function ? function(__VA_ARGS__) : -1;                                                             \
        if (status) {                                                                                                   \
            printf("%s %d\n", #name, status);                                                                           \
            _exit(2);                                                                                                   \
        }                                                                                                               \
    } while (0)

static void *attach(void *unused) {
    uint64_t begun;
    while (!(begun = __atomic_load_n(&initialised, __ATOMIC_ACQUIRE)) || now() < begun + delay * 1000) usleep(20);
    void *subscriber;
    CALL(cupti, cuptiSubscribe, (void **, void *, void *), &subscriber, nothing, NULL);
    CALL(cupti, cuptiActivityRegisterCallbacks, (void *, void *), requested, completed);
    CALL(cupti, cuptiActivityEnable, (uint32_t), 10);
    CALL(cupti, cuptiActivityEnable, (uint32_t), 4);
    return unused;
}

int main(int argc, char **argv) {
    const char *path = getenv("ATTACH_CUPTI");
    cuda = dlopen("libcuda.so.1", RTLD_NOW);
    cupti = dlopen(path ? path : "libcupti.so.13", RTLD_NOW);
    if (!cuda || !cupti || argc < 2) return 2;
    delay = (uint64_t)atol(argv[1]);
    pthread_t thread;
    pthread_create(&thread, NULL, attach, NULL);
    CALL(cuda, cuInit, (unsigned), 0);
    __atomic_store_n(&initialised, now(), __ATOMIC_RELEASE);
    void *context, *module, *kernel;
    if (argc > 2) CALL(cuda, cuCtxCreate_v2, (void **, unsigned, int), &context, 0, 0);
    else CALL(cuda, cuDevicePrimaryCtxRetain, (void **, int), &context, 0);
    CALL(cuda, cuCtxSetCurrent, (void *), context);
    CALL(cuda, cuModuleLoadData, (void **, const void *), &module, text);
    CALL(cuda, cuModuleGetFunction, (void **, void *, const char *), &kernel, module, "empty");
    for (int i = 0; i < 200; i++) {
        CALL(cuda, cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
             kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
        usleep(200);
    }
    CALL(cuda, cuCtxSynchronize, (void), );
    pthread_join(thread, NULL);
    return 0;
}
