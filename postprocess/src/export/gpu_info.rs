//! madengine's gpu_info_power_profiler_output.csv and gpu_info_vram_profiler_output.csv: what sensors read, by GPU, at equal distances of
//! time.
//!
//! As its gpu_info_profiler.py writes them: CRLF, a column for each GPU, the local time with microseconds, numbers of two digits as Python
//! prints them, `N/A` where nothing was read. A moment at which no GPU was sampled has no row.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use anyhow::{Context, Result, bail};
use chrono::{DateTime, Local};
use rpd_schema::session_fact;
use rusqlite::Connection;

use crate::notes::Notes;
use crate::trace::has_table;
use crate::trim::window::Window;

/// What the columns have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuInfoColumn {
    /// W.
    Power,
    /// The share of the GPU's memory that is in use, percent.
    Vram,
}

impl GpuInfoColumn {
    /// As `rocpd_monitor.monitorType` has it, which is also what has to be sampled.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            GpuInfoColumn::Power => "power",
            GpuInfoColumn::Vram => "vram",
        }
    }

    fn title(self) -> &'static str {
        match self {
            GpuInfoColumn::Power => "Power(Watt)",
            GpuInfoColumn::Vram => "vram(%)",
        }
    }
}

/// What is written.
#[derive(Clone, Debug)]
pub struct GpuInfoOptions {
    /// Which sensor.
    pub sensor: GpuInfoColumn,
    /// The GPUs in the order of their columns; all that were sampled where there are none.
    pub gpus: Vec<u32>,
    /// From one row to the next, ns.
    pub period_ns: i64,
    /// The time that is looked at.
    pub window: Window,
}

/// What a GPU's sensor reads at a moment, and until when.
type Reading = Option<(i64, f64)>;

/// Writes the file; how many rows it has below its header.
///
/// # Errors
/// When the trace cannot be read, none of the GPUs that were named was sampled, the size of a GPU's memory is not known, or `out` cannot be
/// written.
pub fn export(
    trace: &Connection,
    options: &GpuInfoOptions,
    notes: &dyn Notes,
    out: &mut dyn Write,
) -> Result<u64> {
    let sensor = options.sensor;
    let sampled = sampled(trace, sensor)?;
    let mut seen = BTreeSet::new();
    let named: Vec<u32> = options.gpus.iter().copied().filter(|gpu| seen.insert(*gpu)).collect();
    let gpus = match named.is_empty() {
        true => sampled,
        false => {
            let (there, missing): (Vec<u32>, Vec<u32>) = named.iter().partition(|gpu| sampled.contains(gpu));
            for gpu in missing {
                let said = format!("GPU {gpu} has no readings of the sensor {} in the trace", sensor.name());
                if there.is_empty() {
                    bail!(said);
                }
                notes.note(format_args!("{said}: it has no column"));
            }
            there
        }
    };
    let clocks = Clocks::of(trace, sensor)?;
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(out);
    let titles = gpus.iter().map(|gpu| format!("{} GPU{gpu}", sensor.title()));
    writer.write_record(std::iter::once("time".to_string()).chain(titles)).map_err(io::Error::from)?;
    let mut rows = 0;
    let mut table = Table { writer: &mut writer, clocks: &clocks, rows: &mut rows };
    if !gpus.is_empty() {
        table.fill(trace, options, &gpus)?;
    }
    writer.flush()?;
    Ok(rows)
}

/// The GPUs whose sensor was read.
fn sampled(trace: &Connection, sensor: GpuInfoColumn) -> Result<Vec<u32>> {
    if !has_table(trace, "rocpd_monitor")? {
        return Ok(Vec::new());
    }
    let mut found = trace.prepare(
        "SELECT DISTINCT deviceId FROM rocpd_monitor WHERE deviceType = 'gpu' AND monitorType = ?1 \
         AND typeof(deviceId) = 'integer' AND deviceId BETWEEN 0 AND 4294967295 ORDER BY 1",
    )?;
    let gpus = found.query_map([sensor.name()], |row| row.get(0))?;
    gpus.collect::<Result<_, _>>().context("cannot read the sensors")
}

/// What sessions say of times and GPUs.
struct Clocks {
    /// For each session: the time of day less CLOCK_MONOTONIC, ns.
    offsets: BTreeMap<u32, i64>,
    /// For each GPU: its memory, bytes; empty where it is of no use.
    totals: BTreeMap<u32, f64>,
}

