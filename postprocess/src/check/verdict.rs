//! Everything that is found in a file.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rusqlite::Connection;
use serde::Serialize;

use super::finding::CheckFinding;
use super::kind::{FindingKind, Severity};
use super::sessions::{self, Sessions};
use super::{expected, journal, links, outlier, rule, scan, structure};
use crate::notes::Notes;
use crate::trace;
use crate::trace::layout::{Layout, TableLayout};

/// A file larger than this is not read page by page while it is being recorded: SQLite would lock it for as
/// long as that takes. 64 MiB take a fraction of a second.
const LARGE: u64 = 64 << 20;

/// Everything found in a file.
#[derive(Debug, Serialize)]
pub struct Verdict {
    /// The file, as it was named.
    pub file: String,
    /// Schema version that its tables have: 1, 2 or 3.
    pub schema: String,
    /// Worst first.
    pub findings: Vec<CheckFinding>,
    /// A process that is recording into it.
    #[serde(skip)]
    pub recorder: Option<u32>,
}

impl Verdict {
    /// Checks a trace. A file whose writer was killed is rolled back to its last commit first, as it is by
    /// whoever opens it; nothing else is changed.
    ///
    /// # Errors
    /// When it is no trace, or cannot be read for other reasons than damage.
    pub fn of(file: &Path, notes: &dyn Notes) -> Result<Verdict> {
        let journals = journal::beside(file);
        let rolled_back = !journals.is_empty() && journal::awaits_rollback(file);
        let (trace, _) = rpd_schema::open_read(file)?;
        let mut findings = journal::findings(file, &journals, rolled_back);
        let (schema, recorder) = examine(file, &trace, notes, &mut findings)
            .with_context(|| format!("cannot check {}", file.display()))?;
        findings.sort_by_key(|finding| finding.kind.severity());
        Ok(Verdict { file: file.to_string_lossy().into_owned(), schema, findings, recorder })
    }

    /// How many findings there are of a severity.
    pub fn count(&self, severity: Severity) -> u64 {
        self.findings.iter().filter(|finding| finding.kind.severity() == severity).count() as u64
    }
}

fn examine(
    file: &Path,
    trace: &Connection,
    notes: &dyn Notes,
    findings: &mut Vec<CheckFinding>,
) -> Result<(String, Option<u32>)> {
    // What is sorted may be larger than memory.
    trace.execute_batch("PRAGMA temp_store = FILE")?;
    let layout = Layout::of(trace)?;
    let sessions = record_damage(findings, "rocpd_metadata", Sessions::of(trace))?.unwrap_or_default();
    let running = sessions.running();

    notes.show("pages");
    if !running.is_empty() && fs::metadata(file)?.len() > LARGE {
        findings.push(CheckFinding::new(FindingKind::PagesNotChecked, "file", 1));
    } else {
        findings.extend(structure::pages(trace)?);
    }
    let version = structure::version(trace, &layout).map(|found| found.into_iter().collect());
    gather(findings, "rocpd_metadata", version)?;
    findings.extend(structure::missing(&layout, &expected::expected(layout.version())?));
    gather(findings, "sqlite_master", structure::broken_views(trace, &layout))?;
    gather(findings, "rocpd_metadata", structure::references(trace, &layout))?;
    notes.show("ids");
    gather(findings, "ids", structure::keys(trace, &layout))?;
    gather(findings, "ids", sessions::unclaimed(trace, &layout))?;

    rows(trace, &layout, &running, notes, findings)?;
    notes.show("links");
    let described = described_sessions(trace, &layout, findings)?;
    gather(findings, "rocpd_api_ops", links::compare(trace, &layout, &running, &described))?;
    findings.extend(sessions.findings());
    Ok((layout.version().to_string(), sessions.running_pid()))
}

/// Judges every row of every table.
fn rows(
    trace: &Connection,
    layout: &Layout,
    running: &[u32],
    notes: &dyn Notes,
    findings: &mut Vec<CheckFinding>,
) -> rusqlite::Result<()> {
    let mut span = None;
    for table in &layout.tables {
        let rules = rule::rules(layout, table);
        if rules.is_empty() {
            continue;
        }
        notes.show(&table.name);
        let tell = |rows| notes.show(&format!("{}: {rows} rows", table.name));
        let scanned = scan::scan(trace, table, &rules, running, tell);
        if let Some(scanned) = record_damage(findings, &table.name, scanned)? {
            findings.extend(scanned.findings);
            span = scan::join(span, scanned.span);
        }
    }
    if outlier::is_possible(span) {
        let timed: Vec<&TableLayout> = layout.tables.iter().filter(|table| table.is_timed()).collect();
        notes.show("times");
        gather(findings, "times", outlier::times(trace, &timed, running))?;
    }
    Ok(())
}

/// The sessions that say how the kernels of graphs were launched.
fn described_sessions(
    trace: &Connection,
    layout: &Layout,
    findings: &mut Vec<CheckFinding>,
) -> rusqlite::Result<Vec<i64>> {
    if layout.table("ext_dispatch").is_none_or(|table| table.key.is_none()) {
        return Ok(Vec::new());
    }
    let sessions = trace::rows_by_session(trace, "ext_dispatch", "op_id");
    let sessions = record_damage(findings, "ext_dispatch", sessions)?.unwrap_or_default();
    Ok(sessions.into_keys().collect())
}

/// Takes what a part of the check found; damage that stopped it is a finding too.
fn gather(
    findings: &mut Vec<CheckFinding>,
    place: &str,
    found: rusqlite::Result<Vec<CheckFinding>>,
) -> rusqlite::Result<()> {
    let found = record_damage(findings, place, found)?.unwrap_or_default();
    findings.extend(found);
    Ok(())
}

/// The result of reading something, or none and a finding where the file is damaged there.
///
/// # Errors
/// Failures that are not the file's.
fn record_damage<T>(
    findings: &mut Vec<CheckFinding>,
    place: &str,
    result: rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if trace::is_damage(&error) => {
            let is_reported = findings
                .iter()
                .any(|known| known.kind == FindingKind::UnreadableTable && known.place == place);
            if !is_reported {
                let reason = structure::reason(&error);
                findings.push(CheckFinding::new(FindingKind::UnreadableTable, place, 1).detail(reason));
            }
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
