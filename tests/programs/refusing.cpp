// A tool of the HSA runtime that refuses calls as a runtime does which has no memory left, or whose device has failed. It stands in front of the recorder in
// HSA_TOOLS_LIB, so that the recorder takes its functions for the runtime's.
//
// Environment: REFUSED="WHAT FIRST LAST", the calls from one number to another, counted from 1, by the recorder's thread rpd-candidates.
// WHAT is a function, or `reads`: copies of memory of a device that this thread has allocated. `all_reads`: by any thread.
//
// Compile: c++ -O2 -shared -fPIC -DAMD_INTERNAL_BUILD -I. refusing.cpp   with a link `inc` to the folder of hsa.h
#include <inc/hsa_api_trace.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <pthread.h>
#include <vector>

static char what[64];
static int first, last;
static std::atomic<int> calls;

static bool is_recorders() {
    char thread[16] = "";
    return !pthread_getname_np(pthread_self(), thread, sizeof thread) && !strcmp(thread, "rpd-candidates");
}

static bool is_refused(const char *name) {
    if (strcmp(name, what)) return false;
    int number = ++calls;
    return number >= first && number <= last;
}

// Memory that the thread has allocated.
struct Piece {
    const char *begin;
    size_t size;
};
static std::mutex pieces_lock;
static std::vector<Piece> pieces;

static bool is_in_piece(const void *address) {
    std::lock_guard<std::mutex> guard(pieces_lock);
    for (const Piece &piece : pieces)
        if (address >= piece.begin && address < piece.begin + piece.size) return true;
    return false;
}

static decltype(hsa_amd_memory_pool_allocate) *allocate;
static hsa_status_t refuse_allocate(hsa_amd_memory_pool_t pool, size_t size, uint32_t flags, void **memory) {
    if (!is_recorders()) return allocate(pool, size, flags, memory);
    if (is_refused("hsa_amd_memory_pool_allocate")) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    hsa_status_t status = allocate(pool, size, flags, memory);
    std::lock_guard<std::mutex> guard(pieces_lock);
    if (status == HSA_STATUS_SUCCESS) pieces.push_back({static_cast<const char *>(*memory), size});
    return status;
}

static decltype(hsa_agent_get_info) *agent_info;
static bool is_gpu(hsa_agent_t agent) {
    hsa_device_type_t type = HSA_DEVICE_TYPE_CPU;
    return agent_info(agent, HSA_AGENT_INFO_DEVICE, &type) == HSA_STATUS_SUCCESS && type == HSA_DEVICE_TYPE_GPU;
}

static decltype(hsa_amd_memory_async_copy) *copy;
static hsa_status_t refuse_copy(void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent, size_t size,
                                uint32_t count, const hsa_signal_t *before, hsa_signal_t completion) {
    bool is_read = is_gpu(from_agent) && is_in_piece(from);
    bool refused = is_read && is_refused("all_reads");
    if (is_recorders()) refused = refused || (is_read && is_refused("reads")) || is_refused("hsa_amd_memory_async_copy");
    if (refused) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    return copy(to, to_agent, from, from_agent, size, count, before, completion);
}

static decltype(hsa_executable_iterate_symbols) *iterate;
static hsa_status_t refuse_iterate(hsa_executable_t executable,
                                   hsa_status_t (*callback)(hsa_executable_t, hsa_executable_symbol_t, void *), void *data) {
    if (is_recorders() && is_refused("hsa_executable_iterate_symbols")) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    return iterate(executable, callback, data);
}

// ROCr from 5.3 on starts tools by this number, the least first; the recorder's is 50.
extern "C" __attribute__((visibility("default"))) const uint32_t HSA_AMD_TOOL_PRIORITY = 10;

extern "C" __attribute__((visibility("default"))) bool OnLoad(HsaApiTable *table, uint64_t, uint64_t, const char *const *) {
    const char *wanted = getenv("REFUSED");
    if (!wanted || sscanf(wanted, "%63s %d %d", what, &first, &last) != 3) return false;
    agent_info = table->core_->hsa_agent_get_info_fn;
    allocate = table->amd_ext_->hsa_amd_memory_pool_allocate_fn;
    copy = table->amd_ext_->hsa_amd_memory_async_copy_fn;
    iterate = table->core_->hsa_executable_iterate_symbols_fn;
    table->amd_ext_->hsa_amd_memory_pool_allocate_fn = refuse_allocate;
    table->amd_ext_->hsa_amd_memory_async_copy_fn = refuse_copy;
    table->core_->hsa_executable_iterate_symbols_fn = refuse_iterate;
    return true;
}

extern "C" __attribute__((visibility("default"))) void OnUnload() {}
