//! The ranks of a dataset: an overview of all of them, and each of them as a trace of its own, which is made in a temporary directory when
//! it is first asked for.
//!
//! A rank's timeline is at `rank/TRACK/SLICE/`, SLICE being `all` or the number of a time slice. Behind that, all is as for a trace that was
//! given.

use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path as FilePath;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rpd_postprocess::dataset::contents::Rank;
use rpd_postprocess::notes::{Notes, SharedNotes};
use rpd_postprocess::text;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tower::ServiceExt;

use super::access::{self, Access};
use super::answers::{self, Parameters, failure, json};
use super::{Opened, Served, answer, listening};
use crate::kernel_code::Disassembler;
use crate::overview::{JobSpan, Overview, OwnClock, PARTS, RankTrack};
use crate::timeline::{Facts, Timeline};

/// Ranks that are open at a time; of those whose traces are made, what was not used for longest is closed.
const MOST_OPEN: usize = 4;

/// A trace that is being made is given up for another one where nobody has asked for it for so long.
pub(super) const ABANDONED: Duration = Duration::from_secs(10);

/// Between two looks whether a trace has been made.
const LOOK: Duration = Duration::from_millis(50);

/// How often somebody who asks for one looks before being told that it takes longer.
const LOOKS: u32 = 40;

/// The page of a trace that is opened at a time shows a part of it: one of so many, and no less than this, ns.
const SEEN: u64 = 20;
const LEAST_SEEN_NS: u64 = 500;

/// Tracks in an answer.
const MOST_TRACKS: usize = 256;

/// A busy share of all.
const WHOLE: u128 = 65_535;

/// The signal that the making of a trace ends by when the server does, SIGTERM.
const ENDED: i32 = 15;

/// What is served, and where.
#[derive(Debug, Clone, Copy)]
pub struct ServingDataset<'a> {
    /// The dataset.
    pub directory: &'a FilePath,
    /// The job; all of them where there is none.
    pub job: Option<&'a str>,
    /// The address of this machine to listen on.
    pub listen: IpAddr,
    /// The port; at 0 the system picks one.
    pub port: u16,
}

/// A server that listens and answers nothing yet.
pub struct DatasetServer {
    listener: std::net::TcpListener,
    pub(super) jobs: Arc<Jobs>,
}

/// What all answers are made of.
pub(super) struct Jobs {
    pub(super) access: Arc<Access>,
    pub(super) overview: Overview,
    name: String,
    disassembler: Disassembler,
    has_ended: Arc<AtomicBool>,
    /// The last one was used last.
    pub(super) open: Mutex<Vec<(Which, Arc<OpenRank>)>>,
    making: Mutex<Vec<JoinHandle<()>>>,
}

/// A track, and the time slice.
type Which = (usize, Option<i64>);

/// A rank that is a trace, or becomes one.
pub(super) struct OpenRank {
    /// Where the trace is, once it is made; it is removed with this.
    pub(super) directory: Mutex<Option<TempDir>>,
    progress: Arc<Making>,
    /// What answers; or why nothing does. None as long as the trace is being made.
    answers: Mutex<Option<Result<Answering, String>>>,
    /// When somebody last asked for it.
    pub(super) asked: Mutex<Instant>,
}

/// What becomes of a request to see a rank.
enum Opening {
    /// It is open, or is being opened.
    Open(Arc<OpenRank>),
    /// As many as may be are being opened, and somebody waits for each.
    Full,
    /// There is no such rank, or it has no such slice.
    Unknown,
}

/// What answers for the trace of a rank.
#[derive(Clone)]
struct Answering {
    router: Router,
    served: Arc<Served>,
    /// What was taken from times of the dataset, ns.
    offset_ns: i64,
}

/// How far the making of a trace has come.
struct Making {
    at: Mutex<String>,
    /// Whether nobody wants it any more.
    is_closed: AtomicBool,
    has_ended: Arc<AtomicBool>,
}

impl Notes for Making {
    fn note(&self, line: std::fmt::Arguments<'_>) {
        self.show(&line.to_string());
    }

    fn show(&self, what: &str) {
        *locked(&self.at) = what.to_string();
    }

    fn signal(&self) -> Option<i32> {
        let ended = [&*self.has_ended, &self.is_closed];
        ended.iter().any(|ended| ended.load(Ordering::Relaxed)).then_some(ENDED)
    }
}

