//! Repairs that invent nothing, in one transaction: all of it or nothing.
//!
//! - A row with impossible times goes, and so does a row whose call or op is not there: a missing row is
//!   better than a wrong number. What hung off it goes with it.
//! - A text that is not there becomes the empty text, a code object that is not there 0: "not known".
//! - Tables, views and indexes of the format that are missing are added, views that cannot be read replaced.
//! - A session without an end stays without one.
//!
//! What was done is kept in `rocpd_metadata`: one row `repaired::KIND` per place.

use std::path::Path;

use anyhow::{Context, Result, bail};
use rpd_schema::{BUSY_TIME, Version};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use serde::Serialize;

use super::expected::{Expected, expected};
use super::kind::FindingKind;
use super::rule::{Mend, Rule, rules};
use super::verdict::Verdict;
use super::writer::obstacle_of;
use super::{sessions, structure};
use crate::trace::launch::SIZES;
use crate::trace::layout::{Layout, quote, same};
use crate::trace::op_kind::KERNEL_TYPES;

/// Something that was mended.
#[derive(Debug, Serialize)]
pub struct Repair {
    /// Name of the kind of finding.
    pub kind: &'static str,
    /// Where.
    pub place: String,
    /// What was done.
    pub done: String,
    /// To how many rows.
    pub rows: u64,
}

/// Why this file is not repaired, if something speaks against it.
pub fn obstacle(file: &Path, verdict: &Verdict) -> Option<String> {
    let found = |kind| verdict.findings.iter().any(|finding| finding.kind == kind);
    if let Some(writer) = obstacle_of(file, verdict.recorder) {
        return Some(writer);
    }
    if found(FindingKind::DamagedDatabase) || found(FindingKind::UnreadableTable) {
        return Some("the database is damaged; save what can be saved with: sqlite3 FILE .recover".into());
    }
    (verdict.schema == Version::V1.to_string())
        .then(|| "only traces of schema 2 and 3 can be repaired".into())
}

/// Mends what can be mended, and says what that was. A file with nothing to mend is not touched.
///
/// # Errors
/// When the file cannot be written; it is as it was before then.
pub fn repair(file: &Path) -> Result<Vec<Repair>> {
    mend(file).with_context(|| format!("{} was not repaired and is as it was", file.display()))
}

fn mend(file: &Path) -> Result<Vec<Repair>> {
    let mut trace = open(file)?;
    let transaction = trace.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    // From here on nobody else writes; who came since the check is not cut short either.
    if let Some(writer) = obstacle_of(file, sessions::Sessions::of(&transaction)?.running_pid()) {
        bail!("{writer}");
    }
    let mut done = Repairs { transaction: &transaction, repairs: Vec::new(), has_launches: false };
    let layout = Layout::of(&transaction)?;
    let format = expected(layout.version())?;
    done.objects(&layout, &format)?;
    done.indexes()?;
    // What has been added counts from here on.
    let layout = Layout::of(&transaction)?;
    done.version(&layout)?;
    let launches = ["rocpd_api", "rocpd_op", "rocpd_api_ops", "rocpd_kernelapi", "ext_dispatch"];
    done.has_launches =
        launches.iter().all(|name| layout.table(name).is_some_and(|table| table.key.is_some()));
    done.keep_launches("NOT EXISTS (SELECT 1 FROM rocpd_api C WHERE C.id = L.api_id)")?;
    done.rows(&layout)?;
    done.links(&layout)?;
    done.declarations(&layout)?;
    done.session_count(&layout)?;
    let repairs = done.repairs;
    if !repairs.is_empty() {
        note(&transaction, &repairs)?;
        transaction.commit()?;
    }
    Ok(repairs)
}

/// A connection that may write, and creates nothing.
fn open(file: &Path) -> Result<Connection> {
    // SQLite takes a relative name that begins with `file:` for a URI.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let trace = Connection::open_with_flags(std::path::absolute(file)?, flags)?;
    // SQLite opens a file that it may not write for reading only, without a word.
    if trace.is_readonly("main")? {
        bail!("the file or its file system is read-only; change its permissions or repair a copy");
    }
    trace.busy_timeout(BUSY_TIME)?;
    trace.execute_batch(
        "PRAGMA foreign_keys = OFF; PRAGMA trusted_schema = OFF; PRAGMA temp_store = FILE; PRAGMA cache_size = -16384",
    )?;
    Ok(trace)
}

struct Repairs<'a> {
    transaction: &'a Transaction<'a>,
    repairs: Vec<Repair>,
    /// Whether the file has the tables in which launches are.
    has_launches: bool,
}

