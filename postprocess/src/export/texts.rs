//! The texts of a trace, ready for a file of some format.
//!
//! Most texts are used in the order in which they were recorded, and most traces have few enough to keep them all. So they are
//! read once, by a connection of their own while the rows are read that use them. If a trace has more, the others are read one by one.

use std::path::Path;

use anyhow::Result;
use rpd_schema::Version;
use rpd_schema::text::{shown, text_of};
use rusqlite::{Connection, OptionalExtension, Statement};
use rustc_hash::FxHashMap;

use crate::trace::has_table;

/// Bytes of texts and of their ids that are kept.
const CACHE_BYTES: usize = 32 << 20;

/// Bytes of texts beyond those that are remembered once they were asked for.
const REMEMBERED: usize = 4 << 20;

/// Appends a text as a format has it.
pub(super) type Put = fn(&mut Vec<u8>, &str);

/// The first texts of a table, by id.
#[derive(Default)]
pub(super) struct TextCache {
    ids: Vec<i64>,
    /// Where each ends in `bytes`.
    ends: Vec<u32>,
    bytes: Vec<u8>,
    is_complete: bool,
}

impl TextCache {
    /// Reads the texts of the trace `file`: names, and arguments where they are in a table of their own.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn of_trace(
        file: &Path,
        version: Version,
        put: Put,
    ) -> Result<(TextCache, Option<TextCache>)> {
        match version {
            Version::V3 => {
                let names = TextCache::read(file, "rocpd_string", CACHE_BYTES / 4, put)?;
                Ok((names, Some(TextCache::read(file, "rocpd_ustring", CACHE_BYTES - CACHE_BYTES / 4, put)?)))
            }
            _ => Ok((TextCache::read(file, "rocpd_string", CACHE_BYTES, put)?, None)),
        }
    }

    /// Reads texts of `table` in the trace `file` that take up to `room` bytes.
    ///
    /// # Errors
    /// When the trace cannot be read.
    fn read(file: &Path, table: &str, room: usize, put: Put) -> Result<TextCache> {
        let (trace, _) = rpd_schema::open_read(file)?;
        let mut kept = TextCache { is_complete: true, ..TextCache::default() };
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
                put(&mut kept.bytes, &text_of(row.get_ref(1)?));
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
    /// Where they are in a table of their own.
    arguments: Option<Texts<'trace>>,
}

impl<'trace> TraceTexts<'trace> {
    /// Those of which `kept` was read.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn new(
        trace: &'trace Connection,
        (names, arguments): &'trace (TextCache, Option<TextCache>),
        put: Put,
    ) -> Result<TraceTexts<'trace>> {
        Ok(TraceTexts {
            names: Texts::new(trace, "rocpd_string", names, put)?,
            arguments: arguments
                .as_ref()
                .map(|kept| Texts::new(trace, "rocpd_ustring", kept, put))
                .transpose()?,
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
    kept: &'trace TextCache,
    near: usize,
    others: Option<Statement<'trace>>,
    put: Put,
    remembered: FxHashMap<i64, Vec<u8>>,
    remembered_bytes: usize,
}

impl<'trace> Texts<'trace> {
    /// Those of `table`, of which `kept` was read.
    fn new(
        trace: &'trace Connection,
        table: &str,
        kept: &'trace TextCache,
        put: Put,
    ) -> Result<Texts<'trace>> {
        let others = match kept.is_complete {
            true => None,
            false => Some(trace.prepare(&format!("SELECT {} FROM {table} WHERE id = ?1", shown("string")))?),
        };
        Ok(Texts { kept, near: 0, others, put, remembered: FxHashMap::default(), remembered_bytes: 0 })
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
                    (self.put)(&mut text, &text_of(row.get_ref(0)?));
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
    fn ids_are_found_wherever_they_lie() {
        let ids = vec![1, 2, 5, 1 << 32, (1 << 32) + 1, (7 << 32) + 3];
        let kept = TextCache {
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
