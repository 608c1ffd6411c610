// rocFFT: transforms of complex numbers, by default of 64. Arguments: what else, LENGTH or LENGTHxLENGTH, with a `d` in front those of doubles, with an
// `r` of real numbers. Status 0 only if each result is what the processor computes.
#include "../../../fixtures/programs/check.h"

#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <rocfft/rocfft.h>

#define ROCFFT(call) expect((call) == rocfft_status_success, #call)

typedef std::complex<double> Number;

// Numbers that lie `stride` apart, by the definition.
static void define(Number *numbers, size_t length, size_t stride) {
    std::vector<Number> roots(length), sums(length);
    for (size_t place = 0; place < length; place++) roots[place] = std::polar(1.0, -2 * M_PI * place / length);
    for (size_t frequency = 0; frequency < length; frequency++) {
        for (size_t place = 0; place < length; place++) {
            sums[frequency] += numbers[place * stride] * roots[frequency * place % length];
        }
    }
    for (size_t place = 0; place < length; place++) numbers[place * stride] = sums[place];
}

template <class Real> static void transform(const char *size, bool is_real) {
    const char *rows = strchr(size, 'x');
    size_t lengths[2] = {(size_t)atoi(size), rows ? (size_t)atoi(rows + 1) : 1};
    size_t all = lengths[0] * lengths[1], results = is_real ? lengths[0] / 2 + 1 : all;
    std::vector<Number> expected(all);
    std::vector<Real> in, out(2 * results);
    for (size_t place = 0; place < all; place++) {
        expected[place] = Number((place * 37 + 11) % 101 / 50.0 - 1, is_real ? 0 : (place * 53 + 7) % 89 / 44.0 - 1);
        in.push_back(expected[place].real());
        if (!is_real) in.push_back(expected[place].imag());
    }
    for (size_t row = 0; row < lengths[1]; row++) define(&expected[row * lengths[0]], lengths[0], 1);
    for (size_t column = 0; rows && column < lengths[0]; column++) define(&expected[column], lengths[1], lengths[0]);

    rocfft_plan plan = nullptr;
    rocfft_execution_info info = nullptr;
    ROCFFT(rocfft_plan_create(&plan, is_real ? rocfft_placement_notinplace : rocfft_placement_inplace,
                              is_real ? rocfft_transform_type_real_forward : rocfft_transform_type_complex_forward,
                              sizeof(Real) == sizeof(double) ? rocfft_precision_double : rocfft_precision_single, rows ? 2 : 1, lengths, 1,
                              nullptr));
    size_t work_size = 0;
    void *work = nullptr, *from, *to = nullptr;
    ROCFFT(rocfft_plan_get_work_buffer_size(plan, &work_size));
    ROCFFT(rocfft_execution_info_create(&info));
    if (work_size) {
        HIP(hipMalloc(&work, work_size));
        ROCFFT(rocfft_execution_info_set_work_buffer(info, work, work_size));
    }
    HIP(hipMalloc(&from, in.size() * sizeof(Real)));
    if (is_real) HIP(hipMalloc(&to, out.size() * sizeof(Real)));
    HIP(hipMemcpy(from, in.data(), in.size() * sizeof(Real), hipMemcpyHostToDevice));
    ROCFFT(rocfft_execute(plan, &from, is_real ? &to : nullptr, info));
    HIP(hipDeviceSynchronize());
    HIP(hipMemcpy(out.data(), is_real ? to : from, out.size() * sizeof(Real), hipMemcpyDeviceToHost));
    double most = (sizeof(Real) == sizeof(double) ? 1e-10 : 1e-4) * std::sqrt((double)all);
    for (size_t place = 0; place < results; place++) {
        Number result(out[2 * place], out[2 * place + 1]);
        if (!(std::abs(result - expected[place]) <= most)) {
            printf("%s: %zu is %g,%g, not %g,%g\n", size, place, result.real(), result.imag(), expected[place].real(), expected[place].imag());
            exit(1);
        }
    }
    HIP(hipFree(from));
    HIP(hipFree(to));
    HIP(hipFree(work));
    ROCFFT(rocfft_execution_info_destroy(info));
    ROCFFT(rocfft_plan_destroy(plan));
}

int main(int argc, char **argv) {
    ROCFFT(rocfft_setup());
    transform<float>("64", false);
    for (int number = 1; number < argc; number++) {
        const char *size = argv[number] + strspn(argv[number], "dr");
        bool is_real = strchr(argv[number], 'r');
        if (strchr(argv[number], 'd')) {
            transform<double>(size, is_real);
        } else {
            transform<float>(size, is_real);
        }
    }
    ROCFFT(rocfft_cleanup());
    puts("done");
    return 0;
}
