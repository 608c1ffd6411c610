//! Which columns hold ids of other tables' rows: as the tables declare it, as the format knows it, and as the
//! metadata says (`references::rocpd_string.id`).

use rpd_schema::text::text_of;
use rusqlite::Connection;

use super::{TableLayout, names, same};
use crate::trace::is_damage;

/// A column whose values are ids of rows elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The column.
    pub(crate) column: String,
    /// The table that it refers to.
    pub(crate) table: String,
    /// That table's column.
    pub(crate) key: String,
}

/// References of the format, for files whose tables do not declare them.
const KNOWN: [(&str, &str, &str); 45] = [
    ("rocpd_api", "apiName_id", "rocpd_string"),
    ("rocpd_api", "category_id", "rocpd_string"),
    ("rocpd_api", "domain_id", "rocpd_string"),
    ("rocpd_op", "description_id", "rocpd_string"),
    ("rocpd_op", "opType_id", "rocpd_string"),
    ("rocpd_api_ops", "api_id", "rocpd_api"),
    ("rocpd_api_ops", "op_id", "rocpd_op"),
    ("rocpd_kernelapi", "api_ptr_id", "rocpd_api"),
    ("rocpd_kernelapi", "kernelName_id", "rocpd_string"),
    ("rocpd_kernelapi", "codeObject_id", "rocpd_kernelcodeobject"),
    ("rocpd_copyapi", "api_ptr_id", "rocpd_api"),
    ("rocpd_barrierop", "op_ptr_id", "rocpd_op"),
    ("rocpd_op_inputSignals", "from_op_id", "rocpd_op"),
    ("rocpd_op_inputSignals", "to_op_id", "rocpd_op"),
    ("rocpd_stackframe", "api_ptr_id", "rocpd_api"),
    ("rocpd_stackframe", "name_id", "rocpd_string"),
    ("rocpd_counter", "op_id", "rocpd_op"),
    ("rocpd_counter", "name_id", "rocpd_string"),
    ("ext_dispatch", "op_id", "rocpd_op"),
    ("ext_dispatch", "kernelName_id", "rocpd_string"),
    ("ext_dispatch", "codeObject_id", "rocpd_kernelcodeobject"),
    ("ext_kernelcodeobject", "id", "rocpd_kernelcodeobject"),
    ("ext_kernelcodeobject", "kernelName_id", "rocpd_string"),
    ("ext_launchattribute", "op_id", "rocpd_op"),
    ("ext_tick", "op_id", "rocpd_op"),
    ("ext_codeobject_kernel", "id", "rocpd_kernelcodeobject"),
    ("ext_codeobject_kernel", "ext_codeobject_id", "ext_codeobject"),
    ("ext_replacement", "op_id", "rocpd_op"),
    ("ext_replacement", "original_kernel_id", "rocpd_kernelcodeobject"),
    ("ext_replacement", "replacement_kernel_id", "rocpd_kernelcodeobject"),
    ("ext_replacement", "candidate_id", "ext_candidate"),
    ("ext_validation", "op_id", "rocpd_op"),
    ("ext_librarycall", "api_ptr_id", "rocpd_api"),
    ("ext_librarycall", "domain_id", "rocpd_string"),
    ("ext_librarycall", "category_id", "rocpd_string"),
    ("ext_instrumentation", "op_id", "rocpd_op"),
    ("ext_instrumentation", "kernelName_id", "rocpd_string"),
    ("ext_memoryaccess", "instrumentation_id", "ext_instrumentation"),
    ("ext_heatmap", "instrumentation_id", "ext_instrumentation"),
    ("ext_timeinterval", "instrumentation_id", "ext_instrumentation"),
    ("ext_basicblock", "instrumentation_id", "ext_instrumentation"),
    ("ext_handlervalue", "instrumentation_id", "ext_instrumentation"),
    ("ext_block", "kernel_id", "rocpd_kernelcodeobject"),
    ("ext_blockcount", "instrumentation_id", "ext_instrumentation"),
    ("ext_blockcount", "block_id", "ext_block"),
];

