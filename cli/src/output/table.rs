//! Aligned text for people: right-aligned numbers, left-aligned words, the last column taking what is left.

use std::borrow::Cow;
use std::io::{self, Write};

use rpd_postprocess::text;

use super::width;

/// Where a column's cells stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers, so that their digits line up.
    Right,
}

/// Columns narrower than this say nothing, so the last column keeps it even on a narrow terminal.
const LEAST_ROOM: usize = 12;
/// Columns for whose sake columns that can be spared are left out: a name needs them.
const GOOD_ROOM: usize = 24;
/// Blanks between two columns.
const GAP: &str = "  ";

/// Rows under a header line. Cells are plain text: they are escaped here, once, for the terminal.
pub(crate) struct Table {
    header: Vec<(Cow<'static, str>, Align)>,
    rows: Vec<TableRow>,
    /// Columns that a narrow terminal does without, the first to go first.
    spare: Vec<&'static str>,
    /// How many columns at the end are put below the rows where they have no room: sentences, which are never shortened.
    folded: usize,
}

/// A row, and the lines below it.
struct TableRow {
    cells: Vec<String>,
    below: Vec<Below>,
}

/// What is below a row, further in.
#[derive(Clone)]
enum Below {
    /// A line, shortened where it has to be.
    Line(String),
    /// Sentences, on as many lines as they take.
    Prose(String),
}

impl TableRow {
    /// This row with its cells from `kept` on below it, in front of what is there.
    fn folded(&self, kept: usize) -> TableRow {
        let (cells, below) = self.cells.split_at(kept);
        let below: Vec<&str> = below.iter().map(String::as_str).filter(|cell| !cell.is_empty()).collect();
        let folded = Below::Prose(below.join(": "));
        TableRow { cells: cells.to_vec(), below: [&[folded], self.below.as_slice()].concat() }
    }
}

impl Table {
    /// An empty table with these columns.
    pub(crate) fn new(header: &[(&'static str, Align)]) -> Table {
        Table::titled(header.iter().map(|(title, align)| (Cow::Borrowed(*title), *align)).collect())
    }

    /// An empty table with columns whose titles come from a trace or its reader.
    pub(crate) fn titled(header: Vec<(Cow<'static, str>, Align)>) -> Table {
        let header = header.into_iter().map(|(title, align)| match text::escape(&title) {
            Cow::Borrowed(_) => (title, align),
            Cow::Owned(escaped) => (Cow::Owned(escaped), align),
        });
        Table { header: header.collect(), rows: Vec::new(), spare: Vec::new(), folded: 0 }
    }

    /// Names columns that a narrow terminal does without, the first one first; not the last column. A name that the table lacks changes nothing.
    pub(crate) fn sparing(mut self, columns: &[&'static str]) -> Table {
        self.spare = columns.to_vec();
        self
    }

    /// Says that the last `columns` are sentences, and what belongs in front of them: where they have no room beside the others they
    /// are below them, whole.
    pub(crate) fn folding(mut self, columns: usize) -> Table {
        debug_assert!(columns < self.header.len());
        self.folded = columns;
        self
    }

    /// Adds a row: one cell per column.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.header.len());
        self.rows.push(TableRow {
            cells: cells.iter().map(|cell| text::escape(cell).into_owned()).collect(),
            below: Vec::new(),
        });
    }

    /// Puts a line below the last row and what is there, further in: a text that would leave no room to the columns.
    pub(crate) fn below(&mut self, line: &str) {
        if let Some(row) = self.rows.last_mut() {
            row.below.push(Below::Line(text::escape(line).into_owned()));
        }
    }

    /// Puts sentences below the last row, further in, whole.
    pub(crate) fn below_prose(&mut self, prose: &str) {
        if let Some(row) = self.rows.last_mut() {
            row.below.push(Below::Prose(text::escape(prose).into_owned()));
        }
    }

    /// Whether there is nothing but the header.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes header and rows, indented by `indent` blanks, in at most `room` columns if given: columns that can be spared are
    /// left out, then the cells of the last column are shortened in the middle. Sentences are put below their rows before that.
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
        let whole = indent + widths.iter().sum::<usize>() + GAP.len() * last;
        if self.folded > 0 && room.is_some_and(|room| whole > room) {
            return self.fold().write(out, indent, room);
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
            last_cells = width::shorten_apart(&cells, left);
        }
        let line =
            |out: &mut _, cell: &dyn Fn(usize) -> String| self.line(out, indent, &widths, &shown, cell);
        line(out, &|column| self.header[column].0.to_string())?;
        for (row, last_cell) in self.rows.iter().zip(&last_cells) {
            line(out, &|column| {
                if column == last { last_cell.to_string() } else { row.cells[column].clone() }
            })?;
            for below in &row.below {
                let indent = 2 * indent + GAP.len();
                let room = room.map(|room| room.saturating_sub(indent).max(LEAST_ROOM));
                let lines = match (below, room) {
                    (Below::Line(line), Some(room)) => vec![text::shorten(line, room)],
                    (Below::Prose(prose), Some(room)) => width::wrap(prose, room),
                    (Below::Line(text) | Below::Prose(text), None) => vec![Cow::Borrowed(text.as_str())],
                };
                for line in lines {
                    writeln!(out, "{}{line}", " ".repeat(indent))?;
                }
            }
        }
        Ok(())
    }

    /// This table without the columns at its end that are put below the rows.
    fn fold(&self) -> Table {
        let kept = self.header.len() - self.folded;
        let mut table = Table::titled(self.header[..kept].to_vec());
        table.rows = self.rows.iter().map(|row| row.folded(kept)).collect();
        table
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
    fn sentences_are_whole_and_below_where_they_have_no_room() {
        let mut table = Table::new(&[("pass", Align::Left), ("what it does", Align::Left)]).folding(1);
        table.row(vec!["graph".into(), "Finds the launches of graphs".into()]);
        let beside = "pass   what it does\ngraph  Finds the launches of graphs\n";
        assert_eq!(written(&table, None), beside);
        assert_eq!(written(&table, Some(35)), beside);
        assert_eq!(written(&table, Some(34)), "pass\ngraph\n  Finds the launches of graphs\n");
        assert_eq!(written(&table, Some(20)), "pass\ngraph\n  Finds the launches\n  of graphs\n");
    }

    #[test]
    fn cells_cannot_break_the_line() {
        let mut table = Table::new(&[("name", Align::Left)]);
        table.row(vec!["a\nb\x1b[31m".into()]);
        assert_eq!(written(&table, None), "name\na\\nb\\x1b[31m\n");
    }
}
