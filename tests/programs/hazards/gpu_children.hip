// Children of a process that uses the GPU, forked while kernels are in flight. They use no GPU, mark, and end in three ways.
#include "../../../fixtures/programs/check.h"
#include "markers.h"

#include <sys/wait.h>
#include <unistd.h>

__global__ void step(int *count) { *count += 1; }

int main() {
    int *count, counted = 0;
    HIP(hipMalloc(&count, sizeof(int)));
    HIP(hipMemset(count, 0, sizeof(int)));
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 10; i++) step<<<1, 1>>>(count);
        mark("parent");
        pid_t child = fork();
        if (child == 0) {
            mark("child");
            if (round % 3 == 0) _exit(round);
            if (round % 3 == 1) quick_exit(round);
            exit(round);
        }
        int status = 0;
        waitpid(child, &status, 0);
        expect(WIFEXITED(status) && WEXITSTATUS(status) == round, "status of a child", round);
    }
    HIP(hipMemcpy(&counted, count, sizeof counted, hipMemcpyDeviceToHost));
    expect(counted == 60, "number of kernels");
    puts("60 kernels, 6 children");
    return 0;
}
