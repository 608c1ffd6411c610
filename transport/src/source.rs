//! Where records come from: what transport asks of a source, and tells it.
//!
//! A source observes one runtime, library or interface (HSA, HIP, roctx, ...). It pushes records from its hooks. All that the writer must
//! know beyond the records it asks here: what a function is called, what its arguments mean, what is known of a kernel. Every function has
//! a default, so a source names the moments that it needs and no others.
//!
//! [`Launch`] is what a call was given; `rpd_codeobject::Launch` is the packet that comes of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::env::Env;
use crate::recorder::Recorder;
use crate::records::{Call, Dispatch, KernelId};

/// Kernels that were launched in queues that exist.
#[derive(Debug, Clone, Copy, Default)]
pub struct Launched {
    /// All of them.
    pub all: u64,
    /// Those that are not known to have completed.
    pub in_flight: u64,
}

/// One source. See the module.
pub trait Source: Sync {
    /// Its name in the file's list of sources.
    fn name(&self) -> &'static str;

    /// Its number in records, which no other source has.
    fn number(&self) -> u8;

    /// Reads the variables of its own. The library is being loaded: no locks, no threads, nothing is opened.
    fn configure(&self, _env: &mut Env<'_>) {}

    /// The library is loaded, and the recorder is there.
    fn loaded(&self, _at: Loading) {}

    /// rocprofiler-register hands over the tables of a library, inside that library's initialisation: nothing of it may be called.
    fn offered(&self, _offer: &Offer<'_>) -> Answer {
        Answer::NotMine
    }

    /// A runtime may have come that has not been seen yet.
    fn noticed(&self) {}

    /// Recording has been started: what follows is recorded when this returns.
    fn started(&self, _recorder: &'static Recorder) {}

    /// The writer's thread is between two transactions. Here a source follows the switch where that may take time.
    fn visit(&self, _recorder: &'static Recorder) {}

    /// How soon after a visit the next one is to come, where RPDT_AUTOFLUSH is too slow.
    fn next_visit(&self) -> Option<Duration> {
        None
    }

    /// Puts records of all that has completed by now into a ring. False: not within `deadline`, and a later try may have more.
    fn collect(&self, _deadline: Duration) -> bool {
        true
    }

    /// Whether each of its operations comes behind its call, in one ring. It has the writer woken itself, and is not asked to collect before
    /// each drain.
    fn keeps_order(&self) -> bool {
        false
    }

    /// Waits up to `deadline` until all that was begun while recording has completed.
    fn drain(&self, _deadline: Duration) {}

    /// How many kernels were launched so far.
    fn launched(&self) -> Launched {
        Launched::default()
    }

    /// The program comes down: as [`Source::collect`], on the thread that brings it down, without taking memory.
    fn abort(&self, _deadline: Duration) {}

    /// The process ends: what completes within `deadline` is recorded, the rest counted. Hooks only pass on from here.
    fn finish(&self, _deadline: Duration) {}

    /// Whether it has found what it observes.
    fn is_used(&self) -> bool {
        false
    }

    /// Whether operations should have a call of this source: those without one are counted.
    fn causes_operations(&self) -> bool {
        false
    }

    /// Whether the thread makes its records of operations, and never calls anything of the program's.
    fn is_own_thread(&self, _tid: u32) -> bool {
        false
    }

    /// What it observes, for `rpd record`: `loaded`, `mapped` where it is there and not seen, `no`.
    fn presence(&self) -> Option<&'static str> {
        None
    }

    /// The name of its function number `index`, for an operation that has no call of its own in the file.
    fn function(&self, _index: u16) -> &'static str {
        ""
    }

    /// What a call was and was asked for.
    fn describe(&self, call: &Call, _arguments: &[u8]) -> Option<CallText> {
        Some(CallText { name: self.function(call.function), ..CallText::default() })
    }

    /// What the session says of it.
    fn facts(&self, _add: &mut dyn FnMut(&str, &str)) {}

    /// Is shown every dispatch on its way to the file. Asked for once, when the writer starts.
    fn watch(&self) -> Option<Watch> {
        None
    }

    /// What became of what it observes by, for `rpd record`: a name, and a word.
    fn state(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// The GPUs that it alone has found; none before it knows them.
    fn gpus(&self) -> Vec<GpuFacts> {
        Vec::new()
    }

    /// Versions of what it has found, with the names for them: see [`GpuTable::versions`].
    fn versions(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// What times the operations that it records, where it has them timed itself: see [`GpuTable::timing`].
    fn timing(&self) -> Option<&'static str> {
        None
    }
}

/// See [`Source::watch`].
pub type Watch = Box<dyn FnMut(&Dispatch) + Send>;

/// How the library comes into the process.
#[derive(Clone, Copy, Debug)]
pub struct Loading {
    /// The GPU runtime loads it, as a tool.
    pub by_runtime: bool,
    /// librpd_remote.so loads it, because recording was started from outside.
    pub by_remote: bool,
}

/// Tables of one library.
pub struct Offer<'a> {
    /// Such as `hsa`, `hip`, `roctx`.
    pub name: &'a [u8],
    /// Which copy of the library in this process, from 0.
    pub instance: u64,
    /// Their addresses.
    pub tables: &'a [*mut std::ffi::c_void],
}

/// What a source makes of an [`Offer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It does not know that library.
    NotMine,
    /// Its hooks are in.
    Taken,
    /// The tables stay as they are, or another tool is to have them too.
    Declined,
}

