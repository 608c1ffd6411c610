//! Recording on or off. Starts and stops are counted: recording runs while there were more starts than stops, and inside the
//! window that RPDT_DELAY and RPDT_DURATION set.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rpd_preload::clock;
use rpd_preload::lock::lock;
use rpd_settings::quantity::SECOND;

use crate::env::Env;

/// One change, at `time` in ns of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchChange {
    /// When.
    pub time: u64,
    /// Recording from here on, or paused.
    pub on: bool,
}

/// When recording may run, ns of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub struct Period {
    /// Not before.
    pub from: u64,
    /// Not from here on.
    pub to: u64,
}

/// When the user wants to record.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Recording begins by itself.
    pub autostart: bool,
    /// Time from the loading of the library to the beginning of recording.
    pub delay: Duration,
    /// Time after which recording ends.
    pub duration: Option<Duration>,
}

impl Schedule {
    /// RPDT_AUTOSTART, RPDT_DELAY and RPDT_DURATION.
    pub(crate) fn read(env: &mut Env<'_>) -> Schedule {
        Schedule {
            autostart: env.number("RPDT_AUTOSTART", 1, 0..=1) != 0,
            delay: env.time("RPDT_DELAY", SECOND, None, Duration::MAX).unwrap_or_default(),
            duration: env.time("RPDT_DURATION", SECOND, None, Duration::MAX).filter(|time| !time.is_zero()),
        }
    }

    /// The switch of a process whose library is loaded now.
    pub(crate) fn switch(&self) -> Switch {
        let from = clock::monotonic() + self.delay.as_nanos() as u64;
        let to = self.duration.map_or(u64::MAX, |duration| from.saturating_add(duration.as_nanos() as u64));
        // Without a delay the window is open from the beginning of time.
        Switch::new(self.autostart, Period { from: if self.delay.is_zero() { 0 } else { from }, to })
    }
}

struct SwitchState {
    depth: u32,
    paused: bool,
    disabled: bool,
    /// Those that nobody has taken; the first of all tells how it began.
    changes: Vec<SwitchChange>,
    /// The latest, whether or not they were taken.
    history: Vec<SwitchChange>,
    resumed_at: u64,
}

/// Changes kept for the writer: a program may start and stop for weeks without anything to record. Where there are more, the oldest are
/// forgotten, and what was open over them counts as recorded meanwhile.
const MOST_CHANGES: usize = 1024;

/// See the module.
pub struct Switch {
    on: AtomicBool,
    /// The window still has an edge ahead: somebody must look at the clock.
    timed: AtomicBool,
    /// More starts than stops, and neither paused nor disabled.
    wanted: AtomicBool,
    /// The trace is to be something that is none. Written with the state locked.
    fileless: AtomicBool,
    window: Period,
    state: Mutex<SwitchState>,
}

impl Switch {
    /// A switch that was started once, or not. It is as it is now from the beginning of time.
    pub fn new(wanted: bool, window: Period) -> Switch {
        let now = clock::monotonic();
        let on = wanted && (window.from..window.to).contains(&now);
        let changes = vec![SwitchChange { time: 0, on }];
        let timed = window.from > now || window.to != u64::MAX;
        let (history, depth) = (changes.clone(), wanted.into());
        let state = SwitchState { depth, paused: false, disabled: false, changes, history, resumed_at: 0 };
        let state = Mutex::new(state);
        let [on, timed, wanted, fileless] = [on, timed, wanted, false].map(AtomicBool::new);
        Switch { on, timed, wanted, fileless, window, state }
    }

    /// One for a forked child: as this one is now. Takes no lock, which another thread may have held at the fork.
    pub fn inherited(&self) -> Switch {
        let switch = Switch::new(self.wanted.load(Ordering::Relaxed), self.window);
        if self.fileless.load(Ordering::Relaxed) {
            switch.lose_file();
        }
        switch
    }

    /// Whether [`Switch::keep_time`] must be called for the switch to change at the right moment.
    #[inline]
    pub fn is_timed(&self) -> bool {
        self.timed.load(Ordering::Relaxed)
    }

    /// Switches at the edges of the window; how long until the next edge, in ns.
    pub fn keep_time(&self) -> Option<u64> {
        if !self.is_timed() {
            return None;
        }
        let mut state = lock(&self.state);
        self.update(&mut state);
        let now = clock::monotonic();
        let edges = [self.window.from, self.window.to];
        let next = edges.into_iter().filter(|edge| *edge > now && *edge != u64::MAX).min();
        self.timed.store(next.is_some(), Ordering::Relaxed);
        next.map(|edge| edge - now)
    }

