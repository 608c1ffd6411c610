/* Passes through all moments at which a recording may be started: `load` before HIP is loaded, `before` it is initialised, `during`
 * hsa_init, `after` the first kernels, `exit` in an exit handler. At the one named it starts the recording itself (WAY is start: by
 * rpdstart; load: by loading the library RECORDER), or says so and waits until the file `go` exists (WAY is outside). Then it launches
 * a kernel every 5 ms until the file `end` exists, and prints how many it launched before and after that moment.
 *
 * Usage: moments MOMENT WAY KERNELS     KERNELS: the library built from moments.hip
 * Compile: cc -O2 -rdynamic moments.c -ldl -lpthread */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;
static const char *chosen, *way;
static atomic_int initialising, entered;
static int passed;
static pthread_t starter;

static void wait_for(const char *file) {
    for (int i = 0; i < 120000 && access(file, F_OK) != 0; i++) usleep(5000);
}

static void *start(void *unused) {
    entered = 1;
    if (!strcmp(way, "load")) {
        if (!dlopen(getenv("RECORDER"), RTLD_NOW | RTLD_GLOBAL)) fputs(dlerror(), stderr);
    } else {
        void (*function)(void);
        *(void **)&function = dlsym(RTLD_DEFAULT, "rpdstart");
        function();
    }
    return unused;
}

static void moment(const char *name) {
    if (strcmp(name, chosen)) return;
    passed = 1;
    if (!strcmp(way, "outside")) {
        puts(name);
        fflush(stdout);
        wait_for("go");
    } else if (!strcmp(name, "during")) {
        pthread_create(&starter, NULL, start, NULL);
        while (!entered) usleep(1000);
        usleep(200000);
    } else {
        start(NULL);
    }
}

/* In the place of the C library's: the runtime asks for this one when it has begun to be initialised and knows nothing yet. */
char *getenv(const char *name) {
    if (!strcmp(name, "HSA_ENABLE_INTERRUPT") && atomic_exchange(&initialising, 0)) moment("during");
    size_t length = strlen(name);
    for (char **entry = environ; entry && *entry; entry++)
        if (!strncmp(*entry, name, length) && (*entry)[length] == '=') return *entry + length + 1;
    return NULL;
}

static void at_exit(void) { moment("exit"); }

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    chosen = argv[1];
    way = argv[2];
    atexit(at_exit);
    moment("load");
    void *kernels = dlopen(argv[3], RTLD_NOW | RTLD_LOCAL);
    if (!kernels) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void (*initialise)(void), (*launch)(void);
    *(void **)&initialise = dlsym(kernels, "initialise");
    *(void **)&launch = dlsym(kernels, "launch");
    moment("before");
    initialising = 1;
    initialise();
    if (!strcmp(chosen, "during")) {
        if (!passed) fputs("there was no such moment\n", stderr);
        if (starter) pthread_join(starter, NULL);
    }
    /* What a start during the initialisation has asked for may take until then. */
    if (!strcmp(chosen, "during") && !strcmp(way, "outside")) wait_for("started");
    int before = 0, after = 0;
    if (!passed)
        for (; before < 10; before++) launch();
    moment("after");
    do {
        launch();
        after++;
        usleep(5000);
    } while (access("end", F_OK) != 0);
    printf("%d %d\n", before, after);
    fflush(stdout);
    return 0;
}
