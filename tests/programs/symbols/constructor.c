// Loads a library whose constructor waits for another thread's call of HIP; with LIBRARY that library. The thread has called HIP before.
//
//   constructor LIBRARY
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

void wait_for_call(void);

#ifdef LIBRARY
__attribute__((constructor)) static void begin(void) { wait_for_call(); }
#else
int hipMalloc(void **, size_t);
int hipFree(void *);
int hipGetDeviceCount(int *);

static pthread_barrier_t barrier;

static void *call(void *unused) {
    void *memory = 0;
    int devices = 0;
    printf("status %d\n", hipMalloc(&memory, 0x2001));
    printf("status %d\n", hipFree(memory));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    printf("status %d\n", hipGetDeviceCount(&devices));
    pthread_barrier_wait(&barrier);
    return unused;
}

void wait_for_call(void) {
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
}

int main(int count, char **arguments) {
    pthread_t thread;
    pthread_barrier_init(&barrier, 0, 2);
    pthread_create(&thread, 0, call, 0);
    pthread_barrier_wait(&barrier);
    if (count < 2 || !dlopen(arguments[1], RTLD_NOW)) return puts(dlerror()), 1;
    pthread_join(thread, 0);
    return 0;
}
#endif
