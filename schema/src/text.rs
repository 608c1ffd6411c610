//! Reading texts of a trace that may be anything: of any encoding, no text at all, or as long as the file.

use rusqlite::types::ValueRef;
use std::borrow::Cow;

/// The longest text that is read whole to be shown, bytes. No kernel's name comes near it.
const SHOWN: usize = 64 << 10;

/// What is read of a longer one: as many characters as take no more bytes than [`SHOWN`], whichever they are.
const CUT: usize = SHOWN / 4;

/// The longest text that is looked at for arguments, bytes.
const ARGUMENTS: usize = 1 << 20;

/// The value of `column` (SQL) for people to read: a text of more than 64 KiB is cut, and says so with its size. SQLite knows a
/// text's size without reading it.
#[must_use]
pub fn shown(column: &str) -> String {
    format!(
        "CASE WHEN octet_length({column}) <= {SHOWN} THEN {column}
         ELSE substr({column}, 1, {CUT}) || '… [' || octet_length({column}) || ' bytes]' END"
    )
}

/// The condition (SQL) that the value of `column` is so long that [`shown`] cuts it.
#[must_use]
pub fn is_cut(column: &str) -> String {
    format!("octet_length({column}) > {SHOWN}")
}

/// The value of `column` (SQL) where it may hold arguments of a call or fields of a marker: NULL in place of a text of more than
/// one MiB.
#[must_use]
pub fn arguments(column: &str) -> String {
    format!("CASE WHEN octet_length({column}) <= {ARGUMENTS} THEN {column} END")
}

/// A value as text: bytes that are not UTF-8 are replaced, NULL is empty.
///
/// For values that SQLite has as texts. The bytes of `CAST(column AS blob)` are in the encoding of the database instead.
#[must_use]
pub fn text_of(value: ValueRef<'_>) -> Cow<'_, str> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => match std::str::from_utf8(bytes) {
            // The usual case, several bytes at a time.
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(bytes),
        },
        ValueRef::Integer(number) => number.to_string().into(),
        ValueRef::Real(number) => number.to_string().into(),
        ValueRef::Null => Cow::Borrowed(""),
    }
}
