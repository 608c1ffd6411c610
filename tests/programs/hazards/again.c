/* The runtime started and shut down three times in one process, with a hundred dispatches each time.
 *
 * Usage: again CODE_OBJECT     (of aql_kernel.hip)
 * Compile: cc -O2 again.c -o again -lhsa-runtime64 */
#include "packets.h"

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    for (int round = 0; round < 3; round++) {
        start(argv[1]);
        hsa_queue_t *queue = make_queue();
        hsa_signal_t last = signal_of(1), none = {0};
        for (int i = 0; i < 100; i++) put_dispatch(queue, i < 99 ? none : last);
        wait_for(last, "the last dispatch");
        printf("round %d: %u dispatches\n", round, counters()[1]);
        HSA(hsa_signal_destroy(last));
        HSA(hsa_queue_destroy(queue));
        HSA(hsa_shut_down());
    }
    return 0;
}
