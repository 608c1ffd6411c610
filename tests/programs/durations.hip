// Does what its arguments say, one after the other.
//
//   launch=N graph=N  so many kernels, waits for them and looks at the result    say=TEXT  a line on standard output
//   wait=FILE         until that file exists                                     make=FILE an empty file
//   fork              all that follows is done by a child, then by the parent when it has ended
//   orphan=FILE       a child that lives until that file exists, which nobody waits for
//   exec              all that follows is done by this program, started anew in its place
//   leave             all that follows is done by a second thread, which ends the program: the first one ends by pthread_exit
//   limit=N           no file may grow beyond so many bytes
//   output=FILE       standard output is that file from now on    close=PATH the descriptor of that path is closed, and stands for "mine"
//   exit=N _exit=N quick_exit=N abort kill
#include "../../fixtures/programs/check.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

__global__ void step(int *count) { *count += 1; }
template <typename T, int BY>
__global__ void scaled(T *count, int most) { if (*count < most) *count += BY; }

static char **arguments;

static int *counter() {
    static int *count;
    if (!count) HIP(hipMalloc(&count, sizeof(int)));
    HIP(hipMemset(count, 0, sizeof(int)));
    return count;
}

static void launch(int number) {
    int *count = counter(), counted = 0;
    for (int i = 0; i < number; i++)
        if (i % 2) step<<<1, 1>>>(count);
        else scaled<int, 1><<<1, 1>>>(count, number);
    HIP(hipMemcpy(&counted, count, sizeof counted, hipMemcpyDeviceToHost));
    expect(counted == number, "number of kernels", counted);
}

static void graph(int number) {
    int *count = counter(), counted = 0;
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t made;
    HIP(hipStreamCreate(&stream));
    HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    for (int i = 0; i < 3; i++) step<<<1, 1, 0, stream>>>(count);
    HIP(hipStreamEndCapture(stream, &graph));
    HIP(hipGraphInstantiate(&made, graph, nullptr, nullptr, 0));
    for (int i = 0; i < number; i++) HIP(hipGraphLaunch(made, stream));
    HIP(hipStreamSynchronize(stream));
    HIP(hipMemcpy(&counted, count, sizeof counted, hipMemcpyDeviceToHost));
    expect(counted == 3 * number, "number of kernels of graphs", counted);
}

static void wait_for(const char *file) {
    while (access(file, F_OK) != 0) usleep(10000);
}

// Another file comes in the place of a descriptor that is not the program's.
static void close_path(const char *path) {
    char link[64], found[4096];
    for (int fd = 3; fd < 1024; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, found, sizeof found - 1);
        if (length < 0 || std::string(found, length) != path) continue;
        close(fd);
        int other = open("mine", O_CREAT | O_WRONLY, 0666);
        dup2(other, fd);
        if (other != fd) close(other);
        return;
    }
    expect(false, "a descriptor of that path");
}

static void *act_on(void *);

static void act() {
    while (*arguments) {
        char *what = *arguments++, *value = strchr(what, '=');
        if (value) *value++ = 0;
        const int number = value ? atoi(value) : 0;
        const std::string is = what;
        if (is == "launch") launch(number);
        else if (is == "graph") graph(number);
        else if (is == "say") puts(value), fflush(stdout);
        else if (is == "wait") wait_for(value);
        else if (is == "limit") {
            rlimit limit;
            getrlimit(RLIMIT_FSIZE, &limit);
            limit.rlim_cur = number;
            setrlimit(RLIMIT_FSIZE, &limit);
        } else if (is == "make") close(creat(value, 0666));
        else if (is == "output") {
            int file = open(value, O_CREAT | O_WRONLY, 0666);
            dup2(file, 1);
            close(file);
        } else if (is == "close") close_path(value);
        else if (is == "fork") {
            int status = 0;
            if (pid_t child = fork()) {
                waitpid(child, &status, 0);
                expect(status == 0, "status of the child", status);
            }
        } else if (is == "orphan") {
            if (fork() == 0) {
                // Only what the test looks at stays open.
                for (int fd : {0, 1, 2}) dup2(open("/dev/null", O_RDWR), fd);
                wait_for(value);
                _exit(0);
            }
        } else if (is == "exec") {
            arguments--;
            execv("/proc/self/exe", arguments);
        } else if (is == "leave") {
            pthread_t thread;
            pthread_create(&thread, nullptr, act_on, nullptr);
            pthread_exit(nullptr);
        } else if (is == "exit") exit(number);
        else if (is == "_exit") _exit(number);
        else if (is == "quick_exit") quick_exit(number);
        else if (is == "abort") abort();
        else if (is == "kill") kill(getpid(), SIGKILL);
        else expect(false, what);
    }
}

static void *act_on(void *) {
    act();
    exit(0);
}

int main(int, char **all) {
    arguments = all + 1;
    act();
    return 0;
}
