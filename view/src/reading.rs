//! What was read of one trace or of two, as a timeline: tracks and subtracks, rows, links, what each row shows from afar.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use rpd_postprocess::check::Outliers;
use rpd_schema::{SessionInfo, Version};
use rusqlite::Connection;
use rustc_hash::FxHashMap;

use crate::columns::{Busy, Columns, Rows};
use crate::counters::{Counter, Steps, Value};
use crate::derived::Derived;
use crate::gathering::{Gathered, Gatherer, Progress, Queue, Reading, SensorKey, Thread};
use crate::layout::Placement;
use crate::links::Links;
use crate::names::Name;
use crate::packed::Packed;
use crate::pyramid::Pyramid;
use crate::reads::Reads;
use crate::recording::spans;
use crate::timeline::{CounterTrack, Facts, Group, Row, Shown, Source, Timeline, Track};

/// The page counts ns in floating-point numbers, which are exact up to here: 104 days.
const LONGEST_NS: u64 = 1 << 53;

/// Columns of a command in the name of its process.
const COMMAND_WIDTH: usize = 60;

/// Columns of the name of a sensor.
const SENSOR_WIDTH: usize = 40;

/// A sensor that is read longer than this before all else or behind it is far from it, ns: a day.
const OUTLIER_NS: u64 = 86_400_000_000_000;

/// Reads the trace `file`, which is open.
///
/// # Errors
/// When it cannot be read, or has more than 4 billion events.
pub fn read(file: &Path, trace: (&Connection, Version), progress: &Progress) -> Result<Timeline> {
    assemble(vec![GatheredPart { gathered: gather(file, trace, progress, &mut |_| ())?, shift_ns: 0 }])
        .with_context(|| format!("cannot read {}", file.display()))
}

/// Reads all of the trace `file`, which is open. `rough` is given what a few rows of every part say, where there are many rows.
///
/// # Errors
/// When it cannot be read.
pub fn gather(
    file: &Path,
    (trace, version): (&Connection, Version),
    progress: &Progress,
    rough: &mut dyn FnMut(&Gathered),
) -> Result<Gathered> {
    let mut gather = || -> Result<Gathered> {
        let mut gatherer = Gatherer::of(file, (trace, version), progress)?;
        // A trace of another writer may lack what its parts are found by; all of it can be read.
        if gatherer.expect()? && gatherer.sample().is_ok() {
            rough(gatherer.gathered()?);
        }
        gatherer.rest()?;
        gatherer.into_gathered()
    };
    trace.execute_batch("BEGIN").with_context(|| format!("cannot read {}", file.display()))?;
    let gathered = gather();
    trace.execute_batch("ROLLBACK")?;
    gathered.with_context(|| format!("cannot read {}", file.display()))
}

/// One of the traces that are shown together.
#[derive(Debug)]
pub struct GatheredPart {
    /// What was read of it.
    pub gathered: Gathered,
    /// From the begin of the timeline to the trace's first event, ns.
    pub shift_ns: u64,
}

/// A track: which trace it is of, whether it is a queue; process id and first session, or the GPU; thread or queue.
type TrackOf = (usize, bool, (i64, i64), i64);

/// Where everything is on the page.
struct Rowed {
    groups: Vec<Group>,
    rows: Vec<Row>,
    row_of_subtrack: Vec<Option<u32>>,
}

/// What is not shown of a trace.
#[derive(Debug, Clone, Copy, Default)]
struct Hidden {
    impossible: u64,
    outliers: u64,
    far: u64,
    /// When the first of these begins that also begins too far away, ns since the timeline's begin.
    far_from: Option<u64>,
}

impl Hidden {
    /// Counts what ends too far from the timeline's begin, and begins at `start`, ns since that.
    fn add_far(&mut self, start: u64) {
        self.far += 1;
        self.far_from = self.far_from.into_iter().chain((start >= LONGEST_NS).then_some(start)).min();
    }
}

