/* A queue whose device reports an error: what the application's callback is told, and what becomes of the signals.
 *
 * Usage: queue_error CODE_OBJECT     (of aql_kernel.hip)
 * Three dispatches, one after the other; the device is configured to refuse the second. Prints what happened.
 * Compile: cc -O2 queue_error.c -o queue_error -lhsa-runtime64 */
#include <fcntl.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HSA(call)                                                                           \
    do {                                                                                    \
        hsa_status_t status_ = (call);                                                      \
        if (status_ != HSA_STATUS_SUCCESS) {                                                \
            fprintf(stderr, "%s:%d: %s: status %#x\n", __FILE__, __LINE__, #call, status_); \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

static hsa_agent_t gpu;
static hsa_amd_memory_pool_t kernarg_memory;
static hsa_queue_t *queue;
static hsa_signal_t told;

static hsa_status_t find_pool(hsa_amd_memory_pool_t pool, void *data) {
    uint32_t flags = 0;
    (void)data;
    HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
    if (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT) kernarg_memory = pool;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t find_agent(hsa_agent_t agent, void *data) {
    hsa_device_type_t type;
    (void)data;
    HSA(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
    if (type == HSA_DEVICE_TYPE_GPU) gpu = agent;
    else HSA(hsa_amd_agent_iterate_memory_pools(agent, find_pool, NULL));
    return HSA_STATUS_SUCCESS;
}

static void failed(hsa_status_t status, hsa_queue_t *source, void *data) {
    printf("callback: status %#x, %s queue, %s data\n", status, source == queue ? "this" : "another",
           data == &gpu ? "its" : "other");
    hsa_signal_store_screlease(told, 0);
}

static uint64_t load(const char *path) {
    hsa_code_object_reader_t reader;
    hsa_executable_t executable;
    hsa_executable_symbol_t symbol;
    uint64_t object;
    HSA(hsa_code_object_reader_create_from_file(open(path, O_RDONLY), &reader));
    HSA(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &executable));
    HSA(hsa_executable_load_agent_code_object(executable, gpu, reader, NULL, NULL));
    HSA(hsa_executable_freeze(executable, NULL));
    HSA(hsa_executable_get_symbol_by_name(executable, "aql_count.kd", &gpu, &symbol));
    HSA(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object));
    return object;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    HSA(hsa_init());
    HSA(hsa_iterate_agents(find_agent, NULL));
    uint64_t object = load(argv[1]);
    void **kernarg;
    HSA(hsa_amd_memory_pool_allocate(kernarg_memory, 4096, 0, (void **)&kernarg));
    HSA(hsa_amd_agents_allow_access(1, &gpu, NULL, kernarg));
    memset(kernarg, 0, 4096);
    kernarg[0] = (char *)kernarg + 2048;
    HSA(hsa_signal_create(1, 0, NULL, &told));
    HSA(hsa_queue_create(gpu, 1024, HSA_QUEUE_TYPE_MULTI, failed, &gpu, UINT32_MAX, UINT32_MAX, &queue));
    for (int i = 0; i < 3; i++) {
        hsa_signal_t done;
        hsa_kernel_dispatch_packet_t packet;
        HSA(hsa_signal_create(1, 0, NULL, &done));
        memset(&packet, 0, sizeof packet);
        packet.setup = 1;
        packet.workgroup_size_x = packet.grid_size_x = 64;
        packet.workgroup_size_y = packet.workgroup_size_z = packet.grid_size_y = packet.grid_size_z = 1;
        packet.kernel_object = object;
        packet.kernarg_address = kernarg;
        packet.completion_signal = done;
        uint64_t index = hsa_queue_add_write_index_screlease(queue, 1);
        char *slot = (char *)queue->base_address + 64 * (index & (queue->size - 1));
        memcpy(slot + 2, (char *)&packet + 2, 62);
        uint16_t header = HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE | 1 << HSA_PACKET_HEADER_BARRIER |
                          HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                          HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
        __atomic_store_n((uint16_t *)slot, header, __ATOMIC_RELEASE);
        hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
        hsa_signal_value_t value =
            hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, 300000000, HSA_WAIT_STATE_BLOCKED);
        printf("dispatch %d: signal %ld\n", i, (long)value);
    }
    hsa_signal_wait_scacquire(told, HSA_SIGNAL_CONDITION_LT, 1, 3000000000ull, HSA_WAIT_STATE_BLOCKED);
    unsigned *counters = kernarg[0];
    printf("%u dispatches ran\n", counters[1]);
    return 0;
}
