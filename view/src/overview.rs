//! The ranks of a dataset as tracks: each on the time axis of its job, with how busy its GPUs were.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};
use rpd_postprocess::dataset::contents::{DatasetContents, Rank};
use rpd_postprocess::dataset::utilisation::{Axis, RankUtilisation};
use rpd_postprocess::text;

/// Into how many parts the time of a job is cut.
pub const PARTS: usize = 1024;

/// A rank whose times are further than this from those of its job's others is shown by itself, ns: a day.
const FAR_NS: i64 = 86_400_000_000_000;

/// Jobs that a message names.
const MOST_NAMED: usize = 5;

/// Most threads that read files.
const MOST_THREADS: usize = 8;

/// The time axis of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSpan {
    /// Its id; empty where none is known.
    pub name: String,
    /// Its begin, ns since 1970; none where no rank's clock is known.
    pub begin_ns: Option<i64>,
    /// Its length, ns.
    pub span_ns: u64,
}

/// Why a rank is not on the clock of its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnClock {
    /// Its trace does not say how its clock and the wall clock fit together.
    Unknown,
    /// It is days away from the others.
    Far,
}

/// A rank.
#[derive(Debug, Clone)]
pub struct RankTrack {
    /// Number of its job.
    pub job: usize,
    /// Number of its rank among the contents.
    pub rank: usize,
    /// Where the axis of its job begins, ns as its rows have it.
    pub begin_ns: i64,
    /// Whether it is shown as if it had begun with its job, and why.
    pub own_clock: Option<OwnClock>,
}

/// A track that has been read, and how busy its GPUs were, or why that is not known.
pub type Found = (usize, Result<RankUtilisation, String>);

/// A dataset, or one job of it.
#[derive(Debug)]
pub struct Overview {
    /// What the dataset has.
    pub contents: DatasetContents,
    /// The axes.
    pub jobs: Vec<JobSpan>,
    /// The tracks, those of a job one after the other by their ranks.
    pub tracks: Vec<RankTrack>,
    found: Mutex<Vec<Found>>,
    has_ended: AtomicBool,
}

/// Where the axis of its job begins for a rank, ns as its rows have it, and why that is the rank's own begin.
type Begin = (i64, Option<OwnClock>);

/// Begin and length of the axis of a job, and where it begins for each of its ranks.
fn axis(ranks: &[&Rank]) -> (Option<i64>, u64, Vec<Begin>) {
    let spans: Vec<Option<(i64, i64)>> = ranks.iter().map(|rank| rank.span()).collect();
    let aligned = || ranks.iter().zip(&spans).filter(|(rank, _)| rank.is_aligned());
    let mut middle: Vec<(i64, i64)> = aligned().filter_map(|(_, span)| *span).collect();
    middle.sort_unstable();
    let middle = middle.get(middle.len() / 2).copied();
    let is_near = |span: &(i64, i64)| {
        middle.is_some_and(|middle| {
            span.0 <= middle.1.saturating_add(FAR_NS) && span.1 >= middle.0.saturating_sub(FAR_NS)
        })
    };
    let near: Vec<(i64, i64)> = aligned().filter_map(|(_, span)| *span).filter(is_near).collect();
    let begin = near.iter().map(|span| span.0).min();
    let whole = begin.zip(near.iter().map(|span| span.1).max());
    let tracks: Vec<Begin> = ranks
        .iter()
        .zip(&spans)
        .map(|(rank, span)| {
            let first = span.map_or(0, |span| span.0);
            match begin {
                _ if !rank.is_aligned() => (first, Some(OwnClock::Unknown)),
                Some(begin) if span.is_none_or(|span| is_near(&span)) => (begin, None),
                _ => (first, Some(OwnClock::Far)),
            }
        })
        .collect();
    let own = tracks.iter().zip(&spans).filter(|((_, own), _)| own.is_some());
    let own = own.filter_map(|(_, span)| *span).map(|(first, last)| last.abs_diff(first));
    let span = whole.map(|(begin, end)| end.abs_diff(begin)).into_iter().chain(own).max();
    (begin, span.unwrap_or(0).max(1), tracks)
}