impl Gathered {
    /// Takes out the rows that are days away from nearly all others.
    fn leave_out_outliers(&mut self) -> u64 {
        let rows = |gathered: &Gathered| {
            gathered.calls.len() + gathered.ops.len() + gathered.sensors.values().map(Vec::len).sum::<usize>()
        };
        let before = rows(self);
        let events = self.calls.times().chain(self.ops.times());
        let sensed = self.sensors.values().flatten().map(|(start, end, _)| (*start, *end));
        let outliers = Outliers::among(events.chain(sensed));
        if !outliers.is_empty() {
            self.calls.retain(|read| !outliers.are_known(read.times()));
            self.ops.retain(|read| !outliers.are_known(read.times()));
        }
        let (first, last) = self
            .calls
            .times()
            .chain(self.ops.times())
            .fold((i64::MAX, i64::MIN), |(first, last), (start, end)| (first.min(start), last.max(end)));
        // Sensors alone have no others to be far from.
        let is_near = |start: i64, end: i64| {
            first > last
                || (first.saturating_sub_unsigned(OUTLIER_NS) <= start
                    && last.saturating_add_unsigned(OUTLIER_NS) >= end)
        };
        for values in self.sensors.values_mut() {
            values.retain(|(start, end, _)| !outliers.are_known((*start, *end)) && is_near(*start, *end));
        }
        (before - rows(self)) as u64
    }

    /// When the first of all begins, ns.
    pub(crate) fn first_ns(&self) -> i64 {
        let events = self.calls.starts().chain(self.ops.starts());
        let sensed = self.sensors.values().flatten().map(|(start, ..)| *start);
        events.chain(sensed).min().unwrap_or(0)
    }
}

/// Numbers of keys, which are in the order of their numbers, in ascending order of the keys.
fn sorted<K: Ord + Copy>(keys: &[K]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_unstable_by_key(|number| keys[*number]);
    order
}

/// The names of all parts, each once, and for each part the numbers of its names among them.
fn joined_names(parts: &mut [GatheredPart]) -> (Vec<Name>, Vec<Vec<u32>>) {
    let mut names = std::mem::take(&mut parts[0].gathered.names);
    let mut numbers = vec![(0..names.len() as u32).collect::<Vec<u32>>()];
    if parts.len() > 1 {
        let mut number_of: FxHashMap<Name, u32> = names.iter().cloned().zip(0..).collect();
        for part in &mut parts[1..] {
            let of_part = std::mem::take(&mut part.gathered.names).into_iter().map(|name| {
                *number_of.entry(name).or_insert_with_key(|name| {
                    names.push(name.clone());
                    names.len() as u32 - 1
                })
            });
            numbers.push(of_part.collect());
        }
    }
    (names, numbers)
}

