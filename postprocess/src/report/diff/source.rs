//! A file of the comparison, and its rows as they are read: calls and markers.

use anyhow::Result;
use rpd_schema::{Processes, Version};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::check::outlier::Outliers;
use crate::check::rule::are_sound;
use crate::region::Selected;
use crate::trace::{Strings, has_table};

/// A file, and what of it is compared.
pub(super) struct Source<'a> {
    pub(super) name: &'a str,
    pub(super) trace: &'a Connection,
    pub(super) version: Version,
    /// 0: A, 1: B.
    pub(super) side: usize,
    pub(super) selected: Selected,
}

/// Process, its id and thread of a call: ids alone may be equal.
pub(super) type ThreadKey = [i64; 3];

/// A row of `rocpd_api` with times that can be.
pub(super) struct Call {
    pub(super) id: i64,
    pub(super) thread: ThreadKey,
    pub(super) start: i64,
    pub(super) end: i64,
    /// Text of the function.
    pub(super) name: i64,
    /// Of a marker.
    pub(super) text: Option<String>,
    /// Whether the program pushed it, and not the recorder.
    pub(super) is_users: bool,
}

/// Names that calls have, as the file says them.
const USER_MARKER: &str = "apiName_id IN (SELECT id FROM rocpd_string WHERE string = 'UserMarker')";

impl Source<'_> {
    /// Shows `visit` each call and marker, or markers only, and says how many rows have times that cannot be.
    ///
    /// # Errors
    /// When the trace cannot be read, and those of `visit`.
    pub(super) fn each_call(
        &self,
        markers_only: bool,
        mut visit: impl FnMut(Call) -> Result<()>,
    ) -> Result<u64> {
        if !has_table(self.trace, "rocpd_api")? {
            return Ok(0);
        }
        let texts = if self.version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" };
        let (mut texts, mut names) = (Strings::in_table(self.trace, texts)?, Strings::of(self.trace)?);
        let processes = Processes::of(self.trace)?;
        let (mut outliers, mut impossible) = (Outliers::new(), 0);
        // Recorders of this format give markers ids of their own.
        let is_marker = format!("(id & 4294967295 >= 2147483648 OR {USER_MARKER})");
        let which = if markers_only { is_marker.as_str() } else { "1" };
        let mut rows = self.trace.prepare(&format!(
            r#"SELECT id, pid, tid, start, rocpd_api."end", apiName_id, args_id, {is_marker}, {USER_MARKER}
               FROM rocpd_api WHERE {which}"#
        ))?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let number = |column| row.get_ref(column).map(|value| value.as_i64().unwrap_or(-1));
            let id = number(0)?;
            if !self.selected.has_call(id) {
                continue;
            }
            let (ValueRef::Integer(start), ValueRef::Integer(end)) = (row.get_ref(3)?, row.get_ref(4)?)
            else {
                impossible += 1;
                continue;
            };
            if !are_sound((start, end)) || outliers.is_far(self.trace, (start, end))? {
                impossible += 1;
                continue;
            }
            let name = number(5)?;
            let is_users = number(8)? == 1;
            let text = match (number(7)? == 1, is_users) {
                (false, _) => None,
                (true, true) => Some(texts.get(number(6)?)?.unwrap_or_default()),
                (true, false) => Some(names.get(name)?.unwrap_or_default()),
            };
            let thread = [processes.of_row(id), number(1)?, number(2)?];
            visit(Call { id, thread, start, end, name, text, is_users })?;
        }
        Ok(impossible)
    }
}
