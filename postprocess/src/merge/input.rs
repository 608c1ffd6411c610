//! One of the traces to be merged: what has to be known of it before any row is copied.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rpd_schema::text::text_of;
use rpd_schema::{GpuInfo, SessionInfo, Version};
use rusqlite::{Connection, Row};

use crate::check::writer::recorder;
use crate::pass::{Freshness, PassState};
use crate::passes::PASSES;
use crate::text;
use crate::trace::layout::{Layout, metadata as metadata_value, quote};
use crate::trace::{row_count, rows_by_session};
use crate::trim::ORIGIN;

/// A trace to be merged.
#[derive(Debug)]
pub(super) struct Input {
    /// Its path, as it was named.
    pub(super) path: PathBuf,
    /// Schema 2 or 3.
    pub(super) version: Version,
    /// Its tables.
    pub(super) layout: Layout,
    /// How many rows each of them has.
    pub(super) rows: BTreeMap<String, u64>,
    /// How SQLite keeps its texts: UTF-8 ...
    pub(super) encoding: String,
    /// What tells the trace of which it is a part, if it is one.
    pub(super) origin: Option<String>,
    /// Sessions that have calls.
    pub(super) with_calls: Vec<i64>,
    /// Its sessions that say something of themselves.
    pub(super) sessions: Vec<SessionInfo>,
    /// What notes beside it say of them and it does not.
    pub(super) noted: Vec<SessionInfo>,
    /// Its GPUs that it says something of.
    pub(super) gpus: Vec<GpuInfo>,
    /// How many session numbers its ids and notes take.
    pub(super) session_span: i64,
    /// Whether it was made by a merge: times and ids of its nodes have been fitted together.
    pub(super) is_merged: bool,
    /// The passes that have been made in it, by name, and whether they cover its rows.
    pub(super) passes: BTreeMap<&'static str, Freshness>,
    /// What the subclasses in it are of, by table.
    pub(super) subclasses: BTreeMap<String, String>,
}

impl Input {
    /// Reads what has to be known of a trace.
    ///
    /// # Errors
    /// When it is no trace of schema 2 or 3, cannot be read, or has ids that leave no room for others.
    pub(super) fn of(path: &Path) -> Result<Input> {
        let (trace, version) = rpd_schema::open_read(path)?;
        let shown = text::escape_path(path);
        if version == Version::V1 {
            bail!("{shown}: a trace of schema 1, and only schema 2 and 3 can be worked on");
        }
        Input::read(path, &trace, version).with_context(|| format!("cannot merge {shown}"))
    }

    fn read(path: &Path, trace: &Connection, version: Version) -> Result<Input> {
        if let Some(pid) = recorder(trace)? {
            bail!(
                "process {pid} is recording into it; merge it when that has ended, or a copy made with: rpd trim FILE -o COPY"
            );
        }
        let layout = Layout::everything(trace)?;
        let rows = layout.tables.iter().map(|table| Ok((table.name.clone(), row_count(trace, &table.name)?)));
        let rows = rows.collect::<rusqlite::Result<_>>()?;
        let mut passes = BTreeMap::new();
        for definition in PASSES {
            match PassState::of(trace, definition)? {
                PassState::Absent => {}
                PassState::Partial => bail!(
                    "{} was begun in it by a tool that did not come to its end; make it anew with: rpd {} --redo FILE",
                    definition.name,
                    definition.name
                ),
                PassState::Applied(freshness) => {
                    passes.insert(definition.name, freshness);
                }
            }
        }
        let noted = rpd_schema::noted_sessions(trace, path)?;
        let noted_span = noted.iter().map(|session| i64::from(session.session) + 1).max().unwrap_or(0);
        Ok(Input {
            path: path.to_path_buf(),
            version,
            session_span: session_span(trace, &layout)?.max(noted_span),
            rows,
            encoding: trace.query_row("PRAGMA encoding", [], |row| row.get(0))?,
            origin: metadata_value(trace, &layout, ORIGIN)?,
            with_calls: rows_by_session(trace, "rocpd_api", "id")?.into_keys().collect(),
            layout,
            sessions: rpd_schema::sessions(trace)?,
            noted,
            gpus: rpd_schema::gpus(trace)?,
            is_merged: !tagged(trace, "node::")?.is_empty(),
            passes,
            subclasses: tagged(trace, "Subclass::")?,
        })
    }

    /// The file, as it can be found again under another name.
    ///
    /// # Errors
    /// When it is not there.
    pub(super) fn identity(&self) -> Result<(u64, u64)> {
        let metadata = fs::metadata(&self.path)?;
        Ok((metadata.dev(), metadata.ino()))
    }
}

/// The metadata of an open trace in the order of its rows: tags and values.
pub(super) fn metadata(trace: &Connection, name: &str) -> rusqlite::Result<Vec<(String, String)>> {
    let query = format!("SELECT tag, value FROM {name}.rocpd_metadata ORDER BY rowid");
    let mut rows = trace.prepare(&query)?;
    let text = |row: &Row<'_>, at| row.get_ref(at).map(|value| text_of(value).into_owned());
    let rows = rows.query_map([], |row| Ok((text(row, 0)?, text(row, 1)?)))?;
    rows.collect()
}

/// Rows of the metadata whose tags begin with `prefix`, by what follows it.
fn tagged(trace: &Connection, prefix: &str) -> rusqlite::Result<BTreeMap<String, String>> {
    let rows = metadata(trace, "main")?.into_iter();
    Ok(rows.filter_map(|(tag, value)| Some((tag.strip_prefix(prefix)?.to_string(), value))).collect())
}

/// One more than the largest session that an id of the file has.
fn session_span(trace: &Connection, layout: &Layout) -> Result<i64> {
    let mut span = 1;
    for table in &layout.tables {
        let Some(key) = table.key.as_deref().filter(|key| table.is_integer(key)) else { continue };
        let query = format!("SELECT min({0}), max({0}) FROM {1}", quote(key), quote(&table.name));
        let ends = trace.query_row(&query, [], |row| {
            Ok((row.get_ref(0)?.as_i64_or_null().ok(), row.get_ref(1)?.as_i64_or_null().ok()))
        })?;
        let (Some(first), Some(last)) = ends else {
            bail!("{} has ids that are no numbers; see: rpd check FILE", table.name)
        };
        let (first, last) = (first.unwrap_or(0), last.unwrap_or(0));
        if first < 0 || last >> 32 >= 1 << 30 {
            bail!("{} has ids that no session can have ({first} to {last}); see: rpd check FILE", table.name);
        }
        span = span.max((last >> 32) + 1);
    }
    Ok(span)
}
