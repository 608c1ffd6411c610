//! The JSON that PyTorch's profiler (Kineto) writes, which HolisticTraceAnalysis and other tools of PyTorch read.
//!
//! Such tools go by categories and names. Calls of HIP have the category of CUDA's runtime, `cuda_runtime`, and calls of HSA that of its driver,
//! `cuda_driver`. Copies are named `Memcpy HtoD (Host -> Device)` and the like, and what has a `stream` is work of a GPU. A launch and what it caused
//! have the same `correlation`, and an arrow `ac2g` with that number.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use rpd_schema::{SessionInfo, Version};
use rusqlite::Connection;
use serde::de::IgnoredAny;

use super::elements::Elements;
use super::json::{digits, escape_into};
use super::texts::TraceTexts;
use super::timeline::events::{
    Arrow, Call, Counter, Events, Facts, Op, Owner, Place, Process, Sort, TimelineFormat, TimelineFrame,
    Track,
};
use super::timeline::{self, Exported};
use super::trace_event::{extents, fact, name, number, place, slice, time, value};
use crate::notes::Notes;
use crate::passes::autograd::marker::MarkerText;
use crate::region::Region;
use crate::trace::op_kind::OpKind;

/// Writes the part `region` of the trace `file`, which is open as `trace`, to `out`.
///
/// # Errors
/// When the trace, or a temporary file, cannot be read, when a signal came (`notes`), or when `out` cannot be written: then an
/// [`std::io::Error`] is in the chain.
pub fn export(
    file: &Path,
    trace: (&Connection, Version),
    region: &Region,
    notes: &dyn Notes,
    out: &mut (dyn Write + Send),
) -> Result<Exported> {
    timeline::write(file, trace, region, notes, out, &Kineto)
}

struct Kineto;

impl TimelineFormat for Kineto {
    type Events = Trace;

    const SEPARATOR: &'static [u8] = b",\n";
    const PUT_TEXT: fn(&mut Vec<u8>, &str) = escape_into;
    // Kineto knows a GPU by its index.
    const FIRST_GPU: i64 = 0;

    fn around(&self, facts: &Facts<'_>) -> (Vec<u8>, Vec<u8>) {
        let mut head = b"{\"schemaVersion\":1,\n\"deviceProperties\":[".to_vec();
        for (at, (gpu, name)) in facts.gpus.iter().enumerate() {
            let begin: &[u8] = if at == 0 { b"{\"id\":" } else { b",{\"id\":" };
            head.extend_from_slice(begin);
            digits(&mut head, *gpu);
            head.extend_from_slice(b",\"name\":\"");
            escape_into(&mut head, name.as_deref().unwrap_or(""));
            head.extend_from_slice(b"\"}");
        }
        // HolisticTraceAnalysis looks for this text, with a blank, in the file.
        head.extend_from_slice(b"],\n\"distributedInfo\":{\"rank\": ");
        digits(&mut head, rank(facts));
        head.extend_from_slice(b"},\n\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":");
        digits(&mut head, facts.first_ns);
        head.extend_from_slice(b",\"traceName\":\"");
        escape_into(&mut head, facts.name);
        // Its first event is never one that is looked up: a link to number 0 is taken for none.
        head.extend_from_slice(b"\",\n\"traceEvents\":[");
        (head, b"\n]}\n".to_vec())
    }

    fn events(&self, elements: Elements, _: usize, facts: &Facts<'_>) -> Trace {
        Trace { elements, zero_ns: facts.first_ns, departed: None }
    }
}

/// The rank of the first process that has one; otherwise 0, because tools want one.
fn rank(facts: &Facts<'_>) -> i64 {
    let rank = |info: &SessionInfo| info.rank()?.trim().parse::<u32>().ok();
    let ranks = facts.processes.iter().filter_map(|(_, info)| rank((*info)?));
    ranks.map(i64::from).next().unwrap_or(0)
}

/// Makes events as Kineto has them.
struct Trace {
    elements: Elements,
    /// What is 0 in the export, ns.
    zero_ns: i64,
    /// The call that arrows left last: all arrows of a call are one that branches.
    departed: Option<i64>,
}

impl Events for Trace {
    fn process(&mut self, process: &Process<'_>) -> Result<()> {
        let Process { number, owner, name: called, order } = *process;
        name(&mut self.elements, "process", (number, None), called, order)?;
        let label = match owner {
            Owner::Process => "CPU".to_string(),
            Owner::Gpu(gpu) => format!("GPU {gpu}"),
            Owner::Other => return Ok(()),
        };
        fact(&mut self.elements, ("process", "labels"), (number, None), format!("\"{label}\"").as_bytes())
    }

