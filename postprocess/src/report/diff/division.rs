//! The division of a run into the iterations of a marker, or into blocks where no marker repeats.

use anyhow::Result;
use rustc_hash::FxHashMap;

use super::markers::{family, outermost};
use super::source::{ComparedCall, ComparedTrace, ThreadKey};
use crate::pass::sorted::Sorter;

/// Blocks of a run that has no iterations.
pub const BLOCKS: usize = 20;

/// How many ranges are looked at for one that is open at a time: those of so many threads at once are told apart.
const AT_ONCE: usize = 64;

/// A part of a run, of all files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunPart {
    pub(super) file: usize,
    pub(super) role: Role,
    /// How long the marker was open, ns.
    pub(super) wall_ns: u64,
}

/// What becomes of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It is compared with others like it.
    Counts,
    /// It was skipped, as it was asked for.
    Skipped,
    /// What is in no iteration.
    Outside,
}

/// Which part of its file something is in.
pub(super) enum Division {
    Iterations(Iterations),
    /// Where blocks after the first begin, and the number of the first.
    Blocks(Vec<i64>, u32),
}

/// The iterations of one file.
pub(super) struct Iterations {
    by_thread: FxHashMap<ThreadKey, Ranges>,
    by_process: FxHashMap<[i64; 2], Ranges>,
    all: Ranges,
    outside: u32,
}

/// Ranges in the order of their starts.
#[derive(Default)]
struct Ranges {
    /// Start, end, number of the part.
    ranges: Vec<(i64, i64, u32)>,
}

impl Ranges {
    /// The range that is open at a time; of several the one that began last.
    fn at(&self, time: i64) -> Option<u32> {
        let begun = self.ranges.partition_point(|(start, ..)| *start <= time);
        let open = self.ranges[..begun].iter().rev().take(AT_ONCE).find(|(_, end, _)| *end >= time);
        open.map(|(_, _, part)| *part)
    }
}

impl Division {
    /// The iterations of `marker` in a file, of which the first `skip` of each thread are skipped. Adds them to `parts`.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn of_marker(
        (source, file): (&ComparedTrace<'_>, usize),
        marker: &str,
        skip: usize,
        parts: &mut Vec<RunPart>,
    ) -> Result<Division> {
        let outside = parts.len() as u32;
        parts.push(RunPart { file, role: Role::Outside, wall_ns: 0 });
        let mut by_thread: FxHashMap<ThreadKey, Ranges> = FxHashMap::default();
        let mut by_process: FxHashMap<[i64; 2], Ranges> = FxHashMap::default();
        let mut all = Ranges::default();
        let is_asked = |call: &ComparedCall| {
            let text = call.text.as_deref()?;
            (family(text) == marker).then_some(0)
        };
        outermost(source, is_asked, |thread, (start, end), _| {
            let range = (start, end, parts.len() as u32);
            let of_thread = by_thread.entry(thread).or_default();
            let role = if of_thread.ranges.len() < skip { Role::Skipped } else { Role::Counts };
            parts.push(RunPart { file, role, wall_ns: end.abs_diff(start) });
            of_thread.ranges.push(range);
            by_process.entry([thread[0], thread[1]]).or_default().ranges.push(range);
            all.ranges.push(range);
        })?;
        by_process.values_mut().for_each(|ranges| ranges.ranges.sort_unstable());
        all.ranges.sort_unstable();
        Ok(Division::Iterations(Iterations { by_thread, by_process, all, outside }))
    }

    /// Blocks with equal numbers of operations, or of calls where there are no operations; `starts` are theirs. Adds them to `parts`.
    ///
    /// # Errors
    /// When a temporary file cannot be read.
    pub(super) fn of_blocks(
        file: usize,
        (starts, count): (Sorter<i64>, u64),
        parts: &mut Vec<RunPart>,
    ) -> Result<Division> {
        let first = parts.len() as u32;
        let blocks = (count as usize).clamp(1, BLOCKS);
        parts.extend(vec![RunPart { file, role: Role::Counts, wall_ns: 0 }; blocks]);
        let (mut edges, mut read) = (Vec::new(), 0);
        let mut starts = starts.sorted()?;
        while let Some(start) = starts.next()? {
            if edges.len() + 1 < blocks && read >= count * (edges.len() as u64 + 1) / blocks as u64 {
                edges.push(start);
            }
            read += 1;
        }
        Ok(Division::Blocks(edges, first))
    }

    /// The part of a call.
    pub(super) fn of_call(&self, thread: ThreadKey, start: i64) -> u32 {
        match self {
            Division::Blocks(..) => self.at(start),
            Division::Iterations(Iterations { by_thread, by_process, outside, .. }) => {
                // A thread with iterations of its own is in these; others work for those of their process.
                let ranges = by_thread.get(&thread).or_else(|| by_process.get(&[thread[0], thread[1]]));
                ranges.and_then(|ranges| ranges.at(start)).unwrap_or(*outside)
            }
        }
    }

    /// The part of what no call is known of, by the time when it began.
    pub(super) fn at(&self, start: i64) -> u32 {
        match self {
            Division::Blocks(edges, first) => first + edges.partition_point(|edge| *edge <= start) as u32,
            Division::Iterations(iterations) => iterations.all.at(start).unwrap_or(iterations.outside),
        }
    }

    /// Whether operations go by the calls that caused them.
    pub(super) fn goes_by_calls(&self) -> bool {
        matches!(self, Division::Iterations(_))
    }
}
