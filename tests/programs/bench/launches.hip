// A program that does nothing but launch: DISPATCHES empty kernels, in turn on STREAMS streams of GPUS GPUs, from one thread.
//
//   launches GPUS STREAMS DISPATCHES [GO]   STREAMS of each GPU; with GO it says "ready" and begins when that file exists
//
// Prints ns: "wall" and "host" from the first launch to the last completion, "launch" the CPU time of the launches alone. "host"
// is CPU time of the process without the software GPU's thread and without the recorder's own, which it says itself; it has
// HIP's busy waiting in it. Streams are waited for every 1000 launches, as a program that looks at its results does; it also
// keeps interception in old runtimes from overflowing its rings.
#include "../../../fixtures/programs/check.h"

#include <cstring>
#include <dirent.h>
#include <string>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <vector>

__global__ void short_kernel() {}

static const int ROUND = 1000, RUN = 50;

static double read_ns(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static std::string first_line(const std::string &path) {
    char line[256] = "";
    if (FILE *file = fopen(path.c_str(), "r")) {
        if (!fgets(line, sizeof line, file)) line[0] = 0;
        fclose(file);
    }
    return line;
}

// CPU time of the process without the device's thread and the recorder's.
static double host_ns() {
    double sum = read_ns(CLOCK_PROCESS_CPUTIME_ID);
    DIR *tasks = opendir("/proc/self/task");
    while (dirent *task = tasks ? readdir(tasks) : nullptr) {
        const std::string path = std::string("/proc/self/task/") + task->d_name;
        const std::string name = first_line(path + "/comm");
        const bool ours = !name.compare(0, 6, "simgpu") || !name.compare(0, 4, "rpd-");
        if (ours) sum -= atof(first_line(path + "/schedstat").c_str());
    }
    if (tasks) closedir(tasks);
    return sum;
}

int main(int argc, char **argv) {
    const int gpus = argc > 3 ? atoi(argv[1]) : 0, streams = argc > 3 ? atoi(argv[2]) : 0,
              dispatches = argc > 3 ? atoi(argv[3]) : 0;
    if (gpus < 1 || streams < 1 || dispatches < 1) {
        fputs("usage: launches GPUS STREAMS DISPATCHES [GO]\n", stderr);
        return 2;
    }
    std::vector<hipStream_t> stream(size_t(gpus) * streams);
    for (size_t i = 0; i < stream.size(); i++) {
        HIP(hipSetDevice(int(i) / streams));
        HIP(hipStreamCreateWithFlags(&stream[i], hipStreamNonBlocking));
        short_kernel<<<1, 1, 0, stream[i]>>>();
        HIP(hipStreamSynchronize(stream[i]));
    }
    if (argc > 4) {
        puts("ready");
        fflush(stdout);
        while (access(argv[4], F_OK) != 0) usleep(1000);
    }
    const double wall = read_ns(CLOCK_MONOTONIC), host = host_ns();
    double launch = 0;
    for (int launched = 0, gpu = 0; launched < dispatches; gpu = (gpu + 1) % gpus) {
        const double before = read_ns(CLOCK_THREAD_CPUTIME_ID);
        HIP(hipSetDevice(gpu));
        for (int i = 0; i < RUN && launched < dispatches; i++, launched++)
            short_kernel<<<1, 1, 0, stream[size_t(gpu) * streams + i % streams]>>>();
        HIP(hipGetLastError());
        launch += read_ns(CLOCK_THREAD_CPUTIME_ID) - before;
        if (launched % ROUND == 0)
            for (auto &one : stream) HIP(hipStreamSynchronize(one));
    }
    for (auto &one : stream) HIP(hipStreamSynchronize(one));
    printf("wall %.0f\nhost %.0f\nlaunch %.0f\n", read_ns(CLOCK_MONOTONIC) - wall, host_ns() - host, launch);
    return 0;
}
