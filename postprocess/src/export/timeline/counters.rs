//! Numbers over time: how much waits for a GPU and whether it is idle; what sensors read.

use anyhow::Result;
use rpd_schema::text::{shown, text_of};
use rusqlite::Connection;

use super::Exported;
use super::events::{Counter, Events, Value};
use super::rows::DepthChange;
use super::tracks::Gpus;
use super::written::Output;
use crate::check::rule::are_sound;
use crate::pass::sorted::Sorted;
use crate::region::Selected;
use crate::trace::has_table;

/// Counters of a GPU that are counted here.
const DEPTH: &str = "QueueDepth";
const IDLE: &str = "Idle";

/// A GPU's operations that were launched and have not ended: one value for each time at which it changes.
struct Depth {
    process: i64,
    depth: i64,
    is_idle: Option<bool>,
    written_ns: i64,
}

impl Depth {
    fn write<E: Events>(&mut self, output: &mut Output<'_, E>, time_ns: i64) -> Result<()> {
        let is_idle = self.depth == 0;
        if self.is_idle != Some(is_idle) {
            self.is_idle = Some(is_idle);
            let value = Value::Whole(i64::from(is_idle));
            let idle = Counter { process: self.process, name: IDLE, key: "idle", time_ns, value };
            output.events.value(&idle)?;
        }
        self.written_ns = time_ns;
        let value = Value::Whole(self.depth);
        output.events.value(&Counter { process: self.process, name: DEPTH, key: "depth", time_ns, value })
    }

    /// Viewers draw a counter up to its last value.
    fn end<E: Events>(&mut self, output: &mut Output<'_, E>, last_ns: i64) -> Result<()> {
        if self.written_ns < last_ns {
            self.is_idle = None;
            self.write(output, last_ns)?;
        }
        Ok(())
    }
}

/// Writes how many operations wait or run on each of `gpus`, and whether none does, up to `last_ns`.
///
/// # Errors
/// When a temporary file cannot be read, or the output has failed.
pub(super) fn write_depths<E: Events>(
    output: &mut Output<'_, E>,
    gpus: &[i64],
    mut changes: Sorted<DepthChange>,
    last_ns: i64,
) -> Result<()> {
    let mut current: Option<(u32, Depth)> = None;
    let mut next = changes.next()?;
    while let Some(DepthChange { gpu, time, change }) = next {
        output.row()?;
        if current.as_ref().is_none_or(|(of, _)| *of != gpu) {
            if let Some((_, mut depth)) = current.take() {
                depth.end(output, last_ns)?;
            }
            let process = gpus[gpu as usize];
            current = Some((gpu, Depth { process, depth: 0, is_idle: None, written_ns: i64::MIN }));
        }
        let Some((_, depth)) = &mut current else { continue };
        let before = depth.depth;
        depth.depth += i64::from(change);
        next = changes.next()?;
        while let Some(same) = next.filter(|same| (same.gpu, same.time) == (gpu, time)) {
            depth.depth += i64::from(same.change);
            next = changes.next()?;
        }
        if depth.depth != before || depth.is_idle.is_none() {
            depth.write(output, time)?;
        }
    }
    match current {
        Some((_, mut depth)) => depth.end(output, last_ns),
        None => Ok(()),
    }
}

/// A sensor's value, if it is a number.
fn number(text: &str) -> Option<Value> {
    let text = text.trim();
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Value::Whole(whole));
    }
    text.parse::<f64>().ok().filter(|value| value.is_finite()).map(Value::Real)
}

/// Writes what sensors read in the time `near`: a value where each of their runs begins, and where the last one ends.
///
/// # Errors
/// When the trace cannot be read, or the output has failed.
pub(super) fn write_sensors<E: Events>(
    output: &mut Output<'_, E>,
    gpus: &mut Gpus,
    trace: &Connection,
    (selected, near): (&Selected, (i64, i64)),
    exported: &mut Exported,
) -> Result<()> {
    if !has_table(trace, "rocpd_monitor")? {
        return Ok(());
    }
    let mut rows = trace.prepare(&format!(
        "SELECT {}, deviceId, {}, start, \"end\", {} FROM rocpd_monitor ORDER BY 1, 2, 3, 4, 5",
        shown("deviceType"),
        shown("monitorType"),
        shown("value")
    ))?;
    let mut rows = rows.query([])?;
    // What the last run was of, its end and its value.
    let mut last: Option<(i64, String, i64, Value)> = None;
    while let Some(row) = rows.next()? {
        output.row()?;
        let integer = |column| row.get_ref(column).map(|value| value.as_i64().ok());
        let (Some(device), Some(start), Some(end)) = (integer(1)?, integer(3)?, integer(4)?) else {
            continue;
        };
        let device_type = text_of(row.get_ref(0)?);
        let gpu = (device_type == "gpu").then_some(device);
        let run = Some((start, end)).filter(|run| are_sound(*run));
        let Some((start, end)) = run.and_then(|run| selected.of_run(gpu, run)) else { continue };
        if start < near.0 || end > near.1 {
            exported.far_values += 1;
            continue;
        }
        let Some(value) = number(&text_of(row.get_ref(5)?)) else {
            exported.no_numbers += 1;
            continue;
        };
        let process = gpus.sensed(&device_type, device, &mut output.events)?;
        let name = match &*text_of(row.get_ref(2)?) {
            // Viewers draw values of one name as one counter.
            name @ (DEPTH | IDLE) => format!("{name} (sensor)"),
            name => name.to_string(),
        };
        if let Some((process, name, time_ns, value)) =
            last.take_if(|(of, last, ..)| (*of, &*last) != (process, &name))
        {
            output.events.value(&Counter { process, name: &name, key: &name, time_ns, value })?;
        }
        output.events.value(&Counter { process, name: &name, key: &name, time_ns: start, value })?;
        last = Some((process, name, end, value));
    }
    if let Some((process, name, time_ns, value)) = last {
        output.events.value(&Counter { process, name: &name, key: &name, time_ns, value })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_values() {
        for (text, value) in [
            ("1700", Some("1700")),
            (" 45.5 ", Some("45.5")),
            ("-3", Some("-3")),
            ("+3", Some("3")),
            (".5", Some("0.5")),
            ("9223372036854775808", Some("9223372036854776000")),
            ("", None),
            ("inf", None),
            ("NaN", None),
            ("0x10", None),
            ("1,5", None),
        ] {
            assert_eq!(number(text).map(|number| number.to_string()).as_deref(), value, "{text}");
        }
    }
}
