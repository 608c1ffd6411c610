//! Moments of a trace as people name them: `1.5s`, `25%`, `+2s`, `-500ms`, `marker:step 3`, `kernel:gemm.*`.

use std::str::FromStr;

use anyhow::{Context, Result, bail};
use regex::Regex;
use rpd_schema::Version;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};

use crate::contents::Span;
use crate::ids::Ids;
use crate::text;

/// What a moment may be, for messages.
const FORMS: &str = "not a time: write 1500 (ns), 1.5s, 20us, 25%, +2s (from the start), -500ms (before the end), \
                     marker:NAME, marker:NAME:2 or kernel:REGEX";

/// A moment, as it was named.
#[derive(Debug, Clone)]
pub(crate) enum Moment {
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

/// Which end of something that takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    /// Where it begins.
    Begin,
    /// Where it ends.
    End,
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
            return Regex::new(pattern).map(Moment::Kernel).map_err(|error| error.to_string());
        }
        let wrong = || FORMS.to_string();
        if let Some(number) = text.strip_suffix('%') {
            let part = scaled(number, 1_000_000_000 / 100).ok_or_else(wrong)?;
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

/// A duration with a unit, in ns; without one it is ns.
pub(crate) fn duration_ns(text: &str) -> Option<i64> {
    // `s` ends the others.
    let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let found = units.iter().find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, *ns)));
    let (number, ns) = found.unwrap_or((text, 1));
    scaled(number, ns)
}

/// A decimal number times `scale`, exactly, what is below 1 cut off. None where it is no number or too large.
fn scaled(number: &str, scale: i64) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // No unit has more than nine digits behind the point.
    let places = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    let billionths = places.fold(0, |sum, digit| sum * 10 + i128::from(digit - b'0'));
    let part = billionths * i128::from(scale) / 1_000_000_000;
    whole.checked_mul(scale)?.checked_add(i64::try_from(part).ok()?)
}

impl Moment {
    /// The moment in ns on the clock of `trace`, whose calls span `span`. Of what takes time it is `edge`; of several
    /// that are meant, the first beginning or the last end.
    ///
    /// # Errors
    /// When the trace has no such marker or op, or cannot be read.
    pub(crate) fn resolve(
        &self,
        trace: &Connection,
        version: Version,
        span: Span,
        edge: Edge,
    ) -> Result<i64> {
        match self {
            Moment::At(ns) => Ok(*ns),
            Moment::AfterStart(ns) => Ok(span.start_ns.saturating_add(*ns)),
            Moment::BeforeEnd(ns) => Ok(span.end_ns.saturating_sub(*ns)),
            Moment::Part(part) => {
                let share = i128::from(span.duration_ns()) * i128::from(*part) / 1_000_000_000;
                Ok(span.start_ns.saturating_add(i64::try_from(share)?))
            }
            Moment::Marker(name) => marker(trace, version, name, edge),
            Moment::Kernel(pattern) => kernel(trace, pattern, edge),
        }
    }
}

/// Where the markers with this text begin or end; with `:n` behind the text (which no marker may have as a whole), the
/// n-th, counted from 1 in the order in which they begin.
///
/// # Errors
/// When there is none, or the trace cannot be read.
pub(crate) fn marker(trace: &Connection, version: Version, name: &str, edge: Edge) -> Result<i64> {
    let found = markers(trace, version, name)?;
    if !found.is_empty() {
        return Ok(outermost(&found, edge));
    }
    let shown = text::escape(name);
    let numbered = name.rsplit_once(':').and_then(|(name, nth)| Some((name, nth.parse::<usize>().ok()?)));
    let Some((name, nth)) = numbered.filter(|(name, nth)| !name.is_empty() && *nth > 0) else {
        bail!("no marker has the text {shown}");
    };
    let found = markers(trace, version, name)?;
    let nth = found.get(nth - 1).with_context(|| {
        format!("no marker has the text {shown}, and {} have the text {}", found.len(), text::escape(name))
    })?;
    Ok(outermost(std::slice::from_ref(nth), edge))
}

