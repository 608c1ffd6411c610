//! Opening a trace for reading, and the few questions that several verbs ask it.

pub mod arguments;
pub(crate) mod barriers;
pub(crate) mod clock;
pub mod contents;
pub mod ids;
pub mod instrumented;
pub(crate) mod launch;
pub(crate) mod layout;
pub(crate) mod marker;
pub mod op_kind;
pub(crate) mod queue_streams;
pub mod replaced;
pub mod span;
pub(crate) mod strides;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result};
use rpd_schema::text::{shown, text_of};
use rpd_schema::{GpuInfo, SessionInfo, Version, session_fact};
use rusqlite::{Connection, OptionalExtension, Statement};

use crate::notes::Notes;
use crate::text::{self, counted};

/// Opens `file` and tells if records were lost when it was made, or launches have no operation: whatever is read from
/// it is incomplete then.
///
/// # Errors
/// When it is no trace or cannot be read.
pub fn open(file: &Path, notes: &dyn Notes) -> Result<(Connection, Version)> {
    let (trace, version) = rpd_schema::open_read(file)?;
    let lost = rpd_schema::lost(&trace).with_context(|| format!("cannot read {}", file.display()))?;
    let total = lost.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
    if total > 0 {
        let causes: Vec<String> =
            lost.iter().map(|(cause, count)| format!("{count} {}", text::escape(cause))).collect();
        notes.note(format_args!(
            "{} is incomplete: {} lost while recording ({})",
            file.display(),
            counted(total, "record was", "records were"),
            causes.join(", ")
        ));
    }
    let open =
        rpd_schema::launches_without_op(&trace).with_context(|| format!("cannot read {}", file.display()))?;
    if open > 0 {
        notes.note(format_args!(
            "{} is incomplete: {} no operation (their kernels were not known to have completed when it was last written)",
            file.display(),
            counted(open, "launch has", "launches have")
        ));
    }
    Ok((trace, version))
}

/// Dispatches that have the LDS that the launch adds in place of all of it: HIP, which has timed them, says no more of its commands.
pub(crate) struct TimedByHip {
    sessions: HashSet<i64>,
    /// Sessions that HIP times may use these as well, which CUPTI times.
    gpus_of_nvidia: HashSet<i64>,
}

impl TimedByHip {
    pub(crate) fn of(trace: &Connection) -> rusqlite::Result<TimedByHip> {
        let is_by_hip = |session: &SessionInfo| {
            session.get(session_fact::TIMING).is_some_and(|by| by.split(',').any(|source| source == "hip"))
        };
        let is_of_nvidia =
            |gpu: &GpuInfo| gpu.get(session_fact::GPU_TARGET).is_some_and(|target| target.starts_with("sm_"));
        let sessions = rpd_schema::sessions(trace)?.into_iter().filter(is_by_hip);
        let gpus = rpd_schema::gpus(trace)?.into_iter().filter(is_of_nvidia);
        Ok(TimedByHip {
            sessions: sessions.map(|session| i64::from(session.session)).collect(),
            gpus_of_nvidia: gpus.map(|gpu| i64::from(gpu.gpu)).collect(),
        })
    }

    /// Whether HIP has timed that session's dispatches on that GPU.
    pub(crate) fn has(&self, session: i64, gpu: i64) -> bool {
        self.sessions.contains(&session) && !self.gpus_of_nvidia.contains(&gpu)
    }
}

/// Whether anything was recorded into the trace `file`: a call, an operation or a sensor's value.
///
/// # Errors
/// When it is no trace or cannot be read.
pub fn has_data(file: &Path) -> Result<bool> {
    let (trace, _) = rpd_schema::open_read(file)?;
    ["rocpd_op", "rocpd_api", "rocpd_monitor"]
        .into_iter()
        .try_fold(false, |any, table| Ok(any || (has_table(&trace, table)? && has_row(&trace, table)?)))
        .map_err(|error: rusqlite::Error| {
            anyhow::Error::new(error).context(format!("cannot read {}", file.display()))
        })
}

/// Whether the trace has that table: older ones lack some.
///
/// # Errors
/// When the trace cannot be read.
pub fn has_table(trace: &Connection, table: &str) -> rusqlite::Result<bool> {
    trace.query_row("SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = ?1)", [table], |row| row.get(0))
}

fn has_row(trace: &Connection, table: &str) -> rusqlite::Result<bool> {
    trace.query_row(&format!("SELECT EXISTS (SELECT 1 FROM {table})"), [], |row| row.get(0))
}

/// Rows of a table whose name comes from the trace itself.
///
/// # Errors
/// When the file cannot be read.
pub fn row_count(trace: &Connection, table: &str) -> rusqlite::Result<u64> {
    let quoted = table.replace('"', "\"\"");
    trace
        .query_row(&format!("SELECT count(*) FROM \"{quoted}\""), [], |row| row.get(0))
        .map(i64::unsigned_abs)
}

