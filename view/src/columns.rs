//! The events of a trace in columns: those of a subtrack are together, by start.

use std::ops::Range;

use crate::layout::{Layout, MOST, Placement};
use crate::packed::{Packed, PackedRows};
use crate::pyramid::Spans;

/// One subtrack of a track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subtrack {
    /// The track.
    pub track: u32,
    /// Its events.
    pub events: Range<u32>,
    /// Whether they may cover each other: what found no subtrack of its own.
    pub is_overfull: bool,
}

/// All events of a trace. An event is known by its place in the columns.
#[derive(Debug, Default)]
pub struct Columns {
    start: Packed,
    duration: Packed,
    name: Packed,
    id: Packed,
    subtracks: Vec<Subtrack>,
}

/// Rows of events that have no places in the columns yet.
pub trait Rows {
    /// Start of a row, ns since the trace's begin, and its duration, ns.
    fn times(&self, row: usize) -> (u64, u64);
    /// Number of the name of a row, and its id in the trace.
    fn named(&self, row: usize) -> (u32, i64);
}

impl Columns {
    /// Puts the events of a track, which are rows in the order of their ids, behind those that there are, in subtracks as `order` says. `placed`
    /// is called with each row and the event that it is.
    pub fn add(
        &mut self,
        track: u32,
        order: Placement,
        (of, mut sequence): (&impl Rows, Vec<u32>),
        mut placed: impl FnMut(usize, u32),
    ) {
        let key = |row: &u32| {
            let (start, duration) = of.times(*row as usize);
            (start, u64::MAX - duration)
        };
        if !sequence.is_sorted_by_key(key) {
            sequence.sort_by_cached_key(key);
        }
        let mut layout = Layout::new(order);
        let mut subtrack_of: Vec<u8> = Vec::with_capacity(sequence.len());
        let mut counts: Vec<u32> = Vec::new();
        for row in &sequence {
            let (start, duration) = of.times(*row as usize);
            let subtrack = layout.place(start, start + duration);
            if subtrack == counts.len() {
                counts.push(0);
            }
            counts[subtrack] += 1;
            subtrack_of.push(subtrack as u8);
        }
        let mut first = self.len() as u32;
        for (subtrack, count) in counts.iter().enumerate() {
            let events = first..first + count;
            first = events.end;
            self.subtracks.push(Subtrack { track, events, is_overfull: subtrack == MOST });
        }
        if counts.len() > 1 {
            sequence = grouped(&sequence, &subtrack_of, &counts);
        }
        for row in sequence {
            let row = row as usize;
            placed(row, self.len() as u32);
            let ((start, duration), (name, id)) = (of.times(row), of.named(row));
            self.start.push(start);
            self.duration.push(duration);
            self.name.push(name.into());
            self.id.push(id.cast_unsigned());
        }
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// The subtracks, those of a track from the top.
    pub fn subtracks(&self) -> &[Subtrack] {
        &self.subtracks
    }

    /// Number of the subtrack of an event.
    pub fn subtrack_of(&self, event: u32) -> usize {
        self.subtracks.partition_point(|subtrack| subtrack.events.end <= event)
    }

    /// Start and end of an event, ns since the trace's begin.
    pub fn times(&self, event: u32) -> (u64, u64) {
        let at = event as usize;
        let start = self.start.get(at);
        (start, start + self.duration.get(at))
    }

    /// Duration of an event, ns.
    pub fn duration(&self, event: u32) -> u64 {
        self.duration.get(event as usize)
    }

    /// Number of the name of an event.
    pub fn name(&self, event: u32) -> u32 {
        self.name.get(event as usize) as u32
    }

    /// The numbers of the names of these events.
    pub fn names(&self, events: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        self.name.range(events.start as usize..events.end as usize).map(|name| name as u32)
    }

    /// Id of an event in the trace.
    pub fn id(&self, event: u32) -> i64 {
        self.id.get(event as usize).cast_signed()
    }

    /// The events of a subtrack that touch the time from `from` to before `to`, ns; of a subtrack that is overfull also others in front of them.
    pub fn within(&self, subtrack: &Subtrack, from: u64, to: u64) -> Range<u32> {
        let Subtrack { events, is_overfull, .. } = subtrack;
        let places = events.start as usize..events.end as usize;
        let end = self.start.partition_point(places, |start| start < to) as u32;
        let start = match is_overfull {
            true => events.start,
            false => events.start + self.of_subtrack(subtrack).first_at(from) as u32,
        };
        start.min(end)..end
    }

    /// The events of a subtrack that is not overfull.
    pub fn of_subtrack<'a>(&'a self, subtrack: &'a Subtrack) -> OfSubtrack<'a> {
        OfSubtrack { columns: self, subtrack }
    }
}

/// Those of each subtrack together, where `counts` says how many each has.
fn grouped(sequence: &[u32], subtrack_of: &[u8], counts: &[u32]) -> Vec<u32> {
    let mut next: Vec<usize> = Vec::with_capacity(counts.len());
    let mut first = 0;
    for count in counts {
        next.push(first);
        first += *count as usize;
    }
    let mut grouped = vec![0; sequence.len()];
    for (row, subtrack) in sequence.iter().zip(subtrack_of) {
        let next = &mut next[usize::from(*subtrack)];
        grouped[*next] = *row;
        *next += 1;
    }
    grouped
}

/// The events of a subtrack.
#[derive(Debug, Clone, Copy)]
pub struct OfSubtrack<'a> {
    columns: &'a Columns,
    subtrack: &'a Subtrack,
}

