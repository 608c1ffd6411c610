/* Children that are forked while another thread reads code objects, and that let go of a reader, as HIP does when a process exits.
 *
 * Usage: forked_readers CODE_OBJECT
 * Compile: cc -O2 forked_readers.c -o forked_readers -lhsa-runtime64 -lpthread */
#include "packets.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void *bytes;
static long size;

static hsa_code_object_reader_t reader_of(void) {
    hsa_code_object_reader_t reader;
    HSA(hsa_code_object_reader_create_from_memory(bytes, size, &reader));
    return reader;
}

static void *read_on(void *unused) {
    for (;;) {
        hsa_code_object_reader_t reader = reader_of();
        hsa_executable_t executable;
        HSA(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &executable));
        HSA(hsa_executable_load_agent_code_object(executable, gpu, reader, NULL, NULL));
        HSA(hsa_executable_destroy(executable));
        HSA(hsa_code_object_reader_destroy(reader));
    }
    return unused;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    start(argv[1]);
    FILE *file = fopen(argv[1], "rb");
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    rewind(file);
    bytes = malloc(size);
    if (fread(bytes, 1, size, file) != (size_t)size) return 2;
    pthread_t thread;
    pthread_create(&thread, NULL, read_on, NULL);
    for (int i = 0; i < 200; i++) {
        hsa_code_object_reader_t reader = reader_of();
        pid_t child = fork();
        if (child == 0) {
            hsa_code_object_reader_destroy(reader);
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0) return 1;
    }
    puts("200 children");
    fflush(stdout);
    _exit(0);
}
