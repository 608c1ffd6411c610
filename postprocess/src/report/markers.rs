//! Ranges of markers as a tree: how often, and how much time of the CPU and the GPU inside of each, with and without those inside it.
//!
//! CPU time is that of the thread that pushed the range. Where two ranges overlap without one inside the other, the time in which both
//! are open is that of the later one. GPU time belongs to the innermost range that is open on the thread of the launching call when that
//! call begins. An operation counts with the time in which none ran on its GPU that began before it, so that the GPU times of all ranges
//! and of what is in none add up to the time in which the GPUs were busy.
//!
//! The own times of a range and of all below it add up to its inclusive time. What is read is sorted on disk: memory grows neither with the
//! number of ranges nor with that of their texts, and with that of paths by four bytes. Where many texts differ in numbers alone, as
//! those of the steps of a training run, they are one.

mod gpu_times;
mod ranges;
mod texts;
mod tree;

use std::hash::RandomState;
use std::sync::Arc;

use anyhow::Result;
use rpd_schema::Version;
use rusqlite::Connection;
use serde::{Serialize, Serializer};

pub(super) use self::gpu_times::GpuTimes;
pub use self::gpu_times::MarkerGpuTime;
use self::ranges::walk;
use self::texts::RangeTexts;
pub use self::tree::MarkerNodes;
use self::tree::PathAdder;
use super::gpu_time::LeftOut;
use crate::pass::parts::Key;
use crate::region::Selected;

/// The tree of ranges, and what could not be counted.
pub struct Markers<'trace> {
    /// How they are read.
    pub nodes: MarkerNodes<'trace>,
    /// From the first start to the last end of markers and operations, ns.
    pub span_ns: u64,
    /// Threads that have markers.
    pub threads: u64,
    /// GPUs that have operations.
    pub gpus: u64,
    /// Markers with impossible times.
    pub impossible: u64,
    /// Ranges that end inside of one that began later on their thread: from there on the time is the later one's.
    pub cut: u64,
    /// Texts that became one with others because they differ in numbers alone.
    pub alike: u64,
    /// Operations that count nowhere.
    pub left_out: LeftOut,
}

/// Ranges with one path: their own text, and those of the ranges around them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MarkerNode {
    /// Its place among all, from 0.
    pub node: usize,
    /// The node around it.
    pub parent: Option<usize>,
    /// How many are around it.
    pub depth: usize,
    /// Its text, in which # may be any number; none of what is in no marker.
    #[serde(serialize_with = "text")]
    pub name: Option<Arc<str>>,
    /// How many ranges.
    pub ranges: u64,
    /// Operations launched in them.
    pub operations: u64,
    /// Time in them on their threads, ns.
    pub cpu_ns: u64,
    /// The part of that which is in no range inside.
    pub cpu_own_ns: u64,
    /// Share of `cpu_ns` in the time of all threads that have markers, percent.
    pub cpu_percent: f64,
    /// GPU time of what was launched in them, ns.
    pub gpu_ns: u64,
    /// The part of that which was launched in no range inside.
    pub gpu_own_ns: u64,
    /// Share of `gpu_ns` in the time of all GPUs, percent.
    pub gpu_percent: f64,
}

#[allow(clippy::ref_option)] // serde's way
fn text<S: Serializer>(text: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    text.as_deref().serialize(serializer)
}

impl<'trace> Markers<'trace> {
    /// Reads the markers of a part of a trace, and the operations of it; unless texts are `exact`, PyTorch's operators have their names alone.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub fn of(
        trace: (&'trace Connection, Version),
        selected: &Selected,
        exact: bool,
    ) -> Result<Markers<'trace>> {
        Markers::with_launches(trace, selected, exact, |_, _| Ok(()))
    }

    /// The same; `launched` is told of each operation, by its id, in which path it was launched, [`ROOT`](ranges::ROOT) for none.
    ///
    /// # Errors
    /// As [`Markers::of`], and those of `launched`.
    pub(super) fn with_launches(
        trace: (&'trace Connection, Version),
        selected: &Selected,
        exact: bool,
        launched: impl FnMut(i64, Key) -> Result<()>,
    ) -> Result<Markers<'trace>> {
        let mut growing = PathAdder::new(launched);
        let walked = walk(trace, selected, (exact, &RandomState::new()), &mut growing)?;
        Ok(Markers {
            nodes: growing.nodes(RangeTexts::of(trace, exact)?, &walked)?,
            span_ns: walked.span_ns,
            threads: walked.threads,
            gpus: walked.gpus,
            impossible: walked.impossible,
            cut: walked.cut,
            alike: walked.alike,
            left_out: walked.left_out,
        })
    }
}
