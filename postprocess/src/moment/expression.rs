//! The text of a moment, read.

use std::str::FromStr;

use regex::Regex;
use rpd_settings::quantity;

use crate::pattern;

/// What a moment may be, for messages.
const FORMS: &str = "not a time: write 1500 (ns), 1.5s, 20us, 25%, +2s (from the start), -500ms (before the end), \
                     marker:NAME, marker:NAME:2 or kernel:REGEX";

/// A moment, as it was named.
#[derive(Debug, Clone)]
pub enum Moment {
    /// On the trace's own clock, ns.
    At(i64),
    /// After the first call began, ns.
    AfterStart(i64),
    /// Before the last call ended, ns.
    BeforeEnd(i64),
    /// A part of the time between the two, in thousand-millionths.
    Part(i64),
    /// A marker of this text, or a call of this name; one of several by a number behind a last colon.
    Marker(String),
    /// The ops whose names match.
    Kernel(Regex),
}

/// A part of a trace, as it was named. An edge that was not is where the trace has it.
#[derive(Debug, Clone, Default)]
pub struct TimeRange {
    /// Where it begins.
    pub start: Option<Moment>,
    /// Where it ends.
    pub end: Option<Moment>,
}

impl FromStr for TimeRange {
    type Err = String;

    /// `FROM..TO`, or the text of a marker, which is what lies between its beginning and its end.
    fn from_str(text: &str) -> Result<TimeRange, String> {
        let edge = |text: &str| match text {
            "" => Ok(None),
            text => text.parse().map(Some),
        };
        match text.split_once("..") {
            Some((start, end)) => Ok(TimeRange { start: edge(start)?, end: edge(end)? }),
            None => {
                let marker = edge(&format!("marker:{text}"))?;
                Ok(TimeRange { start: marker.clone(), end: marker })
            }
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Moment, String> {
        if let Some(name) = text.strip_prefix("marker:") {
            return match name {
                "" => Err("marker: needs the text of a marker behind it".to_string()),
                name => Ok(Moment::Marker(name.to_string())),
            };
        }
        if let Some(pattern) = text.strip_prefix("kernel:") {
            return pattern::pattern(pattern).map(Moment::Kernel);
        }
        let wrong = || FORMS.to_string();
        if let Some(number) = text.strip_suffix('%') {
            let part = quantity::scaled(number, 1_000_000_000 / 100).ok_or_else(wrong)?;
            return if part <= 1_000_000_000 { Ok(Moment::Part(part)) } else { Err(wrong()) };
        }
        let (sign, duration) = match text.strip_prefix(['+', '-']) {
            Some(rest) => (text.chars().next(), rest),
            None => (None, text),
        };
        let ns = duration_ns(duration).ok_or_else(wrong)?;
        Ok(match sign {
            Some('+') => Moment::AfterStart(ns),
            Some(_) => Moment::BeforeEnd(ns),
            None => Moment::At(ns),
        })
    }
}

/// A duration in ns; without a unit it is ns.
pub fn duration_ns(text: &str) -> Option<i64> {
    quantity::time_ns(text, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        text.parse::<Moment>().map_or_else(|error| format!("error {error}"), |moment| format!("{moment:?}"))
    }

    #[test]
    fn every_form_is_read_exactly() {
        for (text, expected) in [
            ("12", "At(12)"),
            ("3489389197956317", "At(3489389197956317)"),
            ("1.5us", "At(1500)"),
            ("0.123456789s", "At(123456789)"),
            (".5ms", "At(500000)"),
            ("7.", "At(7)"),
            ("1.9ns", "At(1)"),
            ("2m", "At(120000000000)"),
            ("+2s", "AfterStart(2000000000)"),
            ("-500ms", "BeforeEnd(500000000)"),
            ("25%", "Part(250000000)"),
            ("33.3%", "Part(333000000)"),
            ("100%", "Part(1000000000)"),
            ("marker:a:2", "Marker(\"a:2\")"),
            ("kernel:^gemm.*", "Kernel(Regex(\"^gemm.*\"))"),
        ] {
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_time_says_what_one_is() {
        for text in [
            "",
            "x",
            "-",
            "+",
            ".",
            "%",
            "s",
            "1e3",
            "1 s",
            "--1",
            "+-1",
            "+5%",
            "-5%",
            "101%",
            "9223372036854775808",
            "9223372037s",
            "0x10",
            "１s",
        ] {
            assert!(parsed(text).starts_with("error not a time"), "{text}: {}", parsed(text));
        }
        assert!(parsed("marker:").contains("text of a marker"));
        assert!(parsed("kernel:(").contains("unclosed group"));
    }

    #[test]
    fn no_text_breaks_the_parser() {
        let alphabet = "0123456789.%+-nmus:markelREGX(*\\ \0é".chars().collect::<Vec<_>>();
        let mut state = 1_u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        for _ in 0..50_000 {
            let length = next() % 13;
            let text: String = (0..length).map(|_| alphabet[next() % alphabet.len()]).collect();
            if let Ok(Moment::At(ns) | Moment::AfterStart(ns) | Moment::BeforeEnd(ns) | Moment::Part(ns)) =
                text.parse()
            {
                assert!(ns >= 0, "{text}");
            }
        }
    }
}
