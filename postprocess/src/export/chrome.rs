//! Trace Event JSON, which Perfetto and chrome://tracing show and other tools read.
//!
//! | file | owns |
//! |---|---|
//! | `rows.rs` | the calls, links and operations of a trace, scanned once and sorted as they are written |
//! | `tracks.rs` | numbers, names and order of processes, threads, GPUs and queues |
//! | `lanes.rs` | tracks side by side for what overlaps |
//! | `calls.rs`, `ops.rs` | slices of threads; slices of queues |
//! | `frames.rs` | what the GPU did for a marker or the launch of a graph |
//! | `counters.rs` | queue depth, idle GPUs, sensors |
//! | `details.rs` | how a kernel was launched, what was copied |
//! | `elements.rs` | bytes on their way out |
//!
//! Viewers sort events by time but take those of one time in the order of the file: of slices that begin together the longer one stands
//! first, and an arrow stands behind the slice that it leaves. Times are exact: digits of whole nanoseconds, counted from the trace's
//! first event, because viewers take them for floating-point numbers, which have no nanoseconds after 51 days of uptime.
//!
//! Arguments of operations have the names that rocprofv3 gives them, so that what reads its traces reads these.

mod calls;
mod counters;
mod details;
mod elements;
mod frames;
mod lanes;
mod ops;
mod rows;
mod tracks;

use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use anyhow::{Result, anyhow};
use rpd_schema::Version;
use rusqlite::Connection;

use super::texts::{KeptTexts, TraceTexts, escape_into};
use crate::notes::{Notes, look};
use crate::region::Region;
use calls::write_calls;
use counters::{write_depths, write_sensors};
use details::Details;
use elements::{Elements, digits, microseconds};
use frames::write_frames;
use ops::write_ops;
use rows::Rows;
use tracks::{ThreadLanes, Tracks};

/// How the events are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// An object with the events and facts about them.
    Object,
    /// The array of the events alone.
    Array,
}

/// What is exported, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// How the events are arranged.
    pub format: Format,
    /// Whether times are those of the trace's clock, not counted from its first event.
    pub absolute: bool,
    /// What part of the trace.
    pub region: Region,
}

/// What was exported.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// Calls and markers.
    pub calls: u64,
    /// GPU operations.
    pub ops: u64,
    /// Calls and operations that were left out: their times, threads or queues cannot be.
    pub impossible: u64,
    /// Values of sensors that are no numbers, and were left out.
    pub no_numbers: u64,
}

/// The clock of a trace, as the export counts it.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// What is 0 in the export, ns.
    zero_ns: i64,
}

impl Clock {
    /// Appends a time of the trace.
    fn time(self, bytes: &mut Vec<u8>, ns: i64) {
        microseconds(bytes, ns.saturating_sub(self.zero_ns));
    }

    /// Appends `"ts":`, and `"dur":` if there is an end.
    fn slice(self, bytes: &mut Vec<u8>, (start, end): (i64, i64)) {
        bytes.extend_from_slice(b",\"ts\":");
        self.time(bytes, start);
        bytes.extend_from_slice(b",\"dur\":");
        microseconds(bytes, end - start);
    }
}

/// Appends the exact times of a slice as arguments, with rocprofv3's names: many readers round `ts` and `dur`.
fn exact_times(bytes: &mut Vec<u8>, (start, end): (i64, i64)) {
    for (name, ns) in
        [(&b"\"begin_ns\":"[..], start), (b",\"end_ns\":", end), (b",\"delta_ns\":", end - start)]
    {
        bytes.extend_from_slice(name);
        digits(bytes, ns);
    }
}

/// Where events go, and what they are made with.
struct Output<'a, 'trace> {
    elements: Elements,
    texts: TraceTexts<'trace>,
    clock: Clock,
    notes: &'a dyn Notes,
    /// Rows that are written, in steps of [`LOOK`].
    written: &'a AtomicU64,
    /// Rows that this writes until the next look for a signal.
    left: u64,
}

/// Rows between two looks for a signal.
const LOOK: u64 = 1 << 10;

/// Rows between two lines of progress.
const STEP: u64 = 1 << 17;

/// What all outputs of an export have in common.
struct Common<'a> {
    texts: &'a (KeptTexts, Option<KeptTexts>),
    clock: Clock,
    notes: &'a dyn Notes,
    written: &'a AtomicU64,
}

