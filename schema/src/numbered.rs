//! Facts that a file states by number, in tags of `rocpd_metadata` such as `session::0::host` and `gpu::1::name`.

use std::collections::BTreeMap;

use rusqlite::Connection;

use crate::text::{shown, text_of};
use crate::version::has_facts;

/// Facts by key, of each number.
pub(crate) type FactsByNumber = BTreeMap<u32, BTreeMap<String, String>>;

/// The longest tag that is taken for one, bytes.
const LONGEST_TAG: usize = 4096;

/// Tags `PREFIX N::key`. Where several rows have one tag, the last counts.
pub(crate) fn numbered_facts(connection: &Connection, prefix: &str) -> rusqlite::Result<FactsByNumber> {
    let mut found = FactsByNumber::new();
    if !has_facts(connection)? {
        return Ok(found);
    }
    let mut statement = connection.prepare(&format!(
        "SELECT tag, {} FROM rocpd_metadata
         WHERE octet_length(tag) <= {LONGEST_TAG} AND substr(tag, 1, length(?1)) = ?1 ORDER BY id",
        shown("value")
    ))?;
    let mut rows = statement.query([prefix])?;
    while let Some(row) = rows.next()? {
        let tag = text_of(row.get_ref(0)?);
        let Some((number, key)) = tag.strip_prefix(prefix).and_then(|rest| rest.split_once("::")) else {
            continue;
        };
        let Ok(number) = number.parse() else {
            continue;
        };
        let value = text_of(row.get_ref(1)?).into_owned();
        found.entry(number).or_default().insert(key.to_owned(), value);
    }
    Ok(found)
}