impl Spans for OfSubtrack<'_> {
    fn count(&self) -> usize {
        self.subtrack.events.len()
    }

    fn at(&self, place: usize) -> (u64, u64) {
        self.columns.times(self.subtrack.events.start + place as u32)
    }

    fn event(&self, place: usize) -> (u32, u64) {
        let event = self.subtrack.events.start + place as u32;
        (event, self.columns.duration(event))
    }

    fn spans(&self, places: Range<usize>) -> impl Iterator<Item = (u64, u64, u32, u64)> {
        let first = self.subtrack.events.start as usize;
        let events = first + places.start..first + places.end;
        let times = self.columns.start.range(events.clone()).zip(self.columns.duration.range(events.clone()));
        events.zip(times).map(|(event, (start, duration))| (start, start + duration, event as u32, duration))
    }
}

/// Times in which any of several events runs, each with the longest of those that do.
#[derive(Debug, Default)]
pub struct Busy {
    /// Begin, length, the event and its duration.
    times: PackedRows<4>,
}

impl Busy {
    /// Those of the events of subtracks.
    pub fn of<'a>(columns: &Columns, subtracks: impl Iterator<Item = &'a Subtrack>) -> Busy {
        let mut events: Vec<u32> = subtracks.flat_map(|subtrack| subtrack.events.clone()).collect();
        // Those of a subtrack are in order: a stable sort merges them.
        events.sort_by_key(|event| columns.times(*event));
        Busy::of_spans(events.into_iter().map(|event| {
            let (start, end) = columns.times(event);
            (start, end, event)
        }))
    }

    /// Those of spans, which come by their begin: begin, end, event.
    pub fn of_spans(spans: impl Iterator<Item = (u64, u64, u32)>) -> Busy {
        let mut busy = Busy::default();
        let mut last: Option<(u64, u64, u32, u64)> = None;
        for (start, end, event) in spans {
            match &mut last {
                // What only touches the last is apart from it, as kernels behind each other are.
                Some((_, until, longest, duration)) if start < *until => {
                    *until = end.max(*until);
                    if end - start > *duration {
                        (*longest, *duration) = (event, end - start);
                    }
                }
                _ => busy.extend(last.replace((start, end, event, end - start))),
            }
        }
        busy.extend(last);
        busy
    }

    /// Adds one with begin, end, event and its duration.
    fn extend(&mut self, one: Option<(u64, u64, u32, u64)>) {
        if let Some((start, end, event, duration)) = one {
            self.times.push([start, end - start, event.into(), duration]);
        }
    }
}

impl Spans for Busy {
    fn count(&self) -> usize {
        self.times.len()
    }

    fn at(&self, place: usize) -> (u64, u64) {
        let start = self.times.column(0).get(place);
        (start, start + self.times.column(1).get(place))
    }

    fn event(&self, place: usize) -> (u32, u64) {
        (self.times.column(2).get(place) as u32, self.times.column(3).get(place))
    }
}
