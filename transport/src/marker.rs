//! Ranges of a thread and instants, whatever API the application uses for them.

use std::cell::{Cell, RefCell};

use rpd_preload::clock;

use crate::recorder::Recorder;
use crate::records::{Kind, Marker, Stack};
use crate::thread;

/// The api name of rows whose API knows a text only (roctx, NVTX), as the original names them.
pub const USER_MARKER: &str = "UserMarker";

/// An instant.
#[inline]
pub fn mark(recorder: &'static Recorder, name: &[u8], args: &[u8]) {
    recorder.in_use();
    if recorder.switch.is_on() {
        marker(recorder, Kind::Mark, Stack::RPD, [name, args]);
    }
}

/// A range of this thread begins.
#[inline]
pub fn push(recorder: &'static Recorder, stack: Stack, name: &[u8], args: &[u8]) {
    recorder.in_use();
    if recorder.switch.is_on() {
        marker(recorder, Kind::Push, stack, [name, args]);
    } else {
        thread::with_paused(|paused| paused.push(stack, name, args));
    }
}

/// The innermost range of that stack of this thread ends.
#[inline]
pub fn pop(recorder: &'static Recorder, stack: Stack) {
    if recorder.switch.is_on() {
        marker(recorder, Kind::Pop, stack, [&[], &[]]);
    } else if !thread::with_paused(|paused| paused.pop(stack)) && thread::has_recorded() {
        // A range from before the pause: the writer must know now, because this thread may never say anything again.
        marker(recorder, Kind::Discard, stack, [&[], &[]]);
    }
}

fn marker(recorder: &'static Recorder, kind: Kind, stack: Stack, text: [&[u8]; 2]) {
    let body = Marker { time: clock::monotonic(), name_len: text[0].len() as u32, stack: stack.0 };
    thread::push_marker(recorder, kind, body, text);
}

/// Stacks that are no domain's.
const FIXED: usize = Stack::FIRST_DOMAIN.0 as usize;

thread_local! {
    /// How many ranges of each stack that is no domain's this thread has open. It needs no destructor, for which the C library would need
    /// memory: where there is none, it ends the process.
    static LEVELS: [Cell<i32>; FIXED] = const { [const { Cell::new(0) }; FIXED] };
    /// The same of the few domains that it uses.
    static DOMAIN_LEVELS: RefCell<Vec<(Stack, i32)>> = const { RefCell::new(Vec::new()) };
}

/// Counts a push: how many ranges of the stack were open before it. Kept whether or not anything is recorded, because
/// applications see the number.
#[inline]
pub fn level_up(stack: Stack) -> i32 {
    with_level(stack, |level| {
        *level += 1;
        *level - 1
    })
}

/// Counts a pop: how many ranges of the stack are open after it, nothing if none was before it.
#[inline]
pub fn level_down(stack: Stack) -> Option<i32> {
    let level = with_level(stack, |level| {
        *level -= 1;
        let left = *level;
        *level = left.max(0);
        left
    });
    (level >= 0).then_some(level)
}

fn with_level(stack: Stack, act: impl FnOnce(&mut i32) -> i32) -> i32 {
    if (stack.0 as usize) < FIXED {
        return LEVELS.with(|levels| {
            let mut level = levels[stack.0 as usize].get();
            let result = act(&mut level);
            levels[stack.0 as usize].set(level);
            result
        });
    }
    let acted = DOMAIN_LEVELS.try_with(|levels| {
        let mut levels = levels.try_borrow_mut().ok()?;
        if let Some((_, level)) = levels.iter_mut().find(|(known, _)| *known == stack) {
            return Some(act(level));
        }
        let mut level = 0;
        let result = act(&mut level);
        levels.push((stack, level));
        Some(result)
    });
    // A thread that is ending has no levels any more.
    acted.ok().flatten().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_roctx() {
        let stack = Stack::ROCTX;
        assert_eq!(level_down(stack), None);
        assert_eq!([level_up(stack), level_up(stack), level_up(Stack::RPD)], [0, 1, 0]);
        assert_eq!([level_down(stack), level_down(stack), level_down(stack)], [Some(1), Some(0), None]);
        assert_eq!(level_up(stack), 0);
        let [domain, other] = [Stack::FIRST_DOMAIN, Stack(Stack::FIRST_DOMAIN.0 + 1)];
        assert_eq!([level_up(domain), level_up(domain), level_up(other)], [0, 1, 0]);
        assert_eq!([level_down(other), level_down(other), level_down(domain)], [Some(0), None, Some(1)]);
    }
}
