//! Standard output: for data, in the form that was asked for.

pub(crate) mod candidate;
pub(crate) mod chart;
pub(crate) mod file;
pub(crate) mod note;
pub(crate) mod progress;
pub(crate) mod quantity;
pub(crate) mod table;
pub(crate) mod value;
pub(crate) mod width;

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use anyhow::{Context, Result};
use rpd_escape::json;
use serde::Serializer;
use serde::ser::{Serialize, SerializeSeq};

use crate::system::facts::terminal_width;

/// Columns of a terminal that does not know its size.
const DEFAULT_WIDTH: usize = 80;

const UNWRITABLE: &str = "cannot write to standard output";

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
    fill(&mut out).and_then(|()| out.flush()).context(UNWRITABLE)
}

/// Writes one value as indented JSON, with everything escaped that could disturb a terminal.
///
/// # Errors
/// Those of [`write()`].
pub(crate) fn write_json(value: &impl Serialize) -> Result<()> {
    write(|out| {
        serde_json::to_writer_pretty(SafeJson(&mut *out), value)?;
        writeln!(out)
    })
}

/// Writes the same as [`write_json`] does of all `rows` in a list, one after the other.
///
/// # Errors
/// Those of [`write()`], and the first that is among the rows.
pub(crate) fn write_json_rows<T: Serialize>(rows: impl Iterator<Item = Result<T>>) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut json = serde_json::Serializer::pretty(SafeJson(&mut out));
    let mut list = json.serialize_seq(None).map_err(io::Error::from).context(UNWRITABLE)?;
    for row in rows {
        list.serialize_element(&row?).map_err(io::Error::from).context(UNWRITABLE)?;
    }
    list.end().map_err(io::Error::from).context(UNWRITABLE)?;
    writeln!(out).and_then(|()| out.flush()).context(UNWRITABLE)
}

/// Writes `rows` as comma-separated values, one after the other.
///
/// # Errors
/// Those of [`write()`], and the first that is among the rows.
pub(crate) fn write_csv_rows<F: AsRef<[u8]>>(
    header: &[&str],
    mut rows: impl Iterator<Item = Result<Vec<F>>>,
) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    write_csv_record(&mut out, header).context(UNWRITABLE)?;
    rows.try_for_each(|row| write_csv_record(&mut out, row?).context(UNWRITABLE))?;
    out.flush().context(UNWRITABLE)
}

/// Lets JSON through that serde_json writes, with everything escaped that could disturb a terminal.
struct SafeJson<W>(W);

impl<W: Write> Write for SafeJson<W> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        // Characters are never cut.
        match str::from_utf8(part) {
            Ok(text) if text.is_ascii() && !text.contains('\x7f') => self.0.write_all(part)?,
            Ok(text) => self.0.write_all(json(text.to_string()).as_bytes())?,
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        }
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
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
