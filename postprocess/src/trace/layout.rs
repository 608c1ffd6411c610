//! The tables that a trace really has: their columns, keys and references.
//!
//! Names come from the file, so they are quoted everywhere in SQL.

mod reference;

use rpd_schema::Version;
use rpd_schema::text::{shown, text_of};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension};

pub(crate) use reference::{Declaration, Reference, declared_texts};

/// The tables, views and indexes of a file that are the format's or an extension's.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Of the tables `rocpd_*` and `ext_*`, in the order of their creation.
    pub(crate) tables: Vec<TableLayout>,
    /// Every view.
    pub(crate) views: Vec<String>,
    /// Every index that was made by a statement of its own.
    pub(crate) indexes: Vec<String>,
}

/// A table as it is declared.
#[derive(Debug)]
pub(crate) struct TableLayout {
    /// Its name, as the file spells it.
    pub(crate) name: String,
    /// Its columns, in order.
    pub(crate) columns: Vec<Column>,
    /// The one column that is declared unique by a primary key.
    pub(crate) key: Option<String>,
    /// Which columns hold ids of other tables' rows.
    pub(crate) references: Vec<Reference>,
}

/// A column.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Whether its declared type makes numbers of it: `integer`, `bigint`, `bool`.
    pub(crate) is_integer: bool,
    /// Whether it makes numbers with a fraction of it: `real`, `double`, `float`.
    pub(crate) is_real: bool,
}

/// Tables that have rows of their own, as a condition of SQL.
const DECLARED: &str = "lower(name) NOT GLOB 'sqlite_*' AND rootpage > 0";

/// `name` as an SQL identifier.
pub(crate) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Names that are the same to SQLite.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

impl Layout {
    /// Reads the layout of an open file.
    ///
    /// # Errors
    /// When the file's schema cannot be read.
    pub(crate) fn of(trace: &Connection) -> rusqlite::Result<Layout> {
        Layout::of_tables(trace, "lower(name) GLOB 'rocpd_*' OR lower(name) GLOB 'ext_*'", |_| ())
    }

    /// The same with every table that has rows, whoever made it.
    ///
    /// # Errors
    /// As [`Layout::of`].
    pub(crate) fn declared(trace: &Connection) -> rusqlite::Result<Layout> {
        Layout::of_tables(trace, DECLARED, |_| ())
    }

    /// The same as [`Layout::declared`]. Of a table that declares nothing, columns that are named
    /// as references of the format are taken for such, and `id` of the format's own tables for the key.
    ///
    /// # Errors
    /// As [`Layout::of`].
    pub(crate) fn everything(trace: &Connection) -> rusqlite::Result<Layout> {
        let mut layout = Layout::of_tables(trace, DECLARED, reference::guess_keys)?;
        reference::guess(&mut layout.tables);
        Ok(layout)
    }

    fn of_tables(
        trace: &Connection,
        which: &str,
        complete: impl FnOnce(&mut [TableLayout]),
    ) -> rusqlite::Result<Layout> {
        let found = names(trace, &format!("type = 'table' AND ({which})"))?;
        let mut tables: Vec<TableLayout> =
            found.into_iter().map(|name| TableLayout::of(trace, name)).collect::<rusqlite::Result<_>>()?;
        complete(&mut tables);
        reference::add(trace, &mut tables)?;
        Ok(Layout {
            tables,
            views: names_of_type(trace, "view")?,
            indexes: names(trace, "type = 'index' AND sql IS NOT NULL")?,
        })
    }

    /// The table of that name.
    pub(crate) fn table(&self, name: &str) -> Option<&TableLayout> {
        self.tables.iter().find(|table| same(&table.name, name))
    }

    /// The schema version that the tables themselves have.
    pub(crate) fn version(&self) -> Version {
        let has_column = |table: &str, column: &str| self.table(table).is_some_and(|found| found.has(column));
        if self.table("rocpd_ustring").is_some() || has_column("rocpd_api", "category_id") {
            Version::V3
        } else if self.table("rocpd_kernelapi").is_none()
            && (self.table("rocpd_kernelop").is_some() || self.table("rocpd_copyop").is_some())
        {
            Version::V1
        } else {
            Version::V2
        }
    }

