/* A queue whose device reports an error: what the application's callback is told, and what becomes of the signals.
 *
 * Usage: queue_error CODE_OBJECT     (of aql_kernel.hip)
 * Three dispatches, one after the other; the device is configured to refuse the second. Prints what happened.
 * Compile: cc -O2 queue_error.c -o queue_error -lhsa-runtime64 */
#include "packets.h"

static hsa_queue_t *queue;
static hsa_signal_t told;

static void failed(hsa_status_t status, hsa_queue_t *source, void *data) {
    printf("callback: status %#x, %s queue, %s data\n", status, source == queue ? "this" : "another",
           data == &gpu ? "its" : "other");
    hsa_signal_store_screlease(told, 0);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    start(argv[1]);
    told = signal_of(1);
    HSA(hsa_queue_create(gpu, 1024, HSA_QUEUE_TYPE_MULTI, failed, &gpu, UINT32_MAX, UINT32_MAX, &queue));
    for (int i = 0; i < 3; i++) {
        hsa_signal_t done = signal_of(1);
        put_dispatch(queue, done);
        /* It runs, or the error is told of; behind that, 300 ms in which it should not run. */
        hsa_signal_value_t value;
        int is_told;
        do {
            is_told = hsa_signal_load_scacquire(told) == 0;
            value = hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, 300000000, HSA_WAIT_STATE_BLOCKED);
        } while (value >= 1 && !is_told);
        printf("dispatch %d: signal %ld\n", i, (long)value);
    }
    printf("%u dispatches ran\n", counters()[1]);
    return 0;
}