impl Repairs<'_> {
    /// Notes what was done to so many rows; what is done again to the same place adds up.
    fn add(&mut self, kind: FindingKind, place: impl Into<String>, rows: u64, done: impl Into<String>) {
        let repair = Repair { kind: kind.name(), place: place.into(), done: done.into(), rows };
        let is_same = |known: &&mut Repair| {
            (known.kind, &known.place, &known.done) == (repair.kind, &repair.place, &repair.done)
        };
        match self.repairs.iter_mut().find(is_same) {
            Some(known) => known.rows += rows,
            None => self.repairs.push(repair),
        }
    }

    /// What the format has and the file lacks, and views that cannot be read. Later additions to the format
    /// are left to those who fill them.
    fn objects(&mut self, layout: &Layout, format: &[Expected]) -> rusqlite::Result<()> {
        for object in format.iter().filter(|object| !object.is_later_addition && !layout.has(&object.name)) {
            let Some(sql) = &object.sql else { continue };
            self.transaction.execute_batch(sql)?;
            self.add(object.kind_if_missing(), object.name.clone(), 1, "added, as a fresh file has it");
        }
        // A view that read a missing table reads again now.
        for broken in structure::broken_views(self.transaction, layout)? {
            let object =
                format.iter().find(|object| same(&object.name, &broken.place) && object.kind == "view");
            if let Some(sql) = object.and_then(|object| object.sql.as_ref()) {
                self.transaction.execute_batch(&format!("DROP VIEW {}", quote(&broken.place)))?;
                self.transaction.execute_batch(sql)?;
                self.add(broken.kind, broken.place, 1, "replaced by that of a fresh file");
            }
        }
        Ok(())
    }

    fn indexes(&mut self) -> rusqlite::Result<()> {
        let findings = structure::pages(self.transaction)?;
        if let Some(found) = findings.into_iter().find(|finding| finding.kind == FindingKind::IndexOutOfStep)
        {
            self.transaction.execute_batch("REINDEX")?;
            self.add(found.kind, found.place, found.count, "built anew");
        }
        Ok(())
    }

    fn version(&mut self, layout: &Layout) -> rusqlite::Result<()> {
        if let Some(found) = structure::version(self.transaction, layout)? {
            let version = layout.version().to_string();
            let rows =
                self.transaction.execute("DELETE FROM rocpd_metadata WHERE tag = 'schema_version'", [])?;
            self.transaction.execute(
                "INSERT INTO rocpd_metadata (tag, value) VALUES ('schema_version', ?1)",
                [&version],
            )?;
            self.add(found.kind, found.place, rows.max(1) as u64, format!("schema_version set to {version}"));
        }
        Ok(())
    }

    /// How a kernel was launched is in the row of its call. Where the call is gone or goes, which `condition` says of the link `L`, the kernel
    /// gets a row of its own.
    fn keep_launches(&mut self, condition: &str) -> rusqlite::Result<()> {
        if !self.has_launches {
            return Ok(());
        }
        let rest = ["groupSegmentSize", "privateSegmentSize", "kernelArgAddress", "codeObject_id"];
        let columns = [&SIZES[..], &rest].concat().join(", ");
        let rows = self.transaction.execute(
            &format!(
                "INSERT OR IGNORE INTO ext_dispatch (op_id, kernelName_id, {columns})
                 SELECT L.op_id, kernelName_id, {columns}
                 FROM rocpd_api_ops L JOIN rocpd_kernelapi ON api_ptr_id = L.api_id JOIN rocpd_op O ON O.id = L.op_id
                 WHERE O.opType_id IN (SELECT id FROM rocpd_string WHERE string IN ({KERNEL_TYPES})) AND {condition}"
            ),
            [],
        )?;
        if rows > 0 {
            let done = "added, from launches whose call is gone";
            self.add(FindingKind::DanglingId, "ext_dispatch", rows as u64, done);
        }
        Ok(())
    }

    /// Applies the rules that say how, until nothing is left: a row that goes takes with it what refers to it.
    fn rows(&mut self, layout: &Layout) -> rusqlite::Result<()> {
        loop {
            let mut removed = 0;
            for table in &layout.tables {
                let rules = rules(layout, table);
                for rule in rules {
                    removed += self.apply(&table.name, &rule)?;
                }
            }
            if removed == 0 {
                return Ok(());
            }
        }
    }

    /// Mends the rows of one rule; how many were removed.
    fn apply(&mut self, table: &str, rule: &Rule) -> rusqlite::Result<u64> {
        let (statement, done) = match &rule.mend {
            None => return Ok(0),
            Some(Mend::Remove) => (format!("DELETE FROM {} AS t", quote(table)), "removed"),
            Some(Mend::Zero { column }) => {
                (format!("UPDATE {} AS t SET {} = 0", quote(table), quote(column)), "set to 0 (unknown)")
            }
            Some(Mend::EmptyText { column, texts, key }) => {
                let Some(empty) = self.empty_text(table, rule, texts, key)? else { return Ok(0) };
                (
                    format!("UPDATE {} AS t SET {} = {empty}", quote(table), quote(column)),
                    "set to the empty text",
                )
            }
        };
        if same(table, "rocpd_api") && matches!(rule.mend, Some(Mend::Remove)) {
            self.keep_launches(&format!(
                "L.api_id IN (SELECT t.id FROM rocpd_api AS t WHERE {})",
                rule.condition
            ))?;
        }
        let rows = self.transaction.execute(&format!("{statement} WHERE {}", rule.condition), [])? as u64;
        let is_removal = matches!(rule.mend, Some(Mend::Remove));
        if rows > 0 {
            self.add(rule.kind, rule.place.clone(), rows, done);
        }
        Ok(if is_removal { rows } else { 0 })
    }

    /// The id of the empty text, which is written where there is none; none where nothing needs it.
    fn empty_text(&self, table: &str, rule: &Rule, texts: &str, key: &str) -> rusqlite::Result<Option<i64>> {
        let first = format!("SELECT min({}) FROM {} WHERE string = ''", quote(key), quote(texts));
        let known: Option<i64> = self.transaction.query_row(&first, [], |row| row.get(0))?;
        if known.is_some() {
            return Ok(known);
        }
        let needed = format!("SELECT EXISTS (SELECT 1 FROM {} AS t WHERE {})", quote(table), rule.condition);
        if !self.transaction.query_row(&needed, [], |row| row.get(0))? {
            return Ok(None);
        }
        self.transaction.execute(&format!("INSERT INTO {} (string) VALUES ('')", quote(texts)), [])?;
        Ok(Some(self.transaction.last_insert_rowid()))
    }

    fn links(&mut self, layout: &Layout) -> rusqlite::Result<()> {
        if layout.table("rocpd_api_ops").is_none() {
            return Ok(());
        }
        let rows = self.transaction.execute(
            "DELETE FROM rocpd_api_ops WHERE rowid IN (
                 SELECT number FROM (
                     SELECT rowid AS number, row_number() OVER (PARTITION BY op_id, api_id ORDER BY rowid) AS nth
                     FROM rocpd_api_ops)
                 WHERE nth > 1)",
            [],
        )?;
        if rows > 0 {
            self.add(FindingKind::DuplicateLink, "rocpd_api_ops", rows as u64, "removed");
        }
        Ok(())
    }

    fn declarations(&mut self, layout: &Layout) -> rusqlite::Result<()> {
        for unknown in structure::unknown_references(self.transaction, layout)? {
            self.transaction.execute("DELETE FROM rocpd_metadata WHERE id = ?1", [unknown.row])?;
            let place = format!("{}.{}", unknown.table, unknown.column);
            self.add(FindingKind::UnknownReference, place, 1, "declaration removed");
        }
        Ok(())
    }

    fn session_count(&mut self, layout: &Layout) -> rusqlite::Result<()> {
        let claimed = sessions::claimed(self.transaction, layout)?;
        let needed = sessions::needed_count(self.transaction, layout, claimed)?;
        if needed > claimed {
            self.transaction.execute("DELETE FROM rocpd_metadata WHERE tag = 'session_count'", [])?;
            self.transaction.execute(
                "INSERT INTO rocpd_metadata (tag, value) VALUES ('session_count', ?1)",
                [needed.to_string()],
            )?;
            let done = format!("session_count set to {needed}");
            self.add(FindingKind::UnclaimedId, "rocpd_metadata", 1, done);
        }
        Ok(())
    }
}

/// Keeps in the file what was done to it.
fn note(transaction: &Transaction<'_>, repairs: &[Repair]) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare(
        "INSERT INTO rocpd_metadata (tag, value)
         VALUES ('repaired::' || ?1, ?2 || ': ' || ?3 || ' (rows: ' || ?4 || ', ' || strftime('%Y-%m-%dT%H:%M:%SZ', 'now') || ')')",
    )?;
    for Repair { kind, place, done, rows } in repairs {
        insert.execute(rusqlite::params![kind, place, done, *rows as i64])?;
    }
    Ok(())
}
