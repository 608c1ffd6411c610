/* Queues that are destroyed at some moment while a dispatch of theirs has not completed, whose buffer is freed right after.
 *
 * Usage: destroyed CODE_OBJECT     (of aql_kernel.hip)
 * Compile: cc -O2 destroyed.c -o destroyed -lhsa-runtime64 */
#include "packets.h"
#include <unistd.h>

enum { BYTES = 64 << 20 };

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    start(argv[1]);
    for (int round = 0; round < 4; round++) {
        void *buffer;
        HSA(hsa_amd_memory_pool_allocate(kernarg_memory, BYTES, 0, &buffer));
        HSA(hsa_amd_agents_allow_access(1, &gpu, NULL, buffer));
        memset(buffer, 0, BYTES);
        kernarg[0] = buffer;
        hsa_queue_t *queue = make_queue();
        for (int i = 0; i < 30; i++) put_dispatch(queue, (hsa_signal_t){0});
        usleep((useconds_t)round * 10000);
        HSA(hsa_queue_destroy(queue));
        HSA(hsa_amd_memory_pool_free(buffer));
    }
    HSA(hsa_shut_down());
    puts("all destroyed");
    return 0;
}
