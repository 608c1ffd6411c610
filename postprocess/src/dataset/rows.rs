//! The rows of a rank on their way from the tables of the trace into files.
//!
//! A block of rows is read from one table; what other tables say of these rows is read by their ids, which are near each other. So the
//! trace is read once from begin to end, and memory does not grow with it.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use arrow_array::ArrayRef;
use rusqlite::Row;

use super::cells::{Cells, From, Integers, Words};
use super::files::Files;
use super::links::Links;
use super::source::{RankPart, TraceSource};
use super::table::{API, COPY, GPU, GROUP_ROWS, KERNEL, MONITOR, OP, SESSION, Table};
use super::texts::{BARRIER_TYPE, ROOM, TextsById, id, runs, word};
use crate::check::rule::is_possible_time;
use crate::notes::{Notes, look};
use crate::trace::barriers::barriers;
use crate::trace::ids::Ids;
use crate::trace::layout::quote;

/// A column of a table of the trace, and what becomes of it.
pub(super) type Read = (&'static str, From);

use From::{Gpu, Integer, Process, TextId, Time, Word};

pub(super) const OF_OP: [Read; 8] = [
    ("id", Integer),
    ("gpuId", Gpu),
    ("queueId", Gpu),
    ("sequenceId", Integer),
    ("start", Time),
    ("end", Time),
    ("description_id", TextId),
    ("opType_id", TextId),
];

const OF_KERNELAPI: [Read; 11] = [
    ("api_ptr_id", Integer),
    ("stream", Word),
    ("gridX", Integer),
    ("gridY", Integer),
    ("gridZ", Integer),
    ("workgroupX", Integer),
    ("workgroupY", Integer),
    ("workgroupZ", Integer),
    ("groupSegmentSize", Integer),
    ("privateSegmentSize", Integer),
    ("kernelName_id", TextId),
];

pub(super) const OF_API: [Read; 9] = [
    ("id", Integer),
    ("pid", Process),
    ("tid", Process),
    ("start", Time),
    ("end", Time),
    ("apiName_id", TextId),
    ("args_id", TextId),
    ("domain_id", TextId),
    ("category_id", TextId),
];

const OF_LIBRARYCALL: [Read; 3] = [("api_ptr_id", Integer), ("domain_id", TextId), ("category_id", TextId)];

const OF_COPYAPI: [Read; 12] = [
    ("api_ptr_id", Integer),
    ("stream", Word),
    ("size", Integer),
    ("width", Integer),
    ("height", Integer),
    ("kind", Integer),
    ("dst", Word),
    ("src", Word),
    ("dstDevice", Gpu),
    ("srcDevice", Gpu),
    ("sync", Integer),
    ("pinned", Integer),
];

pub(super) const OF_MONITOR: [Read; 7] = [
    ("id", Integer),
    ("deviceType", Word),
    ("deviceId", Gpu),
    ("monitorType", Word),
    ("start", Time),
    ("end", Time),
    ("value", Word),
];

/// Rows of a table in memory.
struct Block<'a> {
    table: &'static str,
    from: &'a [Read],
    cells: Vec<Cells>,
    rows: usize,
}

impl<'a> Block<'a> {
    fn new(table: &'static str, from: &'a [Read]) -> Block<'a> {
        let cells = from.iter().map(|(_, from)| Cells::new(*from)).collect();
        Block { table, from, cells, rows: 0 }
    }

    /// Adds a row of the statement of [`Copy::query`]. What does not fit a column is counted in `odd`.
    #[inline]
    fn add(&mut self, row: &Row<'_>, offset: i64, odd: &mut Odd) -> rusqlite::Result<()> {
        for (at, cells) in self.cells.iter_mut().enumerate() {
            if !cells.push(row.get_ref(at)?, offset) {
                *odd.entry((self.table, self.from[at].0)).or_default() += 1;
            }
        }
        self.rows += 1;
        Ok(())
    }

    fn is_full(&self) -> bool {
        let bytes = |cells: &Cells| if let Cells::Word(words) = cells { words.bytes } else { 0 };
        self.rows >= GROUP_ROWS || self.cells.iter().map(bytes).sum::<usize>() >= ROOM
    }

    fn integers(&self, column: &str) -> &Integers {
        let at = self.from.iter().position(|(name, _)| *name == column).unwrap_or_default();
        self.cells[at].integers()
    }

    fn set(&mut self, column: &str, row: usize, value: Option<i64>) {
        let at = self.from.iter().position(|(name, _)| *name == column).unwrap_or_default();
        if let Cells::TextId(cells) = &mut self.cells[at] {
            cells.set(row, value);
        }
    }
}

/// How many cells of a column, by table and name, are of another type than the format has them.
type Odd = BTreeMap<(&'static str, &'static str), u64>;

