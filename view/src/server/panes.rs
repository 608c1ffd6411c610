//! Answers that read the file, for the panes of the page: questions in SQL, reports, trees of calls, code, rows that are worked out.
//!
//! What may take long is worked out one after the other.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use anyhow::{Result, bail};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rpd_postprocess::report::blocks::Peaks;
use rpd_postprocess::text::in_shell;
use rpd_schema::Version;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::Served;
use super::answers::{Parameters, failure, json, timeline, worked_out};
use crate::console;
use crate::derived::{self, DerivedRows};
use crate::kernel_code;
use crate::pool::Pool;
use crate::reports::{self, ReportKind};
use crate::roofline;
use crate::timeline::{Shown, Source, Timeline};
use crate::trees::{self, Of};

pub(super) fn routes() -> Router<Arc<Served>> {
    Router::new()
        .route("/{token}/query", get(query))
        .route("/{token}/queries", get(async |headers: HeaderMap| json(&headers, &console::ready_made())))
        .route("/{token}/report", get(report))
        .route("/{token}/tree", get(tree))
        .route("/{token}/code", get(code))
        .route("/{token}/roofline", get(roofline))
        .route("/{token}/derive", get(derive))
        .route("/{token}/span", get(span))
        .route("/{token}/waits", get(waits))
}

/// A statement that reads a file holds its recorder up, which could not write at last.
pub(super) const FOLLOWED: &str = "a trace that is being recorded is not read for this, because its recorder would have to wait: start rpd view without --live";

