//! Aligned text for people: right-aligned numbers, left-aligned words, the last column taking what is left.

use std::io::{self, Write};

use crate::text;

/// Where a column's cells stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers, so that their digits line up.
    Right,
}

/// Columns narrower than this say nothing, so the last column keeps it even on a narrow terminal.
const LEAST_ROOM: usize = 16;
/// Blanks between two columns.
const GAP: &str = "  ";

/// Rows under a header line. Cells are plain text: they are escaped here, once, for the terminal.
pub(crate) struct Table {
    header: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these columns.
    pub(crate) fn new(header: &[(&'static str, Align)]) -> Table {
        Table { header: header.to_vec(), rows: Vec::new() }
    }

    /// Adds a row: one cell per column.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.header.len());
        self.rows.push(cells.iter().map(|cell| text::escape(cell).into_owned()).collect());
    }

    /// Whether there is nothing but the header.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes header and rows, indented by `indent` blanks, in at most `room` columns if given: the cells
    /// of the last column are shortened in the middle.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub(crate) fn write(&self, out: &mut impl Write, indent: usize, room: Option<usize>) -> io::Result<()> {
        let last = self.header.len().saturating_sub(1);
        let mut widths: Vec<usize> = self.header.iter().map(|(title, _)| text::width(title)).collect();
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                widths[column] = widths[column].max(text::width(cell));
            }
        }
        if let Some(room) = room {
            let before: usize = indent + widths[..last].iter().map(|width| width + GAP.len()).sum::<usize>();
            widths[last] = widths[last].min(room.saturating_sub(before).max(LEAST_ROOM));
        }
        let titles = self.header.iter().map(|(title, _)| *title);
        self.line(out, indent, &widths, titles)?;
        for row in &self.rows {
            self.line(out, indent, &widths, row.iter().map(String::as_str))?;
        }
        Ok(())
    }

    fn line<'a>(
        &self,
        out: &mut impl Write,
        indent: usize,
        widths: &[usize],
        cells: impl Iterator<Item = &'a str>,
    ) -> io::Result<()> {
        let mut line = " ".repeat(indent);
        for (column, cell) in cells.enumerate() {
            if column > 0 {
                line.push_str(GAP);
            }
            let cell = text::shorten(cell, widths[column]);
            let padding = " ".repeat(widths[column] - text::width(&cell));
            match self.header[column].1 {
                Align::Left => line.extend([cell.as_ref(), &padding]),
                Align::Right => line.extend([padding.as_str(), &cell]),
            }
        }
        writeln!(out, "{}", line.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(table: &Table, room: Option<usize>) -> String {
        let mut out = Vec::new();
        table.write(&mut out, 0, room).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_line_up_at_the_right() {
        let mut table = Table::new(&[("calls", Align::Right), ("name", Align::Left)]);
        table.row(vec!["7".into(), "a".into()]);
        table.row(vec!["123456".into(), "核".into()]);
        assert_eq!(written(&table, None), " calls  name\n     7  a\n123456  核\n");
    }

    #[test]
    fn no_line_is_wider_than_the_room() {
        let mut table = Table::new(&[("calls", Align::Right), ("name", Align::Left)]);
        table.row(vec!["7".into(), "核x".repeat(100)]);
        for room in [30, 31, 80] {
            for line in written(&table, Some(room)).lines() {
                assert!(text::width(line) <= room, "{room}: {line}");
            }
        }
    }

    #[test]
    fn cells_cannot_break_the_line() {
        let mut table = Table::new(&[("name", Align::Left)]);
        table.row(vec!["a\nb\x1b[31m".into()]);
        assert_eq!(written(&table, None), "name\na\\nb\\x1b[31m\n");
    }
}
