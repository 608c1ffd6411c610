//! Reading a trace: each row once, into memory. What is read can be read on when the file has grown.
//!
//! A recorder gives a call its id when it begins and writes its row when it has ended, so rows appear between others. What is not there yet is
//! therefore known by its ids, not by where the last row was.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, bail};
use rpd_postprocess::check::are_sound;
use rpd_postprocess::trace::has_table;
use rpd_schema::text::{shown, text_of};
use rpd_schema::{Processes, SessionInfo, Version, session_fact};
use rusqlite::{Connection, Row as SqlRow};
use rustc_hash::FxHashMap;

use crate::counters::Value;
use crate::names::{Name, NameReader};
use crate::packed::PackedRows;
use crate::reads::{Read, Reads};
use crate::recording::with_processes;

/// Rows between two looks at who waits.
const STEP: u64 = 1 << 14;

/// Blocks that are told apart at most: a file of another writer may have an id in each.
const MOST_BLOCKS: usize = 1024;

/// Ids that lie in one row of each other: those of the calls of a session, those of its markers.
const BLOCK: u32 = 31;

/// Gaps between ids that are longer than this are looked into whenever the file has grown.
const LONG_GAP: i64 = 1 << 20;

/// How many of the shorter gaps of a table are looked into at once; the next look goes on behind them.
const GAPS: usize = 2048;

/// `looked_to` of a table whose short gaps this round has all looked into.
const DONE: i64 = i64::MAX;

/// Parts of a table that are read first, so that there is a rough picture.
const PARTS: i64 = 64;

/// Rows of each.
const ROWS_OF_PART: i64 = 1024;

/// Tables with fewer rows are read as fast as parts of them.
const MANY_ROWS: u64 = 300_000;

/// How far the reading has come.
#[derive(Debug, Default)]
pub struct Progress {
    /// Rows that are read.
    pub rows: AtomicU64,
    /// Rows that there are, about.
    pub of: AtomicU64,
}

/// A thread: process id, first session of the process, thread id.
pub(crate) type Thread = (i64, i64, i64);
/// A queue: GPU, queue.
pub(crate) type Queue = (i64, i64);
/// Type and number of a device, and what a sensor of it reads.
pub(crate) type SensorKey = (String, i64, String);
/// What a sensor read: begin and end, absolute, and the value.
pub(crate) type Reading = (i64, i64, Value);

/// What was read of a trace.
#[derive(Debug, Clone, Default)]
pub struct Gathered {
    /// Calls and markers by id.
    pub(crate) calls: Reads,
    /// Operations by id.
    pub(crate) ops: Reads,
    /// Pairs of ids of a call and its operation.
    pub(crate) links: PackedRows<2>,
    /// What sensors read.
    pub(crate) sensors: BTreeMap<SensorKey, Vec<Reading>>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) queues: Vec<Queue>,
    pub(crate) names: Vec<Name>,
    pub(crate) sessions: Vec<SessionInfo>,
    /// The first sessions of the processes that they are of.
    pub(crate) first_sessions: Vec<i64>,
    /// Names of the GPUs by number.
    pub(crate) gpus: BTreeMap<i64, String>,
    pub(crate) lost: Vec<(String, u64)>,
    pub(crate) launches_without_op: u64,
    pub(crate) impossible: u64,
    pub(crate) no_numbers: u64,
    pub(crate) file: String,
    pub(crate) bytes: u64,
    pub(crate) schema: String,
}

impl Gathered {
    /// Keeps the calls and operations with ids that are wanted, and of each value of a sensor the part of its time that is; a sensor is told
    /// by the GPU that it is of.
    pub fn retain(
        &mut self,
        is_call: impl Fn(i64) -> bool,
        is_op: impl Fn(i64) -> bool,
        sensed: impl Fn(Option<i64>, (i64, i64)) -> Option<(i64, i64)>,
    ) {
        self.calls.retain(|read| is_call(read.id));
        self.ops.retain(|read| is_op(read.id));
        for ((device_type, device, _), values) in &mut self.sensors {
            let gpu = (device_type == "gpu").then_some(*device);
            values.retain_mut(|(start, end, _)| match sensed(gpu, (*start, *end)) {
                Some(times) => {
                    (*start, *end) = times;
                    true
                }
                None => false,
            });
        }
        self.sensors.retain(|_, values| !values.is_empty());
    }
}

