//! The texts of a file, `rocpd_string` and in schema 3 `rocpd_ustring`: finding one, adding one, and removing those
//! that nothing refers to any more.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Result, bail};
use roaring::RoaringTreemap;
use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::change::Change;
use crate::trace::layout::{Layout, declared_texts, quote, same};

/// Bytes of texts that are remembered at once; then they are looked up again.
const REMEMBERED: usize = 4 << 20;

/// What remembering costs beside the text itself, bytes.
const ENTRY: usize = 64;

/// Rows between two lines of progress.
const ROWS_PER_STEP: u64 = 1 << 18;

/// Ids of texts of one table, in which each text is wanted once.
pub(crate) struct Texts<'a> {
    trace: &'a Connection,
    table: &'static str,
    has_index: bool,
    known: HashMap<String, i64>,
    /// Bytes that those take.
    remembered: usize,
}

impl<'a> Texts<'a> {
    /// The texts of `rocpd_string` or `rocpd_ustring`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn of(trace: &'a Connection, table: &'static str) -> rusqlite::Result<Texts<'a>> {
        let has_index = trace.query_row(
            "SELECT EXISTS (SELECT 1 FROM pragma_index_list(?1) L, pragma_index_info(L.name) C
                 WHERE C.seqno = 0 AND lower(C.name) = 'string')",
            [table],
            |row| row.get(0),
        )?;
        Ok(Texts { trace, table, has_index, known: HashMap::new(), remembered: 0 })
    }

    /// The id of this text, which is added where the file lacks it. Without an index on the texts it is added if it has
    /// not been met here before.
    ///
    /// # Errors
    /// When the file cannot be read or written, or has no ids left.
    pub(crate) fn id(&mut self, text: &str) -> Result<i64> {
        if let Some(id) = self.known.get(text) {
            return Ok(*id);
        }
        let found: Option<i64> = if self.has_index {
            let query = format!("SELECT id FROM {} WHERE string = ?1 ORDER BY id LIMIT 1", self.table);
            self.trace.prepare_cached(&query)?.query_row([text], |row| row.get(0)).optional()?
        } else {
            None
        };
        let id = match found {
            Some(id) => id,
            None => self.add(text)?,
        };
        self.remembered += text.len() + ENTRY;
        if self.remembered > REMEMBERED {
            self.known.clear();
            self.remembered = text.len() + ENTRY;
        }
        self.known.insert(text.to_string(), id);
        Ok(id)
    }

    /// Adds a text that is not looked for, and says its id.
    ///
    /// # Errors
    /// When the file cannot be written, or has no ids left.
    fn add(&mut self, text: &str) -> Result<i64> {
        let insert = format!("INSERT INTO {} (string) VALUES (?1)", self.table);
        match self.trace.prepare_cached(&insert)?.execute([text]) {
            // SQLite says of an exhausted AUTOINCREMENT that the disk is full.
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DiskFull) && self.is_exhausted()? =>
            {
                bail!(
                    "{} has a text with the largest id that there can be, so that none can be added behind it",
                    self.table
                )
            }
            added => added?,
        };
        Ok(self.trace.last_insert_rowid())
    }

    fn is_exhausted(&self) -> rusqlite::Result<bool> {
        let largest = format!("SELECT ifnull(max(rowid), 0) = {} FROM {}", i64::MAX, self.table);
        self.trace.query_row(&largest, [], |row| row.get(0))
    }
}

/// Removes those of `candidates`, ids of texts of `table`, that nothing refers to.
///
/// # Errors
/// When the file cannot be read or written.
pub(crate) fn remove_unused(change: &Change<'_>, table: &str, mut candidates: RoaringTreemap) -> Result<()> {
    for (user, columns) in users(change.trace, table)? {
        if candidates.is_empty() {
            return Ok(());
        }
        let columns: Vec<String> = columns.iter().map(|column| quote(column)).collect();
        let mut select =
            change.trace.prepare(&format!("SELECT {} FROM {}", columns.join(", "), quote(&user)))?;
        let mut rows = select.query([])?;
        let mut done = 0_u64;
        while let Some(row) = rows.next()? {
            if done.is_multiple_of(ROWS_PER_STEP) {
                change.show(&format!("texts in use: {done} rows of {user}"));
                change.check()?;
            }
            done += 1;
            for column in 0..columns.len() {
                if let Ok(id) = row.get_ref(column)?.as_i64() {
                    candidates.remove(id.cast_unsigned());
                }
            }
        }
    }
    let rows: i64 = change.trace.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
    change.show("removing texts that are not in use");
    // A text in the index costs several times what one that is copied costs.
    if candidates.len() > rows.unsigned_abs() / 4 {
        keep_others(change, table, &candidates)?;
    } else {
        let mut delete = change.trace.prepare(&format!("DELETE FROM {table} WHERE id = ?1"))?;
        for id in &candidates {
            delete.execute([id.cast_signed()])?;
        }
    }
    Ok(())
}

/// Empties the table, which is one step for SQLite, and puts back the texts that stay.
fn keep_others(change: &Change<'_>, table: &str, unused: &RoaringTreemap) -> Result<()> {
    let trace = change.trace;
    trace.execute_batch(&format!("CREATE TEMP TABLE kept_text AS SELECT * FROM main.{table} WHERE false"))?;
    {
        let mut ids = trace.prepare(&format!("SELECT rowid, id FROM main.{table} ORDER BY rowid"))?;
        let mut keep = trace
            .prepare(&format!("INSERT INTO temp.kept_text SELECT * FROM main.{table} WHERE rowid = ?1"))?;
        let mut rows = ids.query([])?;
        while let Some(row) = rows.next()? {
            let is_unused = row.get_ref(1)?.as_i64().is_ok_and(|id| unused.contains(id.cast_unsigned()));
            if !is_unused {
                keep.execute([row.get::<_, i64>(0)?])?;
            }
        }
    }
    change.check()?;
    trace.execute_batch(&format!(
        "DELETE FROM main.{table};
         INSERT INTO main.{table} SELECT * FROM temp.kept_text ORDER BY rowid;
         DROP TABLE temp.kept_text"
    ))?;
    Ok(())
}

/// The columns that refer to `table`, by table: as the format has it, as tables of any name declare it, and as the
/// metadata says.
fn users(trace: &Connection, table: &str) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let layout = Layout::of(trace)?;
    let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let references = layout
        .tables
        .iter()
        .flat_map(|user| user.references.iter().map(move |reference| (user.name.clone(), reference)));
    for (user, reference) in references.filter(|(_, reference)| same(&reference.table, table)) {
        users.entry(user).or_default().insert(reference.column.clone());
    }
    let mut declared = trace.prepare(
        "SELECT M.name, C.name FROM sqlite_master M, pragma_foreign_key_list(M.name) F, pragma_table_info(M.name) C
         WHERE M.type = 'table' AND lower(F.\"table\") = ?1 AND lower(C.name) = lower(F.\"from\")",
    )?;
    let mut rows = declared.query([table])?;
    while let Some(row) = rows.next()? {
        users.entry(row.get(0)?).or_default().insert(row.get(1)?);
    }
    if table == "rocpd_string" {
        for declared in declared_texts(trace)? {
            let found: Option<(String, String)> = trace
                .query_row(
                    "SELECT M.name, C.name FROM sqlite_master M, pragma_table_info(M.name) C
                     WHERE M.type = 'table' AND lower(M.name) = lower(?1) AND lower(C.name) = lower(?2)",
                    [declared.table, declared.column],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .optional()?;
            if let Some((user, column)) = found {
                users.entry(user).or_default().insert(column);
            }
        }
    }
    Ok(users)
}
