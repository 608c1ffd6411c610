//! Readings of the GPUs' sensors, as times with the energy of each.

use std::collections::BTreeMap;

use anyhow::Result;
use rpd_schema::session_fact;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde::Serialize;

use super::sweep::RunningOps;
use crate::check::rule::are_sound;
use crate::trace::has_table;

/// No GPU takes more, W: such a reading is damaged.
const MOST_WATTS: f64 = 1e5;

/// What is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerSensor {
    /// A counter of joules.
    Energy,
    /// Watts.
    Power,
}

/// A time of which the energy is known.
#[derive(Debug, Clone)]
pub(super) struct EnergyStep {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) joules: f64,
    /// In which anything ran.
    pub(super) busy_ns: u64,
    /// What ran.
    pub(super) runs: RunningOps,
    /// Above the idle floor.
    pub(super) joules_per_busy_ns: f64,
}

impl EnergyStep {
    fn new((start, end): (i64, i64), joules: f64) -> EnergyStep {
        EnergyStep { start, end, joules, busy_ns: 0, runs: RunningOps::Nothing, joules_per_busy_ns: 0.0 }
    }

    fn is_possible(&self) -> bool {
        self.joules <= MOST_WATTS * self.length() as f64 / 1e9
    }

    pub(super) fn length(&self) -> u64 {
        self.end.abs_diff(self.start)
    }
}

/// The steps of a GPU, in the order of time; none lies in another.
#[derive(Debug)]
pub(super) struct Steps {
    pub(super) sensor: PowerSensor,
    pub(super) steps: Vec<EnergyStep>,
    /// Between two readings, where the recorders that read this GPU said it; the longest of theirs.
    period_ns: Option<u64>,
}

impl Steps {
    /// How long a step is: of half of them at most, or the time between two readings of a sensor that stays the same for long.
    pub(super) fn step_ns(&self) -> u64 {
        let mut lengths: Vec<u64> = self.steps.iter().map(EnergyStep::length).collect();
        let middle = lengths.len() / 2;
        let median = if lengths.is_empty() { 0 } else { *lengths.select_nth_unstable(middle).1 };
        match self.sensor {
            PowerSensor::Energy => median,
            PowerSensor::Power => self.period_ns.map_or(median, |period| period.min(median)),
        }
    }
}

/// A value, and from when to when it was read.
#[derive(Clone, Copy)]
struct Reading {
    start: i64,
    end: i64,
    value: f64,
    /// The session that read it.
    session: i64,
}

/// Whether a sensor of energy or power was read at all.
///
/// # Errors
/// When the trace cannot be read.
pub(super) fn is_read(trace: &Connection) -> Result<bool> {
    let any = "SELECT EXISTS (SELECT 1 FROM rocpd_monitor WHERE monitorType IN ('energy', 'power'))";
    Ok(has_table(trace, "rocpd_monitor")? && trace.query_row(any, [], |row| row.get(0))?)
}

/// The steps of each GPU: of its energy counter, or else of its power sensor.
///
/// # Errors
/// When the trace cannot be read.
pub(super) fn steps(trace: &Connection) -> Result<BTreeMap<i64, Steps>> {
    let mut found = BTreeMap::new();
    if !has_table(trace, "rocpd_monitor")? {
        return Ok(found);
    }
    let sessions = rpd_schema::sessions(trace)?;
    let periods: BTreeMap<i64, u64> = sessions
        .iter()
        .filter_map(|session| {
            let period_ns = session.number(session_fact::MONITOR_PERIOD_NS)?;
            Some((i64::from(session.session), period_ns))
        })
        .collect();
    for (sensor, name) in [(PowerSensor::Energy, "energy"), (PowerSensor::Power, "power")] {
        for (gpu, readings) in readings(trace, name)? {
            let of_readings = readings.iter().filter_map(|reading| periods.get(&reading.session));
            let period_ns = of_readings.max().copied();
            let steps = match sensor {
                PowerSensor::Energy => of_counter(&readings),
                PowerSensor::Power => readings.iter().map(of_power).filter(EnergyStep::is_possible).collect(),
            };
            if !steps.is_empty() {
                found.entry(gpu).or_insert(Steps { sensor, steps, period_ns });
            }
        }
    }
    Ok(found)
}

