//! Times and sizes as a reader wants them: four significant digits of the unit that fits, unit included. Joules are in joules, without it.

/// A duration of `ns` nanoseconds: `834 ns`, `6.302 us`, `157.2 ms`, `12.00 s`.
///
/// Four digits show a difference of a tenth of a percent, and leave a line's room to the names; whoever
/// needs all of them asks for JSON. Takes a float because an average is one.
pub(crate) fn duration(ns: f64) -> String {
    // A unit ends where rounding would show 1000 of it.
    if ns.abs() < 999.5 {
        return format!("{ns:.0} ns");
    }
    let (value, unit) = match ns.abs() {
        us if us < 999.95e3 => (ns / 1e3, "us"),
        ms if ms < 999.95e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let decimals = match value.abs() {
        ones if ones < 9.9995 => 3,
        tens if tens < 99.995 => 2,
        hundreds if hundreds < 999.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// Joules with as many digits as say something.
pub(crate) fn joules(joules: f64) -> String {
    let digits = match joules.abs() {
        size if size >= 100.0 => 1,
        size if size >= 1.0 => 3,
        _ => 6,
    };
    format!("{joules:.digits$}")
}

/// A size of `bytes` bytes in binary units: `96 KiB`, `1.2 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A range of times, the second one not included: `10 to 20 us`, `500 us to 1 ms`, `10 s and more`.
pub(crate) fn time_range((from_ns, to_ns): (u64, Option<u64>)) -> String {
    let units = |ns: u64| match ns {
        0..1_000_000 => (ns / 1_000, "us"),
        1_000_000..1_000_000_000 => (ns / 1_000_000, "ms"),
        _ => (ns / 1_000_000_000, "s"),
    };
    let (from, unit) = units(from_ns);
    match to_ns.map(units) {
        None => format!("{from} {unit} and more"),
        Some((to, unit)) if from == 0 => format!("under {to} {unit}"),
        Some((to, other)) if other == unit => format!("{from} to {to} {unit}"),
        Some((to, other)) => format!("{from} {unit} to {to} {other}"),
    }
}

/// A range of sizes, the second one not included: `under 4 KiB`, `4 to 64 KiB`, `1 GiB and more`.
pub(crate) fn size_range((from, to): (Option<u64>, Option<u64>)) -> String {
    let whole = |bytes: u64| size(bytes).replace(".0 ", " ");
    match (from, to) {
        (None, _) => "unknown".to_string(),
        (Some(from), None) => format!("{} and more", whole(from)),
        (Some(0), Some(to)) => format!("under {}", whole(to)),
        (Some(from), Some(to)) => {
            let (from, to) = (whole(from), whole(to));
            let unit = to.split_once(' ').map_or("", |(_, unit)| unit);
            format!("{} to {to}", from.strip_suffix(unit).unwrap_or(&from).trim_end())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_take_the_unit_that_fits() {
        assert_eq!(duration(0.0), "0 ns");
        assert_eq!(duration(999.0), "999 ns");
        assert_eq!(duration(999.7), "1.000 us");
        assert_eq!(duration(6302.0), "6.302 us");
        assert_eq!(duration(999_999.9), "1.000 ms");
        assert_eq!(duration(9_999.7), "10.00 us");
        assert_eq!(duration(99_996.0), "100.0 us");
        assert_eq!(duration(157_178_000.0), "157.2 ms");
        assert_eq!(duration(12e9), "12.00 s");
        assert_eq!(duration(4e13), "40000 s");
    }

    #[test]
    fn sizes_take_the_unit_that_fits() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(98304), "96.0 KiB");
        assert_eq!(size(1024 * 1024 - 1), "1.0 MiB");
        assert_eq!(size(u64::MAX), "16384.0 PiB");
    }

    #[test]
    fn ranges_of_times_are_said_in_words() {
        use rpd_postprocess::report::gaps::BINS;
        let label = |at: usize| time_range((BINS[at], BINS.get(at + 1).copied()));
        assert_eq!(
            [0, 1, 3, 9, 10, 18, 19, 22].map(label),
            [
                "under 1 us",
                "1 to 2 us",
                "5 to 10 us",
                "500 us to 1 ms",
                "1 to 2 ms",
                "500 ms to 1 s",
                "1 to 2 s",
                "10 s and more"
            ]
        );
    }

    #[test]
    fn ranges_of_sizes_are_said_in_words() {
        use rpd_postprocess::report::copies::CLASSES;
        let label = |at: usize| size_range((CLASSES.get(at).copied(), CLASSES.get(at + 1).copied()));
        assert_eq!(
            [0, 1, 2, 4, 5, 6, 7].map(label),
            [
                "under 4 KiB",
                "4 to 64 KiB",
                "64 KiB to 1 MiB",
                "16 to 256 MiB",
                "256 MiB to 1 GiB",
                "1 GiB and more",
                "unknown"
            ]
        );
    }
}
