//! The JSON that rocprofv3 writes, which AMD's TraceLens reads.
//!
//! Facts: rocprofv3-schema.json of rocprofiler-sdk (8ab1ed7), the numbers of its fwd.h, and what TraceLens 171dd74 asks for. The format has
//! records for kernels, copies, calls of HIP and of HSA, and markers. Here fills are kernels, as the runtime's own fills are there; calls of
//! any other API are with those of HIP. What the format wants and the trace does not have is 0.

use std::io::{BufWriter, Write};

use anyhow::Result;
use rpd_schema::{SessionInfo, Version};
use rusqlite::Connection;
use rustc_hash::FxHashMap;

use super::Exported;
use super::json::{digits, escape_into};
use super::section::Section;
use super::timeline::{Details, Launch, begin_reading, handle};
use crate::check::outlier::Outliers;
use crate::check::rule::are_sound;
use crate::notes::{Notes, look};
use crate::region::{Region, Selected};
use crate::report::caused::{CausedOp, CausedOps, CausingCall};
use crate::trace::op_kind::OpKind;
use crate::trace::{Strings, has_table};

/// Names whose numbers are remembered at once; one that comes again later is listed twice.
const REMEMBERED: usize = 1 << 18;

/// Rows between two looks for a signal.
const LOOK: u64 = 1 << 12;

/// Rows between two lines of progress.
const STEP: u64 = 1 << 17;

/// Kinds of records: their numbers are their places here, as in `rocprofiler_buffer_tracing_kind_t`.
const KINDS: [&str; 12] = [
    "NONE",
    "HSA_CORE_API",
    "HSA_AMD_EXT_API",
    "HSA_IMAGE_EXT_API",
    "HSA_FINALIZE_EXT_API",
    "HIP_RUNTIME_API",
    "HIP_COMPILER_API",
    "MARKER_CORE_API",
    "MARKER_CONTROL_API",
    "MARKER_NAME_API",
    "MEMORY_COPY",
    "KERNEL_DISPATCH",
];
const HSA_API: i64 = 1;
const HIP_API: i64 = 5;
const MARKER_API: i64 = 7;
const MEMORY_COPY: i64 = 10;
const KERNEL_DISPATCH: i64 = 11;

/// Operations of markers: a mark is the first, a range the second.
const MARKERS: [&str; 2] = ["roctxMarkA", "roctxRangePushA"];

/// Directions of copies, as in `rocprofiler_memory_copy_operation_t`.
const COPIES: [&str; 5] = [
    "MEMORY_COPY_NONE",
    "MEMORY_COPY_HOST_TO_HOST",
    "MEMORY_COPY_HOST_TO_DEVICE",
    "MEMORY_COPY_DEVICE_TO_HOST",
    "MEMORY_COPY_DEVICE_TO_DEVICE",
];

/// `ROCPROFILER_KERNEL_DISPATCH_COMPLETE`.
const DISPATCHES: [&str; 3] = ["KERNEL_DISPATCH_NONE", "KERNEL_DISPATCH_ENQUEUE", "KERNEL_DISPATCH_COMPLETE"];
const COMPLETE: i64 = 2;

/// What an agent is, as in `rocprofiler_agent_type_t`.
const CPU: i64 = 1;
const GPU: i64 = 2;

/// The handle of all CPUs.
const HOST: i64 = 0;

/// What the schema wants of each agent and no trace has.
const CAPABILITIES: [&str; 24] = [
    "HotPluggable",
    "HSAMMUPresent",
    "SharedWithGraphics",
    "QueueSizePowerOfTwo",
    "QueueSize32bit",
    "QueueIdleEvent",
    "VALimit",
    "WatchPointsSupported",
    "WatchPointsTotalBits",
    "DoorbellType",
    "AQLQueueDoubleMap",
    "DebugTrapSupported",
    "WaveLaunchTrapOverrideSupported",
    "WaveLaunchModeSupported",
    "PreciseMemoryOperationsSupported",
    "DEPRECATED_SRAM_EDCSupport",
    "Mem_EDCSupport",
    "RASEventNotify",
    "ASICRevision",
    "SRAM_EDCSupport",
    "SVMAPISupported",
    "CoherentHostAccess",
    "DebugSupportedFirmware",
    "Reserved",
];