/// A call in words.
#[derive(Clone, Debug, Default)]
pub struct CallText {
    /// The function.
    pub name: &'static str,
    /// Its arguments.
    pub arguments: String,
    /// It launches one kernel, which has an operation of its own where the call submitted something.
    pub launches: bool,
    /// What else a row is made of.
    pub detail: Detail,
}

/// The row that a call fills beside its own.
#[derive(Clone, Debug, Default)]
pub enum Detail {
    /// None.
    #[default]
    Nothing,
    /// It launches a kernel.
    Launch(Launch),
    /// It copies.
    Copy(Transfer),
    /// It is a call of a library.
    Library {
        /// The library.
        domain: &'static str,
        /// What it does, such as `blas`.
        category: &'static str,
    },
}

/// Arguments of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Workgroups, rounded up.
    pub grid: [u32; 3],
    /// Work-items of a workgroup.
    pub workgroup: [u32; 3],
    /// Dynamic LDS, bytes.
    pub shared: u32,
    /// Stream, 0 for the default stream.
    pub stream: u64,
}

/// Arguments of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    /// Destination: an address, a symbol or an array.
    pub dst: u64,
    /// Source.
    pub src: u64,
    /// Bytes, all rows together.
    pub bytes: u64,
    /// Bytes per row of a rectangle, otherwise 0.
    pub width: u64,
    /// Rows (times slices) of a rectangle, otherwise 0.
    pub height: u64,
    /// The runtime's number of the destination's device, where the call says it.
    pub dst_device: Option<i32>,
    /// The runtime's number of the source's device, where the call says it.
    pub src_device: Option<i32>,
    /// The direction as hipMemcpyKind and cudaMemcpyKind have it, where the call says it.
    pub kind: Option<u32>,
    /// Stream, 0 for the default stream.
    pub stream: u64,
    /// The call waits for the copy.
    pub sync: bool,
}

/// What is known of GPUs and kernels, by their numbers in records.
pub trait GpuTable: Sync {
    /// A kernel; nothing for a number that no kernel has.
    fn kernel(&self, id: KernelId) -> Option<KernelText>;

    /// What became of files of the kernel cache, from number `from` on, counted from 0.
    fn candidates(&self, _from: usize) -> Vec<CandidateText> {
        Vec::new()
    }

    /// What was compared before the replaced dispatch at that place of its queue ran, asked for once.
    fn validation(&self, _gpu: u32, _queue: u32, _sequence: u64) -> Vec<ValidationText> {
        Vec::new()
    }

    /// What the log begins with where it has reports of analyzers in place of a line for each kernel.
    fn report_header(&self) -> Option<&'static str> {
        None
    }

    /// The code objects that the process has loaded, from row `from` on, counted from 0; none where they are not saved.
    fn code_objects(&self, _from: usize) -> Vec<CodeObjectText> {
        Vec::new()
    }

    /// The row of the code object of that number (see [`KernelText`]); nothing before it has one.
    fn code_object(&self, _number: u32) -> Option<usize> {
        None
    }

    /// Whether the duration log has kernels of that demangled name.
    fn is_logged(&self, _name: &str) -> bool {
        true
    }

    /// The GPUs that this process sees; none before a runtime is known.
    fn gpus(&self) -> Vec<GpuFacts>;

    /// Versions of what the process uses its GPUs by, with the names for them, such as `driver`; asked for once there are GPUs.
    fn versions(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// What times operations, such as `hsa`; more than one where the process uses GPUs of two vendors, none before something does.
    fn timing(&self) -> Vec<&'static str>;
}

