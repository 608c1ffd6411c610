// A hundred marks, and then the process ends in the way that the argument names.
//
// Compile: c++ -O2 ends.cpp -o ends -ldl -lpthread
#include "markers.h"

#include <cassert>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

static void late() { mark("from an atexit handler"); }

static volatile sig_atomic_t pushed;

static void leave(int) {
    if (pushed) exit(7);
    ualarm(20000, 0);
}

// Exits from inside a handler that interrupted a push.
static void leave_while_pushing() {
    // dlsym takes the loader's lock, and so does exit.
    const auto marker = (rpd_marker)rpd_function("rpd_mark");
    signal(SIGALRM, leave);
    ualarm(20000, 0);
    for (;;)
        if (marker) marker("hazards", "UserMarker", "busy"), pushed = 1;
}

static sigjmp_buf before_abort;
static void go_on(int) { siglongjmp(before_abort, 1); }

static void *outlive(void *) {
    usleep(50000);
    mark("after main has ended");
    return nullptr;
}

int main(int, char **arguments) {
    const std::string way = arguments[1] ? arguments[1] : "";
    if (way == "atexit") atexit(late);
    for (int i = 0; i < 100; i++) mark(std::to_string(i).c_str());
    puts("marked");
    fflush(stdout);
    if (way == "exit") exit(5);
    if (way == "_exit") _exit(5);
    if (way == "_Exit") _Exit(5);
    if (way == "quick_exit") quick_exit(5);
    if (way == "exit_in_handler") leave_while_pushing();
    if (way == "pthread_exit") {
        pthread_t thread;
        pthread_create(&thread, nullptr, outlive, nullptr);
        pthread_exit(nullptr);
    }
    if (way == "return" || way == "atexit") return 5;
    if (way == "abort at once") abort();
    if (way == "abort in two threads") {
        pthread_t thread;
        pthread_create(&thread, nullptr, [](void *) -> void * { abort(); }, nullptr);
        abort();
    }
    if (way == "throw at once") throw std::runtime_error("nobody catches this");
    if (way == "assert at once") assert(way.empty());
    if (way == "abort and go on") {
        signal(SIGABRT, go_on);
        if (sigsetjmp(before_abort, 1) == 0) abort();
        mark("after abort");
        return 5;
    }
    // What follows ends the process without a word to anybody: when the test has seen the marks in the file.
    while (access("go", F_OK) != 0) usleep(5000);
    if (way == "exec") execl("/bin/echo", "echo", "another program", (char *)nullptr);
    if (way == "abort") abort();
    if (way == "throw") throw std::runtime_error("nobody catches this");
    if (way == "SIGTERM") raise(SIGTERM);
    if (way == "SIGINT") raise(SIGINT);
    if (way == "SIGKILL") raise(SIGKILL);
    if (way == "SIGSEGV") *(volatile int *)nullptr = 1;
    return 2;
}
