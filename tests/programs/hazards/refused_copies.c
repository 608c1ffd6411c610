/* Copies that the runtime refuses, with a signal that nothing else uses, and with one that a kernel which has not run yet will complete.
 * The signals then do what they are for.
 *
 * Usage: refused_copies CODE_OBJECT     (of aql_kernel.hip)
 * Compile: cc -O2 refused_copies.c -o refused_copies -lhsa-runtime64 */
#include "packets.h"

enum { ROUNDS = 20 };

static char *device;

static hsa_status_t allocate(hsa_amd_memory_pool_t pool, void *data) {
    bool can = false;
    (void)data;
    HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &can));
    if (can && !device) HSA(hsa_amd_memory_pool_allocate(pool, 4096, 0, (void **)&device));
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t copy(hsa_signal_t completion, size_t pitch) {
    hsa_pitched_ptr_t to = {(char *)kernarg + 1024, pitch, 0}, from = {device, pitch, 0};
    hsa_dim3_t origin = {0, 0, 0}, range = {16, 4, 1};
    return hsa_amd_memory_async_copy_rect(&to, &origin, &from, &origin, &range, gpu, hsaDeviceToHost, 0, NULL, completion);
}

static void refused(hsa_signal_t completion) {
    if (copy(completion, 33) == HSA_STATUS_SUCCESS) {
        fprintf(stderr, "a pitch of 33 bytes is taken\n");
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    start(argv[1]);
    HSA(hsa_amd_agent_iterate_memory_pools(gpu, allocate, NULL));
    hsa_queue_t *queue = make_queue();
    for (int round = 0; round < ROUNDS; round++) {
        hsa_signal_t gate = signal_of(1), shared = signal_of(1), own = signal_of(1);
        refused(own);
        put_dispatch(queue, own);
        wait_for(own, "a kernel");
        hsa_signal_store_screlease(own, 1);
        refused(own);
        HSA(copy(own, 32));
        wait_for(own, "a copy");

        put_barrier(queue, gate);
        put_dispatch(queue, shared);
        refused(shared);
        hsa_signal_store_screlease(gate, 0);
        wait_for(shared, "a kernel whose signal was in a refused copy");
        hsa_signal_value_t left = hsa_signal_load_scacquire(shared);
        if (left != 0) {
            fprintf(stderr, "%ld on a completed signal\n", (long)left);
            return 1;
        }
        HSA(hsa_signal_destroy(gate));
        HSA(hsa_signal_destroy(shared));
        HSA(hsa_signal_destroy(own));
    }
    printf("%u kernels, %d copies\n", counters()[1], ROUNDS);
    HSA(hsa_queue_destroy(queue));
    HSA(hsa_shut_down());
    return 0;
}
