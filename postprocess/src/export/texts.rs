//! The texts of a trace, ready to stand in JSON.
//!
//! Most texts are used in the order in which they were recorded, and most traces have few enough to keep them all. So they are
//! read once, by a connection of their own while the rows are read that use them. Of a trace with more, the others are asked for one by one.

use std::path::Path;

use anyhow::Result;
use rpd_escape::{is_unsafe, json};
use rpd_schema::Version;
use rpd_schema::text::{shown, text_of};
use rusqlite::{Connection, OptionalExtension, Statement};
use rustc_hash::FxHashMap;

use crate::trace::has_table;

/// Bytes of texts and of their ids that are kept.
const KEPT: usize = 32 << 20;

/// Bytes of texts beyond those that are remembered once they were asked for.
const REMEMBERED: usize = 4 << 20;

/// Appends `text` as it stands between the quotes of a JSON string; what could disturb a terminal is written as `\uXXXX`.
pub(super) fn escape_into(escaped: &mut Vec<u8>, text: &str) {
    let is_plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\');
    if is_plain {
        escaped.extend_from_slice(text.as_bytes());
        return;
    }
    for c in text.chars() {
        match c {
            '"' => escaped.extend_from_slice(b"\\\""),
            '\\' => escaped.extend_from_slice(b"\\\\"),
            '\n' => escaped.extend_from_slice(b"\\n"),
            '\t' => escaped.extend_from_slice(b"\\t"),
            c if c < ' ' => escaped.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes()),
            c if is_unsafe(c) => escaped.extend_from_slice(json(c.to_string()).as_bytes()),
            c => escaped.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// The first texts of a table, by id.
#[derive(Default)]
pub(super) struct KeptTexts {
    ids: Vec<i64>,
    /// Where each ends in `bytes`.
    ends: Vec<u32>,
    bytes: Vec<u8>,
    is_complete: bool,
}

impl KeptTexts {
    /// Reads the texts of the trace `file`: names, and arguments where they stand in a table of their own.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn of_trace(file: &Path, version: Version) -> Result<(KeptTexts, Option<KeptTexts>)> {
        match version {
            Version::V3 => {
                let names = KeptTexts::read(file, "rocpd_string", KEPT / 4)?;
                Ok((names, Some(KeptTexts::read(file, "rocpd_ustring", KEPT - KEPT / 4)?)))
            }
            _ => Ok((KeptTexts::read(file, "rocpd_string", KEPT)?, None)),
        }
    }

    /// Reads texts of `table` in the trace `file` that take up to `room` bytes.
    ///
    /// # Errors
    /// When the trace cannot be read.
    fn read(file: &Path, table: &str, room: usize) -> Result<KeptTexts> {
        let (trace, _) = rpd_schema::open_read(file)?;
        let mut kept = KeptTexts { is_complete: true, ..KeptTexts::default() };
        if !has_table(&trace, table)? {
            return Ok(kept);
        }
        trace.execute_batch("PRAGMA temp_store = FILE; PRAGMA cache_size = -2048")?;
        let mut rows = trace.prepare(&format!(
            "SELECT id, {} FROM {table} WHERE typeof(id) = 'integer' ORDER BY id",
            shown("string")
        ))?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            if kept.bytes.len() + kept.ids.len() * (size_of::<i64>() + size_of::<u32>()) > room {
                kept.is_complete = false;
                break;
            }
            let id = row.get(0)?;
            // A table without a key may have an id twice.
            if kept.ids.last() != Some(&id) {
                escape_into(&mut kept.bytes, &text_of(row.get_ref(1)?));
                kept.ids.push(id);
                kept.ends.push(kept.bytes.len() as u32);
            }
        }
        Ok(kept)
    }

    /// Where the text with this id is; `near` is where the one before was.
    fn place(&self, id: i64, near: usize) -> Option<usize> {
        // The ids of a session follow each other.
        let guess = self.ids.get(near).and_then(|known| id.checked_sub(*known)).and_then(|distance| {
            let place = i64::try_from(near).ok()?.checked_add(distance)?;
            usize::try_from(place).ok().filter(|place| self.ids.get(*place) == Some(&id))
        });
        guess.or_else(|| self.ids.binary_search(&id).ok())
    }

    fn at(&self, place: usize) -> &[u8] {
        let begin = if place == 0 { 0 } else { self.ends[place - 1] as usize };
        &self.bytes[begin..self.ends[place] as usize]
    }
}

