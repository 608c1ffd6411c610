//! Sorting more records than fit into memory: sorted runs in a temporary file, merged as they are read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::vec;

use anyhow::{Context, Result};
use bytemuck::{NoUninit, Pod};

/// Memory of a run and, later, of all runs that are being read, bytes.
const MEMORY: usize = 12 << 20;

/// Read at once of one run, at most and at least, bytes.
const READ: (usize, usize) = (256 << 10, 4 << 10);

/// Records that are not sorted yet.
pub(crate) struct Sorter<T> {
    run: Vec<T>,
    runs: Vec<Run>,
    file: Option<File>,
}

/// A sorted part of the file, bytes.
#[derive(Clone, Copy)]
struct Run {
    next: u64,
    end: u64,
}

impl<T: Pod + Ord> Sorter<T> {
    /// No records yet.
    pub(crate) fn new() -> Sorter<T> {
        Sorter { run: Vec::new(), runs: Vec::new(), file: None }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// When the temporary file cannot be made or written.
    pub(crate) fn push(&mut self, record: T) -> Result<()> {
        self.run.push(record);
        if self.run.len() * size_of::<T>() >= MEMORY { self.write_run() } else { Ok(()) }
    }

    fn write_run(&mut self) -> Result<()> {
        self.run.sort_unstable();
        let bytes: &[u8] = bytemuck::cast_slice(&self.run);
        let begin = self.runs.last().map_or(0, |run| run.end);
        let written = match &mut self.file {
            Some(file) => file.write_all(bytes),
            none => tempfile::tempfile().and_then(|file| none.insert(file).write_all(bytes)),
        };
        written.with_context(|| {
            format!(
                "cannot write a temporary file in {} (TMPDIR names another place)",
                std::env::temp_dir().display()
            )
        })?;
        self.runs.push(Run { next: begin, end: begin + bytes.len() as u64 });
        self.run.clear();
        Ok(())
    }

    /// The records in order.
    ///
    /// # Errors
    /// When the temporary file cannot be written or read.
    pub(crate) fn sorted(mut self) -> Result<Sorted<T>> {
        self.sort()?;
        match self.file {
            Some(file) => Sorted::merging(&Arc::new(file), &self.runs),
            None => Ok(Sorted { memory: self.run.into_iter(), merge: None }),
        }
    }

    /// The records in order, to be read twice, at once or one after the other.
    ///
    /// # Errors
    /// As [`Sorter::sorted`].
    pub(crate) fn sorted_twice(mut self) -> Result<(Sorted<T>, Sorted<T>)> {
        self.sort()?;
        let Some(file) = self.file.map(Arc::new) else {
            let memory = self.run.into_iter();
            return Ok((Sorted { memory: memory.clone(), merge: None }, Sorted { memory, merge: None }));
        };
        drop(self.run);
        Ok((Sorted::merging(&file, &self.runs)?, Sorted::merging(&file, &self.runs)?))
    }

    fn sort(&mut self) -> Result<()> {
        if self.file.is_some() {
            self.write_run()?;
            self.run = Vec::new();
        } else {
            self.run.sort_unstable();
        }
        Ok(())
    }
}

/// Sorted records, from the smallest to the largest.
pub(crate) struct Sorted<T> {
    memory: vec::IntoIter<T>,
    merge: Option<MergedRuns<T>>,
}

struct MergedRuns<T> {
    file: Arc<File>,
    sources: Vec<RunReader<T>>,
    heads: BinaryHeap<Reverse<(T, usize)>>,
}

struct RunReader<T> {
    run: Run,
    read: Vec<T>,
    at: usize,
    room: usize,
}

impl<T: Pod + Ord> Sorted<T> {
    /// Those of sorted parts of a file.
    fn merging(file: &Arc<File>, runs: &[Run]) -> Result<Sorted<T>> {
        let room = (MEMORY / runs.len()).clamp(READ.1, READ.0) / size_of::<T>();
        let mut merge = MergedRuns { file: Arc::clone(file), sources: Vec::new(), heads: BinaryHeap::new() };
        for (at, run) in runs.iter().enumerate() {
            merge.sources.push(RunReader { run: *run, read: Vec::new(), at: 0, room: room.max(1) });
            if let Some(first) = merge.sources[at].next(&merge.file)? {
                merge.heads.push(Reverse((first, at)));
            }
        }
        Ok(Sorted { memory: Vec::new().into_iter(), merge: Some(merge) })
    }

    /// The next record.
    ///
    /// # Errors
    /// When the temporary file cannot be read.
    pub(crate) fn next(&mut self) -> Result<Option<T>> {
        let Some(merge) = &mut self.merge else { return Ok(self.memory.next()) };
        let Some(mut head) = merge.heads.peek_mut() else { return Ok(None) };
        let Reverse((record, source)) = *head;
        match merge.sources[source].next(&merge.file)? {
            Some(next) => *head = Reverse((next, source)),
            None => {
                PeekMut::pop(head);
            }
        }
        Ok(Some(record))
    }

    /// Takes `next` and, of the records behind it, those that belong to it, `most` in all; `next` is the first one behind them then.
    ///
    /// # Errors
    /// As [`Sorted::next`].
    pub(crate) fn group(
        &mut self,
        next: &mut Option<T>,
        most: usize,
        belongs: impl Fn(&T) -> bool,
    ) -> Result<Vec<T>> {
        let mut group = Vec::new();
        while let Some(record) = next.filter(|record| group.is_empty() || belongs(record))
            && group.len() < most
        {
            group.push(record);
            *next = self.next()?;
        }
        Ok(group)
    }
}

impl<T: Pod + NoUninit> RunReader<T> {
    fn next(&mut self, file: &File) -> Result<Option<T>> {
        if self.at == self.read.len() {
            let left = (self.run.end - self.run.next) as usize / size_of::<T>();
            self.read.resize(left.min(self.room), T::zeroed());
            self.at = 0;
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.read);
            file.read_exact_at(bytes, self.run.next).context("cannot read a temporary file")?;
            self.run.next += bytes.len() as u64;
        }
        let record = self.read.get(self.at).copied();
        self.at += 1;
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorter(records: &[[i64; 2]]) -> Sorter<[i64; 2]> {
        let mut sorter = Sorter::new();
        for record in records {
            sorter.push(*record).unwrap();
        }
        sorter
    }

    fn all(mut sorted: Sorted<[i64; 2]>) -> Vec<[i64; 2]> {
        std::iter::from_fn(|| sorted.next().unwrap()).collect()
    }

    #[test]
    fn what_fits_into_memory_and_what_does_not_come_out_in_order() {
        let per_run = MEMORY / size_of::<[i64; 2]>();
        for count in [0, 1, 1000, per_run - 1, per_run, per_run + 1, 3 * per_run + 17] {
            let records: Vec<[i64; 2]> = (0..count as i64)
                .map(|n| [n.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed()) >> 40, n])
                .collect();
            let mut expected = records.clone();
            expected.sort_unstable();
            assert!(all(sorter(&records).sorted().unwrap()) == expected, "{count}");
            let (mut one, other) = sorter(&records).sorted_twice().unwrap();
            assert_eq!(one.next().unwrap(), expected.first().copied(), "{count}");
            assert!(all(other) == expected, "{count}");
            assert!(all(one) == expected.get(1..).unwrap_or_default(), "{count}");
        }
    }
}
