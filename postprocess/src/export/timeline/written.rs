//! The output of events, and what they are made with.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::Result;
use rusqlite::Connection;

use crate::export::texts::{Put, TextCache, TraceTexts};
use crate::notes::{Notes, look};

/// Rows between two looks for a signal.
const LOOK: u64 = 1 << 10;

/// Rows between two lines of progress.
const STEP: u64 = 1 << 17;

/// What makes events, and the texts of the trace.
pub(super) struct Output<'a, 'trace, E> {
    pub(super) events: E,
    pub(super) texts: TraceTexts<'trace>,
    notes: &'a dyn Notes,
    /// Rows that are written, in steps of [`LOOK`].
    written: &'a AtomicU64,
    /// Rows that this writes until the next look for a signal.
    left: u64,
}

/// What all outputs of an export have in common.
pub(super) struct Common<'a> {
    pub(super) texts: &'a (TextCache, Option<TextCache>),
    pub(super) put: Put,
    pub(super) notes: &'a dyn Notes,
    pub(super) written: &'a AtomicU64,
}

impl Common<'_> {
    /// An output for a thread, which has a connection of its own.
    pub(super) fn output<'b, E>(&'b self, events: E, trace: &'b Connection) -> Result<Output<'b, 'b, E>> {
        let Common { put, notes, written, .. } = *self;
        let texts = TraceTexts::new(trace, self.texts, put)?;
        Ok(Output { events, texts, notes, written, left: 0 })
    }
}

impl<E> Output<'_, '_, E> {
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
