//! The check whether the file is whole as a database and as a trace: pages, version, tables, views, indexes, keys.

use rpd_schema::Version;
use rusqlite::Connection;

use super::expected::Expected;
use super::finding::{CheckFinding, EXAMPLES, Example};
use super::kind::FindingKind;
use crate::trace::is_damage;
use crate::trace::layout::{self, Declaration, Layout, TableLayout, metadata, quote, same};

/// Messages of SQLite's check beyond these say nothing new.
const MESSAGES: usize = 100;

/// What SQLite's own full check says: every page, every row against every index, every NOT NULL.
///
/// The full check rather than the quick one: it also looks every indexed row up, and as the one index of a
/// trace is on texts, the smallest of the large tables, that costs next to nothing (2.6 s against 2.4 s for 15
/// million rows).
///
/// # Errors
/// When the file cannot be read, save for damage.
pub(crate) fn pages(trace: &Connection) -> rusqlite::Result<Vec<CheckFinding>> {
    let messages = match integrity(trace) {
        Err(error) if is_damage(&error) => vec![error.to_string()],
        messages => messages?,
    };
    let (indexes, damages): (Vec<String>, Vec<String>) = messages
        .into_iter()
        .filter(|message| message != "ok")
        .partition(|message| is_about_an_index(message));
    let finding = |kind, place: &str, messages: Vec<String>| {
        let count = messages.len() as u64;
        (count > 0).then(|| {
            let examples = messages.into_iter().take(EXAMPLES).map(Example::Text);
            CheckFinding::new(kind, place, count).examples(examples)
        })
    };
    let found = [
        finding(FindingKind::DamagedDatabase, "file", damages),
        finding(FindingKind::IndexOutOfStep, "indexes", indexes),
    ];
    Ok(found.into_iter().flatten().collect())
}

fn integrity(trace: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut check = trace.prepare(&format!("PRAGMA integrity_check({MESSAGES})"))?;
    let messages = check.query_map([], |row| {
        let message = row.get_ref(0)?.as_bytes_or_null()?.unwrap_or_default();
        Ok(String::from_utf8_lossy(message).trim().to_string())
    })?;
    messages.collect()
}

/// What building the index anew puts right.
fn is_about_an_index(message: &str) -> bool {
    message.starts_with("wrong # of entries in index ")
        || (message.starts_with("row ") && message.contains(" missing from index "))
}

/// Whether the version in the metadata is the one that the tables have.
///
/// # Errors
/// When the metadata cannot be read.
pub(crate) fn version(trace: &Connection, layout: &Layout) -> rusqlite::Result<Option<CheckFinding>> {
    let real = layout.version();
    let stated = metadata(trace, layout, "schema_version")?;
    let detail = match stated.as_deref().map(str::trim) {
        Some(stated) if stated == real.to_string() => return Ok(None),
        None if real == Version::V1 => return Ok(None),
        Some(stated) => format!("it says {stated}, the tables are of schema {real}"),
        None => format!("it says none, the tables are of schema {real}"),
    };
    Ok(Some(CheckFinding::new(FindingKind::SchemaVersion, "rocpd_metadata", 1).detail(detail)))
}

/// Tables, views and indexes that files of this version have and this one lacks; later additions to the
/// format in one finding.
pub(crate) fn missing(layout: &Layout, expected: &[Expected]) -> Vec<CheckFinding> {
    let missing = expected.iter().filter(|object| !layout.has(&object.name));
    let (later, missing): (Vec<&Expected>, Vec<&Expected>) =
        missing.partition(|object| object.is_later_addition);
    let mut found: Vec<CheckFinding> = missing
        .into_iter()
        .map(|object| CheckFinding::new(object.kind_if_missing(), &object.name, 1))
        .collect();
    for object in expected {
        let Some(table) = layout.table(&object.name) else { continue };
        let missing = object.columns.iter().filter(|column| !table.has(column));
        found.extend(missing.map(|column| {
            CheckFinding::new(FindingKind::MissingColumn, format!("{}.{column}", table.name), 1)
        }));
    }
    if !later.is_empty() {
        let names = later.iter().map(|object| Example::Text(object.name.clone()));
        found.push(CheckFinding::new(FindingKind::OlderLayout, "file", later.len() as u64).examples(names));
    }
    found
}

