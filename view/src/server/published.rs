//! The timeline that is shown now, who reads it, and since when. Each change has a number, so that a page knows that its rows and events
//! are those of the answer.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use crate::timeline::Timeline;

/// The timeline that questions are answered from.
pub(crate) struct Published {
    now: RwLock<Now>,
    changed: watch::Sender<u64>,
}

/// What is shown.
#[derive(Clone, Default)]
pub(crate) struct Now {
    /// The timeline, or why there is none; none before anything was read.
    pub(crate) timeline: Option<Result<Arc<Timeline>, String>>,
    /// Whether it has all that the trace has.
    pub(crate) is_whole: bool,
    /// Why it changes no more, where that is not what was asked for.
    pub(crate) note: Option<String>,
    /// Its number.
    pub(crate) version: u64,
}

impl Published {
    pub(crate) fn new() -> Published {
        Published { now: RwLock::default(), changed: watch::Sender::new(0) }
    }

    /// What is shown now.
    pub(crate) fn now(&self) -> Now {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Number of what is shown now.
    pub(crate) fn version(&self) -> u64 {
        *self.changed.borrow()
    }

    /// Shows this from now on.
    pub(crate) fn put(&self, timeline: Result<Timeline, String>, is_whole: bool) {
        self.change(|now| {
            now.timeline = Some(timeline.map(Arc::new));
            now.is_whole = is_whole;
        });
    }

    /// Says why it changes no more.
    pub(crate) fn end(&self, note: String) {
        self.change(|now| now.note = Some(note));
    }

    fn change(&self, change: impl FnOnce(&mut Now)) {
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut now);
        now.version += 1;
        self.changed.send_replace(now.version);
    }

    /// Waits until what is shown has another number.
    pub(crate) async fn other_than(&self, version: u64) {
        // It fails where nobody can change it any more, and this can.
        let _ = self.changed.subscribe().wait_for(|now| *now != version).await;
    }
}
