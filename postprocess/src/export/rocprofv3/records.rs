//! The records that rocprofv3 has of a trace: kernels, copies, calls and markers, whichever format they are written in.
//!
//! Fills are kernels, as the runtime's own fills are there; barriers are left out. An agent is a GPU, or all CPUs.

use std::rc::Rc;

use anyhow::Result;
use rpd_schema::Version;
use rusqlite::Connection;
use rustc_hash::FxHashMap;

use crate::check::outlier::Outliers;
use crate::check::rule::are_sound;
use crate::export::Exported;
use crate::export::timeline::{Details, KnownLaunches, LaunchColumns, begin_reading};
use crate::notes::{Notes, RowCount};
use crate::region::{Region, Selected};
use crate::report::caused::{CausedOp, CausedOps, CausingCall};
use crate::trace::op_kind::OpKind;
use crate::trace::{Strings, has_table, marker};

/// Texts that are remembered at once.
const REMEMBERED: usize = 1 << 14;

/// The number of all CPUs as an agent.
pub(super) const HOST: i64 = 0;

/// Directions of copies, as in `rocprofiler_memory_copy_operation_t`.
pub(super) const COPIES: [&str; 5] = [
    "MEMORY_COPY_NONE",
    "MEMORY_COPY_HOST_TO_HOST",
    "MEMORY_COPY_HOST_TO_DEVICE",
    "MEMORY_COPY_DEVICE_TO_HOST",
    "MEMORY_COPY_DEVICE_TO_DEVICE",
];

/// A kernel that ran, or what counts as one.
pub(super) struct Dispatch<'a> {
    /// Its id in rocpd_op.
    pub(super) id: i64,
    /// Id and text of its name.
    pub(super) kernel: (i64, &'a str),
    pub(super) agent: i64,
    pub(super) queue: i64,
    pub(super) stream: i64,
    /// The thread and the id of the call that launched it, 0 where that is not known.
    pub(super) thread: i64,
    pub(super) call: i64,
    /// Begin and end, ns.
    pub(super) times: (i64, i64),
    pub(super) launch: LaunchColumns,
    /// Work-items by dimension: of a workgroup, and of all.
    pub(super) workgroup: [i64; 3],
    pub(super) grid: [i64; 3],
}

/// A copy.
pub(super) struct Copied {
    /// Which of [`COPIES`].
    pub(super) direction: usize,
    /// Agents.
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) bytes: i64,
    pub(super) stream: i64,
    pub(super) thread: i64,
    pub(super) call: i64,
    pub(super) times: (i64, i64),
}

/// A call, or a marker.
pub(super) struct TracedCall<'a> {
    /// Its id in rocpd_api.
    pub(super) id: i64,
    /// Id and text of the function's name.
    pub(super) function: (i64, &'a str),
    pub(super) process: i64,
    pub(super) thread: i64,
    pub(super) times: (i64, i64),
}

/// What is made of the records.
pub(super) trait Rocprofv3Format {
    fn dispatch(&mut self, of: &Dispatch<'_>) -> Result<()>;
    fn copy(&mut self, of: &Copied) -> Result<()>;
    fn call(&mut self, of: &TracedCall<'_>) -> Result<()>;
    fn marker(&mut self, of: &TracedCall<'_>, message: &str) -> Result<()>;
}

/// What has been read.
#[derive(Default)]
pub(super) struct Read {
    /// GPUs of operations, in order.
    pub(super) gpus: Vec<i64>,
    /// First begin and last end, ns.
    pub(super) span: Option<(i64, i64)>,
    /// Processes and their ids, in the order of the latter.
    pub(super) processes: Vec<(i64, i64)>,
    pub(super) exported: Exported,
}

/// The number of a GPU as an agent; none is [`HOST`].
pub(super) fn agent(gpu: i64) -> i64 {
    if gpu >= 0 { gpu.saturating_add(1) } else { gpu.saturating_sub(1) }
}

/// Which of [`COPIES`] an operation of this type is.
fn direction(op_type: &str) -> usize {
    let types = ["CopyHostToHost", "CopyHostToDevice", "CopyDeviceToHost", "CopyDeviceToDevice"];
    types.iter().position(|known| op_type.starts_with(known)).map_or(0, |at| at + 1)
}

/// Hands the records of the part `region` of `trace` to `format`: operations, then calls.
///
/// # Errors
/// When the trace cannot be read, when a signal came (`notes`), or what `format` fails with.
pub(super) fn read(
    (trace, version): (&Connection, Version),
    region: &Region,
    notes: &dyn Notes,
    format: &mut dyn Rocprofv3Format,
) -> Result<Read> {
    begin_reading(trace)?;
    let selected = region.select(trace, version)?;
    let texts = NameCache { strings: Strings::of(trace)?, known: FxHashMap::default() };
    let rows = RowCount::new(notes, "calls and operations read");
    let mut reader = Reader { rows, texts, read: Read::default() };
    let ops = CausedOps::of(trace, &selected)?;
    reader.read.exported.impossible += ops.left_out.impossible;
    let launches = KnownLaunches::of(trace)?;
    let mut details = Details::of(trace, &launches)?;
    ops.each(|op, call| reader.op(op, call, &mut details, format))?;
    reader.calls((trace, version), &selected, format)?;
    let mut read = reader.read;
    read.gpus.sort_unstable();
    read.processes.sort_unstable_by_key(|(process, pid)| (*pid, *process));
    read.exported.processes = read.processes.len() as u64;
    Ok(read)
}

/// Texts by their ids, of which those that were asked for last are remembered.
struct NameCache<'trace> {
    strings: Strings<'trace>,
    known: FxHashMap<i64, Rc<str>>,
}

impl NameCache<'_> {
    fn get(&mut self, id: i64) -> Result<Rc<str>> {
        if let Some(known) = self.known.get(&id) {
            return Ok(Rc::clone(known));
        }
        let text: Rc<str> = self.strings.get(id)?.unwrap_or_default().into();
        if self.known.len() == REMEMBERED {
            self.known.clear();
        }
        self.known.insert(id, Rc::clone(&text));
        Ok(text)
    }
}

struct Reader<'a> {
    rows: RowCount<'a>,
    texts: NameCache<'a>,
    read: Read,
}

