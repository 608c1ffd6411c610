//! librpd_hip.so: HIP's functions by their own names, for LD_PRELOAD (symbol interposition in docs/architecture.md).
//!
//! Each is a jump through a slot. The first call fills the slot: with the recorder's wrapper where librpd_tracer.so is in the process
//! and wants the call, with HIP's own function otherwise. A library of its own, because in a process that has these names whoever asks
//! for one by `dlsym(RTLD_DEFAULT)` finds it, whether or not HIP is there: only programs that were asked to get them.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod loaded;
mod lookup;
mod next;

use std::arch::naked_asm;
use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Address of the function at `place`, which the caller then jumps to. Found once; but what is missing is looked for again, because HIP
/// may be loaded later.
extern "C" fn find(place: u32) -> usize {
    // SAFETY: the location is this thread's own errno.
    let errno = unsafe { *libc::__errno_location() };
    let place = place as usize;
    let found =
        SYMBOLS.get(place).zip(NAMES.get(place)).and_then(|(symbol, name)| next::function(symbol, name));
    if let (Some(function), Some(slot)) = (found, SLOTS.get(place)) {
        slot.store(function, Ordering::Release);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    found.unwrap_or(next::without_hip as *const () as usize)
}

/// Comes from a symbol's first call, its place in r11: all registers that may hold arguments stay as they are.
#[unsafe(naked)]
unsafe extern "C" fn first_call() {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "and rsp, -16",
        "sub rsp, 192",
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
        "call {find}",
        "mov r11, rax",
        "mov rdi, [rsp]",
        "mov rsi, [rsp + 8]",
        "mov rdx, [rsp + 16]",
        "mov rcx, [rsp + 24]",
        "mov r8, [rsp + 32]",
        "mov r9, [rsp + 40]",
        "mov rax, [rsp + 48]",
        "movaps xmm0, [rsp + 64]",
        "movaps xmm1, [rsp + 80]",
        "movaps xmm2, [rsp + 96]",
        "movaps xmm3, [rsp + 112]",
        "movaps xmm4, [rsp + 128]",
        "movaps xmm5, [rsp + 144]",
        "movaps xmm6, [rsp + 160]",
        "movaps xmm7, [rsp + 176]",
        "leave",
        ".cfi_def_cfa rsp, 8",
        "jmp r11",
        ".cfi_endproc",
        find = sym find,
    )
}

macro_rules! symbols {
    ($count:literal $($place:literal $symbol:ident $text:literal $name:literal;)*) => {
        /// In the order of their bytes.
        static SYMBOLS: [&CStr; $count] = [$($text),*];
        /// The function that each is.
        static NAMES: [&CStr; $count] = [$($name),*];
        /// This library's, also where somebody in front of it has one of the same name.
        static OWN: [unsafe extern "C" fn(); $count] = [$($symbol),*];
        /// Zero until the first call.
        static SLOTS: [AtomicUsize; $count] = [const { AtomicUsize::new(0) }; $count];

        $(
            /// HIP's function of that name.
            ///
            /// # Safety
            /// As HIP demands; arguments and result are HIP's own.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, reason = "HIP's name")]
            pub unsafe extern "C" fn $symbol() {
                naked_asm!(
                    "mov r11, [rip + {slots} + {offset}]",
                    "test r11, r11",
                    "jz 2f",
                    "jmp r11",
                    "2:",
                    "mov r11d, {place}",
                    "jmp {first_call}",
                    slots = sym SLOTS,
                    offset = const 8 * $place,
                    place = const $place,
                    first_call = sym first_call,
                )
            }
        )*
    };
}
include!(concat!(env!("OUT_DIR"), "/symbols.rs"));