impl Overview {
    /// The dataset in `directory`, or one job of it.
    ///
    /// # Errors
    /// When there is none, it has nothing, or has no such job.
    pub fn of(directory: &Path, job: Option<&str>) -> Result<Overview> {
        let contents = DatasetContents::open(directory)?;
        let shown = contents.shown();
        let names: BTreeSet<&str> = contents.ranks.iter().map(|rank| &*rank.job).collect();
        if names.is_empty() {
            bail!("{}", contents.without_ranks());
        }
        if let Some(job) = job.filter(|job| !names.contains(job)) {
            let named: Vec<String> =
                names.iter().take(MOST_NAMED).map(|name| text::escape(name).into_owned()).collect();
            let more = if names.len() > MOST_NAMED { " and more" } else { "" };
            bail!("{shown} has no job {}: it has {}{more}", text::escape(job), named.join(", "));
        }
        let (mut jobs, mut tracks) = (Vec::new(), Vec::new());
        for name in names.into_iter().filter(|name| job.is_none_or(|job| job == *name)) {
            let of_job: Vec<(usize, &Rank)> =
                contents.ranks.iter().enumerate().filter(|(_, rank)| rank.job == name).collect();
            let ranks: Vec<&Rank> = of_job.iter().map(|(_, rank)| *rank).collect();
            let (begin_ns, span_ns, begins) = axis(&ranks);
            let number = jobs.len();
            tracks.extend(of_job.iter().zip(begins).map(|((rank, _), (begin_ns, own_clock))| RankTrack {
                job: number,
                rank: *rank,
                begin_ns,
                own_clock,
            }));
            jobs.push(JobSpan { name: name.to_string(), begin_ns, span_ns });
        }
        let (found, has_ended) = (Mutex::default(), AtomicBool::new(false));
        Ok(Overview { contents, jobs, tracks, found, has_ended })
    }

    /// The rank of a track.
    #[must_use]
    pub fn rank(&self, track: &RankTrack) -> &Rank {
        &self.contents.ranks[track.rank]
    }

    /// Reads all tracks, several at a time.
    pub fn read(&self) {
        let next = AtomicUsize::new(0);
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        std::thread::scope(|scope| {
            for _ in 0..threads.min(self.tracks.len()) {
                scope.spawn(|| {
                    while let Some((number, track)) = Some(next.fetch_add(1, Ordering::Relaxed))
                        .and_then(|number| Some((number, self.tracks.get(number)?)))
                    {
                        if self.has_ended.load(Ordering::Relaxed) {
                            return;
                        }
                        let found = self.utilisation(track);
                        self.found.lock().unwrap_or_else(PoisonError::into_inner).push((number, found));
                    }
                });
            }
        });
    }

    fn utilisation(&self, track: &RankTrack) -> Result<RankUtilisation, String> {
        let span_ns = self.jobs[track.job].span_ns;
        let axis = Axis { begin_ns: track.begin_ns, span_ns, parts: PARTS };
        // Who decodes a damaged file may fail anywhere in it.
        let read = AssertUnwindSafe(|| self.contents.utilisation(self.rank(track), axis));
        match catch_unwind(read) {
            Ok(found) => found.map_err(|error| format!("{error:#}")),
            Err(_) => {
                Err(format!("a file is damaged: rpd dataset check {} says which", self.contents.in_shell()))
            }
        }
    }

    /// Lets who reads end soon.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Calls `take` with the tracks that have been read, in that order, from the one with this number on.
    pub fn found<T>(&self, from: usize, take: impl FnOnce(&[Found]) -> T) -> T {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        take(found.get(from..).unwrap_or_default())
    }
}
