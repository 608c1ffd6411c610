/* Queues of every size that a program may ask for, and of those that the runtime refuses; kernels on those there are.
 *
 * Usage: queue_sizes CODE_OBJECT     (of aql_kernel.hip)
 * Compile: cc -O2 queue_sizes.c -o queue_sizes -lhsa-runtime64 */
#include "packets.h"

int main(int argc, char **argv) {
    static const uint32_t sizes[] = {0, 1, 2, 3, 63, 64, 65, 100, 128, 1000, 1024, 8192, 131072, 131073, 262144, UINT32_MAX};
    if (argc != 2) return 2;
    start(argv[1]);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        hsa_queue_t *queue = NULL;
        hsa_status_t status =
            hsa_queue_create(gpu, sizes[i], HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue);
        if (status != HSA_STATUS_SUCCESS) {
            printf("%u: status %#x\n", sizes[i], status);
            continue;
        }
        if (queue->size < sizes[i] || queue->size & (queue->size - 1)) {
            fprintf(stderr, "asked for %u packets, got %u\n", sizes[i], queue->size);
            return 1;
        }
        /* More than the small ones hold. */
        hsa_signal_t last = signal_of(1), none = {0};
        for (int kernel = 0; kernel < 200; kernel++) put_dispatch(queue, kernel < 199 ? none : last);
        wait_for(last, "the last kernel");
        printf("%u: %u kernels\n", sizes[i], counters()[1]);
        HSA(hsa_signal_destroy(last));
        HSA(hsa_queue_destroy(queue));
    }
    HSA(hsa_shut_down());
    return 0;
}