impl OpenRank {
    /// A rank whose trace is to be made, as long as the server that `has_ended` is of runs.
    pub(super) fn of(has_ended: &Arc<AtomicBool>) -> Arc<OpenRank> {
        let progress = Making {
            at: Mutex::default(),
            is_closed: AtomicBool::new(false),
            has_ended: Arc::clone(has_ended),
        };
        Arc::new(OpenRank {
            directory: Mutex::default(),
            progress: Arc::new(progress),
            answers: Mutex::default(),
            asked: Mutex::new(Instant::now()),
        })
    }

    fn is_made(&self) -> bool {
        locked(&self.answers).is_some()
    }

    /// Whether nobody waits for it any more.
    fn is_abandoned(&self) -> bool {
        locked(&self.asked).elapsed() >= ABANDONED
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DatasetServer {
    /// Opens the dataset and listens.
    ///
    /// # Errors
    /// When it is no dataset, has nothing or no such job, or the address cannot be listened on.
    pub fn of(serving: &ServingDataset<'_>, disassembler: Disassembler) -> Result<DatasetServer> {
        let ServingDataset { directory, job, listen, port } = *serving;
        let overview = Overview::of(directory, job)?;
        let (listener, access) = listening(listen, port)?;
        let jobs = Jobs {
            access,
            name: overview.contents.shown(),
            overview,
            disassembler,
            has_ended: Arc::default(),
            open: Mutex::default(),
            making: Mutex::default(),
        };
        Ok(DatasetServer { listener, jobs: Arc::new(jobs) })
    }

    /// Where the page is.
    pub fn url(&self) -> String {
        self.jobs.access.url()
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.jobs.access.address
    }

    /// Reads the dataset and answers, until a signal comes or nobody has asked anything for `idle`. What leads the browser here goes away
    /// when it has come, and what was made of the dataset when this ends.
    ///
    /// # Errors
    /// When connections cannot be taken. A file that cannot be read is said on the page.
    pub fn run(self, idle: Option<Duration>, opened: Option<Opened>) -> Result<()> {
        let DatasetServer { listener, jobs } = self;
        let reader = Arc::clone(&jobs);
        let reading = std::thread::Builder::new()
            .name("rpd-read".into())
            .spawn(move || reader.overview.read())
            .context("cannot start a thread")?;
        let answered = answer(listener, router(&jobs), &jobs.access, idle, opened);
        jobs.end();
        let _ = reading.join();
        answered
    }
}

impl Jobs {
    /// Ends what is being worked on.
    pub(super) fn end(&self) {
        self.overview.end();
        self.has_ended.store(true, Ordering::Relaxed);
        let making: Vec<JoinHandle<()>> = std::mem::take(&mut *locked(&self.making));
        for making in making {
            let _ = making.join();
        }
        locked(&self.open).clear();
    }

    /// Whether the dataset has such a rank, and it has something in that slice.
    fn has(&self, (track, slice): Which) -> bool {
        let Some(track) = self.overview.tracks.get(track) else { return false };
        slice.is_none_or(|slice| {
            self.overview.contents.slice_ns() > 0 && self.overview.rank(track).slices().contains(&slice)
        })
    }

    /// A rank that is open; otherwise the making of its trace begins, if there is room for it.
    fn open(self: &Arc<Jobs>, which: Which) -> Opening {
        let mut open = locked(&self.open);
        if let Some(at) = open.iter().position(|(known, _)| *known == which) {
            let known = open.remove(at);
            let rank = Arc::clone(&known.1);
            open.push(known);
            *locked(&rank.asked) = Instant::now();
            return Opening::Open(rank);
        }
        if !self.has(which) {
            return Opening::Unknown;
        }
        if open.len() >= MOST_OPEN {
            let made = open.iter().position(|(_, rank)| rank.is_made());
            let closed = made.or_else(|| open.iter().position(|(_, rank)| rank.is_abandoned()));
            let Some(closed) = closed else { return Opening::Full };
            let (_, closed) = open.remove(closed);
            closed.progress.is_closed.store(true, Ordering::Relaxed);
        }
        let rank = OpenRank::of(&self.has_ended);
        let (jobs, making) = (Arc::clone(self), Arc::clone(&rank));
        let spawned = std::thread::Builder::new().name("rpd-rank".into()).spawn(move || {
            // Who decodes a damaged file may fail anywhere in it.
            let made = catch_unwind(AssertUnwindSafe(|| jobs.make(which, &making)));
            let made = made.unwrap_or_else(|_| {
                let directory = jobs.overview.contents.in_shell();
                Err(anyhow!("a file is damaged: rpd dataset check {directory} says which"))
            });
            if let Err(why) = made {
                *locked(&making.answers) = Some(Err(format!("{why:#}")));
            }
        });
        match spawned {
            Ok(spawned) => {
                let mut making = locked(&self.making);
                making.retain(|making| !making.is_finished());
                making.push(spawned);
            }
            Err(error) => *locked(&rank.answers) = Some(Err(format!("cannot start a thread: {error}"))),
        }
        open.push((which, Arc::clone(&rank)));
        Opening::Open(rank)
    }

    /// Makes the trace of a rank, and reads it.
    fn make(&self, (track, slice): Which, open: &OpenRank) -> Result<()> {
        let notes: SharedNotes = Arc::clone(&open.progress) as SharedNotes;
        let track = &self.overview.tracks[track];
        let rank = self.overview.rank(track);
        let directory = tempfile::Builder::new().prefix("rpd-view-").tempdir();
        let directory = directory.context("cannot make a temporary directory")?;
        let file = directory.path().join(file_name(&self.overview.jobs[track.job], rank, slice));
        *locked(&open.directory) = Some(directory);
        // Nobody knows the file that it is in.
        let place = text::escape_path(&file);
        let named = |error: Error| {
            anyhow!(format!("{error:#}").replace(&place, &format!("the trace of rank {}", rank.rank)))
        };
        let restored = self.overview.contents.restore(rank, slice, &file, &notes).map_err(named)?;
        let served = Served::of(&[file], false, Arc::clone(&self.access), &*notes);
        let (traces, served) = served.map_err(named)?;
        served.disassembler.get_or_init(|| self.disassembler);
        let router = answers::routes(Arc::clone(&served)).with_state(Arc::clone(&served));
        let answering = Answering { router, served: Arc::clone(&served), offset_ns: restored.offset_ns };
        *locked(&open.answers) = Some(Ok(answering));
        served.read(traces);
        Ok(())
    }
}

/// A name for the trace of a rank, which its page shows.
fn file_name(job: &JobSpan, rank: &Rank, slice: Option<i64>) -> String {
    let safe = |text: &str| -> String {
        let safe = text.chars().filter(|char| char.is_ascii_alphanumeric() || "._-".contains(*char));
        safe.take(60).collect()
    };
    let names = [("job", safe(&job.name)), ("", safe(&rank.node))];
    let mut name = String::new();
    for (what, text) in names.iter().filter(|(_, text)| !text.is_empty()) {
        name += &format!("{what}{text}-");
    }
    let slice = slice.map(|slice| format!("-slice{slice}")).unwrap_or_default();
    format!("{name}rank{}{slice}.rpd", rank.rank)
}

/// All that is answered, behind the checks.
pub(super) fn router(jobs: &Arc<Jobs>) -> Router {
    let checks = axum::middleware::from_fn_with_state(Arc::clone(&jobs.access), access::check);
    Router::new()
        .route("/{token}/", get(async || answers::page("dataset.html")))
        .route("/{token}/ranks", get(ranks))
        .route("/{token}/utilisation", get(utilisation))
        .route("/{token}/failures", get(failures))
        .route("/{token}/alive", get(async || StatusCode::NO_CONTENT))
        .route("/{token}/rank/{track}/{slice}/", get(rank))
        .route("/{token}/rank/{track}/{slice}/{*rest}", get(rank))
        .route("/{token}/{file}", get(async |Path((_, file)): Path<(String, String)>| answers::page(&file)))
        .fallback(async || failure(StatusCode::NOT_FOUND, "not found"))
        .layer(checks)
        .with_state(Arc::clone(jobs))
}

/// The tracks, as the manifests have them.
async fn ranks(State(jobs): State<Arc<Jobs>>, headers: HeaderMap) -> Response {
    #[derive(Serialize)]
    struct Whole<'a> {
        dataset: &'a str,
        parts: usize,
        slice_ns: i64,
        jobs: Vec<OneJob<'a>>,
        tracks: Vec<OneTrack<'a>>,
        findings: Vec<String>,
    }
    #[derive(Serialize)]
    struct OneJob<'a> {
        name: &'a str,
        /// In digits: the page's numbers are not exact enough.
        begin_ns: Option<String>,
        span_ns: u64,
    }
    #[derive(Serialize)]
    struct OneTrack<'a> {
        job: usize,
        node: &'a str,
        rank: i64,
        ops: u64,
        calls: u64,
        parts: usize,
        /// First start and last end, ns since its job's begin.
        span: Option<[i64; 2]>,
        own_clock: Option<&'static str>,
        /// Number and begin of each time slice, ns since its job's begin.
        slices: Vec<(String, i64)>,
    }
    let Overview { contents, jobs: all, tracks, .. } = &jobs.overview;
    let track = |track: &RankTrack| -> OneTrack<'_> {
        let rank = jobs.overview.rank(track);
        let since = |time: i64| time.saturating_sub(track.begin_ns);
        let slice_ns = contents.slice_ns();
        OneTrack {
            job: track.job,
            node: &rank.node,
            rank: rank.rank,
            ops: rank.rows("op"),
            calls: rank.rows("api"),
            parts: rank.parts.len(),
            span: rank.span().map(|(first, last)| [since(first), since(last)]),
            own_clock: track.own_clock.map(|why| match why {
                OwnClock::Unknown => "its trace does not say how its clock fits to those of others",
                OwnClock::Far => "its times are more than a day from those of others",
            }),
            slices: match slice_ns {
                0 => Vec::new(),
                _ => {
                    let slices = rank.slices().into_iter();
                    slices.map(|slice| (slice.to_string(), since(slice.saturating_mul(slice_ns)))).collect()
                }
            },
        }
    };
    let whole = Whole {
        dataset: &jobs.name,
        parts: PARTS,
        slice_ns: contents.slice_ns(),
        jobs: all
            .iter()
            .map(|JobSpan { name, begin_ns, span_ns }| OneJob {
                name,
                begin_ns: begin_ns.map(|begin| begin.to_string()),
                span_ns: *span_ns,
            })
            .collect(),
        tracks: tracks.iter().map(track).collect(),
        findings: contents.findings.iter().map(|finding| finding.in_words()).collect(),
    };
    json(&headers, &whole)
}

