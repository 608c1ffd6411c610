/* What the raw HSA programs here share: one GPU, one kernel (aql_count of fixtures/programs/aql_kernel.hip), packets. */
#pragma once
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
static uint64_t kernel_object;
static void **kernarg;

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

/* Starts the runtime and loads the kernel; its counter is counters()[1]. */
static inline void start(const char *code_object) {
    hsa_code_object_reader_t reader;
    hsa_executable_t executable;
    hsa_executable_symbol_t symbol;
    HSA(hsa_init());
    HSA(hsa_iterate_agents(find_agent, NULL));
    HSA(hsa_code_object_reader_create_from_file(open(code_object, O_RDONLY), &reader));
    HSA(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &executable));
    HSA(hsa_executable_load_agent_code_object(executable, gpu, reader, NULL, NULL));
    HSA(hsa_executable_freeze(executable, NULL));
    HSA(hsa_executable_get_symbol_by_name(executable, "aql_count.kd", &gpu, &symbol));
    HSA(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &kernel_object));
    HSA(hsa_amd_memory_pool_allocate(kernarg_memory, 4096, 0, (void **)&kernarg));
    HSA(hsa_amd_agents_allow_access(1, &gpu, NULL, kernarg));
    memset(kernarg, 0, 4096);
    kernarg[0] = (char *)kernarg + 2048;
}

static inline unsigned *counters(void) { return (unsigned *)kernarg[0]; }

static inline hsa_queue_t *make_queue(void) {
    hsa_queue_t *queue;
    HSA(hsa_queue_create(gpu, 1024, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    return queue;
}

static inline hsa_signal_t signal_of(hsa_signal_value_t value) {
    hsa_signal_t signal;
    HSA(hsa_signal_create(value, 0, NULL, &signal));
    return signal;
}

/* Writes a packet into a place of the queue that was taken. */
static inline void write_packet(hsa_queue_t *queue, uint64_t index, const void *packet, hsa_packet_type_t type) {
    char *slot = (char *)queue->base_address + 64 * (index & (queue->size - 1));
    memcpy(slot + 2, (const char *)packet + 2, 62);
    uint16_t header = (uint16_t)(type << HSA_PACKET_HEADER_TYPE | 1 << HSA_PACKET_HEADER_BARRIER |
                                 HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                                 HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
    __atomic_store_n((uint16_t *)slot, header, __ATOMIC_RELEASE);
}

static inline void put(hsa_queue_t *queue, const void *packet, hsa_packet_type_t type) {
    uint64_t index = hsa_queue_add_write_index_screlease(queue, 1);
    while (index - hsa_queue_load_read_index_scacquire(queue) >= queue->size) continue;
    write_packet(queue, index, packet, type);
    hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
}

static inline hsa_kernel_dispatch_packet_t dispatch_of(hsa_signal_t completion) {
    hsa_kernel_dispatch_packet_t packet;
    memset(&packet, 0, sizeof packet);
    packet.setup = 1;
    packet.workgroup_size_x = packet.grid_size_x = 64;
    packet.workgroup_size_y = packet.workgroup_size_z = packet.grid_size_y = packet.grid_size_z = 1;
    packet.kernel_object = kernel_object;
    packet.kernarg_address = kernarg;
    packet.completion_signal = completion;
    return packet;
}

static inline void put_dispatch(hsa_queue_t *queue, hsa_signal_t completion) {
    hsa_kernel_dispatch_packet_t packet = dispatch_of(completion);
    put(queue, &packet, HSA_PACKET_TYPE_KERNEL_DISPATCH);
}

static inline void put_barrier(hsa_queue_t *queue, hsa_signal_t dependency) {
    hsa_barrier_and_packet_t packet;
    memset(&packet, 0, sizeof packet);
    packet.dep_signal[0] = dependency;
    put(queue, &packet, HSA_PACKET_TYPE_BARRIER_AND);
}

/* Ten minutes: something is lost if it takes that long. */
static inline void wait_for(hsa_signal_t signal, const char *what) {
    if (hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, 600000000000ull, HSA_WAIT_STATE_BLOCKED) < 1) return;
    fprintf(stderr, "%s has not completed\n", what);
    exit(1);
}
