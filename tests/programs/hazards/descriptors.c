/* What a daemon does: closes all descriptors it does not know, or puts a file of its own in their places. Marks before and behind.
 *
 * Usage: descriptors close|replace     The file `victim` must stay as it is.
 * Compile: cc -O2 descriptors.c -o descriptors -ldl */
#include "markers.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { KNOWN = 3, MOST = 64 };

int main(int argc, char **argv) {
    char text[32], content[16] = "", *way = argc > 1 ? argv[1] : "";
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1000; i++) {
            sprintf(text, "%d %d", round, i);
            mark(text);
        }
        if (round < 2) call("rpdflush");
        /* The victim's descriptors take the numbers that the recorder's had. */
        for (int i = KNOWN; i < MOST; i++) close(i);
        int victim = open("victim", O_RDWR | O_CREAT | O_TRUNC, 0666);
        if (victim < 0 || write(victim, "untouched", 9) != 9) return 1;
        if (!strcmp(way, "replace"))
            for (int i = KNOWN; i < MOST; i++)
                if (i != victim) dup2(victim, i);
    }
    call("rpdflush");
    int victim = open("victim", O_RDONLY);
    if (read(victim, content, sizeof content - 1) != 9 || strcmp(content, "untouched")) {
        puts("the victim was written to");
        return 1;
    }
    puts("untouched");
    return 0;
}
