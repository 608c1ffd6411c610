// A library with a kernel, -DNAME of it, and a function that runs it and checks what it has computed.
#include "../../../fixtures/programs/check.h"

#define JOINED(a, b) a##b
#define CALLED(a, b) JOINED(a, b)

extern "C" __global__ void CALLED(of_, NAME)(int *value) { *value += 5; }

#ifdef NEEDS
extern "C" void CALLED(run_, NEEDS)();
#endif

extern "C" void CALLED(run_, NAME)() {
    int *value, one = 1, found;
    HIP(hipMalloc((void **)&value, sizeof one));
    HIP(hipMemcpy(value, &one, sizeof one, hipMemcpyHostToDevice));
    CALLED(of_, NAME)<<<1, 1>>>(value);
    HIP(hipMemcpy(&found, value, sizeof found, hipMemcpyDeviceToHost));
    expect(found == 6, "value of the library", found);
    HIP(hipFree(value));
#ifdef NEEDS
    CALLED(run_, NEEDS)();
#endif
}
