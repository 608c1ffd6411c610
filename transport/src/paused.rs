//! Ranges that a thread pushes and pops while recording is paused.
//!
//! They are not recorded, but a range still open when recording resumes is: from the resume time on. So each thread
//! remembers the open ones, in one byte buffer that a push extends and a pop cuts.

use crate::records::{Kind, Marker, Stack};

/// See the module.
#[derive(Default)]
pub struct Paused {
    ranges: Vec<PausedRange>,
    /// The ranges' texts, one behind the other.
    text: Vec<u8>,
}

struct PausedRange {
    stack: Stack,
    /// Where its text ends.
    end: usize,
    name_len: usize,
    /// Popped, below a range of another stack that is still open.
    popped: bool,
}

impl Paused {
    /// Nothing remembered.
    pub const fn new() -> Paused {
        Paused { ranges: Vec::new(), text: Vec::new() }
    }

    /// Whether there is nothing to tell the writer.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// A range begins.
    pub fn push(&mut self, stack: Stack, name: &[u8], args: &[u8]) {
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(args);
        self.ranges.push(PausedRange { stack, end: self.text.len(), name_len: name.len(), popped: false });
    }

    /// The innermost range of that stack ends. False: it was opened before the pause.
    pub fn pop(&mut self, stack: Stack) -> bool {
        let innermost = self.ranges.iter_mut().rev().find(|range| range.stack == stack && !range.popped);
        let Some(range) = innermost else { return false };
        range.popped = true;
        while self.ranges.last().is_some_and(|range| range.popped) {
            self.ranges.pop();
        }
        self.text.truncate(self.ranges.last().map_or(0, |range| range.end));
        true
    }

    /// What the writer must hear now that recording resumed at `time`, in order.
    pub fn replay(self, time: u64, mut tell: impl FnMut(Kind, Marker, [&[u8]; 2])) {
        let mut begin = 0;
        for range in self.ranges {
            let (name, args) = self.text[begin..range.end].split_at(range.name_len);
            begin = range.end;
            if !range.popped {
                let body = Marker { time, name_len: range.name_len as u32, stack: range.stack.0 };
                tell(Kind::Push, body, [name, args]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_still_open_is_replayed() {
        let mut paused = Paused::new();
        assert!(!paused.pop(Stack::RPD), "nothing was opened in the pause");
        paused.push(Stack::RPD, b"outer", b"x=1");
        paused.push(Stack::ROCTX, b"also gone", b"");
        paused.push(Stack::RPD, b"inner", b"");
        paused.push(Stack::RPD, b"gone", b"gone");
        assert!(paused.pop(Stack::RPD));
        assert!(paused.pop(Stack::ROCTX), "below a range of another stack");
        assert!(!paused.pop(Stack::ROCTX));
        let mut replayed = Vec::new();
        paused.replay(9, |kind, body, [name, args]| {
            assert_eq!(body.time, 9);
            replayed.push((kind, body.stack, String::from_utf8([name, b"|", args].concat()).unwrap()));
        });
        assert_eq!(replayed, [(Kind::Push, 0, "outer|x=1".into()), (Kind::Push, 0, "inner|".into())]);
    }

    #[test]
    fn balanced_pauses_leave_nothing() {
        let mut paused = Paused::new();
        paused.push(Stack::RPD, b"a", b"b");
        paused.push(Stack::ROCTX, b"c", b"d");
        paused.pop(Stack::RPD);
        paused.pop(Stack::ROCTX);
        assert!(paused.is_empty());
    }
}
