//! Which call caused an operation.
//!
//! The table of links is in the order in which they were made, and has no index by operation. So the links to a range of operations are
//! read into memory when the first of these is asked for. Where all do not fit, one look at the table says before which links lead
//! into which range: they are nearly in the order of operations, so that each is read about twice.

use anyhow::Result;
use rusqlite::Connection;
use rustc_hash::FxHashMap;

use crate::trace::layout::{Layout, quote};

/// Operations whose links are in memory at a time: 32 MB.
const WINDOW: i64 = 1 << 22;

/// No call.
const NONE: i64 = i64::MIN;

/// The links of a rank.
pub(super) struct Links<'trace> {
    trace: &'trace Connection,
    /// Reads links whose own ids are in a range.
    query: Option<String>,
    ids: Vec<(i64, i64)>,
    /// First and last link into each window, by its number; where this is not known, all have to be read.
    bounds: Option<FxHashMap<i64, (i64, i64)>>,
    window: Option<i64>,
    calls: Vec<i64>,
}

impl<'trace> Links<'trace> {
    /// The links with these ids.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn of(
        trace: &'trace Connection,
        layout: &Layout,
        ids: &[(i64, i64)],
    ) -> Result<Links<'trace>> {
        let table = layout.table("rocpd_api_ops");
        let table = table.filter(|table| table.has("api_id") && table.has("op_id"));
        let query = table.map(|table| {
            let id = if table.has("id") { quote("id") } else { "rowid".to_string() };
            format!(
                "SELECT op_id, api_id, {id} FROM rocpd_api_ops WHERE {id} BETWEEN ?1 AND ?2 ORDER BY {id}"
            )
        });
        let (bounds, window) = (None, None);
        Ok(Links { trace, query, ids: ids.to_vec(), bounds, window, calls: Vec::new() })
    }

    /// The call that caused an operation: that of the first link, where there are several.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn call(&mut self, op: i64) -> Result<Option<i64>> {
        let window = op.div_euclid(WINDOW);
        if self.window != Some(window) {
            self.read(window)?;
        }
        let call = self.calls.get(op.rem_euclid(WINDOW) as usize).copied();
        Ok(call.filter(|call| *call != NONE))
    }

    fn read(&mut self, window: i64) -> Result<()> {
        let is_first = self.window.is_none();
        self.window = Some(window);
        self.calls.clear();
        let Some(query) = &self.query else { return Ok(()) };
        if !is_first && self.bounds.is_none() {
            self.bounds = Some(self.find_bounds(query)?);
        }
        let all = (i64::MIN, i64::MAX);
        let (first, last) = match &self.bounds {
            Some(bounds) => match bounds.get(&window) {
                Some(bounds) => *bounds,
                None => return Ok(()),
            },
            None => all,
        };
        let mut links = self.trace.prepare(query)?;
        for (from, to) in &self.ids {
            let mut rows = links.query([*from.max(&first), *to.min(&last)])?;
            while let Some(row) = rows.next()? {
                let (Ok(op), Ok(call)) = (row.get_ref(0)?.as_i64(), row.get_ref(1)?.as_i64()) else {
                    continue;
                };
                if op.div_euclid(WINDOW) == window {
                    let at = op.rem_euclid(WINDOW) as usize;
                    if self.calls.len() <= at {
                        self.calls.resize(at + 1, NONE);
                    }
                    if self.calls[at] == NONE {
                        self.calls[at] = call;
                    }
                }
            }
        }
        Ok(())
    }

    fn find_bounds(&self, query: &str) -> Result<FxHashMap<i64, (i64, i64)>> {
        let mut bounds: FxHashMap<i64, (i64, i64)> = FxHashMap::default();
        let mut links = self.trace.prepare(query)?;
        for ids in &self.ids {
            let mut rows = links.query([ids.0, ids.1])?;
            while let Some(row) = rows.next()? {
                let (Ok(op), Ok(link)) = (row.get_ref(0)?.as_i64(), row.get_ref(2)?.as_i64()) else {
                    continue;
                };
                bounds.entry(op.div_euclid(WINDOW)).or_insert((link, link)).1 = link;
            }
        }
        Ok(bounds)
    }
}
