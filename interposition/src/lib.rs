//! Functions of other libraries by their own names, for LD_PRELOAD (symbol interposition in docs/architecture.md).
//!
//! Each is a jump through a slot. The first call fills the slot: with the recorder's wrapper where librpd_tracer.so is in the process
//! and wants the call, with the library's own function otherwise. A preloaded library of names is made with [`interpose!`].
//!
//! - `loaded`: what the loader's list has; `next`: where a call goes on; `lookup`: `dlsym` and `dlvsym`; `unload`: `dlclose`

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod loaded;
pub mod lookup;
mod next;
pub mod unload;

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The functions that a preloaded library has, each at the same place in all lists.
#[derive(Debug)]
pub struct Interposed {
    /// Their symbols, in the order of their bytes.
    pub symbols: &'static [&'static CStr],
    /// The function that each is.
    pub names: &'static [&'static CStr],
    /// The preloaded library's own, also where somebody in front of it has one of the same name.
    pub own: &'static [unsafe extern "C" fn()],
    /// Where each goes; zero until the first call.
    pub slots: &'static [AtomicUsize],
    /// The library's own function behind each; zero likewise.
    pub originals: &'static [AtomicUsize],
    /// Function of librpd_tracer.so, `void *ask(const char *name, void *original)`: what to call for `name`.
    pub ask: &'static CStr,
    /// What a function answers in a process without the library that has it.
    pub without: extern "C" fn() -> c_int,
}

impl Interposed {
    /// Address of the function at `place`, which the caller then jumps to. Found once, for as long as its library is loaded; but what is
    /// missing is looked for again, because the library may be loaded later.
    #[must_use]
    pub fn find(&self, place: u32) -> usize {
        // SAFETY: the location is this thread's own errno.
        let errno = unsafe { *libc::__errno_location() };
        let place = place as usize;
        let found = self
            .symbols
            .get(place)
            .zip(self.names.get(place))
            .and_then(|(symbol, name)| next::function(self.ask, symbol, name));
        if let (Some(found), Some(slot), Some(original)) =
            (found, self.slots.get(place), self.originals.get(place))
        {
            original.store(found.original, Ordering::Release);
            slot.store(found.function, Ordering::Release);
        }
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
        found.map_or(self.without as *const () as usize, |found| found.function)
    }

    /// Has the functions looked for again whose originals are gone.
    fn forget(&self, is_gone: impl Fn(usize) -> bool) {
        for (slot, original) in self.slots.iter().zip(self.originals) {
            let address = original.load(Ordering::Acquire);
            if address != 0 && is_gone(address) {
                slot.store(0, Ordering::Release);
                original.store(0, Ordering::Release);
            }
        }
    }
}

/// Defines the functions of a preloaded library: `interpose! { asks c"FUNCTION", without STATUS; COUNT PLACE SYMBOL "SYMBOL" "NAME"; ... }`,
/// of which the list from COUNT on is written by a build script, in the order of the symbols' bytes. COUNT is how many there are.
#[macro_export]
macro_rules! interpose {
    (asks $ask:literal, without $status:literal; $count:literal $($place:literal $symbol:ident $text:literal $name:literal;)*) => {
        /// No library has the function.
        extern "C" fn without() -> ::std::ffi::c_int {
            $status
        }

        static SLOTS: [::std::sync::atomic::AtomicUsize; $count] =
            [const { ::std::sync::atomic::AtomicUsize::new(0) }; $count];

        static ORIGINALS: [::std::sync::atomic::AtomicUsize; $count] =
            [const { ::std::sync::atomic::AtomicUsize::new(0) }; $count];

        static INTERPOSED: $crate::Interposed = $crate::Interposed {
            symbols: &[$($text),*],
            names: &[$($name),*],
            own: &[$($symbol),*],
            slots: &SLOTS,
            originals: &ORIGINALS,
            ask: $ask,
            without,
        };

        extern "C-unwind" fn find(place: u32) -> usize {
            INTERPOSED.find(place)
        }

        /// Comes from a symbol's first call, its place in r11: all registers that may hold arguments stay as they are.
        #[unsafe(naked)]
        unsafe extern "C" fn first_call() {
            ::std::arch::naked_asm!(
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

        $(
            /// The library's function of that name.
            ///
            /// # Safety
            /// As the library demands; arguments and result are its own.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, reason = "the library's name")]
            pub unsafe extern "C" fn $symbol() {
                ::std::arch::naked_asm!(
                    // The functions that the library speaks of are its own, whoever else has their names. Not by the linker's
                    // -Bsymbolic, with which RTLD_DEFAULT would begin here.
                    concat!(".protected ", stringify!($symbol)),
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

        $crate::lookup!(dlsym, $crate::lookup::PLAIN);
        $crate::lookup!(dlvsym, $crate::lookup::VERSIONED);

        /// The function of that name, see [`rpd_interposition::unload`].
        ///
        /// # Safety
        /// As the C library demands.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn dlclose(handle: *mut ::std::ffi::c_void) -> ::std::ffi::c_int {
            // SAFETY: the caller's promise.
            unsafe { $crate::unload::close(&INTERPOSED, handle) }
        }

        /// What code that looks a function up gets, see [`rpd_interposition::lookup`].
        ///
        /// # Safety
        /// As the C library demands of `dlsym` and `dlvsym`.
        unsafe extern "C" fn answer(
            handle: *mut ::std::ffi::c_void,
            name: *const ::std::ffi::c_char,
            version: *const ::std::ffi::c_char,
            which: usize,
            caller: usize,
        ) -> $crate::lookup::LookupAnswer {
            if !$crate::lookup::is_ready() {
                return $crate::lookup::LookupAnswer { jump: 0, value: 0 };
            }
            // SAFETY: the caller's promise.
            unsafe { $crate::lookup::answer(&INTERPOSED, handle, name, version, which, caller) }
        }
    };
}