/// The timeline of one trace, or of several on one axis.
///
/// # Errors
/// When there are more than 4 billion events.
pub fn assemble(mut parts: Vec<GatheredPart>) -> Result<Timeline> {
    let mut hidden = vec![Hidden::default(); parts.len()];
    for (part, hidden) in parts.iter_mut().zip(&mut hidden) {
        hidden.impossible = part.gathered.impossible;
        hidden.outliers = part.gathered.leave_out_outliers();
    }
    let firsts: Vec<i64> = parts.iter().map(|part| part.gathered.first_ns()).collect();
    let (names, name_of) = joined_names(&mut parts);

    // Threads of all parts, then their queues.
    let mut tracks: Vec<TrackOf> = Vec::new();
    let mut places: [Vec<Vec<u32>>; 2] = [Vec::new(), Vec::new()];
    let mut queues_from = 0;
    for is_queue in [false, true] {
        for (source, GatheredPart { gathered, .. }) in parts.iter().enumerate() {
            let of_thread = |(pid, process, tid): &Thread| (source, false, (*pid, *process), *tid);
            let of_queue = |(gpu, queue): &Queue| (source, true, (*gpu, 0), *queue);
            let keys: Vec<TrackOf> = match is_queue {
                false => gathered.threads.iter().map(of_thread).collect(),
                true => gathered.queues.iter().map(of_queue).collect(),
            };
            let mut place = vec![0; keys.len()];
            for number in sorted(&keys) {
                place[number] = tracks.len() as u32;
                tracks.push(keys[number]);
            }
            places[usize::from(is_queue)].push(place);
        }
        if !is_queue {
            queues_from = tracks.len() as u32;
        }
    }

    let events: usize = parts.iter().map(|part| part.gathered.calls.len() + part.gathered.ops.len()).sum();
    if events >= u32::MAX as usize {
        bail!("it has more than {} events; rpd trim makes a trace of a part of it", u32::MAX);
    }
    let mut columns = Columns::default();
    let mut span_ns = 0;
    let mut shown = vec![[0, 0]; parts.len()];
    // Those of the calls of each part, and those of its operations.
    let mut finders: [Vec<Finder>; 2] = [Vec::new(), Vec::new()];
    let mut first_track = 0;
    for is_op in [false, true] {
        let order = if is_op { Placement::FirstFree } else { Placement::Nested };
        for (source, part) in parts.iter_mut().enumerate() {
            let reads = if is_op { &mut part.gathered.ops } else { &mut part.gathered.calls };
            let reads = std::mem::take(reads);
            let of = OfPart {
                reads: &reads,
                first_ns: firsts[source],
                shift_ns: part.shift_ns,
                name_of: &name_of[source],
            };
            let track_of = &places[usize::from(is_op)][source];
            let mut rows_of = vec![Packed::default(); track_of.len()];
            for row in 0..reads.len() {
                let start = of.start(row);
                let end = start.saturating_add(reads.duration(row));
                if end >= LONGEST_NS {
                    hidden[source].add_far(start);
                } else {
                    shown[source][usize::from(is_op)] += 1;
                    span_ns = span_ns.max(end);
                    let track = track_of[reads.track(row) as usize] - first_track;
                    rows_of[track as usize].push(row as u64);
                }
            }
            let mut events = vec![u32::MAX; reads.len()];
            for (track, rows) in (first_track..).zip(rows_of) {
                let rows = rows.iter().map(|row| row as u32).collect();
                columns.add(track, order, (&of, rows), |row, event| events[row] = event);
            }
            first_track += track_of.len() as u32;
            finders[usize::from(is_op)].push(Finder { ids: reads.into_ids(), events, last: 0 });
        }
    }

    let [mut calls, mut ops] = finders;
    let mut pairs = Vec::new();
    for (part, (calls, ops)) in parts.iter_mut().zip(calls.iter_mut().zip(&mut ops)) {
        let links = std::mem::take(&mut part.gathered.links);
        let ids = (0..links.len()).map(|place| links.get(place).map(u64::cast_signed));
        pairs.extend(ids.filter_map(|[call, op]| Some((calls.find(call)?, ops.find(op)?))));
    }
    let links = Links::of(pairs);
    let by_ids: Vec<_> =
        calls.into_iter().zip(ops).map(|(calls, ops)| (calls.into_events(), ops.into_events())).collect();

    let mut rowed = groups(&parts, &columns, &tracks);
    hosts_of_gpus(&mut rowed, &columns, &links);
    queue_depths(&mut rowed, &columns, &links);
    for (source, part) in parts.iter_mut().enumerate() {
        for (sensor, values) in std::mem::take(&mut part.gathered.sensors) {
            let of = Sensed {
                source,
                is_one_of_several: firsts.len() > 1,
                first_ns: firsts[source],
                shift_ns: part.shift_ns,
            };
            span_ns = span_ns.max(of.add(&mut rowed, sensor, values, &mut hidden[source]));
        }
    }
    let Rowed { mut groups, rows, row_of_subtrack } = rowed;
    // For each trace: processes, GPUs that were used, other GPUs, what else has sensors.
    groups.sort_by_key(|group| {
        (group.source, group.device.is_some(), !group.is_gpu, group.tracks.is_empty(), group.device)
    });
    let mut recording = Vec::new();
    let sources =
        parts.into_iter().zip(by_ids).enumerate().map(|(source, (part, (calls_by_id, ops_by_id)))| {
            let GatheredPart { gathered, shift_ns } = part;
            let (sessions, first_sessions) = (gathered.sessions, gathered.first_sessions);
            let [calls, ops] = shown[source];
            let Hidden { impossible, outliers, far, far_from } = hidden[source];
            let facts = Facts {
                file: gathered.file,
                bytes: gathered.bytes,
                schema: gathered.schema,
                first_ns: firsts[source].to_string(),
                span_ns,
                calls,
                ops,
                sessions: sessions.len() as u64,
                lost: gathered.lost,
                launches_without_op: gathered.launches_without_op,
                impossible,
                outliers,
                far,
                far_from_ns: None,
                no_numbers: gathered.no_numbers,
            };
            let mut of = Source { facts, first_ns: firsts[source], shift_ns, calls_by_id, ops_by_id };
            of.facts.far_from_ns = far_from.map(|from| of.clock(from).to_string());
            recording.extend(spans(source, &of, span_ns, &sessions, &first_sessions));
            of
        });
    let sources: Vec<Source> = sources.collect();
    recording.retain(|span| groups.iter().any(|group| group.key == span.group));
    let source_of_track = tracks.iter().map(|(source, ..)| *source as u8).collect();
    Ok(Timeline {
        sources,
        source_of_track,
        span_ns,
        groups,
        queues_from,
        columns,
        rows,
        row_of_subtrack,
        links,
        recording,
        names,
        derived: Derived::default(),
    })
}