/// The markers with that text and the calls of that name, by id, in the order in which they begin.
///
/// # Errors
/// When the trace cannot be read.
pub(crate) fn markers(
    trace: &Connection,
    version: Version,
    name: &str,
) -> rusqlite::Result<Vec<(i64, Span)>> {
    let texts = if version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" };
    let mut found = trace.prepare(&format!(
        "SELECT id, start, \"end\" FROM rocpd_api
         WHERE (apiName_id IN (SELECT id FROM rocpd_string WHERE string = ?1)
                 OR (args_id IN (SELECT id FROM {texts} WHERE string = ?1)
                     AND apiName_id IN (SELECT id FROM rocpd_string WHERE string = 'UserMarker')))
             AND typeof(start) = 'integer' AND typeof(\"end\") = 'integer'
         ORDER BY start, id"
    ))?;
    let found = found
        .query_map([name], |row| Ok((row.get(0)?, Span { start_ns: row.get(1)?, end_ns: row.get(2)? })))?;
    found.collect()
}

fn outermost(markers: &[(i64, Span)], edge: Edge) -> i64 {
    let edges = markers.iter().map(|(_, span)| span);
    match edge {
        Edge::Begin => edges.map(|span| span.start_ns).min().unwrap_or(i64::MIN),
        Edge::End => edges.map(|span| span.end_ns).max().unwrap_or(i64::MAX),
    }
}

/// Where the first op begins whose name matches (its type where it has no name), or rather the call that launched
/// it; or where the last one ends.
fn kernel(trace: &Connection, pattern: &Regex, edge: Edge) -> Result<i64> {
    let names = matching_texts(trace, pattern)?;
    let empty = Ids::of(trace, "SELECT id FROM rocpd_string WHERE string = ''", [])?;
    let mut ops = Ids::default();
    let (mut begin, mut end) = (i64::MAX, i64::MIN);
    let mut rows = trace.prepare("SELECT id, start, \"end\", description_id, opType_id FROM rocpd_op")?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let id_at = |at| row.get_ref(at)?.as_i64_or_null().map_err(rusqlite::Error::from);
        let description = id_at(3).unwrap_or(None);
        let name =
            if description.is_some_and(|id| !empty.has(id)) { description } else { id_at(4).unwrap_or(None) };
        let times = (id_at(1).unwrap_or(None), id_at(2).unwrap_or(None));
        if let (Some(name), (Some(start), Some(stop))) = (name, times)
            && names.has(name)
        {
            ops.add(row.get(0)?);
            begin = begin.min(start);
            end = end.max(stop);
        }
    }
    if ops.is_empty() {
        bail!("no operation has a name that matches {}", text::escape(pattern.as_str()));
    }
    match edge {
        Edge::End => Ok(end),
        Edge::Begin => Ok(begin.min(first_launch(trace, &ops)?.unwrap_or(begin))),
    }
}

fn matching_texts(trace: &Connection, pattern: &Regex) -> rusqlite::Result<Ids> {
    let mut matching = Ids::default();
    let mut texts = trace.prepare("SELECT id, CAST(string AS blob) FROM rocpd_string")?;
    let mut texts = texts.query([])?;
    while let Some(row) = texts.next()? {
        if pattern.is_match(&String::from_utf8_lossy(row.get_ref(1)?.as_bytes()?)) {
            matching.add(row.get(0)?);
        }
    }
    Ok(matching)
}

/// When the first call began that caused one of these ops.
fn first_launch(trace: &Connection, ops: &Ids) -> rusqlite::Result<Option<i64>> {
    let mut links =
        trace.prepare("SELECT op_id, api_id FROM rocpd_api_ops WHERE typeof(op_id) = 'integer'")?;
    let mut begin =
        trace.prepare("SELECT start FROM rocpd_api WHERE id = ?1 AND typeof(start) = 'integer'")?;
    let mut links = links.query([])?;
    let mut first = None;
    while let Some(row) = links.next()? {
        if ops.has(row.get(0)?) {
            let call: Value = row.get(1)?;
            if let Some(start) = begin.query_row([call], |row| row.get(0)).optional()? {
                first = Some(first.map_or(start, |first: i64| first.min(start)));
            }
        }
    }
    Ok(first)
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
            "1h",
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
