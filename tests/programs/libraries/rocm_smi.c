// What librocm_smi64 reads of the first GPU, in the units of rpd's sensors: a line each, with one value or two where the library has two
// functions for it. As rocm_smi.h 6.1 declares them.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { VRAM = 0, EDGE = 0, HOTSPOT = 1, MEMORY = 2, CURRENT = 0, SYSTEM_CLOCK = 0, MEMORY_CLOCK = 4 };

// rsmi_frequencies_t.
struct frequencies {
    _Bool has_deep_sleep;
    uint32_t count, current;
    uint64_t frequency[33];
};

static void *library;

static void *find(const char *name) {
    void *function = dlsym(library, name);
    if (!function) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return function;
}

static void clock_of(const char *name, int kind) {
    int (*read)(uint32_t, int, struct frequencies *) = find("rsmi_dev_gpu_clk_freq_get");
    struct frequencies clock = {0};
    if (read(0, kind, &clock) == 0) printf("%s %.0f\n", name, (double)clock.frequency[clock.current] / 1e6);
}

static void temperature(const char *name, uint32_t kind) {
    int (*read)(uint32_t, uint32_t, int, int64_t *) = find("rsmi_dev_temp_metric_get");
    int64_t value;
    if (read(0, kind, CURRENT, &value) == 0) printf("%s %g\n", name, (double)value / 1000);
}

static void percent(const char *name, const char *function) {
    int (*read)(uint32_t, uint32_t *) = find(function);
    uint32_t value;
    if (read(0, &value) == 0) printf("%s %u\n", name, value);
}

int main(void) {
    library = dlopen("librocm_smi64.so.1", RTLD_NOW);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
    int (*init)(uint64_t) = find("rsmi_init");
    uint32_t gpus = 0;
    int (*count)(uint32_t *) = find("rsmi_num_monitor_devices");
    if (init(0) || count(&gpus) || gpus != 1) return fprintf(stderr, "no GPU, or more than one: %u\n", gpus), 1;
    int (*power)(uint32_t, uint64_t *, int *) = find("rsmi_dev_power_get");
    uint64_t value, time;
    int kind;
    if (power(0, &value, &kind) == 0) printf("power %g\n", (double)value / 1e6);
    int (*energy)(uint32_t, uint64_t *, float *, uint64_t *) = find("rsmi_dev_energy_count_get");
    float unit;
    if (energy(0, &value, &unit, &time) == 0) printf("energy_count %llu\n", (unsigned long long)value);
    int (*memory)(uint32_t, int, uint64_t *) = find("rsmi_dev_memory_usage_get");
    if (memory(0, VRAM, &value) == 0) printf("vram %llu\n", (unsigned long long)value);
    percent("gpu_util", "rsmi_dev_busy_percent_get");
    percent("mem_util", "rsmi_dev_memory_busy_percent_get");
    temperature("temp_edge", EDGE);
    temperature("temp_hotspot", HOTSPOT);
    temperature("temp_mem", MEMORY);
    clock_of("sclk", SYSTEM_CLOCK);
    clock_of("mclk", MEMORY_CLOCK);
    return 0;
}
