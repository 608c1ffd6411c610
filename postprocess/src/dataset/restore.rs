//! A rank of a dataset as a trace again: its operations, calls, links, launches, copies, sensors and facts, with their ids, on the clock of
//! its host.
//!
//! Where a rank has several parts, ids of the second and later ones that others have already get another session. What the dataset does
//! not have is not in the trace either: `docs/dataset.md` lists it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};
use rpd_schema::{Version, moved_session_times, session_fact};
use rpd_sql::insert::{self, Insert};
use rusqlite::types::Value;
use rusqlite::{CachedStatement, Connection, params, params_from_iter};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::check::wrong;
use super::clock::{Host, KnownHosts};
use super::columns::{Batch, Columns, TextColumn, integer};
use super::contents::{DatasetContents, Rank};
use super::manifest::Manifest;
use super::table::{API, COPY, GPU, KERNEL, MONITOR, OP, SESSION, Table};
use crate::check::rule::is_possible_time;
use crate::notes::{Notes, SharedNotes, look};
use crate::rewrite::derive::{Announced, NewTrace, TracePlace, make};
use crate::text::escape;
use crate::trace::clock::NODE;
use crate::trace::row_count;

/// Bytes of texts whose ids are remembered. A text that comes again after more than these gets a second row, as the format allows.
const REMEMBERED: usize = 64 << 20;

/// What a manifest says of a clock is further than this from what the dataset says of the host's where one of them is damaged, ns: a day.
const FAR_NS: u64 = 86_400_000_000_000;

/// The id of the empty text.
const EMPTY: i64 = 1;

/// What became of a rank.
#[derive(Debug, Serialize)]
pub struct Restored {
    /// Rows by table.
    pub rows: BTreeMap<String, u64>,
    /// Rows that have no id, or no time that a trace can have, and are not in the trace.
    pub without_time: u64,
    /// What was taken from times of the dataset, so that they are on the clock of the host, ns.
    pub offset_ns: i64,
    /// Links to calls that are not in the trace: of other time slices, or left out.
    pub cut_links: u64,
}

impl DatasetContents {
    /// Writes a rank as a new trace: all of it, or what began in one time slice.
    ///
    /// # Errors
    /// When a file is not there or damaged, or the trace cannot be written; nothing is left of it then.
    pub fn restore(
        &self,
        rank: &Rank,
        slice: Option<i64>,
        trace: &Path,
        notes: &SharedNotes,
    ) -> Result<Restored> {
        if let Some(slice) = slice.filter(|slice| !rank.slices().contains(slice)) {
            bail!("rank {} has nothing in slice {slice}: it has {}", rank.rank, listed(rank));
        }
        let encoding = || Ok("UTF-8".to_string());
        make(TracePlace::New(trace), encoding, notes, |making: &NewTrace<'_>| {
            let made = making.made;
            for statements in rpd_sql::FRESH {
                made.execute_batch(statements)?;
            }
            made.execute_batch(&format!(
                "BEGIN; INSERT INTO rocpd_string (id, string) VALUES ({EMPTY}, '')"
            ))?;
            let mut restoring = Restoring::new(self, made, slice, &**notes);
            for part in &rank.parts {
                restoring.part(part)?;
            }
            let restored = restoring.finish()?;
            made.execute_batch("COMMIT")?;
            let announced = Announced { version: Version::V2, rows: restored.rows.clone() };
            Ok((restored, announced))
        })
    }
}

/// The slices of a rank, as people read them.
fn listed(rank: &Rank) -> String {
    let slices = rank.slices();
    match (slices.first(), slices.last()) {
        (Some(first), Some(last)) if first == last => format!("slice {first}"),
        (Some(first), Some(last)) => format!("slices from {first} to {last}"),
        _ => "none".to_string(),
    }
}

/// A trace that is being filled.
struct Restoring<'a> {
    contents: &'a DatasetContents,
    made: &'a Connection,
    slice: Option<i64>,
    notes: &'a dyn Notes,
    ids: FxHashMap<Box<str>, i64>,
    bytes: usize,
    last_text: i64,
    /// Sessions of the parts so far.
    taken: Vec<i64>,
    /// What the sessions of this part are in the trace.
    sessions: FxHashMap<i64, i64>,
    /// By session, the last id of a link.
    links: FxHashMap<i64, i64>,
    /// What is taken from the times of this part, ns.
    offset_ns: i64,
    /// The same of the first part, whose clock all times are on.
    first_offset_ns: Option<i64>,
    has_libraries: bool,
    without_time: u64,
}

