//! The report of a pass: what it made, and what it met on the way.

use std::collections::BTreeMap;

use serde::Serialize;

/// What a pass made.
#[derive(Debug, Default, Serialize)]
pub struct PassReport {
    /// Rows by table.
    pub rows: BTreeMap<&'static str, u64>,
    /// What could not be taken as it is in the file, worst first.
    pub remarks: Vec<Remark>,
    /// What to do where there was nothing to make it of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<&'static str>,
}

/// Rows of a file that could not be taken as they are.
#[derive(Debug, Serialize)]
pub struct Remark {
    /// Short name, for programs: `overlapping-calls`.
    pub kind: &'static str,
    /// How many rows.
    pub count: u64,
    /// What they are and what was done with them.
    pub text: String,
}

impl PassReport {
    /// Adds a remark unless there is nothing to remark.
    pub fn remark(&mut self, kind: &'static str, count: u64, text: impl Into<String>) {
        if count > 0 {
            self.remarks.push(Remark { kind, count, text: text.into() });
        }
    }
}
