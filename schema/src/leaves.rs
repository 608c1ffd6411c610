//! Rows that belong into one gap of their table, written as pages of the file. SQLite's INSERT looks for each row's place from
//! the table's root, twice (xferOptimization in its insert.c), which was two fifths of the recorder's CPU. Here a place is looked for once
//! per table and transaction: the leaf in front of the gap is filled up, and further leaves are put behind the file's end.
//!
//! The gap is at the end of a table for the latest session of the file. For any other session it is in front of the rows of the next one: the
//! session's first transaction divides the leaf in which both have rows, and from then on each has leaves of its own. Rows that come late
//! belong in front of their session's gap, and go by INSERT.
//!
//! Five rows of a dispatch took 0.54 us of CPU in this way, and 1.19 us by INSERTs from an image (docs/speed.md; `cargo bench -p
//! rpd-schema`).
//!
//! Pages are read and written through SQLite's table `sqlite_dbpage` (sqlite.org/dbpage.html), so they are in the open transaction:
//! SQLite's pager keeps the old ones in the journal, takes the locks, writes at the COMMIT and undoes at a ROLLBACK.
//!
//! SQLite's layer of tables does not know of these pages, from which follow three rules, kept by `transfer` and `appender`:
//!
//! - Everything else that a transaction writes comes first, these pages last, then the COMMIT. A page that SQLite adds to a table
//!   in between would get the number of one of ours.
//! - Images are attached to the connection as databases that may be written: `sqlite_dbpage` begins a write in each.
//! - After the COMMIT or ROLLBACK, SQLite forgets its pages: it keeps what it has made of a page beside it.

use crate::batch::Batch;
use crate::pending::Pending;
use crate::record::{read_number, varint, varint_length};
use rusqlite::ffi::{Error, SQLITE_CORRUPT, SQLITE_TOOBIG};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use rustc_hash::FxHashMap;

/// Kinds of pages, and the bytes of their headers (SQLite file format §1.6).
const LEAF: u8 = 13;
const LEAF_HEADER: usize = 8;
const INTERIOR: u8 = 5;
const INTERIOR_HEADER: usize = 12;
/// The byte whose page is no table's: locks lie there (§1.1, the lock-byte page).
const LOCK_BYTE: u32 = 1 << 30;
/// A longer way from a root to a leaf is a circle.
const DEEPEST: usize = 20;

/// Where the tables of the file begin that are as a recorder makes them.
#[derive(Debug, Default)]
pub(crate) struct OwnTables {
    /// SQLite's number of the schema that `tables` is about.
    schema: Option<i64>,
    tables: FxHashMap<&'static str, OwnTable>,
    /// The text of each table in a fresh file.
    texts: FxHashMap<String, String>,
}

#[derive(Clone, Copy, Debug)]
struct OwnTable {
    root: u32,
    /// `sqlite_sequence` has the largest id that the table ever had.
    counts_ids: bool,
}

impl OwnTables {
    /// What the file has now.
    fn refresh(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let schema =
            connection.prepare_cached("PRAGMA main.schema_version")?.query_row([], |row| row.get(0))?;
        if self.schema == Some(schema) {
            return Ok(());
        }
        if self.texts.is_empty() {
            self.texts = fresh_texts()?;
        }
        self.tables.clear();
        // Indexes and triggers must see each row. They keep the table's name as it was typed.
        let mut find = connection.prepare(
            "SELECT sql, rootpage FROM main.sqlite_schema AS own WHERE type = 'table' AND name = ?1 AND NOT EXISTS \
             (SELECT 1 FROM main.sqlite_schema WHERE type IN ('index', 'trigger') AND tbl_name = own.name COLLATE NOCASE)",
        )?;
        for table in Pending::TABLES.iter().map(|insert| insert.table) {
            let found =
                find.query_row([table], |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).optional()?;
            if let Some((text, root)) = found
                && self.texts.get(table) == Some(&text)
            {
                self.tables.insert(table, OwnTable { root, counts_ids: text.contains("AUTOINCREMENT") });
            }
        }
        self.schema = Some(schema);
        Ok(())
    }
}

fn fresh_texts() -> rusqlite::Result<FxHashMap<String, String>> {
    let fresh = Connection::open_in_memory()?;
    rpd_sql::FRESH
        .into_iter()
        .chain(rpd_sql::ext::RECORDERS)
        .try_for_each(|text| fresh.execute_batch(text))?;
    let mut tables = fresh.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")?;
    tables.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Batches of which most rows belong into one gap of their table each: behind all of its rows or, where later sessions have rows too,
/// in front of theirs.
pub(crate) struct Appending<'rows> {
    tables: Vec<AppendingTable<'rows>>,
}

