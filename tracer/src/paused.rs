//! Ranges that a thread opens and closes while recording is paused.
//!
//! They are not recorded, but a range still open when recording resumes is: from the resume time on. So each thread
//! remembers the open ones, in one byte buffer that a push extends and a pop cuts.

use crate::record::{Kind, Marker};

/// See the module.
#[derive(Default)]
pub(crate) struct Paused {
    /// (end in `text`, length of the api name) of each open range.
    open: Vec<(usize, usize)>,
    text: Vec<u8>,
}

impl Paused {
    /// Nothing remembered.
    pub(crate) const fn new() -> Paused {
        Paused { open: Vec::new(), text: Vec::new() }
    }

    /// Whether there is nothing to tell the writer.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// A range begins.
    pub(crate) fn push(&mut self, name: &[u8], args: &[u8]) {
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(args);
        self.open.push((self.text.len(), name.len()));
    }

    /// The innermost range ends. False: it was opened before the pause.
    pub(crate) fn pop(&mut self) -> bool {
        let popped = self.open.pop().is_some();
        self.text.truncate(self.open.last().map_or(0, |(end, _)| *end));
        popped
    }

    /// What the writer must hear now that recording resumed at `time`, in order.
    pub(crate) fn replay(self, time: u64, mut tell: impl FnMut(Kind, Marker, [&[u8]; 2])) {
        let mut begin = 0;
        for (end, name_len) in self.open {
            let (name, args) = self.text[begin..end].split_at(name_len);
            tell(Kind::Push, Marker { time, name_len: name_len as u32, count: 0 }, [name, args]);
            begin = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_still_open_is_told() {
        let mut paused = Paused::new();
        assert!(!paused.pop(), "nothing was opened in the pause");
        paused.push(b"outer", b"x=1");
        paused.push(b"inner", b"");
        paused.push(b"gone", b"gone");
        assert!(paused.pop());
        let mut told = Vec::new();
        paused.replay(9, |kind, body, [name, args]| {
            assert_eq!(body.time, 9);
            told.push((kind, body.count, String::from_utf8([name, b"|", args].concat()).unwrap()));
        });
        assert_eq!(told, [(Kind::Push, 0, "outer|x=1".into()), (Kind::Push, 0, "inner|".into())]);
    }

    #[test]
    fn balanced_pauses_leave_nothing() {
        let mut paused = Paused::new();
        paused.push(b"a", b"b");
        paused.pop();
        assert!(paused.is_empty());
    }
}
