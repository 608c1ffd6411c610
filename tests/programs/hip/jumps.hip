// Leaves calls of HIP without returning: HIP writes where nothing may be written, and the handler jumps out. Says at its end how many it
// left. Arguments:
//   here          what is called next comes from the same place
//   deeper        from further down the stack
//   coroutine     the calls are left on the stack of a coroutine, which is unmapped; what is called next comes from the thread's own
//   coroutines    from another coroutine's, and something else is mapped where the first one's stack was
#include "../../../fixtures/programs/check.h"

#include <csetjmp>
#include <csignal>
#include <cstring>
#include <sys/mman.h>
#include <ucontext.h>

static sigjmp_buf before;
static int left;
static int *page;
static bool jump = true;

static void handler(int) {
    if (jump) siglongjmp(before, 1);
    // Inside a call, on another stack: this one is part of it.
    HIP(hipFree(nullptr));
    if (mprotect(page, 4096, PROT_READ | PROT_WRITE)) abort();
}

static inline __attribute__((always_inline)) void calls() {
    int size;
    HIP(hipDeviceGetAttribute(&size, hipDeviceAttributeWarpSize, 0));
    int *memory;
    HIP(hipMalloc(&memory, 64));
    HIP(hipMemset(memory, 0, 64));
    HIP(hipFree(memory));
}

__attribute__((noinline)) static void calls_below(int depth) {
    char room[512];
    memset(room, depth, sizeof room);
    asm volatile("" ::"r"(room) : "memory");
    depth ? calls_below(depth - 1) : calls();
}

static ucontext_t own, coroutine;
static void *volatile stack_of_left;

/* Runs `body` on a stack of its own. Where that returns, the stack stays. */
static void on_coroutine(void (*body)(), size_t size) {
    void *stack = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || getcontext(&coroutine)) abort();
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = size;
    coroutine.uc_link = &own;
    makecontext(&coroutine, body, 0);
    stack_of_left = stack;
    if (swapcontext(&own, &coroutine)) abort();
}

static void map_again(void *place, size_t size) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    if (mmap(place, size, PROT_READ | PROT_WRITE, flags, -1, 0) != place) abort();
}

static void leave() { HIP(hipDeviceGetAttribute(page, hipDeviceAttributeWarpSize, 0)); }

int main(int count, char **arguments) {
    HIP(hipSetDevice(0));
    page = (int *)mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack = {};
    stack.ss_size = 1 << 18;
    stack.ss_sp = mmap(nullptr, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaltstack(&stack, nullptr);
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGSEGV, &action, nullptr);

    const char *how = count > 1 ? arguments[1] : "here";
    bool coroutines = !strcmp(how, "coroutines");
    calls();
    for (volatile int i = 0; i < 5; i++) {
        if (strncmp(how, "coroutine", 9)) {
            if (sigsetjmp(before, 1) == 0) leave();
        } else {
            if (sigsetjmp(before, 1) == 0) on_coroutine(leave, 1 << 18);
            munmap(stack_of_left, 1 << 18);
            if (coroutines) map_again(stack_of_left, 1 << 18);
        }
        left++;
        if (coroutines) on_coroutine(calls, 1 << 20);
        else !strcmp(how, "deeper") ? calls_below(3) : calls();
    }
    // The same call goes on this time, behind the handler.
    jump = false;
    coroutines ? on_coroutine(leave, 1 << 18) : leave();
    calls();
    printf("left %d\n", left);
}
