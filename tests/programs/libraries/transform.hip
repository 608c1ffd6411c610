// rocFFT: the transform of 64 complex numbers.
#include "../../../fixtures/programs/check.h"

#include <rocfft/rocfft.h>

#define ROCFFT(call) expect((call) == rocfft_status_success, #call)

int main() {
    ROCFFT(rocfft_setup());
    rocfft_plan plan = nullptr;
    const size_t length = 64;
    ROCFFT(rocfft_plan_create(&plan, rocfft_placement_inplace, rocfft_transform_type_complex_forward, rocfft_precision_single, 1, &length, 1,
                              nullptr));
    void *numbers;
    HIP(hipMalloc(&numbers, length * 2 * sizeof(float)));
    ROCFFT(rocfft_execute(plan, &numbers, nullptr, nullptr));
    HIP(hipDeviceSynchronize());
    ROCFFT(rocfft_plan_destroy(plan));
    ROCFFT(rocfft_cleanup());
    puts("done");
    return 0;
}
