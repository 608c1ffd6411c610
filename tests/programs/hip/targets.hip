// The same kernel on every GPU, directly and captured, twice: its largest workgroup tells for which target it was compiled.
#include "../../../fixtures/programs/check.h"

#ifdef __gfx906__
#define MOST 512
#else
#define MOST 256
#endif

__global__ void __launch_bounds__(MOST) bounded(unsigned *) {}

int main() {
    int gpus;
    HIP(hipGetDeviceCount(&gpus));
    // In the second round the code objects of all GPUs are loaded.
    for (int round = 0; round < 2; round++) {
        for (int gpu = 0; gpu < gpus; gpu++) {
            hipStream_t stream;
            hipGraph_t graph;
            HIP(hipSetDevice(gpu));
            HIP(hipStreamCreate(&stream));
            bounded<<<gpu + 1, 64, 0, stream>>>(nullptr);
            HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
            bounded<<<gpu + 1, 64, 0, stream>>>(nullptr);
            HIP(hipStreamEndCapture(stream, &graph));
            HIP(hipGraphDestroy(graph));
            HIP(hipStreamSynchronize(stream));
            HIP(hipStreamDestroy(stream));
        }
    }
    printf("%d GPUs\n", gpus);
}