/// Views that SQLite cannot make sense of: of a table or a column that is not there. Nothing is run.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn broken_views(trace: &Connection, layout: &Layout) -> rusqlite::Result<Vec<CheckFinding>> {
    let mut found = Vec::new();
    for view in &layout.views {
        match trace.prepare(&format!("SELECT * FROM {}", quote(view))) {
            Err(error) if is_damage(&error) => {
                found
                    .push(CheckFinding::new(FindingKind::BrokenView, view.clone(), 1).detail(reason(&error)));
            }
            prepared => drop(prepared?),
        }
    }
    Ok(found)
}

/// SQLite's words alone: not the whole statement that they are about.
pub(crate) fn reason(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}

/// Tables whose ids may be there twice, and whether they are.
///
/// # Errors
/// When such a table cannot be read.
pub(crate) fn keys(trace: &Connection, layout: &Layout) -> rusqlite::Result<Vec<CheckFinding>> {
    let mut found = Vec::new();
    for table in layout.tables.iter().filter(|table| table.key.is_none()) {
        let Some(id) = own_id(table) else { continue };
        found.push(CheckFinding::new(FindingKind::NoPrimaryKey, table.name.clone(), 1));
        let query = format!(
            "SELECT count(*) OVER (), id FROM (SELECT {0} AS id FROM {1} GROUP BY {0} HAVING count(*) > 1)
             ORDER BY id LIMIT {EXAMPLES}",
            quote(id),
            quote(&table.name)
        );
        let mut doubles = trace.prepare(&query)?;
        let doubles = doubles.query_map([], |row| {
            Ok((row.get::<_, i64>(0)?.unsigned_abs(), Example::Id(row.get_ref(1)?.as_i64().unwrap_or(-1))))
        })?;
        let (counts, ids): (Vec<u64>, Vec<Example>) =
            doubles.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().unzip();
        if let Some(&count) = counts.first() {
            found.push(CheckFinding::new(FindingKind::DuplicateId, table.name.clone(), count).examples(ids));
        }
    }
    Ok(found)
}

/// The column that is the id in tables of the format.
pub(crate) fn own_id(table: &TableLayout) -> Option<&str> {
    let ids = ["id", "api_ptr_id", "op_ptr_id", "op_id"];
    let first = &table.columns.first()?.name;
    // pandas puts its row number in front.
    let first = if same(first, "index") { &table.columns.get(1)?.name } else { first };
    ids.iter().any(|id| same(id, first)).then_some(first.as_str())
}

/// Declarations of the metadata that name no column of this file.
///
/// # Errors
/// When the metadata cannot be read.
pub(crate) fn unknown_references(trace: &Connection, layout: &Layout) -> rusqlite::Result<Vec<Declaration>> {
    let mut declared = layout::declared_texts(trace)?;
    declared.retain(|Declaration { table, column, .. }| {
        !layout.table(table).is_some_and(|table| table.has(column))
    });
    Ok(declared)
}

/// The same as findings.
///
/// # Errors
/// When the metadata cannot be read.
pub(crate) fn references(trace: &Connection, layout: &Layout) -> rusqlite::Result<Vec<CheckFinding>> {
    let unknown = unknown_references(trace, layout)?.into_iter();
    let finding = |Declaration { row, table, column }: Declaration| {
        let place = format!("{table}.{column}");
        CheckFinding::new(FindingKind::UnknownReference, place, 1)
            .detail("in rocpd_metadata")
            .examples([Example::Id(row)])
    };
    Ok(unknown.map(finding).collect())
}
