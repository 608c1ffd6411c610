//! Standard output: for data, in the form that was asked for.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::{system, text};

/// Columns of a line where nobody says otherwise: in a pipe, into a file.
const DEFAULT_WIDTH: usize = 100;

/// Columns that a line for people may take.
pub(crate) fn line_width() -> usize {
    if io::stdout().is_terminal() { system::terminal_width().unwrap_or(DEFAULT_WIDTH) } else { DEFAULT_WIDTH }
}

/// Lets `fill` write data to standard output and sees to it that all of it arrived.
///
/// # Errors
/// What `fill` fails with, or that standard output cannot be written (a closed pipe is an
/// [`io::ErrorKind::BrokenPipe`] in the chain).
pub(crate) fn write(fill: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> io::Result<()>) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    fill(&mut out).and_then(|()| out.flush()).context("cannot write to standard output")
}

/// Writes one value as indented JSON, with everything escaped that could disturb a terminal.
///
/// # Errors
/// Those of [`write()`].
pub(crate) fn write_json(value: &impl Serialize) -> Result<()> {
    let json = text::json(serde_json::to_string_pretty(value).context("cannot write JSON")?);
    write(|out| writeln!(out, "{json}"))
}