impl Common<'_> {
    /// An output for a thread, which has a connection of its own.
    fn output<'b>(&'b self, elements: Elements, trace: &'b Connection) -> Result<Output<'b, 'b>> {
        let Common { clock, notes, written, .. } = *self;
        let texts = TraceTexts::new(trace, self.texts)?;
        Ok(Output { elements, texts, clock, notes, written, left: 0 })
    }
}

impl Output<'_, '_> {
    /// Counts a row that is written, and fails if a signal came.
    fn row(&mut self) -> Result<()> {
        if self.left == 0 {
            self.left = LOOK;
            let written = self.written.fetch_add(LOOK, Relaxed);
            if written.is_multiple_of(STEP) {
                self.notes.show(&format!("{written} events written"));
            }
            self.notes.tick();
            look(self.notes)?;
        }
        self.left -= 1;
        Ok(())
    }
}

/// Writes what `options` ask for of the trace `file`, which is open as `trace`, to `out`.
///
/// # Errors
/// When the trace, or a temporary file, cannot be read, when a signal came (`notes`), or when `out` cannot be written: then an
/// [`std::io::Error`] is in the chain.
pub fn export(
    file: &Path,
    (trace, version): (&Connection, Version),
    options: &Options,
    notes: &dyn Notes,
    out: &mut (dyn Write + Send),
) -> Result<Exported> {
    begin(trace)?;
    let selected = options.region.select(trace, version)?;
    let (rows, texts) = thread::scope(|scope| {
        let texts = scope.spawn(|| KeptTexts::of_trace(file, version));
        let rows = Rows::of(trace, &selected, notes);
        let texts = texts.join().map_err(|_| anyhow!("the texts could not be read"))?;
        Ok::<_, anyhow::Error>((rows?, texts?))
    })?;
    let Rows { calls, launched, ops, depths, tracks, first_ns, last_ns, mut exported } = rows;
    let Tracks { hosts, mut gpus } = tracks;
    let clock = Clock { zero_ns: if options.absolute { 0 } else { first_ns } };
    let written = AtomicU64::new(0);
    let common = Common { texts: &texts, clock, notes, written: &written };
    let around = around(options.format, file, clock);
    elements::write(out, (&around.0, &around.1), |[for_calls, for_ops, for_rest]| {
        let mut lanes = ThreadLanes::of(&hosts);
        let frames = thread::scope(|scope| {
            let writing = scope.spawn(|| -> Result<()> {
                let (trace, _) = rpd_schema::open_read(file)?;
                begin(&trace)?;
                write_ops(
                    &mut common.output(for_ops, &trace)?,
                    (&hosts, &mut gpus),
                    ops,
                    &mut Details::of(&trace)?,
                )
            });
            let frames = common
                .output(for_calls, trace)
                .and_then(|mut output| write_calls(&mut output, (&hosts, &mut lanes), calls, launched));
            let written = writing.join().map_err(|_| anyhow!("the operations could not be written"))?;
            let frames = frames?;
            written.map(|()| frames)
        })?;
        let mut output = common.output(for_rest, trace)?;
        write_frames(&mut output, &mut gpus, frames)?;
        write_depths(&mut output, &mut gpus, depths, last_ns)?;
        exported.no_numbers = write_sensors(&mut output, &mut gpus, trace, &selected)?;
        hosts.write_names(&lanes, &mut output.elements)?;
        gpus.write_names(&mut output.elements)?;
        Ok(exported)
    })
}

/// Gives every question of a connection the same rows, also while a recorder adds some, and no question a look at the file's locks. Scans
/// need few pages, and what is sorted may be larger than memory.
fn begin(trace: &Connection) -> rusqlite::Result<()> {
    trace.execute_batch("PRAGMA temp_store = FILE; PRAGMA cache_size = -4096; BEGIN")
}

/// What is before the first event and behind the last one.
fn around(format: Format, file: &Path, clock: Clock) -> (Vec<u8>, Vec<u8>) {
    if format == Format::Array {
        return (b"[".to_vec(), b"\n]\n".to_vec());
    }
    let mut tail = b"\n],\n\"displayTimeUnit\":\"ns\",\"metadata\":{\"tool\":\"rpd ".to_vec();
    tail.extend_from_slice(env!("CARGO_PKG_VERSION").as_bytes());
    tail.extend_from_slice(b"\",\"source\":\"");
    escape_into(&mut tail, &file.to_string_lossy());
    tail.extend_from_slice(b"\",\"clock\":\"CLOCK_MONOTONIC\",\"zero_ns\":");
    digits(&mut tail, clock.zero_ns);
    tail.extend_from_slice(b"}}\n");
    (b"{\"traceEvents\":[".to_vec(), tail)
}
