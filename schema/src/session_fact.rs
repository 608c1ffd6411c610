//! Names of the facts about a session and a GPU, as they are in the tags `session::N::key` and `gpu::N::key`.
//!
//! The recorder writes them with [`crate::Appender::session_fact`] and [`crate::Appender::gpu_fact`]; tools read them
//! back with [`crate::sessions()`], [`crate::gpus`] and [`crate::lost`].

/// Name of the host.
pub const HOST: &str = "host";
/// Id of the host's boot (`/proc/sys/kernel/random/boot_id`): sessions that share it share CLOCK_MONOTONIC.
pub const BOOT_ID: &str = "boot_id";
/// Process id.
pub const PID: &str = "pid";
/// Which process ids [`PID`] is one of, as `/proc/self/ns/pid` names them: containers of one host have process ids of their own.
pub const PID_NAMESPACE: &str = "pid_namespace";
/// Process id of the parent.
pub const PPID: &str = "ppid";
/// Name of the process, where something else than boot, process id and start has to tell it (merged traces): sessions with
/// the same one are of one process.
pub const PROCESS: &str = "process";
/// Command line.
pub const COMMAND: &str = "command";
/// When the recorder was loaded, or the process was forked from one that is recorded: ns, CLOCK_MONOTONIC. Recording may begin later.
pub const START_MONOTONIC_NS: &str = "start_monotonic_ns";
/// The same moment, ns since 1970, CLOCK_REALTIME.
pub const START_REALTIME_NS: &str = "start_realtime_ns";
/// When the session ended, ns, CLOCK_MONOTONIC. Absent if the process was killed.
pub const END_MONOTONIC_NS: &str = "end_monotonic_ns";
/// The same moment, ns since 1970, CLOCK_REALTIME.
pub const END_REALTIME_NS: &str = "end_realtime_ns";
/// The sources that found what they observe: their names with commas between them, `hsa,hip`.
pub const SOURCES: &str = "sources";
/// What times operations: `hsa`, `hip`, `cupti`, or two of them with a comma between them where the process uses GPUs of two vendors.
pub const TIMING: &str = "timing";
/// Which run of `rpd record` the process belonged to: a name that no other run has.
pub const RUN: &str = "run";
/// Version of the recorder.
pub const RECORDER_VERSION: &str = "version::rpd";
/// Recorded calls that have launched a kernel each which was not known to have completed at the last commit.
pub const LAUNCHES_WITHOUT_OP: &str = "launches_without_op";
/// How many calls, operations, ranges and marks of the session the file has, as of its last transaction: an older copy of the file has fewer.
pub const COMMITTED_EVENTS: &str = "committed_events";
/// CPU time that the recorder itself used, ns.
pub const RECORDER_CPU_NS: &str = "recorder_cpu_ns";
/// Which part of a recording in parts the file was, from 1. A process goes on from part to part, with a session in each.
pub const PART: &str = "part";
/// When that part was begun, ns since 1970, CLOCK_REALTIME: by whichever process was the first.
pub const PART_BEGAN_REALTIME_NS: &str = "part_began_realtime_ns";
/// The file of the part that the process came from. Absent where it was in none before.
pub const PART_BEFORE: &str = "part_before";
/// The file of the part in which the process went on. Absent where it was in none behind this one.
pub const NEXT_PART: &str = "next_part";
/// Calls of the process with smaller local ids had begun when it came into the part: the session has rows of some that had not ended, and of
/// some that stand for the call of an operation that had not completed. The call's own row has the same local id in an earlier part.
pub const CALLS_BEFORE_PART: &str = "calls_before_part";

/// When the program called `abort`, ns, CLOCK_MONOTONIC. All that had been recorded by then is in the file.
pub const ABORT_MONOTONIC_NS: &str = "abort_monotonic_ns";
/// Kernels that had not completed when the program called `abort`: the oldest of each queue.
pub const ABORT_KERNELS: &str = "abort_kernels";
/// Queues that failed: which, why, and what ran on them.
pub const QUEUE_ERROR: &str = "queue_error";
/// The directory with kernels that were to run in the place of the program's own.
pub const KERNEL_CACHE: &str = "kernel_cache";
/// The program's kernels and those of the cache ran by turns: `ABAB`, `random` or `blocks=N`. Absent where they did not.
pub const ALTERNATE: &str = "alternate";
/// What decided whose turn it was, where it was random.
pub const ALTERNATE_SEED: &str = "alternate_seed";
/// Dispatches that were not compared when their turn came, because so many waited already. Absent where there was none.
pub const VALIDATION_MISSED: &str = "validation_missed";
/// The directory in which the bytes of code objects were saved.
pub const SAVED_CODE: &str = "saved_code";
/// When recording was stopped or had not begun, as [`crate::session_times()`] reads it. Absent where it never was.
pub const STOPPED: &str = "stopped";
/// When records were lost, as [`crate::session_times()`] reads it. Absent where none was, or nobody knows when.
pub const LOST_TIMES: &str = "lost_times";
/// The note beside the trace from which facts were taken in.
pub const TAKEN_IN: &str = "taken_in";

/// Environment variables that name the rank of a process in its job. The first that is set counts, for `%r` in a name too.
pub use rpd_settings::rank::VARIABLES as RANK_VARIABLES;

/// Environment variables that name the job a process belongs to, for `%j` in a name too.
pub use rpd_settings::job::VARIABLES as JOB_VARIABLES;

/// Prefix of environment variables: `env::RANK`.
pub const ENV: &str = "env::";
/// Prefix of counts of what was recorded: `recorded::kernel`.
pub const RECORDED: &str = "recorded::";
/// Prefix of counts of what was lost, by cause: `lost::buffer_full`.
pub const LOST: &str = "lost::";
/// Prefix of versions of what was traced: `version::hsa`.
pub const VERSION: &str = "version::";

/// Time between two samples of sensors, ns.
pub const MONITOR_PERIOD_NS: &str = "monitor_period_ns";
/// In front of the number of a GPU whose memory is known.
pub const MONITOR_VRAM_TOTAL: &str = "monitor_vram_total::";
/// In front of the number of a GPU and a sensor: the file that the sensor was read from.
pub const MONITOR_FILE: &str = "monitor_file::";
/// A GPU's marketing or product name.
pub const GPU_NAME: &str = "name";
/// A GPU's unique id.
pub const GPU_UUID: &str = "uuid";
/// A GPU's PCI address: domain:bus:device.function.
pub const GPU_BDF: &str = "bdf";
/// A GPU's instruction set: gfx90a ...
pub const GPU_TARGET: &str = "target";

/// The key of the memory of a GPU whose sensors were sampled, bytes.
#[must_use]
pub fn monitor_vram_total(gpu: u32) -> String {
    format!("{MONITOR_VRAM_TOTAL}{gpu}")
}

/// The key of the file that a sensor of a GPU was read from.
#[must_use]
pub fn monitor_file(gpu: u32, sensor: &str) -> String {
    format!("{MONITOR_FILE}{gpu}::{sensor}")
}

/// The key of an environment variable.
#[must_use]
pub fn env(variable: &str) -> String {
    format!("{ENV}{variable}")
}

/// The key of a count of recorded things of one kind.
#[must_use]
pub fn recorded(kind: &str) -> String {
    format!("{RECORDED}{kind}")
}

/// The key of a count of lost records of one cause.
#[must_use]
pub fn lost(cause: &str) -> String {
    format!("{LOST}{cause}")
}

/// The key of a version of something that was traced.
#[must_use]
pub fn version(of: &str) -> String {
    format!("{VERSION}{of}")
}
