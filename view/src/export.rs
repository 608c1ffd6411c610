//! The timeline as one HTML file: the page with its modules, and the events in columns, for any browser without network.
//!
//! A column is a sequence of numbers, each in seven bits a byte with the lowest first, all of it compressed and in base64, in pieces that
//! a browser takes. The same timeline gives the same bytes. Of a trace with too many events a page has levels (`export/levels.rs`).

mod levels;

use std::io::{Read, Write};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::{Compression, GzBuilder};
use rpd_postprocess::text::counted;
use rpd_postprocess::trace::has_table;
use rpd_schema::Version;
use rpd_schema::text::{shown, text_of};
use rusqlite::Connection;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::names::{EventKind, arguments_table};
use crate::recording::RecordedSpan;
use crate::server::assets::ASSETS;
use crate::timeline::{Facts, Group, Shown, Timeline};

pub use levels::Levels;

/// Base64 in one element, bytes.
const PIECE: usize = 8 << 20;

/// What asks a server, and what answers in its place: of a page with events, of one with levels.
const ASKS: &str = "server.mjs";
const ANSWERS: [&str; 2] = ["embedded.mjs", "levels.mjs"];

/// How the page's modules are known to each other there.
const PREFIX: &str = "rpd/";

/// Bytes of an event in a page, about: a trace that has too many of them is not read.
const EVENT_BYTES: u64 = 5;

/// What a page takes at most, whatever is asked for: a browser takes no larger texts.
pub const MOST_BYTES: u64 = 256 << 20;

/// The arguments of calls: each text once, and for an event the number of its text.
#[derive(Debug, Clone, Default)]
pub struct CallArguments {
    texts: Vec<String>,
    of_event: Vec<(u32, u32)>,
}

impl CallArguments {
    /// Those of the calls of a timeline, from its trace. A marker's are its name.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn read(trace: &Connection, version: Version, timeline: &Timeline) -> Result<CallArguments> {
        let mut found = Vec::new();
        if has_table(trace, "rocpd_api")? {
            let text = shown("S.string");
            let table = arguments_table(version);
            let query = format!(
                "SELECT A.id, {text} FROM rocpd_api A JOIN {table} S ON S.id = A.args_id WHERE S.string != '' ORDER BY A.id"
            );
            let mut rows = trace.prepare(&query)?;
            let mut rows = rows.query([])?;
            while let Some(row) = rows.next()? {
                let Ok(id) = row.get_ref(0)?.as_i64() else { continue };
                let event = timeline.event_of(0, false, id);
                let event = event.filter(|event| timeline.name(*event).kind != EventKind::Marker);
                found.extend(
                    event
                        .map(|event| -> rusqlite::Result<_> {
                            Ok((event, text_of(row.get_ref(1)?).into_owned()))
                        })
                        .transpose()?,
                );
            }
        }
        Ok(CallArguments::of(found))
    }

    /// Those of events, each with its text.
    pub fn of(events: impl IntoIterator<Item = (u32, String)>) -> CallArguments {
        let mut numbers = rustc_hash::FxHashMap::default();
        let mut arguments = CallArguments::default();
        for (event, text) in events {
            let texts = &mut arguments.texts;
            let number = *numbers.entry(text).or_insert_with_key(|text| {
                texts.push(text.clone());
                texts.len() as u32 - 1
            });
            arguments.of_event.push((event, number));
        }
        arguments.of_event.sort_unstable();
        arguments
    }
}

/// A column while it is written.
struct Column {
    name: &'static str,
    packed: flate2::write::GzEncoder<Vec<u8>>,
}

impl Column {
    fn new(name: &'static str) -> Column {
        // No time and no name of a file: the same numbers are the same bytes.
        Column { name, packed: GzBuilder::new().write(Vec::new(), Compression::fast()) }
    }

    fn add(&mut self, mut number: u64) -> Result<()> {
        let mut bytes = [0; 10];
        let mut length = 0;
        loop {
            let is_last = number < 128;
            bytes[length] = (number & 127) as u8 | if is_last { 0 } else { 128 };
            length += 1;
            number >>= 7;
            if is_last {
                return Ok(self.packed.write_all(&bytes[..length])?);
            }
        }
    }

    fn add_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.packed.write_all(bytes)?)
    }

    /// One that may be less than the one before.
    fn add_signed(&mut self, number: i64) -> Result<()> {
        self.add(((number << 1) ^ (number >> 63)).cast_unsigned())
    }

    /// The elements of the page with it.
    fn write(self, page: &mut Vec<u8>) -> Result<()> {
        let text = BASE64.encode(self.packed.finish()?);
        for piece in text.as_bytes().chunks(PIECE) {
            write!(page, "<script type=\"application/octet-stream\" data-column=\"{}\">", self.name)?;
            page.extend_from_slice(piece);
            page.extend_from_slice(b"</script>\n");
        }
        Ok(())
    }
}

