//! Events by what their names say.
//!
//! The search looks through the names, which are few, then for events with those names. It never reads the texts of the trace.

use anyhow::{Result, anyhow, bail};
use regex::RegexBuilder;
use rpd_settings::quantity;
use serde::Serialize;

use crate::timeline::{Group, Timeline};

/// Hits in an answer.
const MOST_HITS: usize = 2000;

/// Parts of the trace for which hits are counted.
const PARTS: usize = 1024;

/// Bytes that a pattern may take, compiled.
const PATTERN_BYTES: usize = 1 << 20;

/// One event that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// The event.
    pub event: u32,
    /// Its row; none where it has no row.
    pub row: Option<u32>,
    /// Its start, ns.
    pub start_ns: u64,
    /// Its duration, ns.
    pub duration_ns: u64,
    /// Number of its name.
    pub name: u32,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Found {
    /// How many events.
    pub count: u64,
    /// Numbers of names that match.
    pub names: Vec<u32>,
    /// The first of the events by start.
    pub hits: Vec<Hit>,
    /// How many begin in each of so many equal parts of the trace.
    pub parts: Vec<u32>,
}

/// What is looked for.
#[derive(Debug)]
struct Terms {
    words: Vec<String>,
    pattern: Option<regex::Regex>,
    longer_ns: Option<u64>,
    shorter_ns: Option<u64>,
    gpu: Option<String>,
}

impl Terms {
    fn of(text: &str) -> Result<Terms> {
        let mut terms =
            Terms { words: Vec::new(), pattern: None, longer_ns: None, shorter_ns: None, gpu: None };
        let time = |text: &str| {
            let ns = quantity::time_ns(text, 1);
            ns.map(i64::unsigned_abs).ok_or_else(|| anyhow!("{text} is not {}", quantity::TIMES))
        };
        if let Some(pattern) = text.trim().strip_prefix("re:") {
            let pattern = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build();
            terms.pattern = Some(pattern.map_err(|_| anyhow!("that is no regular expression"))?);
            return Ok(terms);
        }
        for word in text.split_whitespace() {
            if let Some(ns) = word.strip_prefix("dur>") {
                terms.longer_ns = Some(time(ns)?);
            } else if let Some(ns) = word.strip_prefix("dur<") {
                terms.shorter_ns = Some(time(ns)?);
            } else if let Some(gpu) = word.strip_prefix("gpu:") {
                terms.gpu = Some(gpu.to_string());
            } else {
                terms.words.push(word.to_lowercase());
            }
        }
        Ok(terms)
    }

    fn has_name(&self, name: &str) -> bool {
        if let Some(pattern) = &self.pattern {
            return pattern.is_match(name);
        }
        let name = name.to_lowercase();
        self.words.iter().all(|word| name.contains(word))
    }

    fn has_duration(&self, ns: u64) -> bool {
        self.longer_ns.is_none_or(|longer| ns > longer) && self.shorter_ns.is_none_or(|shorter| ns < shorter)
    }
}

/// Finds the events that `text` describes: words that their names have; `re:` and a regular expression; `dur>1ms`, `dur<10us`, `gpu:0`.
///
/// # Errors
/// What is wrong with the text.
pub fn search(timeline: &Timeline, text: &str) -> Result<Found> {
    let terms = Terms::of(text)?;
    if text.trim().is_empty() {
        bail!("nothing to look for");
    }
    let is_name: Vec<bool> = timeline.names.iter().map(|name| terms.has_name(&name.text)).collect();
    let columns = &timeline.columns;
    let is_track = tracks(timeline, &terms);
    let mut events = Vec::new();
    for subtrack in columns.subtracks().iter().filter(|subtrack| is_track[subtrack.track as usize]) {
        let found = subtrack.events.clone().filter(|event| {
            is_name[columns.name(*event) as usize] && terms.has_duration(columns.duration(*event))
        });
        events.extend(found);
    }
    let mut found = Found { count: events.len() as u64, parts: vec![0; PARTS], ..Found::default() };
    let span = u128::from(timeline.span_ns.max(1));
    for event in &events {
        let part = u128::from(columns.times(*event).0) * PARTS as u128 / span;
        found.parts[(part as usize).min(PARTS - 1)] += 1;
    }
    let by_start = |event: &u32| (columns.times(*event).0, *event);
    if events.len() > MOST_HITS {
        events.select_nth_unstable_by_key(MOST_HITS, by_start);
        events.truncate(MOST_HITS);
    }
    events.sort_unstable_by_key(by_start);
    found.hits = events.into_iter().map(|event| hit(timeline, event)).collect();
    found.names = (0u32..).zip(&is_name).filter(|(_, is)| **is).map(|(name, _)| name).collect();
    Ok(found)
}

/// An event as answers have it.
pub fn hit(timeline: &Timeline, event: u32) -> Hit {
    let (start, end) = timeline.columns.times(event);
    Hit {
        event,
        row: timeline.row_of_subtrack[timeline.columns.subtrack_of(event)],
        start_ns: start,
        duration_ns: end - start,
        name: timeline.columns.name(event),
    }
}

/// Which tracks are looked at, by number.
fn tracks(timeline: &Timeline, terms: &Terms) -> Vec<bool> {
    let count = timeline.columns.subtracks().last().map_or(0, |subtrack| subtrack.track as usize + 1);
    let Some(gpu) = &terms.gpu else { return vec![true; count] };
    let is_gpu =
        |group: &&Group| group.is_gpu && group.device.is_some_and(|device| device.to_string() == *gpu);
    let mut is_track = vec![false; count];
    for track in timeline.groups.iter().filter(is_gpu).flat_map(|group| &group.tracks) {
        for row in &track.rows {
            if let crate::timeline::Shown::Subtrack(subtrack) = timeline.rows[*row as usize].shown {
                is_track[timeline.columns.subtracks()[subtrack].track as usize] = true;
            }
        }
    }
    is_track
}
