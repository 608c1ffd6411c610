//! What `rpd check` looks for in a file, and what it can put right.
//!
//! | file | owns |
//! |---|---|
//! | `kind.rs`, `finding.rs` | what can be found, and one finding |
//! | `journal.rs` | journals beside the file |
//! | `expected.rs` | the tables there should be |
//! | `structure.rs` | pages, version, tables, views, keys |
//! | `rule.rs`, `scan.rs` | conditions on rows, and one pass over a table that counts them all |
//! | `links.rs`, `far.rs` | ops beside their calls; times far from all others |
//! | `sessions.rs`, `liveness.rs` | sessions without an end, lost records, ids out of order; whether a process lives |
//! | `repair.rs` | what can be mended without inventing anything, in one transaction |
//!
//! Rows are judged by what the file itself declares, so that extensions and other writers' tables are too.

mod expected;
pub(crate) mod far;
mod finding;
mod journal;
mod kind;
mod links;
pub(crate) mod liveness;
mod repair;
pub(crate) mod rule;
mod scan;
pub(crate) mod sessions;
mod structure;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rusqlite::Connection;
use serde::Serialize;

pub(crate) use finding::Finding;
pub(crate) use kind::Severity;
pub(crate) use repair::{Repair, obstacle, repair};

use crate::layout::{Layout, TableLayout};
use crate::progress::Progress;
use crate::trace;
use kind::Kind;
use sessions::Sessions;

/// A file larger than this is not read page by page while it is being recorded: SQLite would lock it for as
/// long as that takes. 64 MiB take a fraction of a second.
const LARGE: u64 = 64 << 20;

/// Everything found in a file.
#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    /// The file, as it was named.
    pub(crate) file: String,
    /// Schema version that its tables have: 1, 2 or 3.
    pub(crate) schema: String,
    /// Worst first.
    pub(crate) findings: Vec<Finding>,
    /// A process that is recording into it.
    #[serde(skip)]
    pub(crate) recorder: Option<u32>,
}

impl Verdict {
    /// Checks a trace. A file whose writer was killed is rolled back to its last commit first, as it is by
    /// whoever opens it; nothing else is changed.
    ///
    /// # Errors
    /// When it is no trace, or cannot be read for other reasons than damage.
    pub(crate) fn of(file: &Path) -> Result<Verdict> {
        rpd_schema::identify(file)?;
        let journals = journal::beside(file);
        let rolled_back = !journals.is_empty() && journal::awaits_rollback(file);
        let (trace, _) = rpd_schema::open_read(file)?;
        let mut findings = journal::findings(file, &journals, rolled_back);
        let (schema, recorder) = examine(file, &trace, &mut findings)
            .with_context(|| format!("cannot check {}", file.display()))?;
        findings.sort_by_key(|finding| finding.kind.severity());
        Ok(Verdict { file: file.to_string_lossy().into_owned(), schema, findings, recorder })
    }

    /// How many findings there are of a severity.
    pub(crate) fn count(&self, severity: Severity) -> u64 {
        self.findings.iter().filter(|finding| finding.kind.severity() == severity).count() as u64
    }
}

/// The process that is recording into a file now, if there is one on this host.
///
/// # Errors
/// When the metadata cannot be read.
pub(crate) fn recorder(trace: &Connection) -> rusqlite::Result<Option<u32>> {
    let sessions = Sessions::of(trace)?;
    let file = trace.path().map(Path::new);
    // A copy has the sessions of its original.
    let is_its = |pid: &u32| file.and_then(|file| liveness::is_writer(*pid, file)) != Some(false);
    Ok(sessions.running_pids().find(is_its))
}

/// Who writes into a file now, and what to do about it, if somebody does.
///
/// # Errors
/// As [`recorder`].
pub(crate) fn writer(file: &Path, trace: &Connection) -> rusqlite::Result<Option<String>> {
    Ok(repair::writer(file, recorder(trace)?))
}

