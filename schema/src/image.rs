//! A database in memory that has only rows on their way to a file. SQLite copies whole rows from one database to another, which takes less
//! time than an INSERT that brings them value by value. When all rows went this way, the recorder put 2.56 million rows of dispatches a CPU
//! second into the file, the making of the records included; INSERTs of the same rows by their values put 2.19 million (`make bench`, section
//! `rows`, bench/runs/2026-11-20-xeon-2.tsv). Rows that belong into one gap of their table do not need an image: [`crate::leaves`] writes
//! them as pages, 0.54 us of CPU for the five rows of a dispatch in place of 1.19 us (`cargo bench -p rpd-schema`, docs/speed.md).
//!
//! ```text
//! | the empty tables' pages, as SQLite made them | leaves of one table | of the next ...
//! ```
//!
//! A table's root is its only leaf, or points to its leaves (SQLite file format §1.6). SQLite reads the image and writes the file.

use crate::record::{varint, varint_length};
use rpd_sql::insert::Insert;
use rusqlite::Connection;

/// Bytes of a page.
const PAGE: usize = 16 << 10;
/// The largest record that fits into a leaf with room to spare.
pub(crate) const MOST: usize = PAGE - 64;
/// Children of a page at most: each takes a place of 2 bytes, a page number of 4 and a key of up to 9.
const CHILDREN: usize = (PAGE - 12) / 15;

const LEAF: u8 = 13;
const LEAF_HEADER: usize = 8;
const INTERIOR: u8 = 5;
const INTERIOR_HEADER: usize = 12;

/// The image of the empty tables, and their roots.
#[derive(Debug)]
pub(crate) struct EmptyImage {
    bytes: Vec<u8>,
    roots: Vec<(&'static str, u32)>,
}

impl EmptyImage {
    /// Asks SQLite for it.
    pub(crate) fn new(tables: &[&'static Insert]) -> rusqlite::Result<EmptyImage> {
        let whole = Connection::open_in_memory()?;
        for text in rpd_sql::FRESH.into_iter().chain(rpd_sql::ext::RECORDERS) {
            whole.execute_batch(text)?;
        }
        let mut image = Connection::open_in_memory()?;
        image.execute_batch(&format!("PRAGMA page_size = {PAGE}"))?;
        let mut roots = vec![];
        for Insert { table, .. } in tables {
            let text = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?";
            let text: String = whole.query_row(text, [table], |row| row.get(0))?;
            image.execute_batch(&text)?;
            let root = "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = ?";
            roots.push((*table, image.query_row(root, [table], |row| row.get(0))?));
        }
        Ok(EmptyImage { bytes: image.serialize("main")?.to_vec(), roots })
    }
}

pub(crate) struct TableImage<'a> {
    template: &'a EmptyImage,
    bytes: &'a mut Vec<u8>,
}

impl<'a> TableImage<'a> {
    /// Empty tables, in place of what is in `bytes`.
    pub(crate) fn new(template: &'a EmptyImage, bytes: &'a mut Vec<u8>) -> TableImage<'a> {
        bytes.clone_from(&template.bytes);
        TableImage { template, bytes }
    }

    /// Fills a table with rows, by ascending keys; none is longer than [`MOST`].
    pub(crate) fn fill<'row>(&mut self, table: &str, rows: impl Iterator<Item = (i64, &'row [u8])>) {
        let mut pages = vec![];
        let mut leaf = Page::new(LEAF, LEAF_HEADER);
        for (key, record) in rows {
            let length = record.len() as u64;
            let cell = varint_length(length) + varint_length(key.cast_unsigned()) + record.len();
            if !leaf.has_room(cell) {
                pages.push((self.add(&leaf), leaf.last));
                leaf.clear();
            }
            leaf.push(key, |bytes| {
                varint(bytes, length);
                varint(bytes, key.cast_unsigned());
                bytes.extend_from_slice(record);
            });
        }
        let mut top = leaf;
        if !pages.is_empty() {
            pages.push((self.add(&top), top.last));
            while pages.len() > CHILDREN {
                // Evenly: a page with one child would be malformed.
                let share = pages.len().div_ceil(pages.len().div_ceil(CHILDREN));
                pages = pages
                    .chunks(share)
                    .map(|some| (self.add(&parent(some)), some[some.len() - 1].1))
                    .collect();
            }
            top = parent(&pages);
        }
        let root =
            self.template.roots.iter().find(|(name, _)| *name == table).map(|(_, root)| *root as usize - 1);
        let at = root.expect("a table of the template") * PAGE;
        top.write(&mut self.bytes[at..at + PAGE]);
    }

    /// All tables are filled: the bytes are a whole database.
    pub(crate) fn finish(self) {
        // Offset 28: the number of pages (SQLite file format §1.3).
        let pages = (self.bytes.len() / PAGE) as u32;
        self.bytes[28..32].copy_from_slice(&pages.to_be_bytes());
    }

    /// Adds a page; its number, from 1.
    fn add(&mut self, page: &Page) -> u32 {
        let at = self.bytes.len();
        self.bytes.resize(at + PAGE, 0);
        page.write(&mut self.bytes[at..]);
        (self.bytes.len() / PAGE) as u32
    }
}

