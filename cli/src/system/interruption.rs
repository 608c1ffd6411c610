//! Ctrl-C and its like while a file is being changed: noted, so that the change can be undone before rpd ends.
//!
//! The second one ends rpd at once, as it would any program; the next who opens the file rolls it back then.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::system::signals;

/// The signals by which people end a program.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// The last of them that came, or 0.
static CAME: AtomicI32 = AtomicI32::new(0);

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
        CAME.store(0, Ordering::SeqCst);
        let mut noted = Interruption { before: Vec::new() };
        for signal in ENDING {
            let before = signals::action(signal, None)?;
            if before.sa_sigaction != libc::SIG_IGN {
                let mut ours = before;
                ours.sa_sigaction = came as *const () as usize;
                ours.sa_flags = libc::SA_RESTART | libc::SA_RESETHAND;
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
}
