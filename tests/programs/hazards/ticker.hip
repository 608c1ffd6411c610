// A kernel and a mark with a running number about every millisecond, TICKS times or until somebody ends the process. Says every fiftieth
// number.
//
// Usage: ticker [marks | TICKS]     marks: no GPU
#include "../../../fixtures/programs/check.h"
#include "markers.h"

#include <cstdlib>
#include <string>
#include <unistd.h>

__global__ void tick(int *count) { *count += 1; }

int main(int argc, char **argv) {
    int *count = nullptr;
    int ticks = argc < 2 ? -1 : std::atoi(argv[1]);
    if (ticks != 0) HIP(hipMalloc(&count, sizeof(int)));
    for (int number = 0; ticks <= 0 || number < ticks; number++) {
        if (count) tick<<<1, 1>>>(count);
        mark(std::to_string(number).c_str());
        if (number % 50 == 0) {
            printf("<%d>\n", number);
            fflush(stdout);
        }
        usleep(1000);
    }
}
