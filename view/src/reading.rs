//! Reading a trace into a timeline: each row once, in the order of the file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use rpd_postprocess::check::{Outliers, are_sound};
use rpd_postprocess::trace::{self, has_table};
use rpd_schema::text::{shown, text_of};
use rpd_schema::{Processes, SessionInfo, Version, session_fact};
use rusqlite::{Connection, Row as SqlRow};
use rustc_hash::FxHashMap;

use crate::columns::{Busy, Columns, Raw};
use crate::counters::{Counter, Steps, Value};
use crate::lanes::Order;
use crate::links::Links;
use crate::names::NameReader;
use crate::pyramid::Pyramid;
use crate::timeline::{CounterTrack, Facts, Group, Row, Shown, Timeline, Track};

/// The page counts ns in floating-point numbers, which are exact up to here: 104 days.
const LONGEST_NS: u64 = 1 << 53;

/// Rows between two looks at who waits.
const STEP: u64 = 1 << 14;

/// Columns of a command in the name of its process.
const COMMAND_WIDTH: usize = 60;

/// Columns of the name of a sensor.
const SENSOR_WIDTH: usize = 40;

/// A sensor that is read longer than this before all else or behind it is far from it, ns: a day.
const FAR_NS: u64 = 86_400_000_000_000;

/// How far the reading has come.
#[derive(Debug, Default)]
pub struct Progress {
    /// Rows that are read.
    pub rows: AtomicU64,
    /// Rows that there are, about.
    pub of: AtomicU64,
}

/// A row of a queue or thread as the file has it; times are absolute.
struct Read {
    start: i64,
    duration: u64,
    track: u32,
    name: u32,
}

/// Numbers for what tracks are of, in the order of their first rows.
struct Numbers<K> {
    of: FxHashMap<K, u32>,
    keys: Vec<K>,
    last: Option<(K, u32)>,
}

impl<K: Copy + Eq + std::hash::Hash> Numbers<K> {
    fn new() -> Numbers<K> {
        Numbers { of: FxHashMap::default(), keys: Vec::new(), last: None }
    }

    fn number(&mut self, key: K) -> u32 {
        if let Some((_, number)) = self.last.filter(|(last, _)| *last == key) {
            return number;
        }
        let keys = &mut self.keys;
        let number = *self.of.entry(key).or_insert_with(|| {
            keys.push(key);
            keys.len() as u32 - 1
        });
        self.last = Some((key, number));
        number
    }

    /// The keys in their order, and the place of each number among them.
    fn sorted(&self) -> (Vec<K>, Vec<u32>)
    where
        K: Ord,
    {
        let mut order: Vec<u32> = (0..self.keys.len() as u32).collect();
        order.sort_unstable_by_key(|number| self.keys[*number as usize]);
        let mut place = vec![0; order.len()];
        for (at, number) in order.iter().enumerate() {
            place[*number as usize] = at as u32;
        }
        (order.into_iter().map(|number| self.keys[number as usize]).collect(), place)
    }
}

/// A thread: process id, first session of the process, thread id.
type Thread = (i64, i64, i64);
/// A queue: GPU, queue.
type Queue = (i64, i64);

/// Type and number of a device, and what a sensor of it reads.
type SensorKey = (String, i64, String);

/// What a sensor read: begin and end, absolute, and the value.
type Reading = (i64, i64, Value);

/// Where everything is on the page.
struct Rowed {
    groups: Vec<Group>,
    rows: Vec<Row>,
    row_of_lane: Vec<Option<u32>>,
}

/// Rows of one table.
#[derive(Default)]
struct Rows {
    rows: Vec<Read>,
    ids: Vec<i64>,
}

