//! Writes the rows of a trace: one session, one process.

use anyhow::Result;
use rpd_schema::{Version, session_fact};
use rpd_sql::insert::{API, API_OPS, Insert, OP, STRING};
use rusqlite::{Connection, Params, params};
use rustc_hash::FxHashMap;

use crate::rewrite::derive::Announced;

/// The id of the empty text.
const EMPTY: i64 = 1;

/// The process and its thread: other tools do not say their numbers.
const PROCESS: i64 = 1;

/// See the module.
pub(super) struct Rows<'a> {
    made: &'a Connection,
    texts: FxHashMap<String, i64>,
    calls: i64,
    ops: i64,
    links: i64,
}

/// An operation of a GPU, of which there are no numbers of queues and places yet.
pub(super) struct OpRow<'a> {
    pub(super) gpu: usize,
    pub(super) queue: usize,
    /// Its place in the queue.
    pub(super) sequence: usize,
    pub(super) start: i64,
    pub(super) end: i64,
    /// The kernel; nothing for copies.
    pub(super) kernel: &'a str,
    pub(super) op_type: &'a str,
}

impl<'a> Rows<'a> {
    /// Begins a trace in an empty database.
    pub(super) fn begin(made: &'a Connection) -> Result<Rows<'a>> {
        for statements in rpd_sql::FRESH {
            made.execute_batch(statements)?;
        }
        made.execute_batch("BEGIN")?;
        let mut rows = Rows { made, texts: FxHashMap::default(), calls: 0, ops: 0, links: 0 };
        rows.text("")?;
        Ok(rows)
    }

    fn insert(&self, table: &Insert, cells: impl Params) -> Result<()> {
        self.made.prepare_cached(&table.statement(1))?.execute(cells)?;
        Ok(())
    }

    /// The id of a text.
    fn text(&mut self, text: &str) -> Result<i64> {
        if let Some(id) = self.texts.get(text) {
            return Ok(*id);
        }
        let id = EMPTY + self.texts.len() as i64;
        self.insert(&STRING, params![id, text])?;
        self.texts.insert(text.to_string(), id);
        Ok(id)
    }

    /// Adds a call or marker; its id.
    pub(super) fn call(&mut self, (start, end): (i64, i64), name: &str, args: &str) -> Result<i64> {
        let (name, args) = (self.text(name)?, self.text(args)?);
        self.calls += 1;
        self.insert(&API, params![self.calls, PROCESS, PROCESS, start, end, name, args])?;
        Ok(self.calls)
    }

    /// Adds an operation, and the call that caused it.
    pub(super) fn op(&mut self, row: &OpRow<'_>, cause: Option<i64>) -> Result<()> {
        let (kernel, op_type) = (self.text(row.kernel)?, self.text(row.op_type)?);
        self.ops += 1;
        let [gpu, queue, sequence] = [row.gpu, row.queue, row.sequence].map(|number| number as i64);
        self.insert(&OP, params![self.ops, gpu, queue, sequence, "", row.start, row.end, kernel, op_type])?;
        if let Some(cause) = cause {
            self.links += 1;
            self.insert(&API_OPS, [self.links, cause, self.ops])?;
        }
        Ok(())
    }

    fn fact(&self, tag: &str, value: &str) -> Result<()> {
        let insert = "INSERT INTO rocpd_metadata (tag, value) VALUES (?1, ?2)";
        self.made.prepare_cached(insert)?.execute([tag, value])?;
        Ok(())
    }

    /// Says the name of a GPU.
    pub(super) fn gpu(&self, gpu: usize, name: &str) -> Result<()> {
        self.fact(&format!("gpu::{gpu}::{}", session_fact::GPU_NAME), name)
    }

    /// Ends the trace. `source`: what recorded it.
    pub(super) fn end(self, source: &str) -> Result<Announced> {
        self.fact(&format!("session::0::{}", session_fact::SOURCES), source)?;
        self.fact("session_count", "1")?;
        self.made.execute_batch("COMMIT")?;
        let rows = [(API, self.calls), (OP, self.ops), (API_OPS, self.links)];
        let rows = rows.map(|(table, rows)| (table.table.to_string(), rows as u64)).into();
        Ok(Announced { version: Version::V2, rows })
    }
}
