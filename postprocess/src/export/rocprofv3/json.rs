//! The JSON that rocprofv3 writes, which AMD's TraceLens reads.
//!
//! Facts: rocprofv3-schema.json of rocprofiler-sdk (8ab1ed7), the numbers of its fwd.h, and what TraceLens 171dd74 asks for. The format has
//! records for kernels, copies, calls of HIP and of HSA, and markers. Here calls of any other API are with those of HIP. What the format
//! wants and the trace does not have is 0.

use std::io::{BufWriter, Write};

use anyhow::Result;
use rpd_schema::{SessionInfo, Version};
use rusqlite::Connection;
use rustc_hash::FxHashMap;

use super::records::{self, Copied, Dispatch, HOST, Read, Rocprofv3Format, TracedCall, agent};
use crate::export::Exported;
use crate::export::json::{digits, escape_into};
use crate::export::section::Section;
use crate::notes::Notes;
use crate::region::Region;

/// Names whose numbers are remembered at once; one that comes again later is listed twice.
const REMEMBERED: usize = 1 << 18;

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

/// `ROCPROFILER_KERNEL_DISPATCH_COMPLETE`.
const DISPATCHES: [&str; 3] = ["KERNEL_DISPATCH_NONE", "KERNEL_DISPATCH_ENQUEUE", "KERNEL_DISPATCH_COMPLETE"];
const COMPLETE: i64 = 2;

/// What an agent is, as in `rocprofiler_agent_type_t`.
const CPU: i64 = 1;
const GPU: i64 = 2;

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
    trace: (&Connection, Version),
    region: &Region,
    notes: &dyn Notes,
    out: &mut (dyn Write + Send),
) -> Result<Exported> {
    let mut written = Json {
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
    };
    let read = records::read(trace, region, notes, &mut written)?;
    written.write(trace.0, read, out)
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
struct Json {
    sections: Sections,
    kernels: Names,
    hip_functions: Names,
    hsa_functions: Names,
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

impl Rocprofv3Format for Json {
    fn dispatch(&mut self, of: &Dispatch<'_>) -> Result<()> {
        let kernel = self.kernel(of.kernel)?;
        self.sections.dispatches.add(|bytes| {
            begin(bytes, (KERNEL_DISPATCH, COMPLETE), of.thread, of.call, of.times);
            handled(bytes, "stream_id", of.stream);
            bytes.extend_from_slice(b",\"dispatch_info\":{\"size\":0");
            handled(bytes, "agent_id", of.agent);
            handled(bytes, "queue_id", of.queue);
            pair(bytes, "kernel_id", kernel);
            pair(bytes, "dispatch_id", of.id);
            pair(bytes, "private_segment_size", of.launch.scratch.unwrap_or(0));
            pair(bytes, "group_segment_size", of.launch.lds.unwrap_or(0));
            extent(bytes, "workgroup_size", of.workgroup);
            extent(bytes, "grid_size", of.grid);
            bytes.extend_from_slice(b"}}");
        })
    }

    fn copy(&mut self, of: &Copied) -> Result<()> {
        self.sections.copies.add(|bytes| {
            begin(bytes, (MEMORY_COPY, of.direction as i64), of.thread, of.call, of.times);
            handled(bytes, "stream_id", of.stream);
            handled(bytes, "dst_agent_id", of.to);
            handled(bytes, "src_agent_id", of.from);
            pair(bytes, "bytes", of.bytes);
            bytes.push(b'}');
        })
    }

    fn call(&mut self, of: &TracedCall<'_>) -> Result<()> {
        let is_hsa = of.function.1.starts_with("hsa_");
        let (functions, section, kind) = match is_hsa {
            true => (&mut self.hsa_functions, &mut self.sections.hsa, HSA_API),
            false => (&mut self.hip_functions, &mut self.sections.hip, HIP_API),
        };
        let (id, text) = of.function;
        let operation = functions.number(id, |bytes, _| quoted(bytes, text))?;
        section.add(|bytes| {
            begin(bytes, (kind, operation), of.thread, of.id, of.times);
            bytes.push(b'}');
        })
    }

    fn marker(&mut self, of: &TracedCall<'_>, message: &str) -> Result<()> {
        self.sections.texts.add(|bytes| {
            bytes.extend_from_slice(b"{\"key\":");
            digits(bytes, of.id);
            bytes.extend_from_slice(b",\"value\":");
            quoted(bytes, message);
            bytes.push(b'}');
        })?;
        let operation = i64::from(of.times.0 != of.times.1);
        self.sections.markers.add(|bytes| {
            begin(bytes, (MARKER_API, operation), of.thread, of.id, of.times);
            bytes.push(b'}');
        })
    }
}

impl Json {
    /// The number of a kernel, from 1 on.
    fn kernel(&mut self, (id, text): (i64, &str)) -> Result<i64> {
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
                quoted(bytes, text);
            }
            bytes.push(b'}');
        })?;
        Ok(number + 1)
    }

    fn write(self, trace: &Connection, read: Read, out: &mut dyn Write) -> Result<Exported> {
        let mut out = BufWriter::with_capacity(64 << 10, out);
        let mut head = b"{\"rocprofiler-sdk-tool\":[{\n\"metadata\":{\"pid\":".to_vec();
        let (process, pid) = read.processes.first().copied().unwrap_or_default();
        digits(&mut head, pid);
        let span = read.span.unwrap_or((0, 0));
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
        agents(&mut head, trace, &read.gpus)?;
        head.extend_from_slice(
            b"],\n\"counters\":[],\n\"strings\":{\"callback_records\":[],\n\"buffer_records\":[",
        );
        out.write_all(&head)?;
        let Json { sections, kernels, hip_functions, hsa_functions } = self;
        let (mut hip, mut hsa) = (Some(hip_functions.listed), Some(hsa_functions.listed));
        for (kind, name) in (0..).zip(KINDS) {
            let separator = if kind == 0 { "\n" } else { ",\n" };
            write!(out, "{separator}{{\"kind\":\"{name}\",\"operations\":[")?;
            let listed: &[&str] = match kind {
                MARKER_API => &MARKERS,
                MEMORY_COPY => &records::COPIES,
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
        Ok(read.exported)
    }
}

/// Appends the CPUs as one agent, and each GPU.
fn agents(bytes: &mut Vec<u8>, trace: &Connection, gpus: &[i64]) -> Result<()> {
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
