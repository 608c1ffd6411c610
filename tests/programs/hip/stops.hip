// Launches kernels while recording is started and stopped: in turn with kernels in flight, in the midst of calls, inside HIP's own
// callbacks, and by two threads at once while four launch. RECORDER, if any, is loaded when HIP has been used.
#include "../../../fixtures/programs/check.h"
#include "../hazards/markers.h"

#include <atomic>
#include <thread>
#include <unistd.h>
#include <vector>

__global__ void unrecorded(int *count) { *count += 1; }
__global__ void first(int *count) { *count += 1; }
__global__ void second(int *count) { *count += 1; }
__global__ void nested(int *count) { *count += 1; }
__global__ void storm(int *count) { *count += 1; }
__global__ void last(int *count) { *count += 1; }

static int *count;

static void launch(void (*kernel)(int *), hipStream_t stream, int times) {
    for (int i = 0; i < times; i++) kernel<<<1, 1, 0, stream>>>(count);
    HIP(hipGetLastError());
}

static void stop() {
    call("rpdstop");
    call("rpdflush");
}

static void stop_and_start(hipStream_t, hipError_t, void *) {
    call("rpdstop");
    call("rpdstart");
}

int main() {
    hipStream_t stream;
    HIP(hipMalloc(&count, sizeof(int)));
    HIP(hipStreamCreate(&stream));
    launch(unrecorded, stream, 5);
    HIP(hipStreamSynchronize(stream));
    if (const char *recorder = getenv("RECORDER")) {
        if (!dlopen(recorder, RTLD_NOW | RTLD_GLOBAL)) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
    }

    call("rpdstart");
    launch(first, stream, 20);
    stop();
    launch(unrecorded, stream, 20);
    HIP(hipStreamSynchronize(stream));
    call("rpdstart");
    launch(second, stream, 20);
    // Stopped while this thread waits inside HIP.
    std::atomic<bool> waiting{false};
    std::thread stopper([&] {
        while (!waiting) usleep(100);
        usleep(5000);
        stop();
    });
    waiting = true;
    HIP(hipStreamSynchronize(stream));
    stopper.join();
    launch(unrecorded, stream, 20);

    call("rpdstart");
    call("rpdstart");
    stop();
    launch(nested, stream, 20);
    HIP(hipStreamAddCallback(stream, stop_and_start, nullptr, 0));
    HIP(hipStreamSynchronize(stream));
    stop();

    std::atomic<bool> ending{false};
    std::vector<std::thread> launching, switching;
    for (int i = 0; i < 4; i++)
        launching.emplace_back([&] {
            hipStream_t mine;
            HIP(hipStreamCreate(&mine));
            while (!ending) {
                launch(storm, mine, 4);
                HIP(hipStreamSynchronize(mine));
            }
            HIP(hipStreamDestroy(mine));
        });
    for (int i = 0; i < 2; i++)
        switching.emplace_back([] {
            for (int times = 0; times < 100; times++) {
                call("rpdstart");
                usleep(1000);
                stop();
            }
        });
    for (auto &thread : switching) thread.join();
    ending = true;
    for (auto &thread : launching) thread.join();

    launch(unrecorded, stream, 20);
    call("rpdstart");
    launch(last, stream, 20);
    stop();
    launch(unrecorded, stream, 20);
    HIP(hipDeviceSynchronize());
}
