//! Moments of a trace as people name them: `1.5s`, `25%`, `+2s`, `-500ms`, `marker:step 3`, `kernel:gemm.*`.

mod expression;

use anyhow::{Context, Result, bail};
use regex::Regex;
use rpd_schema::Version;
use rpd_schema::text::{shown, text_of};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};

use crate::text;
use crate::trace::ids::Ids;
use crate::trace::span::Span;
pub use expression::{Moment, TimeRange, duration_ns};

/// Which end of something that takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// Where it begins.
    Begin,
    /// Where it ends.
    End,
}

impl Moment {
    /// The moment in ns on the clock of `trace`, whose calls span `span`. Of what takes time it is `edge`; of several
    /// that are meant, the first beginning or the last end.
    ///
    /// # Errors
    /// When the trace has no such marker or op, or cannot be read.
    pub fn resolve(&self, trace: &Connection, version: Version, span: Span, edge: Edge) -> Result<i64> {
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

/// Where the markers that `name` means begin or end ([`named`]); the n-th is counted from 1 in the order in which they begin.
///
/// # Errors
/// When there is none, or the trace cannot be read.
pub fn marker(trace: &Connection, version: Version, name: &str, edge: Edge) -> Result<i64> {
    Ok(outermost(&named(trace, version, name)?, edge))
}

/// The markers that a person means by `name`, at least one: those of [`markers`], or with `:n` behind the text (which no marker
/// may have as a whole) the n-th of them.
///
/// # Errors
/// When there is none, or the trace cannot be read.
pub fn named(trace: &Connection, version: Version, name: &str) -> Result<Vec<(i64, Span)>> {
    let found = markers(trace, version, name)?;
    if !found.is_empty() {
        return Ok(found);
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
    Ok(vec![*nth])
}

/// The markers with that text and the calls of that name, by id, in the order in which they begin.
///
/// # Errors
/// When the trace cannot be read.
pub fn markers(trace: &Connection, version: Version, name: &str) -> rusqlite::Result<Vec<(i64, Span)>> {
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

/// The texts in which the pattern is found.
///
/// # Errors
/// When the trace cannot be read.
pub(crate) fn matching_texts(trace: &Connection, pattern: &Regex) -> rusqlite::Result<Ids> {
    let mut matching = Ids::default();
    let mut texts = trace.prepare(&format!("SELECT id, {} FROM rocpd_string", shown("string")))?;
    let mut texts = texts.query([])?;
    while let Some(row) = texts.next()? {
        if pattern.is_match(&text_of(row.get_ref(1)?)) {
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
