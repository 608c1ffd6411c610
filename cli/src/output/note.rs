//! Standard error: remarks and the one line of a failure. Standard output is for data alone. `note` prints such a line; the notes of
//! docs/glossary.md are files beside a trace, and those of `rpd check` its mildest findings.

use std::fmt::Display;
use std::io::{self, Write};

/// Prints `rpd: message` as one line on standard error. A standard error that cannot be written is no
/// reason to fail.
pub(crate) fn note(message: impl Display) {
    let line = format!("rpd: {message}\n");
    let _ = io::stderr().write_all(line.as_bytes());
}
