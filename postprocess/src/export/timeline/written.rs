//! The output of events, and what they are made with.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::Result;

use crate::export::texts::{TextCache, TraceTexts};
use crate::notes::{Notes, look};

/// Rows between two looks for a signal.
const LOOK: u64 = 1 << 10;

/// Rows between two lines of progress.
const STEP: u64 = 1 << 17;

/// What makes events, and the texts of the trace.
pub(super) struct Output<'a, E> {
    pub(super) events: E,
    pub(super) texts: TraceTexts<'a>,
    notes: &'a dyn Notes,
    /// Rows that are written, in steps of [`LOOK`].
    written: &'a AtomicU64,
    /// Rows that this writes until the next look for a signal.
    left: u64,
}

/// What all outputs of an export have in common.
pub(super) struct Common<'a> {
    pub(super) texts: &'a (TextCache, Option<TextCache>),
    pub(super) notes: &'a dyn Notes,
    pub(super) written: &'a AtomicU64,
}

impl Common<'_> {
    /// An output for a thread.
    pub(super) fn output<E>(&self, events: E) -> Output<'_, E> {
        let Common { texts, notes, written } = *self;
        Output { events, texts: TraceTexts::new(texts), notes, written, left: 0 }
    }
}

impl<E> Output<'_, E> {
    /// Counts a row that is written, and fails if a signal came.
    pub(super) fn row(&mut self) -> Result<()> {
        if self.left == 0 {
            self.left = LOOK;
            let written = self.written.fetch_add(LOOK, Relaxed);
            if written.is_multiple_of(STEP) {
                self.notes.show(&format!("{written} events written"));
            }
            self.notes.tick();
            look(self.notes)?;
        }
        self.left -= 1;
        Ok(())
    }
}