struct AppendingTable<'rows> {
    batch: &'rows mut Batch,
    table: OwnTable,
    /// How many rows belong in front of the gap: calls that took longer than later ones, operations that another queue overtook.
    earlier: usize,
}

impl<'rows> Appending<'rows> {
    /// Takes what can be written as pages out of `batches`.
    pub(crate) fn choose(
        own: &mut OwnTables,
        connection: &Connection,
        batches: &mut Vec<&'rows mut Batch>,
    ) -> rusqlite::Result<Appending<'rows>> {
        let mut tables = vec![];
        // An SQLite may be without the table of pages.
        let Some(mut pages) = Pages::of(connection).ok().filter(|pages| pages.may_grow) else {
            return Ok(Appending { tables });
        };
        own.refresh(connection)?;
        for batch in std::mem::take(batches) {
            let table = own.tables.get(batch.table()).copied();
            let is_sorted = batch.longest() <= pages.longest_record() && batch.sort();
            if let (Some(table), Some(last)) = (table, batch.last_key().filter(|_| is_sorted))
                && let Some(gap) = Gap::find(&mut pages, table.root, last)?
                && let earlier = batch.rows_until(gap.lower)
                && earlier <= batch.rows() / 2
            {
                tables.push(AppendingTable { batch, table, earlier });
            } else {
                batches.push(batch);
            }
        }
        Ok(Appending { tables })
    }

    /// How many rows pages would have.
    pub(crate) fn rows(&self) -> usize {
        self.tables.iter().map(|table| table.batch.rows() - table.earlier).sum()
    }

    /// Writes the rows. Nothing else may be written from here to the end of the transaction. After a failure it must be undone.
    pub(crate) fn write(mut self, connection: &Connection) -> rusqlite::Result<()> {
        for AppendingTable { batch, table, earlier } in &mut self.tables {
            batch.write_first(connection, *earlier)?;
            if let (true, Some(last)) = (table.counts_ids, batch.last_key()) {
                count_ids(connection, batch.table(), last)?;
            }
        }
        let mut pages = Pages::of(connection)?;
        for AppendingTable { batch, table, .. } in self.tables {
            let (Some(first), Some(last)) = (batch.first_key(), batch.last_key()) else { continue };
            let gap = Gap::find(&mut pages, table.root, last)?.filter(|gap| gap.lower < first);
            let mut gap = gap.ok_or_else(|| failure(SQLITE_CORRUPT))?;
            gap.open(&mut pages)?;
            batch.records().try_for_each(|(key, record)| gap.push(&mut pages, key, record))?;
            gap.write(&mut pages)?;
            batch.clear();
        }
        pages.finish()
    }
}

fn failure(code: i32) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(Error::new(code), None)
}

/// What SQLite does for AUTOINCREMENT: no id comes twice, not even after its row was deleted.
fn count_ids(connection: &Connection, table: &str, last: i64) -> rusqlite::Result<()> {
    let known = connection
        .prepare_cached("UPDATE main.sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1")?
        .execute(params![table, last])?;
    if known == 0 {
        connection
            .prepare_cached("INSERT INTO main.sqlite_sequence (name, seq) VALUES (?1, ?2)")?
            .execute(params![table, last])?;
    }
    Ok(())
}

/// The pages of the file, in the open transaction.
struct Pages<'connection> {
    read: CachedStatement<'connection>,
    write: CachedStatement<'connection>,
    /// Bytes of a page.
    size: usize,
    count: u32,
    /// Whether the file is one that a page behind its end can be added to.
    may_grow: bool,
}