/// A time that a trace is opened at, ns since its job's begin.
#[derive(Deserialize)]
struct At {
    at: i64,
}

#[derive(Deserialize)]
struct From {
    from: usize,
}

/// How busy the tracks were that have been read since: for each its number, how many GPUs it used (-1 where it could not be read), how many
/// ns they were busy, how many operations have impossible times, and the busy share of each part of the axis in 65535ths; all little-endian.
async fn utilisation(
    State(jobs): State<Arc<Jobs>>,
    headers: HeaderMap,
    Parameters(From { from }): Parameters<From>,
) -> Response {
    let content = jobs.overview.found(from, |found| {
        let mut content = Vec::new();
        for (number, found) in found.iter().take(MOST_TRACKS) {
            let span_ns = jobs.overview.jobs[jobs.overview.tracks[*number].job].span_ns;
            content.extend((*number as u32).to_le_bytes());
            let Ok(found) = found else {
                content.extend((-1_i32).to_le_bytes());
                content.resize(content.len() + 16 + 2 * PARTS, 0);
                continue;
            };
            content.extend((found.gpus.len() as i32).to_le_bytes());
            content.extend((found.busy_ns as f64).to_le_bytes());
            content.extend((found.impossible as f64).to_le_bytes());
            let whole = u128::from(span_ns) * found.gpus.len() as u128;
            for busy in &found.parts {
                content.extend(share(*busy, whole).to_le_bytes());
            }
        }
        content
    });
    answers::answer(&headers, "application/octet-stream", content)
}

