//! Numbers about the events of some rows in a time.

use serde::Serialize;

use crate::timeline::{Shown, Timeline};

/// Names in an answer.
const MOST_NAMES: usize = 500;

/// Durations of events, ns. Those of events that reach out of the time count whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Durations {
    /// How many events.
    pub count: u64,
    /// Their sum.
    pub total_ns: u64,
    /// Their mean.
    pub mean_ns: f64,
    /// What half of them do not exceed.
    pub p50_ns: u64,
    /// What 99 of 100 do not exceed.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Durations {
    /// Those of durations in ascending order.
    fn of(sorted: &[u64]) -> Durations {
        let count = sorted.len();
        let Some(max) = sorted.last() else { return Durations::default() };
        let total: u128 = sorted.iter().map(|ns| u128::from(*ns)).sum();
        let rank = |percent: usize| sorted[(count * percent).div_ceil(100).max(1) - 1];
        Durations {
            count: count as u64,
            total_ns: u64::try_from(total).unwrap_or(u64::MAX),
            mean_ns: total as f64 / count as f64,
            p50_ns: rank(50),
            p99_ns: rank(99),
            max_ns: *max,
        }
    }
}

/// Events of one name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OfName {
    /// Number of the name.
    pub name: u32,
    /// Its events.
    #[serde(flatten)]
    pub durations: Durations,
}

/// What is known of a selection.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Statistics {
    /// All events that touch the time.
    #[serde(flatten)]
    pub durations: Durations,
    /// How long any of them runs inside of the time, ns.
    pub busy_ns: u64,
    /// By name, the greatest sums first.
    pub names: Vec<OfName>,
    /// How many names there are.
    pub all_names: u64,
}

/// Statistics of the events of rows that touch the time from `from` to before `to`, ns. Each event counts once.
pub fn statistics(timeline: &Timeline, rows: &[u32], from: u64, to: u64) -> Statistics {
    let mut lanes: Vec<usize> = rows
        .iter()
        .filter_map(|row| match timeline.rows.get(*row as usize)?.shown {
            Shown::Lane(lane) => Some(lane),
            Shown::Busy(_) | Shown::Counter(_) => None,
        })
        .collect();
    lanes.sort_unstable();
    lanes.dedup();
    let columns = &timeline.columns;
    let (mut durations, mut times) = (Vec::new(), Vec::new());
    for lane in lanes {
        let lane = &columns.lanes()[lane];
        for event in columns.within(lane, from, to) {
            let (start, end) = columns.times(event);
            durations.push((columns.name(event), end - start));
            times.push((start.max(from), end.min(to)));
        }
    }
    times.sort_unstable();
    let (mut busy_ns, mut until) = (0, 0);
    for (start, end) in times {
        busy_ns += end.saturating_sub(start.max(until));
        until = until.max(end);
    }
    durations.sort_unstable();
    let mut names: Vec<OfName> = durations
        .chunk_by(|(one, _), (other, _)| one == other)
        .map(|of| {
            let sorted: Vec<u64> = of.iter().map(|(_, ns)| *ns).collect();
            OfName { name: of[0].0, durations: Durations::of(&sorted) }
        })
        .collect();
    names.sort_by_key(|of| (u64::MAX - of.durations.total_ns, of.name));
    let all_names = names.len() as u64;
    names.truncate(MOST_NAMES);
    let mut all: Vec<u64> = durations.into_iter().map(|(_, ns)| ns).collect();
    all.sort_unstable();
    Statistics { durations: Durations::of(&all), busy_ns, names, all_names }
}
