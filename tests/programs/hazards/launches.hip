// Launches kernels, one after the other, waits for them and says so; then for a file.
//
// Usage: launches COUNT FILE
#include "../../../fixtures/programs/check.h"

#include <cstdlib>
#include <unistd.h>

__global__ void step(int *count) { *count += 1; }

int main(int, char **argv) {
    int *count, launches = std::atoi(argv[1]);
    HIP(hipMalloc(&count, sizeof(int)));
    for (int i = 0; i < launches; i++) step<<<1, 1>>>(count);
    HIP(hipDeviceSynchronize());
    printf("%d launches\n", launches);
    fflush(stdout);
    while (access(argv[2], F_OK) != 0) usleep(5000);
    return 0;
}
