//! Numbers about the events of some rows in a time.

use serde::{Deserialize, Serialize};

use crate::columns::Subtrack;
use crate::names::EventKind;
use crate::timeline::{Row, Timeline};

/// Events of a list.
const MOST_EVENTS: usize = 10_000;

/// Bins of a histogram begin at 1, 2 and 5 times these, ns: up to 500 s.
const STEPS: [u64; 12] = {
    let mut steps = [1; 12];
    let mut at = 1;
    while at < steps.len() {
        steps[at] = steps[at - 1] * 10;
        at += 1;
    }
    steps
};

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

/// Events of a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HistogramBin {
    /// The shortest that counts, ns.
    pub from_ns: u64,
    /// The shortest that does not count any more, ns; none of the last bin.
    pub to_ns: Option<u64>,
    /// How many.
    pub count: u64,
}

/// The bins of durations in ascending order.
fn histogram(sorted: &[u64]) -> Vec<HistogramBin> {
    let below = |ns: u64| sorted.partition_point(|duration| *duration < ns);
    let edges = STEPS.iter().flat_map(|power| [1, 2, 5].map(|step| step * power));
    let edges: Vec<u64> = std::iter::once(0).chain(edges).collect();
    let bins = edges.iter().enumerate().map(|(at, from_ns)| {
        let to_ns = edges.get(at + 1).copied();
        let count = (to_ns.map_or(sorted.len(), below) - below(*from_ns)) as u64;
        HistogramBin { from_ns: *from_ns, to_ns, count }
    });
    let mut bins: Vec<HistogramBin> = bins.skip_while(|bin| bin.count == 0).collect();
    while bins.last().is_some_and(|bin| bin.count == 0) {
        bins.pop();
    }
    bins
}

/// What is known of a selection.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Statistics {
    /// All events that touch the time.
    #[serde(flatten)]
    pub durations: Durations,
    /// How long any of them runs inside of the time, ns.
    pub busy_ns: u64,
    /// How many run at once, in the mean of that.
    pub concurrency: f64,
    /// How many run at once at most.
    pub most_at_once: u64,
    /// How many are how long, from the first bin that has any to the last.
    pub histogram: Vec<HistogramBin>,
    /// By name.
    pub names: Vec<OfName>,
    /// How many names there are.
    pub all_names: u64,
}

/// Which events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    /// All.
    #[default]
    All,
    /// Operations of GPUs.
    Operations,
    /// Calls.
    Calls,
    /// Markers.
    Markers,
}

impl Sort {
    fn has(self, kind: EventKind) -> bool {
        match self {
            Sort::All => true,
            Sort::Calls => matches!(kind, EventKind::Call | EventKind::Wait),
            Sort::Markers => kind == EventKind::Marker,
            Sort::Operations => !matches!(kind, EventKind::Call | EventKind::Wait | EventKind::Marker),
        }
    }
}

/// What names are ordered by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Their texts.
    Name,
    /// How many events.
    Count,
    /// The sum of durations.
    #[default]
    Total,
    /// Their mean.
    Mean,
    /// The median.
    P50,
    /// What 99 of 100 do not exceed.
    P99,
    /// The longest.
    Max,
}

/// Which events are counted: those that touch the time from `from` to before `to`, ns.
#[derive(Debug, Clone, Default)]
pub struct Selection<'a> {
    /// Their rows; none: all.
    pub rows: Option<&'a [u32]>,
    /// Begin of the time.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// What they are.
    pub sort: Sort,
    /// Words that their names have.
    pub words: &'a str,
    /// Number of the trace that they are of; none: all.
    pub source: Option<usize>,
}

impl Selection<'_> {
    /// The subtracks of the rows. Of a track whose rows are all asked for also the rest that found no row.
    fn subtracks<'a>(&self, timeline: &'a Timeline) -> Vec<&'a Subtrack> {
        let subtracks = timeline.columns.subtracks();
        let mut is_asked = vec![self.rows.is_none(); subtracks.len()];
        for row in self.rows.unwrap_or_default() {
            if let Some(subtrack) = timeline.rows.get(*row as usize).and_then(Row::subtrack) {
                is_asked[subtrack] = true;
            }
        }
        let mut found = Vec::new();
        let mut first = 0;
        for track in subtracks.chunk_by(|one, other| one.track == other.track) {
            let is_asked = &is_asked[first..first + track.len()];
            first += track.len();
            let source = usize::from(timeline.source_of_track[track[0].track as usize]);
            if self.source.is_some_and(|asked| asked != source) {
                continue;
            }
            let is_all = track.iter().zip(is_asked).all(|(subtrack, is)| *is || subtrack.is_overfull);
            found.extend(track.iter().zip(is_asked).filter(|(_, is)| **is || is_all).map(|(of, _)| of));
        }
        found
    }

    /// For each name whether its events count.
    fn names(&self, timeline: &Timeline) -> Vec<bool> {
        let words: Vec<String> = self.words.split_whitespace().map(str::to_lowercase).collect();
        let has_words = |text: &str| {
            let text = text.to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        let names = timeline.names.iter();
        names.map(|name| self.sort.has(name.kind) && (words.is_empty() || has_words(&name.text))).collect()
    }
}