    fn track(&mut self, track: &Track<'_>) -> Result<()> {
        let Place { process, track: number, .. } = track.place;
        name(&mut self.elements, "thread", (process, Some(number)), &track.own_name(), track.order)
    }

    fn call(&mut self, texts: &mut TraceTexts<'_>, call: &Call) -> Result<()> {
        if call.sort == Sort::Marker {
            return self.marker(texts.arguments(call.arguments)?, call);
        }
        let category = match call.sort {
            Sort::Hsa => "cuda_driver",
            Sort::Other => "cpu_op",
            _ if is_of_driver(texts.name(call.name)?) => "cuda_driver",
            _ => "cuda_runtime",
        };
        let bytes = begin(&mut self.elements, category, texts.name(call.name)?)?;
        place(bytes, call.place);
        slice(bytes, call.times, self.zero_ns);
        bytes.extend_from_slice(b",\"args\":{\"External id\":");
        digits(bytes, call.id);
        bytes.extend_from_slice(b",\"correlation\":");
        digits(bytes, call.id);
        let arguments = texts.arguments(call.arguments)?;
        if !arguments.is_empty() {
            bytes.extend_from_slice(b",\"desc\":\"");
            bytes.extend_from_slice(arguments);
            bytes.push(b'"');
        }
        bytes.extend_from_slice(b"}}");
        Ok(())
    }

