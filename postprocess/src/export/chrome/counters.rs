//! Numbers over time: how much waits for a GPU and whether it is idle; what sensors read.

use anyhow::Result;
use rpd_schema::text::{shown, text_of};
use rusqlite::Connection;

use super::rows::DepthChange;
use super::tracks::Gpus;
use super::{Output, digits};
use crate::check::rule::are_sound;
use crate::export::texts::escape_into;
use crate::pass::sorted::Sorted;
use crate::region::Selected;
use crate::trace::has_table;

/// Appends a counter's value at a time.
fn write_value(
    output: &mut Output<'_, '_>,
    process: i64,
    (name, key): (&str, &str),
    time: i64,
    value: &str,
) -> Result<()> {
    let bytes = output.elements.next()?;
    bytes.extend_from_slice(b"{\"ph\":\"C\",\"name\":\"");
    escape_into(bytes, name);
    bytes.extend_from_slice(b"\",\"pid\":");
    digits(bytes, process);
    bytes.extend_from_slice(b",\"ts\":");
    output.clock.time(bytes, time);
    bytes.extend_from_slice(b",\"args\":{\"");
    escape_into(bytes, key);
    bytes.extend_from_slice(b"\":");
    bytes.extend_from_slice(value.as_bytes());
    bytes.extend_from_slice(b"}}");
    Ok(())
}

/// A GPU's operations that were launched and have not ended: one value for each time at which it changes.
struct Depth {
    process: i64,
    depth: i64,
    is_idle: Option<bool>,
    written_ns: i64,
}

impl Depth {
    fn write(&mut self, output: &mut Output<'_, '_>, time: i64) -> Result<()> {
        let is_idle = self.depth == 0;
        if self.is_idle != Some(is_idle) {
            self.is_idle = Some(is_idle);
            write_value(output, self.process, ("Idle", "idle"), time, if is_idle { "1" } else { "0" })?;
        }
        self.written_ns = time;
        let mut digits = itoa::Buffer::new();
        write_value(output, self.process, ("QueueDepth", "depth"), time, digits.format(self.depth))
    }

    /// Viewers draw a counter up to its last value.
    fn end(&mut self, output: &mut Output<'_, '_>, last_ns: i64) -> Result<()> {
        if self.written_ns < last_ns {
            self.is_idle = None;
            self.write(output, last_ns)?;
        }
        Ok(())
    }
}

/// Writes how many operations wait or run on each GPU, and whether none does, up to `last_ns`.
///
/// # Errors
/// When a temporary file cannot be read, or the output has failed.
pub(super) fn write_depths(
    output: &mut Output<'_, '_>,
    gpus: &mut Gpus,
    mut changes: Sorted<DepthChange>,
    last_ns: i64,
) -> Result<()> {
    let mut current: Option<(i64, Depth)> = None;
    let mut next = changes.next()?;
    while let Some([gpu, time, change]) = next {
        output.row()?;
        if current.as_ref().is_none_or(|(of, _)| *of != gpu) {
            if let Some((_, mut depth)) = current.take() {
                depth.end(output, last_ns)?;
            }
            let process = gpus.counted_gpu(usize::try_from(gpu)?);
            current = Some((gpu, Depth { process, depth: 0, is_idle: None, written_ns: i64::MIN }));
        }
        let Some((_, depth)) = &mut current else { continue };
        let before = depth.depth;
        depth.depth += change;
        next = changes.next()?;
        while let Some([_, _, change]) = next.filter(|[of, at, _]| (*of, *at) == (gpu, time)) {
            depth.depth += change;
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

/// A sensor's value as JSON has numbers.
fn number(text: &str) -> Option<String> {
    let text = text.trim();
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.to_string());
    }
    text.parse::<f64>().ok().filter(|value| value.is_finite()).map(|value| value.to_string())
}

/// Writes what sensors read: a value where each of their runs begins, and where the last one ends. How many values are no numbers.
///
/// # Errors
/// When the trace cannot be read, or the output has failed.
pub(super) fn write_sensors(
    output: &mut Output<'_, '_>,
    gpus: &mut Gpus,
    trace: &Connection,
    selected: &Selected,
) -> Result<u64> {
    let mut no_numbers = 0;
    if !has_table(trace, "rocpd_monitor")? {
        return Ok(no_numbers);
    }
    let mut rows = trace.prepare(&format!(
        "SELECT {}, deviceId, {}, start, \"end\", {} FROM rocpd_monitor ORDER BY 1, 2, 3, 4, 5",
        shown("deviceType"),
        shown("monitorType"),
        shown("value")
    ))?;
    let mut rows = rows.query([])?;
    // What the last run was of, its end and its value.
    let mut last: Option<(i64, String, i64, String)> = None;
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
        let Some(value) = number(&text_of(row.get_ref(5)?)) else {
            no_numbers += 1;
            continue;
        };
        let process = gpus.sensed(&device_type, device);
        let name = text_of(row.get_ref(2)?).into_owned();
        if let Some((of, name, end, value)) = last.take_if(|(of, last, ..)| (*of, &*last) != (process, &name))
        {
            write_value(output, of, (&name, &name), end, &value)?;
        }
        write_value(output, process, (&name, &name), start, &value)?;
        last = Some((process, name, end, value));
    }
    if let Some((of, name, end, value)) = last {
        write_value(output, of, (&name, &name), end, &value)?;
    }
    Ok(no_numbers)
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
            assert_eq!(number(text).as_deref(), value, "{text}");
        }
    }
}