impl<'connection> Pages<'connection> {
    fn of(connection: &'connection Connection) -> rusqlite::Result<Pages<'connection>> {
        let mut read = connection.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?;
        let write = connection.prepare_cached("INSERT INTO sqlite_dbpage (pgno, data) VALUES (?1, ?2)")?;
        let count = connection.prepare_cached("PRAGMA main.page_count")?.query_row([], |row| row.get(0))?;
        let header: Vec<u8> = read.query_row([1], |row| row.get(0))?;
        // SQLite file format §1.3: no bytes of an extension in each page, no free page, which SQLite would rather take, no map of
        // pointers, UTF-8.
        let may_grow = header[20] == 0
            && word(&header, 36) == Some(0)
            && word(&header, 52) == Some(0)
            && word(&header, 56) == Some(1);
        Ok(Pages { read, write, size: header.len(), count, may_grow })
    }

    /// Bytes of a record that needs no overflow page (§1.6).
    fn longest_record(&self) -> usize {
        self.size - 35
    }

    fn read(&mut self, number: u32) -> rusqlite::Result<Vec<u8>> {
        self.read.query_row([number], |row| row.get(0))
    }

    fn write(&mut self, number: u32, page: &[u8]) -> rusqlite::Result<()> {
        self.write.execute(params![number, page]).map(|_| ())
    }

    /// The number of a page behind all others.
    fn add(&mut self) -> u32 {
        let of_locks = LOCK_BYTE / self.size as u32 + 1;
        self.count += if self.count + 1 == of_locks { 2 } else { 1 };
        self.count
    }

    /// States how many pages there are (§1.3.8).
    fn finish(mut self) -> rusqlite::Result<()> {
        let mut header = self.read(1)?;
        header[28..32].copy_from_slice(&self.count.to_be_bytes());
        self.write(1, &header)
    }
}

/// A place between two rows of a table: the leaf with the rows in front of it, and the pages that lead there, the root first.
struct Gap {
    path: Vec<Interior>,
    leaf: Leaf,
    /// No row of the table between this key and the gap.
    lower: i64,
    /// How many rows of the leaf are in front of the gap.
    place: usize,
}

impl Gap {
    /// Where the row `key` belongs, which the table does not have. None where the pages are not those of a table: SQLite will say what
    /// is wrong.
    fn find(pages: &mut Pages<'_>, root: u32, key: i64) -> rusqlite::Result<Option<Gap>> {
        let mut path: Vec<Interior> = vec![];
        let mut number = root;
        let mut lower = i64::MIN;
        while path.len() < DEEPEST {
            let Some(page) = pages.read(number).optional()? else { return Ok(None) };
            if page[0] != INTERIOR {
                // Only a root may be empty.
                let leaf = Leaf::parse(number, page).filter(|leaf| path.is_empty() || leaf.cells > 0);
                let place = leaf.as_ref().and_then(|leaf| leaf.place_of(key));
                let (Some(leaf), Some((place, last))) = (leaf, place) else { return Ok(None) };
                return Ok(Some(Gap { path, leaf, lower: last.unwrap_or(lower), place }));
            }
            let Some(mut interior) = Interior::parse(number, &page) else { return Ok(None) };
            interior.at = interior.children.partition_point(|(_, last)| *last < key);
            if let Some((_, last)) =
                interior.at.checked_sub(1).and_then(|before| interior.children.get(before))
            {
                lower = *last;
            }
            number = interior.children.get(interior.at).map_or(interior.right, |(child, _)| *child);
            path.push(interior);
        }
        Ok(None)
    }

    /// Puts the rows of the leaf that are behind the gap on a page of their own.
    fn open(&mut self, pages: &mut Pages<'_>) -> rusqlite::Result<()> {
        if self.place == self.leaf.cells {
            return Ok(());
        }
        let behind = self.leaf.split_off(self.place, pages.size).zip(self.leaf.key(self.place));
        let ((before, mut behind), first) = behind.ok_or_else(|| failure(SQLITE_CORRUPT))?;
        self.leaf = before;
        behind.number = pages.add();
        behind.write(pages)?;
        self.move_root(pages);
        // All that may ever come into the gap is led to this leaf.
        self.lead_to(pages, self.path.len() - 1, (self.leaf.number, first - 1), behind.number, Goes::Before)
    }

    fn push(&mut self, pages: &mut Pages<'_>, key: i64, record: &[u8]) -> rusqlite::Result<()> {
        if self.leaf.push(key, record) {
            return Ok(());
        }
        self.move_root(pages);
        self.leaf.write(pages)?;
        let full = (self.leaf.number, self.leaf.last.unwrap_or(i64::MIN));
        self.leaf.clear(pages.add());
        self.lead_to(pages, self.path.len() - 1, full, self.leaf.number, Goes::Behind)?;
        match self.leaf.push(key, record) {
            true => Ok(()),
            false => Err(failure(SQLITE_TOOBIG)),
        }
    }

    /// A root keeps its number: where the leaf is one, what it has goes to another page.
    fn move_root(&mut self, pages: &mut Pages<'_>) {
        if self.path.is_empty() {
            let root = std::mem::replace(&mut self.leaf.number, pages.add());
            self.path.push(Interior { number: root, children: vec![], right: self.leaf.number, at: 0 });
        }
    }

