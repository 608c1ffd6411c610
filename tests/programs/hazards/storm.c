/* Marks of unique text as fast as possible, from several threads.
 *
 * Usage: storm THREADS MARKS [PAUSE_US]     MARKS per thread; a pause after each hundred
 * Prints how many; the peak of the resident set in KiB goes to the file named by PEAK. With UNTIL, the last twentieth of the marks waits
 * until the file of that name exists and all before it is written.
 * Compile: cc -O2 storm.c -o storm -ldl -lpthread */
#include "markers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int marks, pause_us;
static const char *until;

static void *body(void *number) {
    rpd_marker marker = (rpd_marker)rpd_function("rpd_mark");
    char text[80];
    for (int i = 0; i < marks && marker; i++) {
        snprintf(text, sizeof text, "process %d thread %ld mark %d", getpid(), (long)number, i);
        marker("hazards", "UserMarker", text);
        if (pause_us && i % 100 == 99) usleep(pause_us);
        if (until && i == marks / 20 * 19) {
            while (access(until, F_OK) != 0) usleep(5000);
            call("rpdflush");
        }
    }
    return NULL;
}

static void say_peak(const char *path) {
    char line[200];
    FILE *status = fopen("/proc/self/status", "r"), *out = fopen(path, "w");
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "VmHWM:", 6)) fprintf(out, "%ld\n", atol(line + 6));
    fclose(status);
    fclose(out);
}

int main(int argc, char **argv) {
    pthread_t threads[64];
    if (argc < 3) return 2;
    int count = atoi(argv[1]);
    marks = atoi(argv[2]);
    pause_us = argc > 3 ? atoi(argv[3]) : 0;
    until = getenv("UNTIL");
    if (count < 1 || count > 64) return 2;
    for (long i = 0; i < count; i++) pthread_create(&threads[i], NULL, body, (void *)i);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    printf("%d marks\n", count * marks);
    fflush(stdout);
    if (getenv("PEAK")) say_peak(getenv("PEAK"));
    return 0;
}
