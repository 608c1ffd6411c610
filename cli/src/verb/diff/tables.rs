//! The comparison for people: totals, groups of iterations, and what changed.

use std::borrow::Cow;
use std::io::{self, Write};

use rpd_postprocess::report::diff::{
    BLOCKS, ChangeVerdict, Clock, Diff, DiffRow, RowModes, Sampled, UnitKind,
};
use rpd_postprocess::text::{self, counted};

use super::Shown;
use crate::output::quantity::duration;
use crate::output::table::{Align, Table};
use crate::output::width::{shorten_apart, wrap};

/// Groups of iterations that are shown.
const GROUPS: usize = 10;

/// Clocks that differ by less, in percent, are not shown.
const CLOCK: f64 = 1.0;

/// Columns in front of what is below a row.
const INDENT: usize = 2;

/// Writes everything.
///
/// # Errors
/// When `out` cannot be written.
pub(super) fn write(out: &mut impl Write, shown: &Shown<'_>, room: Option<usize>) -> io::Result<()> {
    for (side, files) in ["A", "B"].iter().zip(&shown.files) {
        for file in files {
            writeln!(out, "{side}  {file}")?;
        }
    }
    prose(out, &sample(shown.found), room)?;
    for clock in clocks(shown.found) {
        prose(out, &clock, room)?;
    }
    if shown.found.groups.len() > 1 {
        writeln!(out)?;
        groups(shown.found).write(out, 0, room)?;
        if let Some(hidden) = shown.found.groups.len().checked_sub(GROUPS).filter(|hidden| *hidden > 0) {
            prose(
                out,
                &format!("... and {} of fewer iterations", counted(hidden as u64, "group", "groups")),
                room,
            )?;
        }
    }
    let (totals, rows) = parted(shown);
    if !totals.is_empty() {
        writeln!(out)?;
        table(shown.found, &totals, true, None).write(out, 0, room)?;
    }
    let first = &rows[..rows.len().min(shown.most)];
    if !first.is_empty() {
        writeln!(out)?;
        table(shown.found, first, false, room).write(out, 0, room)?;
    }
    writeln!(out)?;
    if let Some(hidden) = rows.len().checked_sub(first.len()).filter(|hidden| *hidden > 0) {
        prose(
            out,
            &format!("... and {}; -n N shows more", counted(hidden as u64, "other row", "other rows")),
            room,
        )?;
    }
    prose(out, &summary(shown), room)
}

fn prose(out: &mut impl Write, text: &str, room: Option<usize>) -> io::Result<()> {
    match room {
        Some(room) => wrap(text, room).iter().try_for_each(|line| writeln!(out, "{line}")),
        None => writeln!(out, "{text}"),
    }
}

/// Totals, and the other rows that are shown.
pub(super) fn parted<'a>(shown: &Shown<'a>) -> (Vec<&'a DiffRow>, Vec<&'a DiffRow>) {
    let (totals, rows): (Vec<&DiffRow>, Vec<&DiffRow>) =
        shown.found.rows.iter().partition(|row| row.kind == UnitKind::Total);
    let is_summary = |row: &&DiffRow| {
        shown.all || row.group.parse().is_ok_and(|group: usize| group <= GROUPS) || row.group == "run"
    };
    let totals = totals.into_iter().filter(is_summary).collect();
    (totals, rows.into_iter().filter(|row| shown.all || is_shown(row, shown.least_percent)).collect())
}

/// Whether a row is a change, or would be one if there were more values.
fn is_shown(row: &DiffRow, least_percent: f64) -> bool {
    match row.result {
        ChangeVerdict::Slower | ChangeVerdict::Faster => true,
        ChangeVerdict::New | ChangeVerdict::Gone => row.counts,
        ChangeVerdict::NoChangeShown => false,
        ChangeVerdict::TooFew => {
            row.counts && row.change_percent.is_none_or(|percent| percent.abs() >= least_percent)
        }
    }
}

