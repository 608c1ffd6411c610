//! Differences between two traces, by name.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::statistics::{Durations, Selection, durations_of_names};
use crate::timeline::Timeline;

/// Names in an answer.
const MOST_NAMES: usize = 500;

/// The events of one name in both traces.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Delta {
    /// Number of the name.
    pub name: u32,
    /// Those of the first trace; none where it has no such event.
    pub one: Option<Durations>,
    /// Those of the second.
    pub other: Option<Durations>,
}

/// What differs in a time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Deltas {
    /// All events of the first trace.
    pub one: Durations,
    /// All events of the second.
    pub other: Durations,
    /// By name, those first whose total differs most.
    pub names: Vec<Delta>,
    /// How many names there are.
    pub all_names: u64,
}

/// What differs between the first two traces of a timeline, of the events that are selected; what rows are selected says nothing here.
pub fn deltas(timeline: &Timeline, selection: &Selection<'_>) -> Deltas {
    let of = |source| {
        durations_of_names(timeline, &Selection { rows: None, source: Some(source), ..selection.clone() })
    };
    let ((one, of_one), (other, of_other)) = (of(0), of(1));
    let mut names: FxHashMap<u32, Delta> = FxHashMap::default();
    let empty = |name| Delta { name, one: None, other: None };
    for of in of_one {
        names.entry(of.name).or_insert_with(|| empty(of.name)).one = Some(of.durations);
    }
    for of in of_other {
        names.entry(of.name).or_insert_with(|| empty(of.name)).other = Some(of.durations);
    }
    let mut names: Vec<Delta> = names.into_values().collect();
    let total = |of: &Option<Durations>| of.as_ref().map_or(0, |of| of.total_ns);
    let text = |delta: &Delta| &timeline.names[delta.name as usize].text;
    names.sort_by(|a, b| {
        let differ = |delta: &Delta| total(&delta.one).abs_diff(total(&delta.other));
        differ(b).cmp(&differ(a)).then_with(|| text(a).cmp(text(b))).then(a.name.cmp(&b.name))
    });
    let all_names = names.len() as u64;
    names.truncate(MOST_NAMES);
    Deltas { one, other, names, all_names }
}
