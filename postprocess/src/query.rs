//! Queries of a user's own to a trace: they may read, for as long as they are given, and do nothing else.
//!
//! Three things keep a query from doing more. The connection cannot write the file, unless that is in WAL mode: only a connection that
//! may write removes what SQLite puts beside it. The authorizer refuses every statement that is not a question, temporary tables and
//! other files included. And SQLite's own protections are on (functions of the file's views, shadow tables). The views of the format
//! that another tool's file lacks are there for the query, in SQLite's memory.

mod frame;
mod part;
mod permission;
pub mod value;
mod views;

pub use frame::Frame;

use std::borrow::Cow;
use std::path::Path;
#[cfg(feature = "parquet")]
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow, bail};
use rpd_schema::Version;
use rpd_settings::tip;
use rpd_sql::query;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthContext, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, Row, Statement};

use crate::notes::{SharedNotes, undone};
use crate::region::Selected;
use crate::text::escape;
use crate::trace;
use crate::trace::layout::quote;

/// Instructions of SQLite's virtual machine between two looks at the clock: a fraction of a millisecond.
const LOOK: i32 = 4000;

/// The name that a second trace has in a query.
const BEFORE: &str = "before";

/// A trace that queries can be put to.
pub struct Questioned {
    trace: Connection,
    /// The last connection to a file in WAL mode removes what SQLite put beside it: this one, which closes behind `trace`.
    _before: Option<Connection>,
    version: Version,
    /// The file's name, for messages.
    name: String,
    #[cfg(feature = "parquet")]
    path: PathBuf,
    limit: Option<Duration>,
    /// When the query began.
    begun: Arc<OnceLock<Instant>>,
    /// What the query would have done if it were not refused.
    refused: Arc<Mutex<Option<String>>>,
    notes: SharedNotes,
}

/// A query that is ready to run.
pub struct Prepared<'trace> {
    questioned: &'trace Questioned,
    statement: Statement<'trace>,
}

impl Questioned {
    /// Opens `file` for one query, which may take `limit`. The query finds the trace `before`, if given, under that name.
    ///
    /// # Errors
    /// When one of them is no trace or cannot be read.
    pub fn open(
        file: &Path,
        before: Option<&Path>,
        limit: Option<Duration>,
        notes: &SharedNotes,
    ) -> Result<Questioned> {
        let opened = before.map(|before| trace::open(before, &**notes)).transpose()?;
        let (mut trace, version) = trace::open(file, &**notes)?;
        let name = file.display().to_string();
        if let Some(before) = before {
            rpd_schema::attach(&trace, before, BEFORE)?;
        }
        // What a query sorts may be larger than memory.
        trace.execute_batch("PRAGMA temp_store = FILE")?;
        for (schema, file) in [("main", Some(file)), (BEFORE, before)] {
            if let Some(file) = file {
                check_names(&trace, schema, file)?;
            }
        }
        views::add(&trace, version).with_context(|| format!("cannot read {name}"))?;
        trace.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        // Else "end" is a text where there is no such column, and the answer is wrong.
        trace.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
        let refused = Arc::new(Mutex::new(None));
        guard(&mut trace, &refused)?;
        let begun: Arc<OnceLock<Instant>> = Arc::default();
        let (clock, ticking) = (Arc::clone(&begun), Arc::clone(notes));
        trace.progress_handler(
            LOOK,
            Some(move || {
                ticking.tick();
                ticking.signal().is_some()
                    || clock.get().zip(limit).is_some_and(|(begun, limit)| begun.elapsed() >= limit)
            }),
        )?;
        let _before = opened.map(|(before, _)| before);
        #[cfg(feature = "parquet")]
        let path = file.to_path_buf();
        Ok(Questioned {
            trace,
            _before,
            version,
            name,
            #[cfg(feature = "parquet")]
            path,
            limit,
            begun,
            refused,
            notes: Arc::clone(notes),
        })
    }

