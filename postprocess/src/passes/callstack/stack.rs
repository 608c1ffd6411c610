//! The stack of one thread, rebuilt from its calls in order of their start.
//!
//! Ties: at one timestamp, ends come before starts; of two calls with the same start the longer one is the outer, of equal
//! intervals the one with the smaller id; an instant mark has nothing below it.
//!
//! Calls that overlap without nesting (clocks, other recorders): a call is below the innermost open call that
//! contains all of it. Those that end before it does are left at its start, so that what comes after is below the later
//! call. Each keeps its whole duration: the time that two of them share counts for both, and is taken twice off the
//! caller's own time.

use bytemuck::{Pod, Zeroable};

/// Levels of a stack beyond which it is not taken for one: the table has a row per call and level.
pub(crate) const DEEPEST: usize = 2000;

/// A call; ordered as a stack takes them, thread after thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct StackCall {
    /// Process: process ids alone may be equal ([`rpd_schema::Processes`]).
    process: i64,
    /// Its id.
    pid: i64,
    /// Thread of it.
    pub(crate) tid: i64,
    /// Begin, ns.
    pub(crate) start: i64,
    /// End, ns, with all bits turned over: the later end comes first.
    not_end: i64,
    /// Row of `rocpd_api`.
    pub(crate) id: i64,
    /// Sum of the durations of the ops linked to it, ns.
    pub(crate) gpu_time: i64,
}

impl StackCall {
    /// A call, unless its times cannot be: it ends before it starts, or takes longer than can be told.
    pub(crate) fn new(
        id: i64,
        [process, pid, tid]: [i64; 3],
        (start, end): (i64, i64),
        gpu_time: i64,
    ) -> Option<StackCall> {
        let is_possible = end.checked_sub(start).is_some_and(|duration| duration >= 0);
        is_possible.then_some(StackCall { process, pid, tid, start, not_end: !end, id, gpu_time })
    }

    fn thread(&self) -> [i64; 3] {
        [self.process, self.pid, self.tid]
    }

    fn end(&self) -> i64 {
        !self.not_end
    }
}

/// A row of `ext_callstack`: caller, call, levels between them, the call's own CPU and GPU time in ns.
pub(crate) type CallstackRow = [i64; 5];

/// An open call.
struct Level {
    call: StackCall,
    /// Its duration without the calls directly below it, ns.
    own: i64,
}

/// The open calls of one thread, outermost first.
#[derive(Default)]
pub(crate) struct OpenCalls {
    levels: Vec<Level>,
    /// Most levels there ever were.
    pub(crate) deepest: usize,
    /// Calls that overlapped another one without one of them containing the other.
    pub(crate) overlapping: u64,
}

impl OpenCalls {
    /// Takes the next call and gives `row` the rows of those that have ended by then.
    ///
    /// # Errors
    /// Those of `row`.
    pub(crate) fn call<E>(
        &mut self,
        call: StackCall,
        mut row: impl FnMut(CallstackRow) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.levels.last().is_some_and(|top| top.call.thread() != call.thread()) {
            self.finish(&mut row)?;
        }
        while self.levels.last().is_some_and(|top| top.call.end() <= call.start) {
            self.leave(&mut row)?;
        }
        if self.levels.last().is_some_and(|top| top.call.end() < call.end()) {
            self.overlapping += 1;
            while self.levels.last().is_some_and(|top| top.call.end() < call.end()) {
                self.leave(&mut row)?;
            }
        }
        let duration = call.end() - call.start;
        if let Some(caller) = self.levels.last_mut() {
            caller.own = caller.own.saturating_sub(duration);
        }
        self.levels.push(Level { call, own: duration });
        self.deepest = self.deepest.max(self.levels.len());
        Ok(())
    }

    /// Ends all calls that are open.
    ///
    /// # Errors
    /// Those of `row`.
    pub(crate) fn finish<E>(&mut self, mut row: impl FnMut(CallstackRow) -> Result<(), E>) -> Result<(), E> {
        while !self.levels.is_empty() {
            self.leave(&mut row)?;
        }
        Ok(())
    }

    /// Ends the innermost call.
    fn leave<E>(&mut self, row: &mut impl FnMut(CallstackRow) -> Result<(), E>) -> Result<(), E> {
        let Some(Level { call, own }) = self.levels.last() else { return Ok(()) };
        let below = self.levels.len() - 1;
        for (level, caller) in self.levels.iter().enumerate() {
            row([caller.call.id, call.id, (below - level) as i64, *own, call.gpu_time])?;
        }
        self.levels.pop();
        Ok(())
    }
}
