/* A hundred thousand kernels submitted before the first may start, as in a program that runs far ahead of its GPU.
 *
 * Usage: in_flight CODE_OBJECT     (of aql_kernel.hip)
 * Prints how many events of the driver there are then (one stands behind each signal with an interrupt), the milliseconds of CPU
 * time that the process takes in a second in which nothing happens, and how many kernels have run in the end.
 * Compile: cc -O2 in_flight.c -o in_flight -ldl -lhsa-runtime64 */
#define _GNU_SOURCE
#include "packets.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

enum { QUEUES = 8, KERNELS = 12500, CREATE_EVENT = 'K' << 8 | 0x08 /* kfd_ioctl.h */ };

static int events;

/* In front of the C library's. */
int ioctl(int file, unsigned long request, ...) {
    static int (*next)(int, unsigned long, ...);
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (!next) next = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
    if ((request & 0xffff) == CREATE_EVENT) __atomic_add_fetch(&events, 1, __ATOMIC_RELAXED);
    return next(file, request, argument);
}

static double cpu_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    start(argv[1]);
    hsa_queue_t *queues[QUEUES];
    hsa_signal_t last[QUEUES], gate = signal_of(1), none = {0};
    for (int i = 0; i < QUEUES; i++) {
        HSA(hsa_queue_create(gpu, 16384, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queues[i]));
        last[i] = signal_of(1);
        put_barrier(queues[i], gate);
    }
    for (int kernel = 1; kernel <= KERNELS; kernel++)
        for (int i = 0; i < QUEUES; i++) put_dispatch(queues[i], kernel < KERNELS ? none : last[i]);
    double before = cpu_ms();
    sleep(1);
    printf("%d events, %.0f ms, ", events, cpu_ms() - before);
    hsa_signal_store_screlease(gate, 0);
    for (int i = 0; i < QUEUES; i++) wait_for(last[i], "the last kernel of a queue");
    printf("%u kernels\n", counters()[1]);
    for (int i = 0; i < QUEUES; i++) {
        HSA(hsa_queue_destroy(queues[i]));
        HSA(hsa_signal_destroy(last[i]));
    }
    HSA(hsa_signal_destroy(gate));
    HSA(hsa_shut_down());
    return 0;
}
