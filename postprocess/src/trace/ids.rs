//! Sets of ids, a bit or so each: which rows of a table of millions stay.
//!
//! A session's ids lie close together, so a compressed bitmap holds five million of them in a megabyte, and SQL asks
//! it faster than it would an index.

use std::sync::Arc;

use roaring::{RoaringBitmap, RoaringTreemap};
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, Params};

use super::marker::FIRST_MARKER;

/// Spans that a condition has at most.
const NEAR: usize = 16;

/// A set of ids.
#[derive(Debug, Default, Clone)]
pub(crate) struct Ids(RoaringTreemap);

impl Ids {
    /// The ids that a query yields as integers in its columns; what is no integer is no id.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn of(trace: &Connection, query: &str, parameters: impl Params) -> rusqlite::Result<Ids> {
        let mut ids = Ids::default();
        ids.gather(trace, query, parameters)?;
        Ok(ids)
    }

    /// Adds the ids that a query yields.
    ///
    /// # Errors
    /// As [`Ids::of`].
    pub(crate) fn gather(
        &mut self,
        trace: &Connection,
        query: &str,
        parameters: impl Params,
    ) -> rusqlite::Result<()> {
        let mut query = trace.prepare(query)?;
        let columns = query.column_count();
        let mut rows = query.query(parameters)?;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                if let Ok(id) = row.get_ref(column)?.as_i64() {
                    self.add(id);
                }
            }
        }
        Ok(())
    }

    /// Adds one.
    pub(crate) fn add(&mut self, id: i64) {
        self.0.insert(id.cast_unsigned());
    }

    /// Whether it is in the set.
    pub(crate) fn has(&self, id: i64) -> bool {
        self.0.contains(id.cast_unsigned())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes those that `others` has.
    pub(crate) fn remove_all(&mut self, others: &Ids) {
        self.0 -= &others.0;
    }

    /// A condition (SQL) that is true of all of them in a column, and of few others: sessions have their ids beside each other.
    pub(crate) fn near(&self, column: &str) -> String {
        let mut spans = self.spans();
        // Each is compared with each row.
        if spans.len() > NEAR {
            spans = hull(&spans).into_iter().collect();
        }
        let spans: Vec<String> =
            spans.iter().map(|(first, last)| format!("{column} BETWEEN {first} AND {last}")).collect();
        if spans.is_empty() { "0".to_string() } else { format!("({})", spans.join(" OR ")) }
    }

    /// The lowest of all and the highest.
    pub(crate) fn hull(&self) -> Option<(i64, i64)> {
        hull(&self.spans())
    }

    /// The lowest and the highest of each session, of its markers apart: these have ids far above those of its calls.
    fn spans(&self) -> Vec<(i64, i64)> {
        let of_session = |(session, ids): (u32, &RoaringBitmap)| {
            let id = |low: u32| (u64::from(session) << 32 | u64::from(low)).cast_signed();
            [ids.range(..FIRST_MARKER), ids.range(FIRST_MARKER..)].map(|mut ids| {
                let first = ids.next()?;
                Some((id(first), id(ids.next_back().unwrap_or(first))))
            })
        };
        self.0.bitmaps().flat_map(of_session).flatten().collect()
    }

    /// The set by itself.
    pub(crate) fn into_inner(self) -> RoaringTreemap {
        self.0
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }

    /// Makes the set known to SQL as the function `name(id)`: 1 if it has the id, else 0.
    ///
    /// # Errors
    /// Those of SQLite, none of which has to do with the file.
    pub(crate) fn name(self: &Arc<Ids>, trace: &Connection, name: &str) -> rusqlite::Result<()> {
        let ids = Arc::clone(self);
        let flags = FunctionFlags::SQLITE_UTF8
            | FunctionFlags::SQLITE_DETERMINISTIC
            | FunctionFlags::SQLITE_DIRECTONLY;
        trace.create_scalar_function(name, 1, flags, move |call| {
            Ok(call.get_raw(0).as_i64().is_ok_and(|id| ids.has(id)))
        })
    }
}

/// One span that has all of them.
fn hull(spans: &[(i64, i64)]) -> Option<(i64, i64)> {
    spans.iter().copied().reduce(|hull, span| (hull.0.min(span.0), hull.1.max(span.1)))
}
