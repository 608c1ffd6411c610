// What nobody here wrote: rocPRIM's reduction, radix sort and scan, rocRAND's generator. Results are compared with the host's.
//
// Compile: hipcc -O2 -std=c++14 --offload-arch=gfx900 primitives.hip -o primitives -lrocrand
#include "../../fixtures/programs/check.h"

#include <algorithm>
#include <numeric>
#include <rocprim/rocprim.hpp>
#include <rocrand/rocrand.h>
#include <vector>

static void random_numbers(float *numbers, size_t count) {
    rocrand_generator generator;
    expect(!rocrand_create_generator(&generator, ROCRAND_RNG_PSEUDO_PHILOX4_32_10), "rocrand_create_generator");
    expect(!rocrand_set_seed(generator, 42), "rocrand_set_seed");
    expect(!rocrand_generate_uniform(generator, numbers, count), "rocrand_generate_uniform");
    HIP(hipDeviceSynchronize());
    expect(!rocrand_destroy_generator(generator), "rocrand_destroy_generator");
}

// Runs an algorithm of rocPRIM: asks for the size of its temporary memory first.
template <typename Algorithm> static void run(Algorithm algorithm) {
    size_t size = 0;
    void *memory = nullptr;
    HIP(algorithm(memory, size));
    HIP(hipMalloc(&memory, size));
    HIP(algorithm(memory, size));
    HIP(hipDeviceSynchronize());
    HIP(hipFree(memory));
}

int main() {
    const size_t count = 5000;
    std::vector<float> uniform(count);
    std::vector<unsigned> numbers(count), expected(count), got(count);
    float *device_uniform;
    unsigned *from, *to, sum;
    HIP(hipMalloc(&device_uniform, count * sizeof(float)));
    HIP(hipMalloc(&from, count * sizeof(unsigned)));
    HIP(hipMalloc(&to, count * sizeof(unsigned)));

    random_numbers(device_uniform, count);
    HIP(hipMemcpy(uniform.data(), device_uniform, count * sizeof(float), hipMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++) expect(uniform[i] > 0 && uniform[i] <= 1, "a uniform number", i);
    const double mean = std::accumulate(uniform.begin(), uniform.end(), 0.0) / count;
    expect(mean > 0.45 && mean < 0.55, "mean of the uniform numbers");
    for (size_t i = 0; i < count; i++) numbers[i] = unsigned(uniform[i] * 4e9f);
    HIP(hipMemcpy(from, numbers.data(), count * sizeof(unsigned), hipMemcpyHostToDevice));

    run([&](void *memory, size_t &size) {
        return rocprim::reduce(memory, size, from, to, 0u, count, rocprim::plus<unsigned>());
    });
    HIP(hipMemcpy(&sum, to, sizeof sum, hipMemcpyDeviceToHost));
    expect(sum == std::accumulate(numbers.begin(), numbers.end(), 0u), "the sum");

    run([&](void *memory, size_t &size) {
        return rocprim::inclusive_scan(memory, size, from, to, count, rocprim::plus<unsigned>());
    });
    HIP(hipMemcpy(got.data(), to, count * sizeof(unsigned), hipMemcpyDeviceToHost));
    std::partial_sum(numbers.begin(), numbers.end(), expected.begin());
    for (size_t i = 0; i < count; i++) expect(got[i] == expected[i], "a partial sum", i);

    run([&](void *memory, size_t &size) { return rocprim::radix_sort_keys(memory, size, from, to, count); });
    HIP(hipMemcpy(got.data(), to, count * sizeof(unsigned), hipMemcpyDeviceToHost));
    std::sort(numbers.begin(), numbers.end());
    for (size_t i = 0; i < count; i++) expect(got[i] == numbers[i], "a sorted number", i);

    puts("random numbers, sum, partial sums and order are right");
    return 0;
}
