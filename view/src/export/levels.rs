//! A page without single events: of each row it has the runs of one level, and makes those of coarser levels itself.
//!
//! Columns, row by row: `gap` from the end of the run before, `length`, `count` of events that begin in it. Of rows of events also the share
//! that is `busy` in 255ths, a byte each; `name`, which is 0 for the event of the run before and otherwise one more than the number of its
//! name; and of each new event the `duration`, ns. Of counters the least and the greatest `value`, f32 each.

use anyhow::{Result, bail};
use rpd_postprocess::text::counted;
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::{ANSWERS, Column, StoredTrace, file_of, megabytes, stored_trace};
use crate::counters::Band;
use crate::pyramid::{Run, TOP_LEVEL};
use crate::tiles::share;
use crate::timeline::Timeline;

/// All rows together have at most so many runs: a browser opens such a page at once.
const MOST_RUNS: usize = 800_000;

/// They have at most half as many runs as there are events and values, for the page to be smaller than one with events; or this many.
const FEW_RUNS: usize = 65_536;

/// What a row shows.
enum Held {
    Runs(Vec<Run>),
    Bands(Vec<Band>),
}

impl Held {
    fn len(&self) -> usize {
        match self {
            Held::Runs(runs) => runs.len(),
            Held::Bands(bands) => bands.len(),
        }
    }

    fn stored(&self) -> StoredRow {
        match self {
            Held::Runs(runs) => StoredRow::Runs(runs.len()),
            Held::Bands(bands) => StoredRow::Bands(bands.len()),
        }
    }
}

/// How many a row has.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum StoredRow {
    Runs(usize),
    Bands(usize),
}

#[derive(Serialize)]
struct Stored<'a> {
    trace: StoredTrace<'a>,
    names: Vec<(&'a str, u8)>,
    level: u8,
    rows: Vec<StoredRow>,
}

/// The finest level of a timeline that a page has room for.
pub struct Levels<'a> {
    timeline: &'a Timeline,
    level: u8,
    rows: Vec<Held>,
}

impl Levels<'_> {
    /// That of a timeline of one trace.
    pub fn of(timeline: &Timeline) -> Levels<'_> {
        let rows = 0..timeline.rows.len() as u32;
        let values = rows.filter_map(|row| timeline.counter(row)).map(|counter| counter.steps.len());
        let most = ((timeline.columns.len() + values.sum::<usize>()) / 2).clamp(FEW_RUNS, MOST_RUNS);
        let mut found = Levels { timeline, level: TOP_LEVEL, rows: held(timeline, TOP_LEVEL) };
        while found.level > 0 {
            let finer = held(timeline, found.level - 2);
            if finer.iter().map(Held::len).sum::<usize>() > most {
                break;
            }
            (found.level, found.rows) = (found.level - 2, finer);
        }
        found
    }

    /// Time of a bucket, ns.
    pub fn bucket_ns(&self) -> u64 {
        1 << self.level
    }

    /// The page, of a coarser level where names of many kinds make it larger than `most` bytes.
    ///
    /// # Errors
    /// When no level has room, or nothing can be written.
    pub fn page(&mut self, most: u64) -> Result<Vec<u8>> {
        let mut page = self.written()?;
        while page.len() as u64 > most {
            if self.level == TOP_LEVEL {
                bail!(
                    "the smallest page would have {} MB, more than the {} MB that --max-mb allows; raise --max-mb",
                    megabytes(page.len() as u64),
                    megabytes(most)
                );
            }
            self.level += 2;
            self.rows = held(self.timeline, self.level);
            page = self.written()?;
        }
        Ok(page)
    }

    fn written(&self) -> Result<Vec<u8>> {
        let mut names = Names { timeline: self.timeline, numbers: FxHashMap::default(), used: Vec::new() };
        let columns = self.columns(&mut names)?;
        let stored = Stored {
            trace: stored_trace(self.timeline, names.used.len())?,
            names: names.used,
            level: self.level,
            rows: self.rows.iter().map(Held::stored).collect(),
        };
        file_of(&stored, columns, ANSWERS[1])
    }

    /// What is in the page, for people.
    pub fn contents(&self) -> String {
        let facts = &self.timeline.sources[0].facts;
        let events = counted(facts.calls + facts.ops, "event", "events");
        format!(
            "{events} as levels, which are buckets of {} ns and more, and no single events",
            self.bucket_ns()
        )
    }

    fn columns(&self, names: &mut Names<'_>) -> Result<Vec<Column>> {
        let [mut gap, mut length, mut count, mut busy, mut name, mut duration, mut value] =
            ["gap", "length", "count", "busy", "name", "duration", "value"].map(Column::new);
        for row in &self.rows {
            let mut end = 0;
            let mut add = |first: u64, buckets: u64, begin: u32| -> Result<()> {
                gap.add(first - end)?;
                length.add(buckets)?;
                count.add(u64::from(begin))?;
                end = first + buckets;
                Ok(())
            };
            match row {
                Held::Runs(runs) => {
                    let mut before = None;
                    for run in runs {
                        add(run.first, run.length, run.count)?;
                        busy.add_bytes(&[share(run, self.level)])?;
                        let is_new = before.replace(run.event) != Some(run.event);
                        name.add(if is_new { names.number(run.event) + 1 } else { 0 })?;
                        if is_new {
                            duration.add(run.duration)?;
                        }
                    }
                }
                Held::Bands(bands) => {
                    for band in bands {
                        add(band.first, band.length, band.count)?;
                        value.add_bytes(&(band.least as f32).to_le_bytes())?;
                        value.add_bytes(&(band.greatest as f32).to_le_bytes())?;
                    }
                }
            }
        }
        Ok(vec![gap, length, count, busy, name, duration, value])
    }
}

/// What the rows of a timeline show at a level.
fn held(timeline: &Timeline, level: u8) -> Vec<Held> {
    let buckets = 0..(timeline.span_ns >> level) + 1;
    let row = |row| match timeline.counter(row) {
        Some(counter) => Held::Bands(counter.bands(level, buckets.clone())),
        None => Held::Runs(timeline.runs(row, level, buckets.clone())),
    };
    (0..timeline.rows.len() as u32).map(row).collect()
}

/// The names that the page has: those that are seen.
struct Names<'a> {
    timeline: &'a Timeline,
    numbers: FxHashMap<u32, u64>,
    used: Vec<(&'a str, u8)>,
}

impl Names<'_> {
    /// The number in the page of an event's name.
    fn number(&mut self, event: u32) -> u64 {
        *self.numbers.entry(self.timeline.columns.name(event)).or_insert_with(|| {
            let name = self.timeline.name(event);
            self.used.push((&*name.text, name.kind as u8));
            self.used.len() as u64 - 1
        })
    }
}