/// Calls or operations of one part.
struct OfPart<'a> {
    reads: &'a Reads,
    first_ns: i64,
    shift_ns: u64,
    /// Numbers of its names among those of all parts.
    name_of: &'a [u32],
}

impl OfPart<'_> {
    /// Begin of a row, ns since the timeline's begin.
    fn start(&self, row: usize) -> u64 {
        self.reads.start(row).abs_diff(self.first_ns).saturating_add(self.shift_ns)
    }
}

impl Rows for OfPart<'_> {
    fn times(&self, row: usize) -> (u64, u64) {
        (self.start(row), self.reads.duration(row))
    }

    fn named(&self, row: usize) -> (u32, i64) {
        (self.name_of[self.reads.name(row) as usize], self.reads.id(row))
    }
}

/// Events by ids in ascending order. Most ids that are asked for one after another lie close to each other.
struct Finder {
    ids: Packed,
    /// The event of each; u32::MAX where there is none.
    events: Vec<u32>,
    last: usize,
}

impl Finder {
    fn find(&mut self, id: i64) -> Option<u32> {
        let ids = &self.ids;
        if ids.is_empty() {
            return None;
        }
        let id_at = |place: usize| ids.get(place).cast_signed();
        let is_there = |place: &usize| *place < ids.len() && id_at(*place) == id;
        // As far from the last one as the id, where none between them lacks.
        let guess = id.wrapping_sub(id_at(self.last)).wrapping_add(self.last as i64);
        let guess = usize::try_from(guess).ok().filter(is_there);
        let search = || ids.partition_point(0..ids.len(), |one| one.cast_signed() < id);
        self.last = guess.or_else(|| Some(search()).filter(is_there))?;
        Some(self.events[self.last]).filter(|event| *event != u32::MAX)
    }

    /// The events in the order of their ids.
    fn into_events(self) -> Packed {
        self.events.into_iter().filter(|event| *event != u32::MAX).map(u64::from).collect()
    }
}

