// Launches kernels and ends without waiting for any: HIP 5.2 never says when they ran.
#include "../../../fixtures/programs/check.h"

__global__ void work() {}

int main() {
    for (int i = 0; i < 3; i++) work<<<1, 1>>>();
    HIP(hipGetLastError());
}