/// The share of a part of the axis, of which there are [`PARTS`] in `whole` ns, in 65535ths; never none where there is something.
fn share(busy: u64, whole: u128) -> u16 {
    if busy == 0 || whole == 0 {
        return 0;
    }
    let share = (u128::from(busy) * PARTS as u128 * WHOLE + whole / 2) / whole;
    u16::try_from(share).unwrap_or(u16::MAX).max(1)
}

/// The tracks that could not be read, and why.
async fn failures(State(jobs): State<Arc<Jobs>>, headers: HeaderMap) -> Response {
    jobs.overview.found(0, |found| {
        let failed =
            |(number, found): &(usize, Result<_, String>)| Some((*number, found.as_ref().err()?.clone()));
        json(&headers, &found.iter().filter_map(failed).collect::<Vec<_>>())
    })
}

/// Answers for the trace of a rank.
async fn rank(State(jobs): State<Arc<Jobs>>, request: Request) -> Response {
    let path = request.uri().path();
    let mut parts = path.splitn(6, '/').skip(3);
    let (track, slice, rest) = (parts.next(), parts.next(), parts.next().unwrap_or_default().to_string());
    let slice = match slice {
        Some("all") => Some(None),
        Some(slice) => slice.parse().ok().map(Some),
        None => None,
    };
    let Some(which) = track.and_then(|track| track.parse().ok()).zip(slice) else {
        return failure(StatusCode::NOT_FOUND, "not found");
    };
    // A page that stays open says so every minute, also for a trace that has been closed to make room.
    if rest == "alive" {
        return StatusCode::NO_CONTENT.into_response();
    }
    let is_page = rest.is_empty();
    let at = Query::<At>::try_from_uri(request.uri()).ok().filter(|_| is_page);
    let mut progress = String::new();
    for look in 0..LOOKS {
        // What has been closed meanwhile is opened again.
        let open = match jobs.open(which) {
            Opening::Open(open) => Some(open),
            Opening::Full => None,
            Opening::Unknown => {
                return failure(StatusCode::NOT_FOUND, "the dataset has no such rank or slice");
            }
        };
        let track = &jobs.overview.tracks[which.0];
        let at = at.as_ref().map(|Query(At { at })| track.begin_ns.saturating_add(*at));
        let answers = open.as_ref().and_then(|open| locked(&open.answers).clone());
        match answers {
            Some(Ok(answering)) => match at.map(|at| (at, answering.served.published.now().timeline)) {
                // The place in it is not known yet.
                Some((_, None)) => {}
                Some((at, Some(Ok(timeline)))) => {
                    return led_to(at.saturating_sub(answering.offset_ns), &timeline);
                }
                Some((_, Some(Err(_)))) | None => {
                    return of_trace(answering.router, &jobs.access.token, &rest, request).await;
                }
            },
            Some(Err(why)) if is_page => return words(StatusCode::INTERNAL_SERVER_ERROR, why, false),
            Some(Err(why)) => return failure(StatusCode::INTERNAL_SERVER_ERROR, &why),
            None => {}
        }
        progress = match open {
            Some(open) => locked(&open.progress.at).clone(),
            None => "First those of others are.".to_string(),
        };
        if look + 1 < LOOKS {
            tokio::time::sleep(LOOK).await;
        }
    }
    if is_page {
        return words(StatusCode::OK, format!("The trace of this rank is being made. {progress}"), true);
    }
    failure(StatusCode::SERVICE_UNAVAILABLE, "the trace of this rank is being made")
}

