/* Runs set-user-id: the loader ignores LD_PRELOAD then, so it loads the recorder itself, as ROCr would, and marks.
 *
 * Usage: secure LIBRARY     Compile: cc -O2 secure.c -o secure -ldl */
#include "markers.h"

#include <sys/auxv.h>

int main(int argc, char **argv) {
    void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_LOCAL);
    rpd_marker marker = library ? (rpd_marker)dlsym(library, "rpd_mark") : NULL;
    if (!marker) return 1;
    marker("hazards", "UserMarker", "secret");
    printf("secure %lu\n", getauxval(AT_SECURE));
    return 0;
}
