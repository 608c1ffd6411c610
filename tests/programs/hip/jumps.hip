// Leaves calls of HIP without returning: HIP writes where nothing may be written, and the handler jumps out. Argument `deeper`: what is
// called next comes from further down the stack. Says at its end how many it left.
#include "../../../fixtures/programs/check.h"

#include <csetjmp>
#include <csignal>
#include <cstring>
#include <sys/mman.h>

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

    bool deeper = count > 1 && !strcmp(arguments[1], "deeper");
    calls();
    for (volatile int i = 0; i < 5; i++) {
        if (sigsetjmp(before, 1) == 0) HIP(hipDeviceGetAttribute(page, hipDeviceAttributeWarpSize, 0));
        left++;
        deeper ? calls_below(3) : calls();
    }
    jump = false;
    HIP(hipDeviceGetAttribute(page, hipDeviceAttributeWarpSize, 0));
    calls();
    printf("left %d\n", left);
}
