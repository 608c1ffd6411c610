// More algorithms of rocPRIM: sort by merging, selection, histogram, run lengths, adjacent differences, minimum, sums by key. Results are compared with the host's.
//
// Compile: hipcc -O2 -std=c++14 --offload-arch=gfx900 more_primitives.hip -o more_primitives
#include "../../fixtures/programs/check.h"

#include <algorithm>
#include <rocprim/rocprim.hpp>
#include <vector>

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

struct IsOdd {
    __host__ __device__ bool operator()(unsigned number) const { return number & 1; }
};

int main() {
    const size_t count = 3000;
    std::vector<unsigned> numbers(count), expected, got(count);
    unsigned number = 12345;
    for (unsigned &one : numbers) one = (number = number * 1664525 + 1013904223) >> 22;
    unsigned *from, *to, *lengths, *runs;
    for (unsigned **memory : {&from, &to, &lengths, &runs}) HIP(hipMalloc(memory, (count + 1) * sizeof(unsigned)));
    HIP(hipMemcpy(from, numbers.data(), count * sizeof(unsigned), hipMemcpyHostToDevice));
    auto results = [&](const unsigned *memory, size_t some) {
        got.resize(some);
        HIP(hipMemcpy(got.data(), memory, some * sizeof(unsigned), hipMemcpyDeviceToHost));
    };

    run([&](void *memory, size_t &size) { return rocprim::merge_sort(memory, size, from, to, count); });
    expected = numbers;
    std::sort(expected.begin(), expected.end());
    results(to, count);
    expect(got == expected, "sorted numbers");

    run([&](void *memory, size_t &size) { return rocprim::select(memory, size, from, to, runs, count, IsOdd()); });
    expected.clear();
    std::copy_if(numbers.begin(), numbers.end(), std::back_inserter(expected), IsOdd());
    results(to, expected.size());
    expect(got == expected, "odd numbers");

    run([&](void *memory, size_t &size) {
        return rocprim::histogram_even(memory, size, from, count, lengths, 9, 0u, 1024u);
    });
    expected.assign(8, 0);
    for (unsigned one : numbers) expected[one / 128]++;
    results(lengths, 8);
    expect(got == expected, "a histogram");

    std::vector<unsigned> few(count);
    for (size_t i = 0; i < count; i++) few[i] = numbers[i] / 700;
    HIP(hipMemcpy(from, few.data(), count * sizeof(unsigned), hipMemcpyHostToDevice));
    run([&](void *memory, size_t &size) {
        return rocprim::run_length_encode(memory, size, from, count, to, lengths, runs);
    });
    expected.clear();
    for (size_t i = 0; i < count; i++) {
        if (i && few[i] == few[i - 1]) expected.back()++;
        else expected.push_back(1);
    }
    results(lengths, expected.size());
    expect(got == expected, "lengths of runs");

    HIP(hipMemcpy(from, numbers.data(), count * sizeof(unsigned), hipMemcpyHostToDevice));
    run([&](void *memory, size_t &size) {
        return rocprim::adjacent_difference(memory, size, from, to, count, rocprim::minus<unsigned>());
    });
    expected.assign(1, numbers[0]);
    for (size_t i = 1; i < count; i++) expected.push_back(numbers[i] - numbers[i - 1]);
    results(to, count);
    expect(got == expected, "differences");

    run([&](void *memory, size_t &size) {
        return rocprim::reduce(memory, size, from, to, ~0u, count, rocprim::minimum<unsigned>());
    });
    results(to, 1);
    expect(got[0] == *std::min_element(numbers.begin(), numbers.end()), "the minimum");

    puts("order, selection, histogram, runs, differences and minimum are right");
    return 0;
}