/// A kernel in words.
#[derive(Clone, Debug, Default)]
pub struct KernelText {
    /// Its demangled name.
    pub name: String,
    /// What it does.
    pub role: Role,
    /// Registers and sizes, where its code object could be read.
    pub code: Option<CodeFacts>,
    /// Number of the code object that it came in, where those are saved: see [`GpuTable::code_object`].
    pub code_object: Option<u32>,
    /// The kernel of the application in whose place it runs, and the number of the candidate that it is of: see
    /// [`GpuTable::candidates`].
    pub replaces: Option<(KernelId, u32)>,
    /// It is an instrumented one.
    pub is_instrumented: bool,
}

pub use rpd_schema::{Block, Finding, Outcome};

/// What became of a file of the kernel cache.
#[derive(Clone, Debug)]
pub struct CandidateText {
    /// The file.
    pub path: String,
    /// SHA-256 of its bytes, in hexadecimal digits; empty where they could not be read.
    pub sha256: String,
    /// The processor that it is for; empty where that is not known.
    pub target: String,
    /// When its kernels could be used, ns of CLOCK_MONOTONIC; 0 where they cannot.
    pub loaded: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// Why, in words.
    pub reason: String,
}

/// A buffer argument of a replaced dispatch, after the application's kernel and after the candidate: see `rpd_schema::ValidationRow`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationText {
    /// Place among the kernel's arguments, from 0; none where nothing could be compared.
    pub argument: Option<u32>,
    /// Bytes from the start of the arguments.
    pub offset: u32,
    /// As what it was compared.
    pub compared: &'static str,
    /// How many elements were compared.
    pub elements: u64,
    /// How many of them the application's kernel changed.
    pub written: u64,
    /// How many differ.
    pub different: u64,
    /// Place of the first that differs, elements from the argument's address.
    pub first: i64,
    /// What the application's kernel left there, and the candidate.
    pub values: [String; 2],
    /// The largest difference.
    pub largest: String,
    /// Why nothing could be compared.
    pub reason: String,
}

/// What an analyzer was given of an instrumented dispatch, and made of it: see `rpd_schema::InstrumentationRow`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AnalysisText {
    /// The analyzer.
    pub analyzer: String,
    /// Messages of all kinds.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that no analyzer was given.
    pub dropped: u64,
    /// What else is missing, in words.
    pub reason: String,
    /// What it found.
    pub findings: Vec<Finding>,
}

/// A code object that the process has loaded.
#[derive(Clone, Debug, Default)]
pub struct CodeObjectText {
    /// SHA-256 of its bytes, in hexadecimal digits; empty where there was no room to keep them.
    pub sha256: String,
    /// Where the program had it.
    pub uri: String,
    /// The processor that it is for; empty where it does not say.
    pub target: String,
    /// Bytes.
    pub size: u64,
}

/// What a kernel does: the runtime's own kernels copy and fill, and are no kernels of the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// A kernel of the application or of a library.
    #[default]
    Kernel,
    /// A copy.
    Copy,
    /// A rectangular copy.
    CopyRect,
    /// A fill.
    Fill,
    /// All that a graph does.
    Graph,
}

/// Registers and sizes of a kernel, as its code object has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeFacts {
    /// Vector registers of a lane.
    pub vgpr: u32,
    /// Scalar registers of a wavefront.
    pub sgpr: u32,
    /// Accumulation registers of a lane.
    pub agpr: u32,
    /// Vector registers kept in scratch.
    pub vgpr_spill: u32,
    /// Scalar registers kept in scratch or vector registers.
    pub sgpr_spill: u32,
    /// Bytes of LDS per workgroup.
    pub group_segment_size: u32,
    /// Bytes of scratch per work-item.
    pub private_segment_size: u32,
    /// Bytes of kernel arguments.
    pub kernarg_segment_size: u32,
    /// Work-items of a wavefront.
    pub wavefront_size: u32,
    /// Work-items of a workgroup at most.
    pub max_workgroup_size: u32,
}

/// A GPU as the file describes it. Texts that are not known are empty.
#[derive(Clone, Debug, Default)]
pub struct GpuFacts {
    /// Index among all GPUs of the node.
    pub index: u32,
    /// What it is sold as.
    pub name: String,
    /// Target processor, such as `gfx90a`.
    pub target: String,
    /// PCI address.
    pub bdf: String,
    /// The vendor's unique id.
    pub uuid: String,
}
