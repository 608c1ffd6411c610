//! A part of a trace as a trace of its own.
//!
//! | file | owns |
//! |---|---|
//! | `window.rs` | the range of time |
//! | `selection.rs` | which calls and ops stay |
//! | `plan.rs` | what becomes of each table |
//! | `copy.rs` | the copy of what stays |
//! | `callstack.rs` | the own time of calls that the window cuts |
//!
//! Rules: a call stays if it *starts* in the window, as the original's rpd_trim has it, so that two windows that touch share
//! no call and lose none. An op stays with the call that caused it, whenever it ran; one that no call of the file caused stays if
//! it starts in the window. What hangs off a call or an op goes with it. A sensor's runs are cut to the time that
//! the window and what stays cover. Texts that nothing uses any more go. The rest of a row that stays is as it was.

mod callstack;
mod copy;
mod plan;
mod selection;
pub mod window;

use std::path::Path;

use anyhow::{Context, Result, bail};
use rpd_schema::Version;
use rusqlite::Connection;
use serde::Serialize;

use crate::check::writer::writer;
use crate::moment::TimeRange;
use crate::notes::SharedNotes;
use crate::pass::change::explain;
use crate::pass::object::require;
use crate::rewrite::derive::{Announced, NewTrace, SourceTrace, TracePlace, derive, has_log};
use crate::trace::layout::{Layout, metadata};
use crate::trace::row_count;
use crate::trace::span::Span;
pub(crate) use copy::ORIGIN;
use copy::{CopiedRows, TrimCopy};
use selection::Selection;
use window::Window;

/// Where the result goes.
#[derive(Debug, Clone, Copy)]
pub enum TrimOutput<'a> {
    /// Into a new file.
    New(&'a Path),
    /// Into the trace's own place.
    InPlace,
    /// Nowhere: the result only says what would remain.
    None,
}

/// What stays of a trace.
#[derive(Debug, Serialize)]
pub struct Trimmed {
    /// The trace, as it was named.
    pub file: String,
    /// Its calls' first start and last end.
    pub span: Span,
    /// The window; an edge that was not named is that of the span.
    pub window: Span,
    /// Calls and markers.
    pub calls: Proportion,
    /// GPU operations.
    pub operations: Proportion,
    /// What went altogether, and why.
    pub dropped: Vec<String>,
}

/// So many of so many.
#[derive(Debug, Serialize)]
pub struct Proportion {
    /// Those that stay.
    pub kept: u64,
    /// All that there were.
    pub of: u64,
}

/// Trims `file` to `range`.
///
/// # Errors
/// What failed and what to do about it; the trace is as it was, and nothing is left of a new one.
pub fn trim(file: &Path, output: TrimOutput<'_>, range: &TimeRange, notes: &SharedNotes) -> Result<Trimmed> {
    let place = match output {
        TrimOutput::New(out) => TracePlace::New(out),
        TrimOutput::InPlace => TracePlace::Of(file),
        TrimOutput::None => {
            return TrimChoice::of(file, &SourceTrace::open(file)?, range).map(|choice| choice.trimmed);
        }
    };
    if matches!(output, TrimOutput::InPlace)
        && let Some(obstacle) = obstacle(file, &SourceTrace::open(file)?)?
    {
        bail!("{} is as it was: {obstacle}", file.display());
    }
    let beside = rpd_schema::note_files(file);
    let trimmed = derive(place, file, notes, |making: &NewTrace<'_>| {
        let source = making.open(file)?;
        making.show("calls and operations that stay");
        let TrimChoice { layout, window, selection, mut trimmed } = TrimChoice::of(file, &source, range)?;
        let origin = origin(&source.trace, &layout, &trimmed)?;
        // The notes of the file itself: none are beside a copy.
        let noted = rpd_schema::noted_sessions(&source.trace, file)?;
        let copy = TrimCopy {
            making,
            trace: &source.trace,
            layout: &layout,
            window,
            selection: &selection,
            origin,
            noted,
        };
        let CopiedRows { dropped, rows } = making.with(&source.path, || copy.run())?;
        trimmed.dropped = dropped;
        // Who came in the meantime would go on writing into a file that has no name any more.
        if matches!(output, TrimOutput::InPlace)
            && let Some(obstacle) = obstacle(file, &source)?
        {
            bail!(obstacle);
        }
        Ok((trimmed, Announced { version: source.version, rows }))
    })?;
    if matches!(output, TrimOutput::InPlace) {
        rpd_schema::remove_notes(file, &beside);
    }
    Ok(trimmed)
}

/// What tells the trace of which this is a part: parts of one have it in common, also parts of parts.
fn origin(trace: &Connection, layout: &Layout, trimmed: &Trimmed) -> rusqlite::Result<String> {
    let Trimmed { span, calls, operations, .. } = trimmed;
    let this = || format!("{} {} {} {}", calls.of, operations.of, span.start_ns, span.end_ns);
    Ok(metadata(trace, layout, ORIGIN)?.unwrap_or_else(this))
}

/// Why another file must not take the place of this one, if something speaks against it.
fn obstacle(file: &Path, source: &SourceTrace) -> rusqlite::Result<Option<String>> {
    // Its write-ahead log would be taken for the new file's.
    if has_log(&source.trace)? {
        return Ok(Some(
            "it has a write-ahead log; end that with: sqlite3 FILE 'pragma journal_mode = delete'".into(),
        ));
    }
    writer(file, &source.trace)
}

/// What is decided before anything is copied.
struct TrimChoice {
    layout: Layout,
    window: Window,
    selection: Selection,
    trimmed: Trimmed,
}

impl TrimChoice {
    /// Chooses what stays of `file`.
    fn of(file: &Path, source: &SourceTrace, range: &TimeRange) -> Result<TrimChoice> {
        if source.version == Version::V1 {
            bail!("{}: a trace of schema 1, and only schema 2 and 3 can be worked on", file.display());
        }
        let choice = TrimChoice::made(file, source, range)
            .map_err(|error| explain(error, file))
            .with_context(|| format!("cannot trim {}", file.display()))?;
        if choice.selection.calls.is_empty() && choice.selection.ops.is_empty() {
            bail!(
                "nothing in {} starts in that window: its calls run from {} to {} ns",
                file.display(),
                choice.trimmed.span.start_ns,
                choice.trimmed.span.end_ns
            );
        }
        Ok(choice)
    }

    fn made(file: &Path, source: &SourceTrace, range: &TimeRange) -> Result<TrimChoice> {
        let trace = &source.trace;
        // The same rows for every question, also while a recorder adds some. Each is a scan, for which pages are not kept.
        trace.execute_batch("PRAGMA temp_store = FILE; PRAGMA cache_size = -2048; BEGIN")?;
        require(trace, &["rocpd_api", "rocpd_op", "rocpd_api_ops", "rocpd_string"])?;
        let layout = Layout::everything(trace)?;
        let span = window::span(trace)?;
        let window = Window::resolve(trace, source.version, span, range)?;
        let selection = Selection::of(trace, window)?;
        let share = |kept, table| -> rusqlite::Result<Proportion> {
            Ok(Proportion { kept, of: row_count(trace, table)? })
        };
        let trimmed = Trimmed {
            file: file.to_string_lossy().into_owned(),
            span,
            window: window.within(span),
            calls: share(selection.rows.calls, "rocpd_api")?,
            operations: share(selection.rows.ops, "rocpd_op")?,
            dropped: Vec::new(),
        };
        Ok(TrimChoice { layout, window, selection, trimmed })
    }
}
