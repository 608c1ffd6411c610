//! The texts of a trace, ready for a file of some format.
//!
//! Most texts are used once, in the order in which they were recorded. So they are read once, by a connection of their own while the rows are read
//! that use them: the first ones are kept in memory, those behind them in a temporary file, of which a stretch is read at once.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result};
use rpd_schema::Version;
use rpd_schema::text::{shown, text_of};
use rustc_hash::FxHashMap;

use crate::trace::has_table;

/// Bytes of texts that are kept in memory.
const CACHE_BYTES: usize = 24 << 20;

/// Read at once of the others, bytes.
const STRETCH: usize = 16 << 10;

/// Bytes of names among the others that are remembered once they were asked for.
const REMEMBERED: usize = 4 << 20;

/// Appends a text as a format has it.
pub(super) type Put = fn(&mut Vec<u8>, &str);

/// The texts of a table, by id.
#[derive(Default)]
pub(super) struct TextCache {
    places: Places,
    ends: Ends,
    /// The first ones.
    bytes: Vec<u8>,
    /// Those behind them.
    further: Option<File>,
}

/// Which ids there are, ascending. Those of a session follow each other.
#[derive(Default)]
struct Places {
    /// First id and place of each run of ids without a gap.
    runs: Vec<(i64, usize)>,
    count: usize,
}

impl Places {
    /// Adds an id that is larger than all before it.
    fn push(&mut self, id: i64) {
        let goes_on = self
            .runs
            .last()
            .is_some_and(|(first, place)| first.checked_add((self.count - place) as i64) == Some(id));
        if !goes_on {
            self.runs.push((id, self.count));
        }
        self.count += 1;
    }

    /// The place of an id; `near` is the run that had the one before.
    fn place(&self, id: i64, near: &mut usize) -> Option<usize> {
        if let Some(place) = self.in_run(*near, id) {
            return Some(place);
        }
        *near = self.runs.partition_point(|(first, _)| *first <= id).checked_sub(1)?;
        self.in_run(*near, id)
    }

    fn in_run(&self, run: usize, id: i64) -> Option<usize> {
        let (first, place) = *self.runs.get(run)?;
        let end = self.runs.get(run + 1).map_or(self.count, |(_, place)| *place);
        let place = usize::try_from(id.checked_sub(first)?).ok()?.checked_add(place)?;
        (place < end).then_some(place)
    }
}

/// Texts whose ends are counted from one place.
const GROUP: usize = 64;

/// Where texts that follow each other end.
#[derive(Default)]
struct Ends {
    /// Begin of each [`GROUP`] of them.
    groups: Vec<u64>,
    /// From there on; no text is so long that a group has more.
    ends: Vec<u32>,
}

impl Ends {
    fn push(&mut self, begin: u64, end: u64) {
        if self.ends.len().is_multiple_of(GROUP) {
            self.groups.push(begin);
        }
        self.ends.push((end - self.groups[self.groups.len() - 1]) as u32);
    }

    /// Begin and end of the text at a place.
    fn of(&self, place: usize) -> (u64, u64) {
        let group = self.groups[place / GROUP];
        let begin = if place.is_multiple_of(GROUP) { 0 } else { self.ends[place - 1] };
        (group + u64::from(begin), group + u64::from(self.ends[place]))
    }
}

impl TextCache {
    /// Reads the texts of the trace `file`: names, and arguments where they are in a table of their own.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
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