    /// The page that led to the gap at this level has become two: `before`, with the largest key that is looked for there, and `behind`.
    fn lead_to(
        &mut self,
        pages: &mut Pages<'_>,
        mut level: usize,
        before: (u32, i64),
        behind: u32,
        goes: Goes,
    ) -> rusqlite::Result<()> {
        let interior = &mut self.path[level];
        match interior.children.get_mut(interior.at) {
            Some((child, _)) => *child = behind,
            None => interior.right = behind,
        }
        interior.children.insert(interior.at, before);
        interior.at += usize::from(goes == Goes::Behind);
        if interior.fits(pages.size) {
            return Ok(());
        }
        // Of both pages each leads to two at least: SQLite takes no other. At the end of a table the first one stays full.
        let first = (interior.at + 1).clamp(2, interior.children.len() - 1);
        let mut next = Interior {
            number: pages.add(),
            children: interior.children.split_off(first),
            right: interior.right,
            at: 0,
        };
        let Some((right, last)) = interior.children.pop() else { return Err(failure(SQLITE_CORRUPT)) };
        interior.right = right;
        if level == 0 {
            let root = std::mem::replace(&mut interior.number, pages.add());
            let number = interior.number;
            self.path.insert(0, Interior { number: root, children: vec![], right: number, at: 0 });
            level = 1;
        }
        let interior = &mut self.path[level];
        let (before, behind) = ((interior.number, last), next.number);
        let goes = match interior.at.checked_sub(first) {
            None => Goes::Before,
            Some(at) => {
                next.at = at;
                std::mem::swap(interior, &mut next);
                Goes::Behind
            }
        };
        // The gap is not there any more.
        next.write(pages)?;
        self.lead_to(pages, level - 1, before, behind, goes)
    }

    fn write(&self, pages: &mut Pages<'_>) -> rusqlite::Result<()> {
        self.leaf.write(pages)?;
        self.path.iter().try_for_each(|interior| interior.write(pages))
    }
}

/// On which of two pages the gap goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goes {
    Before,
    Behind,
}

/// A page of rows.
struct Leaf {
    number: u32,
    page: Vec<u8>,
    cells: usize,
    /// Where the cells begin, which grow downwards.
    content: usize,
    /// The largest key.
    last: Option<i64>,
    /// Memory for a cell's header.
    head: Vec<u8>,
}

impl Leaf {
    fn empty(number: u32, size: usize) -> Leaf {
        Leaf { number, page: vec![0; size], cells: 0, content: size, last: None, head: vec![] }
    }

    fn parse(number: u32, page: Vec<u8>) -> Option<Leaf> {
        let cells = half(&page, 3)?;
        let mut leaf = Leaf { number, content: half(&page, 5)?, page, cells, last: None, head: vec![] };
        if leaf.page[0] != LEAF {
            return None;
        }
        if cells == 0 {
            leaf.clear(number);
            return Some(leaf);
        }
        leaf.last = Some(leaf.key(cells - 1)?);
        (LEAF_HEADER + 2 * cells..leaf.page.len()).contains(&leaf.content).then_some(leaf)
    }

    /// Where the cell is, and what follows it on the page.
    fn cell(&self, cell: usize) -> Option<&[u8]> {
        self.page.get(half(&self.page, LEAF_HEADER + 2 * cell)?..)
    }

    /// The key of the row in that cell.
    fn key(&self, cell: usize) -> Option<i64> {
        let (_, rest) = read_number(self.cell(cell)?)?;
        Some(read_number(rest)?.0.cast_signed())
    }

    /// How many rows are in front of where `key` belongs, and the key of the last of these. None where the row is there.
    fn place_of(&self, key: i64) -> Option<(usize, Option<i64>)> {
        let keys = (0..self.cells).map(|cell| self.key(cell)).collect::<Option<Vec<_>>>()?;
        let place = keys.partition_point(|other| *other < key);
        let is_there = keys.get(place) == Some(&key);
        (!is_there).then(|| (place, place.checked_sub(1).map(|before| keys[before])))
    }

    /// Two pages, the first with the rows in front of the cell, the second, which has no number, with the others.
    fn split_off(&self, cell: usize, size: usize) -> Option<(Leaf, Leaf)> {
        let (mut before, mut behind) = (Leaf::empty(self.number, size), Leaf::empty(0, size));
        for number in 0..self.cells {
            let bytes = self.cell(number)?;
            let (length, rest) = read_number(bytes)?;
            let (key, rest) = read_number(rest)?;
            let bytes = bytes.get(..bytes.len() - rest.len() + bytes_on_page(length, size)?)?;
            let leaf = if number < cell { &mut before } else { &mut behind };
            if !leaf.push_cell(key.cast_signed(), &[], bytes) {
                return None;
            }
        }
        Some((before, behind))
    }

