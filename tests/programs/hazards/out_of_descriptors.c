/* Marks 100 times, uses up the 64 descriptors that it may have, marks 100 times while others would write, and 100 times more, with its
 * descriptors or without. Says whether the limit is its own in the end.
 *
 * Usage: out_of_descriptors first|later|hard end|then     used up before the first transaction or behind it, where the limit can be raised
 *        or not; until the end, or until the last marks
 * Compile: cc -O2 out_of_descriptors.c -o out_of_descriptors -ldl */
#include "markers.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MOST = 64, MARKS = 100 };

static void marks(const char *text) {
    for (int i = 0; i < MARKS; i++) mark(text);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int opened[MOST], count = 0;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = MOST;
    if (!strcmp(argv[1], "hard")) limit.rlim_max = MOST;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (strcmp(argv[1], "first")) marks("before"), call("rpdflush");
    while ((opened[count] = open("/dev/null", O_RDONLY)) >= 0) count++;
    if (!strcmp(argv[1], "first")) marks("before");
    marks("without");
    call("rpdflush");
    if (!strcmp(argv[2], "then"))
        while (count > 0) close(opened[--count]);
    marks("after");
    getrlimit(RLIMIT_NOFILE, &limit);
    printf("%d %s\n", (int)limit.rlim_cur, limit.rlim_cur == MOST ? "as before" : "not as before");
    return 0;
}
