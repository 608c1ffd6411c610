//! Parts of one recording (RPDT_ROTATE): calls that stand in for those of earlier parts give way to them.
//!
//! Where a process goes on in a next part, what the GPU still does for a call of the part before is linked to a row that stands in for
//! the call: it has the call's local id, in the session of the next part. A call has its row in one part alone, and ids of calls are
//! given out once in a process, so two rows of one local id and one process are such a pair.

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

/// Links what refers to calls that stand in for others to those, and removes them. How many rows went, by table in small letters.
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
    made.execute_batch("CREATE TEMP TABLE stand_in (id INTEGER PRIMARY KEY, call INTEGER NOT NULL)")?;
    let mut found = 0;
    for mut sessions in processes.into_values() {
        sessions.sort_by_key(|numbered| part(numbered.session));
        for (place, entered) in sessions.iter().enumerate() {
            let earlier = &sessions[..place];
            let earlier = earlier.iter().filter(|earlier| part(earlier.session) < part(entered.session));
            found += find(made, entered, &earlier.map(|earlier| earlier.number).collect::<Vec<_>>())?;
        }
    }
    let gone = if found > 0 { replace(made)? } else { BTreeMap::new() };
    made.execute_batch("DROP TABLE temp.stand_in")?;
    Ok(gone)
}

/// Notes the calls of a session that stand in for calls of `earlier` sessions of its process, which are in the order of their parts.
fn find(made: &Connection, entered: &Numbered<'_>, earlier: &[i64]) -> Result<usize> {
    let Some(before) = entered.session.number(fact::CALLS_BEFORE_PART).filter(|_| !earlier.is_empty()) else {
        return Ok(0);
    };
    let first = entered.number << 32;
    let before = first.saturating_add(i64::try_from(before.min(1 << 31))?);
    let mut calls = made.prepare("SELECT id FROM rocpd_api WHERE id >= ?1 AND id < ?2")?;
    let mut call = made.prepare("SELECT 1 FROM rocpd_api WHERE id = ?1")?;
    let mut note = made.prepare("INSERT INTO temp.stand_in VALUES (?1, ?2)")?;
    let calls = calls.query_map([first, before], |row| row.get::<_, i64>(0))?;
    let mut found = 0;
    for id in calls.collect::<rusqlite::Result<Vec<_>>>()? {
        for session in earlier.iter().rev() {
            let own = id - first + (session << 32);
            if call.query_row([own], |_| Ok(())).optional()?.is_some() {
                found += note.execute([id, own])?;
                break;
            }
        }
    }
    Ok(found)
}

/// See [`join`].
fn replace(made: &Connection) -> Result<BTreeMap<String, u64>> {
    let mut gone = BTreeMap::new();
    for table in &Layout::everything(made)?.tables {
        for reference in table.references.iter().filter(|reference| same(&reference.table, "rocpd_api")) {
            let (name, column) = (quote(&table.name), quote(&reference.column));
            let stands_in = format!("{column} IN (SELECT id FROM temp.stand_in)");
            let call = format!("(SELECT call FROM temp.stand_in AS s WHERE s.id = {name}.{column})");
            if table.key.as_deref().is_some_and(|key| same(key, &reference.column)) {
                // What the call's own part says of it counts.
                let double = format!(
                    "DELETE FROM {name} WHERE {stands_in} AND {call} IN (SELECT {column} FROM {name})"
                );
                gone.insert(table.name.to_ascii_lowercase(), made.execute(&double, [])? as u64);
            }
            made.execute(&format!("UPDATE {name} SET {column} = {call} WHERE {stands_in}"), [])?;
        }
    }
    let calls = made.execute("DELETE FROM rocpd_api WHERE id IN (SELECT id FROM temp.stand_in)", [])?;
    gone.insert("rocpd_api".to_string(), calls as u64);
    Ok(gone)
}
