/* Calls of the HSA runtime by a program without HIP: kernels with a doorbell each, three with one doorbell, one whose doorbell another thread
 * rings, a barrier, copies, and a copy that the runtime refuses.
 *
 * Usage: hsa_calls CODE_OBJECT     (of aql_kernel.hip)
 * Compile: cc -O2 hsa_calls.c -o hsa_calls -lhsa-runtime64 -lpthread */
#include "packets.h"

#include <pthread.h>

enum { KERNELS = 5, BATCH = 3, BYTES = 4096 };

static char *device;

static hsa_status_t allocate(hsa_amd_memory_pool_t pool, void *data) {
    bool can = false;
    (void)data;
    HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &can));
    if (can && !device) HSA(hsa_amd_memory_pool_allocate(pool, BYTES, 0, (void **)&device));
    return HSA_STATUS_SUCCESS;
}

/* Puts `count` dispatches into the queue, without ringing its doorbell; the index of the last. */
static uint64_t fill(hsa_queue_t *queue, uint64_t count, hsa_signal_t completion) {
    uint64_t index = hsa_queue_add_write_index_screlease(queue, count);
    hsa_kernel_dispatch_packet_t packet = dispatch_of(completion);
    for (uint64_t i = index; i < index + count; i++) write_packet(queue, i, &packet, HSA_PACKET_TYPE_KERNEL_DISPATCH);
    return index + count - 1;
}

static hsa_queue_t *queue;
static uint64_t filled;

static void *ring(void *unused) {
    hsa_signal_store_relaxed(queue->doorbell_signal, (hsa_signal_value_t)filled);
    return unused;
}

static hsa_status_t copy_rect(hsa_signal_t completion, size_t pitch) {
    hsa_pitched_ptr_t to = {(char *)kernarg + 1024, pitch, 0}, from = {device, pitch, 0};
    hsa_dim3_t origin = {0, 0, 0}, range = {16, 4, 1};
    return hsa_amd_memory_async_copy_rect(&to, &origin, &from, &origin, &range, gpu, hsaDeviceToHost, 0, NULL, completion);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    start(argv[1]);
    HSA(hsa_amd_agent_iterate_memory_pools(gpu, allocate, NULL));
    queue = make_queue();
    for (int i = 0; i < KERNELS; i++) {
        hsa_signal_t own = signal_of(1);
        put_dispatch(queue, own);
        wait_for(own, "a kernel");
        HSA(hsa_signal_destroy(own));
    }
    hsa_signal_t batch = signal_of(BATCH);
    hsa_signal_store_release(queue->doorbell_signal, (hsa_signal_value_t)fill(queue, BATCH, batch));
    wait_for(batch, "one of several kernels");

    hsa_signal_t other = signal_of(1);
    filled = fill(queue, 1, other);
    pthread_t thread;
    pthread_create(&thread, NULL, ring, NULL);
    pthread_join(thread, NULL);
    wait_for(other, "a kernel of another thread's doorbell");

    hsa_signal_t copied = signal_of(1);
    HSA(hsa_amd_memory_async_copy(kernarg, gpu, device, gpu, 512, 0, NULL, copied));
    wait_for(copied, "a copy");
    memset(kernarg, 0, 1024);
    hsa_signal_store_relaxed(copied, 1);
    if (copy_rect(copied, 33) == HSA_STATUS_SUCCESS) return 1;
    HSA(copy_rect(copied, 32));
    wait_for(copied, "a copy of a rectangle");
    HSA(hsa_queue_destroy(queue));
    HSA(hsa_shut_down());
    puts("done");
    return 0;
}
