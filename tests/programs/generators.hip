// Generators of rocRAND, with each distribution that they have. Arguments: their names; none for all that rocRAND 5.3 has. The host looks at means and
// ranges, and prints a sum of the bits: the same in every run. Means of sobol64 are not looked at: its uniform numbers are all 2^-32 here.
//
// Compile: hipcc -O2 --offload-arch=gfx900 generators.hip -o generators -lrocrand
#include "../../fixtures/programs/check.h"
#include <cmath>
#include <cstring>
#include <functional>
#include <rocrand/rocrand.h>
#include <vector>

#define COUNT 2048

// The numbers that `generate` leaves in memory of the device, at least 0 in all kinds but `normal`.
template <typename T> static void numbers(const char *name, const char *kind, double mean, double tolerance, std::function<rocrand_status(T *)> generate) {
    T *memory;
    HIP(hipMalloc(&memory, COUNT * sizeof(T)));
    HIP(hipMemset(memory, 0xff, COUNT * sizeof(T)));
    rocrand_status status = generate(memory);
    if (status == ROCRAND_STATUS_TYPE_ERROR) {
        printf("%s has no %s numbers\n", name, kind);
        HIP(hipFree(memory));
        return;
    }
    expect(!status, kind);
    HIP(hipDeviceSynchronize());
    std::vector<T> got(COUNT);
    HIP(hipMemcpy(got.data(), memory, COUNT * sizeof(T), hipMemcpyDeviceToHost));
    HIP(hipFree(memory));
    double sum = 0;
    unsigned long bits = 0;
    for (size_t at = 0; at < COUNT; at++) {
        expect(std::isfinite(double(got[at])) && (!strcmp(kind, "normal") || got[at] >= 0), kind, at);
        sum += double(got[at]);
        for (size_t byte = 0; byte < sizeof(T); byte++) bits = bits * 31 + reinterpret_cast<unsigned char *>(&got[at])[byte];
    }
    expect(!strcmp(name, "sobol64") || std::fabs(sum / COUNT - mean) < tolerance, kind);
    printf("%s %s %zu %lx\n", name, kind, sizeof(T), bits);
}

int main(int argc, char **arguments) {
    const struct { const char *name; rocrand_rng_type type; bool is_quasi; } all[] = {
        {"xorwow", ROCRAND_RNG_PSEUDO_XORWOW, false},
        {"mrg32k3a", ROCRAND_RNG_PSEUDO_MRG32K3A, false},
        {"mtgp32", ROCRAND_RNG_PSEUDO_MTGP32, false},
        {"philox4_32_10", ROCRAND_RNG_PSEUDO_PHILOX4_32_10, false},
        {"sobol32", ROCRAND_RNG_QUASI_SOBOL32, true},
        {"sobol64", ROCRAND_RNG_QUASI_SOBOL64, true},
    };
    for (auto &of : all) {
        bool is_meant = argc == 1;
        for (int number = 1; number < argc; number++) is_meant |= !strcmp(arguments[number], of.name);
        if (!is_meant) continue;
        rocrand_generator generator;
        expect(!rocrand_create_generator(&generator, of.type), of.name);
        if (of.is_quasi) expect(!rocrand_set_quasi_random_generator_dimensions(generator, 4), "dimensions");
        else expect(!rocrand_set_seed(generator, 42), "a seed");
        numbers<unsigned>(of.name, "whole", 2.1e9, 3e8, [&](auto *to) { return rocrand_generate(generator, to, COUNT); });
        numbers<float>(of.name, "uniform", 0.5, 0.05, [&](auto *to) { return rocrand_generate_uniform(generator, to, COUNT); });
        numbers<double>(of.name, "uniform", 0.5, 0.05, [&](auto *to) { return rocrand_generate_uniform_double(generator, to, COUNT); });
        numbers<float>(of.name, "normal", 1, 0.2, [&](auto *to) { return rocrand_generate_normal(generator, to, COUNT, 1, 2); });
        numbers<double>(of.name, "normal", 1, 0.2, [&](auto *to) { return rocrand_generate_normal_double(generator, to, COUNT, 1, 2); });
        numbers<float>(of.name, "log-normal", 1.13, 0.2, [&](auto *to) { return rocrand_generate_log_normal(generator, to, COUNT, 0, 0.5f); });
        numbers<unsigned>(of.name, "Poisson", 10, 0.6, [&](auto *to) { return rocrand_generate_poisson(generator, to, COUNT, 10); });
        expect(!rocrand_destroy_generator(generator), "rocrand_destroy_generator");
    }
    return 0;
}
