//! The thread that reads: all of one trace or of two, or one that grows.
//!
//! A recorder cannot commit while a reader holds the file, and waits for it. So of a trace that grows only a few thousand rows are read at once,
//! and between two statements the file is left alone for three times as long.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rpd_schema::Version;
use rusqlite::{Connection, ErrorCode};

use super::Served;
use crate::gathering::{Gathered, Gatherer};
use crate::reading::{GatheredPart, assemble, gather};
use crate::timeline::Timeline;

/// Between two looks whether the trace has grown.
const TICK: Duration = Duration::from_millis(250);

/// How long a look waits for a recorder that writes; then it is left for the next time.
const BUSY: Duration = Duration::from_millis(100);

/// Rows that are read in one statement.
const ROWS: u32 = 20_000;

/// The file is left alone for so many times as long as it was read.
const REST: u32 = 3;

/// A trace that is open.
pub(super) type OpenedTrace = (PathBuf, Connection, Version);

/// Reads traces, of which one or two are given, to their ends.
pub(super) fn whole(traces: Vec<OpenedTrace>, served: &Arc<Served>) {
    let is_alone = traces.len() == 1;
    let mut rough = |gathered: &Gathered| {
        // A part may begin later than the trace, and all of it is shown soon.
        if is_alone && let Ok(timeline) = shown(gathered.clone()) {
            served.published.put(Ok(timeline), false);
        }
    };
    let gathered: Result<Vec<Gathered>> = traces
        .into_iter()
        .map(|(file, trace, version)| gather(&file, (&trace, version), &served.progress, &mut rough))
        .collect();
    let timeline = gathered.and_then(|mut gathered| match gathered.len() {
        1 => shown(gathered.remove(0)),
        _ => served.compared.begin(gathered),
    });
    served.published.put(timeline.map_err(|error| format!("{error:#}")), true);
}

fn shown(gathered: Gathered) -> Result<Timeline> {
    let file = gathered.file.clone();
    assemble(vec![GatheredPart { gathered, shift_ns: 0 }]).with_context(|| format!("cannot read {file}"))
}

/// Whether somebody writes, and all that is to be done is to come again.
fn is_busy(error: &anyhow::Error) -> bool {
    let sqlite = error.chain().find_map(|cause| cause.downcast_ref::<rusqlite::Error>());
    let code = sqlite.and_then(rusqlite::Error::sqlite_error_code);
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Reads a trace, and what is written to it from then on, until the server ends.
pub(super) fn follow((file, trace, version): OpenedTrace, served: &Arc<Served>) {
    if let Err(error) = followed(&file, (&trace, version), served) {
        let why = format!("{error:#}");
        if served.published.now().timeline.is_none() {
            served.published.put(Err(why.clone()), true);
        }
        served.published.end(format!("No longer followed: {why}"));
    }
}

fn followed(file: &Path, trace: (&Connection, Version), served: &Arc<Served>) -> Result<()> {
    let reads = || format!("cannot read {}", file.display());
    trace.0.busy_timeout(BUSY)?;
    let mut gatherer = patiently(served, || {
        let mut gatherer = Gatherer::of(file, trace, &served.progress)?;
        gatherer.expect().map(|_| gatherer)
    })
    .with_context(reads)?;
    // Numbers of changes of the file. All rows up to `seen` are known, the round of looks began at `begun_at`, and the timeline was last
    // made at `looked_at`.
    let (mut seen, mut begun_at, mut looked_at) = (None, None, None);
    while !served.has_ended() {
        served.pool(0)?.look()?;
        let changes = patiently(served, || {
            Ok(trace.0.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0))?)
        })
        .with_context(reads)?;
        let begun = Instant::now();
        if seen != Some(changes) {
            let mut read = Instant::now();
            let mut rest = || {
                sleep(read.elapsed() * REST);
                read = Instant::now();
            };
            if gatherer.has_looked_everywhere() {
                begun_at = Some(changes);
            }
            let found = match gatherer.grow(ROWS, &mut rest) {
                Ok(rows) => {
                    if gatherer.has_looked_everywhere() {
                        seen = begun_at;
                    }
                    rows > 0
                }
                Err(error) if is_busy(&error) => true,
                Err(error) => return Err(error).with_context(reads),
            };
            if found || looked_at != Some(changes) {
                match gatherer.gathered() {
                    Ok(gathered) => {
                        served.published.put(Ok(shown(gathered.clone())?), true);
                        looked_at = Some(changes);
                    }
                    Err(error) if is_busy(&error) => (seen, looked_at) = (None, None),
                    Err(error) => return Err(error).with_context(reads),
                }
            }
        }
        sleep(TICK.max(begun.elapsed() * REST));
    }
    Ok(())
}

/// Tries until nobody writes.
fn patiently<T>(served: &Served, work: impl Fn() -> Result<T>) -> Result<T> {
    loop {
        match work() {
            Err(error) if is_busy(&error) && !served.has_ended() => sleep(BUSY * REST),
            done => return done,
        }
    }
}

impl Served {
    /// Whether nobody is answered any more.
    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}