    /// Reads the texts of `table` in the trace `file`, of which up to `room` bytes are kept in memory.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    fn read(file: &Path, table: &str, room: usize, put: Put) -> Result<TextCache> {
        let (trace, _) = rpd_schema::open_read(file)?;
        let mut kept = TextCache::default();
        if !has_table(&trace, table)? {
            return Ok(kept);
        }
        trace.execute_batch("PRAGMA temp_store = FILE; PRAGMA cache_size = -2048")?;
        let mut rows = trace.prepare(&format!(
            "SELECT id, {} FROM {table} WHERE typeof(id) = 'integer' ORDER BY id",
            shown("string")
        ))?;
        let mut rows = rows.query([])?;
        let (mut last, mut begin) = (None, 0_u64);
        let mut further: Option<BufWriter<File>> = None;
        let mut text = Vec::new();
        while let Some(row) = rows.next()? {
            let id = row.get(0)?;
            // A table without a key may have an id twice.
            if last.replace(id) == Some(id) {
                continue;
            }
            let end = if kept.bytes.len() < room {
                put(&mut kept.bytes, &text_of(row.get_ref(1)?));
                kept.bytes.len() as u64
            } else {
                text.clear();
                put(&mut text, &text_of(row.get_ref(1)?));
                let file = match &mut further {
                    Some(file) => file,
                    none => none.insert(BufWriter::with_capacity(
                        256 << 10,
                        tempfile::tempfile().with_context(cannot_write)?,
                    )),
                };
                file.write_all(&text).with_context(cannot_write)?;
                begin + text.len() as u64
            };
            kept.places.push(id);
            kept.ends.push(begin, end);
            begin = end;
        }
        kept.further = match further {
            Some(file) => {
                Some(file.into_inner().map_err(|error| error.into_error()).with_context(cannot_write)?)
            }
            None => None,
        };
        Ok(kept)
    }
}

fn cannot_write() -> String {
    format!(
        "cannot write a temporary file in {} (TMPDIR names another place)",
        std::env::temp_dir().display()
    )
}

/// The texts of a trace.
pub(super) struct TraceTexts<'a> {
    names: Texts<'a>,
    arguments: Texts<'a>,
}

impl<'a> TraceTexts<'a> {
    /// Those that were read.
    pub(super) fn new((names, arguments): &'a (TextCache, Option<TextCache>)) -> TraceTexts<'a> {
        TraceTexts { names: Texts::of(names), arguments: Texts::of(arguments.as_ref().unwrap_or(names)) }
    }

    /// A function's, kernel's or type's name: few, and asked for again and again.
    ///
    /// # Errors
    /// When the temporary file cannot be read.
    pub(super) fn name(&mut self, id: i64) -> Result<&[u8]> {
        self.names.repeated(id)
    }

    /// The arguments of a call, or what a marker says: many, in the order of their ids.
    ///
    /// # Errors
    /// When the temporary file cannot be read.
    pub(super) fn arguments(&mut self, id: i64) -> Result<&[u8]> {
        self.arguments.get(id)
    }
}

/// The texts of a table, as one thread asks for them.
struct Texts<'a> {
    kept: &'a TextCache,
    near: usize,
    /// What was read last of the temporary file, and where in the texts it begins.
    stretch: (u64, Vec<u8>),
    remembered: FxHashMap<i64, Vec<u8>>,
    remembered_bytes: usize,
}

