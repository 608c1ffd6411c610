//! Collapsed stacks: `frame;frame;frame N`, a line for each stack with its own time in ns, as flamegraph.pl and inferno read them.
//!
//! Equal stacks are one line. If a trace has more stacks or names than fit, a stack may have several lines, which such tools add up.

use std::borrow::Cow;
use std::io::{BufWriter, Write};

use anyhow::Result;
use rpd_schema::Version;
use rusqlite::Connection;
use rustc_hash::FxHashMap;

use super::Exported;
use super::call_tree::{self, FrameNames, NO_CALL, Thread, TreeFrame, TreeOptions, Trees};
use super::timeline::begin_reading;
use crate::notes::Notes;
use crate::text::escape;

/// Stacks in memory at most, and bytes of their names.
const MOST_IN_MEMORY: (usize, usize) = (1 << 19, 24 << 20);

/// Writes the stacks of `trace` to `out`; with `threads` they begin with their process and thread.
///
/// # Errors
/// When the trace, or a temporary file, cannot be read, when calls nest too deep, when a signal came (`notes`), or when `out` cannot be
/// written: then an [`std::io::Error`] is in the chain.
pub fn export(
    trace: (&Connection, Version),
    options: &TreeOptions,
    threads: bool,
    notes: &dyn Notes,
    out: &mut (dyn Write + Send),
) -> Result<Exported> {
    let mut stacks = Stacks {
        out: BufWriter::new(out),
        threads,
        nodes: Vec::new(),
        places: FxHashMap::default(),
        labels: Vec::new(),
        first_label: 0,
        roots: Vec::new(),
        open: Vec::new(),
        now: 0,
        most_in_memory: MOST_IN_MEMORY,
    };
    begin_reading(trace.0)?;
    let exported = call_tree::walk(trace, options, notes, &mut stacks)?;
    stacks.write()?;
    stacks.out.flush()?;
    Ok(exported)
}

/// A stack.
struct Node {
    /// The stack without its innermost frame.
    parent: Option<u32>,
    label: Label,
    /// Its own time, ns.
    ns: u64,
}

/// The name of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Label {
    /// Number of a process' or thread's name.
    Root(u32),
    /// Number of a frame's name.
    Frame(u32),
}

/// The stacks so far.
struct Stacks<W> {
    out: W,
    threads: bool,
    nodes: Vec<Node>,
    places: FxHashMap<(Option<u32>, Label), u32>,
    /// Names of frames as lines have them, from the number `first_label` on.
    labels: Vec<Box<str>>,
    first_label: u32,
    /// Names of processes and threads, likewise.
    roots: Vec<String>,
    /// The stack that is open, with what its frames are named by; those of the process and thread by nothing.
    open: Vec<(u32, Option<TreeFrame>)>,
    now: i64,
    /// Stacks, and bytes of names.
    most_in_memory: (usize, usize),
}

impl<W: Write> Trees for Stacks<W> {
    fn thread(&mut self, thread: &Thread<'_>, now: i64) -> Result<()> {
        self.now = now;
        self.open.clear();
        let is_named = self.threads || thread.process == NO_CALL;
        for name in [thread.process, thread.name].into_iter().filter(|name| is_named && !name.is_empty()) {
            let name = label(name).into_owned();
            let number = match self.roots.iter().position(|known| *known == name) {
                Some(number) => number,
                None => {
                    self.roots.push(name);
                    self.roots.len() - 1
                }
            };
            self.open(Label::Root(number as u32), None);
        }
        Ok(())
    }

    fn enter(&mut self, names: &mut FrameNames<'_>, frame: TreeFrame, _: i64, now: i64) -> Result<()> {
        self.advance(now);
        if self.nodes.len() >= self.most_in_memory.0 || names.bytes() >= self.most_in_memory.1 {
            self.begin_again(names)?;
        }
        self.open_frame(names, frame)
    }

    fn leave(&mut self, now: i64) -> Result<()> {
        self.advance(now);
        self.open.pop();
        Ok(())
    }
}

impl<W: Write> Stacks<W> {
    /// Gives the time up to `now` to the stack that is open.
    fn advance(&mut self, now: i64) {
        if let Some((node, Some(_))) = self.open.last() {
            let node = &mut self.nodes[*node as usize];
            node.ns = node.ns.saturating_add(now.abs_diff(self.now));
        }
        self.now = now;
    }

    fn open(&mut self, label: Label, frame: Option<TreeFrame>) {
        let parent = self.open.last().map(|(node, _)| *node);
        let next = self.nodes.len() as u32;
        let node = *self.places.entry((parent, label)).or_insert(next);
        if node == next {
            self.nodes.push(Node { parent, label, ns: 0 });
        }
        self.open.push((node, frame));
    }

    fn open_frame(&mut self, names: &mut FrameNames<'_>, frame: TreeFrame) -> Result<()> {
        let number = names.number(frame, |name| {
            self.labels.push(label(name).into());
            Ok(())
        })?;
        self.open(Label::Frame(number), Some(frame));
        Ok(())
    }

    /// Writes what is known and forgets it, but for the stack that is open.
    fn begin_again(&mut self, names: &mut FrameNames<'_>) -> Result<()> {
        self.write()?;
        let open = std::mem::take(&mut self.open);
        let roots: Vec<Label> = open
            .iter()
            .filter(|(_, frame)| frame.is_none())
            .map(|(node, _)| self.nodes[*node as usize].label)
            .collect();
        self.nodes.clear();
        self.places.clear();
        self.first_label += self.labels.len() as u32;
        self.labels.clear();
        names.forget();
        for root in roots {
            self.open(root, None);
        }
        for frame in open.into_iter().filter_map(|(_, frame)| frame) {
            self.open_frame(names, frame)?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let mut stack = Vec::new();
        for node in self.nodes.iter().filter(|node| node.ns > 0) {
            stack.clear();
            let mut at = Some(node);
            while let Some(node) = at {
                stack.push(match node.label {
                    Label::Root(number) => self.roots[number as usize].as_str(),
                    Label::Frame(number) => &self.labels[(number - self.first_label) as usize],
                });
                at = node.parent.map(|parent| &self.nodes[parent as usize]);
            }
            for (place, name) in stack.iter().rev().enumerate() {
                self.out.write_all(if place == 0 { b"" } else { b";" })?;
                self.out.write_all(name.as_bytes())?;
            }
            writeln!(self.out, " {}", node.ns)?;
        }
        Ok(())
    }
}

/// A name as a line has it: without what separates frames and lines, or could disturb a terminal. Tools take a number behind a blank at the
/// end of a stack for a second count, so that such a blank becomes one that does not break.
fn label(name: &str) -> Cow<'_, str> {
    let name = name.trim();
    let is_plain = name.bytes().all(|byte| (0x20..0x7f).contains(&byte) && byte != b';');
    let mut label = match is_plain {
        true => Cow::Borrowed(name),
        false => Cow::Owned(escape(name).replace(';', ":")),
    };
    if let Some((before, last)) = label.rsplit_once(' ')
        && last.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        label = Cow::Owned(format!("{before}\u{a0}{last}"));
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_be_taken_for_more_than_a_name() {
        for (name, shown) in [
            ("gemm<int, 4>", "gemm<int, 4>"),
            (" a;b\n", "a:b"),
            ("step 3", "step\u{a0}3"),
            ("step 3 4.5", "step 3\u{a0}4.5"),
            ("step 3a", "step 3a"),
            ("a\n9", "a\\n9"),
            ("\u{1b}[2J", "\\x1b[2J"),
        ] {
            assert_eq!(label(name), shown);
        }
    }
}
