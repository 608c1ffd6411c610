//! The answer to a query: kept until all of it is known, then written in the form that was asked for.

use std::borrow::Cow;
use std::io::{self, Seek, Write};

use anyhow::{Context, Result};
use rpd_escape::csv_field;
use rpd_postprocess::query::value::{digits, hexadecimal, infinite};
use rpd_postprocess::text::{escape, shorten, width};
use rusqlite::Row;
use rusqlite::types::ValueRef;
use tempfile::SpooledTempFile;

use crate::output;
use crate::output::table::{Align, Table};
use crate::output::value::{field, in_words, object};
use crate::output::width::shorten_apart;

/// Rows of a table for people when nothing else is asked for.
const MOST_ROWS: usize = 1000;

/// Memory of an answer in a form for programs; a longer one is put into a temporary file, bytes.
const MEMORY: usize = 8 << 20;

/// Columns that a text keeps where rows are too wide.
const LEAST_TEXT: usize = 16;

/// Columns of a cell of a table at most, also where there is room: a text may be as long as the file.
const WIDEST: usize = 16 << 10;

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// For people.
    Table,
    /// An array with an object for each row.
    Json,
    /// A header line, and a line for each row.
    Csv,
}

impl Form {
    /// How many rows are shown unasked.
    pub(super) fn most_rows(self) -> usize {
        if self == Form::Table { MOST_ROWS } else { usize::MAX }
    }
}

/// The rows so far.
pub(super) struct Answer {
    form: Form,
    columns: Vec<String>,
    rows: usize,
    /// Of a table.
    cells: Vec<Vec<Cell>>,
    /// Of the other forms.
    written: SpooledTempFile,
}

/// A cell of a table.
struct Cell {
    text: String,
    /// None of NULL, which may be in any column.
    is_number: Option<bool>,
}

impl Answer {
    /// No rows yet.
    ///
    /// # Errors
    /// When a temporary file cannot be written.
    pub(super) fn new(form: Form, columns: Vec<String>) -> Result<Answer> {
        let mut written = SpooledTempFile::new(MEMORY);
        if form == Form::Csv {
            let titles = columns.iter().map(|title| csv_field(title).into_owned());
            output::write_csv_record(&mut written, titles).context(TEMPORARY)?;
        }
        Ok(Answer { form, columns, rows: 0, cells: Vec::new(), written })
    }