/// Where the values of a sensor are from.
struct Sensed {
    source: usize,
    is_one_of_several: bool,
    first_ns: i64,
    shift_ns: u64,
}

impl Sensed {
    /// Adds a sensor below its device. Gives the time up to which it is read, ns since the timeline's begin.
    fn add(
        &self,
        rowed: &mut Rowed,
        (device_type, device, sensor): SensorKey,
        mut values: Vec<Reading>,
        hidden: &mut Hidden,
    ) -> u64 {
        let at = |time: i64| time.abs_diff(self.first_ns).saturating_add(self.shift_ns);
        values.retain(|(start, end, _)| {
            let is_near = at(*end) < LONGEST_NS;
            if !is_near {
                hidden.add_far(at(*start));
            }
            is_near
        });
        values.sort_by_key(|(start, end, _)| (*start, *end));
        let end = values.iter().map(|(_, end, _)| at(*end)).max().unwrap_or(0);
        let values = values.into_iter().map(|(start, _, value)| (at(start), value));
        let is_gpu = device_type == "gpu";
        let device_type = rpd_postprocess::text::shorten(&device_type, SENSOR_WIDTH);
        let key = if is_gpu { format!("g{device}") } else { format!("d{device_type}.{device}") };
        let key = prefixed(self.source, key);
        let group = rowed.groups.iter().position(|group| group.key == key).unwrap_or_else(|| {
            let busy = Busy::default();
            rowed.rows.push(Row { pyramid: Pyramid::of(&busy), shown: Shown::Busy(busy) });
            let label = if is_gpu { format!("GPU {device}") } else { format!("{device_type} {device}") };
            rowed.groups.push(Group {
                key,
                label: lettered(self.is_one_of_several, self.source, label),
                detail: String::new(),
                is_gpu,
                device: Some(device),
                source: self.source,
                host: None,
                tracks: Vec::new(),
                counters: Vec::new(),
                busy: rowed.rows.len() as u32 - 1,
            });
            rowed.groups.len() - 1
        });
        let label = rpd_postprocess::text::shorten(&sensor, SENSOR_WIDTH).to_string();
        rowed.count(group, label, Steps::of(values, end));
        end
    }
}

/// A key of the page: those of a second trace are others than those of the first.
pub(crate) fn prefixed(source: usize, key: String) -> String {
    if source == 0 { key } else { format!("b.{key}") }
}

/// A label, with a letter for its trace where several are shown.
fn lettered(is_one_of_several: bool, source: usize, label: String) -> String {
    match is_one_of_several {
        false => label,
        true => format!("{}: {label}", if source == 0 { 'A' } else { 'B' }),
    }
}

