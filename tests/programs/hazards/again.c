/* The runtime started and shut down three times in one process, with a hundred dispatches each time.
 *
 * Usage: again CODE_OBJECT [NAME...]     (of aql_kernel.hip; waits in the end until no thread has such a name)
 * Compile: cc -O2 again.c -o again -lhsa-runtime64 */
#include "packets.h"
#include <dirent.h>
#include <unistd.h>

static int has_thread(const char *name) {
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks));) {
        char path[300], comm[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        if (fgets(comm, sizeof comm, file)) found |= !strncmp(comm, name, strlen(name));
        fclose(file);
    }
    closedir(tasks);
    return found;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    for (int round = 0; round < 3; round++) {
        start(argv[1]);
        hsa_queue_t *queue = make_queue();
        hsa_signal_t last = signal_of(1), none = {0};
        for (int i = 0; i < 100; i++) put_dispatch(queue, i < 99 ? none : last);
        wait_for(last, "the last dispatch");
        printf("round %d: %u dispatches\n", round, counters()[1]);
        HSA(hsa_signal_destroy(last));
        HSA(hsa_queue_destroy(queue));
        HSA(hsa_shut_down());
    }
    for (int name = 2; name < argc; name++)
        while (has_thread(argv[name])) usleep(1000);
    return 0;
}