/// Number of an event's name, and its duration.
type Named = (u32, u64);
/// A begin and an end, ns.
type Times = (u64, u64);

/// The events of a selection, each once: name and duration, and the part of its times that is inside.
fn times(timeline: &Timeline, selection: &Selection<'_>) -> (Vec<Named>, Vec<Times>) {
    let Selection { from, to, .. } = *selection;
    let columns = &timeline.columns;
    let is_name = selection.names(timeline);
    let (mut durations, mut times) = (Vec::new(), Vec::new());
    for subtrack in selection.subtracks(timeline) {
        for event in columns.within(subtrack, from, to) {
            let (start, end) = columns.times(event);
            let name = columns.name(event);
            // Of a subtrack in which events cover each other some may end before.
            if !is_name[name as usize] || (end <= from && start < from) {
                continue;
            }
            durations.push((name, end - start));
            times.push((start.max(from), end.min(to)));
        }
    }
    durations.sort_unstable();
    (durations, times)
}

/// Those of each name, of names and durations in ascending order.
fn by_name(durations: &[(u32, u64)]) -> Vec<OfName> {
    let of_name = durations.chunk_by(|(one, _), (other, _)| one == other).map(|of| {
        let sorted: Vec<u64> = of.iter().map(|(_, ns)| *ns).collect();
        OfName { name: of[0].0, durations: Durations::of(&sorted) }
    });
    of_name.collect()
}

/// The durations of the events of a selection: of all, and of those of each name.
pub fn durations_of_names(timeline: &Timeline, selection: &Selection<'_>) -> (Durations, Vec<OfName>) {
    let (durations, _) = times(timeline, selection);
    let names = by_name(&durations);
    let mut all: Vec<u64> = durations.into_iter().map(|(_, ns)| ns).collect();
    all.sort_unstable();
    (Durations::of(&all), names)
}

/// Statistics of a selection, its names in this order. Each event counts once.
pub fn statistics(timeline: &Timeline, selection: &Selection<'_>, by: By, is_ascending: bool) -> Statistics {
    let (durations, mut times) = times(timeline, selection);
    times.sort_unstable();
    let (mut busy_ns, mut until, mut spent_ns) = (0, 0, 0_u128);
    for (start, end) in &times {
        busy_ns += end.saturating_sub(*start.max(&until));
        until = until.max(*end);
        spent_ns += u128::from(end.saturating_sub(*start));
    }
    let concurrency = if busy_ns == 0 { 0.0 } else { spent_ns as f64 / busy_ns as f64 };
    let most_at_once = most_at_once(times);
    let mut names = by_name(&durations);
    names.sort_by(|one, other| {
        let (a, b) = (&one.durations, &other.durations);
        let text = |of: &OfName| &timeline.names[of.name as usize].text;
        let order = match by {
            By::Name => text(one).cmp(text(other)),
            By::Count => a.count.cmp(&b.count),
            By::Total => a.total_ns.cmp(&b.total_ns),
            By::Mean => a.mean_ns.total_cmp(&b.mean_ns),
            By::P50 => a.p50_ns.cmp(&b.p50_ns),
            By::P99 => a.p99_ns.cmp(&b.p99_ns),
            By::Max => a.max_ns.cmp(&b.max_ns),
        };
        if is_ascending { order } else { order.reverse() }.then(one.name.cmp(&other.name))
    });
    let all_names = names.len() as u64;
    let mut all: Vec<u64> = durations.into_iter().map(|(_, ns)| ns).collect();
    all.sort_unstable();
    let (histogram, durations) = (histogram(&all), Durations::of(&all));
    Statistics { durations, busy_ns, concurrency, most_at_once, histogram, names, all_names }
}

/// What a list of events is ordered by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Their begin.
    #[default]
    Start,
    /// How long they take.
    Duration,
    /// The texts of their names.
    Name,
    /// The words for what they are.
    Kind,
    /// Their rows, from the top.
    Row,
    /// Their ids.
    Id,
}

/// The place of each of the texts among all of them in their order; equal ones have one.
fn places<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<u64> {
    let texts: Vec<&str> = texts.collect();
    let mut sorted = texts.clone();
    sorted.sort_unstable();
    texts.iter().map(|text| sorted.partition_point(|other| other < text) as u64).collect()
}

/// Events one by one: each column has a value for each of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// How many there are.
    pub all: u64,
    /// The events.
    pub event: Vec<u32>,
    /// Their begin, ns.
    pub start_ns: Vec<u64>,
    /// Their duration, ns.
    pub duration_ns: Vec<u64>,
    /// Numbers of their names.
    pub name: Vec<u32>,
    /// Their rows.
    pub row: Vec<Option<u32>>,
    /// Their ids in the trace, as texts: numbers of the page are not exact so far.
    pub id: Vec<String>,
}

