//! `dlsym` and `dlvsym`. A caller that looks functions up in the handle of the library that has them (ctypes, Julia) gets those of the
//! preloaded library. A caller that asks whether they are there gets the truth.
//!
//! What `RTLD_NEXT` means depends on the code that asks. The real function knows that code by its return address, so our function jumps to
//! the real one as if the caller had called it. It does the same for all names that are not ours, and for `RTLD_DEFAULT` where the answer
//! may depend on the code that asks.

use std::ffi::{CStr, c_char, c_void};

use crate::loaded::{self, RealFunction};
use crate::{Interposed, next};

/// `dlsym`, by its place below.
pub const PLAIN: usize = 0;
/// `dlvsym`.
pub const VERSIONED: usize = 1;
static REAL: [RealFunction; 2] = [RealFunction::new(c"dlsym"), RealFunction::new(c"dlvsym")];

type Real = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;

/// What becomes of a look-up, in the two registers of a result.
#[derive(Debug)]
#[repr(C)]
pub struct LookupAnswer {
    /// The function to go on in, 0 for none.
    pub jump: usize,
    /// Without one: what is returned.
    pub value: usize,
}

/// Whether look-ups can be answered: not while the preloaded library is not relocated, which others' resolvers of indirect functions may
/// come before.
#[must_use]
#[inline(always)]
pub fn is_ready() -> bool {
    loaded::is_relocated()
}

/// What the code at `caller` gets, where that [is ready](is_ready).
///
/// # Safety
/// As the real function demands; `version` is used for `dlvsym` only.
pub unsafe fn answer(
    interposed: &Interposed,
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
    which: usize,
    caller: usize,
) -> LookupAnswer {
    let Some(address) = real(which) else { return LookupAnswer { jump: 0, value: 0 } };
    let leave = LookupAnswer { jump: address, value: 0 };
    if name.is_null() {
        return leave;
    }
    let Some(place) = place(interposed.symbols, name) else { return leave };
    let own = interposed.own.get(place).map_or(0, |function| *function as usize);
    // SAFETY: an address of dlsym or dlvsym; the former takes two arguments, and does not see the third.
    let look_up = |handle, which| unsafe {
        real(which).map_or(0, |real| std::mem::transmute::<usize, Real>(real)(handle, name, version) as usize)
    };
    let is_default = handle == libc::RTLD_DEFAULT;
    let value = match interposed.symbols.get(place).and_then(|symbol| next::original(symbol)) {
        None if handle == libc::RTLD_NEXT => look_up(handle, PLAIN),
        None => match look_up(handle, which) {
            // Nobody else has it: the real function is to say so, to `dlerror` as well.
            found if found == own => look_up(libc::RTLD_NEXT, PLAIN),
            found => found,
        },
        Some(_) if handle == libc::RTLD_NEXT => return leave,
        Some(original) => match look_up(handle, which) {
            found if found == original => own,
            // This library's are there for everybody. A library that asks may have loaded it for itself alone, and not the program.
            found if found == own => match look_up(libc::RTLD_NEXT, PLAIN) {
                0 if is_default && !loaded::is_of_program(caller) => return leave,
                0 => 0,
                _ => own,
            },
            _ if is_default => return leave,
            found => found,
        },
    };
    LookupAnswer { jump: 0, value }
}

/// Place of the function `name`. Found without a function of the C library: somebody else's may be in front of that, not ready yet.
fn place(symbols: &[&CStr], name: *const c_char) -> Option<usize> {
    // SAFETY: NUL-terminated names, the caller's promise.
    symbols.binary_search_by(|symbol| unsafe { loaded::compare(symbol.as_ptr(), name) }).ok()
}

fn real(which: usize) -> Option<usize> {
    REAL.get(which)?.get()
}

/// One of the two functions, which asks `answer`.
#[doc(hidden)]
#[macro_export]
macro_rules! lookup {
    ($name:ident, $which:expr) => {
        /// The function of that name, see [`rpd_interposition::lookup`].
        ///
        /// # Safety
        /// As the C library demands.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name() {
            ::std::arch::naked_asm!(
                concat!(".protected ", stringify!($name)),
                ".cfi_startproc",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                "push rdx",
                ".cfi_adjust_cfa_offset 8",
                "mov ecx, {which}",
                "mov r8, [rsp + 24]",
                "call {answer}",
                "mov r11, rax",
                "mov rax, rdx",
                "pop rdx",
                ".cfi_adjust_cfa_offset -8",
                "pop rsi",
                ".cfi_adjust_cfa_offset -8",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "test r11, r11",
                "jz 2f",
                "jmp r11",
                "2:",
                "ret",
                ".cfi_endproc",
                which = const $which,
                answer = sym answer,
            )
        }
    };
}
