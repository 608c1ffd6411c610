//! Standard output: for data, in the form that was asked for.

pub(crate) mod candidate;
pub(crate) mod chart;
pub(crate) mod file;
pub(crate) mod left_out;
pub(crate) mod note;
pub(crate) mod progress;
pub(crate) mod quantity;
pub(crate) mod table;
pub(crate) mod value;
pub(crate) mod width;

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use anyhow::{Context, Result};
use rpd_escape::json;
use serde::Serialize;

use crate::system::terminal::terminal_width;

/// Columns of a terminal that does not know its size.
const DEFAULT_WIDTH: usize = 80;

/// Columns that a line for people may take: COLUMNS, or the terminal's. None in a pipe and in a file, where whoever reads can cut.
pub(crate) fn line_width() -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    let is_terminal = io::stdout().is_terminal();
    let terminal = || is_terminal.then(|| terminal_width().unwrap_or(DEFAULT_WIDTH));
    asked.filter(|columns| *columns > 0).or_else(terminal)
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
    let text = json(serde_json::to_string_pretty(value).context("cannot write JSON")?);
    write(|out| writeln!(out, "{text}"))
}

/// Writes one line of comma-separated values.
///
/// # Errors
/// When `out` cannot be written.
pub(crate) fn write_csv_record<F: AsRef<[u8]>>(
    out: &mut impl Write,
    fields: impl IntoIterator<Item = F>,
) -> io::Result<()> {
    // Its flush would go through to `out`, line by line.
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(fields).map_err(io::Error::other)?;
    out.write_all(&csv.into_inner().map_err(|error| io::Error::other(error.to_string()))?)
}