    /// Whether hooks record.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// One more start.
    pub fn start(&self) {
        let mut state = lock(&self.state);
        state.depth += 1;
        self.update(&mut state);
    }

    /// One more stop. A stop without a start does nothing.
    pub fn stop(&self) {
        let mut state = lock(&self.state);
        state.depth = state.depth.saturating_sub(1);
        self.update(&mut state);
    }

    /// Off, whatever starts, until [`Switch::resume`].
    pub fn pause(&self) {
        let mut state = lock(&self.state);
        state.paused = true;
        self.update(&mut state);
    }

    /// Ends a pause. Where nobody has started recording, this is a start. Doing it twice is doing it once.
    pub fn resume(&self) {
        let mut state = lock(&self.state);
        state.paused = false;
        state.depth = state.depth.max(1);
        self.update(&mut state);
    }

    /// Off for good.
    pub fn disable(&self) {
        let mut state = lock(&self.state);
        state.disabled = true;
        self.update(&mut state);
    }

    /// Off for good because the process ends: for the trace, recording goes on to its end.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.disabled = true;
        self.wanted.store(false, Ordering::Relaxed);
        self.on.store(false, Ordering::Relaxed);
    }

    /// Off until [`Switch::find_file`]: what is to be the trace is none.
    pub fn lose_file(&self) {
        self.set_fileless(true);
    }

    /// The trace has another name.
    pub fn find_file(&self) {
        self.set_fileless(false);
    }

    fn set_fileless(&self, fileless: bool) {
        let mut state = lock(&self.state);
        self.fileless.store(fileless, Ordering::Relaxed);
        self.update(&mut state);
    }

    /// The changes since the last call, oldest first.
    pub fn take_changes(&self) -> Vec<SwitchChange> {
        std::mem::take(&mut lock(&self.state).changes)
    }

    /// The latest changes, oldest first, whoever has taken them: see [`was_on`].
    pub fn history(&self) -> Vec<SwitchChange> {
        lock(&self.state).history.clone()
    }

    /// When it last changed, 0 for never.
    pub fn changed_at(&self) -> u64 {
        lock(&self.state).history.last().map_or(0, |change| change.time)
    }

    /// When recording last began, 0 for always.
    pub fn resumed_at(&self) -> u64 {
        lock(&self.state).resumed_at
    }

    fn update(&self, state: &mut SwitchState) {
        let now = clock::monotonic();
        let wanted = state.depth > 0 && !state.paused && !state.disabled;
        self.wanted.store(wanted, Ordering::Relaxed);
        let fileless = self.fileless.load(Ordering::Relaxed);
        let on = wanted && !fileless && (self.window.from..self.window.to).contains(&now);
        if on != self.is_on() {
            if state.changes.len() >= MOST_CHANGES {
                state.changes.remove(0);
            }
            if state.history.len() >= MOST_CHANGES {
                state.history.remove(0);
            }
            state.history.push(SwitchChange { time: now, on });
            state.changes.push(SwitchChange { time: now, on });
            if on {
                state.resumed_at = now;
            }
            self.on.store(on, Ordering::Relaxed);
        }
    }
}

/// When recording was off by the changes of [`Switch::history`]: from, and to where it goes on. Ns of CLOCK_MONOTONIC, nothing before `began`.
pub fn stops(history: &[SwitchChange], began: u64) -> Vec<(u64, Option<u64>)> {
    let ends = history.iter().skip(1).map(|change| Some(change.time)).chain([None]);
    let off = history.iter().zip(ends).filter(|(change, _)| !change.on);
    let stops = off.map(|(change, end)| (change.time.max(began), end));
    stops.filter(|(from, to)| to.is_none_or(|to| to > *from)).collect()
}