/// Writes the part `region` of `trace` to `out`, as of one process.
///
/// # Errors
/// When the trace, or a temporary file, cannot be read, when a signal came (`notes`), or when `out` cannot be written: then an
/// [`std::io::Error`] is in the chain.
pub fn export(
    (trace, version): (&Connection, Version),
    region: &Region,
    notes: &dyn Notes,
    out: &mut (dyn Write + Send),
) -> Result<Exported> {
    begin_reading(trace)?;
    let selected = region.select(trace, version)?;
    let mut records = Records {
        notes,
        sections: Sections {
            dispatches: Section::new(b",\n")?,
            copies: Section::new(b",\n")?,
            hip: Section::new(b",\n")?,
            hsa: Section::new(b",\n")?,
            markers: Section::new(b",\n")?,
            texts: Section::new(b",\n")?,
        },
        kernels: Names::new()?,
        hip_functions: Names::new()?,
        hsa_functions: Names::new()?,
        names: Strings::of(trace)?,
        kinds: FxHashMap::default(),
        gpus: Vec::new(),
        first_ns: i64::MAX,
        last_ns: i64::MIN,
        processes: Vec::new(),
        exported: Exported::default(),
        read: 0,
    };
    let ops = CausedOps::of(trace, &selected)?;
    records.exported.impossible += ops.left_out.impossible;
    let mut details = Details::of(trace)?;
    ops.each(|op, call| records.op(op, call, &mut details))?;
    records.calls((trace, version), &selected)?;
    records.write(trace, out)
}

/// The records of each kind, and the texts of markers.
struct Sections {
    dispatches: Section,
    copies: Section,
    hip: Section,
    hsa: Section,
    markers: Section,
    texts: Section,
}

/// Names that records have by their numbers.
struct Names {
    known: FxHashMap<i64, i64>,
    listed: Section,
}

impl Names {
    fn new() -> Result<Names> {
        Ok(Names { known: FxHashMap::default(), listed: Section::new(b",\n")? })
    }

    /// The number of the text `id`, from 0 on; `list` lists it if it has none so far.
    fn number(&mut self, id: i64, list: impl FnOnce(&mut Vec<u8>, i64)) -> Result<i64> {
        if let Some(number) = self.known.get(&id) {
            return Ok(*number);
        }
        if self.known.len() == REMEMBERED {
            self.known.clear();
        }
        let number = self.listed.count.cast_signed();
        self.listed.add(|element| list(element, number))?;
        self.known.insert(id, number);
        Ok(number)
    }
}

/// Everything that is read, until it is written.
struct Records<'a> {
    notes: &'a dyn Notes,
    sections: Sections,
    kernels: Names,
    hip_functions: Names,
    hsa_functions: Names,
    names: Strings<'a>,
    /// By the text of their type.
    kinds: FxHashMap<i64, (OpKind, usize)>,
    gpus: Vec<i64>,
    first_ns: i64,
    last_ns: i64,
    /// Process and its id.
    processes: Vec<(i64, i64)>,
    exported: Exported,
    read: u64,
}

/// The handle of a GPU; none is [`HOST`].
fn agent(gpu: i64) -> i64 {
    if gpu >= 0 { gpu.saturating_add(1) } else { gpu.saturating_sub(1) }
}

/// Which of [`COPIES`] an operation of this type is.
fn direction(op_type: &str) -> usize {
    let types = ["CopyHostToHost", "CopyHostToDevice", "CopyDeviceToHost", "CopyDeviceToDevice"];
    types.iter().position(|known| op_type.starts_with(known)).map_or(0, |at| at + 1)
}

fn pair(bytes: &mut Vec<u8>, key: &str, number: i64) {
    bytes.extend_from_slice(b",\"");
    bytes.extend_from_slice(key.as_bytes());
    bytes.extend_from_slice(b"\":");
    digits(bytes, number);
}

fn handled(bytes: &mut Vec<u8>, key: &str, number: i64) {
    bytes.extend_from_slice(b",\"");
    bytes.extend_from_slice(key.as_bytes());
    bytes.extend_from_slice(b"\":{\"handle\":");
    digits(bytes, number);
    bytes.push(b'}');
}

fn extent(bytes: &mut Vec<u8>, key: &str, [x, y, z]: [i64; 3]) {
    bytes.extend_from_slice(b",\"");
    bytes.extend_from_slice(key.as_bytes());
    bytes.extend_from_slice(b"\":{\"x\":");
    digits(bytes, x);
    pair(bytes, "y", y);
    pair(bytes, "z", z);
    bytes.push(b'}');
}

