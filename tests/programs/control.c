/* Does what its arguments say, one after the other, with the recorder's C interface where it is there. Uses a GPU only where
 * it is told to.
 *
 *   start stop flush pop      the call of that name        push=TEXT mark=TEXT
 *   say=TEXT                  a line on standard output    env=NAME   the value of a variable, as a line
 *   threads                   how many threads there are   wait=FILE  until that file exists or the parent has ended
 *   file=NAME finish          rpd_setFilename, rpdfinish   raw_exit=N the system call alone, as an interpreter that found _exit first
 *   cd=DIR  spin=MS           fork: everything that follows is done by a child, then by the parent when it has ended
 *   exit=N  _exit=N  raise=N  gpu        hsa_init of the HSA runtime
 *
 * Compile: cc -O2 control.c -o control -ldl */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void call(const char *name) {
    void (*function)(void);
    *(void **)&function = dlsym(RTLD_DEFAULT, name);
    if (function) function();
}

static void marker(const char *name, const char *args) {
    void (*function)(const char *domain, const char *api, const char *args);
    *(void **)&function = dlsym(RTLD_DEFAULT, name);
    if (function) function("control", "UserMarker", args);
}

static void set_filename(const char *name) {
    int (*function)(const char *name);
    *(void **)&function = dlsym(RTLD_DEFAULT, "rpd_setFilename");
    if (function && function(name) != 0) puts("refused");
}

static void init_gpu(void) {
    void *runtime = dlopen("libhsa-runtime64.so.1", RTLD_NOW);
    int (*init)(void);
    *(void **)&init = runtime ? dlsym(runtime, "hsa_init") : NULL;
    if (!init || init() != 0) {
        fprintf(stderr, "control: no GPU\n");
        exit(3);
    }
}

static int threads(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks));) count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

static void wait_for(const char *file) {
    pid_t parent = getppid();
    while (access(file, F_OK) != 0 && getppid() == parent) usleep(10000);
}

static void act(const char *what, const char *value) {
    if (!strcmp(what, "start")) call("rpdstart");
    else if (!strcmp(what, "stop")) call("rpdstop");
    else if (!strcmp(what, "flush")) call("rpdflush");
    else if (!strcmp(what, "finish")) call("rpdfinish");
    else if (!strcmp(what, "file")) set_filename(value);
    else if (!strcmp(what, "raw_exit")) syscall(SYS_exit_group, atoi(value));
    else if (!strcmp(what, "pop")) call("rpd_rangePop");
    else if (!strcmp(what, "push")) marker("rpd_rangePush", value);
    else if (!strcmp(what, "mark")) marker("rpd_mark", value);
    else if (!strcmp(what, "say")) puts(value);
    else if (!strcmp(what, "env")) puts(getenv(value) ? getenv(value) : "(not set)");
    else if (!strcmp(what, "threads")) printf("%d\n", threads());
    else if (!strcmp(what, "wait")) wait_for(value);
    else if (!strcmp(what, "spin")) usleep(1000 * atoi(value));
    else if (!strcmp(what, "gpu")) init_gpu();
    else if (!strcmp(what, "exit")) exit(atoi(value));
    else if (!strcmp(what, "_exit")) _exit(atoi(value));
    else if (!strcmp(what, "raise")) raise(atoi(value));
    else if (!strcmp(what, "cd")) {
        if (chdir(value) != 0) perror(value);
    } else if (!strcmp(what, "fork")) {
        if (fork()) wait(NULL);
    } else {
        fprintf(stderr, "control: %s is not known\n", what);
        exit(2);
    }
    fflush(stdout);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (value) *value++ = 0;
        act(argv[i], value ? value : "");
    }
    return 0;
}
