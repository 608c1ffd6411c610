// A kernel and a mark with a running number about every millisecond, TICKS times or until somebody ends the process. Says every fiftieth
// number.
//
// Usage: ticker [marks | TICKS]     marks: no GPU. With UNTIL, the last 200 wait until the file of that name exists and all before is written
#include "../../../fixtures/programs/check.h"
#include "markers.h"

#include <cstdlib>
#include <string>
#include <unistd.h>

__global__ void tick(int *count) { *count += 1; }

int main(int argc, char **argv) {
    int *count = nullptr;
    int ticks = argc < 2 ? -1 : std::atoi(argv[1]);
    const char *until = getenv("UNTIL");
    if (ticks != 0) HIP(hipMalloc(&count, sizeof(int)));
    for (int number = 0; ticks <= 0 || number < ticks; number++) {
        if (count) tick<<<1, 1>>>(count);
        mark(std::to_string(number).c_str());
        if (number % 50 == 0) {
            printf("<%d>\n", number);
            fflush(stdout);
        }
        usleep(1000);
        if (until && number == ticks - 200) {
            while (access(until, F_OK) != 0) usleep(5000);
            call("rpdflush");
        }
    }
}
