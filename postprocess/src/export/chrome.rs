//! Trace Event JSON, which Perfetto and chrome://tracing show and other tools read.
//!
//! Viewers sort events by time but take those of one time in the order of the file: among slices that begin together the longer one comes
//! first, and an arrow comes behind the slice that it leaves. Times are exact: digits of whole nanoseconds, counted from the trace's
//! first event, because viewers take them for floating-point numbers, which have no nanoseconds after 51 days of uptime.
//!
//! Arguments of operations have the names that rocprofv3 gives them, so that what reads its traces reads these.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use rpd_schema::Version;
use rusqlite::Connection;

use super::elements::Elements;
use super::json::{digits, escape_into};
use super::texts::TraceTexts;
use super::timeline::events::{
    Arrow, Call, Counter, Events, Facts, Op, Place, Process, Sort, TimelineFrame, Track,
};
use super::timeline::{self, Exported, FIRST_GPU, OpDetails, graph_handle};
use super::trace_event::{extents, name, number, place, slice, time, value};
use crate::notes::Notes;
use crate::region::Region;

/// How the events are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChromeLayout {
    /// An object with the events and facts about them.
    Object,
    /// The array of the events alone.
    Array,
}

/// What is exported, and how.
#[derive(Debug, Clone)]
pub struct ChromeOptions {
    /// How the events are arranged.
    pub format: ChromeLayout,
    /// Whether times are those of the trace's clock, not counted from its first event.
    pub absolute: bool,
    /// What part of the trace.
    pub region: Region,
}

/// Writes what `options` ask for of the trace `file`, which is open as `trace`, to `out`.
///
/// # Errors
/// When the trace, or a temporary file, cannot be read, when a signal came (`notes`), or when `out` cannot be written: then an
/// [`std::io::Error`] is in the chain.
pub fn export(
    file: &Path,
    trace: (&Connection, Version),
    options: &ChromeOptions,
    notes: &dyn Notes,
    out: &mut (dyn Write + Send),
) -> Result<Exported> {
    timeline::write(file, trace, &options.region, notes, out, options)
}

impl ChromeOptions {
    /// What is 0 in the export, ns.
    fn zero_ns(&self, facts: &Facts<'_>) -> i64 {
        if self.absolute { 0 } else { facts.first_ns }
    }
}

impl timeline::events::TimelineFormat for ChromeOptions {
    type Events = Trace;

    const SEPARATOR: &'static [u8] = b",\n";
    const PUT_TEXT: fn(&mut Vec<u8>, &str) = escape_into;
    const FIRST_GPU: i64 = FIRST_GPU;

    fn around(&self, facts: &Facts<'_>) -> (Vec<u8>, Vec<u8>) {
        if self.format == ChromeLayout::Array {
            return (b"[".to_vec(), b"\n]\n".to_vec());
        }
        let mut tail = b"\n],\n\"displayTimeUnit\":\"ns\",\"metadata\":{\"tool\":\"rpd ".to_vec();
        tail.extend_from_slice(env!("CARGO_PKG_VERSION").as_bytes());
        tail.extend_from_slice(b"\",\"source\":\"");
        escape_into(&mut tail, facts.name);
        tail.extend_from_slice(b"\",\"clock\":\"CLOCK_MONOTONIC\",\"zero_ns\":");
        digits(&mut tail, self.zero_ns(facts));
        tail.extend_from_slice(b"}}\n");
        (b"{\"traceEvents\":[".to_vec(), tail)
    }

    fn events(&self, elements: Elements, _: usize, facts: &Facts<'_>) -> Trace {
        Trace { elements, zero_ns: self.zero_ns(facts) }
    }
}

/// Makes trace events.
pub(super) struct Trace {
    elements: Elements,
    /// What is 0 in the export, ns.
    zero_ns: i64,
}

impl Events for Trace {
    fn process(&mut self, process: &Process<'_>) -> Result<()> {
        name(&mut self.elements, "process", (process.number, None), process.name, process.order)
    }

    fn track(&mut self, track: &Track<'_>) -> Result<()> {
        let Place { process, track: number, .. } = track.place;
        name(&mut self.elements, "thread", (process, Some(number)), &track.own_name(), track.order)
    }

    fn call(&mut self, texts: &mut TraceTexts<'_>, call: &Call) -> Result<()> {
        let bytes = self.elements.next()?;
        let begin: &[u8] = match call.is_mark() {
            true => b"{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"",
            false => b"{\"ph\":\"X\",\"cat\":\"",
        };
        bytes.extend_from_slice(begin);
        bytes.extend_from_slice(call.sort.category().as_bytes());
        bytes.extend_from_slice(b"\",\"name\":\"");
        bytes.extend_from_slice(call.shown(texts)?);
        bytes.push(b'"');
        place(bytes, call.place);
        if call.is_mark() {
            time(bytes, call.times.0, self.zero_ns);
            bytes.push(b'}');
            return Ok(());
        }
        slice(bytes, call.times, self.zero_ns);
        if call.sort != Sort::Marker {
            bytes.extend_from_slice(b",\"args\":{\"corr_id\":");
            digits(bytes, call.id);
            bytes.push(b',');
            exact_times(bytes, call.times);
            let arguments = texts.arguments(call.arguments)?;
            if !arguments.is_empty() {
                bytes.extend_from_slice(b",\"desc\":\"");
                bytes.extend_from_slice(arguments);
                bytes.push(b'"');
            }
            bytes.push(b'}');
        }
        bytes.push(b'}');
        Ok(())
    }