/// The first events of a selection in an order.
pub fn events(timeline: &Timeline, selection: &Selection<'_>, order: Order, is_ascending: bool) -> Listed {
    let Selection { from, to, .. } = *selection;
    let columns = &timeline.columns;
    let is_name = selection.names(timeline);
    let mut found: Vec<u32> = Vec::new();
    for subtrack in selection.subtracks(timeline) {
        found.extend(columns.within(subtrack, from, to).filter(|event| {
            let (start, end) = columns.times(*event);
            is_name[columns.name(*event) as usize] && (end > from || start >= from)
        }));
    }
    let all = found.len() as u64;
    let names = timeline.names.iter();
    let place_of_name = match order {
        Order::Name => places(names.map(|name| &*name.text)),
        Order::Kind => places(names.map(|name| name.kind.word())),
        Order::Start | Order::Duration | Order::Row | Order::Id => Vec::new(),
    };
    let row = |event: u32| timeline.row_of_subtrack[columns.subtrack_of(event)];
    let key = |event: &u32| {
        let first = match order {
            Order::Start => columns.times(*event).0,
            Order::Duration => columns.duration(*event),
            Order::Name | Order::Kind => place_of_name[columns.name(*event) as usize],
            Order::Row => row(*event).map_or(u64::MAX, u64::from),
            // The order of signed numbers.
            Order::Id => columns.id(*event).cast_unsigned() ^ (1 << 63),
        };
        (if is_ascending { first } else { !first }, columns.times(*event).0, *event)
    };
    if found.len() > MOST_EVENTS {
        found.select_nth_unstable_by_key(MOST_EVENTS, key);
        found.truncate(MOST_EVENTS);
    }
    found.sort_unstable_by_key(key);
    Listed {
        all,
        start_ns: found.iter().map(|event| columns.times(*event).0).collect(),
        duration_ns: found.iter().map(|event| columns.duration(*event)).collect(),
        name: found.iter().map(|event| columns.name(*event)).collect(),
        row: found.iter().map(|event| row(*event)).collect(),
        id: found.iter().map(|event| columns.id(*event).to_string()).collect(),
        event: found,
    }
}

/// How many of the times, which are sorted by their begin, overlap at most. What takes no time is nowhere.
fn most_at_once(times: Vec<(u64, u64)>) -> u64 {
    let mut ends: Vec<u64> = times.iter().filter(|(start, end)| end > start).map(|(_, end)| *end).collect();
    ends.sort_unstable();
    let (mut ended, mut most) = (0, 0);
    for (begun, (start, _)) in times.into_iter().filter(|(start, end)| end > start).enumerate() {
        while ends[ended] <= start {
            ended += 1;
        }
        most = most.max(begun + 1 - ended);
    }
    most as u64
}

/// One of several events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Next {
    /// The event.
    pub event: u32,
    /// Which it is of them, by start, counted from 1.
    pub place: u64,
    /// How many there are.
    pub of: u64,
}

/// From where the next event is looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Whence {
    /// An event.
    pub after: Option<u32>,
    /// Otherwise a time: what begins then is behind it.
    pub at: Option<u64>,
    /// Whether what is in front of it is wanted.
    #[serde(default)]
    pub back: bool,
}

/// Which of the events begins next, or before; behind the last comes the first.
pub fn step(timeline: &Timeline, events: &[u32], whence: Whence) -> Option<Next> {
    let columns = &timeline.columns;
    let key = |event: u32| (columns.times(event).0, event);
    let known = whence.after.filter(|after| (*after as usize) < columns.len()).map(key);
    let behind = |event: &u32| match (known, whence.at) {
        (Some(known), _) => key(*event) > known,
        (None, Some(at)) => columns.times(*event).0 >= at,
        (None, None) => !whence.back,
    };
    let all = || events.iter().copied();
    let event = if whence.back {
        let before = all().filter(|event| !behind(event) && Some(key(*event)) != known);
        before.max_by_key(|event| key(*event)).or_else(|| all().max_by_key(|event| key(*event)))?
    } else {
        all()
            .filter(behind)
            .min_by_key(|event| key(*event))
            .or_else(|| all().min_by_key(|event| key(*event)))?
    };
    let place = all().filter(|other| key(*other) <= key(event)).count() as u64;
    Some(Next { event, place, of: events.len() as u64 })
}

/// The event of a name in a selection that begins next, or before.
pub fn next(timeline: &Timeline, selection: &Selection<'_>, name: u32, whence: Whence) -> Option<Next> {
    let Selection { from, to, .. } = *selection;
    let columns = &timeline.columns;
    let mut events = Vec::new();
    for subtrack in selection.subtracks(timeline) {
        let of_name = columns.within(subtrack, from, to).filter(|event| columns.name(*event) == name);
        events.extend(of_name.filter(|event| {
            let (start, end) = columns.times(*event);
            end > from || start >= from
        }));
    }
    step(timeline, &events, whence)
}
