//! `rpd blocks --roofline`: a line for each kernel, with how fast it computes and moves data.

mod chart;

use std::io::{self, Write};

use rpd_postprocess::report::blocks::{KernelBlocks, Peaks};
use rpd_postprocess::text::{counted, escape};

use self::chart::Point;
use crate::output;
use crate::output::note::note;
use crate::output::quantity;
use crate::output::table::{Align, Table};

/// A peak that the user knows: a number of 1e9 a second.
pub(super) fn peak(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "it is a number above 0, such as 1638.4, of 1e9 per second".into())
}

/// Columns of a line where the output is no terminal.
const WIDTH: usize = 80;

/// Writes the table, the kernel that took the most time first; at most `most` kernels, all for 0. With both peaks a chart is below it.
pub(super) fn write(
    out: &mut impl Write,
    kernels: &[KernelBlocks],
    peaks: &Peaks,
    most: usize,
) -> io::Result<()> {
    use Align::{Left, Right};
    let (has_roof, has_bound) =
        (peaks.gflops.or(peaks.gbytes).is_some(), peaks.gflops.and(peaks.gbytes).is_some());
    let columns = [
        ("", Left, has_bound),
        ("dispatches", Right, true),
        ("time", Right, true),
        ("of", Left, true),
        ("flop/byte", Right, true),
        ("GFLOP/s", Right, true),
        ("GB/s", Right, true),
        ("% roof", Right, has_roof),
        ("bound", Left, has_bound),
        ("kernel", Left, true),
    ];
    let columns: Vec<(&'static str, Align)> =
        columns.iter().filter(|(_, _, there)| *there).map(|(title, align, _)| (*title, *align)).collect();
    let mut placed: Vec<&KernelBlocks> = kernels.iter().filter(|kernel| kernel.roofline.is_some()).collect();
    let time = |kernel: &KernelBlocks| kernel.roofline.as_ref().map_or(0.0, |roofline| roofline.time_ns);
    placed.sort_by(|one, other| time(other).total_cmp(&time(one)));
    let mut table = Table::new(&columns).sparing(&["dispatches", "of"]);
    let shown = super::shown_of(placed.len(), most);
    let (mut points, mut letters) = (Vec::new(), chart::letters());
    for kernel in &placed[..shown] {
        let Some(roofline) = &kernel.roofline else { continue };
        let mut cells = Vec::new();
        if has_bound {
            // A logarithmic axis has no place for 0.
            let place = kernel.flops_per_byte.zip(Some(roofline.gflops_per_s));
            let place = place.filter(|(ratio, rate)| [ratio, rate].iter().all(|number| number.is_normal()));
            let letter = place.and_then(|place| letters.next().map(|letter| (letter, place)));
            cells.push(letter.map(|(letter, _)| letter.to_string()).unwrap_or_default());
            points.extend(letter.map(|(letter, (flops_per_byte, gflops))| Point {
                letter,
                flops_per_byte,
                gflops,
            }));
        }
        cells.extend([
            kernel.dispatches.to_string(),
            quantity::duration(roofline.time_ns / kernel.dispatches.max(1) as f64),
            roofline.time_of.to_string(),
            kernel.flops_per_byte.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            format!("{:.2}", roofline.gflops_per_s),
            format!("{:.2}", roofline.gbytes_per_s),
        ]);
        if has_roof {
            cells.push(roofline.roof_percent.map(|percent| format!("{percent:.1}")).unwrap_or_default());
        }
        if has_bound {
            cells.push(roofline.bound.unwrap_or_default().to_string());
        }
        cells.push(escape(&kernel.kernel).into_owned());
        table.row(cells);
    }
    if !table.is_empty() {
        table.write(out, 0, output::line_width())?;
    }
    if placed.len() > shown {
        let hidden = (placed.len() - shown) as u64;
        writeln!(out, "{}: -n 0 shows all", counted(hidden, "more kernel", "more kernels"))?;
    }
    if let (Some(gflops), Some(gbytes), false) = (peaks.gflops, peaks.gbytes, points.is_empty()) {
        writeln!(out)?;
        let width = output::line_width().unwrap_or(WIDTH);
        for line in chart::lines(&points, gflops, gbytes, width) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// Says which kernels are left out, and whose times are too long.
pub(super) fn say_what_is_missing(kernels: &[KernelBlocks]) {
    let left_out = kernels.iter().filter(|kernel| kernel.roofline.is_none()).count() as u64;
    if left_out > 0 {
        note(format_args!(
            "{} left out: the code object, the times of dispatches or the counts of these dispatches alone are not known",
            counted(left_out, "kernel is", "kernels are")
        ));
    }
    let own = kernels.iter().filter_map(|kernel| kernel.roofline.as_ref());
    let own = own.filter(|roofline| roofline.time_of == "counted").count() as u64;
    if own > 0 {
        note(format_args!(
            "{} only the times of counted dispatches, which are slower: rpd probe -d 1/10 leaves others uncounted",
            counted(own, "kernel has", "kernels have")
        ));
    }
}
