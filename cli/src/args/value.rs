//! Values of options: times, sizes, and names of files to be written.

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use rpd_duration_log::LogFormat;
use rpd_settings::file_name;
use rpd_settings::quantity::{self, MEBIBYTE, SECOND};
use rpd_settings::rotation::Rotation;

/// A file can be set to end at that size at most.
const LARGEST_FILE: u64 = 1 << 50;

/// A time; seconds without a unit.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let ns = quantity::time_ns(text, SECOND);
    ns.map(|ns| Duration::from_nanos(ns.unsigned_abs())).ok_or_else(|| format!("not {}", quantity::TIMES))
}

/// A time between one thing and the next, which is more than none; seconds without a unit.
pub(crate) fn distance(text: &str) -> Result<Duration, String> {
    let found = time(text)?;
    Some(found).filter(|time| !time.is_zero()).ok_or_else(|| "must be more than nothing".to_string())
}

/// The format of the lines of a duration log: `csv` or `json`.
pub(crate) fn log_format() -> impl TypedValueParser<Value = LogFormat> {
    let names = LogFormat::ALL.map(|(_, name)| name);
    PossibleValuesParser::new(names).map(|name| LogFormat::named(&name).unwrap_or_default())
}

/// The text of a marker, as `marker:NAME`.
pub(crate) fn marker_name(text: &str) -> Result<String, String> {
    let name = text.strip_prefix("marker:").filter(|name| !name.is_empty());
    name.map(str::to_string).ok_or_else(|| "not marker:NAME".to_string())
}

/// How many there are to be, as of rows.
pub(crate) fn count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "must be a number, 1 or more".to_string())
}

/// How many there are to be, if any.
pub(crate) fn count_or_none(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "must be a number, 0 or more".to_string())
}

/// The number of a GPU, a queue, a process and the like.
pub(crate) fn id(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| "must be a number, as rpd info and rpd top --by have them".to_string())
}

/// A size of a file in bytes; MiB without a unit.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let bytes = quantity::size_bytes(text, MEBIBYTE).ok_or_else(|| format!("not {}", quantity::SIZES))?;
    let possible = Some(bytes).filter(|bytes| (1..=LARGEST_FILE).contains(bytes));
    possible.ok_or_else(|| "must be more than nothing, and at most 1024 TiB".to_string())
}

/// When a recording goes on in a next file.
pub(crate) fn rotation(text: &str) -> Result<Rotation, String> {
    Rotation::parse(text)
}

/// The name of a trace to be written.
pub(crate) fn output() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|name| file_name::of_output(OsStr::new(&name)))
}
