/* Ranges three deep, again and again, for some hundred milliseconds, so that those of several processes overlap.
 *
 * Usage: nested ROUNDS
 * Compile: cc -O2 nested.c -o nested */
#include "markers.h"
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    for (int round = atoi(argv[1]); round > 0; round--) {
        push("outer");
        usleep(500);
        push("middle");
        usleep(500);
        push("inner");
        usleep(500);
        for (int level = 0; level < 3; level++) {
            call("rpd_rangePop");
            usleep(200);
        }
    }
    return 0;
}