/// Numbers for what tracks are of, in the order of their first rows.
struct Numbers<K> {
    of: FxHashMap<K, u32>,
    last: Option<(K, u32)>,
}

impl<K: Copy + Eq + std::hash::Hash> Numbers<K> {
    fn new() -> Numbers<K> {
        Numbers { of: FxHashMap::default(), last: None }
    }

    fn number(&mut self, keys: &mut Vec<K>, key: K) -> u32 {
        if let Some((_, number)) = self.last.filter(|(last, _)| *last == key) {
            return number;
        }
        let number = *self.of.entry(key).or_insert_with(|| {
            keys.push(key);
            keys.len() as u32 - 1
        });
        self.last = Some((key, number));
        number
    }
}

/// A table that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Table {
    Calls,
    Ops,
    Links,
    Sensors,
}

impl Table {
    /// All, in the order in which they are read: what a row refers to is read behind it where the file grows meanwhile.
    const ALL: [Table; 4] = [Table::Links, Table::Ops, Table::Calls, Table::Sensors];

    fn name(self) -> &'static str {
        match self {
            Table::Calls => "rocpd_api",
            Table::Ops => "rocpd_op",
            Table::Links => "rocpd_api_ops",
            Table::Sensors => "rocpd_monitor",
        }
    }

    fn has_id(self) -> bool {
        matches!(self, Table::Calls | Table::Ops)
    }

    /// The columns of a row behind its id.
    fn columns(self) -> String {
        match self {
            Table::Calls => "pid, tid, start, \"end\", apiName_id, args_id".to_string(),
            Table::Ops => "gpuId, queueId, start, \"end\", description_id, opType_id".to_string(),
            Table::Links => "api_id, op_id".to_string(),
            Table::Sensors => format!(
                "deviceId, start, \"end\", {}, {}, {}",
                shown("deviceType"),
                shown("monitorType"),
                shown("value")
            ),
        }
    }

    /// All rows. Those of links and sensors of any writer need no id.
    fn all(self) -> String {
        let (name, columns) = (self.name(), self.columns());
        match self.has_id() {
            true => format!("SELECT id, {columns} FROM {name} ORDER BY id"),
            false => format!("SELECT NULL, {columns} FROM {name}"),
        }
    }

    /// Rows with an id from ?1 to ?2, at most ?3 of them.
    fn part(self) -> String {
        let (name, columns) = (self.name(), self.columns());
        format!("SELECT id, {columns} FROM {name} WHERE id >= ?1 AND id <= ?2 ORDER BY id LIMIT ?3")
    }
}

/// Ids from one to another.
type Span = (i64, i64);

/// All ids there can be.
const EVERY: Span = (i64::MIN, i64::MAX);

/// Reads one trace.
pub struct Gatherer<'a> {
    trace: &'a Connection,
    file: PathBuf,
    names: NameReader<'a>,
    processes: Processes,
    threads: Numbers<Thread>,
    queues: Numbers<Queue>,
    gathered: Gathered,
    /// Ids of each table that no row was found for yet.
    unseen: [Vec<Span>; 4],
    /// A round of looks is into all short gaps of each table, once. From this id on they are still to be looked into.
    looked_to: [i64; 4],
    rows: u64,
    last_sensor: Option<SensorKey>,
    progress: &'a Progress,
}

fn integer(row: &SqlRow<'_>, column: usize) -> Option<i64> {
    row.get_ref(column).ok().and_then(|value| value.as_i64().ok())
}