    /// It is where the call begins, because there no call inside of it has begun.
    fn departure(&mut self, link: i64, call: &Call) -> Result<()> {
        let bytes = self.elements.next()?;
        bytes.extend_from_slice(b"{\"ph\":\"s\",\"cat\":\"api_op\",\"name\":\"api_op\",\"id\":");
        digits(bytes, link);
        place(bytes, call.place);
        time(bytes, call.times.0, self.zero_ns);
        bytes.push(b'}');
        Ok(())
    }

    fn op(&mut self, texts: &mut TraceTexts<'_>, op: &Op<'_>) -> Result<()> {
        let name = op.shown(texts)?;
        let bytes = self.elements.next()?;
        bytes.extend_from_slice(b"{\"ph\":\"X\",\"cat\":\"");
        bytes.extend_from_slice(op.category().as_bytes());
        bytes.extend_from_slice(b"\",\"name\":\"");
        bytes.extend_from_slice(texts.name(name)?);
        bytes.push(b'"');
        place(bytes, op.place);
        slice(bytes, op.times, self.zero_ns);
        bytes.extend_from_slice(b",\"args\":{\"desc\":\"");
        bytes.extend_from_slice(texts.name(op.op_type)?);
        // TraceLens takes an agent that is the number 0 for none.
        bytes.extend_from_slice(b"\",\"agent\":\"GPU ");
        digits(bytes, op.queue.0);
        bytes.extend_from_slice(b"\",\"queue\":");
        digits(bytes, op.queue.1);
        bytes.push(b',');
        exact_times(bytes, op.times);
        if let Some((call, (pid, tid))) = op.call {
            for (name, number) in [(&b",\"corr_id\":"[..], call), (b",\"pid\":", pid), (b",\"tid\":", tid)] {
                bytes.extend_from_slice(name);
                digits(bytes, number);
            }
        }
        details(bytes, &op.details);
        bytes.extend_from_slice(b"}}");
        Ok(())
    }

    fn arrival(&mut self, arrow: Arrow, at: Place, start_ns: i64) -> Result<()> {
        let bytes = self.elements.next()?;
        bytes.extend_from_slice(b"{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"api_op\",\"name\":\"api_op\",\"id\":");
        digits(bytes, arrow.link);
        place(bytes, at);
        time(bytes, start_ns, self.zero_ns);
        bytes.push(b'}');
        Ok(())
    }

    fn frame(&mut self, texts: &mut TraceTexts<'_>, frame: &TimelineFrame) -> Result<()> {
        let text = texts.arguments(frame.text)?;
        let bytes = self.elements.next()?;
        if frame.is_graph {
            bytes.extend_from_slice(b"{\"ph\":\"X\",\"cat\":\"graph\",\"name\":\"Graph");
            if let Some(handle) = graph_handle(text) {
                bytes.push(b' ');
                bytes.extend_from_slice(handle.as_bytes());
            }
        } else {
            bytes.extend_from_slice(b"{\"ph\":\"X\",\"cat\":\"marker_frame\",\"name\":\"");
            bytes.extend_from_slice(text);
        }
        bytes.push(b'"');
        place(bytes, frame.place);
        slice(bytes, frame.times, self.zero_ns);
        let counted: &[u8] = match frame.is_graph {
            true => b",\"args\":{\"kernels\":",
            false => b",\"args\":{\"ops\":",
        };
        bytes.extend_from_slice(counted);
        digits(bytes, frame.ops);
        bytes.extend_from_slice(b"}}");
        Ok(())
    }

    fn value(&mut self, counter: &Counter<'_>) -> Result<()> {
        value(self.elements.next()?, counter, self.zero_ns);
        Ok(())
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

/// Appends how a kernel was launched and what was copied, with rocprofv3's names.
fn details(bytes: &mut Vec<u8>, details: &OpDetails<'_>) {
    if let Some(launch) = details.launch {
        if let Some((grid, workgroup)) = launch.sizes {
            extents(bytes, b",\"grid\":[", grid);
            extents(bytes, b",\"workgroup\":[", workgroup);
            // rocprofv3 counts work-items.
            let (grid_size, workgroup_size) = launch.work_items();
            number(bytes, b",\"grid_size\":", grid_size);
            number(bytes, b",\"workgroup_size\":", workgroup_size);
        }
        number(bytes, b",\"LDS_Block_Size\":", launch.lds);
        number(bytes, b",\"Scratch_Size\":", launch.scratch);
        number(bytes, b",\"VGPR_Count\":", launch.vgprs);
        number(bytes, b",\"SGPR_Count\":", launch.sgprs);
    }
    if let Some((graph, node)) = details.graph_node {
        number(bytes, b",\"graph\":", Some(graph));
        number(bytes, b",\"graph_node\":", Some(node));
    }
    if let Some(cluster) = details.cluster {
        extents(bytes, b",\"cluster\":[", cluster);
    }
    number(bytes, b",\"copy_bytes\":", details.copy_bytes);
    if !details.stream.is_empty() {
        bytes.extend_from_slice(b",\"stream\":\"");
        escape_into(bytes, details.stream);
        bytes.push(b'"');
        number(bytes, b",\"stream_ID\":", details.stream_number());
    }
}
