//! The events of a trace in columns: those of a subtrack are together, by start.

use std::ops::Range;

use crate::layout::{Layout, MOST, Placement};
use crate::pyramid::Spans;

/// An event as it is read.
#[derive(Debug, Clone, Copy)]
pub struct Raw {
    /// ns since the trace's begin.
    pub start: u64,
    /// ns.
    pub duration: u64,
    /// Which track.
    pub track: u32,
    /// Number of its name.
    pub name: u32,
    /// Place of its id among all ids.
    pub id: u32,
}

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
    start: Vec<u64>,
    duration: Vec<u64>,
    name: Vec<u32>,
    id: Vec<i64>,
    subtracks: Vec<Subtrack>,
}

impl Columns {
    /// Puts events into subtracks. `order` says how those of each track lie; `ids` are the ids that the events name.
    ///
    /// Also gives the event of each id, u32::MAX for those that no event has.
    pub fn of(mut raw: Vec<Raw>, ids: &[i64], order: &[Placement]) -> (Columns, Vec<u32>) {
        raw.sort_unstable_by_key(|event| (event.track, event.start, u64::MAX - event.duration, event.id));
        let mut subtrack_of: Vec<u8> = Vec::with_capacity(raw.len());
        // How many events each subtrack of each track has.
        let mut counts: Vec<Vec<u32>> = vec![Vec::new(); order.len()];
        for track in raw.chunk_by(|one, other| one.track == other.track) {
            let number = track[0].track as usize;
            let mut subtracks = Layout::new(order[number]);
            let counts = &mut counts[number];
            for event in track {
                let subtrack = subtracks.place(event.start, event.start + event.duration);
                if subtrack == counts.len() {
                    counts.push(0);
                }
                counts[subtrack] += 1;
                subtrack_of.push(subtrack as u8);
            }
        }
        let mut columns = Columns {
            start: vec![0; raw.len()],
            duration: vec![0; raw.len()],
            name: vec![0; raw.len()],
            id: vec![0; raw.len()],
            subtracks: Vec::new(),
        };
        let mut next: Vec<Vec<u32>> = Vec::with_capacity(order.len());
        let mut first = 0;
        for (track, counts) in counts.iter().enumerate() {
            next.push(Vec::with_capacity(counts.len()));
            for (subtrack, count) in counts.iter().enumerate() {
                next[track].push(first);
                columns.subtracks.push(Subtrack {
                    track: track as u32,
                    events: first..first + count,
                    is_overfull: subtrack == MOST,
                });
                first += count;
            }
        }
        let mut event_of = vec![u32::MAX; ids.len()];
        for (event, subtrack) in raw.iter().zip(subtrack_of) {
            let place = &mut next[event.track as usize][usize::from(subtrack)];
            let at = *place as usize;
            columns.start[at] = event.start;
            columns.duration[at] = event.duration;
            columns.name[at] = event.name;
            columns.id[at] = ids[event.id as usize];
            event_of[event.id as usize] = *place;
            *place += 1;
        }
        (columns, event_of)
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
        (self.start[at], self.start[at] + self.duration[at])
    }

    /// Duration of an event, ns.
    pub fn duration(&self, event: u32) -> u64 {
        self.duration[event as usize]
    }

    /// Number of the name of an event.
    pub fn name(&self, event: u32) -> u32 {
        self.name[event as usize]
    }

    /// Id of an event in the trace.
    pub fn id(&self, event: u32) -> i64 {
        self.id[event as usize]
    }

    /// The events of a subtrack that touch the time from `from` to before `to`, ns; of a subtrack that is overfull also others in front of them.
    pub fn within(&self, subtrack: &Subtrack, from: u64, to: u64) -> Range<u32> {
        let Subtrack { events, is_overfull, .. } = subtrack;
        let starts = &self.start[events.start as usize..events.end as usize];
        let end = events.start + starts.partition_point(|start| *start < to) as u32;
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
}

/// Times in which any of several events runs, each with the longest of those that do.
#[derive(Debug, Default)]
pub struct Busy {
    start: Vec<u64>,
    end: Vec<u64>,
    event: Vec<u32>,
    duration: Vec<u64>,
}

impl Busy {
    /// Those of the events of subtracks.
    pub fn of<'a>(columns: &Columns, subtracks: impl Iterator<Item = &'a Subtrack>) -> Busy {
        let mut events: Vec<u32> = subtracks.flat_map(|subtrack| subtrack.events.clone()).collect();
        events.sort_unstable_by_key(|event| columns.times(*event));
        Busy::of_spans(events.into_iter().map(|event| {
            let (start, end) = columns.times(event);
            (start, end, event)
        }))
    }

    /// Those of spans, which come by their begin: begin, end, event.
    pub fn of_spans(spans: impl Iterator<Item = (u64, u64, u32)>) -> Busy {
        let mut busy = Busy::default();
        for (start, end, event) in spans {
            let duration = end - start;
            let last = busy.end.len().wrapping_sub(1);
            // What only touches the last is apart from it, as kernels behind each other are.
            if busy.end.last().is_some_and(|last| start < *last) {
                busy.end[last] = busy.end[last].max(end);
                if duration > busy.duration[last] {
                    (busy.duration[last], busy.event[last]) = (duration, event);
                }
            } else {
                busy.start.push(start);
                busy.end.push(end);
                busy.event.push(event);
                busy.duration.push(duration);
            }
        }
        busy
    }
}

impl Spans for Busy {
    fn count(&self) -> usize {
        self.start.len()
    }

    fn at(&self, place: usize) -> (u64, u64) {
        (self.start[place], self.end[place])
    }

    fn event(&self, place: usize) -> (u32, u64) {
        (self.event[place], self.duration[place])
    }
}