/// A subtrack as the page has it.
#[derive(Serialize)]
struct StoredSubtrack {
    events: u32,
    row: Option<u32>,
    is_op: bool,
    is_overfull: bool,
    track: u32,
    /// The number of the GPU, as a search has it.
    gpu: Option<String>,
}

/// What a row of the page shows.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum StoredRow {
    Subtrack(usize),
    Busy(Vec<usize>),
    Counter { values: usize, end: u64, digits: Vec<(usize, String)> },
}

#[derive(Serialize)]
struct Stored<'a> {
    trace: StoredTrace<'a>,
    names: Vec<(&'a str, u8)>,
    kinds: Vec<&'static str>,
    subtracks: Vec<StoredSubtrack>,
    rows: Vec<StoredRow>,
    links: usize,
    arguments: Option<usize>,
}

#[derive(Serialize)]
struct StoredTrace<'a> {
    is_read: bool,
    is_whole: bool,
    is_live: bool,
    version: u64,
    facts: &'a Facts,
    traces: [OneTrace<'a>; 1],
    groups: &'a [Group],
    recording: &'a [RecordedSpan],
    names: usize,
}

#[derive(Serialize)]
struct OneTrace<'a> {
    facts: &'a Facts,
    shift_ns: u64,
}

/// What a page says of the trace of a timeline, with how many names.
fn stored_trace(timeline: &Timeline, names: usize) -> Result<StoredTrace<'_>> {
    let source = timeline.sources.first().context("there is no trace")?;
    Ok(StoredTrace {
        is_read: true,
        is_whole: true,
        is_live: false,
        version: 1,
        facts: &source.facts,
        traces: [OneTrace { facts: &source.facts, shift_ns: 0 }],
        groups: &timeline.groups,
        recording: &timeline.recording,
        names,
    })
}

/// Bytes as MB, no fewer.
fn megabytes(bytes: u64) -> f64 {
    (bytes as f64 / 1e4).ceil() / 1e2
}

/// What to do where a page would be too large; `first_percent` is how much of the trace, from its begin, is known to fit.
pub fn instead(most: u64, first_percent: Option<u64>) -> String {
    let such_as = first_percent.map_or_else(String::new, |percent| format!(", such as --in 0%..{percent}%"));
    format!(
        "more than the {} MB that --max-mb allows; --levels writes what is seen of it from afar, of any number of events, \
         and a smaller part has fewer: --in MARKER, or --start and --end{such_as}",
        megabytes(most)
    )
}

/// How many MB a page would have that is too large, and what to do.
pub fn too_large(bytes: u64, most: u64, first_percent: Option<u64>) -> String {
    format!("the page would have {} MB, {}", megabytes(bytes), instead(most, first_percent))
}

/// Refuses a trace that has too many calls and operations for a page, before it is read: a guess, which a larger `most` lifts.
///
/// # Errors
/// When it has, or cannot be read.
pub fn check_rows(trace: &Connection, most: u64) -> Result<()> {
    let mut rows: u64 = 0;
    for table in ["rocpd_api", "rocpd_op"] {
        if has_table(trace, table)? {
            let count = format!("SELECT count(*) FROM {table}");
            rows += trace.query_row(&count, [], |row| row.get::<_, i64>(0))?.unsigned_abs();
        }
    }
    let bytes = rows.saturating_mul(EVENT_BYTES);
    if bytes > most {
        bail!(
            "the page would have {} MB or more for {} alone, {}",
            megabytes(bytes),
            counted(rows, "call or operation", "calls and operations"),
            instead(most, None)
        );
    }
    Ok(())
}

/// The names that events of a page have, and their numbers in it: a trace of which a part is shown has others too.
struct UsedNames<'a> {
    names: Vec<(&'a str, u8)>,
    /// By their numbers in the timeline; those that are not used have none.
    number_of: Vec<u32>,
}

impl UsedNames<'_> {
    fn of(timeline: &Timeline) -> UsedNames<'_> {
        let mut number_of = vec![u32::MAX; timeline.names.len()];
        for name in timeline.columns.names(0..timeline.columns.len() as u32) {
            number_of[name as usize] = 0;
        }
        let mut names = Vec::new();
        for (name, number) in timeline.names.iter().zip(&mut number_of).filter(|(_, number)| **number == 0) {
            *number = names.len() as u32;
            names.push((&*name.text, name.kind as u8));
        }
        UsedNames { names, number_of }
    }
}