    /// Whether there is anything of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.table(name).is_some() || self.views.iter().chain(&self.indexes).any(|found| same(found, name))
    }
}

impl TableLayout {
    fn of(trace: &Connection, name: String) -> rusqlite::Result<TableLayout> {
        let mut info = trace.prepare("SELECT name, upper(type), pk FROM pragma_table_info(?1)")?;
        let mut columns = Vec::new();
        let mut keys = Vec::new();
        let mut rows = info.query([&name])?;
        while let Some(row) = rows.next()? {
            let column: String = row.get(0)?;
            let declared: String = row.get(1)?;
            if row.get::<_, i64>(2)? > 0 {
                keys.push(column.clone());
            }
            let is_integer = declared.contains("INT") || declared.contains("BOOL");
            let is_real = !is_integer && ["REAL", "FLOA", "DOUB"].iter().any(|name| declared.contains(name));
            columns.push(Column { name: column, is_integer, is_real });
        }
        let key = if keys.len() == 1 { keys.pop() } else { None };
        Ok(TableLayout { name, columns, key, references: Vec::new() })
    }

    /// Whether it has that column.
    pub(crate) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|found| same(&found.name, column))
    }

    /// Whether it is the table of that name.
    pub(crate) fn is(&self, name: &str) -> bool {
        same(&self.name, name)
    }

    /// Whether that column's declared type makes numbers of it.
    pub(crate) fn is_integer(&self, column: &str) -> bool {
        self.columns.iter().any(|found| found.is_integer && same(&found.name, column))
    }

    /// Whether its rows have a start and an end in CLOCK_MONOTONIC.
    pub(crate) fn is_timed(&self) -> bool {
        // Ticks are the device's own, in whatever unit, and may wrap.
        self.has("start") && self.has("end") && !self.is("ext_tick")
    }

    /// Columns that declare no reference and have names as if they held ids of texts.
    pub(crate) fn undeclared_texts(&self) -> impl Iterator<Item = &str> {
        let is_named_so = |name: &str| {
            let name = name.to_ascii_lowercase();
            name.ends_with("_id") || name.contains("string")
        };
        let is_known = |name: &str| {
            self.key.as_deref().is_some_and(|key| same(key, name))
                || self.references.iter().any(|reference| same(&reference.column, name))
                // PyTorch's own number.
                || (self.is("ext_autogradapi") && same(name, "op_id"))
        };
        self.columns
            .iter()
            .map(|column| column.name.as_str())
            .filter(move |name| is_named_so(name) && !is_known(name))
    }

    /// What names a row of it: the key, or SQLite's own row number.
    pub(crate) fn id(&self) -> String {
        self.key.as_deref().map_or_else(|| "rowid".to_string(), quote)
    }
}

/// The metadata row of a tag that has one value; of several rows the last counts.
///
/// # Errors
/// When the metadata cannot be read.
pub(crate) fn metadata(trace: &Connection, layout: &Layout, tag: &str) -> rusqlite::Result<Option<String>> {
    if layout.table("rocpd_metadata").is_none() {
        return Ok(None);
    }
    let query =
        format!("SELECT {} FROM rocpd_metadata WHERE tag = ?1 ORDER BY id DESC LIMIT 1", shown("value"));
    let value = trace.query_row(&query, [tag], |row| match row.get_ref(0)? {
        ValueRef::Null => Ok(None),
        value => Ok(Some(text_of(value).into_owned())),
    });
    Ok(value.optional()?.flatten())
}

/// Names out of the file's schema, in the order of creation.
fn names(trace: &Connection, which: &str) -> rusqlite::Result<Vec<String>> {
    let query = format!("SELECT name FROM sqlite_master WHERE {which} ORDER BY rowid");
    let mut statement = trace.prepare(&query)?;
    // No tool's table has a name that is not UTF-8.
    let names = statement.query_map([], |row| Ok(row.get_ref(0)?.as_str().ok().map(str::to_string)))?;
    names.filter_map(rusqlite::Result::transpose).collect()
}

fn names_of_type(trace: &Connection, kind: &str) -> rusqlite::Result<Vec<String>> {
    names(trace, &format!("type = '{kind}'"))
}
