// Plays librocprofiler-sdk.so: says what tables it is handed, and answers 5.
#include <stdint.h>
#include <stdio.h>

int rocprofiler_set_api_table(const char *name, uint64_t version, uint64_t instance, void **tables, uint64_t count) {
    // What stands at hsa_queue_create in the core table: whoever comes first has replaced it.
    uintptr_t *core = ((uintptr_t **)tables[0])[2];
    printf("<sdk %s %lu %lu %lu, entry %s>\n", name, version, instance, count, core[9] ? "there" : "gone");
    core[9] ^= 1;
    return 5;
}
