//! Parts of one recording (RPDT_ROTATE): rows of one process that several parts repeat are in the merged trace once.
//!
//! Each part has all that its rows refer to, so that it is a trace by itself. Kernels, code objects and the like have the local ids in all
//! parts that they have in the first.
//!
//! Where a process goes on in a next part, what the GPU still does for a call of the part before is linked to a row that stands in for
//! the call: it has the call's local id, in the session of the next part. A call has its row in one part alone, and ids of calls are
//! given out once in a process, so two rows of one local id and one process are such a pair, and the call takes the place of the other.

use std::collections::BTreeMap;

use anyhow::Result;
use rpd_schema::{SessionInfo, session_fact as fact};
use rusqlite::{Connection, OptionalExtension};

use super::input::Input;
use super::plan::MergePlan;
use crate::trace::layout::{Layout, quote, same};

/// Places of a trace in the order of the parts; traces that are no part come first.
pub(super) fn place(input: &Input) -> u64 {
    input.sessions.iter().filter_map(part).min().unwrap_or(0)
}

fn part(session: &SessionInfo) -> Option<u64> {
    session.number(fact::PART)
}

/// A process of a recording in parts.
fn process(session: &SessionInfo) -> Option<[&str; 3]> {
    let [boot, pid, start] = [fact::BOOT_ID, fact::PID, fact::START_MONOTONIC_NS].map(|key| session.get(key));
    part(session)?;
    Some([boot?, pid?, start?])
}

/// A session as it is numbered in the result.
struct Numbered<'a> {
    number: i64,
    session: &'a SessionInfo,
}

/// Tables whose rows a process writes once into each part that needs them: with the same local ids, because those are the numbers that the
/// process has for its kernels, code objects, candidates and basic blocks.
const REPEATED: [&str; 4] = ["rocpd_kernelcodeobject", "ext_codeobject", "ext_candidate", "ext_block"];

/// Removes the rows of which there is another for the same thing in an earlier part, and links what refers to them to that one. How many rows
/// went, by table in small letters.
///
/// # Errors
/// When the new trace cannot be read or written.
pub(super) fn join(made: &Connection, plan: &MergePlan<'_>) -> Result<BTreeMap<String, u64>> {
    let mut processes: BTreeMap<[&str; 3], Vec<Numbered<'_>>> = BTreeMap::new();
    for (input, offset) in plan.inputs.iter().zip(&plan.offsets) {
        for session in &input.sessions {
            if let Some(process) = process(session) {
                let number = i64::from(session.session) + (offset >> 32);
                processes.entry(process).or_default().push(Numbered { number, session });
            }
        }
    }
    processes.retain(|_, sessions| sessions.len() > 1);
    processes.values_mut().for_each(|sessions| sessions.sort_by_key(|numbered| part(numbered.session)));
    let mut gone = BTreeMap::new();
    if processes.is_empty() {
        return Ok(gone);
    }
    made.execute_batch("CREATE TEMP TABLE again (id INTEGER PRIMARY KEY, first INTEGER NOT NULL)")?;
    let layout = Layout::everything(made)?;
    for table in ["rocpd_api"].into_iter().chain(REPEATED) {
        let Some(key) = layout.table(table).and_then(|table| table.key.as_deref()) else { continue };
        let mut found = 0;
        for sessions in processes.values() {
            for (place, entered) in sessions.iter().enumerate() {
                let earlier = &sessions[..place];
                let earlier = earlier.iter().filter(|earlier| part(earlier.session) < part(entered.session));
                let earlier: Vec<i64> = earlier.map(|earlier| earlier.number).collect();
                let ids = match table {
                    "rocpd_api" => entered.session.number(fact::CALLS_BEFORE_PART).unwrap_or(0).min(1 << 31),
                    _ => 1 << 32,
                };
                found += find(made, [table, key], (entered.number, ids), &earlier)?;
            }
        }
        if found > 0 {
            replace(made, &layout, [table, key], &mut gone)?;
            made.execute_batch("DELETE FROM temp.again")?;
        }
    }
    made.execute_batch("DROP TABLE temp.again")?;
    Ok(gone)
}

/// Notes the rows of a session, among its first `ids` ids, that `earlier` sessions of its process have too. Those are in the order of their
/// parts.
fn find(
    made: &Connection,
    [table, key]: [&str; 2],
    (session, ids): (i64, u64),
    earlier: &[i64],
) -> Result<usize> {
    let (first, table, key) = (session << 32, quote(table), quote(key));
    if earlier.is_empty() {
        return Ok(0);
    }
    let range = format!("SELECT {key} FROM {table} WHERE {key} >= ?1 AND {key} < ?2");
    let mut rows = made.prepare(&range)?;
    let rows = rows.query_map([first, first + i64::try_from(ids)?], |row| row.get::<_, i64>(0))?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut is_there = made.prepare(&format!("SELECT 1 FROM {table} WHERE {key} = ?1"))?;
    let mut note = made.prepare("INSERT INTO temp.again VALUES (?1, ?2)")?;
    let mut found = 0;
    for id in rows {
        for session in earlier {
            let other = id - first + (session << 32);
            if is_there.query_row([other], |_| Ok(())).optional()?.is_some() {
                found += note.execute([id, other])?;
                break;
            }
        }
    }
    Ok(found)
}

/// Lets the first take the places of those that are there again.
fn replace(
    made: &Connection,
    layout: &Layout,
    [of, key]: [&str; 2],
    gone: &mut BTreeMap<String, u64>,
) -> Result<()> {
    let mut went = |table: &str, rows: usize| {
        *gone.entry(table.to_ascii_lowercase()).or_default() += rows as u64;
    };
    for table in &layout.tables {
        for reference in table.references.iter().filter(|reference| same(&reference.table, of)) {
            let (name, column) = (quote(&table.name), quote(&reference.column));
            let is_again = format!("{column} IN (SELECT id FROM temp.again)");
            let first = format!("(SELECT first FROM temp.again WHERE id = {name}.{column})");
            if table.key.as_deref().is_some_and(|key| same(key, &reference.column)) {
                // There is one such row for a call or a kernel; the earlier part has it already.
                let double = format!(
                    "DELETE FROM {name} WHERE {is_again} AND {first} IN (SELECT {column} FROM {name})"
                );
                went(&table.name, made.execute(&double, [])?);
            }
            made.execute(&format!("UPDATE {name} SET {column} = {first} WHERE {is_again}"), [])?;
        }
    }
    let (table, key) = (quote(of), quote(key));
    let rows =
        made.execute(&format!("DELETE FROM {table} WHERE {key} IN (SELECT id FROM temp.again)"), [])?;
    went(of, rows);
    Ok(())
}
