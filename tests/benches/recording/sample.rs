//! The numbers of all runs: a value per section, case, variant, measure and run.

use std::fmt::Write;

/// What one value is of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Of {
    section: &'static str,
    case: String,
    variant: &'static str,
    measure: &'static str,
}

/// Every value that was measured, in the order in which it was.
#[derive(Default)]
pub(crate) struct Samples(Vec<(Of, f64)>);

/// Median, least and most of some runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    least: f64,
    most: f64,
}

impl Samples {
    pub(crate) fn add(
        &mut self,
        section: &'static str,
        case: &str,
        variant: &'static str,
        measure: &'static str,
        value: f64,
    ) {
        self.0.push((Of { section, case: case.to_string(), variant, measure }, value));
    }

    /// Of the runs of one variant.
    pub(crate) fn spread(&self, section: &str, case: &str, variant: &str, measure: &str) -> Spread {
        Spread::of(self.values(section, case, variant, measure))
    }

    /// Of the ratios of neighbouring runs: what slows down both does not show.
    pub(crate) fn ratio(
        &self,
        section: &str,
        case: &str,
        (variant, measure): (&str, &str),
        (other, other_measure): (&str, &str),
    ) -> Spread {
        let values = self.values(section, case, variant, measure);
        let others = self.values(section, case, other, other_measure);
        Spread::of(values.into_iter().zip(others).map(|(value, other)| value / other).collect())
    }

    fn values(&self, section: &str, case: &str, variant: &str, measure: &str) -> Vec<f64> {
        let is_it = |of: &Of| {
            of.section == section && of.case == case && of.variant == variant && of.measure == measure
        };
        let values: Vec<f64> = self.0.iter().filter(|(of, _)| is_it(of)).map(|(_, value)| *value).collect();
        assert!(!values.is_empty(), "nothing measured: {section}, {case}, {variant}, {measure}");
        values
    }

    /// All of them, one line each.
    pub(crate) fn tab_separated(&self) -> String {
        let mut text = String::from("section\tcase\tvariant\tmeasure\tvalue\n");
        for (Of { section, case, variant, measure }, value) in &self.0 {
            writeln!(text, "{section}\t{case}\t{variant}\t{measure}\t{value:.3}").unwrap();
        }
        text
    }
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        Spread { median: values[values.len() / 2], least: values[0], most: values[values.len() - 1] }
    }

    /// `median (least..most)` of each value times `scale`, with `digits` behind the point.
    pub(crate) fn show(&self, scale: f64, digits: usize) -> String {
        let Spread { median, least, most } = self;
        format!("{:.digits$} ({:.digits$}..{:.digits$})", median * scale, least * scale, most * scale)
    }

    /// A ratio.
    pub(crate) fn times(&self) -> String {
        self.show(1.0, 2)
    }
}

/// Prints a table as Markdown, columns aligned.
pub(crate) fn print_table(title: &str, columns: &[&str], rows: &[Vec<String>]) {
    let width = |place: usize| {
        let cells = rows.iter().map(|row| row[place].len());
        cells.chain([columns[place].len()]).max().unwrap_or_default()
    };
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<_> =
            cells.enumerate().map(|(place, cell)| format!("{cell:<0$}", width(place))).collect();
        println!("| {} |", cells.join(" | "));
    };
    println!("\n### {title}\n");
    line(&mut columns.iter().copied());
    println!("|{}", "---|".repeat(columns.len()));
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
}
