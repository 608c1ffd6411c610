/* Loads the recorder itself, privately, marks, and unloads it: twice. Then ends with the library "unloaded".
 *
 * Usage: late_load LIBRARY
 * Compile: cc -O2 late_load.c -o late_load -ldl */
#include "markers.h"

#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    for (int round = 0; round < 2; round++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        rpd_marker marker = (rpd_marker)dlsym(library, "rpd_mark");
        marker("hazards", "UserMarker", round ? "second" : "first");
        dlclose(library);
        /* Threads of an unmapped library would crash here. */
        usleep(300000);
    }
    puts("loaded and unloaded twice");
    return 0;
}
