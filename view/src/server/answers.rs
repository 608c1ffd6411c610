//! The page's questions, and the answers.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Path, Query, Request, State};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::compared::Alignment;
use super::published::Now;
use super::{Searched, Served, assets, panes};
use crate::delta;
use crate::details;
use crate::pool::Pool;
use crate::recording::RecordedSpan;
use crate::search;
use crate::statistics::{self, By, Order, Selection, Sort, Whence};
use crate::tiles::{self, Asked};
use crate::timeline::{Facts, Group, Row, Source, Timeline};

/// Answers that are longer are compressed: a tunnel looks like this machine.
const PLAIN_BYTES: usize = 64 << 10;

/// Says of what was shown an answer is.
const VERSION: HeaderName = HeaderName::from_static("rpd-version");

/// A page that waits for a trace to grow is answered after this all the same.
const MOST_PATIENCE: Duration = Duration::from_secs(20);

/// Names in an answer.
const MOST_NAMES: usize = 4096;

/// Names in a table, where all are not asked for.
const MOST_ROWS: usize = 500;

/// The longest name that is sent, bytes; all of it is among the details.
const NAME_BYTES: usize = 512;

/// What can be asked. That the first part of a path is the token, is checked before.
pub(super) fn routes(served: Arc<Served>) -> Router<Arc<Served>> {
    let numbered = axum::middleware::from_fn_with_state(served, numbered);
    Router::new()
        .route("/{token}/trace", get(trace))
        .route("/{token}/tiles", get(tiles))
        .route("/{token}/names", get(names))
        .route("/{token}/value", get(value))
        .route("/{token}/event", get(event))
        .route("/{token}/search", get(find))
        .route("/{token}/statistics", get(statistics))
        .route("/{token}/next", get(next_of_name))
        .route("/{token}/hit", get(next_hit))
        .route("/{token}/events", get(events))
        .route("/{token}/deltas", get(deltas))
        .merge(panes::routes())
        .route("/{token}/", get(async || page("index.html")))
        .route("/{token}/alive", get(async || StatusCode::NO_CONTENT))
        .route_layer(numbered)
        .route("/{token}/grown", get(grown))
        .route("/{token}/align", get(align))
        .route("/{token}/{file}", get(async |Path((_, file)): Path<(String, String)>| page(&file)))
}

pub(super) fn page(file: &str) -> Response {
    match assets::asset(file) {
        Some((kind, content)) => ([(header::CONTENT_TYPE, kind)], content).into_response(),
        None => failure(StatusCode::NOT_FOUND, "not found"),
    }
}

pub(super) fn failure(status: StatusCode, why: &str) -> Response {
    #[derive(Serialize)]
    struct Failure<'a> {
        error: &'a str,
    }
    (status, json(&HeaderMap::new(), &Failure { error: why })).into_response()
}

/// The parameters of a question; what is wrong with them is said as a failure.
pub(super) struct Parameters<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Parameters<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let query: Result<Query<T>, QueryRejection> = Query::from_request_parts(parts, state).await;
        match query {
            Ok(Query(parameters)) => Ok(Parameters(parameters)),
            Err(_) => Err(failure(StatusCode::BAD_REQUEST, "the parameters are not as they should be")),
        }
    }
}

/// An answer of this type, compressed where it is long and the browser takes that.
pub(super) fn answer(headers: &HeaderMap, kind: &'static str, content: Vec<u8>) -> Response {
    let takes = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let takes_gzip = takes.is_some_and(|takes| takes.split(',').any(|one| one.trim() == "gzip"));
    let mut response = Response::new(Body::empty());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let mut body = content;
    if takes_gzip && body.len() > PLAIN_BYTES {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        if let Ok(packed) = encoder.write_all(&body).and_then(|()| encoder.finish()) {
            body = packed;
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
    }
    *response.body_mut() = Body::from(body);
    response
}

pub(super) fn json(headers: &HeaderMap, content: &impl Serialize) -> Response {
    match serde_json::to_vec(content) {
        Ok(content) => answer(headers, "application/json", content),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Why there is no answer.
pub(super) struct Refused(pub(super) StatusCode, pub(super) String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        failure(self.0, &self.1)
    }
}

/// The timeline, once there is one.
pub(super) fn timeline(served: &Served) -> Result<Arc<Timeline>, Refused> {
    match served.published.now().timeline {
        Some(Ok(timeline)) => Ok(timeline),
        Some(Err(error)) => Err(Refused(StatusCode::INTERNAL_SERVER_ERROR, error)),
        None => Err(Refused(StatusCode::SERVICE_UNAVAILABLE, "the trace is still being read".to_string())),
    }
}

/// Works out an answer beside the thread that takes questions.
pub(super) async fn worked_out(work: impl FnOnce() -> Response + Send + 'static) -> Response {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|_| failure(StatusCode::INTERNAL_SERVER_ERROR, "the answer could not be worked out"))
}

/// The trace, or how far its reading has come.
async fn trace(State(served): State<Arc<Served>>, headers: HeaderMap) -> Response {
    #[derive(Serialize)]
    struct Whole<'a> {
        #[serde(flatten)]
        growth: Growth,
        /// Of the first trace.
        facts: &'a Facts,
        traces: Vec<OneTrace<'a>>,
        groups: &'a [Group],
        recording: &'a [RecordedSpan],
        names: usize,
        bytes_of_levels: usize,
    }
    /// A trace, and where it begins, ns.
    #[derive(Serialize)]
    struct OneTrace<'a> {
        facts: &'a Facts,
        shift_ns: u64,
    }
    let now = served.published.now();
    let growth = Growth::of(&served, &now);
    match now.timeline {
        None => json(&headers, &growth),
        Some(Err(error)) => failure(StatusCode::INTERNAL_SERVER_ERROR, &error),
        Some(Ok(timeline)) => json(
            &headers,
            &Whole {
                growth,
                facts: &timeline.sources[0].facts,
                traces: timeline
                    .sources
                    .iter()
                    .map(|Source { facts, shift_ns, .. }| OneTrace { facts, shift_ns: *shift_ns })
                    .collect(),
                groups: &timeline.groups,
                recording: &timeline.recording,
                names: timeline.names.len(),
                bytes_of_levels: timeline.rows.iter().map(Row::bytes).sum(),
            },
        ),
    }
}

