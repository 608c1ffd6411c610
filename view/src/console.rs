//! Questions in SQL from the page: they may only read, for a bounded time, and rows with times become events in rows of the page.

use std::fmt::Arguments;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow, bail};
use regex::Regex;
use rpd_postprocess::notes::{Notes, SharedNotes};
use rpd_postprocess::query::Questioned;
use rpd_postprocess::query::value::{hexadecimal, number};
use rpd_sql::query;
use rusqlite::types::ValueRef;
use serde::Serialize;

use crate::timeline::Timeline;

/// How long a question may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Rows of an answer.
const MOST_ROWS: usize = 10_000;

/// Bytes of the texts of an answer.
const MOST_BYTES: usize = 16 << 20;

/// Names that columns with the begin, the end, the duration of something in ns have.
const STARTS: [&str; 2] = ["start", "start_ns"];
const ENDS: [&str; 2] = ["end", "end_ns"];
const DURATIONS: [&str; 2] = ["duration", "duration_ns"];

/// Names of columns with ids of operations and of calls; `id` is of what the question reads.
const OPS: [&str; 2] = ["op_id", "op_ptr_id"];
const CALLS: [&str; 3] = ["api_id", "api_ptr_id", "call_id"];

/// Names of columns that say what something is.
const NAMES: [&str; 7] = ["name", "kernelName", "apiName", "autogradName", "description", "opType", "string"];

/// What advice for the command line begins with.
const COMMAND: &str = "rpd sql ";

/// A question that such advice has, and that the page can be asked too.
const COLUMNS: &str = "pragma table_info(op)";

/// Nobody is told anything: the page says what an answer says.
#[derive(Debug)]
pub(crate) struct Silent;

impl Notes for Silent {
    fn note(&self, _line: Arguments<'_>) {}
}

/// An answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Answer {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Whether a column has numbers only.
    pub is_number: Vec<bool>,
    /// Cells as texts: numbers of the page are not exact so far. None of NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// Whether there are more rows.
    pub is_cut: bool,
    /// What of it is a time or an event of the trace.
    pub events: Vec<Event>,
    /// How long it took, ms.
    pub took_ms: u64,
}

/// A row that is a time or an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Its row.
    pub at: usize,
    /// Begin, ns since the trace's begin.
    pub start_ns: u64,
    /// Duration, ns.
    pub duration_ns: u64,
    /// The event of the trace, where it is one.
    pub event: Option<u32>,
    /// What the row calls it.
    pub name: String,
}

/// A ready-made question.
#[derive(Debug, Clone, Serialize)]
pub struct ReadyMade {
    name: &'static str,
    question: String,
}

/// Those that need one trace only.
pub fn ready_made() -> Vec<ReadyMade> {
    let all = query::every().filter(|query| !query.text.contains("before."));
    all.map(|query| ReadyMade { name: query.name, question: query.question() }).collect()
}

/// Answers `question`, a statement or the name of a ready-made one, about the trace `file`, which is the one with the number `source`.
///
/// # Errors
/// When it is wrong, would do more than read, takes too long, or the trace cannot be read.
pub fn answer(timeline: &Timeline, (source, file): (usize, &Path), question: &str) -> Result<Answer> {
    let begun = Instant::now();
    let notes: SharedNotes = Arc::new(Silent);
    let mut trace = Questioned::open(file, None, Some(LIMIT), &notes)?;
    let question = question.trim().trim_end_matches(';');
    if question.is_empty() {
        bail!("type a question: select * from kernel limit 10");
    }
    let ready_made = trace.ready_made(question)?;
    let statement = ready_made.as_deref().unwrap_or(question);
    let prepared = trace.prepare(statement).map_err(|error| for_page(&error))?;
    let mut found = Answer { columns: prepared.columns(), ..Answer::default() };
    let mut seen: Vec<Option<bool>> = vec![None; found.columns.len()];
    let kinds = Kinds::of(&found.columns, statement);
    let mut bytes = 0;
    let ran = prepared.each(|row| {
        if found.rows.len() == MOST_ROWS || bytes >= MOST_BYTES {
            found.is_cut = true;
            return Ok(false);
        }
        let mut cells = Vec::with_capacity(seen.len());
        let mut integers = Vec::with_capacity(seen.len());
        for (column, seen) in seen.iter_mut().enumerate() {
            let value = row.get_ref(column)?;
            let is_number = matches!(value, ValueRef::Integer(_) | ValueRef::Real(_));
            let cell = match value {
                ValueRef::Null => None,
                ValueRef::Integer(number) => Some(number.to_string()),
                ValueRef::Real(real) => Some(number(real)),
                ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
                ValueRef::Blob(bytes) => Some(hexadecimal(bytes)),
            };
            if cell.is_some() {
                *seen = Some(seen.unwrap_or(true) && is_number);
            }
            bytes += cell.as_ref().map_or(0, String::len);
            integers.push(value.as_i64().ok());
            cells.push(cell);
        }
        found.events.extend(kinds.event((timeline, source), found.rows.len(), &integers, &cells));
        found.rows.push(cells);
        Ok(true)
    });
    ran.map_err(|error| for_page(&error))?;
    found.is_number = seen.into_iter().map(|seen| seen == Some(true)).collect();
    found.took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(found)
}

