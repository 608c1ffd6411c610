// A kernel that prints, and its instrumented build. It is launched six times, recorded in the second, fourth and sixth (with
// RPDT_AUTOSTART=0), and once more after hipDeviceReset. Status 0 only if all results are right.
#include <rpd_probe.h>

#include "../../fixtures/programs/check.h"
#include <dlfcn.h>

#define ITEMS 64

__global__ void say(int *out, int base) {
    out[threadIdx.x] = base;
    if (threadIdx.x < 2) printf("lane %d of %d\n", int(threadIdx.x), base);
}
RPD_INSTRUMENTED(_Z3sayPii)(int *out, int base, void *probe) {
    RPD_STORE(probe, &out[threadIdx.x], base);
    if (threadIdx.x < 2) printf("lane %d of %d\n", int(threadIdx.x), base);
}

static void control(const char *name) {
    void (*function)() = (void (*)())dlsym(RTLD_DEFAULT, name);
    if (function) function();
}

static void launch(int number) {
    int *out, found[ITEMS];
    HIP(hipMalloc(&out, sizeof found));
    say<<<1, ITEMS>>>(out, number);
    HIP(hipMemcpy(found, out, sizeof found, hipMemcpyDeviceToHost));
    for (int i = 0; i < ITEMS; i++) expect(found[i] == number, "say", i);
}

int main() {
    for (int number = 0; number < 6; number++) {
        launch(number);
        control(number % 2 ? "rpdstop" : "rpdstart");
    }
    HIP(hipDeviceReset());
    control("rpdstart");
    launch(6);
    return 0;
}