impl Reader<'_> {
    fn span(&mut self, (start, end): (i64, i64)) {
        let (first, last) = self.read.span.unwrap_or((start, end));
        self.read.span = Some((first.min(start), last.max(end)));
    }

    fn op(
        &mut self,
        op: &CausedOp,
        call: Option<CausingCall>,
        details: &mut Details<'_>,
        format: &mut dyn Rocprofv3Format,
    ) -> Result<()> {
        self.rows.step()?;
        self.read.exported.ops += 1;
        let times = (op.start, op.end);
        self.span(times);
        if self.read.gpus.last() != Some(&op.gpu) && !self.read.gpus.contains(&op.gpu) {
            self.read.gpus.push(op.gpu);
        }
        let (name, op_type) = op.name.ids();
        let type_text = self.texts.get(op_type)?;
        let kind = OpKind::of(&type_text);
        let of_op = details.of_op(kind, op.id, (op.gpu, op.queue), call.map(|call| call.id))?;
        let (launch, copied, sides) = (of_op.launch, of_op.copy_bytes, of_op.copy_gpus);
        let stream = of_op.stream_number().unwrap_or(0);
        let thread = call.map_or(0, |call| call.thread.2);
        let call = call.map_or(0, |call| call.id);
        let gpu = agent(op.gpu);
        if kind == OpKind::Copy {
            let direction = direction(&type_text);
            let (from, to) = match direction {
                1 => (HOST, HOST),
                2 => (HOST, gpu),
                3 => (gpu, HOST),
                _ => sides.map_or((gpu, gpu), |(from, to)| (agent(from), agent(to))),
            };
            let bytes = copied.unwrap_or(0);
            return format.copy(&Copied { direction, from, to, bytes, stream, thread, call, times });
        }
        // Its description or, where that is empty, its type.
        let described = self.texts.get(name)?;
        let kernel = if described.is_empty() { (op_type, &*type_text) } else { (name, &*described) };
        let launch = launch.unwrap_or_default();
        let (workgroups, workgroup) = launch.sizes.unwrap_or_default();
        // The format counts a grid in work-items.
        let grid = [0, 1, 2].map(|at| workgroups[at].saturating_mul(workgroup[at]));
        let (agent, queue, id) = (gpu, op.queue, op.id);
        format.dispatch(&Dispatch {
            id,
            kernel,
            agent,
            queue,
            stream,
            thread,
            call,
            times,
            launch,
            workgroup,
            grid,
        })
    }

    fn calls(
        &mut self,
        (trace, version): (&Connection, Version),
        selected: &Selected,
        format: &mut dyn Rocprofv3Format,
    ) -> Result<()> {
        if !has_table(trace, "rocpd_api")? {
            return Ok(());
        }
        let arguments = if version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" };
        let mut arguments = Strings::in_table(trace, arguments)?;
        let processes = rpd_schema::Processes::of(trace)?;
        let mut outliers = Outliers::new();
        let mut rows = trace.prepare(
            "SELECT id, pid, tid, start, rocpd_api.\"end\", apiName_id, args_id FROM rocpd_api ORDER BY id",
        )?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            self.rows.step()?;
            let number = |column| row.get_ref(column).ok().and_then(|value| value.as_i64().ok());
            let times = number(3).zip(number(4)).filter(|times| are_sound(*times));
            let (Some(id), Some(process), Some(thread), Some(times)) =
                (number(0), number(1), number(2), times)
            else {
                self.read.exported.impossible += 1;
                continue;
            };
            if outliers.is_outlier(trace, times)? {
                self.read.exported.impossible += 1;
                continue;
            }
            if !selected.has_call(id) {
                continue;
            }
            self.read.exported.calls += 1;
            self.span(times);
            let of_process = (processes.of_row(id), process);
            if self.read.processes.last() != Some(&of_process) && !self.read.processes.contains(&of_process) {
                self.read.processes.push(of_process);
            }
            let name = number(5).unwrap_or(-1);
            let text = self.texts.get(name)?;
            let call = TracedCall { id, function: (name, &text), process, thread, times };
            if &*text == "UserMarker" {
                let message = arguments.get(number(6).unwrap_or(-1))?.unwrap_or_default();
                format.marker(&call, &message)?;
            } else if marker::is_id(id) {
                format.marker(&call, &text)?;
            } else {
                format.call(&call)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_a_direction() {
        for (op_type, operation) in [
            ("CopyHostToDevice", "MEMORY_COPY_HOST_TO_DEVICE"),
            ("CopyDeviceToHost2D", "MEMORY_COPY_DEVICE_TO_HOST"),
            ("CopyPeer", "MEMORY_COPY_NONE"),
        ] {
            assert_eq!(COPIES[direction(op_type)], operation);
        }
    }

    #[test]
    fn no_gpu_is_the_host() {
        assert!([i64::MIN, -1, 0, 1, i64::MAX].iter().all(|gpu| agent(*gpu) != HOST));
        assert_eq!([agent(0), agent(1), agent(-1)], [1, 2, -2]);
    }
}
