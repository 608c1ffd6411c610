// A child that was forked before HIP was used launches three kernels, and its parent two.
#include "../../../fixtures/programs/check.h"

#include <sys/wait.h>
#include <unistd.h>

__global__ void step(int *count) { *count += 1; }

static void launch(int times) {
    int *count;
    HIP(hipMalloc(&count, sizeof(int)));
    for (int i = 0; i < times; i++) step<<<1, 1>>>(count);
    HIP(hipDeviceSynchronize());
}

int main() {
    pid_t child = fork();
    if (child == 0) {
        launch(3);
        _exit(0);
    }
    int status = 0;
    expect(child > 0 && waitpid(child, &status, 0) == child && status == 0, "status of the child", status);
    launch(2);
}
