/* A handler for rpd probe: how far apart the addresses of neighbouring lanes are, for each line of the source.
 *
 *     cc -O2 -shared -fPIC -I PREFIX/include -o strides.so strides.c
 *     rpd probe -i -a ./strides.so -- ./app
 */
#include <rpd_handler.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 256 };

struct line {
    char file[256];
    uint32_t line;
    uint64_t accesses;
    uint64_t bytes; /* from one lane to the next, of all accesses together */
};

struct strides {
    char kernel[256];
    int count;
    struct line lines[LINES];
};

uint32_t rpd_handler_version(void) { return RPD_HANDLER_VERSION; }

void *rpd_handler_create(const struct rpd_dispatch *dispatch) {
    struct strides *strides = calloc(1, sizeof *strides);
    if (strides) snprintf(strides->kernel, sizeof strides->kernel, "%s", dispatch->kernel);
    return strides;
}

void rpd_handler_message(void *handler, const struct rpd_message *message) {
    struct strides *strides = handler;
    if (!strides || message->kind != RPD_ADDRESS || message->address_count < 2) return;
    struct line *line = strides->lines;
    struct line *end = line + strides->count;
    while (line < end && (line->line != message->line || strcmp(line->file, message->file))) line++;
    if (line == end) {
        if (strides->count == LINES) return;
        strides->count++;
        snprintf(line->file, sizeof line->file, "%s", message->file);
        line->line = message->line;
    }
    int64_t apart = (int64_t)(message->addresses[1] - message->addresses[0]);
    line->accesses++;
    line->bytes += (uint64_t)(apart < 0 ? -apart : apart);
}

void rpd_handler_finish(void *handler, const struct rpd_output *output) {
    struct strides *strides = handler;
    if (!strides) return;
    for (int i = 0; i < strides->count; i++) {
        const struct line *line = &strides->lines[i];
        const char *file = strrchr(line->file, '/') ? strrchr(line->file, '/') + 1 : line->file;
        double average = (double)line->bytes / (double)line->accesses;
        char text[1024];
        int length = snprintf(text, sizeof text, "%s: %s:%u: %.0f bytes from lane to lane\n", strides->kernel, file, line->line, average);
        output->print(output->context, text, (size_t)length);
        snprintf(text, sizeof text, "stride %s:%u", file, line->line);
        output->value(output->context, text, average);
    }
    free(strides);
}