    fn departure(&mut self, _: i64, call: &Call) -> Result<()> {
        if self.departed == Some(call.id) {
            return Ok(());
        }
        self.departed = Some(call.id);
        let bytes = self.elements.next()?;
        bytes.extend_from_slice(b"{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":");
        digits(bytes, call.id);
        place(bytes, call.place);
        time(bytes, call.times.0, self.zero_ns);
        bytes.push(b'}');
        Ok(())
    }

    fn op(&mut self, texts: &mut TraceTexts<'_>, op: &Op<'_>) -> Result<()> {
        let shown = op.shown(texts)?;
        let op_type = texts.name(op.op_type)?;
        let (category, own_name) = match op.kind {
            OpKind::Copy if op.details.copy_gpus.is_some() => {
                ("gpu_memcpy", Some(b"Memcpy PtoP (Device -> Device)".to_vec()))
            }
            OpKind::Copy => ("gpu_memcpy", Some(copy_name(op_type))),
            OpKind::Fill => ("gpu_memset", Some(b"Memset (Device)".to_vec())),
            // A GPU that waits does no work: no stream, or tools would count it.
            OpKind::Other if op_type.starts_with(b"Barrier") => ("cuda_sync", None),
            OpKind::Kernel | OpKind::Other => ("kernel", None),
        };
        let is_named = own_name.is_some() && shown != op.op_type;
        let bytes = match &own_name {
            Some(own_name) => begin(&mut self.elements, category, own_name)?,
            None => begin(&mut self.elements, category, texts.name(shown)?)?,
        };
        place(bytes, op.place);
        slice(bytes, op.times, self.zero_ns);
        bytes.extend_from_slice(b",\"args\":{\"device\":");
        digits(bytes, op.queue.0);
        if category != "cuda_sync" {
            let stream = op.details.queue_stream.unwrap_or_else(|| stream(op.queue.1));
            number(bytes, b",\"stream\":", Some(stream));
        }
        number(bytes, b",\"queue\":", Some(op.queue.1));
        if let Some((call, _)) = op.call {
            number(bytes, b",\"External id\":", Some(call));
            number(bytes, b",\"correlation\":", Some(call));
        }
        bytes.extend_from_slice(b",\"desc\":\"");
        bytes.extend_from_slice(texts.name(op.op_type)?);
        bytes.push(b'"');
        if is_named {
            bytes.extend_from_slice(b",\"name\":\"");
            bytes.extend_from_slice(texts.name(op.name)?);
            bytes.push(b'"');
        }
        details(bytes, op);
        bytes.extend_from_slice(b"}}");
        Ok(())
    }

    fn arrival(&mut self, arrow: Arrow, at: Place, start_ns: i64) -> Result<()> {
        let bytes = self.elements.next()?;
        bytes.extend_from_slice(b"{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":");
        digits(bytes, arrow.call);
        place(bytes, at);
        time(bytes, start_ns, self.zero_ns);
        bytes.push(b'}');
        Ok(())
    }

    fn frame(&mut self, texts: &mut TraceTexts<'_>, frame: &TimelineFrame) -> Result<()> {
        // Kineto has nothing for the launch of a graph on the GPU.
        if frame.is_graph {
            return Ok(());
        }
        let bytes = begin(&mut self.elements, "gpu_user_annotation", texts.arguments(frame.text)?)?;
        place(bytes, frame.place);
        slice(bytes, frame.times, self.zero_ns);
        // Without a stream: HolisticTraceAnalysis would count it as work of the GPU.
        bytes.extend_from_slice(b",\"args\":{\"device\":");
        digits(bytes, frame.gpu);
        number(bytes, b",\"ops\":", Some(frame.ops));
        bytes.extend_from_slice(b"}}");
        Ok(())
    }

    fn value(&mut self, counter: &Counter<'_>) -> Result<()> {
        value(self.elements.next()?, counter, self.zero_ns);
        Ok(())
    }
}

impl Trace {
    /// A marker: of PyTorch's operators those that it pushed itself, otherwise an annotation of the program. `text` goes into JSON as it is.
    fn marker(&mut self, text: &[u8], call: &Call) -> Result<()> {
        let operator = match MarkerText::of(std::str::from_utf8(text)?) {
            MarkerText::Operator(operator) if !call.is_mark() => Some(operator),
            _ => None,
        };
        let Some(operator) = operator else {
            if call.is_mark() {
                let bytes = self.elements.next()?;
                bytes.extend_from_slice(b"{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"user_annotation\",\"name\":\"");
                bytes.extend_from_slice(text);
                bytes.push(b'"');
                place(bytes, call.place);
                time(bytes, call.times.0, self.zero_ns);
                bytes.push(b'}');
                return Ok(());
            }
            let bytes = begin(&mut self.elements, "user_annotation", text)?;
            place(bytes, call.place);
            slice(bytes, call.times, self.zero_ns);
            bytes.push(b'}');
            return Ok(());
        };
        let bytes = begin(&mut self.elements, "cpu_op", operator.name.as_bytes())?;
        place(bytes, call.place);
        slice(bytes, call.times, self.zero_ns);
        bytes.extend_from_slice(b",\"args\":{\"External id\":");
        digits(bytes, call.id);
        number(bytes, b",\"Record function id\":", operator.op_id);
        number(bytes, b",\"Sequence number\":", operator.seq);
        // Shapes are lists in JSON too; what is not stays a text.
        if let Some(sizes) = operator.sizes {
            let is_json = serde_json::from_str::<IgnoredAny>(sizes).is_ok();
            let begin: &[u8] = if is_json { b",\"Input Dims\":" } else { b",\"Input Dims\":\"" };
            bytes.extend_from_slice(begin);
            bytes.extend_from_slice(sizes.as_bytes());
            bytes.extend_from_slice(if is_json { b"" } else { b"\"" });
        }
        bytes.extend_from_slice(b"}}");
        Ok(())
    }
}

/// Begins a slice; `name` goes into JSON as it is.
fn begin<'a>(elements: &'a mut Elements, category: &str, name: &[u8]) -> Result<&'a mut Vec<u8>> {
    let bytes = elements.next()?;
    bytes.extend_from_slice(b"{\"ph\":\"X\",\"cat\":\"");
    bytes.extend_from_slice(category.as_bytes());
    bytes.extend_from_slice(b"\",\"name\":\"");
    bytes.extend_from_slice(name);
    bytes.push(b'"');
    Ok(bytes)
}

/// Whether a call is of CUDA's driver: `cuLaunchKernel`.
fn is_of_driver(name: &[u8]) -> bool {
    name.strip_prefix(b"cu").and_then(|rest| rest.first()).is_some_and(u8::is_ascii_uppercase)
}

/// The number of a queue among streams: HolisticTraceAnalysis takes 0 and -1 for none.
fn stream(queue: i64) -> i64 {
    if queue >= 0 { queue.saturating_add(1) } else { (1_i64 << 40).saturating_sub(queue) }
}

/// Kineto's name for a copy of a type; it goes into JSON as it is.
fn copy_name(op_type: &[u8]) -> Vec<u8> {
    let kinds: [(&[u8], &[u8]); 4] = [
        (b"CopyHostToDevice", b"HtoD (Host -> Device)"),
        (b"CopyDeviceToHost", b"DtoH (Device -> Host)"),
        (b"CopyDeviceToDevice", b"DtoD (Device -> Device)"),
        (b"CopyHostToHost", b"HtoH (Host -> Host)"),
    ];
    let known = kinds.iter().find(|(of, _)| op_type.starts_with(of)).map(|(_, name)| *name);
    let mut name = b"Memcpy ".to_vec();
    name.extend_from_slice(known.unwrap_or(op_type));
    name
}

/// Appends how a kernel was launched and what was copied, with Kineto's names.
fn details(bytes: &mut Vec<u8>, op: &Op<'_>) {
    if let Some(launch) = op.details.launch {
        if let Some((grid, workgroup)) = launch.sizes {
            extents(bytes, b",\"grid\":[", grid);
            extents(bytes, b",\"block\":[", workgroup);
        }
        number(bytes, b",\"registers per thread\":", launch.vgprs);
        number(bytes, b",\"shared memory\":", launch.lds);
    }
    if let Some((graph, node)) = op.details.graph_node {
        number(bytes, b",\"graph id\":", Some(graph));
        number(bytes, b",\"graph node id\":", Some(node));
    }
    if let Some(cluster) = op.details.cluster {
        extents(bytes, b",\"cluster\":[", cluster);
    }
    if let Some(copied) = op.details.copy_bytes {
        number(bytes, b",\"bytes\":", Some(copied));
        // Bytes in a nanosecond are GB/s.
        let ns = op.times.1 - op.times.0;
        if ns > 0 && copied >= 0 {
            let bandwidth = copied as f64 / ns as f64;
            bytes.extend_from_slice(format!(",\"memory bandwidth (GB/s)\":{bandwidth:.6}").as_bytes());
        }
    }
    if !op.details.stream.is_empty() && op.details.queue_stream.is_none() {
        bytes.extend_from_slice(b",\"hip_stream\":\"");
        escape_into(bytes, op.details.stream);
        bytes.push(b'"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_the_names_that_tools_look_for() {
        for (op_type, name) in [
            ("CopyHostToDevice", "Memcpy HtoD (Host -> Device)"),
            ("CopyDeviceToDevice2D", "Memcpy DtoD (Device -> Device)"),
            ("CopyPeer", "Memcpy CopyPeer"),
        ] {
            assert_eq!(copy_name(op_type.as_bytes()), name.as_bytes());
        }
    }

    #[test]
    fn no_queue_is_a_stream_that_is_none() {
        let queues = [i64::MIN, -1, 0, 1, i64::MAX];
        assert!(queues.iter().all(|queue| stream(*queue) > 0));
        assert_eq!([stream(0), stream(1), stream(-1)], [1, 2, (1 << 40) + 1]);
    }
}
