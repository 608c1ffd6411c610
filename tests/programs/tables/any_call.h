// Functions that take anything: each notes the registers and the stack it was called with, and answers what the program says.
#pragma once
#include <stdint.h>

#define ANY_FUNCTIONS 1024

// What one call brought: integer registers, vector registers, and the words that the caller had pushed.
struct any_call {
    uint64_t reg[6];
    double vector[8];
    const uint64_t *stack;
    uint64_t index;
};

// The program's: what the function of that index returns.
uint64_t any_called(const struct any_call *call);

// Argument number `n` of a call with only integers and pointers.
static inline uint64_t any_argument(const struct any_call *call, int n) { return n < 6 ? call->reg[n] : call->stack[n - 6]; }

extern const char any_functions[];
// Function number `index`.
static inline uintptr_t any_function(int index) { return (uintptr_t)any_functions + 16 * (uintptr_t)index; }

// clang-format off
__asm__(
    ".text\n"
    ".balign 16\n"
    ".globl any_functions\n"
    ".hidden any_functions\n"
    "any_functions:\n"
    ".set number, 0\n"
    ".rept 1024\n"
    "  movl $number, %eax\n"
    "  jmp any_entry\n"
    "  .balign 16\n"
    "  .set number, number + 1\n"
    ".endr\n"
    "any_entry:\n"
    "  pushq %rbp\n"
    "  movq %rsp, %rbp\n"
    "  subq $128, %rsp\n"
    "  movq %rdi, -128(%rbp)\n"
    "  movq %rsi, -120(%rbp)\n"
    "  movq %rdx, -112(%rbp)\n"
    "  movq %rcx, -104(%rbp)\n"
    "  movq %r8, -96(%rbp)\n"
    "  movq %r9, -88(%rbp)\n"
    "  movsd %xmm0, -80(%rbp)\n"
    "  movsd %xmm1, -72(%rbp)\n"
    "  movsd %xmm2, -64(%rbp)\n"
    "  movsd %xmm3, -56(%rbp)\n"
    "  movsd %xmm4, -48(%rbp)\n"
    "  movsd %xmm5, -40(%rbp)\n"
    "  movsd %xmm6, -32(%rbp)\n"
    "  movsd %xmm7, -24(%rbp)\n"
    "  leaq 16(%rbp), %rdx\n"
    "  movq %rdx, -16(%rbp)\n"
    "  movl %eax, %eax\n"
    "  movq %rax, -8(%rbp)\n"
    "  movq %rsp, %rdi\n"
    "  call any_called\n"
    "  leave\n"
    "  ret\n"
);
// clang-format on