/// Possible ones of each GPU, in the order of time; one that begins while another holds is left out.
fn readings(trace: &Connection, sensor: &str) -> Result<BTreeMap<i64, Vec<Reading>>> {
    let mut rows = trace.prepare(
        "SELECT deviceId, start, \"end\", value, id >> 32 FROM rocpd_monitor WHERE deviceType = 'gpu' AND monitorType = ?1 \
         AND typeof(deviceId) = 'integer' AND typeof(start) = 'integer' AND typeof(\"end\") = 'integer' ORDER BY deviceId, start, \"end\"",
    )?;
    let mut rows = rows.query([sensor])?;
    let mut found: BTreeMap<i64, Vec<Reading>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let Some(value) = number(row.get_ref(3)?) else { continue };
        let reading = Reading {
            start: row.get(1)?,
            end: row.get(2)?,
            value,
            session: row.get_ref(4)?.as_i64().unwrap_or(0),
        };
        let of_gpu = found.entry(row.get(0)?).or_default();
        let is_possible = are_sound((reading.start, reading.end))
            && reading.start < reading.end
            && reading.value.is_finite()
            && reading.value >= 0.0;
        if is_possible && of_gpu.last().is_none_or(|last| last.end <= reading.start) {
            of_gpu.push(reading);
        }
    }
    Ok(found)
}

/// A value, which the format has as text; none where it is no number.
fn number(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Integer(value) => Some(value as f64),
        ValueRef::Real(value) => Some(value),
        ValueRef::Text(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
        ValueRef::Null | ValueRef::Blob(_) => None,
    }
}

/// From one change of the counter to the next, where it was read all the time between them and did not go back.
fn of_counter(readings: &[Reading]) -> Vec<EnergyStep> {
    let mut steps = Vec::new();
    // The last change that was seen.
    let mut changed: Option<i64> = None;
    for pair in readings.windows(2) {
        let [one, other] = pair else { continue };
        if other.start > one.end || other.value < one.value {
            changed = None;
        } else if other.value > one.value {
            let step = changed.map(|from| EnergyStep::new((from, other.start), other.value - one.value));
            steps.extend(step.filter(EnergyStep::is_possible));
            changed = Some(other.start);
        }
    }
    steps
}

fn of_power(reading: &Reading) -> EnergyStep {
    let seconds = reading.end.abs_diff(reading.start) as f64 / 1e9;
    EnergyStep::new((reading.start, reading.end), reading.value * seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_no_reading() {
        let read = |text: &str| number(ValueRef::Text(text.as_bytes()));
        assert_eq!(
            (read("237.5"), read(" 0 "), number(ValueRef::Integer(7))),
            (Some(237.5), Some(0.0), Some(7.0))
        );
        for text in ["", "abc", "12abc", "0x10", "300,5"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    /// Times in milliseconds.
    fn counter(readings: &[(i64, i64, f64)]) -> Vec<(i64, i64, f64)> {
        const MS: i64 = 1_000_000;
        let reading = |&(start, end, value)| Reading { start: start * MS, end: end * MS, value, session: 0 };
        let readings: Vec<Reading> = readings.iter().map(reading).collect();
        of_counter(&readings).iter().map(|step| (step.start / MS, step.end / MS, step.joules)).collect()
    }

    #[test]
    fn a_step_is_between_two_changes_that_were_seen() {
        assert_eq!(counter(&[]), []);
        assert_eq!(counter(&[(0, 10, 5.0), (10, 20, 6.0)]), [], "nobody saw where the first began");
        // A value that stays has several rows.
        let steady = [(0, 10, 5.0), (10, 20, 6.0), (20, 30, 6.0), (30, 40, 9.0), (40, 50, 9.5)];
        assert_eq!(counter(&steady), [(10, 30, 3.0), (30, 40, 0.5)]);
    }

    #[test]
    fn a_pause_and_a_counter_that_begins_anew_end_a_step() {
        let paused = [(0, 10, 1.0), (10, 20, 2.0), (50, 60, 9.0), (60, 70, 10.0), (70, 80, 12.0)];
        assert_eq!(counter(&paused), [(60, 70, 2.0)]);
        let damaged =
            [(0, 10, 1.0), (10, 20, 2.0), (20, 30, 1e308), (30, 40, 3.0), (40, 50, 3.0), (50, 60, 3.5)];
        assert_eq!(counter(&damaged), []);
        let anew = [(0, 10, 1.0), (10, 20, 2.0), (20, 30, 0.5), (30, 40, 1.5), (40, 50, 3.0)];
        assert_eq!(counter(&anew), [(30, 40, 1.5)]);
    }
}
