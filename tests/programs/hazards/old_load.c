/* A code object that is loaded as HSA 1.0 had it, by a function that is deprecated since and that the recorder does not see; then a kernel of it.
 *
 * Usage: old_load CODE_OBJECT     (of aql_kernel.hip)
 * Compile: cc -O2 old_load.c -o old_load -lhsa-runtime64 */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include "packets.h"

static void load(const char *path) {
    FILE *file = fopen(path, "rb");
    static char bytes[1 << 20];
    if (!file) exit(1);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    hsa_code_object_t code;
    hsa_executable_t executable;
    hsa_executable_symbol_t symbol;
    HSA(hsa_code_object_deserialize(bytes, size, NULL, &code));
    HSA(hsa_executable_create(HSA_PROFILE_FULL, HSA_EXECUTABLE_STATE_UNFROZEN, NULL, &executable));
    HSA(hsa_executable_load_code_object(executable, gpu, code, NULL));
    HSA(hsa_executable_freeze(executable, NULL));
    HSA(hsa_executable_get_symbol_by_name(executable, "aql_count.kd", &gpu, &symbol));
    HSA(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &kernel_object));
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    start(argv[1]);
    load(argv[1]);
    hsa_queue_t *queue = make_queue();
    hsa_signal_t end = signal_of(1);
    put_dispatch(queue, end);
    wait_for(end, "the kernel");
    printf("%u work-items\n", counters()[0]);
    HSA(hsa_signal_destroy(end));
    HSA(hsa_queue_destroy(queue));
    HSA(hsa_shut_down());
    return 0;
}
