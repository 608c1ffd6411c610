//! The GPU time of markers, by their texts.

use std::hash::RandomState;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rpd_schema::Version;
use rusqlite::Connection;
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::ranges::{OpenRange, Ranges, walk};
use crate::pass::parts::{Key, KeySums, Parts, Summand};
use crate::region::Selected;
use crate::report::gpu_time::LeftOut;

/// GPU time of markers of one text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Pod, Zeroable)]
#[repr(C)]
pub struct MarkerGpuTime {
    /// Of what was launched in them, ns; in one inside another of the same text once.
    pub gpu_ns: u64,
    /// The part of that which was launched in no range inside, ns.
    pub gpu_own_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct TextTime {
    text: Key,
    time: MarkerGpuTime,
}

impl Summand for TextTime {
    fn key(&self) -> Key {
        self.text
    }

    fn add(&mut self, more: &TextTime) {
        self.time.gpu_ns += more.time.gpu_ns;
        self.time.gpu_own_ns += more.time.gpu_own_ns;
    }
}

/// The times, in the order of the texts' keys.
pub(in crate::report) struct GpuTimes(KeySums<TextTime>);

impl GpuTimes {
    /// Adds up a part of a trace, and says what could not be counted.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub(in crate::report) fn of(
        trace: (&Connection, Version),
        selected: &Selected,
        hasher: &RandomState,
    ) -> Result<(GpuTimes, LeftOut)> {
        let mut times = ByText { open: FxHashMap::default(), parts: Parts::new() };
        let walked = walk(trace, selected, (true, hasher), &mut times)?;
        Ok((GpuTimes(times.parts.sums()?), walked.left_out))
    }

    /// That of a text. Keys that are asked for become larger.
    ///
    /// # Errors
    /// When a temporary file cannot be read.
    pub(in crate::report) fn at(&mut self, text: Key) -> Result<MarkerGpuTime> {
        Ok(self.0.at(text)?.map(|found| found.time).unwrap_or_default())
    }
}

struct ByText {
    /// How many ranges of a text are open.
    open: FxHashMap<Key, usize>,
    parts: Parts<TextTime>,
}

impl Ranges for ByText {
    fn begin(&mut self, range: &OpenRange) {
        *self.open.entry(range.key).or_default() += 1;
    }

    fn end(&mut self, range: &OpenRange, _: Option<&OpenRange>) -> Result<()> {
        let around = self.open.get(&range.key).map_or(0, |open| open - 1);
        match around {
            0 => self.open.remove(&range.key),
            _ => self.open.insert(range.key, around),
        };
        let gpu_ns = if around == 0 { range.all().gpu_ns } else { 0 };
        self.parts
            .add(TextTime { text: range.key, time: MarkerGpuTime { gpu_ns, gpu_own_ns: range.own.gpu_ns } })
    }
}
