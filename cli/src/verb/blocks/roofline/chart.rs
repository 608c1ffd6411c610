//! A roofline as a chart of characters. Both axes are logarithmic: arithmetic intensity to the right, floating-point operations per second upwards.

/// Rows of the chart, above its axis.
const ROWS: usize = 14;
/// Columns that the numbers of the upward axis take, with the line beside them.
const MARGIN: usize = 10;
/// The fewest and the most columns of the chart itself.
const COLUMNS: (usize, usize) = (24, 90);
/// Kernels beyond these have no letter.
const LETTERS: std::ops::RangeInclusive<char> = 'a'..='z';

/// A kernel in the chart.
pub(super) struct Point {
    pub(super) letter: char,
    /// Floating-point operations per byte, above 0.
    pub(super) flops_per_byte: f64,
    /// 1e9 of them per second, above 0.
    pub(super) gflops: f64,
}

/// The letters of kernels that are in the chart, in the order of the table.
pub(super) fn letters() -> impl Iterator<Item = char> {
    LETTERS
}

/// A logarithmic axis, from a power of ten to another.
struct Axis {
    low: i32,
    high: i32,
    cells: usize,
}

impl Axis {
    /// From the power of ten below the least of these numbers, all above 0, to that above the greatest.
    fn new(numbers: &[f64], cells: usize) -> Axis {
        let powers = || numbers.iter().map(|number| number.log10().clamp(-300.0, 300.0));
        let low = powers().fold(f64::INFINITY, f64::min).floor() as i32;
        let high = powers().fold(f64::NEG_INFINITY, f64::max).ceil() as i32;
        Axis { low, high: high.max(low + 1), cells }
    }

    fn decades(&self) -> f64 {
        f64::from(self.high - self.low)
    }

    /// The cell of a number.
    fn cell(&self, number: f64) -> usize {
        let share = (number.log10() - f64::from(self.low)) / self.decades();
        (share.clamp(0.0, 1.0) * (self.cells - 1) as f64).round() as usize
    }

    /// The number in the middle of a cell.
    fn number(&self, cell: usize) -> f64 {
        10f64.powf(f64::from(self.low) + self.decades() * cell as f64 / (self.cells - 1) as f64)
    }

    /// Powers of ten with a cell each, so few that `room` cells are left for each of them.
    fn ticks(&self, room: usize) -> impl Iterator<Item = (usize, String)> {
        let most = (self.cells / room).max(1) as i32;
        let step = (self.high - self.low + most - 1) / most;
        (self.low..=self.high).step_by(step.max(1) as usize).map(|power| {
            let text = match power {
                -3..=5 => format!("{}", 10f64.powi(power)),
                _ => format!("1e{power}"),
            };
            (self.cell(10f64.powi(power)), text)
        })
    }
}

/// The kernels under the roof that these peaks (1e9 per second) make, in lines of at most `width` columns, or of the fewest that a chart needs.
pub(super) fn lines(points: &[Point], gflops: f64, gbytes: f64, width: usize) -> Vec<String> {
    let ridge = gflops / gbytes;
    let columns = width.saturating_sub(MARGIN).clamp(COLUMNS.0, COLUMNS.1);
    let intensities = points.iter().map(|point| point.flops_per_byte);
    let across = Axis::new(&intensities.chain([ridge / 3.0, ridge * 3.0]).collect::<Vec<_>>(), columns);
    let rates = points.iter().map(|point| point.gflops);
    let up = Axis::new(&rates.chain([gflops, gflops / 9.0]).collect::<Vec<_>>(), ROWS);
    let mut cells = vec![vec![' '; columns]; ROWS];
    // What is below the lowest number of the upward axis is not in the chart.
    let by_memory = (0..columns).map(|column| gbytes * across.number(column)).enumerate();
    for (column, by_memory) in by_memory.filter(|(_, rate)| rate.min(gflops) >= 10f64.powi(up.low)) {
        cells[up.cell(by_memory.min(gflops))][column] = if by_memory < gflops { '/' } else { '-' };
    }
    // The first of the table is in front.
    for point in points.iter().rev() {
        cells[up.cell(point.gflops)][across.cell(point.flops_per_byte)] = point.letter;
    }
    let mut numbers = vec![String::new(); ROWS];
    for (row, text) in up.ticks(2) {
        numbers[row] = text;
    }
    let mut lines = vec![format!("{:>1$}", "GFLOP/s", MARGIN - 2)];
    for (number, row) in numbers.iter().zip(&cells).rev() {
        let row: String = row.iter().collect();
        lines.push(format!("{number:>0$} |{row}", MARGIN - 2).trim_end().to_string());
    }
    lines.push(format!("{:>1$}{2}", "+", MARGIN, "-".repeat(columns)));
    let mut below = String::new();
    for (column, text) in across.ticks(8) {
        let begin = (MARGIN + column).saturating_sub(text.len() / 2).min(MARGIN + columns - text.len());
        below.push_str(&" ".repeat(begin.saturating_sub(below.len())));
        below.push_str(&text);
    }
    lines.push(below);
    lines.push(format!("{:>1$}", "flop/byte", MARGIN + columns));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(letter: char, flops_per_byte: f64, gflops: f64) -> Point {
        Point { letter, flops_per_byte, gflops }
    }

    /// Row, from the bottom, and column of a letter.
    fn place(lines: &[String], letter: char) -> Option<(usize, usize)> {
        let rows = lines[1..=ROWS].iter().rev().enumerate();
        rows.into_iter().find_map(|(row, line)| line.find(letter).map(|column| (row, column)))
    }

    #[test]
    fn kernels_lie_below_the_roof_as_far_as_they_are_slower() {
        // The ridge is at 10 flop/byte.
        let points =
            [point('a', 1.0, 100.0), point('b', 100.0, 1000.0), point('c', 1.0, 1.0), point('d', 1.0, 1.0)];
        let lines = lines(&points, 1000.0, 100.0, 80);
        let at = |letter| place(&lines, letter).unwrap();
        assert_eq!(at('a').1, at('c').1, "the same intensity");
        assert!(at('a').0 > at('c').0 && at('b').0 == ROWS - 1 && at('c').0 == 0, "{lines:#?}");
        assert_eq!(place(&lines, 'd'), None, "behind the one that is first in the table");
        // A kernel that reaches the roof is a part of it.
        let roof = &lines[1 + (ROWS - 1 - at('a').0)];
        assert!(roof.contains("/a") || roof.contains("a/") || roof.ends_with('a'), "{lines:#?}");
        assert!(lines[1].trim_start().starts_with("1000 |") && lines[1].contains("--"), "{lines:#?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80 && line.trim_end() == line), "{lines:#?}");
        assert!(lines[ROWS + 2].contains(" 1 ") && lines[ROWS + 2].contains(" 10 "), "{lines:#?}");
    }

    #[test]
    fn numbers_of_any_size_have_a_place() {
        for (gflops, gbytes) in [(1e-9, 1e9), (1e300, 1e-300), (1.0, 1.0), (f64::MAX, f64::MIN_POSITIVE)] {
            let points =
                [point('a', 1e-12, 1e-12), point('b', 1e12, 1e15), point('c', f64::MAX, f64::MIN_POSITIVE)];
            for width in [0, 40, 80, 300] {
                let lines = lines(&points, gflops, gbytes, width);
                assert_eq!(lines.len(), ROWS + 4);
                assert!(lines.iter().all(|line| line.chars().count() <= MARGIN + COLUMNS.1), "{lines:#?}");
            }
        }
    }
}