impl Clocks {
    fn of(trace: &Connection, sensor: GpuInfoColumn) -> Result<Clocks> {
        let sessions = rpd_schema::sessions(trace).context("cannot read the sessions")?;
        let mut clocks = Clocks { offsets: BTreeMap::new(), totals: BTreeMap::new() };
        for session in &sessions {
            let number = |key| session.number(key).and_then(|ns| i64::try_from(ns).ok());
            let pair = number(session_fact::START_REALTIME_NS).zip(number(session_fact::START_MONOTONIC_NS));
            clocks.offsets.extend(pair.map(|(realtime, monotonic)| (session.session, realtime - monotonic)));
            for (key, total) in session.facts.iter().filter(|_| sensor == GpuInfoColumn::Vram) {
                let gpu = key.strip_prefix(session_fact::MONITOR_VRAM_TOTAL).and_then(|gpu| gpu.parse().ok());
                let total = total.parse().ok().filter(|total: &f64| *total > 0.0);
                clocks.totals.extend(gpu.zip(total));
            }
        }
        Ok(clocks)
    }

    /// The local time as Python's `str(datetime.now())` has it.
    fn local(&self, session: i64, monotonic: i64) -> String {
        let session = u32::try_from(session).unwrap_or(0);
        let offset =
            self.offsets.get(&session).or_else(|| self.offsets.values().next()).copied().unwrap_or(0);
        let time = DateTime::from_timestamp_nanos(monotonic.saturating_add(offset));
        time.with_timezone(&Local).format("%Y-%m-%d %H:%M:%S%.6f").to_string()
    }
}

struct Table<'a, W: Write> {
    writer: &'a mut csv::Writer<W>,
    clocks: &'a Clocks,
    rows: &'a mut u64,
}

impl<W: Write> Table<'_, W> {
    /// Goes through the runs of values in the order of time, and writes a row for each moment that they pass.
    fn fill(&mut self, trace: &Connection, options: &GpuInfoOptions, gpus: &[u32]) -> Result<()> {
        let mut runs = trace.prepare(
            "SELECT id >> 32, deviceId, start, \"end\", CAST(value AS REAL) FROM rocpd_monitor \
             WHERE deviceType = 'gpu' AND monitorType = ?1 AND typeof(start) = 'integer' AND typeof(\"end\") = 'integer' \
             AND start < \"end\" ORDER BY start, deviceId",
        )?;
        let mut runs = runs.query([options.sensor.name()])?;
        let mut now: Vec<Reading> = vec![None; gpus.len()];
        let (mut next, mut session, mut last) = (None, 0, 0);
        while let Some(run) = runs.next().context("cannot read the sensors")? {
            let gpu: i64 = run.get(1)?;
            let Some(place) = gpus.iter().position(|of| i64::from(*of) == gpu) else { continue };
            let (start, end) = (run.get::<_, i64>(2)?, run.get::<_, i64>(3)?);
            let start = start.max(options.window.start_ns);
            let end = end.min(options.window.end_ns.saturating_add(1));
            if start >= end {
                continue;
            }
            let moment = next.get_or_insert(start);
            while *moment < start {
                *moment = self.row(session, *moment, &now, options, start)?;
            }
            session = run.get(0)?;
            let value = match options.sensor {
                GpuInfoColumn::Power => run.get(4)?,
                GpuInfoColumn::Vram => 100.0 * run.get::<_, f64>(4)? / self.total(gpus[place])?,
            };
            now[place] = Some((end, value));
            last = last.max(end);
        }
        while let Some(moment) = next.filter(|moment| *moment < last) {
            next = Some(self.row(session, moment, &now, options, last)?);
        }
        Ok(())
    }

    /// Writes the row of a moment, if there is anything in it; the next moment, which is not before `until` where nothing was read.
    fn row(
        &mut self,
        session: i64,
        moment: i64,
        now: &[Reading],
        options: &GpuInfoOptions,
        until: i64,
    ) -> Result<i64> {
        let values: Vec<Option<f64>> = now
            .iter()
            .map(|reading| reading.filter(|(end, _)| moment < *end).map(|(_, value)| value))
            .collect();
        if values.iter().all(Option::is_none) {
            let periods = (until.saturating_sub(moment) / options.period_ns).max(1);
            return Ok(moment.saturating_add(periods.saturating_mul(options.period_ns)));
        }
        let shown = values.iter().map(|value| value.map_or_else(|| "N/A".to_string(), as_python));
        self.writer
            .write_record(std::iter::once(self.clocks.local(session, moment)).chain(shown))
            .map_err(io::Error::from)?;
        *self.rows += 1;
        Ok(moment.saturating_add(options.period_ns))
    }

    fn total(&self, gpu: u32) -> Result<f64> {
        let total = self.clocks.totals.get(&gpu).copied();
        total.with_context(|| {
            format!(
                "the trace does not say how much memory GPU {gpu} has: it is recorded with --monitor vram"
            )
        })
    }
}

/// `str(round(value, 2))` in Python.
fn as_python(value: f64) -> String {
    let rounded = format!("{value:.2}");
    match rounded.strip_suffix('0') {
        Some(short) => short.to_string(),
        None => rounded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_python_prints_them() {
        for (value, text) in [(71.23, "71.23"), (25.0, "25.0"), (0.717, "0.72"), (71.5, "71.5"), (0.0, "0.0")]
        {
            assert_eq!(as_python(value), text);
        }
    }
}
