//! The speed of the clocks of the GPUs: the first suspect where everything is slower.

use std::collections::BTreeMap;

use anyhow::Result;
use rpd_schema::text::text_of;
use serde::Serialize;

use super::source::ComparedTrace;
use crate::check::rule::are_sound;
use crate::trace::has_table;

/// A clock of one GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Clock {
    /// As the trace calls it: `sclk`.
    pub clock: String,
    /// The GPU, `deviceId` of the sensor.
    pub gpu: i64,
    /// Its median over time in A, in the unit of the trace; none where A does not say it.
    pub a: Option<f64>,
    /// The same in B.
    pub b: Option<f64>,
}

/// A time by value: for how long a sensor had it, ns.
type Times = BTreeMap<u64, u128>;

/// The clocks of all files.
///
/// # Errors
/// When a trace cannot be read.
pub(super) fn clocks(sources: &[ComparedTrace<'_>]) -> Result<Vec<Clock>> {
    let mut found: BTreeMap<(String, i64), [Times; 2]> = BTreeMap::new();
    for source in sources {
        if !has_table(source.trace, "rocpd_monitor")? {
            continue;
        }
        let query = r#"SELECT monitorType, deviceId, start, rocpd_monitor."end", value FROM rocpd_monitor
                       WHERE monitorType LIKE '%clk%' AND deviceType = 'gpu'"#;
        let mut rows = source.trace.prepare(query)?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let number = |column| row.get_ref(column).map(|value| value.as_i64().ok());
            let (Some(gpu), Some(start), Some(end)) = (number(1)?, number(2)?, number(3)?) else { continue };
            let Some(value) = leading_number(&text(row, 4)?) else { continue };
            let in_region = source.selected.of_run(Some(gpu), (start, end));
            if let Some((start, end)) = in_region.filter(|run| are_sound(*run)) {
                let sides = found.entry((text(row, 0)?, gpu)).or_default();
                // Positive numbers are in the order of their bits.
                *sides[source.side].entry(value.to_bits()).or_default() += u128::from(end.abs_diff(start));
            }
        }
    }
    let clock = |((clock, gpu), [a, b]): ((String, i64), [Times; 2])| Clock {
        clock,
        gpu,
        a: median(&a),
        b: median(&b),
    };
    Ok(found.into_iter().map(clock).collect())
}

/// A cell as text, whatever it is.
fn text(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(text_of(row.get_ref(column)?).into_owned())
}

/// `1700` of `1700Mhz`; none of what is no clock.
fn leading_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].parse().ok().filter(|value: &f64| value.is_finite())
}

fn median(times: &Times) -> Option<f64> {
    let all: u128 = times.values().sum();
    let mut before = 0;
    let middle = times.iter().find(|(_, time)| {
        before += **time;
        2 * before >= all
    });
    middle.map(|(bits, _)| f64::from_bits(*bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_that_of_time() {
        let times: Times =
            [(800.0_f64, 10), (1700.0, 30), (2100.0, 15)].map(|(value, time)| (value.to_bits(), time)).into();
        assert_eq!(median(&times), Some(1700.0));
        assert_eq!(median(&Times::new()), None);
        assert_eq!(
            ["1700", " 1700.5Mhz", "Mhz", "", "-5"].map(leading_number),
            [Some(1700.0), Some(1700.5), None, None, None]
        );
    }
}
