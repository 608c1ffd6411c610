//! Whether CUPTI may be used, and whether it ever was.
//!
//! Whether the process has it now is another question: see [`super::attach::current`].

use std::sync::atomic::{AtomicU8, Ordering};

/// CUPTI in the life of the process. A forked child goes on with its parent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum CuptiState {
    /// It has not been attached yet.
    Unused,
    /// It has been attached, and may be again.
    Used,
    /// It was left to another profiler, until recording is started again.
    LeftToAnother,
    /// The process ends: nothing is attached any more. It never was.
    EndedUnused,
    /// The process ends. It was attached.
    Ended,
    /// The process ends. It was left to another profiler.
    EndedLeftToAnother,
}

use CuptiState::*;

const ALL: [CuptiState; 6] = [Unused, Used, LeftToAnother, EndedUnused, Ended, EndedLeftToAnother];

/// What changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CuptiEvent {
    /// It was attached, and records.
    Attached,
    /// Another profiler asks for it.
    AskedFor,
    /// Recording is started: whoever had it may have given it back.
    RecordingStarted,
    /// The process ends.
    ProcessEnds,
}

impl CuptiState {
    /// The table of transitions; what it does not list changes nothing.
    fn next(self, event: CuptiEvent) -> CuptiState {
        match (self, event) {
            (Unused, CuptiEvent::Attached) => Used,
            (EndedUnused, CuptiEvent::Attached) => Ended,
            (Unused | Used, CuptiEvent::AskedFor) => LeftToAnother,
            (EndedUnused | Ended, CuptiEvent::AskedFor) => EndedLeftToAnother,
            (LeftToAnother, CuptiEvent::RecordingStarted) => Used,
            (EndedLeftToAnother, CuptiEvent::RecordingStarted) => Ended,
            (Unused, CuptiEvent::ProcessEnds) => EndedUnused,
            (Used, CuptiEvent::ProcessEnds) => Ended,
            (LeftToAnother, CuptiEvent::ProcessEnds) => EndedLeftToAnother,
            (state, _) => state,
        }
    }

    /// Whether it may be attached.
    pub(super) fn is_free(self) -> bool {
        matches!(self, Unused | Used)
    }

    /// Whether it was left to another profiler.
    pub(super) fn is_left(self) -> bool {
        matches!(self, LeftToAnother | EndedLeftToAnother)
    }

    /// Whether this process or the one that it was forked from has had it.
    pub(super) fn was_used(self) -> bool {
        !matches!(self, Unused | EndedUnused)
    }
}

static STATE: AtomicU8 = AtomicU8::new(Unused as u8);

/// The state now.
pub(super) fn current() -> CuptiState {
    of(STATE.load(Ordering::Relaxed))
}

fn of(number: u8) -> CuptiState {
    ALL[usize::from(number) % ALL.len()]
}

/// Something has happened. Whether it changed the state.
pub(super) fn apply(event: CuptiEvent) -> bool {
    let next = |number| Some(of(number).next(event) as u8);
    let (Ok(before) | Err(before)) = STATE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    of(before) != of(before).next(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places_in_the_list() {
        assert!(ALL.into_iter().enumerate().all(|(place, state)| state as usize == place));
    }

    #[test]
    fn what_was_left_is_free_when_recording_is_started_again_and_never_at_the_end() {
        let after = |events: &[CuptiEvent]| events.iter().fold(Unused, |state, event| state.next(*event));
        assert!(after(&[]).is_free() && !after(&[]).was_used());
        let left = [CuptiEvent::Attached, CuptiEvent::AskedFor];
        assert!(!after(&left).is_free() && after(&left).is_left() && after(&left).was_used());
        assert_eq!(after(&[&left[..], &[CuptiEvent::RecordingStarted]].concat()), Used);
        let ended = after(&[&left[..], &[CuptiEvent::ProcessEnds, CuptiEvent::RecordingStarted]].concat());
        assert!(!ended.is_free() && !ended.is_left() && ended.was_used());
        assert!(!after(&[CuptiEvent::ProcessEnds]).was_used());
    }
}
