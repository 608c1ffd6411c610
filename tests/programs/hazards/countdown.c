/* Two kernels count one signal down, a third behind them completes another. Once that one is done the queue's order says that the first is
 * at 0: it is looked at and destroyed. A recorder that passes decrements on from the host is late for that.
 *
 * Usage: countdown CODE_OBJECT     (of aql_kernel.hip)
 * Compile: cc -O2 countdown.c -o countdown -lhsa-runtime64 */
#include "packets.h"

enum { ROUNDS = 200 };

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    start(argv[1]);
    hsa_queue_t *queue = make_queue();
    for (int round = 0; round < ROUNDS; round++) {
        hsa_signal_t both = signal_of(2), last = signal_of(1);
        put_dispatch(queue, both);
        put_dispatch(queue, both);
        put_dispatch(queue, last);
        wait_for(last, "the last kernel");
        hsa_signal_value_t left = hsa_signal_load_scacquire(both);
        if (left != 0) {
            fprintf(stderr, "round %d: %ld left on the signal\n", round, (long)left);
            return 1;
        }
        HSA(hsa_signal_destroy(both));
        HSA(hsa_signal_destroy(last));
    }
    printf("%u kernels, every signal at 0 in time\n", counters()[1]);
    HSA(hsa_queue_destroy(queue));
    HSA(hsa_shut_down());
    return 0;
}