/// Reads the trace `file`, which is open.
///
/// # Errors
/// When it cannot be read, or has more than 4 billion events.
pub fn read(file: &Path, (trace, version): (&Connection, Version), progress: &Progress) -> Result<Timeline> {
    trace.execute_batch("PRAGMA cache_size = -4096; BEGIN")?;
    let read = Reader::of(trace, version, progress).and_then(|reader| reader.read(file));
    trace.execute_batch("ROLLBACK")?;
    read.with_context(|| format!("cannot read {}", file.display()))
}

struct Reader<'a> {
    trace: &'a Connection,
    version: Version,
    progress: &'a Progress,
    names: NameReader<'a>,
    outliers: Outliers,
    first_ns: i64,
    impossible: u64,
    far: u64,
    no_numbers: u64,
    last_ns: i64,
    rows: u64,
}

fn integer(row: &SqlRow<'_>, column: usize) -> Option<i64> {
    row.get_ref(column).ok().and_then(|value| value.as_i64().ok())
}

impl<'a> Reader<'a> {
    fn of(trace: &'a Connection, version: Version, progress: &'a Progress) -> Result<Reader<'a>> {
        let names = NameReader::of(trace, version)?;
        let outliers = Outliers::new();
        Ok(Reader {
            trace,
            version,
            progress,
            names,
            outliers,
            first_ns: i64::MAX,
            impossible: 0,
            far: 0,
            no_numbers: 0,
            last_ns: i64::MIN,
            rows: 0,
        })
    }

    fn step(&mut self) {
        self.rows += 1;
        if self.rows.is_multiple_of(STEP) {
            self.progress.rows.store(self.rows, Ordering::Relaxed);
        }
    }

    /// Begin and end of a row with these ids and times, if it is shown; counts what it is not shown for.
    fn times(&mut self, row: &SqlRow<'_>, column: usize, has_ids: bool) -> Result<Option<(i64, i64)>> {
        let times = integer(row, column).zip(integer(row, column + 1));
        let Some(times) = times.filter(|times| has_ids && are_sound(*times)) else {
            self.impossible += 1;
            return Ok(None);
        };
        if self.outliers.is_far(self.trace, times)? {
            self.far += 1;
            return Ok(None);
        }
        Ok(Some(times))
    }

    fn expect(&self) -> Result<()> {
        let mut rows = 0;
        for table in ["rocpd_api", "rocpd_op", "rocpd_api_ops", "rocpd_monitor"] {
            if has_table(self.trace, table)? {
                // The greatest row numbers of the sessions would be as good, but not for files of one.
                rows += trace::row_count(self.trace, table)?;
            }
        }
        self.progress.of.store(rows, Ordering::Relaxed);
        Ok(())
    }

    fn calls(&mut self, threads: &mut Numbers<Thread>) -> Result<Rows> {
        let mut found = Rows::default();
        if !has_table(self.trace, "rocpd_api")? {
            return Ok(found);
        }
        let processes = Processes::of(self.trace)?;
        let query = "SELECT id, pid, tid, start, \"end\", apiName_id, args_id FROM rocpd_api ORDER BY id";
        let mut rows = self.trace.prepare(query)?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            self.step();
            let ids = (integer(row, 0), integer(row, 1), integer(row, 2));
            let known = if let (Some(id), Some(pid), Some(tid)) = ids { Some((id, pid, tid)) } else { None };
            let times = self.times(row, 3, known.is_some())?;
            let Some(((id, pid, tid), (start, end))) = known.zip(times) else { continue };
            let text = |column| integer(row, column).unwrap_or(-1);
            let name = self.names.of_call(text(5), text(6))?;
            let track = threads.number((pid, processes.of_row(id), tid));
            self.first_ns = self.first_ns.min(start);
            self.last_ns = self.last_ns.max(end);
            let duration = start.abs_diff(end);
            found.rows.push(Read { start, duration, track, name });
            found.ids.push(id);
        }
        Ok(found)
    }

    fn ops(&mut self, queues: &mut Numbers<Queue>) -> Result<Rows> {
        let mut found = Rows::default();
        if !has_table(self.trace, "rocpd_op")? {
            return Ok(found);
        }
        let query =
            "SELECT id, gpuId, queueId, start, \"end\", description_id, opType_id FROM rocpd_op ORDER BY id";
        let mut rows = self.trace.prepare(query)?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            self.step();
            let ids = (integer(row, 0), integer(row, 1), integer(row, 2));
            let known =
                if let (Some(id), Some(gpu), Some(queue)) = ids { Some((id, gpu, queue)) } else { None };
            let times = self.times(row, 3, known.is_some())?;
            let Some(((id, gpu, queue), (start, end))) = known.zip(times) else { continue };
            let text = |column| integer(row, column).unwrap_or(-1);
            let name = self.names.of_op(text(5), text(6))?;
            let track = queues.number((gpu, queue));
            self.first_ns = self.first_ns.min(start);
            self.last_ns = self.last_ns.max(end);
            let duration = start.abs_diff(end);
            found.rows.push(Read { start, duration, track, name });
            found.ids.push(id);
        }
        Ok(found)
    }

    /// What sensors read, by sensor.
    fn sensors(&mut self) -> Result<BTreeMap<SensorKey, Vec<Reading>>> {
        let mut found: BTreeMap<SensorKey, Vec<Reading>> = BTreeMap::new();
        if !has_table(self.trace, "rocpd_monitor")? {
            return Ok(found);
        }
        // Sensors alone have no others to be far from.
        let near = (self.first_ns <= self.last_ns).then_some((self.first_ns, self.last_ns));
        let query = format!(
            "SELECT deviceId, start, \"end\", {}, {}, {} FROM rocpd_monitor",
            shown("deviceType"),
            shown("monitorType"),
            shown("value")
        );
        let mut rows = self.trace.prepare(&query)?;
        let mut rows = rows.query([])?;
        let mut last: Option<SensorKey> = None;
        while let Some(row) = rows.next()? {
            self.step();
            let device = integer(row, 0);
            let times = self.times(row, 1, device.is_some())?;
            let Some((device, (start, end))) = device.zip(times) else { continue };
            if near.is_some_and(|(first, last)| {
                first.saturating_sub_unsigned(FAR_NS) > start || last.saturating_add_unsigned(FAR_NS) < end
            }) {
                self.far += 1;
                continue;
            }
            let Some(value) = Value::of_text(&text_of(row.get_ref(5)?)) else {
                self.no_numbers += 1;
                continue;
            };
            let (device_type, sensor) = (text_of(row.get_ref(3)?), text_of(row.get_ref(4)?));
            let is_last = |key: &&SensorKey| (&*key.0, key.1, &*key.2) == (&*device_type, device, &*sensor);
            let key = match last.as_ref().filter(is_last) {
                Some(key) => key,
                None => last.insert((device_type.into_owned(), device, sensor.into_owned())),
            };
            match found.get_mut(key) {
                Some(values) => values.push((start, end, value)),
                None => drop(found.insert(key.clone(), vec![(start, end, value)])),
            }
            self.first_ns = self.first_ns.min(start);
        }
        Ok(found)
    }

    /// Pairs of events that `rocpd_api_ops` links.
    fn links(&mut self, ids: &[i64], event_of: &[u32], calls: usize) -> Result<Links> {
        let mut pairs = Vec::new();
        if has_table(self.trace, "rocpd_api_ops")? {
            let event = |part: std::ops::Range<usize>, id: i64| {
                let at = ids[part.clone()].binary_search(&id).ok()?;
                Some(event_of[part.start + at]).filter(|event| *event != u32::MAX)
            };
            let mut rows = self.trace.prepare("SELECT api_id, op_id FROM rocpd_api_ops")?;
            let mut rows = rows.query([])?;
            while let Some(row) = rows.next()? {
                self.step();
                let ends = integer(row, 0).zip(integer(row, 1));
                let pair =
                    ends.and_then(|(call, op)| Some((event(0..calls, call)?, event(calls..ids.len(), op)?)));
                pairs.extend(pair);
            }
        }
        Ok(Links::of(pairs))
    }

    fn read(mut self, file: &Path) -> Result<Timeline> {
        self.expect()?;
        let (mut threads, mut queues) = (Numbers::new(), Numbers::new());
        let Rows { rows: calls, mut ids } = self.calls(&mut threads)?;
        let Rows { rows: ops, ids: op_ids } = self.ops(&mut queues)?;
        let sensors = self.sensors()?;
        let call_count = calls.len();
        ids.extend(op_ids);
        if ids.len() >= u32::MAX as usize {
            bail!("it has more than {} events; rpd trim makes a trace of a part of it", u32::MAX);
        }
        let (threads, thread_places) = threads.sorted();
        let (queues, queue_places) = queues.sorted();
        let queues_from = threads.len() as u32;
        let first_ns = if self.first_ns == i64::MAX { 0 } else { self.first_ns };
        let mut raw = Vec::with_capacity(ids.len());
        let (mut span_ns, mut shown) = (0, [0, 0]);
        for (at, read) in calls.iter().chain(&ops).enumerate() {
            let start = read.start.abs_diff(first_ns);
            let end = start.saturating_add(read.duration);
            if end >= LONGEST_NS {
                self.impossible += 1;
                continue;
            }
            let is_op = at >= call_count;
            let track = match is_op {
                false => thread_places[read.track as usize],
                true => queues_from + queue_places[read.track as usize],
            };
            shown[usize::from(is_op)] += 1;
            span_ns = span_ns.max(end);
            raw.push(Raw { start, duration: read.duration, track, name: read.name, id: at as u32 });
        }
        drop((calls, ops));
        let mut order = vec![Order::Nested; threads.len()];
        order.resize(threads.len() + queues.len(), Order::FirstFree);
        let (columns, event_of) = Columns::of(raw, &ids, &order);
        let links = self.links(&ids, &event_of, call_count)?;
        let by_id = |events: &[u32]| events.iter().copied().filter(|event| *event != u32::MAX).collect();
        let (calls_by_id, ops_by_id) = (by_id(&event_of[..call_count]), by_id(&event_of[call_count..]));
        drop((ids, event_of));
        let mut rowed = self.groups(&columns, &threads, &queues)?;
        queue_depths(&mut rowed, &columns, &links);
        for (sensor, values) in sensors {
            span_ns = span_ns.max(self.sensor(&mut rowed, sensor, values, first_ns));
        }
        let Rowed { mut groups, rows, row_of_lane } = rowed;
        // Processes, GPUs that were used, other GPUs, what else has sensors.
        groups.sort_by_key(|group| {
            (group.device.is_some(), !group.is_gpu, group.tracks.is_empty(), group.device)
        });
        let lost = rpd_schema::lost(self.trace)?;
        let facts = Facts {
            file: file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned(),
            bytes: file.metadata().map(|metadata| metadata.len()).unwrap_or(0),
            schema: self.version.to_string(),
            first_ns: first_ns.to_string(),
            span_ns,
            calls: shown[0],
            ops: shown[1],
            sessions: rpd_schema::sessions(self.trace)?.len() as u64,
            lost: lost.into_iter().collect(),
            launches_without_op: rpd_schema::launches_without_op(self.trace)?,
            impossible: self.impossible,
            far: self.far,
            no_numbers: self.no_numbers,
        };
        let names = self.names.names();
        Ok(Timeline {
            facts,
            groups,
            queues_from,
            columns,
            rows,
            row_of_lane,
            links,
            names,
            calls_by_id,
            ops_by_id,
        })
    }

    /// Adds a sensor below its device. Gives the time up to which it is read, ns since the trace's begin.
    fn sensor(
        &mut self,
        rowed: &mut Rowed,
        (device_type, device, sensor): SensorKey,
        mut values: Vec<Reading>,
        first_ns: i64,
    ) -> u64 {
        let before = values.len();
        values.retain(|(_, end, _)| end.abs_diff(first_ns) < LONGEST_NS);
        self.impossible += (before - values.len()) as u64;
        values.sort_by_key(|(start, end, _)| (*start, *end));
        let end = values.iter().map(|(_, end, _)| end.abs_diff(first_ns)).max().unwrap_or(0);
        let values = values.into_iter().map(|(start, _, value)| (start.abs_diff(first_ns), value));
        let is_gpu = device_type == "gpu";
        let device_type = rpd_postprocess::text::shorten(&device_type, SENSOR_WIDTH);
        let key = if is_gpu { format!("g{device}") } else { format!("d{device_type}.{device}") };
        let group = rowed.groups.iter().position(|group| group.key == key).unwrap_or_else(|| {
            let busy = Busy::default();
            rowed.rows.push(Row { pyramid: Pyramid::of(&busy), shown: Shown::Busy(busy) });
            rowed.groups.push(Group {
                key,
                label: if is_gpu { format!("GPU {device}") } else { format!("{device_type} {device}") },
                detail: String::new(),
                is_gpu,
                device: Some(device),
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

    /// Processes and GPUs with their tracks, and the rows of them all.
    fn groups(&self, columns: &Columns, threads: &[Thread], queues: &[Queue]) -> Result<Rowed> {
        let mut rows = Vec::new();
        let mut row_of_lane = vec![None; columns.lanes().len()];
        let mut lanes_of: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (number, lane) in columns.lanes().iter().enumerate() {
            lanes_of.entry(lane.track).or_default().push(number);
            if !lane.is_overfull {
                row_of_lane[number] = Some(rows.len() as u32);
                let pyramid = Pyramid::of(&columns.of_lane(lane));
                rows.push(Row { shown: Shown::Lane(number), pyramid });
            }
        }
        let busy_row = |rows: &mut Vec<Row>, lanes: &[usize]| match lanes {
            // What is busy in one lane is what that shows.
            [only] => row_of_lane[*only].unwrap_or(0),
            _ => {
                let busy = Busy::of(columns, lanes.iter().map(|lane| &columns.lanes()[*lane]));
                rows.push(Row { pyramid: Pyramid::of(&busy), shown: Shown::Busy(busy) });
                rows.len() as u32 - 1
            }
        };
        let sessions: BTreeMap<i64, SessionInfo> = rpd_schema::sessions(self.trace)?
            .into_iter()
            .map(|session| (i64::from(session.session), session))
            .collect();
        let mut hosts: Vec<&str> = sessions.values().filter_map(SessionInfo::host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let has_hosts = hosts.len() > 1;
        let gpus: BTreeMap<i64, String> = rpd_schema::gpus(self.trace)?
            .into_iter()
            .filter_map(|gpu| Some((i64::from(gpu.gpu), gpu.get(session_fact::GPU_NAME)?.to_string())))
            .collect();
        let mut groups = Vec::new();
        let threads = threads.iter().map(|thread| (*thread, false));
        let queues = queues.iter().map(|(gpu, queue)| ((*gpu, 0, *queue), true));
        let tracks: Vec<_> = (0u32..).zip(threads.chain(queues)).collect();
        // A process's threads follow each other, and a GPU's queues.
        for group in tracks.chunk_by(|(_, (one, of)), (_, (other, as_well))| {
            (one.0, one.1, of) == (other.0, other.1, as_well)
        }) {
            let (_, ((first, second, _), is_gpu)) = group[0];
            let mut all = Vec::new();
            let mut made = Vec::new();
            for (number, ((_, _, id), _)) in group {
                let Some(lanes) = lanes_of.get(number) else { continue };
                let events = |lane: &usize| columns.lanes()[*lane].events.len() as u64;
                let overfull = |lane: &&usize| columns.lanes()[**lane].is_overfull;
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
                    key,
                    label,
                    rows: lanes.iter().filter_map(|lane| row_of_lane[*lane]).collect(),
                    busy: busy_row(&mut rows, lanes),
                    events: lanes.iter().map(events).sum(),
                    not_shown: lanes.iter().filter(overfull).map(events).sum(),
                });
                all.extend_from_slice(lanes);
            }
            let Some(track) = made.first() else { continue };
            let busy = if made.len() == 1 { track.busy } else { busy_row(&mut rows, &all) };
            let session = sessions.get(&second).filter(|_| !is_gpu);
            let (label, detail) = match is_gpu {
                true => (format!("GPU {first}"), gpus.get(&first).cloned().unwrap_or_default()),
                false => named(first, session),
            };
            groups.push(Group {
                key: if is_gpu { format!("g{first}") } else { format!("p{first}.{second}") },
                label,
                detail,
                is_gpu,
                device: is_gpu.then_some(first),
                host: session.and_then(SessionInfo::host).filter(|_| has_hosts).map(String::from),
                tracks: made,
                counters: Vec::new(),
                busy,
            });
        }
        Ok(Rowed { groups, rows, row_of_lane })
    }
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
        });
        let counter = Box::new(Counter::of(steps));
        self.rows.push(Row { shown: Shown::Counter(counter), pyramid: Pyramid::default() });
    }
}

