// Launches a kernel of Triton's as Triton's own launcher does: workgroups of as many wavefronts as it was compiled for, dynamic LDS, and
// two more pointers behind the arguments.
//
// Arguments: the code object, the kernel (add_kernel, dot_kernel), its wavefronts, the elements of a block, bytes of dynamic LDS, and how
// often it is launched. Status 0 only if all results are right.
#include "../../../fixtures/programs/check.h"

#include <cstring>
#include <vector>

enum { ELEMENTS = 10000, WAVEFRONT = 64 };

int main(int count, char **arguments) {
    expect(count == 7, "arguments");
    const char *name = arguments[2];
    int warps = atoi(arguments[3]), block = atoi(arguments[4]), shared = atoi(arguments[5]), rounds = atoi(arguments[6]);
    int n = ELEMENTS, programs = (n + block - 1) / block;
    bool dot = !strcmp(name, "dot_kernel");

    hipModule_t module;
    hipFunction_t function;
    HIP(hipModuleLoad(&module, arguments[1]));
    HIP(hipModuleGetFunction(&function, module, name));
    std::vector<float> x(n), y(n), out(n);
    for (int i = 0; i < n; i++) x[i] = float(i % 13), y[i] = float(i % 7);
    void *on_device[3];
    for (void *&memory : on_device) HIP(hipMalloc(&memory, n * sizeof(float)));
    HIP(hipMemcpy(on_device[0], x.data(), n * sizeof(float), hipMemcpyHostToDevice));
    HIP(hipMemcpy(on_device[1], y.data(), n * sizeof(float), hipMemcpyHostToDevice));
    void *global_scratch = nullptr, *profile_scratch = nullptr;
    void *all[] = {&on_device[0], &on_device[1], &on_device[2], &n, &global_scratch, &profile_scratch};
    for (int round = 0; round < rounds; round++) {
        HIP(hipMemset(on_device[2], 0, n * sizeof(float)));
        HIP(hipModuleLaunchKernel(function, programs, 1, 1, WAVEFRONT * warps, 1, 1, shared, nullptr, all, nullptr));
        HIP(hipMemcpy(out.data(), on_device[2], n * sizeof(float), hipMemcpyDeviceToHost));
        for (int i = 0; i < (dot ? programs : n); i++) {
            float right = dot ? 0 : x[i] + y[i];
            for (int at = i * block; dot && at < n && at < (i + 1) * block; at++) right += x[at] * y[at];
            expect(out[i] == right, name, i);
        }
    }
    printf("%s is right in %d rounds\n", name, rounds);
    return 0;
}
