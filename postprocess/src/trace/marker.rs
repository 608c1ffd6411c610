//! Which rows of `rocpd_api` are markers: ranges and marks that a program pushed, Python functions among them, and no calls.
//!
//! Recorders of this format give markers ids of their own, whatever their names are; in files of others they are named `UserMarker`.

/// Whether a row of `rocpd_api` with this id is a marker whatever its name is.
pub(crate) fn is_id(id: i64) -> bool {
    id & 0xffff_ffff >= 0x8000_0000
}

/// The condition in SQL that a row of `rocpd_api` is a marker; `row` is "" or its alias with the point, as in `C.`.
pub(crate) fn is_marker(row: &str) -> String {
    format!("({row}id & 4294967295 >= 2147483648 OR {})", is_text(row))
}

/// The same of a marker whose text is in its arguments; others have it as their name.
pub(crate) fn is_text(row: &str) -> String {
    format!("ifnull({row}apiName_id IN (SELECT id FROM rocpd_string WHERE string = 'UserMarker'), 0)")
}