/// Begins a record with what all kinds have.
fn begin(bytes: &mut Vec<u8>, (kind, operation): (i64, i64), thread: i64, call: i64, times: (i64, i64)) {
    bytes.extend_from_slice(b"{\"size\":0");
    pair(bytes, "kind", kind);
    pair(bytes, "operation", operation);
    pair(bytes, "thread_id", thread);
    bytes.extend_from_slice(b",\"correlation_id\":{\"internal\":");
    digits(bytes, call);
    bytes.extend_from_slice(b",\"external\":0}");
    pair(bytes, "start_timestamp", times.0);
    pair(bytes, "end_timestamp", times.1);
}

/// Appends a text with its quotes.
fn quoted(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(b'"');
    escape_into(bytes, text);
    bytes.push(b'"');
}

impl Records<'_> {
    fn step(&mut self) -> Result<()> {
        if self.read.is_multiple_of(STEP) {
            self.notes.show(&format!("{} calls and operations read", self.read));
        }
        if self.read.is_multiple_of(LOOK) {
            self.notes.tick();
            look(self.notes)?;
        }
        self.read += 1;
        Ok(())
    }

    fn span(&mut self, (start, end): (i64, i64)) {
        self.first_ns = self.first_ns.min(start);
        self.last_ns = self.last_ns.max(end);
    }

    fn op(&mut self, op: &CausedOp, call: Option<CausingCall>, details: &mut Details<'_>) -> Result<()> {
        self.step()?;
        self.exported.ops += 1;
        self.span((op.start, op.end));
        if self.gpus.last() != Some(&op.gpu) && !self.gpus.contains(&op.gpu) {
            self.gpus.push(op.gpu);
        }
        let (name, op_type) = op.name.ids();
        let (kind, direction) = match self.kinds.get(&op_type) {
            Some(known) => *known,
            None => {
                let text = self.names.get(op_type)?.unwrap_or_default();
                let known = (OpKind::of(&text), direction(&text));
                if self.kinds.len() == REMEMBERED {
                    self.kinds.clear();
                }
                self.kinds.insert(op_type, known);
                known
            }
        };
        let of_op = details.of_op(kind, op.id, call.map(|call| call.id))?;
        let (launch, copied) = (of_op.launch, of_op.copy_bytes);
        let stream = handle(of_op.stream).unwrap_or(0);
        let thread = call.map_or(0, |call| call.thread.2);
        let call = call.map_or(0, |call| call.id);
        let (times, gpu) = ((op.start, op.end), agent(op.gpu));
        if kind == OpKind::Copy {
            let (from, to) = match direction {
                1 => (HOST, HOST),
                2 => (HOST, gpu),
                3 => (gpu, HOST),
                _ => (gpu, gpu),
            };
            return self.sections.copies.add(|bytes| {
                begin(bytes, (MEMORY_COPY, direction as i64), thread, call, times);
                handled(bytes, "stream_id", stream);
                handled(bytes, "dst_agent_id", to);
                handled(bytes, "src_agent_id", from);
                pair(bytes, "bytes", copied.unwrap_or(0));
                bytes.push(b'}');
            });
        }
        let kernel = self.kernel((name, op_type))?;
        let Launch { sizes, lds, scratch, .. } = launch.unwrap_or_default();
        let (workgroups, workgroup) = sizes.unwrap_or_default();
        // The format counts a grid in work-items.
        let grid = [0, 1, 2].map(|at| workgroups[at].saturating_mul(workgroup[at]));
        self.sections.dispatches.add(|bytes| {
            begin(bytes, (KERNEL_DISPATCH, COMPLETE), thread, call, times);
            handled(bytes, "stream_id", stream);
            bytes.extend_from_slice(b",\"dispatch_info\":{\"size\":0");
            handled(bytes, "agent_id", gpu);
            handled(bytes, "queue_id", op.queue);
            pair(bytes, "kernel_id", kernel);
            pair(bytes, "dispatch_id", op.id);
            pair(bytes, "private_segment_size", scratch.unwrap_or(0));
            pair(bytes, "group_segment_size", lds.unwrap_or(0));
            extent(bytes, "workgroup_size", workgroup);
            extent(bytes, "grid_size", grid);
            bytes.extend_from_slice(b"}}");
        })
    }

    /// The number of a kernel, from 1 on: its description or, where that is empty, its type.
    fn kernel(&mut self, (name, op_type): (i64, i64)) -> Result<i64> {
        let mut id = name;
        if !self.kernels.known.contains_key(&name) && self.names.get(name)?.is_none_or(|name| name.is_empty())
        {
            id = op_type;
        }
        let text = match self.kernels.known.contains_key(&id) {
            true => String::new(),
            false => self.names.get(id)?.unwrap_or_default(),
        };
        let number = self.kernels.number(id, |bytes, number| {
            bytes.extend_from_slice(b"{\"size\":0");
            pair(bytes, "kernel_id", number + 1);
            for key in [
                "code_object_id",
                "kernel_object",
                "kernarg_segment_size",
                "kernarg_segment_alignment",
                "group_segment_size",
                "private_segment_size",
            ] {
                pair(bytes, key, 0);
            }
            // TraceLens shows the truncated name, by which different kernels would be one.
            let names =
                ["kernel_name", "formatted_kernel_name", "demangled_kernel_name", "truncated_kernel_name"];
            for key in names {
                bytes.extend_from_slice(format!(",\"{key}\":").as_bytes());
                quoted(bytes, &text);
            }
            bytes.push(b'}');
        })?;
        Ok(number + 1)
    }

    fn calls(&mut self, (trace, version): (&Connection, Version), selected: &Selected) -> Result<()> {
        if !has_table(trace, "rocpd_api")? {
            return Ok(());
        }
        let arguments = if version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" };
        let mut arguments = Strings::in_table(trace, arguments)?;
        let processes = rpd_schema::Processes::of(trace)?;
        let mut outliers = Outliers::new();
        // By id of the name: whether it is a marker, and whether it is HSA's.
        let mut sorts: FxHashMap<i64, (bool, bool)> = FxHashMap::default();
        let mut rows = trace.prepare(
            "SELECT id, pid, tid, start, rocpd_api.\"end\", apiName_id, args_id FROM rocpd_api ORDER BY id",
        )?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            self.step()?;
            let number = |column| row.get_ref(column).ok().and_then(|value| value.as_i64().ok());
            let times = number(3).zip(number(4)).filter(|times| are_sound(*times));
            let (Some(call), Some(pid), Some(tid), Some(times)) = (number(0), number(1), number(2), times)
            else {
                self.exported.impossible += 1;
                continue;
            };
            if outliers.is_outlier(trace, times)? {
                self.exported.impossible += 1;
                continue;
            }
            if !selected.has_call(call) {
                continue;
            }
            self.exported.calls += 1;
            self.span(times);
            let process = (processes.of_row(call), pid);
            if self.processes.last() != Some(&process) && !self.processes.contains(&process) {
                self.processes.push(process);
            }
            let name = number(5).unwrap_or(-1);
            let mut text = None;
            let (is_marker, is_hsa) = match sorts.get(&name) {
                Some(sort) => *sort,
                None => {
                    let named = self.names.get(name)?.unwrap_or_default();
                    let sort = (named == "UserMarker", named.starts_with("hsa_"));
                    text = Some(named);
                    if sorts.len() == REMEMBERED {
                        sorts.clear();
                    }
                    sorts.insert(name, sort);
                    sort
                }
            };
            if is_marker {
                let message = arguments.get(number(6).unwrap_or(-1))?.unwrap_or_default();
                self.sections.texts.add(|bytes| {
                    bytes.extend_from_slice(b"{\"key\":");
                    digits(bytes, call);
                    bytes.extend_from_slice(b",\"value\":");
                    quoted(bytes, &message);
                    bytes.push(b'}');
                })?;
                let operation = i64::from(times.0 != times.1);
                self.sections.markers.add(|bytes| {
                    begin(bytes, (MARKER_API, operation), tid, call, times);
                    bytes.push(b'}');
                })?;
                continue;
            }
            let functions = if is_hsa { &mut self.hsa_functions } else { &mut self.hip_functions };
            let text = match text {
                None if !functions.known.contains_key(&name) => self.names.get(name)?.unwrap_or_default(),
                text => text.unwrap_or_default(),
            };
            let operation = functions.number(name, |bytes, _| quoted(bytes, &text))?;
            let (section, kind) = match is_hsa {
                true => (&mut self.sections.hsa, HSA_API),
                false => (&mut self.sections.hip, HIP_API),
            };
            section.add(|bytes| {
                begin(bytes, (kind, operation), tid, call, times);
                bytes.push(b'}');
            })?;
        }
        Ok(())
    }

    fn write(mut self, trace: &Connection, out: &mut dyn Write) -> Result<Exported> {
        let mut out = BufWriter::with_capacity(64 << 10, out);
        self.processes.sort_unstable_by_key(|(process, pid)| (*pid, *process));
        self.exported.processes = self.processes.len() as u64;
        let mut head = b"{\"rocprofiler-sdk-tool\":[{\n\"metadata\":{\"pid\":".to_vec();
        let (process, pid) = self.processes.first().copied().unwrap_or_default();
        digits(&mut head, pid);
        let span = if self.first_ns > self.last_ns { (0, 0) } else { (self.first_ns, self.last_ns) };
        pair(&mut head, "init_time", span.0);
        pair(&mut head, "fini_time", span.1);
        let sessions = rpd_schema::sessions(trace)?;
        let session = sessions.iter().find(|info| i64::from(info.session) == process);
        head.extend_from_slice(b",\"node\":{\"hostname\":");
        quoted(&mut head, session.and_then(SessionInfo::host).unwrap_or(""));
        head.extend_from_slice(b"},\"command\":[");
        if let Some(command) = session.and_then(SessionInfo::command) {
            quoted(&mut head, command);
        }
        head.extend_from_slice(b"]},\n\"agents\":[");
        agents(&mut head, trace, &mut self.gpus)?;
        head.extend_from_slice(
            b"],\n\"counters\":[],\n\"strings\":{\"callback_records\":[],\n\"buffer_records\":[",
        );
        out.write_all(&head)?;
        let Records { sections, kernels, hip_functions, hsa_functions, exported, .. } = self;
        let (mut hip, mut hsa) = (Some(hip_functions.listed), Some(hsa_functions.listed));
        for (kind, name) in (0..).zip(KINDS) {
            let separator = if kind == 0 { "\n" } else { ",\n" };
            write!(out, "{separator}{{\"kind\":\"{name}\",\"operations\":[")?;
            let listed: &[&str] = match kind {
                MARKER_API => &MARKERS,
                MEMORY_COPY => &COPIES,
                KERNEL_DISPATCH => &DISPATCHES,
                _ => &[],
            };
            out.write_all(
                listed.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(",").as_bytes(),
            )?;
            let functions = match kind {
                HIP_API => hip.take(),
                HSA_API => hsa.take(),
                _ => None,
            };
            if let Some(functions) = functions {
                functions.write(&mut out)?;
            }
            out.write_all(b"]}")?;
        }
        let Sections { dispatches, copies, hip, hsa, markers, texts } = sections;
        let parts = [
            ("],\n\"marker_api\":[", texts),
            (
                "],\n\"counters\":{\"dimension_ids\":[]}},\n\"code_objects\":[],\n\"kernel_symbols\":[\n",
                kernels.listed,
            ),
            ("],\n\"callback_records\":{},\n\"buffer_records\":{\n\"kernel_dispatch\":[\n", dispatches),
            ("],\n\"memory_copy\":[\n", copies),
            ("],\n\"hip_api\":[\n", hip),
            ("],\n\"hsa_api\":[\n", hsa),
            ("],\n\"marker_api\":[\n", markers),
        ];
        for (before, section) in parts {
            out.write_all(before.as_bytes())?;
            section.write(&mut out)?;
        }
        out.write_all(b"]}}]}\n")?;
        out.flush()?;
        Ok(exported)
    }
}

