// The smallest tool that intercepts queues, without what the recorder does about ROCr's overflow bug: it asks for queues of
// exactly the size that the application wants, and passes packets on. With it `aql` aborts in ROCr 5.2 to 5.7
// (intercept_queue.cpp, "overflow_.empty()"). It is here so that the test of the recorder's larger queues is known to bite.
//
// Compile: c++ -O2 -shared -fPIC -DAMD_INTERNAL_BUILD -I. plain_interceptor.cpp   with a link `inc` to the folder of hsa.h
#include <inc/hsa_api_trace.h>

static HsaApiTable *table;

static void pass(const void *packets, uint64_t count, uint64_t, void *, hsa_amd_queue_intercept_packet_writer write) {
    write(packets, count);
}

static hsa_status_t create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                           void (*callback)(hsa_status_t, hsa_queue_t *, void *), void *data, uint32_t private_bytes,
                           uint32_t group_bytes, hsa_queue_t **queue) {
    hsa_status_t status = table->amd_ext_->hsa_amd_queue_intercept_create_fn(agent, size, type, callback, data,
                                                                             private_bytes, group_bytes, queue);
    if (status != HSA_STATUS_SUCCESS) return status;
    return table->amd_ext_->hsa_amd_queue_intercept_register_fn(*queue, pass, nullptr);
}

extern "C" __attribute__((visibility("default"))) bool OnLoad(HsaApiTable *given, uint64_t, uint64_t, const char *const *) {
    table = given;
    table->core_->hsa_queue_create_fn = create;
    return true;
}

extern "C" __attribute__((visibility("default"))) void OnUnload() {}
