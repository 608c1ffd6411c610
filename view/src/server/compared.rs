//! Two traces on one axis: where the second begins in relation to the first.

use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::gathering::Gathered;
use crate::reading::{GatheredPart, assemble};
use crate::timeline::Timeline;

/// The furthest that one can be shifted: 30 days.
const MOST_NS: i64 = 30 * 86_400_000_000_000;

/// What was read of both traces; nothing where there is one only.
#[derive(Default)]
pub(crate) struct Compared {
    parts: Mutex<Vec<Gathered>>,
}

/// What of both lies at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AlignBy {
    /// Their first events.
    Event,
    /// Their first operations.
    Op,
    /// The marker of a name with this number among them.
    Marker,
    /// What a person says: the second begins so much behind the first.
    Hand,
}

/// How two traces are to lie to each other.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Alignment {
    pub(crate) by: AlignBy,
    /// For a marker: number of its name.
    pub(crate) name: Option<u32>,
    /// Which of these, counted from 1.
    pub(crate) nth: Option<usize>,
    /// ns.
    pub(crate) ns: Option<i64>,
}

impl Compared {
    /// Keeps what was read, and gives its timeline: with the first operations, where both have one, at one time.
    pub(super) fn begin(&self, parts: Vec<Gathered>) -> Result<Timeline> {
        let first_op = |part: &Gathered| {
            let first = part.ops.starts().min();
            first.map(|first| first.saturating_sub(part.first_ns()))
        };
        let shift = match parts.iter().map(first_op).collect::<Option<Vec<i64>>>().as_deref() {
            Some([one, other]) => one.saturating_sub(*other),
            _ => 0,
        };
        let timeline = shifted(&parts, shift.clamp(-MOST_NS, MOST_NS));
        *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = parts;
        timeline
    }

    /// The timeline with the second trace where it is to be.
    pub(super) fn aligned(&self, timeline: &Timeline, alignment: &Alignment) -> Result<Timeline> {
        let shift = alignment.shift(timeline)?;
        if !(-MOST_NS..=MOST_NS).contains(&shift) {
            bail!("the traces would lie more than 30 days apart");
        }
        shifted(&self.parts.lock().unwrap_or_else(PoisonError::into_inner), shift)
    }
}

fn shifted(parts: &[Gathered], shift: i64) -> Result<Timeline> {
    let shifts = [shift.min(0).unsigned_abs(), shift.max(0).unsigned_abs()];
    let parts =
        parts.iter().cloned().zip(shifts).map(|(gathered, shift_ns)| GatheredPart { gathered, shift_ns });
    assemble(parts.collect()).context("the traces cannot be compared")
}

impl Alignment {
    /// From the begin of the first trace to that of the second, ns.
    fn shift(&self, timeline: &Timeline) -> Result<i64> {
        if self.by == AlignBy::Hand {
            return self.ns.context("how far is not said");
        }
        let [one, other] = &timeline.sources[..] else { bail!("there is one trace only") };
        let at = |source: usize| -> Result<i64> {
            let letter = if source == 0 { 'A' } else { 'B' };
            let mut starts: Vec<u64> = Vec::new();
            for subtrack in timeline.columns.subtracks() {
                if usize::from(timeline.source_of_track[subtrack.track as usize]) != source {
                    continue;
                }
                let is_op = subtrack.track >= timeline.queues_from;
                let events = subtrack.events.clone();
                match self.by {
                    AlignBy::Op if !is_op => (),
                    AlignBy::Marker => {
                        let of_name = events.filter(|event| Some(timeline.columns.name(*event)) == self.name);
                        starts.extend(of_name.map(|event| timeline.columns.times(event).0));
                    }
                    AlignBy::Op | AlignBy::Event | AlignBy::Hand => starts
                        .extend(events.start.lt(&events.end).then(|| timeline.columns.times(events.start).0)),
                }
            }
            starts.sort_unstable();
            let nth = if self.by == AlignBy::Marker { self.nth.unwrap_or(1) } else { 1 };
            let start = nth.checked_sub(1).and_then(|nth| starts.get(nth));
            let start = start.with_context(|| match self.by {
                AlignBy::Marker => format!("trace {letter} has {} of these", starts.len()),
                _ => format!("trace {letter} has none"),
            })?;
            Ok(i64::try_from(*start)?)
        };
        let now = i64::try_from(other.shift_ns)?.saturating_sub(i64::try_from(one.shift_ns)?);
        Ok(now.saturating_add(at(0)?.saturating_sub(at(1)?)))
    }
}