/// Works an answer out that reads the files, one after the other: all of them, by connections of their own.
async fn of_files<T: Serialize>(
    served: Arc<Served>,
    headers: HeaderMap,
    wrong: StatusCode,
    work: impl FnOnce(&Served, &Timeline, &[(&Connection, Version)]) -> Result<T> + Send + 'static,
) -> Response {
    if served.is_live {
        return failure(StatusCode::CONFLICT, FOLLOWED);
    }
    worked_out(move || {
        let _turn = served.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        let timeline = match timeline(&served) {
            Ok(timeline) => timeline,
            Err(refused) => return refused.into_response(),
        };
        let connections: Vec<_> = match served.pools.iter().map(Pool::get).collect::<Result<_>>() {
            Ok(connections) => connections,
            Err(error) => return failure(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error:#}")),
        };
        let traces: Vec<_> = connections.iter().map(|of| (&of.0, of.1)).collect();
        let worked = work(&served, &timeline, &traces);
        // Exports read in a transaction, and leave its end to who gave them the connection: others get it next.
        for (trace, _) in traces {
            if !trace.is_autocommit()
                && let Err(error) = trace.execute_batch("ROLLBACK")
            {
                return failure(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string());
            }
        }
        match worked {
            Ok(found) => json(&headers, &found),
            Err(error) => failure(wrong, &format!("{error:#}")),
        }
    })
    .await
}

/// One of the traces, which is open.
struct One<'a> {
    timeline: &'a Timeline,
    number: usize,
    source: &'a Source,
    file: &'a Path,
    trace: (&'a Connection, Version),
}

/// Works an answer out that reads the file of one of the traces.
async fn of_file<T: Serialize>(
    served: Arc<Served>,
    headers: HeaderMap,
    (number, wrong): (usize, StatusCode),
    work: impl FnOnce(&Served, &One<'_>) -> Result<T> + Send + 'static,
) -> Response {
    if number >= served.files.len() {
        return failure(StatusCode::NOT_FOUND, "there is no such trace");
    }
    of_files(served, headers, wrong, move |served, timeline, traces| {
        let (source, file, trace) = (&timeline.sources[number], &served.files[number], traces[number]);
        work(served, &One { timeline, number, source, file, trace })
    })
    .await
}

#[derive(Deserialize)]
struct Question {
    q: String,
    /// About the trace with this number.
    #[serde(default)]
    source: usize,
}

async fn query(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(Question { q, source }): Parameters<Question>,
) -> Response {
    of_file(served, headers, (source, StatusCode::BAD_REQUEST), move |_, of| {
        console::answer(of.timeline, (of.number, of.file), &q)
    })
    .await
}

#[derive(Deserialize)]
struct Part {
    which: Option<ReportKind>,
    #[serde(default)]
    of: Of,
    /// ns since the trace's begin; all of it where one is missing.
    from: Option<u64>,
    to: Option<u64>,
    /// Of the trace with this number.
    #[serde(default)]
    source: usize,
}

async fn report(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(Part { which, from, to, source, .. }): Parameters<Part>,
) -> Response {
    let Some(which) = which else { return failure(StatusCode::BAD_REQUEST, "which report?") };
    of_file(served, headers, (source, StatusCode::INTERNAL_SERVER_ERROR), move |_, of| {
        reports::report(of.timeline, (of.number, of.file), of.trace, which, from.zip(to))
    })
    .await
}

/// A tree, and the command that gives the same.
#[derive(Serialize)]
struct OfTree {
    #[serde(flatten)]
    tree: trees::Tree,
    command: String,
}

async fn tree(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(Part { of, from, to, source, .. }): Parameters<Part>,
) -> Response {
    of_file(served, headers, (source, StatusCode::INTERNAL_SERVER_ERROR), move |_, one| {
        let time = from.zip(to);
        let tree = trees::tree(one.trace, reports::region(one.source, time), of)?;
        let option = if of == Of::Cpu { "--time cpu " } else { "" };
        let behind = reports::of_trace(one.source, time);
        Ok(OfTree { tree, command: format!("rpd export collapsed {option}{behind}") })
    })
    .await
}

#[derive(Deserialize)]
struct Named {
    /// Number of a name.
    name: usize,
    /// Of the trace with this number.
    #[serde(default)]
    source: usize,
}

async fn code(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(Named { name, source }): Parameters<Named>,
) -> Response {
    of_file(served, headers, (source, StatusCode::INTERNAL_SERVER_ERROR), move |served, of| {
        let name = of.timeline.names.get(name).map(|name| &*name.text).unwrap_or_default();
        let disassembler = served.disassembler.get().copied();
        let mut code = kernel_code::code(of.file, of.trace.0, name, disassembler)?;
        let pattern = in_shell(&format!("^{}$", regex::escape(name)));
        let file = reports::of_trace(of.source, None);
        code.command = format!("rpd code --disasm --cfg --kernel {pattern} {file}");
        Ok(code)
    })
    .await
}

#[derive(Deserialize)]
struct NamedPeaks {
    /// Number of the name that is emphasised.
    name: usize,
    /// 1e9 floating-point operations per second.
    gflops: Option<f64>,
    /// 1e9 bytes per second.
    gbytes: Option<f64>,
    /// Of the trace with this number.
    #[serde(default)]
    source: usize,
}

async fn roofline(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(NamedPeaks { name, gflops, gbytes, source }): Parameters<NamedPeaks>,
) -> Response {
    of_file(served, headers, (source, StatusCode::BAD_REQUEST), move |_, of| {
        let name = of.timeline.names.get(name).map(|name| &*name.text).unwrap_or_default();
        let shown = reports::of_trace(of.source, None);
        roofline::rooflines((of.file, &shown), of.trace.0, name, &Peaks { gflops, gbytes })
    })
    .await
}

#[derive(Deserialize)]
struct Wanted {
    what: DerivedRows,
}

async fn derive(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(Wanted { what }): Parameters<Wanted>,
) -> Response {
    of_files(served, headers, StatusCode::INTERNAL_SERVER_ERROR, move |_, timeline, traces| {
        derived::derive(timeline, traces, what).map(|worked| worked.groups.clone())
    })
    .await
}

#[derive(Deserialize)]
struct OfEvent {
    event: u32,
}

/// What an event waited for, and what waited for it.
async fn waits(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(OfEvent { event }): Parameters<OfEvent>,
) -> Response {
    of_files(served, headers, StatusCode::NOT_FOUND, move |_, timeline, traces| {
        if event as usize >= timeline.columns.len() {
            bail!("the trace has no such event");
        }
        let number = timeline.source_of(event);
        Ok(derived::waits(timeline, number, traces[number])?.of_event(timeline, event))
    })
    .await
}

#[derive(Deserialize)]
struct PlaceOf {
    row: u32,
    at: u64,
    /// How far from there it may begin or end, ns.
    near: u64,
}

/// The span of a row that was worked out at a time.
async fn span(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(PlaceOf { row, at, near }): Parameters<PlaceOf>,
) -> Response {
    #[derive(Serialize)]
    struct Span {
        start_ns: u64,
        duration_ns: u64,
        event: u32,
        /// Of an allocation.
        bytes: Option<u64>,
    }
    let timeline = match timeline(&served) {
        Ok(timeline) => timeline,
        Err(refused) => return refused.into_response(),
    };
    let found = match timeline.row(row).map(|row| &row.shown) {
        Some(Shown::Picked(picked)) => picked.at(at, near),
        _ => None,
    };
    match found {
        None => failure(StatusCode::NOT_FOUND, "nothing is there"),
        Some((start, end, event)) => {
            let bytes = timeline.derived.life(event).map(|life| life.bytes);
            json(&headers, &Span { start_ns: start, duration_ns: end - start, event, bytes })
        }
    }
}