/// How far the reading has come.
#[derive(Serialize)]
struct Growth {
    /// Whether there is something to be shown.
    is_read: bool,
    /// Whether that is all of the trace.
    is_whole: bool,
    /// Whether the trace may grow.
    is_live: bool,
    /// Number of what is shown.
    version: u64,
    rows: u64,
    of: u64,
    /// Why it grows no more.
    note: Option<String>,
}

impl Growth {
    fn of(served: &Served, now: &Now) -> Growth {
        Growth {
            is_read: now.timeline.is_some(),
            is_whole: now.is_whole,
            is_live: served.is_live,
            version: now.version,
            rows: served.progress.rows.load(Ordering::Relaxed),
            of: served.progress.of.load(Ordering::Relaxed),
            note: now.note.clone(),
        }
    }
}

#[derive(Deserialize)]
struct Known {
    version: u64,
}

/// Waits until something else is shown than what the page knows.
async fn grown(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(Known { version }): Parameters<Known>,
) -> Response {
    // A page that waits is a page that asks.
    let _ = tokio::time::timeout(MOST_PATIENCE, served.published.other_than(version)).await;
    served.access.touch();
    json(&headers, &Growth::of(&served, &served.published.now()))
}

/// Lays the second trace where it is to be.
async fn align(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(alignment): Parameters<Alignment>,
) -> Response {
    worked_out(move || {
        let timeline = &*match timeline(&served) {
            Ok(timeline) => timeline,
            Err(refused) => return refused.into_response(),
        };
        if timeline.sources.len() < 2 {
            return failure(StatusCode::NOT_FOUND, "there is one trace only");
        }
        match served.compared.aligned(timeline, &alignment) {
            Ok(timeline) => {
                served.published.put(Ok(timeline), true);
                json(&headers, &Growth::of(&served, &served.published.now()))
            }
            Err(error) => failure(StatusCode::BAD_REQUEST, &format!("{error:#}")),
        }
    })
    .await
}

/// Says to the page which of what was shown an answer is from; 0 where that changed meanwhile.
async fn numbered(State(served): State<Arc<Served>>, request: Request, next: Next) -> Response {
    let before = served.published.version();
    let mut response = next.run(request).await;
    let version = if served.published.version() == before { before } else { 0 };
    response.headers_mut().insert(VERSION, HeaderValue::from(version));
    response
}

#[derive(Deserialize)]
struct TilesOf {
    level: u8,
    first: u64,
    tiles: u32,
    /// Numbers with commas between them.
    rows: String,
}

/// Numbers with commas between them.
fn numbers(text: &str) -> Option<Vec<u32>> {
    text.split(',').filter(|number| !number.is_empty()).map(|number| number.parse().ok()).collect()
}

async fn tiles(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(TilesOf { level, first, tiles, rows }): Parameters<TilesOf>,
) -> Response {
    worked_out(move || {
        let timeline = &*match timeline(&served) {
            Ok(timeline) => timeline,
            Err(refused) => return refused.into_response(),
        };
        let Some(rows) = numbers(&rows) else { return failure(StatusCode::BAD_REQUEST, "rows are numbers") };
        let asked = Asked { level, first, tiles, rows };
        if let Some(fault) = asked.fault() {
            return failure(StatusCode::BAD_REQUEST, fault);
        }
        answer(&headers, "application/octet-stream", tiles::tiles(timeline, &asked))
    })
    .await
}