/// Adds to each GPU how many operations wait for it or run there: from the begin of their call to their end. Where clocks disagree an
/// operation may have ended before its call: that never waited.
fn queue_depths(rowed: &mut Rowed, columns: &Columns, links: &Links) {
    let group_of: FxHashMap<usize, usize> = rowed
        .groups
        .iter()
        .enumerate()
        .filter(|(_, group)| group.is_gpu)
        .flat_map(|(number, group)| {
            group.tracks.iter().flat_map(|track| &track.rows).map(move |row| (number, *row))
        })
        .filter_map(|(number, row)| match rowed.rows[row as usize].shown {
            Shown::Lane(lane) => Some((columns.lanes()[lane].track as usize, number)),
            Shown::Busy(_) | Shown::Counter(_) => None,
        })
        .collect();
    let mut times: BTreeMap<usize, [Vec<u64>; 2]> = BTreeMap::new();
    let mut last: Option<(usize, usize)> = None;
    for (call, op) in links.pairs() {
        let lane = match last {
            Some((lane, _)) if columns.lanes()[lane].events.contains(op) => lane,
            _ => columns.lane_of(*op),
        };
        let group = match last.filter(|(of, _)| *of == lane) {
            Some((_, group)) => group,
            None => match group_of.get(&(columns.lanes()[lane].track as usize)) {
                Some(group) => *group,
                None => continue,
            },
        };
        last = Some((lane, group));
        let (begin, end) = (columns.times(*call).0, columns.times(*op).1);
        if begin <= end {
            let [begins, ends] = times.entry(group).or_default();
            begins.push(begin);
            ends.push(end);
        }
    }
    for (group, [mut begins, mut ends]) in times {
        begins.sort_unstable();
        ends.sort_unstable();
        let mut values = Vec::with_capacity(2 * ends.len());
        let (mut begun, mut ended) = (0, 0);
        while let Some(end) = ends.get(ended) {
            let time = begins.get(begun).map_or(*end, |begin| *begin.min(end));
            begun += begins[begun..].iter().take_while(|begin| **begin == time).count();
            ended += ends[ended..].iter().take_while(|end| **end == time).count();
            values.push((time, Value::whole((begun - ended) as i64)));
        }
        let end = ends.last().copied().unwrap_or(0);
        rowed.count(group, "queue depth".to_string(), Steps::of(values.into_iter(), end));
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
