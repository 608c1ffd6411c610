//! A file of the comparison, and its rows as they are read: calls and markers.

use anyhow::Result;
use rpd_schema::{Processes, Version};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::check::outlier::Outliers;
use crate::check::rule::are_sound;
use crate::region::Selected;
use crate::trace::marker::{is_marker, is_text};
use crate::trace::{Strings, has_table};

/// A file, and what of it is compared.
pub(super) struct ComparedTrace<'a> {
    pub(super) name: &'a str,
    pub(super) trace: &'a Connection,
    pub(super) version: Version,
    /// 0: A, 1: B.
    pub(super) side: usize,
    pub(super) selected: Selected,
    /// The same whatever operations it is about: by all launches of them iterations are alike.
    pub(super) alike: Selected,
}

/// Process, its id and thread of a call: ids alone may be equal.
pub(super) type ThreadKey = [i64; 3];

/// A row of `rocpd_api` with times that can be.
pub(super) struct ComparedCall {
    pub(super) id: i64,
    pub(super) thread: ThreadKey,
    pub(super) start: i64,
    pub(super) end: i64,
    /// Text of the function.
    pub(super) name: i64,
    /// Of a marker.
    pub(super) text: Option<String>,
    /// Whether it is a marker that has its text apart from its name: of a range of the program, not of a Python function.
    pub(super) has_text: bool,
    /// Whether it is in the region, and not only in an iteration of which something is.
    pub(super) is_asked: bool,
}

impl ComparedTrace<'_> {
    /// Shows `visit` each call and marker of iterations, or markers only, and says how many rows of the region have times that cannot be.
    ///
    /// # Errors
    /// When the trace cannot be read, and those of `visit`.
    pub(super) fn each_call(
        &self,
        markers_only: bool,
        mut visit: impl FnMut(ComparedCall) -> Result<()>,
    ) -> Result<u64> {
        if !has_table(self.trace, "rocpd_api")? {
            return Ok(0);
        }
        let texts = if self.version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" };
        let (mut texts, mut names) = (Strings::in_table(self.trace, texts)?, Strings::of(self.trace)?);
        let processes = Processes::of(self.trace)?;
        let (mut outliers, mut impossible) = (Outliers::new(), 0);
        let (is_marker, is_text) = (is_marker(""), is_text(""));
        let which = if markers_only { is_marker.as_str() } else { "1" };
        let mut rows = self.trace.prepare(&format!(
            r#"SELECT id, pid, tid, start, rocpd_api."end", apiName_id, args_id, {is_marker}, {is_text}
               FROM rocpd_api WHERE {which}"#
        ))?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let number = |column| row.get_ref(column).map(|value| value.as_i64().unwrap_or(-1));
            let id = number(0)?;
            if !self.alike.has_call(id) {
                continue;
            }
            let is_asked = self.selected.has_call(id);
            let (ValueRef::Integer(start), ValueRef::Integer(end)) = (row.get_ref(3)?, row.get_ref(4)?)
            else {
                impossible += u64::from(is_asked);
                continue;
            };
            if !are_sound((start, end)) || outliers.is_outlier(self.trace, (start, end))? {
                impossible += u64::from(is_asked);
                continue;
            }
            let name = number(5)?;
            let has_text = number(8)? == 1;
            let text = match (number(7)? == 1, has_text) {
                (false, _) => None,
                (true, true) => Some(texts.get(number(6)?)?.unwrap_or_default()),
                (true, false) => Some(names.get(name)?.unwrap_or_default()),
            };
            let thread = [processes.of_row(id), number(1)?, number(2)?];
            visit(ComparedCall { id, thread, start, end, name, text, has_text, is_asked })?;
        }
        Ok(impossible)
    }
}
