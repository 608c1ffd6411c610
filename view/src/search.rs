//! Events by what their names say, how long they are, where they run, and what the arguments of calls say.
//!
//! The search looks through the names, which are few, then for events with those names. The texts of the trace are read for arguments only.

use anyhow::{Result, anyhow, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use regex::RegexBuilder;
use rpd_postprocess::trace::has_table;
use rpd_schema::Version;
use rpd_schema::text::{shown, text_of};
use rpd_settings::quantity;
use rusqlite::Connection;
use rustc_hash::FxHashSet;
use serde::Serialize;

use crate::names::{EventKind, arguments_table};
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
    /// Numbers of the names of these.
    pub names: Vec<u32>,
    /// Where not all events of these names are found: a bit for each event of the trace, the lowest of a byte first, in base64.
    pub bits: Option<String>,
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
    /// Words that arguments have.
    arguments: Vec<String>,
}

impl Terms {
    fn of(text: &str) -> Result<Terms> {
        let mut terms = Terms {
            words: Vec::new(),
            pattern: None,
            longer_ns: None,
            shorter_ns: None,
            gpu: None,
            arguments: Vec::new(),
        };
        if text.trim().is_empty() {
            bail!("nothing to look for");
        }
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
            } else if let Some(word) = word.strip_prefix("arg:") {
                terms.arguments.push(word.to_lowercase());
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

/// Reads which events have arguments with words; it is asked only where a search is for arguments.
pub type WithArguments<'a> = &'a dyn Fn(&[String]) -> Result<Vec<u32>>;

/// The events that `text` describes, in no order: words that their names have; `re:` and a regular expression; `dur>1ms`, `dur<10us`, `gpu:0`;
/// `arg:0x7f` for calls whose arguments have a word.
///
/// # Errors
/// What is wrong with the text, and why arguments cannot be read.
pub fn hits(timeline: &Timeline, text: &str, with_arguments: WithArguments<'_>) -> Result<Vec<u32>> {
    let terms = Terms::of(text)?;
    let is_name: Vec<bool> = timeline.names.iter().map(|name| terms.has_name(&name.text)).collect();
    let columns = &timeline.columns;
    let is_track = tracks(timeline, &terms);
    let is_hit =
        |event: u32, name: u32| is_name[name as usize] && terms.has_duration(columns.duration(event));
    if !terms.arguments.is_empty() {
        let mut events = with_arguments(&terms.arguments)?;
        events.retain(|event| {
            is_track[timeline.subtrack(*event).track as usize] && is_hit(*event, columns.name(*event))
        });
        return Ok(events);
    }
    let subtracks = columns.subtracks().iter().filter(|subtrack| is_track[subtrack.track as usize]);
    let mut events = Vec::new();
    for subtrack in subtracks {
        let named = subtrack.events.clone().zip(columns.names(subtrack.events.clone()));
        events.extend(named.filter(|(event, name)| is_hit(*event, *name)).map(|(event, _)| event));
    }
    Ok(events)
}

/// Finds the events that `text` describes, as [`hits`] says.
///
/// # Errors
/// What is wrong with the text, and why arguments cannot be read.
pub fn search(timeline: &Timeline, text: &str, with_arguments: WithArguments<'_>) -> Result<Found> {
    Ok(found(timeline, hits(timeline, text, with_arguments)?))
}

/// What an answer says of hits.
pub fn found(timeline: &Timeline, mut events: Vec<u32>) -> Found {
    let columns = &timeline.columns;
    let mut found = Found { count: events.len() as u64, parts: vec![0; PARTS], ..Found::default() };
    let span = u128::from(timeline.span_ns.max(1));
    let mut is_name = vec![false; timeline.names.len()];
    let mut bits = vec![0_u8; columns.len().div_ceil(8)];
    for event in &events {
        let part = u128::from(columns.times(*event).0) * PARTS as u128 / span;
        found.parts[(part as usize).min(PARTS - 1)] += 1;
        is_name[columns.name(*event) as usize] = true;
        bits[*event as usize / 8] |= 1 << (event % 8);
    }
    let named = columns.names(0..columns.len() as u32).filter(|name| is_name[*name as usize]).count();
    found.bits = (named != events.len()).then(|| BASE64.encode(bits));
    found.names = (0u32..).zip(&is_name).filter(|(_, is)| **is).map(|(name, _)| name).collect();
    let by_start = |event: &u32| (columns.times(*event).0, *event);
    if events.len() > MOST_HITS {
        events.select_nth_unstable_by_key(MOST_HITS, by_start);
        events.truncate(MOST_HITS);
    }
    events.sort_unstable_by_key(by_start);
    found.hits = events.into_iter().map(|event| hit(timeline, event)).collect();
    found
}

/// The calls of a trace whose arguments have all of the words. A marker's are its name.
///
/// # Errors
/// When the trace cannot be read.
pub fn with_arguments(
    (trace, version): (&Connection, Version),
    (timeline, source): (&Timeline, usize),
    words: &[String],
) -> Result<Vec<u32>> {
    let mut events = Vec::new();
    if !has_table(trace, "rocpd_api")? {
        return Ok(events);
    }
    // Texts are few where calls are many: each is looked at once.
    let text = shown("string");
    let mut texts = trace.prepare(&format!("SELECT id, {text} FROM {}", arguments_table(version)))?;
    let mut texts = texts.query([])?;
    let mut found = FxHashSet::default();
    while let Some(row) = texts.next()? {
        let text = text_of(row.get_ref(1)?).to_lowercase();
        if words.iter().all(|word| text.contains(word)) {
            found.extend(row.get_ref(0)?.as_i64());
        }
    }
    let mut calls = trace.prepare("SELECT id, args_id FROM rocpd_api")?;
    let mut calls = calls.query([])?;
    while let Some(row) = calls.next()? {
        let (Ok(id), Ok(text)) = (row.get_ref(0)?.as_i64(), row.get_ref(1)?.as_i64()) else { continue };
        if found.contains(&text) {
            let event = timeline.event_of(source, false, id);
            events.extend(event.filter(|event| timeline.name(*event).kind != EventKind::Marker));
        }
    }
    Ok(events)
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