/// What a value is of.
pub(super) fn sample(found: &Diff) -> String {
    let marker = found.iteration.as_deref().map(|marker| format!("the marker \"{}\"", text::escape(marker)));
    let counts = |[a, b]: [usize; 2]| format!("{a} in A, {b} in B");
    let count =
        found.groups.iter().fold([0, 0], |[a, b], group| [a + group.a_iterations, b + group.b_iterations]);
    match (found.sampled, marker) {
        (Sampled::Iterations, Some(marker)) => {
            format!("A value is what an iteration takes: {marker}, {}", counts(count))
        }
        (Sampled::Runs, Some(marker)) => {
            format!("A value is the median of the iterations of a run: {marker}, {}", counts(count))
        }
        (Sampled::Runs, None) => "A value is the duration in a run".to_string(),
        _ => format!(
            "No marker repeats, so each run is cut into {BLOCKS} blocks: a value is the mean duration in one"
        ),
    }
}

/// Clocks that differ.
pub(super) fn clocks(found: &Diff) -> Vec<String> {
    let line = |clock: &Clock| {
        let (a, b) = (clock.a?, clock.b?);
        let percent = if a > 0.0 { 100.0 * (b - a) / a } else { 0.0 };
        let name = text::escape(&clock.clock);
        (percent.abs() >= CLOCK)
            .then(|| format!("Clock {name} of sensor {}: {a} in A, {b} in B ({percent:+.1} %)", clock.gpu))
    };
    found.clocks.iter().filter_map(line).collect()
}

fn groups(found: &Diff) -> Table {
    use Align::Right;
    let mut table = Table::new(&[
        ("group", Right),
        ("iterations of A", Right),
        ("of B", Right),
        ("kernels of each", Right),
    ]);
    for group in found.groups.iter().take(GROUPS) {
        table.row(vec![
            group.group.clone(),
            group.a_iterations.to_string(),
            group.b_iterations.to_string(),
            group.kernels.to_string(),
        ]);
    }
    table
}

/// The rows; their names are below them where a line has a width, `room`.
fn table(found: &Diff, rows: &[&DiffRow], is_total: bool, room: Option<usize>) -> Table {
    use Align::{Left, Right};
    let has_groups = is_total || found.groups.len() > 1 || rows.iter().any(|row| row.group == "outside");
    let mut columns = vec![
        ("A", Right),
        ("B", Right),
        ("change", Right),
        ("%", Right),
        ("95 % interval", Right),
        ("effect", Right),
        ("q", Right),
        ("delta", Right),
        ("values", Right),
        ("result", Left),
        ("group", Left),
        ("what", Left),
    ];
    if is_total {
        columns.retain(|(title, _)| *title != "effect");
    }
    if !has_groups {
        columns.retain(|(title, _)| *title != "group");
    }
    let spare = ["delta", "q", "values", "effect", "95 % interval", "change", "group"];
    let mut table = Table::new(&columns).sparing(&spare);
    let names: Vec<Cow<'_, str>> = rows.iter().map(|row| text::escape(&row.name)).collect();
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let names = room.map(|room| shorten_apart(&names, room.saturating_sub(INDENT)));
    for (at, row) in rows.iter().enumerate() {
        let cells = columns
            .iter()
            .map(|(title, _)| {
                if *title == "what" && room.is_some() {
                    row.kind.name().to_string()
                } else {
                    cell(row, title)
                }
            })
            .collect();
        table.row(cells);
        names.iter().for_each(|names| table.below(&names[at]));
        below(row).iter().for_each(|line| table.below_prose(line));
    }
    table
}

fn cell(row: &DiffRow, column: &str) -> String {
    let of_side = |side: usize| {
        let is_missing = row.result == [ChangeVerdict::New, ChangeVerdict::Gone][side];
        if is_missing { String::new() } else { duration([row.a_ns, row.b_ns][side]) }
    };
    match column {
        "A" => of_side(0),
        "B" => of_side(1),
        "change" => signed(row.change_ns),
        "%" => row.change_percent.map(|percent| format!("{percent:+.1}")).unwrap_or_default(),
        "95 % interval" => interval(row),
        "effect" => signed(row.effect_ns),
        "q" => row.q.map(share).unwrap_or_default(),
        "delta" => row.delta.map(|delta| format!("{delta:+.2}")).unwrap_or_default(),
        "values" => format!("{}, {}", row.a_samples, row.b_samples),
        "result" => result(row).to_string(),
        "group" => row.group.clone(),
        _ if row.kind == UnitKind::Total => row.name.clone(),
        _ => format!("{} {}", row.kind.name(), row.name),
    }
}