/// A page that points to `pages`, which are at least two: (number, largest key).
fn parent(pages: &[(u32, i64)]) -> Page {
    let mut page = Page::new(INTERIOR, INTERIOR_HEADER);
    let (last, others) = pages.split_last().expect("there are pages");
    for (number, key) in others {
        page.push(*key, |bytes| {
            bytes.extend_from_slice(&number.to_be_bytes());
            varint(bytes, key.cast_unsigned());
        });
    }
    page.right = last.0;
    page
}

/// A page of a table: a header, the places of its cells, and the cells at its end.
struct Page {
    kind: u8,
    header: usize,
    /// The child behind all cells.
    right: u32,
    /// The cells, the first one first.
    cells: Vec<u8>,
    /// Where each of them begins in `cells`.
    places: Vec<usize>,
    last: i64,
}

impl Page {
    fn new(kind: u8, header: usize) -> Page {
        Page { kind, header, right: 0, cells: Vec::with_capacity(PAGE), places: vec![], last: 0 }
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.places.clear();
    }

    fn has_room(&self, cell: usize) -> bool {
        self.header + 2 * (self.places.len() + 1) + self.cells.len() + cell <= PAGE
    }

    fn push(&mut self, key: i64, write: impl FnOnce(&mut Vec<u8>)) {
        self.places.push(self.cells.len());
        write(&mut self.cells);
        self.last = key;
    }

    fn write(&self, page: &mut [u8]) {
        let cells = PAGE - self.cells.len();
        page[0] = self.kind;
        page[3..5].copy_from_slice(&(self.places.len() as u16).to_be_bytes());
        page[5..7].copy_from_slice(&(cells as u16).to_be_bytes());
        if self.kind == INTERIOR {
            page[8..12].copy_from_slice(&self.right.to_be_bytes());
        }
        for (pointer, place) in page[self.header..].chunks_exact_mut(2).zip(&self.places) {
            pointer.copy_from_slice(&((cells + place) as u16).to_be_bytes());
        }
        page[cells..].copy_from_slice(&self.cells);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;
    use rpd_sql::insert::{API_OPS, STRING};

    /// The image with these texts, opened by SQLite.
    fn open(template: &EmptyImage, texts: &[(i64, Vec<u8>)]) -> Connection {
        let records: Vec<(i64, Vec<u8>)> = texts
            .iter()
            .map(|(key, text)| {
                let mut bytes = vec![];
                let mut record = Record::new(&mut bytes, 2);
                record.null();
                record.text(text);
                (*key, bytes)
            })
            .collect();
        let mut bytes = vec![];
        let mut image = TableImage::new(template, &mut bytes);
        image.fill("rocpd_string", records.iter().map(|(key, record)| (*key, &record[..])));
        image.finish();
        let mut connection = Connection::open_in_memory().unwrap();
        connection.deserialize_read_exact("main", &bytes[..], bytes.len(), true).unwrap();
        connection
    }

    #[test]
    fn sqlite_finds_nothing_wrong_with_images_of_all_depths() {
        let template = EmptyImage::new(&[&API_OPS, &STRING]).unwrap();
        // Rows, their first key, the length of their texts: an only leaf, leaves below a root, and pages between.
        let cases = [
            (0, 1, 9),
            (1, i64::MAX - 1, MOST - 10),
            (300, 3 << 32, 40),
            (300, 1 << 55, 60),
            (40_000, 100, 2),
            (CHILDREN + 1, 1 << 31, MOST - 10),
            (CHILDREN * 2 + 7, 1 << 61, MOST - 10),
        ];
        for (rows, first, length) in cases {
            let row = |n: usize| (first + n as i64, vec![b'a' + (n % 26) as u8; length]);
            let rows: Vec<(i64, Vec<u8>)> = (0..rows).map(row).collect();
            let connection = open(&template, &rows);
            let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
            assert_eq!(check, "ok", "{} rows from {first} of {length} bytes", rows.len());
            let mut statement =
                connection.prepare("SELECT id, CAST(string AS blob) FROM rocpd_string").unwrap();
            let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            assert!(found.map(Result::unwrap).eq(rows.iter().cloned()));
            // By key, which the pages above the leaves must lead to.
            for (key, text) in rows.iter().step_by(97) {
                let query = "SELECT CAST(string AS blob) FROM rocpd_string WHERE id = ?";
                let there: Vec<u8> = connection.query_row(query, [key], |row| row.get(0)).unwrap();
                assert_eq!(there, *text);
            }
        }
    }
}