    /// The statement of the ready-made query `name`, as this trace's schema version has it; None where there is none of that name. For a
    /// query to jobs, the tables of a dataset come in front of the trace's own.
    ///
    /// # Errors
    /// When the trace has not the sessions and times that a dataset is made of, or cannot be read.
    pub fn ready_made(&mut self, name: &str) -> Result<Option<Cow<'static, str>>> {
        let is_it = |query: &&query::Query| query.name.eq_ignore_ascii_case(name);
        if let Some(query) = query::JOBS.iter().find(is_it) {
            self.add_tables_of_dataset(query.text)?;
            return Ok(Some(query.text.into()));
        }
        let query = query::ALL.iter().find(is_it);
        Ok(query.map(|query| match self.version {
            Version::V3 => rpd_sql::for_schema_3(query.text).into(),
            Version::V1 | Version::V2 => query.text.into(),
        }))
    }

    #[cfg(feature = "parquet")]
    fn add_tables_of_dataset(&mut self, statement: &str) -> Result<()> {
        self.trace.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
        let with_calls = statement.contains("api_id");
        crate::dataset::views::add(&self.trace, &self.path, with_calls, &self.notes)?;
        Ok(guard(&mut self.trace, &self.refused)?)
    }

    #[cfg(not(feature = "parquet"))]
    fn add_tables_of_dataset(&mut self, _statement: &str) -> Result<()> {
        bail!("this rpd was built without rpd dataset, whose tables the query is of")
    }

    /// The statement that gives all rows of `name`, or those of a part of the trace: of a table or view of the trace or of the format, of a
    /// frame, or of the answer to a ready-made query.
    ///
    /// # Errors
    /// Where there is none of them, says what there is; or the trace cannot be read.
    pub fn rows_in(&mut self, name: &str, selected: Option<Selected>) -> Result<(String, Option<Frame>)> {
        let tables = self.tables()?;
        if let Some(table) = tables.iter().find(|table| table.eq_ignore_ascii_case(name)) {
            selected.map_or(Ok(()), |selected| self.restrict(selected))?;
            return Ok((format!("SELECT * FROM {}", quote(table)), None));
        }
        if let Some(frame) = Frame::ALL.into_iter().find(|frame| frame.name().eq_ignore_ascii_case(name)) {
            let is_part = selected.is_some();
            // It asks for the part itself, and has its times from the beginning of the whole trace.
            selected.map_or(Ok(()), |selected| part::add_functions(&self.trace, selected))?;
            let statement = frame.statement(&self.trace, self.version, is_part);
            let statement = statement.with_context(|| format!("cannot read {}", self.name))?;
            return Ok((statement, Some(frame)));
        }
        if let Some(statement) = self.ready_made(name)? {
            selected.map_or(Ok(()), |selected| self.restrict(selected))?;
            return Ok((statement.into_owned(), None));
        }
        let frames = Frame::ALL.map(Frame::name);
        let queries = query::every().map(|query| query.name);
        let tip = tip(name, tables.iter().map(String::as_str).chain(frames).chain(queries));
        let there = tables.iter().map(|table| escape(table)).collect::<Vec<_>>().join(", ");
        bail!(
            "{} has no table or view {}{tip}; it has: {}, {there}",
            self.name,
            escape(name),
            frames.join(", ")
        )
    }

    /// Lets queries see a part of the trace and no more.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn restrict(&mut self, selected: Selected) -> Result<()> {
        part::add_functions(&self.trace, selected)?;
        self.trace.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
        part::add_views(&self.trace).with_context(|| format!("cannot read {}", self.name))?;
        Ok(guard(&mut self.trace, &self.refused)?)
    }

    /// What to say of a name that no ready-made query has.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn no_such_query(&self, name: &str) -> Result<String> {
        let shown = escape(name);
        if self.tables()?.iter().any(|table| table.eq_ignore_ascii_case(name)) {
            return Ok(format!(
                "{shown} is a table of {}, not a query: rpd sql {} 'select * from {shown}'",
                self.name, self.name
            ));
        }
        let tip = tip(name, query::every().map(|query| query.name));
        Ok(format!("there is no query {shown}{tip}; rpd sql --list shows them"))
    }

    /// Makes `statement` ready. Its time begins.
    ///
    /// # Errors
    /// Says what is wrong with it, what it is not allowed, or why the trace cannot be read.
    pub fn prepare(&self, statement: &str) -> Result<Prepared<'_>> {
        self.begun.get_or_init(Instant::now);
        let statement = self.trace.prepare(statement).map_err(|error| self.explained(error))?;
        // VACUUM asks the authorizer only when it runs.
        if !statement.readonly() {
            return Err(anyhow!("a query may only read, and this one would {}", permission::CHANGE));
        }
        if statement.column_count() == 0 {
            return Err(anyhow!("that is no query: it has no result"));
        }
        if statement.parameter_count() > 0 {
            return Err(anyhow!("the query has a parameter (?, :name, $name), which nothing gives a value"));
        }
        Ok(Prepared { questioned: self, statement })
    }

    /// Names of tables and views, those that are there for queries only included.
    fn tables(&self) -> Result<Vec<String>> {
        // Questions of this crate need no permission, but the authorizer is asked all the same.
        let mut tables = self.trace.prepare(
            "SELECT DISTINCT name FROM pragma_table_list
             WHERE schema IN ('main', 'temp') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name COLLATE NOCASE",
        )?;
        let names = tables.query_map([], |row| row.get(0))?;
        Ok(names.collect::<rusqlite::Result<_>>()?)
    }

    /// A failure of SQLite in words that say what to do.
    fn explained(&self, error: rusqlite::Error) -> Error {
        if let Some(would) = self.refused.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return anyhow!("a query may only read, and this one would {would}");
        }
        let is_ended = error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted);
        if is_ended && self.notes.signal().is_some() {
            return undone(error.into(), &*self.notes, "nothing was written".to_string());
        }
        if is_ended && let Some(limit) = self.limit {
            return anyhow!(
                "the query was ended after {} s; --timeout 10m gives it longer, --timeout 0 as long as it takes",
                limit.as_secs_f64()
            );
        }
        match error {
            rusqlite::Error::SqlInputError { msg, .. } => self.wrong(&msg),
            rusqlite::Error::SqliteFailure(failure, Some(msg)) if failure.code == ErrorCode::Unknown => {
                self.wrong(&msg)
            }
            rusqlite::Error::MultipleStatement => {
                anyhow!("there is more than one statement; rpd sql runs one at a time")
            }
            error => Error::new(error).context(format!("cannot read {}", self.name)),
        }
    }

    /// What is wrong with a statement, from SQLite's words about it.
    fn wrong(&self, msg: &str) -> Error {
        if let Some(table) = msg.strip_prefix("no such table: ") {
            let found = table.trim_start_matches("main.");
            if let Some(name) = found.strip_prefix("before.") {
                return anyhow!(
                    "there is no table before.{}: the query compares two traces; --before FILE names the other one",
                    escape(name)
                );
            }
            let tables = self.tables().unwrap_or_default();
            let tip = tip(found, tables.iter().map(String::as_str));
            let there = tables.iter().map(|table| escape(table)).collect::<Vec<_>>().join(", ");
            return anyhow!("{} has no table {}{tip}; it has: {there}", self.name, escape(found));
        }
        if let Some(column) = msg.strip_prefix("no such column: ") {
            // SQLite adds a question to a name in quotes.
            let quoted = column.strip_suffix(" - should this be a string literal in single-quotes?");
            let column = quoted.unwrap_or(column).trim_matches('"');
            let texts = if quoted.is_some() { "; texts are in single quotes" } else { "" };
            let name = column.rsplit('.').next().unwrap_or(column);
            let columns = self.columns().unwrap_or_default();
            // Another table may have a column of that name.
            let others = columns.iter().map(String::as_str).filter(|other| *other != name);
            let tip = tip(name, others);
            return anyhow!(
                "there is no column {}{tip}{texts}; rpd sql {} 'pragma table_info(op)' lists those of the table op",
                escape(column),
                self.name
            );
        }
        anyhow!("the query cannot be run: {}", escape(msg))
    }

    /// Names of all columns there are.
    fn columns(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for table in self.tables()? {
            let mut columns = self.trace.prepare("SELECT name FROM pragma_table_info(?1)")?;
            let columns = columns.query_map([table], |row| row.get(0))?;
            found.extend(columns.collect::<rusqlite::Result<Vec<String>>>()?);
        }
        Ok(found)
    }
}