/// A time with its sign.
pub(super) fn signed(ns: f64) -> String {
    if ns < 0.0 { duration(ns) } else { format!("+{}", duration(ns)) }
}

pub(super) fn interval(row: &DiffRow) -> String {
    match (row.low_percent, row.high_percent) {
        (Some(low), Some(high)) => format!("{low:+.1} to {high:+.1}"),
        _ => String::new(),
    }
}

/// A probability.
fn share(q: f64) -> String {
    if q < 0.000_5 { format!("{q:.0e}") } else { format!("{q:.3}") }
}

/// The word for what is said of a row.
pub(super) fn result(row: &DiffRow) -> &'static str {
    match row.result {
        ChangeVerdict::Slower if is_amount(row) => "more",
        ChangeVerdict::Faster if is_amount(row) => "less",
        ChangeVerdict::Slower => "slower",
        ChangeVerdict::Faster => "faster",
        ChangeVerdict::New => "new",
        ChangeVerdict::Gone => "gone",
        ChangeVerdict::NoChangeShown => "no change shown",
        ChangeVerdict::TooFew => "too few",
    }
}

/// Whether more of it is not slower.
fn is_amount(row: &DiffRow) -> bool {
    row.kind == UnitKind::Total && row.name != "wall"
}

/// What else there is to say of a row.
pub(super) fn below(row: &DiffRow) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(name) = &row.replaced_by {
        lines.push(format!("replaced by {name}"));
    }
    let calls = |calls: f64| {
        let text = format!("{calls:.1}");
        text.strip_suffix(".0").map(str::to_string).unwrap_or(text)
    };
    let (a, b) = (calls(row.a_calls), calls(row.b_calls));
    let is_compared =
        !matches!(row.result, ChangeVerdict::New | ChangeVerdict::Gone) && row.kind != UnitKind::Total;
    if is_compared && a != b {
        lines.push(format!("{a} times in A, {b} in B"));
    }
    let modes = |modes: &RowModes| {
        let RowModes { lower_ns, upper_ns, upper_percent } = modes;
        format!("{} and {} ({upper_percent:.0} % of launches)", duration(*lower_ns), duration(*upper_ns))
    };
    let one = || "one".to_string();
    let [a, b] = [&row.a_modes, &row.b_modes].map(|found| found.as_ref().map(modes));
    if a.is_some() || b.is_some() {
        lines.push(format!(
            "modes of single launches: {} in A, {} in B",
            a.unwrap_or_else(one),
            b.unwrap_or_else(one)
        ));
    }
    lines
}

/// What was found, in words.
pub(super) fn summary(shown: &Shown<'_>) -> String {
    let rows = shown.found.rows.iter().filter(|row| row.kind != UnitKind::Total);
    let count = |wanted: ChangeVerdict, counts: bool| {
        rows.clone().filter(|row| row.result == wanted && (row.counts || !counts)).count()
    };
    let too_few = count(ChangeVerdict::TooFew, false);
    let mut text = format!(
        "{} slower, {} faster, {} new, {} gone; {} without a change that is sure",
        count(ChangeVerdict::Slower, false),
        count(ChangeVerdict::Faster, false),
        count(ChangeVerdict::New, true),
        count(ChangeVerdict::Gone, true),
        count(ChangeVerdict::NoChangeShown, false)
    );
    if too_few > 0 {
        text += &format!("; {} with less than {} values on a side: too few to tell", too_few, shown.least);
    }
    text.push('.');
    if shown.found.sampled != Sampled::Runs {
        text += " Of one run on a side, this knows what differs within a run, not from run to run: give several (--a, --b).";
    }
    text
}