/// Declared references, those of the format, and those that the metadata declares.
pub(super) fn add(trace: &Connection, tables: &mut [TableLayout]) -> rusqlite::Result<()> {
    let keys: Vec<(String, Option<String>)> =
        tables.iter().map(|table| (table.name.clone(), table.key.clone())).collect();
    let target = |name: &str| keys.iter().find(|(table, _)| same(table, name));
    let has_unique_texts = target("rocpd_ustring").is_some();
    let texts = match declared_texts(trace) {
        // Those who look for damage report it.
        Err(error) if is_damage(&error) => Vec::new(),
        texts => texts?,
    };
    for table in tables {
        let mut candidates: Vec<(String, String)> = Vec::new();
        if table.is("rocpd_api") {
            let args = if has_unique_texts { "rocpd_ustring" } else { "rocpd_string" };
            candidates.push(("args_id".into(), args.into()));
        }
        let mut declared = trace.prepare(r#"SELECT "from", "table" FROM pragma_foreign_key_list(?1)"#)?;
        let declared = declared.query_map([&table.name], |row| Ok((row.get(0)?, row.get(1)?)))?;
        candidates.extend(declared.collect::<rusqlite::Result<Vec<_>>>()?);
        let known = KNOWN.iter().filter(|(name, ..)| table.is(name));
        candidates.extend(known.map(|&(_, column, to)| (column.into(), to.into())));
        let texts = texts.iter().filter(|declared| table.is(&declared.table));
        candidates.extend(texts.map(|declared| (declared.column.clone(), "rocpd_string".into())));
        for (column, to) in candidates {
            let taken = table.references.iter().any(|known| same(&known.column, &column));
            if let Some((to, Some(key))) = target(&to)
                && table.has(&column)
                && !taken
            {
                table.references.push(Reference { column, table: to.clone(), key: key.clone() });
            }
        }
        table.references.sort_by_key(|reference| {
            table.columns.iter().position(|column| same(&column.name, &reference.column))
        });
    }
    Ok(())
}

/// Tables of the format with an `id` that no other one refers to.
const UNREFERRED: [&str; 2] = ["rocpd_metadata", "rocpd_monitor"];

/// Takes `id` for the key of the format's tables that declare none, as those that pandas or CREATE TABLE AS made.
pub(super) fn guess_keys(tables: &mut [TableLayout]) {
    let is_known = |table: &TableLayout| KNOWN.iter().any(|(name, _, to)| table.is(name) || table.is(to));
    for table in tables.iter_mut().filter(|table| table.key.is_none()) {
        if !is_known(table) && !UNREFERRED.iter().any(|name| table.is(name)) {
            continue;
        }
        if let Some(id) = table.columns.iter_mut().find(|column| same(&column.name, "id")) {
            id.is_integer = true;
            table.key = Some(id.name.clone());
        }
    }
}

/// Takes columns of tables without any reference for what the format means by their names.
pub(super) fn guess(tables: &mut [TableLayout]) {
    let keys: Vec<(String, Option<String>)> =
        tables.iter().map(|table| (table.name.clone(), table.key.clone())).collect();
    for table in tables.iter_mut().filter(|table| table.references.is_empty()) {
        for column in &table.columns {
            let meaning = KNOWN.iter().find(|(_, known, _)| !same(known, "id") && same(known, &column.name));
            let target = meaning.and_then(|(_, _, to)| keys.iter().find(|(name, _)| same(name, to)));
            if let Some((to, Some(key))) = target
                && !same(to, &table.name)
            {
                let column = column.name.clone();
                table.references.push(Reference { column, table: to.clone(), key: key.clone() });
            }
        }
    }
}

/// A row of the metadata that declares a reference to texts.
#[derive(Debug)]
pub(crate) struct Declaration {
    /// Its id.
    pub(crate) row: i64,
    /// The table that it names.
    pub(crate) table: String,
    /// The column that it names.
    pub(crate) column: String,
}

/// What every row `references::rocpd_string.id` of the metadata declares.
///
/// # Errors
/// When the metadata cannot be read.
pub(crate) fn declared_texts(trace: &Connection) -> rusqlite::Result<Vec<Declaration>> {
    if names(trace, "type = 'table' AND lower(name) = 'rocpd_metadata'")?.is_empty() {
        return Ok(Vec::new());
    }
    let mut declared = trace.prepare(
        "SELECT id, value FROM rocpd_metadata
         WHERE tag = 'references::rocpd_string.id' AND octet_length(value) <= 4096 ORDER BY id",
    )?;
    let declared = declared.query_map([], |row| {
        let (table, column) = parse_declaration(&text_of(row.get_ref(1)?));
        Ok(Declaration { row: row.get(0)?, table, column })
    })?;
    declared.collect()
}

/// `("table", "column")`; what is written otherwise is a table of that name, which no file has.
fn parse_declaration(value: &str) -> (String, String) {
    let parts: Vec<&str> = value.split('"').collect();
    match parts[..] {
        [_, table, _, column, _] => (table.to_string(), column.to_string()),
        _ => (value.to_string(), String::new()),
    }
}