/// Whether recording was on at `time`, ns of CLOCK_MONOTONIC, by the changes of [`Switch::history`].
pub fn was_on(history: &[SwitchChange], time: u64) -> bool {
    let before = history.partition_point(|change| change.time <= time);
    before.checked_sub(1).is_some_and(|last| history[last].on)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_window_opens_and_closes() {
        let edge = clock::monotonic() + 20_000_000;
        let pass = |switch: &Switch| {
            while clock::monotonic() <= edge {
                let wait = switch.keep_time().unwrap_or_default();
                std::thread::sleep(Duration::from_nanos(wait));
            }
            switch.keep_time();
        };
        let opening = Switch::new(true, Period { from: edge, to: u64::MAX });
        let closing = Switch::new(true, Period { from: 0, to: edge });
        pass(&opening);
        pass(&closing);
        assert!(opening.is_on() && !closing.is_on());
        // A machine that has nothing else to do has come here before the edge.
        let early = |change: &SwitchChange| change.time > 0 && change.time < edge;
        assert!(!opening.take_changes().iter().chain(&closing.take_changes()).any(early));
        closing.start();
        assert!(!closing.is_on(), "the window is over");
    }

    #[test]
    fn pauses_are_not_counted() {
        let switch = Switch::new(true, Period { from: 0, to: u64::MAX });
        switch.pause();
        switch.pause();
        switch.start();
        assert!(!switch.is_on());
        switch.resume();
        assert!(switch.is_on());
        switch.resume();
        switch.stop();
        switch.stop();
        assert!(!switch.is_on(), "resuming twice is not two starts");
        switch.resume();
        assert!(switch.is_on(), "a resume where nobody has started recording is a start");
    }

    #[test]
    fn a_process_that_ends_stops_no_recording() {
        let switch = Switch::new(true, Period { from: 0, to: u64::MAX });
        switch.close();
        switch.start();
        switch.resume();
        assert!(!switch.is_on());
        assert_eq!(switch.history(), [SwitchChange { time: 0, on: true }]);
        assert!(stops(&switch.history(), 0).is_empty());
    }

    #[test]
    fn a_wrong_file_keeps_it_off_until_there_is_another() {
        let switch = Switch::new(true, Period { from: 0, to: u64::MAX });
        switch.lose_file();
        switch.start();
        assert!(!switch.is_on());
        let child = switch.inherited();
        assert!(!child.is_on());
        switch.find_file();
        child.find_file();
        assert!(switch.is_on() && child.is_on());
        switch.lose_file();
        switch.stop();
        switch.stop();
        switch.find_file();
        assert!(!switch.is_on(), "nobody wants to record any more");
    }

    #[test]
    fn starts_and_stops_are_counted() {
        let switch = Switch::new(true, Period { from: 0, to: u64::MAX });
        switch.start();
        switch.stop();
        assert!(switch.is_on());
        switch.stop();
        assert!(!switch.is_on());
        switch.stop();
        switch.start();
        assert!(switch.is_on(), "a stop too many leaves no debt");
        let on: Vec<bool> = switch.take_changes().iter().map(|c| c.on).collect();
        assert_eq!(on, [true, false, true]);
        switch.disable();
        switch.start();
        assert!(!switch.is_on());
        assert_eq!(switch.take_changes().len(), 1, "those before were taken");
    }

    #[test]
    fn what_was_is_known_of_a_time_that_is_over() {
        let switch = Switch::new(true, Period { from: 0, to: u64::MAX });
        switch.stop();
        let stopped = clock::monotonic();
        switch.start();
        switch.take_changes();
        let history = switch.history();
        let at = |place: usize| history[place].time;
        assert_eq!(
            [0, at(1) - 1, at(1), stopped, at(2)].map(|time| was_on(&history, time)),
            [true, true, false, false, true]
        );
        assert!(!was_on(&[], 7));
    }

    #[test]
    fn stops_are_distinguished_from_the_begin_of_the_process() {
        let change = |(time, on)| SwitchChange { time, on };
        let history = [(0, false), (20, true), (30, false), (40, true), (50, false)].map(change);
        assert_eq!(stops(&history, 7), [(7, Some(20)), (30, Some(40)), (50, None)]);
        assert_eq!(stops(&history, 25), [(30, Some(40)), (50, None)]);
        assert_eq!(stops(&history[1..2], 7), []);
    }

    #[test]
    fn changes_that_nobody_takes_are_bounded() {
        let switch = Switch::new(true, Period { from: 0, to: u64::MAX });
        for _ in 0..MOST_CHANGES {
            switch.stop();
            switch.start();
        }
        let changes = switch.take_changes();
        assert_eq!((changes.len(), changes.last().map(|change| change.on)), (MOST_CHANGES, Some(true)));
        assert_eq!(switch.resumed_at(), changes[MOST_CHANGES - 1].time);
    }
}
