//! The range of time that stays.

use anyhow::{Result, bail};
use rpd_schema::Version;
use rusqlite::Connection;

use crate::check::outlier::{Outliers, is_possible};
use crate::moment::{Edge, Moment, TimeRange};
use crate::trace::span::Span;

/// Times at or beyond this, in ns, are no times (146 years after a host's boot).
const END_OF_TIME: i64 = 1 << 62;

/// From its first to its last nanosecond, both included. An edge that was not named is the end of all times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its first, ns on the trace's clock.
    pub start_ns: i64,
    /// Its last.
    pub end_ns: i64,
}

impl Window {
    /// The window that `range` is in a trace whose calls span `span`.
    ///
    /// # Errors
    /// When an edge is not in the trace, the two are the wrong way round, or the trace cannot be read.
    pub fn resolve(trace: &Connection, version: Version, span: Span, range: &TimeRange) -> Result<Window> {
        let edge = |moment: &Option<Moment>, edge, otherwise| {
            moment.as_ref().map_or(Ok(otherwise), |moment| moment.resolve(trace, version, span, edge))
        };
        let window = Window {
            start_ns: edge(&range.start, Edge::Begin, i64::MIN)?,
            end_ns: edge(&range.end, Edge::End, i64::MAX)?,
        };
        if window.end_ns < window.start_ns {
            bail!("the window ends ({} ns) before it starts ({} ns)", window.end_ns, window.start_ns);
        }
        Ok(window)
    }

    /// The same by the span of the trace's calls, which is not needed for times on the trace's clock.
    ///
    /// # Errors
    /// As [`Window::resolve`], and when another edge is named in a trace without calls and operations.
    pub fn of(trace: &Connection, version: Version, range: &TimeRange) -> Result<Window> {
        let is_known = |edge: &Option<Moment>| matches!(edge, None | Some(Moment::At(_)));
        let span = match is_known(&range.start) && is_known(&range.end) {
            true => Span { start_ns: i64::MIN, end_ns: i64::MAX },
            false => span(trace)?,
        };
        Window::resolve(trace, version, span, range)
    }

    /// The condition, in SQL, that a column with a time is in it; a text is not.
    pub fn condition(self, column: &str) -> String {
        format!("{column} BETWEEN {} AND {}", self.start_ns, self.end_ns)
    }

    /// As much of `span` as lies in it; an edge that was named stays as it is.
    pub fn within(self, span: Span) -> Span {
        Span {
            start_ns: if self.start_ns == i64::MIN { span.start_ns } else { self.start_ns },
            end_ns: if self.end_ns == i64::MAX { span.end_ns } else { self.end_ns },
        }
    }
}

/// From the first start to the last end of the calls, or of the ops where there are no calls. Rows with impossible
/// times do not count, nor do those that are days away from nearly all others.
///
/// # Errors
/// When there is neither, or the trace cannot be read.
pub fn span(trace: &Connection) -> Result<Span> {
    let possible = format!(
        "typeof(start) = 'integer' AND typeof(\"end\") = 'integer'
             AND start > 0 AND \"end\" >= start AND \"end\" < {END_OF_TIME}"
    );
    for table in ["rocpd_api", "rocpd_op"] {
        // Judging every row takes three times as long, and nearly always in vain.
        let mut found = span_of(trace, table, "1")?;
        if found.is_none() {
            found = span_of(trace, table, &possible)?;
        }
        if found.is_some_and(|span| is_possible(Some((span.start_ns, span.end_ns)))) {
            let near = Outliers::of(trace)?.others();
            found = span_of(trace, table, &format!("{possible} AND {near}"))?;
        }
        if let Some(found) = found {
            return Ok(found);
        }
    }
    bail!("there is no call and no operation in it")
}

/// The same of the rows of one table for which `which` (SQL) is true; none where there are none or their times are impossible.
fn span_of(trace: &Connection, table: &str, which: &str) -> Result<Option<Span>> {
    let query = format!("SELECT min(start), max(\"end\") FROM {table} WHERE {which}");
    let found = trace
        .query_row(&query, [], |row| Ok(row.get_ref(0)?.as_i64().ok().zip(row.get_ref(1)?.as_i64().ok())))?;
    let is_sound =
        |(start_ns, end_ns): &(i64, i64)| *start_ns > 0 && (*start_ns..END_OF_TIME).contains(end_ns);
    Ok(found.filter(is_sound).map(|(start_ns, end_ns)| Span { start_ns, end_ns }))
}
