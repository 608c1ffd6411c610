// A program whose host has nothing to do: one kernel, and then it sleeps.
//
//   idle SECONDS
#include "../../../fixtures/programs/check.h"

#include <unistd.h>

__global__ void kernel() {}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    kernel<<<1, 1>>>();
    sleep(atoi(argv[1]));
    HIP(hipDeviceSynchronize());
    return 0;
}