/// What went wrong, without the advice that is for the command line.
fn for_page(error: &Error) -> Error {
    let said = format!("{error:#}");
    let clauses = said.split("; ").filter_map(|clause| match clause.split_once(&format!(" '{COLUMNS}'")) {
        Some((command, rest)) if command.starts_with(COMMAND) => Some(format!("{COLUMNS}{rest}")),
        _ if clause.starts_with("--") || clause.starts_with(COMMAND) => None,
        _ => Some(clause.to_string()),
    });
    anyhow!(clauses.collect::<Vec<_>>().join("; "))
}

/// What the columns of an answer are.
struct Kinds {
    start: Option<usize>,
    end: Option<usize>,
    duration: Option<usize>,
    op: Option<usize>,
    call: Option<usize>,
    name: Option<usize>,
}

impl Kinds {
    fn of(columns: &[String], statement: &str) -> Kinds {
        let find = |names: &[&str]| {
            names.iter().find_map(|name| columns.iter().position(|column| column.eq_ignore_ascii_case(name)))
        };
        let id = find(&["id"]);
        let reads_ops = reads(statement, true);
        let is_either = reads_ops != reads(statement, false);
        Kinds {
            start: find(&STARTS),
            end: find(&ENDS),
            duration: find(&DURATIONS),
            op: find(&OPS).or(id.filter(|_| is_either && reads_ops)),
            call: find(&CALLS).or(id.filter(|_| is_either && !reads_ops)),
            name: find(&NAMES),
        }
    }

    /// What a row is: an event where it has the id of one, otherwise a time where it has one that is the trace's.
    fn event(
        &self,
        (timeline, source): (&Timeline, usize),
        at: usize,
        integers: &[Option<i64>],
        cells: &[Option<String>],
    ) -> Option<Event> {
        let value = |column: Option<usize>| integers[column?];
        let event = value(self.op)
            .and_then(|id| timeline.event_of(source, true, id))
            .or_else(|| timeline.event_of(source, false, value(self.call)?));
        let name = self.name.and_then(|column| cells[column].clone()).filter(|name| !name.is_empty());
        let span = value(self.start).and_then(|start| {
            let end = value(self.end).or_else(|| start.checked_add(value(self.duration)?))?;
            let of = timeline.sources.get(source)?;
            let (start, end) = (of.time(start)?, of.time(end)?);
            (start <= end && start <= timeline.span_ns).then(|| (start, end - start))
        });
        let (start_ns, duration_ns) = match (span, event) {
            (Some(span), _) => span,
            (None, Some(event)) => (timeline.columns.times(event).0, timeline.columns.duration(event)),
            (None, None) => return None,
        };
        let name = name.or_else(|| Some(timeline.name(event?).text.to_string())).unwrap_or_default();
        Some(Event { at, start_ns, duration_ns, event, name })
    }
}

/// Whether a statement names a table or view whose `id` is that of operations, or of calls.
fn reads(statement: &str, ops: bool) -> bool {
    static WORDS: OnceLock<Option<[Regex; 2]>> = OnceLock::new();
    let words = WORDS.get_or_init(|| {
        let of = |names: &str| Regex::new(&format!(r#"(?i)\b(from|join)\s+"?({names})\b"#)).ok();
        Some([of("rocpd_op|op|kernels?|copies")?, of("rocpd_api|api|apis|markers?|autograd|graphLaunch")?])
    });
    words.as_ref().is_some_and(|[of_ops, of_calls]| if ops { of_ops } else { of_calls }.is_match(statement))
}
