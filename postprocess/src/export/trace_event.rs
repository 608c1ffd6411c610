//! The common part of the formats that are made of Trace Event JSON.

use anyhow::Result;

use super::elements::Elements;
use super::json::{digits, escape_into, microseconds};
use super::timeline::events::{Counter, Place};

/// Appends the numbers of a track.
pub(super) fn place(bytes: &mut Vec<u8>, place: Place) {
    bytes.extend_from_slice(b",\"pid\":");
    digits(bytes, place.process);
    bytes.extend_from_slice(b",\"tid\":");
    digits(bytes, place.track);
}

/// Appends a time that counts from `zero_ns` on.
pub(super) fn time(bytes: &mut Vec<u8>, ns: i64, zero_ns: i64) {
    bytes.extend_from_slice(b",\"ts\":");
    microseconds(bytes, ns.saturating_sub(zero_ns));
}

/// Appends begin and duration.
pub(super) fn slice(bytes: &mut Vec<u8>, (start, end): (i64, i64), zero_ns: i64) {
    time(bytes, start, zero_ns);
    bytes.extend_from_slice(b",\"dur\":");
    microseconds(bytes, end - start);
}

/// Appends an argument that is known; `name` has what is before its value.
pub(super) fn number(bytes: &mut Vec<u8>, name: &[u8], value: Option<i64>) {
    if let Some(value) = value {
        bytes.extend_from_slice(name);
        digits(bytes, value);
    }
}

/// Appends an argument of three dimensions; `name` has what is before them, with the bracket.
pub(super) fn extents(bytes: &mut Vec<u8>, name: &[u8], [x, y, z]: [i64; 3]) {
    number(bytes, name, Some(x));
    number(bytes, b",", Some(y));
    number(bytes, b",", Some(z));
    bytes.push(b']');
}

/// Appends a value of a counter.
pub(super) fn value(bytes: &mut Vec<u8>, counter: &Counter<'_>, zero_ns: i64) {
    bytes.extend_from_slice(b"{\"ph\":\"C\",\"name\":\"");
    escape_into(bytes, counter.name);
    bytes.extend_from_slice(b"\",\"pid\":");
    digits(bytes, counter.process);
    time(bytes, counter.time_ns, zero_ns);
    bytes.extend_from_slice(b",\"args\":{\"");
    escape_into(bytes, counter.key);
    bytes.extend_from_slice(b"\":");
    bytes.extend_from_slice(counter.value.to_string().as_bytes());
    bytes.extend_from_slice(b"}}");
}

/// Writes the name and place of a process or of a thread.
///
/// # Errors
/// When the output has failed.
pub(super) fn name(
    elements: &mut Elements,
    what: &str,
    of: (i64, Option<i64>),
    name: &str,
    order: i64,
) -> Result<()> {
    let mut quoted = vec![b'"'];
    escape_into(&mut quoted, name);
    quoted.push(b'"');
    fact(elements, (what, "name"), of, &quoted)?;
    fact(elements, (what, "sort_index"), of, order.to_string().as_bytes())
}

/// Writes what is to be known of a process or of a thread: `value` is JSON.
///
/// # Errors
/// When the output has failed.
pub(super) fn fact(
    elements: &mut Elements,
    (what, fact): (&str, &str),
    (process, thread): (i64, Option<i64>),
    value: &[u8],
) -> Result<()> {
    let bytes = elements.next()?;
    bytes.extend_from_slice(format!("{{\"ph\":\"M\",\"name\":\"{what}_{fact}\",\"pid\":").as_bytes());
    digits(bytes, process);
    if let Some(thread) = thread {
        bytes.extend_from_slice(b",\"tid\":");
        digits(bytes, thread);
    }
    bytes.extend_from_slice(format!(",\"args\":{{\"{fact}\":").as_bytes());
    bytes.extend_from_slice(value);
    bytes.extend_from_slice(b"}}");
    Ok(())
}