/// Appends the CPUs as one agent, and each GPU.
fn agents(bytes: &mut Vec<u8>, trace: &Connection, gpus: &mut [i64]) -> Result<()> {
    gpus.sort_unstable();
    let known = rpd_schema::gpus(trace)?;
    let name = |gpu: i64| {
        let info = known.iter().find(|info| i64::from(info.gpu) == gpu);
        info.and_then(|info| info.get(rpd_schema::session_fact::GPU_NAME)).unwrap_or("")
    };
    let of_gpus = gpus.iter().map(|gpu| (agent(*gpu), GPU, *gpu, name(*gpu)));
    for (handle, sort, index, name) in std::iter::once((HOST, CPU, 0, "")).chain(of_gpus) {
        bytes.extend_from_slice(if sort == CPU { b"\n" } else { b",\n" });
        bytes.extend_from_slice(b"{\"size\":0,\"id\":{\"handle\":");
        digits(bytes, handle);
        bytes.push(b'}');
        pair(bytes, "type", sort);
        pair(bytes, "logical_node_id", index);
        bytes.extend_from_slice(b",\"name\":");
        quoted(bytes, name);
        bytes.extend_from_slice(b",\"capability\":{");
        for (at, capability) in CAPABILITIES.iter().enumerate() {
            let separator = if at == 0 { "" } else { "," };
            bytes.extend_from_slice(format!("{separator}\"{capability}\":0").as_bytes());
        }
        bytes.extend_from_slice(b"}}");
    }
    Ok(())
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
