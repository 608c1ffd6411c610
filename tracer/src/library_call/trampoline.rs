//! Functions that stand in the place of the libraries' own, one for each that is described: they let the recorder see a call begin, call the
//! original with what they were called with, and let it see the call end.
//!
//! Thousands of functions of hundreds of types are one piece of code: it copies as many words of the stack as the function is passed, and
//! restores all registers that pass something. What the caller is unwound by is the same for all, so exceptions of a library go through.
//!
//! Where a call is not recorded nothing is copied: the original is jumped to.

use std::arch::global_asm;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{call, description};
use crate::guard::guard_without_points;

include!(concat!(env!("OUT_DIR"), "/library_calls.rs"));

/// Bytes from one function to the next.
const SIZE: usize = 16;

/// What the code below keeps of a call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Saved {
    /// rdi, rsi, rdx, rcx, r8, r9.
    pub(super) integers: [u64; 6],
    /// How many vector registers a function with a variable number of arguments is passed.
    rax: u64,
    reserved: u64,
    /// xmm0 to xmm7.
    pub(super) floats: [[u64; 2]; 8],
    /// rax and rdx, where the call has returned.
    pub(super) result: [u64; 2],
    /// xmm0 and xmm1.
    float_result: [[u64; 2]; 2],
    padding: [u64; 2],
}

const _: () = assert!(size_of::<Saved>() == 256);

/// How a call goes on, in the two registers of a result.
#[repr(C)]
struct Continuation {
    /// The library's own function.
    original: usize,
    /// Words of the stack to copy, -1 where the call is not recorded.
    words: isize,
}

static ORIGINALS: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];

/// Address of the function that stands in the place of the one called `name`, whose own is `original`.
pub(crate) fn stand_in(name: &str, version: &str, original: usize) -> Option<usize> {
    let place = description::get().place(name, version)?;
    ORIGINALS.get(place)?.store(original, Ordering::Release);
    Some(first() + SIZE * place)
}

/// Whether one of these functions is there.
pub(crate) fn is_trampoline(address: usize) -> bool {
    (first()..first() + SIZE * COUNT).contains(&address)
}

fn first() -> usize {
    rpd_library_functions as *const () as usize
}

/// A call of function `place` begins. `frame`: where rbp is, above which its return address and its words of the stack lie.
extern "C-unwind" fn enter(place: usize, frame: *const u64) -> Continuation {
    let original = ORIGINALS.get(place).map_or(0, |original| original.load(Ordering::Acquire));
    let words = guard_without_points(None, || {
        let function = description::get().functions.get(place)?;
        call::enter(place as u16, function, frame).then_some(function.words)
    });
    Continuation { original, words: words.map_or(-1, |words| words as isize) }
}

/// It is about to return.
extern "C-unwind" fn exit(saved: *const Saved, frame: *const u64) {
    guard_without_points((), || {
        // SAFETY: what the code below has saved of this call, which has not returned; its words of the stack begin behind the saved rbp
        // and the return address.
        unsafe { call::exit(&*saved, frame, frame.add(2)) };
    });
}

unsafe extern "C" {
    /// The first of them.
    fn rpd_library_functions();
}

// Each of the functions says which it is, and goes on in `2`. There rbp leads to what is saved, whatever is on the stack below it.
global_asm!(
    ".text",
    ".p2align 4",
    ".hidden rpd_library_functions",
    ".globl rpd_library_functions",
    ".type rpd_library_functions, @function",
    "rpd_library_functions:",
    ".cfi_startproc",
    ".set rpd_library_place, 0",
    ".rept {count}",
    ".p2align 4",
    // mov r11d, PLACE
    ".byte 0x41, 0xbb",
    ".long rpd_library_place",
    "jmp 2f",
    ".set rpd_library_place, rpd_library_place + 1",
    ".endr",
    ".p2align 4",
    "2:",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "sub rsp, 256",
    "mov [rsp], rdi",
    "mov [rsp + 8], rsi",
    "mov [rsp + 16], rdx",
    "mov [rsp + 24], rcx",
    "mov [rsp + 32], r8",
    "mov [rsp + 40], r9",
    "mov [rsp + 48], rax",
    "movaps [rsp + 64], xmm0",
    "movaps [rsp + 80], xmm1",
    "movaps [rsp + 96], xmm2",
    "movaps [rsp + 112], xmm3",
    "movaps [rsp + 128], xmm4",
    "movaps [rsp + 144], xmm5",
    "movaps [rsp + 160], xmm6",
    "movaps [rsp + 176], xmm7",
    "mov edi, r11d",
    "mov rsi, rbp",
    "call {enter}",
    "mov r11, rax",
    "test rdx, rdx",
    "js 4f",
    // As many words as the call is passed, the last one first, behind one that keeps the stack aligned where they are odd.
    "mov rcx, rdx",
    "and rcx, 1",
    "lea rcx, [rcx * 8]",
    "sub rsp, rcx",
    "3:",
    "test rdx, rdx",
    "jz 4f",
    "push qword ptr [rbp + rdx * 8 + 8]",
    "dec rdx",
    "jmp 3b",
    "4:",
    "mov rdi, [rbp - 256]",
    "mov rsi, [rbp - 248]",
    "mov rcx, [rbp - 232]",
    "mov r8, [rbp - 224]",
    "mov r9, [rbp - 216]",
    "mov rax, [rbp - 208]",
    "movaps xmm0, [rbp - 192]",
    "movaps xmm1, [rbp - 176]",
    "movaps xmm2, [rbp - 160]",
    "movaps xmm3, [rbp - 144]",
    "movaps xmm4, [rbp - 128]",
    "movaps xmm5, [rbp - 112]",
    "movaps xmm6, [rbp - 96]",
    "movaps xmm7, [rbp - 80]",
    // Not recorded: rdx is below zero still.
    "test rdx, rdx",
    "mov rdx, [rbp - 240]",
    "js 5f",
    "call r11",
    "mov [rbp - 64], rax",
    "mov [rbp - 56], rdx",
    "movaps [rbp - 48], xmm0",
    "movaps [rbp - 32], xmm1",
    "lea rdi, [rbp - 256]",
    "mov rsi, rbp",
    "call {exit}",
    "mov rax, [rbp - 64]",
    "mov rdx, [rbp - 56]",
    "movaps xmm0, [rbp - 48]",
    "movaps xmm1, [rbp - 32]",
    ".cfi_remember_state",
    "leave",
    ".cfi_def_cfa rsp, 8",
    ".cfi_restore rbp",
    "ret",
    ".cfi_restore_state",
    "5:",
    "leave",
    ".cfi_def_cfa rsp, 8",
    ".cfi_restore rbp",
    "jmp r11",
    ".cfi_endproc",
    ".size rpd_library_functions, . - rpd_library_functions",
    count = const COUNT,
    enter = sym enter,
    exit = sym exit,
);
