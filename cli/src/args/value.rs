//! Values of options: times, sizes, and names of files to be written.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use rpd_settings::file_name;
use rpd_settings::quantity::{self, MEBIBYTE, SECOND};

/// A file can be set to end at that size at most.
const LARGEST_FILE: u64 = 1 << 50;

/// A time; seconds without a unit.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let ns = quantity::time_ns(text, SECOND);
    ns.map(|ns| Duration::from_nanos(ns.unsigned_abs())).ok_or_else(|| format!("not {}", quantity::TIMES))
}

/// A size of a file in bytes; MiB without a unit.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let bytes = quantity::size_bytes(text, MEBIBYTE).ok_or_else(|| format!("not {}", quantity::SIZES))?;
    let possible = Some(bytes).filter(|bytes| (1..=LARGEST_FILE).contains(bytes));
    possible.ok_or_else(|| "must be more than nothing, and at most 1024 TiB".to_string())
}

/// The name of a trace to be written.
pub(crate) fn output() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|name| file_name::of_output(OsStr::new(&name)))
}