/// Processes and GPUs with their tracks, and the rows of them all.
fn groups(parts: &[GatheredPart], columns: &Columns, tracks: &[TrackOf]) -> Rowed {
    let mut rows = Vec::new();
    let mut row_of_subtrack = vec![None; columns.subtracks().len()];
    let mut subtracks_of: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (number, subtrack) in columns.subtracks().iter().enumerate() {
        subtracks_of.entry(subtrack.track).or_default().push(number);
        if !subtrack.is_overfull {
            row_of_subtrack[number] = Some(rows.len() as u32);
            let pyramid = Pyramid::of(&columns.of_subtrack(subtrack));
            rows.push(Row { shown: Shown::Subtrack(number), pyramid });
        }
    }
    let busy_row = |rows: &mut Vec<Row>, subtracks: &[usize]| match subtracks {
        // What is busy in one subtrack is what that shows.
        [only] => row_of_subtrack[*only].unwrap_or(0),
        _ => {
            let busy = Busy::of(columns, subtracks.iter().map(|subtrack| &columns.subtracks()[*subtrack]));
            rows.push(Row { pyramid: Pyramid::of(&busy), shown: Shown::Busy(busy) });
            rows.len() as u32 - 1
        }
    };
    let mut hosts: Vec<&str> =
        parts.iter().flat_map(|part| &part.gathered.sessions).filter_map(SessionInfo::host).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let has_hosts = hosts.len() > 1;
    let mut groups = Vec::new();
    let numbered: Vec<(u32, &TrackOf)> = (0u32..).zip(tracks).collect();
    // A process's threads follow each other, and a GPU's queues.
    for group in
        numbered.chunk_by(|(_, one), (_, other)| (one.0, one.1, one.2) == (other.0, other.1, other.2))
    {
        let (_, &(source, is_gpu, (first, second), _)) = group[0];
        let gathered = &parts[source].gathered;
        let mut all = Vec::new();
        let mut made = Vec::new();
        for (number, (.., id)) in group {
            let Some(subtracks) = subtracks_of.get(number) else { continue };
            let events = |subtrack: &usize| columns.subtracks()[*subtrack].events.len() as u64;
            let overfull = |subtrack: &&usize| columns.subtracks()[**subtrack].is_overfull;
            let label = match is_gpu {
                true => format!("queue {id}"),
                false if *id == first => "main thread".to_string(),
                false => format!("thread {id}"),
            };
            let key = match is_gpu {
                true => format!("g{first}.{id}"),
                false => format!("p{first}.{second}.{id}"),
            };
            made.push(Track {
                key: prefixed(source, key),
                label,
                rows: subtracks.iter().filter_map(|subtrack| row_of_subtrack[*subtrack]).collect(),
                busy: busy_row(&mut rows, subtracks),
                events: subtracks.iter().map(events).sum(),
                not_shown: subtracks.iter().filter(overfull).map(events).sum(),
            });
            all.extend_from_slice(subtracks);
        }
        let Some(track) = made.first() else { continue };
        let busy = if made.len() == 1 { track.busy } else { busy_row(&mut rows, &all) };
        let session = gathered.sessions.iter().find(|session| i64::from(session.session) == second);
        let session = session.filter(|_| !is_gpu);
        let (label, detail) = match is_gpu {
            true => (format!("GPU {first}"), gathered.gpus.get(&first).cloned().unwrap_or_default()),
            false => named(first, session),
        };
        groups.push(Group {
            key: prefixed(source, if is_gpu { format!("g{first}") } else { format!("p{first}.{second}") }),
            label: lettered(parts.len() > 1, source, label),
            detail,
            is_gpu,
            device: is_gpu.then_some(first),
            source,
            host: session.and_then(SessionInfo::host).filter(|_| has_hosts).map(String::from),
            tracks: made,
            counters: Vec::new(),
            busy,
        });
    }
    Rowed { groups, rows, row_of_subtrack }
}

impl Rowed {
    /// Adds a counter below a group.
    fn count(&mut self, group: usize, label: String, steps: Steps) {
        let Some((least, greatest)) = steps.extremes(0..steps.len()) else { return };
        let group = &mut self.groups[group];
        group.counters.push(CounterTrack {
            key: format!("{}.c{}.{label}", group.key, group.counters.len()),
            label,
            row: self.rows.len() as u32,
            values: steps.len() as u64,
            least: steps.number(least),
            greatest: steps.number(greatest),
            stack: None,
        });
        let counter = Box::new(Counter::of(steps));
        self.rows.push(Row { shown: Shown::Counter(counter), pyramid: Pyramid::default() });
    }
}

/// The group of each track: of GPUs, or of processes.
fn groups_of_tracks(rowed: &Rowed, columns: &Columns, are_gpus: bool) -> FxHashMap<usize, usize> {
    let groups = rowed.groups.iter().enumerate().filter(|(_, group)| group.is_gpu == are_gpus);
    groups
        .flat_map(|(number, group)| {
            group.tracks.iter().flat_map(|track| &track.rows).map(move |row| (number, *row))
        })
        .filter_map(|(number, row)| match rowed.rows[row as usize].shown {
            Shown::Subtrack(subtrack) => Some((columns.subtracks()[subtrack].track as usize, number)),
            Shown::Busy(_) | Shown::Counter(_) | Shown::Picked(_) => None,
        })
        .collect()
}