impl<'a> Gatherer<'a> {
    /// One of the trace `file`, which is open.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(
        file: &Path,
        (trace, version): (&'a Connection, Version),
        progress: &'a Progress,
    ) -> Result<Gatherer<'a>> {
        trace.execute_batch("PRAGMA cache_size = -4096")?;
        let gathered = Gathered {
            file: file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned(),
            schema: version.to_string(),
            ..Gathered::default()
        };
        Ok(Gatherer {
            trace,
            file: file.to_path_buf(),
            names: NameReader::of(trace, version)?,
            processes: Processes::of(trace)?,
            threads: Numbers::new(),
            queues: Numbers::new(),
            gathered,
            unseen: [const { Vec::new() }; 4].map(|_: Vec<Span>| vec![EVERY]),
            looked_to: [DONE; 4],
            rows: 0,
            last_sensor: None,
            progress,
        })
    }

    /// What was read so far.
    ///
    /// # Errors
    /// When what the trace says of its sessions cannot be read.
    pub fn gathered(&mut self) -> Result<&Gathered> {
        self.look()?;
        Ok(&self.gathered)
    }

    /// What was read; nothing is read behind that.
    ///
    /// # Errors
    /// When what the trace says of its sessions cannot be read.
    pub fn into_gathered(mut self) -> Result<Gathered> {
        self.look()?;
        Ok(self.gathered)
    }

    /// Reads what the trace says of itself, and puts rows in the order of their ids.
    fn look(&mut self) -> Result<()> {
        let gathered = &mut self.gathered;
        gathered.calls.sort();
        gathered.ops.sort();
        self.names.add_to(&mut gathered.names);
        gathered.sessions = rpd_schema::sessions(self.trace)?;
        gathered.first_sessions = with_processes(&gathered.sessions, &self.processes);
        gathered.gpus = rpd_schema::gpus(self.trace)?
            .into_iter()
            .filter_map(|gpu| Some((i64::from(gpu.gpu), gpu.get(session_fact::GPU_NAME)?.to_string())))
            .collect();
        gathered.lost = rpd_schema::lost(self.trace)?.into_iter().collect();
        gathered.launches_without_op = rpd_schema::launches_without_op(self.trace)?;
        gathered.bytes = self.file.metadata().map(|metadata| metadata.len()).unwrap_or(0);
        Ok(())
    }

    /// How many rows there are, about, and whether these are so many that a part of them is worth showing first.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn expect(&mut self) -> Result<bool> {
        let mut rows = 0;
        for table in Table::ALL {
            for (first, last) in self.blocks(table)? {
                rows += first.abs_diff(last).saturating_add(1);
            }
        }
        self.progress.of.store(rows, Ordering::Relaxed);
        Ok(rows > MANY_ROWS)
    }

    /// Whether the rows of a table are found by their ids, as those of all recorders are, without a look at the others.
    fn is_found_by_id(&self, table: Table) -> rusqlite::Result<bool> {
        let query = "SELECT count(*) FROM pragma_table_info(?1) WHERE name = 'id' AND pk = 1 AND upper(type) = 'INTEGER'";
        self.trace.query_row(query, [table.name()], |row| Ok(row.get::<_, i64>(0)? == 1))
    }

    /// First and last id of each block of a table; of one that has no such ids nothing.
    fn blocks(&self, table: Table) -> Result<Vec<Span>> {
        let mut blocks = Vec::new();
        if !self.is_found_by_id(table)? {
            return Ok(blocks);
        }
        let name = table.name();
        let mut first = self.trace.prepare(&format!("SELECT min(id) FROM {name} WHERE id > ?1"))?;
        let mut last = self.trace.prepare(&format!("SELECT max(id) FROM {name} WHERE id <= ?1"))?;
        let mut at = i64::MIN;
        while let Some(begin) = first.query_row([at], |row| Ok(integer(row, 0)))? {
            if blocks.len() == MOST_BLOCKS {
                break;
            }
            at = begin | ((1 << BLOCK) - 1);
            let end = last.query_row([at], |row| Ok(integer(row, 0)))?.unwrap_or(begin);
            blocks.push((begin, end.max(begin)));
        }
        Ok(blocks)
    }

    /// Reads a few rows of every part of the trace.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn sample(&mut self) -> Result<()> {
        for table in [Table::Ops, Table::Calls, Table::Links] {
            let blocks = self.blocks(table)?;
            let all: u64 = blocks.iter().map(|(first, last)| first.abs_diff(*last)).sum();
            for (first, last) in blocks {
                let length = last - first;
                // A block has as many parts as it has rows of the table.
                let parts = (i128::from(PARTS) * i128::from(length) / i128::from(all.max(1))) as i64 + 1;
                let apart = length / parts;
                for part in 0..=parts {
                    let from = if part == parts { last - ROWS_OF_PART } else { first + part * apart };
                    self.take(table, (from.max(first), from.saturating_add(ROWS_OF_PART).min(last)))?;
                }
            }
        }
        Ok(())
    }

    /// Reads what has an id in a span and was not seen.
    fn take(&mut self, table: Table, (from, to): Span) -> Result<()> {
        let mut left = Vec::new();
        for (low, high) in std::mem::take(&mut self.unseen[table as usize]) {
            let (begin, end) = (low.max(from), high.min(to));
            if begin > end {
                left.push((low, high));
                continue;
            }
            if low < begin {
                left.push((low, begin - 1));
            }
            self.part(table, (begin, end), None, &mut Vec::new())?;
            if end < high {
                left.push((end + 1, high));
            }
        }
        self.unseen[table as usize] = left;
        Ok(())
    }

    /// Reads all that is left.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn rest(&mut self) -> Result<()> {
        self.gathered.calls.hold();
        self.gathered.ops.hold();
        for table in Table::ALL {
            if !has_table(self.trace, table.name())? {
                continue;
            }
            let unseen = std::mem::take(&mut self.unseen[table as usize]);
            if unseen == [EVERY] {
                let mut rows = self.trace.prepare(&table.all())?;
                let mut rows = rows.query([])?;
                while let Some(row) = rows.next()? {
                    self.row(table, row)?;
                }
                continue;
            }
            for span in unseen {
                self.part(table, span, None, &mut Vec::new())?;
            }
        }
        Ok(())
    }

    /// Reads what has come since the last time: at most `most` rows in one statement, and after each `pause` is called, while the trace is
    /// not held. A look is at some thousand gaps between the ids that were read, the next one at those behind them. Gives how many rows.
    ///
    /// # Errors
    /// When the trace cannot be read; what was read until then stays, and the rest is read the next time.
    pub fn grow(&mut self, most: u32, pause: &mut dyn FnMut()) -> Result<u64> {
        self.processes = Processes::of(self.trace)?;
        let before = self.rows;
        if self.has_looked_everywhere() {
            self.looked_to = [i64::MIN; 4];
        }
        for table in Table::ALL {
            if !has_table(self.trace, table.name())? {
                self.looked_to[table as usize] = DONE;
                continue;
            }
            if !self.is_found_by_id(table)? {
                bail!(
                    "{} has no ids by which new rows are found: this trace cannot be followed",
                    table.name()
                );
            }
            let unseen = std::mem::take(&mut self.unseen[table as usize]);
            let mut left = Vec::with_capacity(unseen.len());
            let mut failed = None;
            let (mut gaps, mut later) = (0, None);
            for (low, high) in unseen {
                let is_short = high.saturating_sub(low) < LONG_GAP;
                let is_next = is_short && low >= self.looked_to[table as usize];
                let is_due = !is_short || is_next && gaps < GAPS;
                gaps += usize::from(is_next);
                if is_next && !is_due {
                    later = later.or(Some(low));
                }
                let mut from = Some(low);
                while let Some(low) = from.filter(|_| is_due && failed.is_none()) {
                    match self.part(table, (low, high), Some(most), &mut left) {
                        Ok((rows, next)) => {
                            from = next;
                            if rows < u64::from(most) {
                                break;
                            }
                            pause();
                        }
                        Err(error) => failed = Some(error),
                    }
                }
                left.extend(from.map(|low| (low, high)));
            }
            self.unseen[table as usize] = left;
            if let Some(error) = failed {
                return Err(error);
            }
            self.looked_to[table as usize] = later.unwrap_or(DONE);
        }
        Ok(self.rows - before)
    }

    /// Whether a round of looks is done: the next one begins a new round. In the midst of one, [`Gatherer::grow`] may find rows without a change
    /// of the file.
    pub fn has_looked_everywhere(&self) -> bool {
        self.looked_to == [DONE; 4]
    }

    /// Reads rows with an id in a span, at most so many, and adds the gaps between their ids. Gives how many rows there were, and
    /// the id from which on there may be more.
    fn part(
        &mut self,
        table: Table,
        (from, to): Span,
        most: Option<u32>,
        gaps: &mut Vec<Span>,
    ) -> Result<(u64, Option<i64>)> {
        let mut rows = self.trace.prepare_cached(&table.part())?;
        let mut rows = rows.query((from, to, most.map_or(-1, i64::from)))?;
        let (mut count, mut expected) = (0, Some(from));
        while let Some(row) = rows.next()? {
            count += 1;
            self.row(table, row)?;
            let Some(id) = integer(row, 0) else { continue };
            if let Some(expected) = expected.filter(|expected| most.is_some() && id > *expected) {
                gaps.push((expected, id - 1));
            }
            expected = id.checked_add(1);
        }
        Ok((count, expected.filter(|expected| *expected <= to)))
    }

    fn row(&mut self, table: Table, row: &SqlRow<'_>) -> Result<()> {
        self.rows += 1;
        if self.rows.is_multiple_of(STEP) {
            self.progress.rows.store(self.rows, Ordering::Relaxed);
        }
        match table {
            Table::Calls => self.call(row),
            Table::Ops => self.op(row),
            Table::Links => {
                if let Some((call, op)) = integer(row, 1).zip(integer(row, 2)) {
                    self.gathered.links.push([call, op].map(i64::cast_unsigned));
                }
                Ok(())
            }
            Table::Sensors => {
                self.sensor(row);
                Ok(())
            }
        }
    }

    /// Begin and end of a row, if it can be; counts those that cannot.
    fn times(&mut self, row: &SqlRow<'_>, column: usize) -> Option<(i64, i64)> {
        let times = integer(row, column).zip(integer(row, column + 1)).filter(|times| are_sound(*times));
        self.gathered.impossible += u64::from(times.is_none());
        times
    }

    fn call(&mut self, row: &SqlRow<'_>) -> Result<()> {
        let (Some(id), Some(pid), Some(tid)) = (integer(row, 0), integer(row, 1), integer(row, 2)) else {
            self.gathered.impossible += 1;
            return Ok(());
        };
        let Some((start, end)) = self.times(row, 3) else { return Ok(()) };
        let text = |column| integer(row, column).unwrap_or(-1);
        let name = self.names.of_call(text(5), text(6))?;
        let thread = (pid, self.processes.of_row(id), tid);
        let track = self.threads.number(&mut self.gathered.threads, thread);
        self.gathered.calls.push(Read { id, start, duration: start.abs_diff(end), track, name });
        Ok(())
    }

    fn op(&mut self, row: &SqlRow<'_>) -> Result<()> {
        let (Some(id), Some(gpu), Some(queue)) = (integer(row, 0), integer(row, 1), integer(row, 2)) else {
            self.gathered.impossible += 1;
            return Ok(());
        };
        let Some((start, end)) = self.times(row, 3) else { return Ok(()) };
        let text = |column| integer(row, column).unwrap_or(-1);
        let name = self.names.of_op(text(5), text(6))?;
        let track = self.queues.number(&mut self.gathered.queues, (gpu, queue));
        self.gathered.ops.push(Read { id, start, duration: start.abs_diff(end), track, name });
        Ok(())
    }

    fn sensor(&mut self, row: &SqlRow<'_>) {
        let Some(device) = integer(row, 1) else {
            self.gathered.impossible += 1;
            return;
        };
        let Some((start, end)) = self.times(row, 2) else { return };
        let text = |column| row.get_ref(column).map(text_of).unwrap_or_default();
        let Some(value) = Value::of_text(&text(6)) else {
            self.gathered.no_numbers += 1;
            return;
        };
        let (device_type, sensor) = (text(4), text(5));
        let is_last = |key: &&SensorKey| (&*key.0, key.1, &*key.2) == (&*device_type, device, &*sensor);
        let key = match self.last_sensor.as_ref().filter(is_last) {
            Some(key) => key,
            None => self.last_sensor.insert((device_type.into_owned(), device, sensor.into_owned())),
        };
        match self.gathered.sensors.get_mut(key) {
            Some(values) => values.push((start, end, value)),
            None => drop(self.gathered.sensors.insert(key.clone(), vec![(start, end, value)])),
        }
    }
}
