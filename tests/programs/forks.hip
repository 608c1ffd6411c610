// Kernels before and behind a fork. The child does nothing with the GPU and ends by exit(), so that everything that is
// registered for the end of a process runs in it, or executes another program.
#include "../../fixtures/programs/check.h"

#include <sys/wait.h>
#include <unistd.h>

__global__ void before(int *count) { *count += 1; }
__global__ void behind(int *count) { *count += 1; }

static int status_of(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main() {
    int *count, counted = 0;
    HIP(hipMalloc(&count, sizeof(int)));
    HIP(hipMemset(count, 0, sizeof(int)));
    for (int i = 0; i < 10; i++) before<<<1, 1>>>(count);
    HIP(hipDeviceSynchronize());
    for (int round = 0; round < 5; round++) {
        before<<<1, 1>>>(count); // in flight while the process forks
        pid_t child = fork();
        if (child == 0) {
            if (round % 2) exit(round);
            execlp("true", "true", (char *)nullptr);
            _exit(127);
        }
        expect(status_of(child) == (round % 2 ? round : 0), "status of a child", round);
        for (int i = 0; i < 10; i++) behind<<<1, 1>>>(count);
        HIP(hipDeviceSynchronize());
    }
    HIP(hipMemcpy(&counted, count, sizeof counted, hipMemcpyDeviceToHost));
    expect(counted == 65, "number of kernels");
    puts("65 kernels, 5 children");
    return 0;
}
