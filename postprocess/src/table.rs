//! Aligned text for people: right-aligned numbers, left-aligned words, the last column taking what is left.

use std::borrow::Cow;
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
/// Columns for whose sake columns that can be spared are left out: a name needs them.
const GOOD_ROOM: usize = 24;
/// Blanks between two columns.
const GAP: &str = "  ";

/// Rows under a header line. Cells are plain text: they are escaped here, once, for the terminal.
pub(crate) struct Table {
    header: Vec<(&'static str, Align)>,
    rows: Vec<Row>,
    /// Columns that a narrow terminal does without, the first to go first.
    spare: Vec<&'static str>,
}

/// A row, and a line of its own below it if it has one.
struct Row {
    cells: Vec<String>,
    below: Option<String>,
}

impl Table {
    /// An empty table with these columns.
    pub(crate) fn new(header: &[(&'static str, Align)]) -> Table {
        Table { header: header.to_vec(), rows: Vec::new(), spare: Vec::new() }
    }

    /// Lets a narrow terminal do without these columns, the first one first. The last column is none of them.
    pub(crate) fn sparing(mut self, columns: &[&'static str]) -> Table {
        debug_assert!(columns.iter().all(|column| self.header.iter().any(|(title, _)| title == column)));
        self.spare = columns.to_vec();
        self
    }

    /// Adds a row: one cell per column.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.header.len());
        self.rows.push(Row {
            cells: cells.iter().map(|cell| text::escape(cell).into_owned()).collect(),
            below: None,
        });
    }

    /// Puts a line below the last row, further in: a text that would leave no room to the columns.
    pub(crate) fn below(&mut self, line: &str) {
        if let Some(row) = self.rows.last_mut() {
            row.below = Some(text::escape(line).into_owned());
        }
    }

    /// Whether there is nothing but the header.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes header and rows, indented by `indent` blanks, in at most `room` columns if given: columns that can be spared are
    /// left out, then the cells of the last column are shortened in the middle.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub(crate) fn write(&self, out: &mut impl Write, indent: usize, room: Option<usize>) -> io::Result<()> {
        let last = self.header.len().saturating_sub(1);
        let mut widths: Vec<usize> = self.header.iter().map(|(title, _)| text::width(title)).collect();
        for row in &self.rows {
            for (column, cell) in row.cells.iter().enumerate() {
                widths[column] = widths[column].max(text::width(cell));
            }
        }
        let mut shown: Vec<usize> = (0..self.header.len()).collect();
        let mut last_cells: Vec<Cow<'_, str>> =
            self.rows.iter().map(|row| Cow::Borrowed(row.cells[last].as_str())).collect();
        if let Some(room) = room {
            let before = |shown: &[usize]| -> usize {
                let widths =
                    shown.iter().filter(|column| **column != last).map(|column| widths[*column] + GAP.len());
                indent + widths.sum::<usize>()
            };
            let wanted = widths[last].min(GOOD_ROOM);
            let mut spare = self.spare.iter();
            while before(&shown) + wanted > room
                && let Some(spared) = spare.next()
            {
                shown.retain(|column| self.header[*column].0 != *spared);
            }
            let left = widths[last].min(room.saturating_sub(before(&shown)).max(LEAST_ROOM));
            widths[last] = left;
            let cells: Vec<&str> = self.rows.iter().map(|row| row.cells[last].as_str()).collect();
            last_cells = text::shorten_apart(&cells, left);
        }
        let line =
            |out: &mut _, cell: &dyn Fn(usize) -> String| self.line(out, indent, &widths, &shown, cell);
        line(out, &|column| self.header[column].0.to_string())?;
        for (row, last_cell) in self.rows.iter().zip(&last_cells) {
            line(out, &|column| {
                if column == last { last_cell.to_string() } else { row.cells[column].clone() }
            })?;
            if let Some(below) = &row.below {
                let indent = 2 * indent + GAP.len();
                let below = match room {
                    Some(room) => text::shorten(below, room.saturating_sub(indent).max(LEAST_ROOM)),
                    None => Cow::Borrowed(below.as_str()),
                };
                writeln!(out, "{}{below}", " ".repeat(indent))?;
            }
        }
        Ok(())
    }

    fn line(
        &self,
        out: &mut impl Write,
        indent: usize,
        widths: &[usize],
        shown: &[usize],
        cell: &dyn Fn(usize) -> String,
    ) -> io::Result<()> {
        let mut line = " ".repeat(indent);
        for (place, &column) in shown.iter().enumerate() {
            if place > 0 {
                line.push_str(GAP);
            }
            let cell = cell(column);
            let padding = " ".repeat(widths[column].saturating_sub(text::width(&cell)));
            match self.header[column].1 {
                Align::Left => line.extend([cell.as_str(), padding.as_str()]),
                Align::Right => line.extend([padding.as_str(), cell.as_str()]),
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
    fn a_narrow_terminal_spares_columns_before_names() {
        let mut table = Table::new(&[
            ("calls", Align::Right),
            ("min", Align::Right),
            ("max", Align::Right),
            ("name", Align::Left),
        ])
        .sparing(&["max", "min"]);
        table.row(vec!["7".into(), "100.0 us".into(), "200.0 us".into(), "kernel".repeat(9)]);
        table.below("a line of its own");
        let header = |room| written(&table, Some(room)).lines().next().unwrap().split_whitespace().count();
        assert_eq!([header(80), header(48), header(40), header(20)], [4, 3, 2, 2]);
        assert_eq!(written(&table, None).lines().last(), Some("  a line of its own"));
    }

    #[test]
    fn cells_cannot_break_the_line() {
        let mut table = Table::new(&[("name", Align::Left)]);
        table.row(vec!["a\nb\x1b[31m".into()]);
        assert_eq!(written(&table, None), "name\na\\nb\\x1b[31m\n");
    }
}
