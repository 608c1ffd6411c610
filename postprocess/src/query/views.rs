//! Views of a fresh file, for a file whose recorder did not make them.
//!
//! They are temporary: SQLite keeps them in memory, with the connection. Those that the file has itself stay as they are.

use rpd_schema::Version;
use rpd_sql::ext;
use rusqlite::Connection;

use crate::trace::has_table;
use crate::trace::layout::quote;

/// How the statement of a view begins in the texts of the crate rpd-sql.
const BEGIN: &str = "CREATE VIEW IF NOT EXISTS \"";

/// The texts with views.
const TEXTS: [&str; 3] = [rpd_sql::API_VIEW, rpd_sql::VIEWS, ext::DISPATCH];

/// Adds the views that the file lacks and has the tables for.
pub(super) fn add(trace: &Connection, version: Version) -> rusqlite::Result<()> {
    // Ready-made queries leave barriers out; schema 3 has no table of them.
    if !has_table(trace, "rocpd_barrierop")? {
        trace.execute_batch("CREATE TEMP TABLE rocpd_barrierop (op_ptr_id INTEGER)")?;
    }
    for text in TEXTS {
        let text = if version == Version::V3 { rpd_sql::for_schema_3(text) } else { text.to_string() };
        for (name, body) in views(&text) {
            if has_table(trace, name)? {
                continue;
            }
            let quoted = quote(name);
            trace.execute_batch(&format!("CREATE TEMP VIEW {quoted}{body}"))?;
            // SQLite looks at the tables of a view when it is used.
            if trace.prepare(&format!("SELECT * FROM temp.{quoted}")).is_err() {
                trace.execute_batch(&format!("DROP VIEW temp.{quoted}"))?;
            }
        }
    }
    Ok(())
}

/// The views of a text: name, and what is behind it.
fn views(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(BEGIN).skip(1).filter_map(|view| {
        let (name, rest) = view.split_once('"')?;
        let (body, _) = rest.split_once(";\n")?;
        Some((name, body))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_view_is_found() {
        let found: Vec<&str> = TEXTS.iter().flat_map(|text| views(text)).map(|(name, _)| name).collect();
        let written: usize = TEXTS.iter().map(|text| text.matches("CREATE VIEW").count()).sum();
        assert_eq!(found.len(), written, "{found:?}");
        for name in ["api", "op", "stackframe", "dispatch"] {
            assert!(found.contains(&name), "{name}: {found:?}");
        }
    }
}
