//! The things that files of a version have: the tables, views and indexes of a fresh one.

use rpd_schema::Version;
use rusqlite::Connection;

use super::kind::FindingKind;
use crate::trace::layout::Layout;

/// The tables of schema 3.
const V3_TABLES: [&str; 11] = [
    "rocpd_metadata",
    "rocpd_string",
    "rocpd_ustring",
    "rocpd_api",
    "rocpd_op",
    "rocpd_api_ops",
    "rocpd_kernelapi",
    "rocpd_copyapi",
    "rocpd_monitor",
    "rocpd_counter",
    "rocpd_stackframe",
];

/// Tables and views of schema 2 that many files were made without.
const LATER_ADDITIONS: [&str; 4] = ["rocpd_stackframe", "stackframe", "ext_dispatch", "dispatch"];

/// Something that files of a version have.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) name: String,
    /// `table`, `view` or `index`.
    pub(crate) kind: String,
    /// The statement that makes it; none is known for schema 3.
    pub(crate) sql: Option<String>,
    /// The columns of a table; none are known for schema 3.
    pub(crate) columns: Vec<String>,
    /// Whether many files were made without it.
    pub(crate) is_later_addition: bool,
}

impl Expected {
    /// What it is when a file lacks it, unless it is a later addition.
    pub(crate) fn kind_if_missing(&self) -> FindingKind {
        match self.kind.as_str() {
            "table" => FindingKind::MissingTable,
            "view" => FindingKind::MissingView,
            _ => FindingKind::MissingIndex,
        }
    }
}

/// What files of a version have, by what a fresh one has. Nothing is demanded of schema 1.
///
/// # Errors
/// Those of SQLite, none of which has to do with the file.
pub(crate) fn expected(version: Version) -> rusqlite::Result<Vec<Expected>> {
    match version {
        Version::V1 => Ok(Vec::new()),
        Version::V2 => {
            let fresh = Connection::open_in_memory()?;
            rpd_sql::FRESH.iter().try_for_each(|text| fresh.execute_batch(text))?;
            let layout = Layout::of(&fresh)?;
            let columns = |name: &str| -> Vec<String> {
                let columns = layout.table(name).into_iter().flat_map(|table| &table.columns);
                columns.map(|column| column.name.clone()).collect()
            };
            let mut objects = fresh.prepare(
                "SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT GLOB 'sqlite_*'",
            )?;
            let objects = objects.query_map([], |row| {
                let name: String = row.get(0)?;
                let is_later_addition = LATER_ADDITIONS.contains(&name.as_str());
                let columns = columns(&name);
                Ok(Expected { name, kind: row.get(1)?, sql: row.get(2)?, columns, is_later_addition })
            })?;
            objects.collect()
        }
        Version::V3 => {
            let table = |name: &str| Expected {
                name: name.into(),
                kind: "table".into(),
                sql: None,
                columns: Vec::new(),
                is_later_addition: false,
            };
            Ok(V3_TABLES.map(table).into())
        }
    }
}