/// Lets `trace` do what a query may; `refused` gets the first other thing that it would do.
fn guard(trace: &mut Connection, refused: &Arc<Mutex<Option<String>>>) -> rusqlite::Result<()> {
    let refused = Arc::clone(refused);
    trace.authorizer(Some(move |context: AuthContext<'_>| {
        permission::of(&context, &mut |would| {
            refused.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(would);
        })
    }))
}

/// Refuses a file whose schema has bytes that are not UTF-8: the connection's library panics over names with such bytes.
fn check_names(trace: &Connection, schema: &str, file: &Path) -> Result<()> {
    let mut texts =
        trace.prepare(&format!("SELECT sql FROM {schema}.sqlite_master WHERE sql IS NOT NULL"))?;
    let mut texts = texts.query([])?;
    while let Some(row) = texts.next().with_context(|| format!("cannot read {}", file.display()))? {
        if let ValueRef::Text(text) = row.get_ref(0)?
            && std::str::from_utf8(text).is_err()
        {
            bail!(
                "{}: a table, a view or a column has a name that is not UTF-8, so queries are not possible",
                file.display()
            );
        }
    }
    Ok(())
}

impl Prepared<'_> {
    /// Names of the columns, each another one: a second `id` is `id:1`, as SQLite has it in views.
    pub fn columns(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for name in self.statement.column_names() {
            let mut unique = name.to_string();
            let mut number = 0;
            while names.contains(&unique) {
                number += 1;
                unique = format!("{name}:{number}");
            }
            names.push(unique);
        }
        names
    }

    /// Runs the query and gives `row` each row of its answer, until that returns false.
    ///
    /// # Errors
    /// When the time is over, when the trace cannot be read, or what `row` fails with.
    pub fn each(mut self, mut row: impl FnMut(&Row<'_>) -> Result<bool>) -> Result<()> {
        let questioned = self.questioned;
        let mut rows = self.statement.query([]).map_err(|error| questioned.explained(error))?;
        while let Some(found) = rows.next().map_err(|error| questioned.explained(error))? {
            if !row(found)? {
                break;
            }
        }
        Ok(())
    }
}
