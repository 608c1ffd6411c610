//! Ctrl-C and its like while a file is being changed: noted, so that the change can be undone before rpd ends.
//!
//! The second one ends rpd at once, as it would any program; the next who opens the file rolls it back then. `rpd monitor`
//! notes two, because `timeout` sends as many.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use crate::system::signals;

/// The last of them that came, or 0.
static CAME: AtomicI32 = AtomicI32::new(0);

/// How many more of them are noted before the next one ends rpd.
static NOTED: AtomicU32 = AtomicU32::new(0);

/// The signals are noted while this lives.
pub(crate) struct Interruption {
    before: Vec<(i32, libc::sigaction)>,
}

impl Interruption {
    /// Begins to note signals. Those that are ignored (`nohup`) stay ignored.
    ///
    /// # Errors
    /// When the kernel refuses a handler.
    pub(crate) fn note() -> io::Result<Interruption> {
        Interruption::note_some(1)
    }

    /// The same, where as many as that are noted.
    ///
    /// # Errors
    /// As [`Interruption::note`].
    pub(crate) fn note_some(most: u32) -> io::Result<Interruption> {
        CAME.store(0, Ordering::SeqCst);
        NOTED.store(most, Ordering::SeqCst);
        let mut noted = Interruption { before: Vec::new() };
        for signal in signals::ENDING {
            let before = signals::action(signal, None)?;
            if before.sa_sigaction != libc::SIG_IGN {
                let mut ours = before;
                ours.sa_sigaction = came as *const () as usize;
                ours.sa_flags = libc::SA_RESTART;
                signals::action(signal, Some(&ours))?;
                noted.before.push((signal, before));
            }
        }
        Ok(noted)
    }

    /// The signal that came, if one did.
    pub(crate) fn signal() -> Option<i32> {
        Some(CAME.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }
}

impl Drop for Interruption {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            let _ = signals::action(*signal, Some(before));
        }
    }
}

extern "C" fn came(signal: i32) {
    CAME.store(signal, Ordering::SeqCst);
    let left = NOTED.load(Ordering::SeqCst).saturating_sub(1);
    NOTED.store(left, Ordering::SeqCst);
    if left == 0
        && let Ok(mut default) = signals::action(signal, None)
    {
        default.sa_sigaction = libc::SIG_DFL;
        let _ = signals::action(signal, Some(&default));
    }
}
