/* Queues that wait for each other's completion signals: each kernel of one behind a barrier on the signal of the one before it on
 * the other, two pairs of queues. All packets are there before anything runs. A recorder that forwards completions in
 * the order of submission never gets to the second one.
 *
 * Usage: crossed CODE_OBJECT     (of aql_kernel.hip)
 * Compile: cc -O2 crossed.c -o crossed -lhsa-runtime64 */
#include "packets.h"

enum { STEPS = 100 };

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    start(argv[1]);
    hsa_queue_t *queues[2] = {make_queue(), make_queue()};
    hsa_signal_t done[STEPS + 1];
    for (int i = 0; i <= STEPS; i++) done[i] = signal_of(1);
    /* The later half of the steps is submitted first, on other queues than the earlier one. */
    hsa_queue_t *later[2] = {make_queue(), make_queue()};
    for (int i = STEPS / 2; i < STEPS; i++) {
        put_barrier(later[i % 2], done[i]);
        put_dispatch(later[i % 2], done[i + 1]);
    }
    for (int i = 0; i < STEPS / 2; i++) {
        put_barrier(queues[i % 2], done[i]);
        put_dispatch(queues[i % 2], done[i + 1]);
    }
    hsa_signal_store_screlease(done[0], 0);
    wait_for(done[STEPS], "the last step");
    printf("%u kernels on queues that wait for each other\n", counters()[1]);
    for (int i = 0; i < 2; i++) {
        HSA(hsa_queue_destroy(queues[i]));
        HSA(hsa_queue_destroy(later[i]));
    }
    for (int i = 0; i <= STEPS; i++) HSA(hsa_signal_destroy(done[i]));
    HSA(hsa_shut_down());
    return 0;
}
