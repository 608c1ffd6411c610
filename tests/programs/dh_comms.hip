// A kernel and its instrumented build, which uses the device functions of AMD's dh_comms. A wavefront each: a workgroup.
#include "../../fixtures/programs/check.h"
#include <dh_comms_dev.h>
#include <vector>

#define BLOCKS 40
#define ITEMS 64
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

__global__ void twice(const int *in, int *out) {
    if (threadIdx.x % 2 == 0) out[INDEX] = 2 * in[INDEX * 16];
}

extern "C" __global__ void __amd_crk__Z5twicePKiPiPv(const int *in, int *out, void *probe) {
    using namespace dh_comms;
    dh_comms_descriptor *to = (dh_comms_descriptor *)probe;
    uint64_t times[2] = {s_clock64(), 0};
    s_submit_wave_header(to, 0, 11, 0, message_type::basic_block_start, 0);
    if (threadIdx.x % 2 == 0) {
        s_submit_wave_header(to, 0, 12, 0, message_type::basic_block_start, 1);
        v_submit_address(to, (void *)&in[INDEX * 16], 0, 13, 5, memory_access::read, address_space::global, sizeof(int));
        v_submit_address(to, &out[INDEX], 0, 14, 5, memory_access::write, address_space::global, sizeof(int));
        out[INDEX] = 2 * in[INDEX * 16];
    }
    char odd[8] = "7 bytes";
    v_submit_message(to, odd, 7, 0, 15, 0, 4242, 1);
    times[1] = s_clock64();
    s_submit_time_interval(to, times);
}

int main() {
    std::vector<int> numbers(BLOCKS * ITEMS * 16), found(BLOCKS * ITEMS);
    for (size_t i = 0; i < numbers.size(); i++) numbers[i] = int(i);
    int *in, *out;
    HIP(hipMalloc(&in, numbers.size() * sizeof(int)));
    HIP(hipMalloc(&out, found.size() * sizeof(int)));
    HIP(hipMemset(out, 0, found.size() * sizeof(int)));
    HIP(hipMemcpy(in, numbers.data(), numbers.size() * sizeof(int), hipMemcpyHostToDevice));
    for (int round = 0; round < 3; round++) twice<<<BLOCKS, ITEMS>>>(in, out);
    HIP(hipMemcpy(found.data(), out, found.size() * sizeof(int), hipMemcpyDeviceToHost));
    for (int i = 0; i < BLOCKS * ITEMS; i++) expect(found[i] == (i % 2 ? 0 : 2 * i * 16), "twice", i);
    return 0;
}