/// The texts of a trace.
pub(super) struct TraceTexts<'trace> {
    names: Texts<'trace>,
    /// Where they stand in a table of their own.
    arguments: Option<Texts<'trace>>,
}

impl<'trace> TraceTexts<'trace> {
    /// Those of which `kept` was read.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn new(
        trace: &'trace Connection,
        (names, arguments): &'trace (KeptTexts, Option<KeptTexts>),
    ) -> Result<TraceTexts<'trace>> {
        Ok(TraceTexts {
            names: Texts::new(trace, "rocpd_string", names)?,
            arguments: arguments.as_ref().map(|kept| Texts::new(trace, "rocpd_ustring", kept)).transpose()?,
        })
    }

    /// A function's, kernel's or type's name.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn name(&mut self, id: i64) -> rusqlite::Result<&[u8]> {
        self.names.get(id)
    }

    /// The arguments of a call, or what a marker says.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn arguments(&mut self, id: i64) -> rusqlite::Result<&[u8]> {
        self.arguments.as_mut().unwrap_or(&mut self.names).get(id)
    }
}

/// The texts of a table.
struct Texts<'trace> {
    kept: &'trace KeptTexts,
    near: usize,
    others: Option<Statement<'trace>>,
    remembered: FxHashMap<i64, Vec<u8>>,
    remembered_bytes: usize,
}

impl<'trace> Texts<'trace> {
    /// Those of `table`, of which `kept` was read.
    fn new(trace: &'trace Connection, table: &str, kept: &'trace KeptTexts) -> Result<Texts<'trace>> {
        let others = match kept.is_complete {
            true => None,
            false => Some(trace.prepare(&format!("SELECT {} FROM {table} WHERE id = ?1", shown("string")))?),
        };
        Ok(Texts { kept, near: 0, others, remembered: FxHashMap::default(), remembered_bytes: 0 })
    }

    /// The text with this id, empty where the file has none.
    fn get(&mut self, id: i64) -> rusqlite::Result<&[u8]> {
        if let Some(place) = self.kept.place(id, self.near) {
            self.near = place;
            return Ok(self.kept.at(place));
        }
        let Some(others) = &mut self.others else { return Ok(b"") };
        if !self.remembered.contains_key(&id) {
            let mut text = Vec::new();
            others
                .query_row([id], |row| {
                    escape_into(&mut text, &text_of(row.get_ref(0)?));
                    Ok(())
                })
                .optional()?;
            if self.remembered_bytes > REMEMBERED {
                self.remembered.clear();
                self.remembered_bytes = 0;
            }
            self.remembered_bytes += text.len() + size_of::<(i64, Vec<u8>)>();
            self.remembered.insert(id, text);
        }
        Ok(self.remembered.get(&id).map_or(b"".as_slice(), Vec::as_slice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_a_json_string_of_the_same_value() {
        let every: String = (0..0x3000_u32).filter_map(char::from_u32).collect();
        for text in ["", "plain <int, 4>", "q\"b\\s", "\u{1b}[2J\u{202e}\u{7f}\u{9b}\u{e0001}é核", &every] {
            let mut quoted = vec![b'"'];
            escape_into(&mut quoted, text);
            quoted.push(b'"');
            let escaped = String::from_utf8(quoted).unwrap();
            assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
            assert!(!escaped.chars().any(is_unsafe), "{escaped:?}");
        }
    }

    #[test]
    fn ids_are_found_wherever_they_lie() {
        let ids = vec![1, 2, 5, 1 << 32, (1 << 32) + 1, (7 << 32) + 3];
        let kept = KeptTexts {
            bytes: b"abcdef".to_vec(),
            ends: (1..=6).collect(),
            ids: ids.clone(),
            is_complete: true,
        };
        for near in 0..7 {
            for (place, id) in ids.iter().enumerate() {
                assert_eq!(kept.place(*id, near), Some(place));
                assert_eq!(kept.at(place), [b'a' + place as u8]);
            }
            for id in [i64::MIN, 0, 3, 6, (1 << 32) + 2, i64::MAX] {
                assert_eq!(kept.place(id, near), None);
            }
        }
    }
}