impl<'a> Texts<'a> {
    fn of(kept: &'a TextCache) -> Texts<'a> {
        let (stretch, remembered) = ((0, Vec::new()), FxHashMap::default());
        Texts { kept, near: 0, stretch, remembered, remembered_bytes: 0 }
    }

    /// The text with this id, empty where the file has none.
    fn get(&mut self, id: i64) -> Result<&[u8]> {
        let Some(place) = self.kept.places.place(id, &mut self.near) else { return Ok(b"") };
        let (begin, end) = self.kept.ends.of(place);
        if let Some(text) = within(&self.kept.bytes, 0, (begin, end)) {
            return Ok(text);
        }
        if within(&self.stretch.1, self.stretch.0, (begin, end)).is_none() {
            self.read((begin, end))?;
        }
        Ok(within(&self.stretch.1, self.stretch.0, (begin, end)).unwrap_or_default())
    }

    /// The same of a text that will be asked for again.
    fn repeated(&mut self, id: i64) -> Result<&[u8]> {
        let Some(place) = self.kept.places.place(id, &mut self.near) else { return Ok(b"") };
        if let Some(text) = within(&self.kept.bytes, 0, self.kept.ends.of(place)) {
            return Ok(text);
        }
        if !self.remembered.contains_key(&id) {
            let text = self.get(id)?.to_vec();
            if self.remembered_bytes > REMEMBERED {
                self.remembered.clear();
                self.remembered_bytes = 0;
            }
            self.remembered_bytes += text.len() + size_of::<(i64, Vec<u8>)>();
            self.remembered.insert(id, text);
        }
        Ok(self.remembered.get(&id).map_or(b"".as_slice(), Vec::as_slice))
    }

    /// Reads a stretch of the temporary file that begins with this text.
    fn read(&mut self, (begin, end): (u64, u64)) -> Result<()> {
        let Some(file) = &self.kept.further else { return Ok(()) };
        let (in_memory, last) =
            (self.kept.bytes.len() as u64, self.kept.ends.of(self.kept.places.count - 1).1);
        let length = (end - begin).max(STRETCH as u64).min(last - begin);
        let (at, stretch) = &mut self.stretch;
        *at = begin;
        stretch.resize(length as usize, 0);
        file.read_exact_at(stretch, begin - in_memory).context("cannot read a temporary file")
    }
}

/// A stretch of `bytes`, which begin at `at`, if it is in them.
fn within(bytes: &[u8], at: u64, (begin, end): (u64, u64)) -> Option<&[u8]> {
    let place = |of: u64| usize::try_from(of.checked_sub(at)?).ok();
    bytes.get(place(begin)?..place(end)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::json::escape_into;

    #[test]
    fn ids_are_found_wherever_they_lie() {
        let ids = [i64::MIN, 1, 2, 5, 1 << 32, (1 << 32) + 1, (7 << 32) + 3, i64::MAX];
        let mut places = Places::default();
        ids.iter().for_each(|id| places.push(*id));
        for near in 0..9 {
            for (place, id) in ids.iter().enumerate() {
                assert_eq!(places.place(*id, &mut { near }), Some(place));
            }
            for id in [i64::MIN + 1, 0, 3, 6, (1 << 32) + 2, i64::MAX - 1] {
                assert_eq!(places.place(id, &mut { near }), None);
            }
        }
        assert_eq!(Places::default().place(1, &mut 0), None);
    }

    #[test]
    fn texts_are_the_same_in_memory_and_in_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.rpd");
        rpd_schema::create(&path).unwrap();
        let (connection, _) = rpd_schema::open_write(&path).unwrap();
        let id = |at: i64| ((at % 3) << 32) + 7 * at + at % 2;
        let text = |at: i64| format!("{at} \"{}", "x".repeat((at * at % 40_000) as usize));
        let count = 400;
        for at in 0..count {
            let row: (i64, String) = (id(at), text(at));
            connection
                .execute("INSERT OR REPLACE INTO rocpd_string (id, string) VALUES (?1, ?2)", row)
                .unwrap();
        }
        for room in [0, 1, 30_000, 1 << 20, 1 << 30] {
            let kept = TextCache::read(&path, "rocpd_string", room, escape_into).unwrap();
            assert_eq!(kept.further.is_none(), room == 1 << 30);
            let mut texts = Texts::of(&kept);
            let there_and_back =
                (0..count).chain((0..count).rev()).chain((0..count).map(|at| at * 7 % count));
            for at in there_and_back {
                let mut expected = Vec::new();
                escape_into(&mut expected, &text(at));
                assert_eq!(texts.get(id(at)).unwrap(), expected, "{room} {at}");
                assert_eq!(texts.repeated(id(at)).unwrap(), expected, "{room} {at}");
            }
            assert_eq!(texts.get(-1).unwrap(), b"");
            assert_eq!(texts.repeated(i64::MAX).unwrap(), b"");
        }
    }
}