/// How many sessions have been taken in the trace `file`: the number that the next one gets.
///
/// # Errors
/// When it is no trace or cannot be read.
pub fn session_count(file: &Path) -> Result<u32> {
    let (trace, _) = rpd_schema::open_read(file)?;
    let count: Option<String> = trace
        .query_row("SELECT value FROM rocpd_metadata WHERE tag = 'session_count'", [], |row| row.get(0))
        .optional()
        .with_context(|| format!("cannot read {}", file.display()))?;
    Ok(count.and_then(|count| count.trim().parse().ok()).unwrap_or(0))
}

/// How many rows each session has in a table, by the column `id` (SQL, quoted where needed). What is no integer there is of no
/// session.
///
/// # Errors
/// When the file cannot be read.
pub fn rows_by_session(trace: &Connection, table: &str, id: &str) -> rusqlite::Result<BTreeMap<i64, u64>> {
    let mut found = BTreeMap::new();
    // The ids of most tables are in order, so that a session's are a range that SQLite counts fast. In others, and in those
    // whose ids may be anything, finding the next session would be a look at every row each time.
    if is_row_number(trace, table, id)? {
        let mut next = trace
            .prepare(&format!("SELECT {id} >> 32 FROM {table} WHERE {id} >= ?1 ORDER BY {id} LIMIT 1"))?;
        let mut count =
            trace.prepare(&format!("SELECT count(*) FROM {table} WHERE {id} BETWEEN ?1 AND ?2"))?;
        let mut from = Some(i64::MIN);
        while let Some(id) = from {
            let Some(session) = next.query_row([id], |row| row.get::<_, i64>(0)).optional()? else { break };
            let first = session << 32;
            let rows: i64 = count.query_row([first, first | 0xffff_ffff], |row| row.get(0))?;
            found.insert(session, rows.unsigned_abs());
            from = session.checked_add(1).and_then(|session| session.checked_mul(1 << 32));
        }
        return Ok(found);
    }
    let mut ids = trace.prepare(&format!("SELECT {id} FROM {table}"))?;
    let mut ids = ids.query([])?;
    while let Some(row) = ids.next()? {
        if let Ok(id) = row.get_ref(0)?.as_i64() {
            *found.entry(id >> 32).or_default() += 1;
        }
    }
    Ok(found)
}

/// Whether SQLite keeps the rows of a table in the order of that column, which has integers only then.
fn is_row_number(trace: &Connection, table: &str, column: &str) -> rusqlite::Result<bool> {
    trace.query_row(
        "SELECT EXISTS (
             SELECT 1 FROM pragma_table_info(?1) C, pragma_table_list(?1) T
             WHERE lower(C.name) = lower(?2) AND C.pk = 1 AND upper(C.type) = 'INTEGER'
                 AND T.schema = 'main' AND T.type = 'table' AND NOT T.wr)
         AND (SELECT count(*) FROM pragma_table_info(?1) WHERE pk > 0) = 1
         AND NOT EXISTS (SELECT 1 FROM pragma_index_list(?1) WHERE origin = 'pk')",
        [table, column],
        |row| row.get(0),
    )
}

/// Whether a failure is the file's and not its surroundings': a lock or a full disk is none.
pub fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{InvalidColumnType, SqlInputError};
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, Unknown};
    // A column or a table that is not there, a value of another type.
    if matches!(error, SqlInputError { .. } | InvalidColumnType(..)) {
        return true;
    }
    error.sqlite_error_code().is_some_and(|code| matches!(code, DatabaseCorrupt | NotADatabase | Unknown))
}

/// The texts of `rocpd_string`, by id.
pub struct Strings<'trace>(Statement<'trace>);

impl Strings<'_> {
    /// The strings of a trace.
    ///
    /// # Errors
    /// When it has none.
    pub fn of(trace: &Connection) -> rusqlite::Result<Strings<'_>> {
        Strings::in_table(trace, "rocpd_string")
    }

    /// The texts of `table`, which is `rocpd_string` or made like it.
    ///
    /// # Errors
    /// When there is none.
    pub fn in_table<'trace>(trace: &'trace Connection, table: &str) -> rusqlite::Result<Strings<'trace>> {
        trace.prepare(&format!("SELECT {} FROM {table} WHERE id = ?1", shown("string"))).map(Strings)
    }

    /// The text with this id, with bytes that are not UTF-8 replaced; a long one is cut. None where the file has none.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn get(&mut self, id: i64) -> rusqlite::Result<Option<String>> {
        self.0.query_row([id], |row| Ok(text_of(row.get_ref(0)?).into_owned())).optional()
    }
}
