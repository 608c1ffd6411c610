/* Uses SIGUSR1 itself, in the way its argument names, and says every one it gets. Ends when the file "end" exists.
 *
 *   signal sigaction siginfo once raise    a handler
 *   signalfd sigwait                       read from a descriptor, or waited for, on every thread's behalf
 *   blocked ignored default                nobody gets it
 *   unseen                                 a handler, installed by a call that nobody can see
 *
 * Compile: cc -O2 signals.c -o signals -lpthread */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void say(const char *text) {
    if (write(STDOUT_FILENO, text, strlen(text)) < 0) _exit(3);
}

static void plain(int signal) {
    errno = E2BIG;
    say(signal == SIGUSR1 ? "got SIGUSR1\n" : "got another\n");
}

static void with_info(int signal, siginfo_t *info, void *context) {
    say(signal == SIGUSR1 && info->si_signo == SIGUSR1 && context ? "got SIGUSR1 with its context\n" : "got nonsense\n");
}

static void *reader(void *descriptor) {
    struct signalfd_siginfo info;
    while (read(*(int *)descriptor, &info, sizeof info) == sizeof info) say("read SIGUSR1\n");
    return NULL;
}

static void *waiter(void *set) {
    int signal;
    while (sigwait(set, &signal) == 0) say("waited for SIGUSR1\n");
    return NULL;
}

static int install(void (*function)(int), void (*informed)(int, siginfo_t *, void *), int flags) {
    struct sigaction action, back;
    memset(&action, 0, sizeof action);
    if (informed) action.sa_sigaction = informed;
    else action.sa_handler = function;
    sigaddset(&action.sa_mask, SIGUSR2);
    action.sa_flags = flags;
    /* What was asked for is what is told, as without anybody in between. */
    return sigaction(SIGUSR1, &action, NULL) == 0 && sigaction(SIGUSR1, NULL, &back) == 0 && back.sa_handler == action.sa_handler &&
           (back.sa_flags & 0xffffffff & ~0x04000000) == flags && sigismember(&back.sa_mask, SIGUSR2) == 1 &&
           sigismember(&back.sa_mask, SIGTERM) == 0;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    static sigset_t set;
    static int descriptor;
    pthread_t thread;
    int right = 1;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    if (!strcmp(how, "signal")) right = signal(SIGUSR1, plain) == SIG_DFL && signal(SIGUSR1, plain) == plain;
    else if (!strcmp(how, "sigaction")) right = install(plain, NULL, 0);
    else if (!strcmp(how, "siginfo")) right = install(NULL, with_info, SA_SIGINFO | SA_RESTART);
    else if (!strcmp(how, "once")) right = install(plain, NULL, SA_RESETHAND);
    else if (!strcmp(how, "raise")) right = install(plain, NULL, 0) && raise(SIGUSR1) == 0 && kill(getpid(), SIGUSR1) == 0;
    else if (!strcmp(how, "ignored")) right = signal(SIGUSR1, SIG_IGN) == SIG_DFL && signal(SIGUSR1, SIG_IGN) == SIG_IGN;
    else if (!strcmp(how, "default")) right = signal(SIGUSR1, SIG_DFL) == SIG_DFL;
    else if (!strcmp(how, "unseen")) right = sysv_signal(SIGUSR1, plain) != SIG_ERR;
    else {
        pthread_sigmask(SIG_BLOCK, &set, NULL);
        if (!strcmp(how, "signalfd")) {
            descriptor = signalfd(-1, &set, SFD_CLOEXEC);
            pthread_create(&thread, NULL, reader, &descriptor);
        } else if (!strcmp(how, "sigwait")) {
            pthread_create(&thread, NULL, waiter, &set);
        } else if (strcmp(how, "blocked")) {
            return 2;
        }
    }
    if (!right) {
        fprintf(stderr, "%s: not as without anybody in between\n", how);
        return 1;
    }
    say("ready\n");
    while (access("end", F_OK) != 0) usleep(5000);
    say("ended\n");
    return 0;
}