/// What of a rank is not in its files.
#[derive(Default)]
pub(super) struct NotWritten {
    /// Cells.
    pub(super) odd: Odd,
    /// By table, how many rows have a time that no trace can have.
    pub(super) impossible: BTreeMap<&'static str, u64>,
}

/// Whether no time in a row is one that cannot be; what is no integer is no time.
fn has_possible_times(row: &Row<'_>, from: &[Read]) -> rusqlite::Result<bool> {
    for (at, _) in from.iter().enumerate().filter(|(_, (_, from))| *from == Time) {
        if row.get_ref(at)?.as_i64().is_ok_and(|time| !is_possible_time(time)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What is on its way.
pub(super) struct Copy<'a, 'files> {
    source: &'a TraceSource,
    rank: &'a RankPart,
    part: i64,
    files: &'a mut Files<'files>,
    notes: &'a dyn Notes,
    texts: TextsById<'a>,
    args: TextsById<'a>,
    barriers: Ids,
    not_written: NotWritten,
}

impl<'a, 'files> Copy<'a, 'files> {
    pub(super) fn new(
        source: &'a TraceSource,
        rank: &'a RankPart,
        part: i64,
        files: &'a mut Files<'files>,
        notes: &'a dyn Notes,
    ) -> Result<Copy<'a, 'files>> {
        let (trace, layout) = (&source.trace, &source.layout);
        let args = if layout.table("rocpd_ustring").is_some() { "rocpd_ustring" } else { "rocpd_string" };
        let texts = TextsById::of_table(trace, layout, "rocpd_string")?;
        let args = TextsById::of_table(trace, layout, args)?;
        let (barriers, not_written) = (barriers(trace)?, NotWritten::default());
        Ok(Copy { source, rank, part, files, notes, texts, args, barriers, not_written })
    }

    /// Writes all tables, and says what of the trace did not fit.
    ///
    /// # Errors
    /// When the trace cannot be read, a file not be written, or a signal came.
    pub(super) fn all(mut self) -> Result<NotWritten> {
        let shown = crate::text::escape_path(&self.source.path);
        self.each_block("rocpd_op", &OF_OP, Self::ops).with_context(|| format!("{shown}: operations"))?;
        self.each_block("rocpd_api", &OF_API, Self::calls).with_context(|| format!("{shown}: calls"))?;
        self.each_block("rocpd_monitor", &OF_MONITOR, |copy, block, _| {
            let columns = copy.part_behind(block.rows);
            copy.write(&MONITOR, block, &columns)
        })
        .with_context(|| format!("{shown}: sensors"))?;
        self.facts()?;
        for table in super::table::TABLES {
            self.files.end(table)?;
        }
        Ok(self.not_written)
    }

    /// The query for rows of a table of the trace whose column `id` is in a range; what it has not is NULL. None where there is no such
    /// table.
    fn query(&self, table: &str, from: &[Read], id: &str) -> Option<String> {
        let layout = self.source.layout.table(table)?;
        let column = |(name, from): &Read| match (layout.has(name), from) {
            (false, _) if *name == id => "rowid".to_string(),
            (false, _) => "NULL".to_string(),
            (true, From::Word) => word(&quote(name)),
            (true, from) => self.source.of_node(&quote(name), *from),
        };
        let columns: Vec<String> = from.iter().map(column).collect();
        let id = if layout.has(id) { quote(id) } else { "rowid".to_string() };
        let columns = columns.join(", ");
        Some(format!("SELECT {columns} FROM {table} WHERE {id} BETWEEN ?1 AND ?2 ORDER BY {id}"))
    }

    /// Calls `write` with each block of the rank's rows of a table.
    fn each_block(
        &mut self,
        table: &'static str,
        from: &'static [Read],
        mut write: impl FnMut(&mut Self, &mut Block<'static>, &mut Links<'a>) -> Result<()>,
    ) -> Result<()> {
        let Some(query) = self.query(table, from, "id") else { return Ok(()) };
        let offset = self.rank.offset_ns.unwrap_or(0);
        let mut links = Links::of(&self.source.trace, &self.source.layout, &self.rank.ids)?;
        let mut statement = self.source.trace.prepare(&query)?;
        let mut block = Block::new(table, from);
        let mut written = 0;
        for (first, last) in &self.rank.ids {
            let mut rows = statement.query([first, last])?;
            while let Some(row) = rows.next()? {
                if !has_possible_times(row, from)? {
                    *self.not_written.impossible.entry(table).or_default() += 1;
                    continue;
                }
                block.add(row, offset, &mut self.not_written.odd)?;
                if block.is_full() {
                    look(self.notes)?;
                    written += block.rows;
                    self.notes.show(&format!("{}: {written} rows of {table}", self.source.path.display()));
                    write(self, &mut block, &mut links)?;
                    block = Block::new(table, from);
                }
            }
        }
        if block.rows > 0 {
            write(self, &mut block, &mut links)?;
        }
        look(self.notes)
    }

    /// The last column of each table.
    fn part_behind(&self, rows: usize) -> [Integers; 1] {
        [Integers::repeated(Some(self.part), rows)]
    }

    /// Writes a block as it is, with further columns behind its own.
    fn write(&mut self, table: &Table, block: &Block<'_>, behind: &[Integers]) -> Result<()> {
        let rows = (0..block.rows as u32).collect();
        let times = Some((block.integers("start"), block.integers("end")));
        let (texts, args) = (&mut self.texts, &mut self.args);
        self.files.write(table, rows, times, &mut |rows| {
            let mut arrays: Vec<ArrayRef> = Vec::new();
            for (cells, (name, _)) in block.cells.iter().zip(block.from) {
                let texts = if *name == "args_id" { &mut *args } else { &mut *texts };
                match cells.array(rows, texts)? {
                    Some(array) => arrays.push(array),
                    None => return Ok(None),
                }
            }
            arrays.extend(behind.iter().map(|cells| cells.array(rows)));
            Ok(Some(arrays))
        })
    }

    /// Operations, and the kernels among them.
    fn ops(&mut self, block: &mut Block<'static>, links: &mut Links<'a>) -> Result<()> {
        for row in 0..block.rows {
            if block.integers("id").get(row).is_some_and(|op| self.barriers.has(op)) {
                block.set("opType_id", row, Some(BARRIER_TYPE));
            }
        }
        let ids = block.integers("id");
        let mut calls = Integers::default();
        for row in 0..block.rows {
            calls.push(ids.get(row).map(|op| links.call(op)).transpose()?.flatten());
        }
        let [part] = self.part_behind(block.rows);
        let behind = [calls, part];
        self.write(&OP, block, &behind)?;
        let [calls, part] = behind;
        let by_call = self.launches(&calls)?;
        let launches = by_call.integers("api_ptr_id");
        let mut sorted: Vec<(i64, u32)> = Vec::with_capacity(by_call.rows);
        for row in 0..by_call.rows {
            sorted.extend(launches.get(row).map(|call| (call, row as u32)));
        }
        let mut ops = Vec::new();
        // By operation: its row among the launches.
        let mut of_op = vec![0; block.rows];
        for (row, launch) in of_op.iter_mut().enumerate() {
            let Some(call) = calls.get(row) else { continue };
            if let Ok(at) = sorted.binary_search_by_key(&call, |(call, _)| *call) {
                *launch = sorted[at].1;
                ops.push(row as u32);
            }
        }
        if ops.is_empty() {
            return Ok(());
        }
        let times = Some((block.integers("start"), block.integers("end")));
        let texts = &mut self.texts;
        self.files.write(&KERNEL, ops, times, &mut |ops| {
            let launches: Vec<u32> = ops.iter().map(|op| of_op[*op as usize]).collect();
            let mut arrays: Vec<ArrayRef> = Vec::new();
            // The texts of the operation are not the kernel's.
            for cells in block.cells.iter().filter(|cells| !matches!(cells, Cells::TextId(_))) {
                arrays.push(cells.integers().array(ops));
            }
            for cells in &by_call.cells[1..] {
                match cells.array(&launches, texts)? {
                    Some(array) => arrays.push(array),
                    None => return Ok(None),
                }
            }
            arrays.extend([calls.array(ops), part.array(ops)]);
            Ok(Some(arrays))
        })
    }

    /// The launches of these calls, in the order of the calls' ids.
    fn launches(&mut self, calls: &Integers) -> Result<Block<'static>> {
        let mut found = Block::new("rocpd_kernelapi", &OF_KERNELAPI);
        let query = self.query(found.table, found.from, "api_ptr_id");
        let Some(query) = query.filter(|_| self.has("rocpd_kernelapi")) else { return Ok(found) };
        let mut wanted: Vec<i64> = (0..calls.len()).filter_map(|row| calls.get(row)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut statement = self.source.trace.prepare_cached(&query)?;
        let mut at = 0;
        runs(&wanted, |first, last| {
            let mut rows = statement.query([first, last])?;
            while let Some(row) = rows.next()? {
                let Some(call) = id(row) else { continue };
                while wanted.get(at).is_some_and(|wanted| *wanted < call) {
                    at += 1;
                }
                if wanted.get(at) == Some(&call) {
                    found.add(row, 0, &mut self.not_written.odd)?;
                }
            }
            Ok(true)
        })?;
        Ok(found)
    }

    /// Whether a table of the arguments of calls has the ids of the calls.
    fn has(&self, table: &str) -> bool {
        self.source.layout.table(table).is_some_and(|table| table.has("api_ptr_id"))
    }

    /// Calls, and the copies among them.
    fn calls(&mut self, block: &mut Block<'static>, _: &mut Links<'a>) -> Result<()> {
        let ids = block.integers("id");
        let ids: Vec<(i64, u32)> =
            (0..block.rows).filter_map(|row| Some((ids.get(row)?, row as u32))).collect();
        let (found, of_call) = self.of_calls("ext_librarycall", &OF_LIBRARYCALL, &ids)?;
        for (row, call) in of_call.iter().enumerate() {
            for column in ["domain_id", "category_id"] {
                block.set(column, *call as usize, found.integers(column).get(row));
            }
        }
        let behind = self.part_behind(block.rows);
        self.write(&API, block, &behind)?;
        let [part] = behind;
        let (found, of_call) = self.of_calls("rocpd_copyapi", &OF_COPYAPI, &ids)?;
        if found.rows == 0 {
            return Ok(());
        }
        // By call: its row among the copies.
        let mut of_copy = vec![0; block.rows];
        for (row, call) in of_call.iter().enumerate() {
            of_copy[*call as usize] = row as u32;
        }
        let times = Some((block.integers("start"), block.integers("end")));
        let texts = &mut self.texts;
        self.files.write(&COPY, of_call, times, &mut |calls| {
            let copies: Vec<u32> = calls.iter().map(|call| of_copy[*call as usize]).collect();
            let mut arrays: Vec<ArrayRef> = Vec::new();
            let columns = ["id", "pid", "tid", "start", "end"];
            arrays.extend(columns.map(|column| block.integers(column).array(calls)));
            let names = block.integers("apiName_id").texts(calls, texts)?;
            let Some(names) = names else { return Ok(None) };
            arrays.push(names);
            for cells in &found.cells[1..] {
                match cells.array(&copies, texts)? {
                    Some(array) => arrays.push(array),
                    None => return Ok(None),
                }
            }
            arrays.push(part.array(calls));
            Ok(Some(arrays))
        })
    }

    /// The rows that a table has of these calls, which are in the order of their ids, and the row of the call of each.
    fn of_calls(
        &mut self,
        table: &'static str,
        from: &'static [Read],
        ids: &[(i64, u32)],
    ) -> Result<(Block<'static>, Vec<u32>)> {
        let (mut found, mut of_call) = (Block::new(table, from), Vec::new());
        let (Some(query), Some((first, _)), Some((last, _))) =
            (self.query(table, from, "api_ptr_id").filter(|_| self.has(table)), ids.first(), ids.last())
        else {
            return Ok((found, of_call));
        };
        let mut statement = self.source.trace.prepare_cached(&query)?;
        let mut rows = statement.query([first, last])?;
        let mut at = 0;
        while let Some(row) = rows.next()? {
            let Some(call) = id(row) else { continue };
            while ids.get(at).is_some_and(|(wanted, _)| *wanted < call) {
                at += 1;
            }
            if let Some((_, row_of_call)) = ids.get(at).filter(|(wanted, _)| *wanted == call) {
                found.add(row, 0, &mut self.not_written.odd)?;
                of_call.push(*row_of_call);
            }
        }
        Ok((found, of_call))
    }

    /// What the trace says of the rank's sessions and of GPUs.
    fn facts(&mut self) -> Result<()> {
        let sessions = self.rank.sessions.iter().flat_map(|session| {
            let number = i64::from(session.session);
            session.facts.iter().map(move |(key, value)| (number, key, value))
        });
        let sessions: Vec<_> = sessions.collect();
        self.pairs(&SESSION, &sessions)?;
        let gpus = self.source.gpus_of(self.rank).into_iter();
        let gpus =
            gpus.flat_map(|(number, gpu)| gpu.facts.iter().map(move |(key, value)| (number, key, value)));
        let gpus: Vec<_> = gpus.collect();
        self.pairs(&GPU, &gpus)
    }

    fn pairs(&mut self, table: &Table, pairs: &[(i64, &String, &String)]) -> Result<()> {
        for pairs in pairs.chunks(GROUP_ROWS) {
            let (mut numbers, mut keys, mut values) =
                (Integers::default(), Words::default(), Words::default());
            for (number, key, value) in pairs {
                numbers.push(Some(*number));
                keys.push(Some(key));
                values.push(Some(value));
            }
            let [part] = self.part_behind(pairs.len());
            self.files.write(table, (0..pairs.len() as u32).collect(), None, &mut |rows| {
                Ok(Some(vec![numbers.array(rows), keys.array(rows)?, values.array(rows)?, part.array(rows)]))
            })?;
        }
        Ok(())
    }
}