/// Says of each GPU on which host it is: that of a process that used it, where the trace has several hosts.
fn hosts_of_gpus(rowed: &mut Rowed, columns: &Columns, links: &Links) {
    if rowed.groups.iter().all(|group| group.host.is_none()) {
        return;
    }
    let of_gpus = groups_of_tracks(rowed, columns, true);
    let of_processes = groups_of_tracks(rowed, columns, false);
    let mut left: Vec<usize> = (0..rowed.groups.len()).filter(|group| rowed.groups[*group].is_gpu).collect();
    let group = |of: &FxHashMap<usize, usize>, event: u32| {
        of.get(&(columns.subtracks()[columns.subtrack_of(event)].track as usize)).copied()
    };
    for (call, op) in links.pairs() {
        if left.is_empty() {
            break;
        }
        let Some(gpu) = group(&of_gpus, op).filter(|gpu| left.contains(gpu)) else { continue };
        if let Some(host) = group(&of_processes, call).and_then(|process| rowed.groups[process].host.clone())
        {
            rowed.groups[gpu].host = Some(host);
            left.retain(|other| *other != gpu);
        }
    }
}

/// Adds to each GPU how many operations wait for it or run there: from the begin of their call to their end. Where clocks disagree an
/// operation may have ended before its call: that never waited.
fn queue_depths(rowed: &mut Rowed, columns: &Columns, links: &Links) {
    let group_of = groups_of_tracks(rowed, columns, true);
    let mut times: BTreeMap<usize, [Vec<u64>; 2]> = BTreeMap::new();
    let mut last: Option<(usize, usize)> = None;
    for (call, op) in links.pairs() {
        let subtrack = match last {
            Some((subtrack, _)) if columns.subtracks()[subtrack].events.contains(&op) => subtrack,
            _ => columns.subtrack_of(op),
        };
        let group = match last.filter(|(of, _)| *of == subtrack) {
            Some((_, group)) => group,
            None => match group_of.get(&(columns.subtracks()[subtrack].track as usize)) {
                Some(group) => *group,
                None => continue,
            },
        };
        last = Some((subtrack, group));
        let (begin, end) = (columns.times(call).0, columns.times(op).1);
        if begin <= end {
            let [begins, ends] = times.entry(group).or_default();
            begins.push(begin);
            ends.push(end);
        }
    }
    for (group, [mut begins, mut ends]) in times {
        begins.sort_unstable();
        ends.sort_unstable();
        let (mut begun, mut ended) = (0, 0);
        let values = std::iter::from_fn(|| {
            let end = ends.get(ended)?;
            let time = begins.get(begun).map_or(*end, |begin| *begin.min(end));
            begun += begins[begun..].iter().take_while(|begin| **begin == time).count();
            ended += ends[ended..].iter().take_while(|end| **end == time).count();
            Some((time, Value::whole((begun - ended) as i64)))
        });
        let end = ends.last().copied().unwrap_or(0);
        rowed.count(group, "queue depth".to_string(), Steps::of(values, end));
    }
}

/// Name and details of a process.
fn named(pid: i64, session: Option<&SessionInfo>) -> (String, String) {
    let command = session.and_then(SessionInfo::command).unwrap_or_default();
    let program = command.split_whitespace().next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    let mut label = if program.is_empty() { "process".to_string() } else { program.to_string() };
    label = rpd_postprocess::text::shorten(&label, COMMAND_WIDTH).into();
    if let Some(rank) = session.and_then(SessionInfo::rank) {
        label = format!("rank {rank}: {label}");
    }
    (format!("{label} {pid}"), command.to_string())
}
