//! The stack of a call: the addresses on the calling thread's stack (RPDT_STACKFRAMES=1).
//!
//! - `walk`: from frame to frame, by the unwind tables of the code (framehop), past signal handlers; by frame pointers where code
//!   has no tables. Memory is read between the stack pointer and the end of the thread's own stack, nowhere else
//! - `table`, `loader`, `module`: the objects that the code lies in; they come and go while the program runs
//! - `word`: a frame as records carry it
//! - `symbol`: from an address to function, file and line, on the writer's thread

mod loader;
mod module;
pub(crate) mod symbol;
mod table;
mod walk;
mod word;

use std::arch::asm;
use std::cell::RefCell;

use crate::recorder::epoch;
pub use table::{Demangle, Stacks};
pub use walk::MOST;
use walk::{Registers, Walker};

thread_local! {
    /// (epoch, walker) of this thread.
    static WALKER: RefCell<(u32, Option<Walker>)> = const { RefCell::new((0, None)) };
}

/// The frames of the application that led to the recorder, nearest first, in `words`: addresses, which `symbol` names.
///
/// None on a stack that is not the thread's own or has little room left, in a signal handler that interrupted this, and on a
/// thread that is ending.
#[inline(never)]
pub fn frames<'w>(stacks: &Stacks, words: &'w mut [u64; MOST]) -> &'w [u64] {
    let (ip, sp, bp): (u64, u64, u64);
    // SAFETY: reads three registers. This function's frame outlives the walk that begins in it.
    unsafe {
        asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) ip, out(reg) sp, out(reg) bp,
            options(nomem, nostack, preserves_flags));
    }
    let walked = WALKER.try_with(|walker| {
        let mut walker = walker.try_borrow_mut().ok()?;
        if walker.0 != epoch() {
            *walker = (epoch(), None);
        }
        let walker = walker.1.get_or_insert_with(Walker::new);
        Some(walker.walk(stacks, Registers { ip, sp, bp }, words))
    });
    let count = walked.ok().flatten().unwrap_or(0);
    if count == 0 {
        stacks.count_without(1);
    }
    &words[..count]
}

#[cfg(test)]
mod tests;