#[derive(Deserialize)]
struct ValueOf {
    row: u32,
    at: u64,
    /// What one pixel shows.
    from: u64,
    to: u64,
}

/// The value of a counter at a time, and what it is in the time around that. Values are texts: numbers of the page are not exact so far.
async fn value(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(ValueOf { row, at, from, to }): Parameters<ValueOf>,
) -> Response {
    #[derive(Serialize)]
    struct Held {
        value: String,
        since_ns: u64,
        until_ns: u64,
    }
    #[derive(Serialize)]
    struct Found {
        held: Option<Held>,
        values: u64,
        least: Option<String>,
        greatest: Option<String>,
    }
    worked_out(move || {
        let timeline = &*match timeline(&served) {
            Ok(timeline) => timeline,
            Err(refused) => return refused.into_response(),
        };
        let Some(steps) = timeline.counter(row).map(|counter| &counter.steps) else {
            return failure(StatusCode::NOT_FOUND, "the trace has no such counter");
        };
        let held = steps.at(at).map(|place| {
            let (since_ns, until_ns) = steps.times(place);
            Held { value: steps.digits(place), since_ns, until_ns }
        });
        let within = steps.within(from, to.max(from));
        let values = within.len() as u64;
        let (least, greatest) = steps.extremes(within).unzip();
        let digits = |place: Option<usize>| place.map(|place| steps.digits(place));
        json(&headers, &Found { held, values, least: digits(least), greatest: digits(greatest) })
    })
    .await
}

#[derive(Deserialize)]
struct NamesFrom {
    from: usize,
}

async fn names(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(NamesFrom { from }): Parameters<NamesFrom>,
) -> Response {
    let timeline = match timeline(&served) {
        Ok(timeline) => timeline,
        Err(refused) => return refused.into_response(),
    };
    let names = timeline.names.iter().skip(from).take(MOST_NAMES);
    let names: Vec<(String, u8)> = names.map(|name| (cut(&name.text), name.kind as u8)).collect();
    json(&headers, &names)
}

/// A name that is not too long to be sent.
fn cut(text: &str) -> String {
    if text.len() <= NAME_BYTES {
        return text.to_string();
    }
    let end = (0..=NAME_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &text[..end])
}

#[derive(Deserialize)]
struct WhichEvent {
    /// Its number.
    event: Option<u32>,
    /// Otherwise the id of an operation, or of a call.
    op: Option<i64>,
    call: Option<i64>,
    /// Of the trace with this number.
    #[serde(default)]
    source: usize,
    /// Otherwise the first of this row.
    row: Option<u32>,
    /// How many events further, in its row.
    #[serde(default, rename = "move")]
    further: i64,
    /// Whether nothing is wanted of the file.
    brief: Option<bool>,
}