    /// How many there are.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Adds a row.
    ///
    /// # Errors
    /// When its values cannot be read, or a temporary file cannot be written.
    pub(super) fn add(&mut self, row: &Row<'_>) -> Result<()> {
        let values = (0..self.columns.len()).map(|column| row.get_ref(column));
        let values: Vec<ValueRef<'_>> = values.collect::<rusqlite::Result<_>>()?;
        match self.form {
            Form::Table => self.cells.push(values.into_iter().map(Cell::of).collect()),
            Form::Json => {
                let separator = if self.rows == 0 { "[\n" } else { ",\n" };
                let object = object(&self.columns, &values)?;
                write!(self.written, "{separator}{object}").context(TEMPORARY)?;
            }
            Form::Csv => {
                output::write_csv_record(&mut self.written, values.into_iter().map(field))
                    .context(TEMPORARY)?;
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// Writes all of it to standard output.
    ///
    /// # Errors
    /// When standard output cannot be written, or a temporary file cannot be read.
    pub(super) fn write(mut self) -> Result<()> {
        match self.form {
            Form::Table if self.rows == 0 => return Ok(()),
            Form::Table => return output::write(|out| self.write_table(out, output::line_width())),
            Form::Json if self.rows == 0 => writeln!(self.written, "[]"),
            Form::Json => writeln!(self.written, "\n]"),
            Form::Csv => Ok(()),
        }
        .and_then(|()| self.written.rewind())
        .context(TEMPORARY)?;
        output::write(|out| io::copy(&mut self.written, out).map(|_| ()))
    }

    fn write_table(&self, out: &mut impl Write, room: Option<usize>) -> io::Result<()> {
        let align = |column: usize| {
            let mut cells = self.cells.iter().filter_map(|row| row[column].is_number).peekable();
            if cells.peek().is_some() && cells.all(|is_number| is_number) {
                Align::Right
            } else {
                Align::Left
            }
        };
        let aligns: Vec<Align> = (0..self.columns.len()).map(align).collect();
        let titles: Vec<Cow<'_, str>> = self.columns.iter().map(|title| escape(title)).collect();
        let columns: Vec<Vec<&str>> = (0..titles.len())
            .map(|column| self.cells.iter().map(|row| row[column].text.as_str()).collect())
            .collect();
        let Some(shown) = fitted(&titles, &aligns, &columns, room) else {
            return write_records(out, &titles, &columns, room);
        };
        let header = self.columns.iter().zip(&aligns);
        let mut table =
            Table::titled(header.map(|(title, align)| (Cow::Owned(title.clone()), *align)).collect());
        for row in 0..self.rows {
            table.row(shown.iter().map(|column| column[row].to_string()).collect());
        }
        table.write(out, 0, None)
    }
}

/// A line per column and a blank one between two rows.
fn write_records(
    out: &mut impl Write,
    titles: &[Cow<'_, str>],
    columns: &[Vec<&str>],
    room: Option<usize>,
) -> io::Result<()> {
    let widest = titles.iter().map(|title| width(title)).max().unwrap_or(0);
    let left = room.map_or(usize::MAX, |room| room.saturating_sub(widest + 2).max(LEAST_TEXT));
    let columns: Vec<Vec<Cow<'_, str>>> = columns.iter().map(|cells| shorten_apart(cells, left)).collect();
    for row in 0..columns.first().map_or(0, Vec::len) {
        if row > 0 {
            writeln!(out)?;
        }
        for (title, cells) in titles.iter().zip(&columns) {
            let padding = " ".repeat(widest - width(title));
            writeln!(out, "{}", format!("{title}{padding}  {}", cells[row]).trim_end())?;
        }
    }
    Ok(())
}

const TEMPORARY: &str = "cannot keep the answer in a temporary file (TMPDIR names the directory)";

/// The cells of `columns`, whose texts are shortened so that the rows fit into `room`. None where they cannot.
fn fitted<'c>(
    titles: &[Cow<'_, str>],
    aligns: &[Align],
    columns: &[Vec<&'c str>],
    room: Option<usize>,
) -> Option<Vec<Vec<Cow<'c, str>>>> {
    let whole =
        |column: &[&'c str]| column.iter().map(|cell| Cow::Borrowed(*cell)).collect::<Vec<Cow<'c, str>>>();
    let taken = |title: &str, cells: &[Cow<'_, str>]| {
        cells.iter().map(|cell| width(cell)).max().unwrap_or(0).max(width(title))
    };
    let mut shown: Vec<Vec<Cow<'c, str>>> = columns.iter().map(|column| whole(column)).collect();
    let Some(room) = room else { return Some(shown) };
    let mut widths: Vec<usize> =
        titles.iter().zip(&shown).map(|(title, cells)| taken(title, cells)).collect();
    let gaps = 2 * titles.len().saturating_sub(1);
    // The widest text gives way first, down to the next one, then both.
    loop {
        let excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(room);
        if excess == 0 {
            return Some(shown);
        }
        let can_give = |column: &usize| {
            aligns[*column] == Align::Left && widths[*column] > LEAST_TEXT.max(width(&titles[*column]))
        };
        let mut texts: Vec<usize> = (0..widths.len()).filter(can_give).collect();
        texts.sort_by_key(|column| (std::cmp::Reverse(widths[*column]), *column));
        let widest = *texts.first()?;
        let next = texts.get(1).map_or(LEAST_TEXT, |column| widths[*column].saturating_sub(1));
        let least = next.max(LEAST_TEXT).max(width(&titles[widest])).min(widths[widest] - 1);
        let wanted = widths[widest].saturating_sub(excess).max(least);
        shown[widest] = shorten_apart(&columns[widest], wanted);
        let now = taken(&titles[widest], &shown[widest]);
        // Two texts that would become alike stay whole.
        if now >= widths[widest] {
            return None;
        }
        widths[widest] = now;
    }
}

impl Cell {
    fn of(value: ValueRef<'_>) -> Cell {
        let (text, is_number) = match value {
            ValueRef::Null => (String::new(), None),
            ValueRef::Integer(number) => (number.to_string(), Some(true)),
            ValueRef::Real(number) => (readable(number), Some(true)),
            ValueRef::Blob(bytes) => (shortened(bytes), Some(false)),
            text => (shorten(&escape(&in_words(text)), WIDEST).into_owned(), Some(false)),
        };
        Cell { text, is_number }
    }
}

/// A number as a reader wants it.
fn readable(number: f64) -> String {
    let is_short = (number * 1e3 - (number * 1e3).round()).abs() < 1e-6;
    match number.abs() {
        _ if !number.is_finite() => infinite(number).to_string(),
        0.0 => "0.000".to_string(),
        1e-3..0.1 if is_short => format!("{number:.3}"),
        0.1..1e15 => format!("{number:.3}"),
        1e-4..0.1 => format!("{number:.6}"),
        _ => format!("{number:.3e}"),
    }
}

/// Bytes as SQL writes them, in at most [`WIDEST`] columns: only those that are shown are written, as there may be a gigabyte.
fn shortened(bytes: &[u8]) -> String {
    const SIDE: usize = (WIDEST - "x'…'".len()) / 4;
    if bytes.len() <= 2 * SIDE {
        return hexadecimal(bytes);
    }
    let (head, tail) = (&bytes[..SIDE], &bytes[bytes.len() - SIDE..]);
    format!("x'{}…{}'", digits(head), digits(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        let shown = [0.0, 0.5, -1234.5678, 0.08, 0.0125, 3.2e-7, 1e300, f64::INFINITY].map(readable);
        assert_eq!(
            shown,
            ["0.000", "0.500", "-1234.568", "0.080", "0.012500", "3.200e-7", "1.000e300", "Inf"]
        );
    }

    #[test]
    fn the_widest_text_gives_way_first() {
        let (long, longer) = ("a".repeat(30), "b".repeat(60));
        let titles = ["x", "n", "y"].map(Cow::Borrowed);
        let aligns = [Align::Left, Align::Right, Align::Left];
        let columns = vec![vec![long.as_str()], vec!["123"], vec![longer.as_str()]];
        let widths = |room| {
            let shown = fitted(&titles, &aligns, &columns, room)?;
            Some(shown.iter().map(|column| width(&column[0])).collect::<Vec<_>>())
        };
        assert_eq!(widths(None), Some(vec![30, 3, 60]));
        assert_eq!(widths(Some(97)), Some(vec![30, 3, 60]));
        assert_eq!(widths(Some(80)), Some(vec![30, 3, 43]));
        let narrow = widths(Some(50)).unwrap();
        assert!(narrow.iter().sum::<usize>() <= 46 && narrow[0].abs_diff(narrow[2]) <= 2, "{narrow:?}");
        assert_eq!(widths(Some(30)), None);
    }
}
