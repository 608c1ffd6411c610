/* One executable with a code object for each GPU, and a kernel on each.
 *
 * Usage: one_executable CODE_OBJECT...     (of tests/programs/hip/targets.hip, one for each GPU)
 * Compile: cc -O2 one_executable.c -o one_executable -lhsa-runtime64 */
#include "packets.h"

static hsa_agent_t gpus[8];
static int count;

static hsa_status_t find_each(hsa_agent_t agent, void *data) {
    find_agent(agent, data);
    if (gpu.handle == agent.handle) gpus[count++] = agent;
    return HSA_STATUS_SUCCESS;
}

int main(int argc, char **argv) {
    hsa_executable_t executable;
    HSA(hsa_init());
    HSA(hsa_iterate_agents(find_each, NULL));
    if (argc != count + 1) return 2;
    HSA(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &executable));
    for (int place = 0; place < count; place++) {
        hsa_code_object_reader_t reader;
        HSA(hsa_code_object_reader_create_from_file(open(argv[place + 1], O_RDONLY), &reader));
        HSA(hsa_executable_load_agent_code_object(executable, gpus[place], reader, NULL, NULL));
    }
    HSA(hsa_executable_freeze(executable, NULL));
    HSA(hsa_amd_memory_pool_allocate(kernarg_memory, 4096, 0, (void **)&kernarg));
    HSA(hsa_amd_agents_allow_access((uint32_t)count, gpus, NULL, kernarg));
    memset(kernarg, 0, 4096);
    for (int place = 0; place < count; place++) {
        hsa_executable_symbol_t symbol;
        gpu = gpus[place];
        HSA(hsa_executable_get_symbol_by_name(executable, "_Z7boundedPj.kd", &gpu, &symbol));
        HSA(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &kernel_object));
        hsa_queue_t *queue = make_queue();
        hsa_signal_t done = signal_of(1);
        put_dispatch(queue, done);
        wait_for(done, "the kernel");
        HSA(hsa_signal_destroy(done));
        HSA(hsa_queue_destroy(queue));
    }
    HSA(hsa_shut_down());
    printf("%d kernels\n", count);
    return 0;
}
