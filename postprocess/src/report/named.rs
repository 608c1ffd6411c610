//! The names of rows: the first of two texts that is not empty.

use std::hash::{BuildHasher, RandomState};

use rusqlite::Connection;

use crate::pass::parts::Key;
use crate::trace::Strings;

/// Ids of the two texts, in the tables of [`NameTexts::of`].
pub(super) type NameIds = (i64, i64);

/// The name of rows whose names are not in the file.
pub(super) const NAMELESS: &str = "(no name in the file)";

/// What stands for a name where names are compared.
pub(super) fn key(hasher: &RandomState, name: &str) -> Key {
    [0, 1].map(|half| hasher.hash_one((half, name)))
}

/// The texts that name rows.
pub(super) struct NameTexts<'trace> {
    texts: Strings<'trace>,
    strings: Strings<'trace>,
}

impl NameTexts<'_> {
    /// Those whose first ids are of the table `texts`, and their second ones of `rocpd_string`.
    ///
    /// # Errors
    /// When there is no such table.
    pub(super) fn of<'trace>(trace: &'trace Connection, texts: &str) -> rusqlite::Result<NameTexts<'trace>> {
        Ok(NameTexts { texts: Strings::in_table(trace, texts)?, strings: Strings::of(trace)? })
    }

    /// The name; none where the file has none.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn get(&mut self, ids: NameIds) -> rusqlite::Result<Option<String>> {
        match self.texts.get(ids.0)?.filter(|text| !text.is_empty()) {
            Some(name) => Ok(Some(name)),
            None => Ok(self.strings.get(ids.1)?.filter(|name| !name.is_empty())),
        }
    }
}
