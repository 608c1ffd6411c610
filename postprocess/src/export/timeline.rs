//! A trace as viewers of timelines show it: threads with their calls, queues with their operations, arrows between them, values over time.
//!
//! | file | owns |
//! |---|---|
//! | `events.rs` | what a timeline is made of, as formats get it |
//! | `scan.rs` | reading calls, links, operations and sensors, in a thread of its own |
//! | `rows.rs` | the calls, links and operations of a trace, sorted as they are written |
//! | `tracks.rs` | numbers, names and order of processes, threads, GPUs and queues |
//! | `subtracks.rs` | tracks side by side for what overlaps |
//! | `calls.rs`, `ops.rs` | slices of threads; slices of queues |
//! | `frames.rs` | what the GPU did for a marker or the launch of a graph |
//! | `counters.rs` | queue depth, idle GPUs, sensors |
//! | `details.rs` | how a kernel was launched, what was copied |

mod calls;
mod counters;
mod details;
pub(super) mod events;
mod frames;
mod ops;
mod rows;
mod scan;
mod subtracks;
mod tracks;
mod written;

use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::thread;

use anyhow::{Result, anyhow};
use rpd_schema::Version;
use rusqlite::Connection;

use super::elements;
use super::texts::TextCache;
use crate::notes::Notes;
use crate::region::Region;
use calls::write_calls;
use counters::{write_depths, write_sensors};
pub(super) use details::{Details, KnownLaunches, LaunchColumns, OpDetails};
use events::{Events, Facts, TimelineFormat};
pub(super) use frames::graph_handle;
use frames::write_frames;
use ops::write_ops;
use rows::Rows;
use scan::scanner;
pub(super) use tracks::FIRST_GPU;
use tracks::{ThreadTracks, Tracks};
use written::Common;

/// What was exported.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// Calls and markers.
    pub calls: u64,
    /// GPU operations.
    pub ops: u64,
    /// Processes whose calls and markers these are.
    pub processes: u64,
    /// Calls and operations that were left out: their times, threads or queues cannot be.
    pub impossible: u64,
    /// Values of sensors that are no numbers, and were left out.
    pub no_numbers: u64,
    /// Values of sensors that were left out because their times are far from those of all calls and operations.
    pub far_values: u64,
}

/// Writes the part `region` of the trace `file`, which is open as `trace`, to `out` in `format`.
///
/// # Errors
/// When the trace, or a temporary file, cannot be read, when a signal came (`notes`), or when `out` cannot be written: then an
/// [`std::io::Error`] is in the chain.
pub(super) fn write<F: TimelineFormat>(
    file: &Path,
    (trace, version): (&Connection, Version),
    region: &Region,
    notes: &dyn Notes,
    out: &mut (dyn Write + Send),
    format: &F,
) -> Result<Exported> {
    // While a recorder writes, each connection sees the trace of its own moment: rows are the oldest, so that whatever they refer to is there.
    let (scanner, scanned) = scanner(file)?;
    begin_reading(trace)?;
    let selected = region.select(trace, version)?;
    let (rows, (texts, launches)) = thread::scope(|scope| {
        let scan = scope.spawn(|| scanner.read());
        let known = scope.spawn(|| -> Result<_> {
            let texts = TextCache::of_trace(file, version, F::PUT_TEXT)?;
            let (trace, _) = rpd_schema::open_read(file)?;
            begin_reading(&trace)?;
            Ok((texts, KnownLaunches::of(&trace)?))
        });
        let rows = Rows::of(trace, &selected, F::FIRST_GPU, scanned, notes);
        let scan = scan.join().map_err(|_| anyhow!("the rows could not be read"))?;
        let known = known.join().map_err(|_| anyhow!("the texts could not be read"))?;
        // Rows that could not be read are none for those who sort them.
        scan.and_then(|()| Ok((rows?, known?)))
    })?;
    let Rows { calls, launched, ops, depths, tracks, first_ns, last_ns, sensed, mut exported } = rows;
    let Tracks { hosts, mut gpus } = tracks;
    let rows_written = AtomicU64::new(0);
    let common = Common { texts: &texts, notes, written: &rows_written };
    let name = file.to_string_lossy();
    let facts = Facts {
        name: &name,
        first_ns,
        sessions: hosts.sessions(),
        processes: hosts.processes(),
        gpus: gpus.listed(),
    };
    let (head, tail) = format.around(&facts);
    elements::write(out, (&head, F::SEPARATOR, &tail), |makers| {
        let mut maker = 0;
        let [for_calls, for_ops, for_rest] = makers.map(|elements| {
            maker += 1;
            format.events(elements, maker - 1, &facts)
        });
        let mut subtracks = ThreadTracks::of(&hosts);
        let mut for_calls = common.output(for_calls);
        let numbers = gpus.name_all(&mut for_calls.events)?;
        let frames = thread::scope(|scope| {
            let writing = scope.spawn(|| -> Result<()> {
                let (trace, _) = rpd_schema::open_read(file)?;
                begin_reading(&trace)?;
                let mut output = common.output(for_ops);
                write_ops(&mut output, (&hosts, &mut gpus), ops, &mut Details::of(&trace, &launches)?)?;
                output.events.end()
            });
            let frames = write_depths(&mut for_calls, &numbers, depths, last_ns)
                .and_then(|()| write_calls(&mut for_calls, (&hosts, &mut subtracks), calls, launched))
                .and_then(|frames| for_calls.events.end().map(|()| frames));
            // Without its maker the writer takes what the other thread makes.
            drop(for_calls);
            let written = writing.join().map_err(|_| anyhow!("the operations could not be written"))?;
            let frames = frames?;
            written.map(|()| frames)
        })?;
        exported.processes = subtracks.processes();
        let mut output = common.output(for_rest);
        write_frames(&mut output, &mut gpus, frames)?;
        write_sensors(&mut output, &mut gpus, trace, (&selected, sensed), &mut exported)?;
        output.events.end()?;
        Ok(exported)
    })
}

/// Gives every question of a connection the same rows, also while a recorder adds some, and no question a look at the file's locks. Scans
/// need few pages, and what is sorted may be larger than memory.
pub(super) fn begin_reading(trace: &Connection) -> rusqlite::Result<()> {
    trace.execute_batch("PRAGMA temp_store = FILE; PRAGMA cache_size = -4096; BEGIN")
}
