//! Recording on or off. Starts and stops are counted: recording runs while there were more starts than stops.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock;
use crate::sync::lock;

/// One change, at `time` in ns of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// When.
    pub(crate) time: u64,
    /// Recording from here on, or paused.
    pub(crate) on: bool,
}

struct State {
    depth: u32,
    disabled: bool,
    changes: Vec<Change>,
}

/// See the module.
pub(crate) struct Switch {
    on: AtomicBool,
    state: Mutex<State>,
}

impl Switch {
    /// A switch that is on from the beginning of time, or off.
    pub(crate) fn new(on: bool) -> Switch {
        let changes = vec![Change { time: 0, on }];
        Switch {
            on: AtomicBool::new(on),
            state: Mutex::new(State { depth: on as u32, disabled: false, changes }),
        }
    }

    /// Whether hooks record.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// One more wish to record.
    pub(crate) fn start(&self) {
        let mut state = lock(&self.state);
        state.depth += 1;
        self.settle(&mut state);
    }

    /// One wish less. A stop without a start does nothing.
    pub(crate) fn stop(&self) {
        let mut state = lock(&self.state);
        state.depth = state.depth.saturating_sub(1);
        self.settle(&mut state);
    }

    /// Off for good.
    pub(crate) fn disable(&self) {
        let mut state = lock(&self.state);
        state.disabled = true;
        self.settle(&mut state);
    }

    /// All changes so far, oldest first; the first tells how it began.
    pub(crate) fn changes(&self, from: usize) -> Vec<Change> {
        lock(&self.state).changes.get(from..).unwrap_or_default().to_vec()
    }

    /// When recording last began, 0 for always.
    pub(crate) fn resumed_at(&self) -> u64 {
        lock(&self.state).changes.iter().rev().find(|c| c.on).map_or(0, |c| c.time)
    }

    fn settle(&self, state: &mut State) {
        let on = state.depth > 0 && !state.disabled;
        if on != self.is_on() {
            state.changes.push(Change { time: clock::monotonic(), on });
            self.on.store(on, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_and_stops_are_counted() {
        let switch = Switch::new(true);
        switch.start();
        switch.stop();
        assert!(switch.is_on());
        switch.stop();
        assert!(!switch.is_on());
        switch.stop();
        switch.start();
        assert!(switch.is_on(), "a stop too many leaves no debt");
        let on: Vec<bool> = switch.changes(0).iter().map(|c| c.on).collect();
        assert_eq!(on, [true, false, true]);
        switch.disable();
        switch.start();
        assert!(!switch.is_on());
    }
}
