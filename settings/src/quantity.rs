//! Times and sizes: a decimal number, and a unit right behind it. A number without a unit has the unit that the option or
//! variable had before there were units. A time may have several numbers, the largest unit first: 1h30m.

/// What a time may be, for messages.
pub const TIMES: &str = "a time such as 10s, 1.5ms, 250us, 2m or 1h";
/// What a size may be, for messages.
pub const SIZES: &str = "a size such as 512MiB, 1GB or 2G";

/// Nanoseconds of a second: the unit of a bare number of seconds.
pub const SECOND: i64 = 1_000_000_000;
/// Nanoseconds of a millisecond.
pub const MILLISECOND: i64 = 1_000_000;
/// Bytes of a MiB.
pub const MEBIBYTE: i64 = 1 << 20;

/// Units of time, in ns. Where one ends another it comes later.
const TIME_UNITS: [(&str, i64); 9] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", MILLISECOND),
    ("s", SECOND),
    ("sec", SECOND),
    ("m", 60 * SECOND),
    ("min", 60 * SECOND),
    ("h", 3600 * SECOND),
];

/// Units of size, in bytes, in small letters. A letter alone is binary, as dd and ulimit have it.
const SIZE_UNITS: [(&str, i64); 13] = [
    ("kib", 1 << 10),
    ("mib", MEBIBYTE),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("b", 1),
    ("k", 1 << 10),
    ("m", MEBIBYTE),
    ("g", 1 << 30),
    ("t", 1 << 40),
];

/// A time in ns; a number without a unit is multiplied by `bare`. What is below 1 ns is cut off. None where it is no time, or
/// more than 292 years.
#[must_use]
pub fn time_ns(text: &str, bare: i64) -> Option<i64> {
    with_unit(text, &TIME_UNITS, bare).or_else(|| sum_of_times(text))
}

/// Several whole numbers with units, each unit smaller than the one before: 1h30m, 2m5s.
fn sum_of_times(text: &str) -> Option<i64> {
    let (mut rest, mut sum, mut above) = (text, 0_i64, i64::MAX);
    while !rest.is_empty() {
        let (number, behind) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, next) = behind.split_at(behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len()));
        let (_, scale) = TIME_UNITS.iter().find(|(name, scale)| *name == unit && *scale < above)?;
        sum = sum.checked_add(scaled(number, *scale)?)?;
        (rest, above) = (next, *scale);
    }
    (above < i64::MAX).then_some(sum)
}

/// A size in bytes; a number without a unit is multiplied by `bare`. None where it is no size, or 8 EiB and more.
#[must_use]
pub fn size_bytes(text: &str, bare: i64) -> Option<u64> {
    with_unit(&text.to_ascii_lowercase(), &SIZE_UNITS, bare).map(i64::unsigned_abs)
}

fn with_unit(text: &str, units: &[(&str, i64)], bare: i64) -> Option<i64> {
    let found = units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)));
    let (number, scale) = found.unwrap_or((text, bare));
    scaled(number, scale)
}

/// A decimal number times `scale`, exactly, what is below 1 cut off. None where it is no number or too large.
#[must_use]
pub fn scaled(number: &str, scale: i64) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // Fifteen digits are more than anybody writes, and their product with the largest unit fits into 128 bits.
    const PLACES: u32 = 15;
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(PLACES as usize);
    let parts = digits.fold(0, |sum, digit| sum * 10 + i128::from(digit - b'0'));
    let part = parts * i128::from(scale) / 10_i128.pow(PLACES);
    whole.checked_mul(scale)?.checked_add(i64::try_from(part).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_or_the_old_one() {
        for (text, ns) in [
            ("10s", 10 * SECOND),
            ("500ms", 500 * MILLISECOND),
            ("1.5ms", 1_500_000),
            ("250us", 250_000),
            ("250µs", 250_000),
            ("7ns", 7),
            ("1.9ns", 1),
            ("2m", 120 * SECOND),
            ("2min", 120 * SECOND),
            ("10sec", 10 * SECOND),
            ("1h30m", 5400 * SECOND),
            ("1h30min", 5400 * SECOND),
            ("2m5s", 125 * SECOND),
            ("1h0m1s500ms", 3601 * SECOND + SECOND / 2),
            ("1h", 3600 * SECOND),
            ("0.123456789s", 123_456_789),
            ("0.000000000001h", 3),
            (".5s", SECOND / 2),
            ("3", 3 * SECOND),
            ("0", 0),
        ] {
            assert_eq!(time_ns(text, SECOND), Some(ns), "{text}");
        }
        assert_eq!(time_ns("1.5", MILLISECOND), Some(1_500_000));
    }

    #[test]
    fn sizes_are_decimal_or_binary_as_their_units_say() {
        for (text, bytes) in [
            ("1GB", 1_000_000_000),
            ("512MiB", 512 << 20),
            ("1.5GiB", 3 << 29),
            ("2G", 2 << 30),
            ("64k", 64 << 10),
            ("100", 100 << 20),
            ("10b", 10),
            ("1tb", 1_000_000_000_000),
        ] {
            assert_eq!(size_bytes(text, MEBIBYTE), Some(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in [
            "",
            "x",
            ".",
            "s",
            "-1s",
            "+1s",
            "1e3",
            "10 s",
            "3d",
            "nan",
            "inf",
            "1ss",
            "30m1h",
            "1m1m",
            "1h30",
            "1h m",
            "1.5h30m",
            "1h-1m",
            "2562047h9999m",
            "9223372037s",
            "0x10",
            "１s",
            " 1",
        ] {
            assert_eq!(time_ns(text, SECOND), None, "{text}");
        }
        for text in ["", "GB", "1 GB", "-1", "1XB", "9000000TiB", "1s"] {
            assert_eq!(size_bytes(text, MEBIBYTE), None, "{text}");
        }
    }
}