/// A statement that inserts a row.
fn insertion<'a>(made: &'a Connection, table: &Insert) -> rusqlite::Result<CachedStatement<'a>> {
    // Several operations of one call have the same launch.
    made.prepare_cached(&table.statement(1).replacen("INSERT", "INSERT OR IGNORE", 1))
}

/// An integer, or what traces have in place of one that is not known.
fn number(value: Option<i64>) -> Value {
    value.map_or_else(|| Value::Text(String::new()), Value::Integer)
}

fn text(value: Option<&str>) -> Value {
    Value::Text(value.unwrap_or_default().to_string())
}

/// TextColumn of a column that have ids already.
type Known = Vec<Option<i64>>;

impl<'a> Restoring<'a> {
    fn new(
        contents: &'a DatasetContents,
        made: &'a Connection,
        slice: Option<i64>,
        notes: &'a dyn Notes,
    ) -> Restoring<'a> {
        Restoring {
            contents,
            made,
            slice,
            notes,
            ids: FxHashMap::default(),
            bytes: 0,
            last_text: EMPTY,
            taken: Vec::new(),
            sessions: FxHashMap::default(),
            links: FxHashMap::default(),
            offset_ns: 0,
            first_offset_ns: None,
            has_libraries: false,
            without_time: 0,
        }
    }

    fn part(&mut self, part: &Manifest) -> Result<()> {
        self.taken.extend(self.sessions.drain().map(|(_, session)| session));
        let facts = self.facts(part)?;
        let offset = self.offset(part, &facts)?;
        let first = *self.first_offset_ns.get_or_insert(offset);
        self.offset_ns = first;
        // A part of another boot has had another clock.
        let Some(shift) = offset.checked_sub(first) else {
            bail!("{}", self.odd_offset(part, offset, &format!("{first} ns to the first part of its rank")));
        };
        self.session_facts(&facts, shift)?;
        self.each(part, &GPU, &["gpuId", "key", "value"], Self::gpus)?;
        self.each(part, &OP, &OPS, Self::ops)?;
        self.each(part, &KERNEL, &KERNELS, Self::kernels)?;
        self.each(part, &API, &CALLS, Self::calls)?;
        self.each(part, &COPY, &COPIES, Self::copies)?;
        self.each(part, &MONITOR, &SENSORS, Self::sensors)
    }

    /// Calls `take` with all rows that a table has of a part and of the slice.
    fn each(
        &mut self,
        part: &Manifest,
        table: &Table,
        columns: &'static [&'static str],
        mut take: impl FnMut(&mut Self, &Batch) -> Result<()>,
    ) -> Result<()> {
        let is_whole = [SESSION.name, GPU.name].contains(&table.name);
        let slice = self.slice.filter(|_| !is_whole);
        for file in part.files.iter().filter(|file| file.table() == table.name) {
            if slice.is_some() && file.slice() != slice {
                continue;
            }
            self.notes.show(&file.path);
            if let Some(finding) = wrong(&self.contents.place, part, file)? {
                bail!(finding.in_words());
            }
            let file = Columns::open(&self.contents.place, file)?;
            for group in 0..file.groups() {
                let mut batches = file.group(group, columns)?;
                while let Some(batch) = batches.next()? {
                    look(self.notes)?;
                    take(self, &batch)?;
                }
            }
        }
        Ok(())
    }

    /// What the sessions of a part say of themselves.
    fn facts(&mut self, part: &Manifest) -> Result<Vec<(i64, String, String)>> {
        let mut facts = Vec::new();
        self.each(part, &SESSION, &["session", "key", "value"], |_, batch| {
            let (session, key, value) = (batch.integers(0)?, batch.texts(1)?, batch.texts(2)?);
            facts.extend((0..batch.rows).filter_map(|row| {
                Some((integer(session, row)?, key.get(row)?.to_string(), value.get(row)?.to_string()))
            }));
            Ok(())
        })?;
        Ok(facts)
    }

    /// What was added to the times of a part, ns.
    fn offset(&self, part: &Manifest, facts: &[(i64, String, String)]) -> Result<i64> {
        if !part.is_aligned {
            return Ok(0);
        }
        let mut session = rpd_schema::SessionInfo::default();
        for (_, key, value) in facts {
            session.facts.entry(key.clone()).or_insert_with(|| value.clone());
        }
        let clock = self.contents.place.known(&Host::of(&session));
        let Some(offset) = part.offset_ns else {
            return Ok(clock?.and_then(|clock| clock.realtime_less_monotonic_ns).unwrap_or(0));
        };
        // What cannot be read does not contradict.
        let clock = clock.ok().flatten().and_then(|clock| clock.realtime_less_monotonic_ns);
        // A merged trace is on the clock of one of its hosts.
        let is_merged = session.get(NODE).is_some();
        if let Some(clock) = clock.filter(|clock| !is_merged && clock.abs_diff(offset) > FAR_NS) {
            bail!("{}", self.odd_offset(part, offset, &format!("{clock} ns to its host's")));
        }
        Ok(offset)
    }

    /// Says that what was added to the times of a part cannot be.
    fn odd_offset(&self, part: &Manifest, offset: i64, other: &str) -> String {
        let place = &self.contents.place;
        format!(
            "{} says that {offset} ns were added to its times, and {other}: remove it, and add {} again with --append",
            escape(&place.relative(&part.path(place))),
            escape(&part.trace)
        )
    }

    fn session_facts(&mut self, facts: &[(i64, String, String)], shift: i64) -> Result<()> {
        for (session, key, value) in facts {
            // Numbers of nodes are of the merged trace that the rank was a part of.
            if key == NODE {
                continue;
            }
            let is_time = [
                session_fact::START_MONOTONIC_NS,
                session_fact::END_MONOTONIC_NS,
                session_fact::ABORT_MONOTONIC_NS,
            ]
            .contains(&&**key);
            let has_times = [session_fact::STOPPED, session_fact::LOST_TIMES].contains(&&**key);
            let value = match value.trim().parse::<i64>().ok().filter(|_| is_time) {
                _ if shift == 0 => value.clone(),
                Some(time) => match time.checked_add(shift) {
                    Some(time) => time.to_string(),
                    None => {
                        self.without_time += 1;
                        continue;
                    }
                },
                None if has_times => moved_session_times(value, shift),
                None => value.clone(),
            };
            let session = self.session(*session)?;
            self.fact(&format!("session::{session}::{key}"), &value)?;
        }
        Ok(())
    }

    fn fact(&self, tag: &str, value: &str) -> Result<()> {
        let insert = "INSERT INTO rocpd_metadata (tag, value) SELECT ?1, ?2
             WHERE NOT EXISTS (SELECT 1 FROM rocpd_metadata WHERE tag = ?1)";
        self.made.prepare_cached(insert)?.execute([tag, value])?;
        Ok(())
    }

    /// The number that a session of this part has in the trace.
    fn session(&mut self, session: i64) -> Result<i64> {
        if let Some(known) = self.sessions.get(&session) {
            return Ok(*known);
        }
        let mut number = session;
        if self.taken.contains(&session) {
            let all = self.taken.iter().chain(self.sessions.values());
            number = all.max().map_or(0, |last| last + 1);
            if i32::try_from(number).is_err() {
                bail!("the parts of this rank have more sessions than a trace can have: name a slice");
            }
        }
        if i32::try_from(number).is_err() {
            bail!("a part of this rank has the session {number}, which no trace can have");
        }
        self.sessions.insert(session, number);
        Ok(number)
    }

    /// The id that a row of this part has in the trace.
    fn id(&mut self, id: i64) -> Result<i64> {
        Ok(self.session(id >> 32)? << 32 | id & 0xffff_ffff)
    }

    /// The id of the text in a row of a column.
    fn text_id(&mut self, texts: TextColumn<'_>, known: &mut Known, row: usize) -> Result<Value> {
        let Some(key) = texts.key(row) else { return Ok(Value::Integer(EMPTY)) };
        if known.len() < texts.len() {
            known.resize(texts.len(), None);
        }
        if let Some(id) = known[key] {
            return Ok(Value::Integer(id));
        }
        let text = texts.value(key);
        let id = match self.ids.get(text) {
            _ if text.is_empty() => EMPTY,
            Some(id) => *id,
            None => {
                if self.bytes > REMEMBERED {
                    self.ids.clear();
                    self.bytes = 0;
                }
                self.last_text += 1;
                self.bytes += text.len() + size_of::<(Box<str>, i64)>();
                self.ids.insert(text.into(), self.last_text);
                let insert = "INSERT INTO rocpd_string (id, string) VALUES (?1, ?2)";
                self.made.prepare_cached(insert)?.execute(params![self.last_text, text])?;
                self.last_text
            }
        };
        known[key] = Some(id);
        Ok(Value::Integer(id))
    }

    fn gpus(&mut self, batch: &Batch) -> Result<()> {
        let (gpu, key, value) = (batch.integers(0)?, batch.texts(1)?, batch.texts(2)?);
        for row in 0..batch.rows {
            if let (Some(gpu), Some(key), Some(value)) = (integer(gpu, row), key.get(row), value.get(row)) {
                self.fact(&format!("gpu::{gpu}::{key}"), value)?;
            }
        }
        Ok(())
    }

    /// Id, start and end of a row; none where one of them is missing, or a time is none of a trace.
    fn placed(&mut self, batch: &Batch, columns: [usize; 3], row: usize) -> Result<Option<[i64; 3]>> {
        let [id, start, end] = columns.map(|column| batch.integers(column));
        let [id, start, end] = [integer(id?, row), integer(start?, row), integer(end?, row)];
        let own =
            |time: Option<i64>| time?.checked_sub(self.offset_ns).filter(|time| is_possible_time(*time));
        let [start, end] = [start, end].map(own);
        let (Some(id), Some(start), Some(end)) = (id, start, end) else {
            self.without_time += 1;
            return Ok(None);
        };
        Ok(Some([self.id(id)?, start, end]))
    }

    fn ops(&mut self, batch: &Batch) -> Result<()> {
        let mut op = insertion(self.made, &insert::OP)?;
        let mut link = insertion(self.made, &insert::API_OPS)?;
        let [mut descriptions, mut types] = [Known::new(), Known::new()];
        for row in 0..batch.rows {
            let Some([id, start, end]) = self.placed(batch, [0, 4, 5], row)? else { continue };
            let [gpu, queue, sequence] = [1, 2, 3].map(|column| batch.integers(column));
            op.execute(params![
                id,
                number(integer(gpu?, row)),
                number(integer(queue?, row)),
                number(integer(sequence?, row)),
                "",
                start,
                end,
                self.text_id(batch.texts(6)?, &mut descriptions, row)?,
                self.text_id(batch.texts(7)?, &mut types, row)?,
            ])?;
            if let Some(call) = integer(batch.integers(8)?, row) {
                let call = self.id(call)?;
                let last = self.links.entry(id >> 32).or_insert(id >> 32 << 32);
                *last += 1;
                link.execute([*last, call, id])?;
            }
        }
        Ok(())
    }

    fn kernels(&mut self, batch: &Batch) -> Result<()> {
        let mut launch = insertion(self.made, &insert::KERNELAPI)?;
        let mut names = Known::new();
        for row in 0..batch.rows {
            let Some(call) = integer(batch.integers(0)?, row) else { continue };
            let mut cells = vec![Value::Integer(self.id(call)?), text(batch.texts(1)?.get(row))];
            for column in 2..10 {
                cells.push(number(integer(batch.integers(column)?, row)));
            }
            // Where its arguments were, its fences and its code object are not in the dataset.
            cells.extend([text(None), text(None), text(None), Value::Integer(0)]);
            cells.push(self.text_id(batch.texts(10)?, &mut names, row)?);
            launch.execute(params_from_iter(cells))?;
        }
        Ok(())
    }

    fn calls(&mut self, batch: &Batch) -> Result<()> {
        let mut call = insertion(self.made, &insert::API)?;
        let [mut names, mut args, mut domains, mut categories] = [const { Known::new() }; 4];
        for row in 0..batch.rows {
            let Some([id, start, end]) = self.placed(batch, [0, 3, 4], row)? else { continue };
            call.execute(params![
                id,
                number(integer(batch.integers(1)?, row)),
                number(integer(batch.integers(2)?, row)),
                start,
                end,
                self.text_id(batch.texts(5)?, &mut names, row)?,
                self.text_id(batch.texts(6)?, &mut args, row)?,
            ])?;
            let (domain, category) = (batch.texts(7)?, batch.texts(8)?);
            if domain.key(row).is_some() || category.key(row).is_some() {
                if !self.has_libraries {
                    self.made.execute_batch(rpd_sql::ext::LIBRARYCALL)?;
                    self.has_libraries = true;
                }
                let domain = self.text_id(domain, &mut domains, row)?;
                let category = self.text_id(category, &mut categories, row)?;
                insertion(self.made, &insert::EXT_LIBRARYCALL)?.execute(params![id, domain, category])?;
            }
        }
        Ok(())
    }

    fn copies(&mut self, batch: &Batch) -> Result<()> {
        let mut copy = insertion(self.made, &insert::COPYAPI)?;
        for row in 0..batch.rows {
            let Some(call) = integer(batch.integers(0)?, row) else { continue };
            let mut cells = vec![Value::Integer(self.id(call)?)];
            for (column, name) in COPIES.iter().enumerate().skip(1) {
                cells.push(match *name {
                    "stream" | "dst" | "src" => text(batch.texts(column)?.get(row)),
                    _ => number(integer(batch.integers(column)?, row)),
                });
            }
            copy.execute(params_from_iter(cells))?;
        }
        Ok(())
    }

    fn sensors(&mut self, batch: &Batch) -> Result<()> {
        let mut sensor = insertion(self.made, &insert::MONITOR)?;
        for row in 0..batch.rows {
            let Some([id, start, end]) = self.placed(batch, [0, 4, 5], row)? else { continue };
            sensor.execute(params![
                id,
                text(batch.texts(1)?.get(row)),
                number(integer(batch.integers(2)?, row)),
                text(batch.texts(3)?.get(row)),
                start,
                end,
                text(batch.texts(6)?.get(row)),
            ])?;
        }
        Ok(())
    }

    /// Takes out what leads to calls that are not there, and says what the trace has.
    fn finish(mut self) -> Result<Restored> {
        self.taken.extend(self.sessions.drain().map(|(_, session)| session));
        let gone = |table: &str, column: &str| -> rusqlite::Result<usize> {
            let delete = format!("DELETE FROM {table} WHERE {column} NOT IN (SELECT id FROM rocpd_api)");
            self.made.execute(&delete, [])
        };
        let cut_links = gone("rocpd_api_ops", "api_id")? as u64;
        gone("rocpd_kernelapi", "api_ptr_id")?;
        let sessions = self.taken.iter().max().map_or(0, |last| last.saturating_add(1)).max(0);
        self.fact("session_count", &sessions.to_string())?;
        let mut rows = BTreeMap::new();
        for table in
            ["rocpd_op", "rocpd_api", "rocpd_api_ops", "rocpd_kernelapi", "rocpd_copyapi", "rocpd_monitor"]
        {
            rows.insert(table.to_string(), row_count(self.made, table)?);
        }
        Ok(Restored { rows, without_time: self.without_time, offset_ns: self.offset_ns, cut_links })
    }
}

const OPS: [&str; 9] =
    ["id", "gpuId", "queueId", "sequenceId", "start", "end", "description", "opType", "api_id"];

/// In the order of `rocpd_kernelapi`.
const KERNELS: [&str; 11] = [
    "api_id",
    "stream",
    "gridX",
    "gridY",
    "gridZ",
    "workgroupX",
    "workgroupY",
    "workgroupZ",
    "groupSegmentSize",
    "privateSegmentSize",
    "kernelName",
];

const CALLS: [&str; 9] = ["id", "pid", "tid", "start", "end", "apiName", "args", "domain", "category"];

/// In the order of `rocpd_copyapi`.
const COPIES: [&str; 12] = [
    "id",
    "stream",
    "size",
    "width",
    "height",
    "kind",
    "dst",
    "src",
    "dstDevice",
    "srcDevice",
    "sync",
    "pinned",
];

const SENSORS: [&str; 7] = ["id", "deviceType", "deviceId", "monitorType", "start", "end", "value"];
