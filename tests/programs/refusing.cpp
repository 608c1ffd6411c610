// A tool of the HSA runtime that refuses calls as a runtime does which has no memory left, or whose device has failed: those of one function by the
// recorder's thread rpd-candidates. It stands in front of the recorder in HSA_TOOLS_LIB, so that the recorder takes its functions for the runtime's.
//
// Environment: REFUSED="FUNCTION NUMBER", the call of that number, counted from 1; with a second number, all calls up to that one.
//
// Compile: c++ -O2 -shared -fPIC -DAMD_INTERNAL_BUILD -I. refusing.cpp   with a link `inc` to the folder of hsa.h
#include <inc/hsa_api_trace.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>

static char function[64];
static int first, last;
static std::atomic<int> calls;

static bool is_refused(const char *name) {
    char thread[16] = "";
    if (strcmp(name, function) || pthread_getname_np(pthread_self(), thread, sizeof thread) || strcmp(thread, "rpd-candidates"))
        return false;
    int number = ++calls;
    return number >= first && number <= last;
}

static decltype(hsa_amd_memory_pool_allocate) *allocate;
static hsa_status_t refuse_allocate(hsa_amd_memory_pool_t pool, size_t size, uint32_t flags, void **memory) {
    if (is_refused("hsa_amd_memory_pool_allocate")) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    return allocate(pool, size, flags, memory);
}

static decltype(hsa_amd_memory_async_copy) *copy;
static hsa_status_t refuse_copy(void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent, size_t size,
                                uint32_t count, const hsa_signal_t *before, hsa_signal_t completion) {
    if (is_refused("hsa_amd_memory_async_copy")) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    return copy(to, to_agent, from, from_agent, size, count, before, completion);
}

static decltype(hsa_executable_iterate_symbols) *iterate;
static hsa_status_t refuse_iterate(hsa_executable_t executable,
                                   hsa_status_t (*callback)(hsa_executable_t, hsa_executable_symbol_t, void *), void *data) {
    if (is_refused("hsa_executable_iterate_symbols")) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    return iterate(executable, callback, data);
}

// ROCr from 5.3 on starts tools by this number, the least first; the recorder's is 50.
extern "C" __attribute__((visibility("default"))) const uint32_t HSA_AMD_TOOL_PRIORITY = 10;

extern "C" __attribute__((visibility("default"))) bool OnLoad(HsaApiTable *table, uint64_t, uint64_t, const char *const *) {
    const char *wanted = getenv("REFUSED");
    int numbers = wanted ? sscanf(wanted, "%63s %d %d", function, &first, &last) : 0;
    if (numbers < 2) return false;
    if (numbers == 2) last = first;
    allocate = table->amd_ext_->hsa_amd_memory_pool_allocate_fn;
    copy = table->amd_ext_->hsa_amd_memory_async_copy_fn;
    iterate = table->core_->hsa_executable_iterate_symbols_fn;
    table->amd_ext_->hsa_amd_memory_pool_allocate_fn = refuse_allocate;
    table->amd_ext_->hsa_amd_memory_async_copy_fn = refuse_copy;
    table->core_->hsa_executable_iterate_symbols_fn = refuse_iterate;
    return true;
}

extern "C" __attribute__((visibility("default"))) void OnUnload() {}