/// The page of a timeline of one trace.
///
/// # Errors
/// When nothing can be written.
pub fn page(timeline: &Timeline, arguments: Option<&CallArguments>) -> Result<Vec<u8>> {
    let UsedNames { names, number_of } = UsedNames::of(timeline);
    let stored = Stored {
        trace: stored_trace(timeline, names.len())?,
        names,
        kinds: EventKind::WORDS.to_vec(),
        subtracks: subtracks(timeline),
        rows: rows(timeline)?,
        links: timeline.links.len(),
        arguments: arguments.map(|arguments| arguments.of_event.len()),
    };
    file_of(&stored, stored_columns(timeline, arguments, &number_of)?, ANSWERS[0])
}

/// The page with data and columns, which the module `answers` reads.
fn file_of(stored: &impl Serialize, columns: Vec<Column>, answers: &str) -> Result<Vec<u8>> {
    let mut data = Vec::new();
    // In JSON these three are in texts only, and there they may be written so: no text ends the element.
    for byte in rpd_escape::json(serde_json::to_string(stored)?).into_bytes() {
        match byte {
            b'<' | b'>' | b'&' => write!(data, "\\u{byte:04x}")?,
            _ => data.push(byte),
        }
    }
    let mut written = Vec::new();
    for column in columns {
        column.write(&mut written)?;
    }
    let (head, tail) = shell(&data, answers)?;
    Ok([head, written, tail].concat())
}

/// What is in a page, for people.
pub fn contents(timeline: &Timeline, arguments: Option<&CallArguments>) -> String {
    let facts = &timeline.sources[0].facts;
    let events = counted(facts.calls + facts.ops, "event", "events");
    match arguments {
        None => format!("{events}; names, and no arguments of calls (--args has them in it)"),
        Some(arguments) => format!(
            "{events} with names, and the arguments of {}",
            counted(arguments.of_event.len() as u64, "call", "calls")
        ),
    }
}

fn subtracks(timeline: &Timeline) -> Vec<StoredSubtrack> {
    let gpu_of_row = |row: Option<u32>| {
        let group = timeline.groups.iter().find(|group| {
            group.is_gpu && group.tracks.iter().any(|track| row.is_some_and(|row| track.rows.contains(&row)))
        });
        group?.device.map(|device| device.to_string())
    };
    let subtracks = timeline.columns.subtracks();
    let gpu_of_track = |track: u32| {
        let mut rows =
            subtracks.iter().zip(&timeline.row_of_subtrack).filter(|(subtrack, _)| subtrack.track == track);
        rows.find_map(|(_, row)| gpu_of_row(*row))
    };
    subtracks
        .iter()
        .zip(&timeline.row_of_subtrack)
        .map(|(subtrack, row)| StoredSubtrack {
            events: subtrack.events.len() as u32,
            row: *row,
            is_op: subtrack.track >= timeline.queues_from,
            is_overfull: subtrack.is_overfull,
            track: subtrack.track,
            gpu: gpu_of_track(subtrack.track),
        })
        .collect()
}

fn rows(timeline: &Timeline) -> Result<Vec<StoredRow>> {
    let subtracks = timeline.columns.subtracks();
    let of_track = |row: u32| -> Vec<usize> {
        let Some(subtrack) = timeline.rows[row as usize].subtrack() else { return Vec::new() };
        (0..subtracks.len()).filter(|number| subtracks[*number].track == subtracks[subtrack].track).collect()
    };
    let mut busy: std::collections::BTreeMap<u32, Vec<usize>> = std::collections::BTreeMap::new();
    for group in &timeline.groups {
        let mut all = Vec::new();
        for track in &group.tracks {
            let of_track = track.rows.first().map(|row| of_track(*row)).unwrap_or_default();
            all.extend_from_slice(&of_track);
            busy.entry(track.busy).or_insert(of_track);
        }
        busy.entry(group.busy).or_insert(all);
    }
    let rows = (0u32..).zip(&timeline.rows).map(|(number, row)| match &row.shown {
        Shown::Subtrack(subtrack) => StoredRow::Subtrack(*subtrack),
        // What is worked out has rows of its own, which are not among these.
        Shown::Busy(_) | Shown::Picked(_) => StoredRow::Busy(busy.remove(&number).unwrap_or_default()),
        Shown::Counter(counter) => {
            let steps = &counter.steps;
            let end = steps.len().checked_sub(1).map_or(0, |last| steps.times(last).1);
            let digits = (0..steps.len())
                .filter(|place| !steps.is_exact(*place))
                .map(|place| (place, steps.digits(place)));
            StoredRow::Counter { values: steps.len(), end, digits: digits.collect() }
        }
    });
    Ok(rows.collect())
}

