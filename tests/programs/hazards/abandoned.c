/* A queue that is destroyed with a kernel on it that waits for ever; after it a queue whose kernels run.
 *
 * Usage: abandoned CODE_OBJECT     (of aql_kernel.hip)
 * Compile: cc -O2 abandoned.c -o abandoned -lhsa-runtime64 */
#include "packets.h"

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    start(argv[1]);
    hsa_signal_t never = signal_of(1), done = signal_of(1), none = {0};
    hsa_queue_t *queue = make_queue();
    put_dispatch(queue, done);
    wait_for(done, "the first kernel");
    put_barrier(queue, never);
    put_dispatch(queue, none);
    hsa_signal_store_relaxed(done, 1);
    put_dispatch(queue, done);
    HSA(hsa_queue_destroy(queue));
    /* The signal is free again. */
    hsa_queue_t *next = make_queue();
    hsa_signal_store_relaxed(done, 1);
    put_dispatch(next, done);
    wait_for(done, "the last kernel");
    printf("%u kernels\n", counters()[1]);
    HSA(hsa_queue_destroy(next));
    HSA(hsa_signal_destroy(done));
    HSA(hsa_signal_destroy(never));
    /* The recorder, too, is through with the first queue: nothing delays the end. */
    HSA(hsa_shut_down());
    return 0;
}
