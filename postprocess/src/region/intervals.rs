//! Ranges of time that markers cover.

use anyhow::Result;
use rpd_schema::Processes;
use rusqlite::{Connection, OptionalExtension};
use rustc_hash::FxHashMap;

use crate::trace::span::Span;

/// Ranges that neither touch nor overlap, in order; both ends belong to a range.
#[derive(Debug, Default)]
pub(crate) struct Intervals(Vec<(i64, i64)>);

impl Intervals {
    fn of(mut ranges: Vec<(i64, i64)>) -> Intervals {
        ranges.retain(|(start, end)| start <= end);
        ranges.sort_unstable();
        let mut merged: Vec<(i64, i64)> = Vec::with_capacity(ranges.len());
        for (start, end) in ranges {
            match merged.last_mut().filter(|(_, last)| start <= *last) {
                Some((_, last)) => *last = end.max(*last),
                None => merged.push((start, end)),
            }
        }
        Intervals(merged)
    }

    /// Whether a time is in one of them.
    pub(crate) fn has(&self, time: i64) -> bool {
        let behind = self.0.partition_point(|(start, _)| *start <= time);
        behind > 0 && time <= self.0[behind - 1].1
    }

    fn hull(&self) -> Option<(i64, i64)> {
        Some((self.0.first()?.0, self.0.last()?.1))
    }
}

/// The occurrences of a marker, by the process that pushed it.
#[derive(Debug)]
pub(crate) struct MarkerRanges {
    /// By the process ([`Processes`]) and its id.
    by_process: FxHashMap<(i64, i64), Intervals>,
    /// Of all processes.
    all: Intervals,
}

impl MarkerRanges {
    /// The ranges of these rows of rocpd_api.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn of(
        trace: &Connection,
        processes: &Processes,
        markers: &[(i64, Span)],
    ) -> Result<MarkerRanges> {
        let mut pid = trace.prepare("SELECT pid FROM rocpd_api WHERE id = ?1 AND typeof(pid) = 'integer'")?;
        let mut by_process: FxHashMap<(i64, i64), Vec<(i64, i64)>> = FxHashMap::default();
        for (id, span) in markers {
            if let Some(pid) = pid.query_row([id], |row| row.get(0)).optional()? {
                let ranges = by_process.entry((processes.of_row(*id), pid)).or_default();
                ranges.push((span.start_ns, span.end_ns));
            }
        }
        let all = Intervals::of(by_process.values().flatten().copied().collect());
        let by_process =
            by_process.into_iter().map(|(process, ranges)| (process, Intervals::of(ranges))).collect();
        Ok(MarkerRanges { by_process, all })
    }

    /// Whether a process had such a marker open at a time.
    pub(crate) fn has(&self, process: (i64, i64), time: i64) -> bool {
        self.by_process.get(&process).is_some_and(|ranges| ranges.has(time))
    }

    /// The same of any process.
    pub(crate) fn has_any(&self, time: i64) -> bool {
        self.all.has(time)
    }

    /// From the first beginning to the last end.
    pub(crate) fn hull(&self) -> Option<(i64, i64)> {
        self.all.hull()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_or_overlap_are_one() {
        let intervals = Intervals::of(vec![(50, 60), (10, 20), (20, 30), (15, 17), (9, 8), (40, 40)]);
        assert_eq!(intervals.0, [(10, 30), (40, 40), (50, 60)]);
        let inside: Vec<i64> = (0..70).filter(|time| intervals.has(*time)).collect();
        let expected: Vec<i64> = (10..=30).chain([40]).chain(50..=60).collect();
        assert_eq!(inside, expected);
        assert!(!Intervals::default().has(0));
        assert_eq!((intervals.hull(), Intervals::default().hull()), (Some((10, 60)), None));
    }
}
