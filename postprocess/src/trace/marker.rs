//! Which rows of `rocpd_api` are markers: ranges and marks that a program pushed, Python functions among them, and no calls.
//!
//! Recorders of this format give markers ids of their own, whatever their names are; in files of others they are named `UserMarker`.

/// What the function of a marker is called in files of the format.
pub(crate) const MARKER: &str = "UserMarker";

/// The lower half of the lowest id of a marker; the upper half is its session's.
pub(crate) const FIRST_MARKER: u32 = 1 << 31;

/// Whether a row of `rocpd_api` with this id is a marker whatever its name is.
pub(crate) fn is_id(id: i64) -> bool {
    id as u32 >= FIRST_MARKER
}

/// The condition in SQL that a row of `rocpd_api` is a marker; `row` is "" or its alias with the point, as in `C.`.
pub(crate) fn is_marker(row: &str) -> String {
    format!("({row}id & 4294967295 >= 2147483648 OR {})", is_text(row))
}

/// The same of a marker whose text is in its arguments; others have it as their name.
pub(crate) fn is_text(row: &str) -> String {
    format!("ifnull({row}apiName_id IN (SELECT id FROM rocpd_string WHERE string = '{MARKER}'), 0)")
}
