//! RPDT_HSA_APIS: calls of the HSA runtime's functions as rows. Trampolines stand in the runtime's tables, in front of whatever stands there
//! by then, the recorder's own hooks included. The recorder itself calls the originals, so that its own calls are no rows.
//!
//! Where a function is in which table says api_calls/tables.txt, written by tables.py there, for all layouts up to that of August 2026.
//! Later ones have more functions at the end, which are left as they are, as are those whose places changed from version to version.

use std::sync::OnceLock;

use rpd_settings::function_list;
use rpd_transport::env::Env;
use rpd_transport::log;

use super::table::{self, LiveTable};
use crate::library_call;

static TABLES: &str = include_str!("api_calls/tables.txt");

static WANTED: OnceLock<Vec<&'static str>> = OnceLock::new();

/// An entry of a table.
struct TableEntry {
    table: &'static str,
    since: Since,
    offset: usize,
    name: &'static str,
}

/// Which tables have an entry.
#[derive(Clone, Copy)]
enum Since {
    /// Those of so many bytes, and larger ones up to the next layout.
    Size(usize),
    /// Those of just that size and step.
    Just(usize, u32),
}

impl Since {
    fn read(text: &str) -> Option<Since> {
        let Some(just) = text.strip_prefix('=') else { return Some(Since::Size(text.parse().ok()?)) };
        let (size, step) = just.split_once('.')?;
        Some(Since::Just(size.parse().ok()?, step.parse().ok()?))
    }
}

fn entries() -> impl Iterator<Item = TableEntry> {
    TABLES.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (table, since, offset) =
            (words.next()?, Since::read(words.next()?)?, words.next()?.parse().ok()?);
        Some(TableEntry { table, since, offset, name: words.next()? })
    })
}

/// Offset and name of each function in a table of `size` bytes and that step.
fn layout(table: &str, size: usize, step: u32) -> Vec<(usize, &'static str)> {
    let of_table = || entries().filter(|entry| entry.table == table);
    let sizes = of_table().filter_map(|entry| match entry.since {
        Since::Size(bytes) => Some(bytes).filter(|bytes| *bytes <= size),
        Since::Just(..) => None,
    });
    let newest = sizes.max();
    let has = |entry: &TableEntry| match entry.since {
        Since::Size(bytes) => Some(bytes) == newest,
        Since::Just(bytes, of) => (bytes, of) == (size, step),
    };
    of_table().filter(has).map(|entry| (entry.offset, entry.name)).collect()
}

/// Reads the variable.
pub(super) fn configure(env: &mut Env<'_>) {
    let Some(text) = env.text("RPDT_HSA_APIS") else { return };
    let (wanted, unknown) = read(&text.to_string_lossy());
    if !unknown.is_empty() {
        env.complain(format!(
            "RPDT_HSA_APIS: {} ignored; it is all, none, or functions such as hsa_queue_create,hsa_amd_memory_*, with - in front of those to leave out",
            unknown.join(" and ")
        ));
    }
    WANTED.get_or_init(|| wanted);
}

/// The functions of a list, in the order of their names, and the words that name none.
fn read(text: &str) -> (Vec<&'static str>, Vec<String>) {
    function_list::read(text, entries().map(|entry| entry.name))
}

/// Puts trampolines into the live tables, for the functions that are wanted.
///
/// # Safety
/// The tables are those of the calling runtime, which offers them to tools at this moment.
pub(super) unsafe fn patch(core: LiveTable, amd: LiveTable) {
    let Some(wanted) = WANTED.get().filter(|wanted| !wanted.is_empty()) else { return };
    let mut replaced = 0;
    for (table, live) in [("core", core), ("amd", amd)] {
        for (offset, name) in layout(table, live.size(), live.step()) {
            let original = table::address(live, offset);
            if original == 0 || wanted.binary_search(&name).is_err() {
                continue;
            }
            let Some(trampoline) = library_call::stand_in(name, "", original) else { continue };
            // SAFETY: the caller's promise; a trampoline has the type of any function, and passes on what it is called with.
            unsafe { table::patch(live, &[(offset, trampoline)]) };
            replaced += 1;
        }
    }
    log::info(|| format!("calls of {replaced} functions of the HSA runtime are recorded"));
}

/// What the user asked for.
pub(super) fn facts(add: &mut dyn FnMut(&str, &str)) {
    if let Some(wanted) = WANTED.get().filter(|wanted| !wanted.is_empty()) {
        add("hsa_apis", &wanted.join(","));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library_call::Library;

    #[test]
    fn every_function_is_described() {
        for entry in entries() {
            assert_eq!(library_call::library_of(entry.name), Some(Library::Hsa), "{}", entry.name);
        }
    }

    #[test]
    fn functions_are_where_each_version_has_them() {
        for version in ["5.2", "5.5", "5.6", "6.0", "6.1", "6.2", "2025-08", "2026-08"] {
            let file = format!("{}/../fixtures/tables/hsa-{version}.txt", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(file).unwrap();
            for (table, name) in [("core", "CoreApiTable"), ("amd", "AmdExtTable")] {
                let entries = text.lines().filter_map(|line| {
                    let mut words = line.split_whitespace();
                    let (of, offset, function) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
                    let function = function.strip_suffix("_fn").filter(|_| of == name)?;
                    Some((offset, function))
                });
                let entries: Vec<(usize, &str)> = entries.collect();
                let size = entries.last().unwrap().0 + 8;
                let of = |step| {
                    let inside = |entry: &(usize, &str)| entry.0 + 8 <= size;
                    layout(table, size, step).into_iter().filter(inside).collect::<Vec<_>>()
                };
                let versions = text.lines().next().unwrap();
                let step = versions.rsplit('.').next().unwrap().parse().unwrap();
                assert_eq!(of(step), entries, "{table} of {version}");
                // Of another version, what is at the end may be other functions.
                let sure = entries.iter().filter(|entry| table == "core" || entry.0 < 672).count();
                assert_eq!(of(step + 1), entries[..sure], "{table} of {version}");
            }
        }
    }
}