fn examine(file: &Path, trace: &Connection, findings: &mut Vec<Finding>) -> Result<(String, Option<u32>)> {
    // What is sorted may be larger than memory.
    trace.execute_batch("PRAGMA temp_store = FILE")?;
    let progress = Progress::new();
    let layout = Layout::of(trace)?;
    let sessions = settle(findings, "rocpd_metadata", Sessions::of(trace))?.unwrap_or_default();
    let running = sessions.running();

    progress.show("pages");
    if !running.is_empty() && fs::metadata(file)?.len() > LARGE {
        findings.push(Finding::new(Kind::PagesNotChecked, "file", 1));
    } else {
        findings.extend(structure::pages(trace)?);
    }
    let version = structure::version(trace, &layout).map(|found| found.into_iter().collect());
    gather(findings, "rocpd_metadata", version)?;
    findings.extend(structure::missing(&layout, &expected::expected(layout.version())?));
    gather(findings, "sqlite_master", structure::broken_views(trace, &layout))?;
    gather(findings, "rocpd_metadata", structure::references(trace, &layout))?;
    progress.show("ids");
    gather(findings, "ids", structure::keys(trace, &layout))?;
    gather(findings, "ids", sessions::unclaimed(trace, &layout))?;

    rows(trace, &layout, &running, &progress, findings)?;
    progress.show("links");
    gather(findings, "rocpd_api_ops", links::compare(trace, &layout, &running))?;
    findings.extend(sessions.findings());
    Ok((layout.version().to_string(), sessions.running_pid()))
}

/// Judges every row of every table.
fn rows(
    trace: &Connection,
    layout: &Layout,
    running: &[u32],
    progress: &Progress,
    findings: &mut Vec<Finding>,
) -> rusqlite::Result<()> {
    let with_dispatches = sessions_with_dispatches(trace, layout, findings)?;
    let mut span = None;
    for table in &layout.tables {
        let rules = rule::rules(layout, table, &with_dispatches);
        if rules.is_empty() {
            continue;
        }
        progress.show(&table.name);
        let tell = |rows| progress.show(&format!("{}: {rows} rows", table.name));
        let scanned = scan::scan(trace, table, &rules, running, tell);
        if let Some(scanned) = settle(findings, &table.name, scanned)? {
            findings.extend(scanned.findings);
            span = scan::join(span, scanned.span);
        }
    }
    if far::is_possible(span) {
        let timed: Vec<&TableLayout> = layout.tables.iter().filter(|table| table.is_timed()).collect();
        progress.show("times");
        gather(findings, "times", far::times(trace, &timed, running))?;
    }
    Ok(())
}

fn sessions_with_dispatches(
    trace: &Connection,
    layout: &Layout,
    findings: &mut Vec<Finding>,
) -> rusqlite::Result<Vec<i64>> {
    if layout.table("ext_dispatch").is_none_or(|table| table.key.is_none()) {
        return Ok(Vec::new());
    }
    let sessions = trace::rows_by_session(trace, "ext_dispatch", "op_id");
    let sessions = settle(findings, "ext_dispatch", sessions)?.unwrap_or_default();
    Ok(sessions.into_keys().collect())
}

/// Takes what a part of the check found; damage that stopped it is a finding too.
fn gather(
    findings: &mut Vec<Finding>,
    place: &str,
    found: rusqlite::Result<Vec<Finding>>,
) -> rusqlite::Result<()> {
    let found = settle(findings, place, found)?.unwrap_or_default();
    findings.extend(found);
    Ok(())
}

/// The result of reading something, or none and a finding where the file is damaged there.
///
/// # Errors
/// Failures that are not the file's.
fn settle<T>(
    findings: &mut Vec<Finding>,
    place: &str,
    result: rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if trace::is_damage(&error) => {
            let told =
                findings.iter().any(|known| known.kind == Kind::UnreadableTable && known.place == place);
            if !told {
                let reason = structure::reason(&error);
                findings.push(Finding::new(Kind::UnreadableTable, place, 1).detail(reason));
            }
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
