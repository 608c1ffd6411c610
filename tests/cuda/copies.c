// Copies of every kind that CUDA's driver has, so many of each: copies COUNT
//
// Each kind has a number of bytes of its own. A line says the kind, how many, how many bytes, and the calls; or which kind this machine cannot do.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long Address;
typedef void *Handle;

// CUDA_MEMCPY2D and CUDA_ARRAY_DESCRIPTOR.
enum { HOST = 1, DEVICE = 2, UNSIGNED_INT32 = 3 };
struct side {
    size_t x, y;
    int type;
    void *host;
    Address device;
    Handle array;
    size_t pitch;
};
struct rectangle {
    struct side source, destination;
    size_t width, height;
};
struct array {
    size_t width, height;
    int format;
    unsigned channels;
};

enum { MEMORY = 1 << 20, PITCH = 8192, ROWS = 32, ELEMENTS = 65536 };

static Handle library;
static size_t bytes = 65536;

static void *find(const char *name) {
    void *function = dlsym(library, name);
    if (!function) {
        printf("no %s\n", name);
        exit(2);
    }
    return function;
}

static void check(int status, const char *what) {
    if (!status) return;
    printf("%s failed: %d\n", what, status);
    exit(3);
}

#define CALL(name, types, ...) check(((int(*) types)find(#name))(__VA_ARGS__), #name)

// `count` copies of the kind `what`, and a wait.
#define COPY(what, name, types, ...)                                                                                    \
    do {                                                                                                                \
        for (int i = 0; i < count; i++) CALL(name, types, __VA_ARGS__);                                                 \
        CALL(cuCtxSynchronize, (void), );                                                                               \
        printf("%s %d %zu " #name "\n", what, count, bytes);                                                            \
        bytes += 4096;                                                                                                  \
    } while (0)

static void rectangles(const char *what, int count, struct side source, struct side destination, Handle stream) {
    struct rectangle rectangle = {source, destination, bytes / ROWS, ROWS};
    COPY(what, cuMemcpy2DAsync_v2, (const struct rectangle *, Handle), &rectangle, stream);
}

static void arrays(int count, Address device, void *host) {
    struct array description = {ELEMENTS, 0, UNSIGNED_INT32, 1};
    Handle first, second;
    CALL(cuArrayCreate_v2, (Handle *, const struct array *), &first, &description);
    CALL(cuArrayCreate_v2, (Handle *, const struct array *), &second, &description);
    COPY("host-to-array", cuMemcpyHtoA_v2, (Handle, size_t, const void *, size_t), first, 0, host, bytes);
    COPY("array-to-host", cuMemcpyAtoH_v2, (void *, Handle, size_t, size_t), host, first, 0, bytes);
    COPY("device-to-array", cuMemcpyDtoA_v2, (Handle, size_t, Address, size_t), first, 0, device, bytes);
    COPY("array-to-device", cuMemcpyAtoD_v2, (Address, Handle, size_t, size_t), device, first, 0, bytes);
    COPY("array-to-array", cuMemcpyAtoA_v2, (Handle, size_t, Handle, size_t, size_t), second, 0, first, 0, bytes);
}

static void peers(int count, Handle context, Address here, Handle stream) {
    int gpus = 0;
    CALL(cuDeviceGetCount, (int *), &gpus);
    if (gpus < 2) {
        printf("no peer: one GPU\n");
        return;
    }
    Handle other;
    Address there;
    CALL(cuDevicePrimaryCtxRetain, (Handle *, int), &other, 1);
    CALL(cuCtxSetCurrent, (Handle), other);
    CALL(cuMemAlloc_v2, (Address *, size_t), &there, MEMORY);
    CALL(cuCtxSetCurrent, (Handle), context);
    COPY("peer-to", cuMemcpyPeerAsync, (Address, Handle, Address, Handle, size_t, Handle), there, other, here, context, bytes, stream);
    COPY("peer-from", cuMemcpyPeerAsync, (Address, Handle, Address, Handle, size_t, Handle), here, context, there, other, bytes, stream);
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 1;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        printf("no libcuda.so.1\n");
        return 2;
    }
    Handle context, stream;
    void *pinned, *pinned_too, *pageable = calloc(1, MEMORY);
    Address first, second, managed;
    CALL(cuInit, (unsigned), 0);
    CALL(cuDevicePrimaryCtxRetain, (Handle *, int), &context, 0);
    CALL(cuCtxSetCurrent, (Handle), context);
    CALL(cuStreamCreate, (Handle *, unsigned), &stream, 1);
    CALL(cuMemHostAlloc, (void **, size_t, unsigned), &pinned, MEMORY, 0);
    CALL(cuMemHostAlloc, (void **, size_t, unsigned), &pinned_too, MEMORY, 0);
    CALL(cuMemAlloc_v2, (Address *, size_t), &first, MEMORY);
    CALL(cuMemAlloc_v2, (Address *, size_t), &second, MEMORY);
    CALL(cuMemAllocManaged, (Address *, size_t, unsigned), &managed, MEMORY, 1);
    memset(pinned, 1, MEMORY);
    memset(pinned_too, 1, MEMORY);

    COPY("pinned-to-device", cuMemcpyHtoDAsync_v2, (Address, const void *, size_t, Handle), first, pinned, bytes, stream);
    COPY("device-to-pinned", cuMemcpyDtoHAsync_v2, (void *, Address, size_t, Handle), pinned, first, bytes, stream);
    COPY("pageable-to-device", cuMemcpyHtoDAsync_v2, (Address, const void *, size_t, Handle), first, pageable, bytes, stream);
    COPY("device-to-pageable", cuMemcpyDtoHAsync_v2, (void *, Address, size_t, Handle), pageable, first, bytes, stream);
    COPY("pageable-to-device-waits", cuMemcpyHtoD_v2, (Address, const void *, size_t), first, pageable, bytes);
    COPY("device-to-pageable-waits", cuMemcpyDtoH_v2, (void *, Address, size_t), pageable, first, bytes);
    COPY("device-to-device", cuMemcpyDtoDAsync_v2, (Address, Address, size_t, Handle), second, first, bytes, stream);
    COPY("device-to-device-waits", cuMemcpyDtoD_v2, (Address, Address, size_t), second, first, bytes);
    COPY("device-to-device-unified", cuMemcpyAsync, (Address, Address, size_t, Handle), second, first, bytes, stream);

    struct side host = {0, 0, HOST, pinned, 0, NULL, PITCH}, here = {0, 0, DEVICE, NULL, first, NULL, PITCH}, there = {0, 0, DEVICE, NULL, second, NULL, PITCH};
    rectangles("host-to-device-2d", count, host, here, stream);
    rectangles("device-to-host-2d", count, here, host, stream);
    rectangles("device-to-device-2d", count, here, there, stream);
    arrays(count, first, pinned);

    COPY("any-managed-from-device", cuMemcpyAsync, (Address, Address, size_t, Handle), managed, first, bytes, stream);
    COPY("any-managed-to-device", cuMemcpyAsync, (Address, Address, size_t, Handle), first, managed, bytes, stream);
    COPY("any-managed-from-host", cuMemcpyAsync, (Address, Address, size_t, Handle), managed, (Address)pinned, bytes, stream);
    COPY("any-managed-to-host", cuMemcpyAsync, (Address, Address, size_t, Handle), (Address)pinned, managed, bytes, stream);
    COPY("any-host-to-host", cuMemcpyAsync, (Address, Address, size_t, Handle), (Address)pinned_too, (Address)pinned, bytes, stream);
    peers(count, context, first, stream);
    return 0;
}
