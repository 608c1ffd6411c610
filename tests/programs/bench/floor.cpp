// The least that any recorder of dispatches does: queues are intercepted, and packets passed on untouched. What a recorder
// costs beyond this is its own; what this costs is ROCr's interception.
//
// Queues are as large as the recorder's, for the same reason: ROCr before 6.0 aborts when an intercepted one overflows.
// Compile: c++ -O2 -shared -fPIC -DAMD_INTERNAL_BUILD -I. floor.cpp   with a link `inc` to the folder of hsa.h
#include <inc/hsa_api_trace.h>

static HsaApiTable *table;

static void pass(const void *packets, uint64_t count, uint64_t, void *, hsa_amd_queue_intercept_packet_writer write) {
    write(packets, count);
}

static hsa_status_t create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                           void (*callback)(hsa_status_t, hsa_queue_t *, void *), void *data, uint32_t private_bytes,
                           uint32_t group_bytes, hsa_queue_t **queue) {
    hsa_status_t status = table->amd_ext_->hsa_amd_queue_intercept_create_fn(
        agent, size < 16384 ? 16384 : size, type, callback, data, private_bytes, group_bytes, queue);
    if (status != HSA_STATUS_SUCCESS) return status;
    return table->amd_ext_->hsa_amd_queue_intercept_register_fn(*queue, pass, nullptr);
}

extern "C" __attribute__((visibility("default"))) bool OnLoad(HsaApiTable *given, uint64_t, uint64_t, const char *const *) {
    table = given;
    table->core_->hsa_queue_create_fn = create;
    return true;
}

extern "C" __attribute__((visibility("default"))) void OnUnload() {}