async fn event(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(WhichEvent { event, op, call, source, row, further, brief }): Parameters<WhichEvent>,
) -> Response {
    worked_out(move || {
        let timeline = &*match timeline(&served) {
            Ok(timeline) => timeline,
            Err(refused) => return refused.into_response(),
        };
        let event = event
            .or_else(|| timeline.event_of(source, true, op?))
            .or_else(|| timeline.event_of(source, false, call?))
            .or_else(|| timeline.first_of(row?))
            .and_then(|event| timeline.further(event, further));
        let Some(mut found) = event.and_then(|event| details::brief(timeline, event)) else {
            return failure(StatusCode::NOT_FOUND, "the trace has no such event");
        };
        if brief != Some(true) {
            let completed = served.pool(found.source).and_then(Pool::get).and_then(|connection| {
                let (trace, version) = &*connection;
                details::complete(&mut found, timeline, (trace, *version))?;
                details::remember(&mut found, timeline, (trace, *version))
            });
            if let Err(error) = completed {
                return failure(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error:#}"));
            }
        }
        json(&headers, &found)
    })
    .await
}

#[derive(Deserialize)]
struct Text {
    q: String,
}

/// The hits of a search. Those of the last one are kept: who goes from hit to hit asks for the same each time.
fn hits(served: &Served, timeline: &Arc<Timeline>, q: &str) -> Result<Arc<Vec<u32>>> {
    let searched = || served.searched.lock().unwrap_or_else(PoisonError::into_inner);
    let is_same =
        |last: &&Searched| std::ptr::eq(last.timeline.as_ptr(), Arc::as_ptr(timeline)) && last.text == q;
    if let Some(last) = searched().as_ref().filter(is_same) {
        return Ok(Arc::clone(&last.hits));
    }
    let with_arguments = |words: &[String]| {
        if served.is_live {
            bail!(panes::FOLLOWED);
        }
        let mut events = Vec::new();
        for (source, pool) in served.pools.iter().enumerate() {
            let (trace, version) = &*pool.get()?;
            events.extend(search::with_arguments((trace, *version), (timeline, source), words)?);
        }
        Ok(events)
    };
    let hits = Arc::new(search::hits(timeline, q, &with_arguments)?);
    *searched() =
        Some(Searched { timeline: Arc::downgrade(timeline), text: q.to_string(), hits: Arc::clone(&hits) });
    Ok(hits)
}

/// Works out an answer about the hits of a search.
async fn of_hits(
    served: Arc<Served>,
    q: String,
    work: impl FnOnce(&Timeline, &Arc<Vec<u32>>) -> Response + Send + 'static,
) -> Response {
    worked_out(move || {
        let timeline = match timeline(&served) {
            Ok(timeline) => timeline,
            Err(refused) => return refused.into_response(),
        };
        match hits(&served, &timeline, &q) {
            Ok(hits) => work(&timeline, &hits),
            Err(error) => failure(StatusCode::BAD_REQUEST, &error.to_string()),
        }
    })
    .await
}

async fn find(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(Text { q }): Parameters<Text>,
) -> Response {
    of_hits(served, q, move |timeline, hits| json(&headers, &search::found(timeline, hits.to_vec()))).await
}

/// The hit that begins next, or before.
async fn next_hit(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(Text { q }): Parameters<Text>,
    Parameters(whence): Parameters<Whence>,
) -> Response {
    of_hits(served, q, move |timeline, hits| match statistics::step(timeline, hits, whence) {
        Some(next) => json(&headers, &next),
        None => failure(StatusCode::NOT_FOUND, "the search has no hits"),
    })
    .await
}

#[derive(Deserialize)]
struct Selected {
    from: u64,
    to: u64,
    /// Numbers with commas between them; all where there is none.
    rows: Option<String>,
    #[serde(default)]
    sort: Sort,
    #[serde(default)]
    q: String,
    /// The order of the names.
    #[serde(default)]
    by: By,
    #[serde(default)]
    ascending: bool,
    /// Whether all names are wanted, for a file.
    #[serde(default)]
    all: bool,
    /// The order of events one by one.
    #[serde(default)]
    order: Order,
    /// Number of the trace; all where there is none.
    source: Option<usize>,
}

/// Which event is wanted next.
#[derive(Deserialize)]
struct OfName {
    name: Option<u32>,
}

/// Works out an answer about a selection.
async fn of_selection(
    served: Arc<Served>,
    asked: Selected,
    work: impl FnOnce(&Timeline, &Selection<'_>, &Selected) -> Response + Send + 'static,
) -> Response {
    worked_out(move || {
        let timeline = &*match timeline(&served) {
            Ok(timeline) => timeline,
            Err(refused) => return refused.into_response(),
        };
        let rows = match asked.rows.as_deref().map(numbers) {
            None => None,
            Some(Some(rows)) => Some(rows),
            Some(None) => return failure(StatusCode::BAD_REQUEST, "rows are numbers"),
        };
        let (from, to) = (asked.from, asked.to.max(asked.from));
        let selection = Selection {
            rows: rows.as_deref(),
            from,
            to,
            sort: asked.sort,
            words: &asked.q,
            source: asked.source,
        };
        work(timeline, &selection, &asked)
    })
    .await
}

async fn statistics(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(asked): Parameters<Selected>,
) -> Response {
    of_selection(served, asked, move |timeline, selection, asked| {
        let mut found = statistics::statistics(timeline, selection, asked.by, asked.ascending);
        if !asked.all {
            found.names.truncate(MOST_ROWS);
        }
        json(&headers, &found)
    })
    .await
}

async fn events(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(asked): Parameters<Selected>,
) -> Response {
    of_selection(served, asked, move |timeline, selection, asked| {
        json(&headers, &statistics::events(timeline, selection, asked.order, asked.ascending))
    })
    .await
}

async fn deltas(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(asked): Parameters<Selected>,
) -> Response {
    of_selection(served, asked, move |timeline, selection, _| match timeline.sources.len() {
        2 => json(&headers, &delta::deltas(timeline, selection)),
        _ => failure(StatusCode::NOT_FOUND, "there is one trace only"),
    })
    .await
}

async fn next_of_name(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    Parameters(asked): Parameters<Selected>,
    Parameters(OfName { name }): Parameters<OfName>,
    Parameters(whence): Parameters<Whence>,
) -> Response {
    of_selection(served, asked, move |timeline, selection, _| {
        match name.and_then(|name| statistics::next(timeline, selection, name, whence)) {
            Some(next) => json(&headers, &next),
            None => failure(StatusCode::NOT_FOUND, "no event of the selection has that name"),
        }
    })
    .await
}
