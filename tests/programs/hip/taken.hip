// Plays another profiler: takes HIP's callbacks between two rows of launches, whose kernels have different names.
#include "../../../fixtures/programs/check.h"
#include "../hazards/markers.h"

#include <unistd.h>

__global__ void before(int *count) { *count += 1; }
__global__ void meanwhile(int *count) { *count += 1; }
__global__ void after(int *count) { *count += 1; }

static int *count;

static void launch(void (*kernel)(int *), int times) {
    for (int i = 0; i < times; i++) kernel<<<1, 1>>>(count);
    HIP(hipDeviceSynchronize());
}

static int not_wanted(uint32_t, uint32_t, void *) { return 1; }
static void *nothing(uint32_t, void *, const void *, void *) { return nullptr; }

// hipRegisterTracerCallback, or up to HIP 5.2 hipRegisterActivityCallback for every function.
static void take() {
    auto tracer = (void (*)(int (*)(uint32_t, uint32_t, void *)))dlsym(RTLD_DEFAULT, "hipRegisterTracerCallback");
    auto activity = (int (*)(uint32_t, void *, void *))dlsym(RTLD_DEFAULT, "hipRegisterActivityCallback");
    if (tracer) tracer(not_wanted);
    else
        for (uint32_t id = 1; activity(id, (void *)nothing, nullptr) == 0;) id++;
}

int main() {
    HIP(hipMalloc(&count, sizeof(int)));
    launch(before, 100);
    take();
    for (int i = 0; i < 3; i++) {
        launch(meanwhile, 50);
        usleep(200000);
    }
    call("rpdflush");
    launch(after, 100);
    int counted;
    HIP(hipMemcpy(&counted, count, sizeof counted, hipMemcpyDeviceToHost));
    HIP(hipFree(count));
    return 0;
}