/// The page of a trace where a time is in the middle, ns of its clock.
fn led_to(at: i64, timeline: &Timeline) -> Response {
    let Facts { first_ns, span_ns, .. } = &timeline.sources[0].facts;
    let since = i128::from(at) - first_ns.parse::<i128>().unwrap_or(0);
    let half = i128::from((span_ns / SEEN / 2).max(LEAST_SEEN_NS));
    let middle = since.clamp(0, i128::from(*span_ns));
    let place = format!("./#t={},{}", middle - half, middle + half);
    (StatusCode::SEE_OTHER, [(header::LOCATION, place)]).into_response()
}

/// The answer for a path behind that of the rank.
async fn of_trace(router: Router, token: &str, rest: &str, request: Request) -> Response {
    let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
    let Ok(uri) = format!("/{token}/{rest}{query}").parse::<Uri>() else {
        return failure(StatusCode::NOT_FOUND, "not found");
    };
    let (mut parts, body) = request.into_parts();
    parts.uri = uri;
    // What was found in the path before does not count any more.
    parts.extensions.clear();
    match router.oneshot(Request::from_parts(parts, body)).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// A page of plain text, which comes again where that is asked for.
fn words(status: StatusCode, text: String, again: bool) -> Response {
    let mut response = Response::new(Body::from(text + "\n"));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if again {
        headers.insert(HeaderName::from_static("refresh"), HeaderValue::from_static("1"));
    }
    response
}