    /// Makes it another page without rows.
    fn clear(&mut self, number: u32) {
        self.page.fill(0);
        (self.number, self.cells, self.content, self.last) = (number, 0, self.page.len(), None);
    }

    /// Whether there was room for the row.
    fn push(&mut self, key: i64, record: &[u8]) -> bool {
        let mut head = std::mem::take(&mut self.head);
        head.clear();
        varint(&mut head, record.len() as u64);
        varint(&mut head, key.cast_unsigned());
        let pushed = self.push_cell(key, &head, record);
        self.head = head;
        pushed
    }

    /// Whether there was room for a cell of these bytes, one behind the other.
    fn push_cell(&mut self, key: i64, head: &[u8], rest: &[u8]) -> bool {
        let pointer = LEAF_HEADER + 2 * self.cells;
        let Some(cell) = self.content.checked_sub(head.len() + rest.len()) else { return false };
        if cell < pointer + 2 {
            return false;
        }
        self.page[cell..cell + head.len()].copy_from_slice(head);
        self.page[cell + head.len()..self.content].copy_from_slice(rest);
        self.page[pointer..pointer + 2].copy_from_slice(&(cell as u16).to_be_bytes());
        (self.cells, self.content, self.last) = (self.cells + 1, cell, Some(key));
        self.page[0] = LEAF;
        self.page[3..5].copy_from_slice(&(self.cells as u16).to_be_bytes());
        self.page[5..7].copy_from_slice(&(cell as u16).to_be_bytes());
        true
    }

    fn write(&self, pages: &mut Pages<'_>) -> rusqlite::Result<()> {
        pages.write(self.number, &self.page)
    }
}

/// Bytes of a record of `length` bytes that are in its leaf, the number of its first overflow page included (§1.6).
fn bytes_on_page(length: u64, size: usize) -> Option<usize> {
    let length = usize::try_from(length).ok()?;
    let (most, least) = (size - 35, (size - 12) * 32 / 255 - 23);
    if length <= most {
        return Some(length);
    }
    let filled = least + (length - least) % (size - 4);
    Some(4 + if filled <= most { filled } else { least })
}

/// A page that leads to others.
struct Interior {
    number: u32,
    /// Pages, and the largest key that is looked for below each.
    children: Vec<(u32, i64)>,
    /// The page behind them all.
    right: u32,
    /// Which of the pages leads to the gap, `right` being the last.
    at: usize,
}

impl Interior {
    fn parse(number: u32, page: &[u8]) -> Option<Interior> {
        let child = |n| {
            let cell = half(page, INTERIOR_HEADER + 2 * n)?;
            let (key, _) = read_number(page.get(cell + 4..)?)?;
            Some((word(page, cell)?, key.cast_signed()))
        };
        let children = (0..half(page, 3)?).map(child).collect::<Option<_>>()?;
        Some(Interior { number, children, right: word(page, 8)?, at: 0 })
    }

    /// Whether a page has room for it.
    fn fits(&self, size: usize) -> bool {
        let cells = self.children.iter().map(|(_, key)| 2 + 4 + varint_length(key.cast_unsigned()));
        INTERIOR_HEADER + cells.sum::<usize>() <= size
    }

    fn write(&self, pages: &mut Pages<'_>) -> rusqlite::Result<()> {
        let mut page = vec![0; pages.size];
        let mut content = page.len();
        let mut cell = vec![];
        for (n, (child, key)) in self.children.iter().enumerate() {
            cell.clear();
            cell.extend_from_slice(&child.to_be_bytes());
            varint(&mut cell, key.cast_unsigned());
            content -= cell.len();
            page[content..content + cell.len()].copy_from_slice(&cell);
            let pointer = INTERIOR_HEADER + 2 * n;
            page[pointer..pointer + 2].copy_from_slice(&(content as u16).to_be_bytes());
        }
        page[0] = INTERIOR;
        page[3..5].copy_from_slice(&(self.children.len() as u16).to_be_bytes());
        page[5..7].copy_from_slice(&(content as u16).to_be_bytes());
        page[8..12].copy_from_slice(&self.right.to_be_bytes());
        pages.write(self.number, &page)
    }
}

/// A number of four bytes.
fn word(page: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(page.get(at..at + 4)?.try_into().ok()?))
}

/// A number of two bytes.
fn half(page: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes(page.get(at..at + 2)?.try_into().ok()?)))
}
