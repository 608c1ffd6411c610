// A sample as public collections have it: Fourier transforms of 256 numbers in LDS, there and back, in single and double precision. The host compares a
// few frequencies with their definition, and what comes back with what was there.
#include "../../../fixtures/programs/check.h"
#include <cmath>
#include <complex>
#include <vector>

#define SIZE 256

template <typename T> __global__ void transform(const T *from, T *to, T sign) {
    __shared__ T real[SIZE], imaginary[SIZE];
    const int me = threadIdx.x, first = blockIdx.x * SIZE;
    for (int at = me; at < SIZE; at += SIZE / 2) {
        int place = __brev(unsigned(at)) >> 24;
        real[place] = from[2 * (first + at)];
        imaginary[place] = from[2 * (first + at) + 1];
    }
    for (int half = 1; half < SIZE; half *= 2) {
        __syncthreads();
        int lower = me / half * 2 * half + me % half, upper = lower + half;
        T angle = sign * T(M_PI) * T(me % half) / T(half), sine = sin(angle), cosine = cos(angle);
        T r = real[upper] * cosine - imaginary[upper] * sine, i = real[upper] * sine + imaginary[upper] * cosine;
        real[upper] = real[lower] - r, imaginary[upper] = imaginary[lower] - i;
        real[lower] += r, imaginary[lower] += i;
    }
    __syncthreads();
    for (int at = me; at < SIZE; at += SIZE / 2) {
        to[2 * (first + at)] = real[at];
        to[2 * (first + at) + 1] = imaginary[at];
    }
}

template <typename T> static void check(const char *name, T tolerance) {
    const int batches = 3;
    std::vector<std::complex<T>> numbers(batches * SIZE), got(batches * SIZE), back(batches * SIZE);
    unsigned number = 7;
    for (auto &one : numbers) {
        T r = T((number = number * 1664525 + 1013904223) >> 16) / 65536, i = T((number = number * 1664525 + 1013904223) >> 16) / 65536;
        one = {r, i};
    }
    const size_t bytes = numbers.size() * sizeof(numbers[0]);
    T *from, *to;
    HIP(hipMalloc(&from, bytes));
    HIP(hipMalloc(&to, bytes));
    HIP(hipMemcpy(from, numbers.data(), bytes, hipMemcpyHostToDevice));
    transform<T><<<batches, SIZE / 2>>>(from, to, -1);
    HIP(hipMemcpy(got.data(), to, bytes, hipMemcpyDeviceToHost));
    transform<T><<<batches, SIZE / 2>>>(to, from, 1);
    HIP(hipMemcpy(back.data(), from, bytes, hipMemcpyDeviceToHost));
    for (int frequency : {0, 1, 17, 128, 255}) {
        std::complex<double> sum;
        for (int at = 0; at < SIZE; at++)
            sum += std::complex<double>(numbers[SIZE + at]) * std::polar(1.0, -2 * M_PI * frequency * at / SIZE);
        expect(std::abs(sum - std::complex<double>(got[SIZE + frequency])) < tolerance * SIZE, "a frequency", frequency);
    }
    for (size_t at = 0; at < back.size(); at++) expect(std::abs(back[at] / T(SIZE) - numbers[at]) < tolerance, "the way back", at);
    printf("%s: there and back\n", name);
}

int main() {
    check<float>("float", 1e-4f);
    check<double>("double", 1e-12);
    return 0;
}
