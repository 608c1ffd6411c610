// A handler that misbehaves in the way that the variable BAD names: `crash`, `hang`, `leak`, `slow`, `exit`,
// `fork` (the child writes its id to the file child, and stays). -DWRONG=n has another version.
#include <rpd_handler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef WRONG
#define WRONG RPD_HANDLER_VERSION
#endif

uint32_t rpd_handler_version(void) { return WRONG; }

void *rpd_handler_create(const struct rpd_dispatch *dispatch) {
    const char *bad = getenv("BAD");
    if (bad && !strcmp(bad, "fork") && fork() == 0) {
        FILE *file = fopen("child.part", "w");
        fprintf(file, "%d", getpid());
        fclose(file);
        rename("child.part", "child");
        for (int open = 0; open < 3; open++) close(open);
        sleep(60);
        _exit(0);
    }
    return calloc(1, dispatch->size);
}

void rpd_handler_message(void *handler, const struct rpd_message *message) {
    const char *bad = getenv("BAD") ? getenv("BAD") : "";
    volatile int *nowhere = (volatile int *)(uintptr_t)message->kind;
    if (!strcmp(bad, "crash")) *nowhere = 1;
    if (!strcmp(bad, "hang")) pause();
    if (!strcmp(bad, "exit")) exit(7);
    if (!strcmp(bad, "slow")) usleep(2000);
    if (!strcmp(bad, "leak"))
        for (size_t i = 0; i < 1000; i++) {
            void *piece = malloc(1 << 28);
            if (!piece) abort();
            *(volatile char *)piece = 1;
        }
    *(int *)handler += 1;
}

void rpd_handler_finish(void *handler, const struct rpd_output *output) {
    output->value(output->context, "messages", *(int *)handler);
    output->value(output->context, "completed", output->completed);
    free(handler);
}
