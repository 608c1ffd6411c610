/* What a program can see of the recorder in its own state: errno, signal mask and handlers, and the threads' masks.
 *
 * Compile: cc -O2 invisible.c -o invisible -ldl */
#include "markers.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void same_errno(const char *function) {
    void *address = rpd_function(function);
    if (!address) return;
    errno = 4242;
    if (strstr(function, "mark") || strstr(function, "Push")) ((rpd_marker)address)("d", "UserMarker", "errno");
    else ((void (*)(void))address)();
    if (errno != 4242) printf("%s changed errno to %d\n", function, errno);
}

/* Every signal but the two that the C library keeps for itself. */
static int all_blocked(const char *mask) {
    unsigned long long blocked = strtoull(mask, NULL, 16), wanted = ~0ull;
    wanted &= ~(1ull << (SIGKILL - 1)) & ~(1ull << (SIGSTOP - 1)) & ~(3ull << 31);
    return (blocked & wanted) == wanted;
}

static void threads_of_recorder(void) {
    struct dirent *entry;
    DIR *tasks = opendir("/proc/self/task");
    while ((entry = readdir(tasks))) {
        char path[300], line[300], name[64] = "";
        FILE *file;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        if (entry->d_name[0] == '.' || !(file = fopen(path, "r"))) continue;
        while (fgets(line, sizeof line, file)) {
            sscanf(line, "Name: %63s", name);
            if (!strncmp(line, "SigBlk:", 7) && !strncmp(name, "rpd-", 4) && !all_blocked(line + 7))
                printf("%s takes signals: %s", name, line);
        }
        fclose(file);
    }
    closedir(tasks);
}

int main(void) {
    static const char *functions[] = {"rpdflush", "rpd_mark", "rpd_rangePush", "rpd_rangePop", "rpdstart", "rpdstop", "rpdflush"};
    sigset_t mask;
    for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++) same_errno(functions[i]);
    threads_of_recorder();
    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigismember(&mask, number) == 1) printf("signal %d is blocked\n", number);
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL) printf("signal %d has a handler\n", number);
    }
    puts("looked");
    return 0;
}