fn stored_columns(
    timeline: &Timeline,
    arguments: Option<&CallArguments>,
    number_of: &[u32],
) -> Result<Vec<Column>> {
    let events = &timeline.columns;
    let [mut start, mut duration, mut name, mut id, mut link] =
        ["start", "duration", "name", "id", "link"].map(Column::new);
    for subtrack in events.subtracks() {
        let (mut before, mut id_before) = (0, 0);
        for event in subtrack.events.clone() {
            let (begin, end) = events.times(event);
            start.add(begin - before)?;
            duration.add(end - begin)?;
            name.add(number_of[events.name(event) as usize].into())?;
            id.add_signed(events.id(event).wrapping_sub(id_before))?;
            (before, id_before) = (begin, events.id(event));
        }
    }
    let mut before = (0, 0);
    for (call, op) in timeline.links.pairs() {
        link.add(u64::from(call - before.0))?;
        link.add_signed(i64::from(op) - i64::from(before.1))?;
        before = (call, op);
    }
    let [mut since, mut value] = ["since", "value"].map(Column::new);
    for row in &timeline.rows {
        let Shown::Counter(counter) = &row.shown else { continue };
        let mut before = 0;
        for place in 0..counter.steps.len() {
            let begin = counter.steps.times(place).0;
            since.add(begin - before)?;
            value.add_bytes(&counter.steps.number(place).to_le_bytes())?;
            before = begin;
        }
    }
    let mut columns = vec![start, duration, name, id, link, since, value];
    if let Some(CallArguments { texts, of_event }) = arguments {
        let [mut of, mut text] = ["arguments", "texts"].map(Column::new);
        let mut before = 0;
        for (event, number) in of_event {
            of.add(u64::from(event - before))?;
            of.add(u64::from(*number))?;
            before = *event;
        }
        text.add_bytes(&serde_json::to_vec(texts)?)?;
        columns.extend([of, text]);
    }
    Ok(columns)
}

/// A text of the page's files.
fn asset(name: &str) -> Result<String> {
    let found = ASSETS.iter().find(|(known, ..)| *known == name);
    let (_, _, mut content) = *found.with_context(|| format!("the page lacks {name}"))?;
    let mut text = String::new();
    content.read_to_string(&mut text)?;
    Ok(text)
}

/// What an element may have in it, for the page's policy.
fn allowed(text: &str) -> String {
    format!("'sha256-{}'", BASE64.encode(Sha256::digest(text)))
}

/// The page in front of its columns and behind them.
fn shell(data: &[u8], answers: &str) -> Result<(Vec<u8>, Vec<u8>)> {
    let mut modules = std::collections::BTreeMap::new();
    for (name, ..) in ASSETS.iter().filter(|(name, ..)| name.ends_with(".mjs") && !ANSWERS.contains(name)) {
        let file = if *name == ASKS { answers } else { name };
        // A module in an address has no place from which others could be found.
        let text = asset(file)?.replace("from \"./", &format!("from \"{PREFIX}"));
        modules.insert(
            format!("{PREFIX}{name}"),
            format!("data:text/javascript;base64,{}", BASE64.encode(text)),
        );
    }
    let imports = serde_json::to_string(&serde_json::json!({ "imports": modules }))?;
    let start = format!("import \"{PREFIX}app.mjs\";");
    let style = asset("style.css")?;
    let policy = format!(
        "default-src 'none'; script-src {} {} data:; style-src {}; img-src data: blob:; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        allowed(&imports),
        allowed(&start),
        allowed(&style)
    );
    let mut page = asset("index.html")?;
    for (part, instead) in [
        ("<link rel=\"icon\" href=\"icon.svg\">\n", String::new()),
        (
            "<meta charset=\"utf-8\">\n",
            format!(
                "<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
                 <meta name=\"referrer\" content=\"no-referrer\">\n"
            ),
        ),
        ("<link rel=\"stylesheet\" href=\"style.css\">", format!("<style>{style}</style>")),
        ("<script type=\"module\" src=\"app.mjs\"></script>\n", String::new()),
        // It stays where the end of the page is missing, with which it begins.
        (
            "<div id=\"message\" hidden></div>",
            "<div id=\"message\">The page opens. If this stays, it is not whole, or its scripts do not run here.</div>".to_string(),
        ),
    ] {
        if !page.contains(part) {
            bail!("the page lacks {part}");
        }
        page = page.replacen(part, &instead, 1);
    }
    let (head, tail) = page.split_once("</body>").context("the page has no end")?;
    let data = String::from_utf8_lossy(data);
    let head = format!("{head}<script type=\"application/json\" id=\"data\">{data}</script>\n");
    // Behind the data: it is there when the page begins.
    let tail = format!(
        "<script type=\"importmap\">{imports}</script>\n<script type=\"module\">{start}</script>\n</body>{tail}"
    );
    Ok((head.into_bytes(), tail.into_bytes()))
}
