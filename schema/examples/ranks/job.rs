//! The traces of the ranks of a job, made of random numbers, with stragglers of each kind. So there is a truth that no query was asked for.
//!
//! Each rank computes for a millisecond in each iteration, then all of them reduce: this collective begins on each rank when it is done
//! with computing, and ends on all when the last one has begun and the data went over the network. Another collective hides behind the
//! computing. Eight ranks share a node, and each node has a monotonic clock of its own.

use std::error::Error;
use std::path::{Path, PathBuf};

use rpd_schema::{ApiId, ApiRow, Appender, MonitorRow, OpId, OpRow, session_fact};

/// The collective for which ranks wait.
pub(crate) const REDUCE: &str = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
/// The one that hides behind computing.
pub(crate) const GATHER: &str = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

const RANKS_OF_NODE: u64 = 8;
/// When the job began, ns since 1970.
const BEGIN: u64 = 1_700_000_000_000_000_000;
const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// Computing of an iteration.
const COMPUTE: u64 = MS;
/// How long the data of a collective takes.
const TRANSFER: u64 = 200 * US;
/// How long it takes when the network is slow.
const SLOW_TRANSFER: u64 = 1200 * US;
/// How late a straggler is.
const LATE: u64 = 3 * MS;
/// Between the call that launches an operation and its start, where nothing is late.
const LAUNCH: u64 = 20 * US;
const BETWEEN_ITERATIONS: u64 = 100 * US;
/// Between two readings of a sensor.
pub(crate) const READING: u64 = 10 * MS;
/// Rows of a transaction.
const TRANSACTION: u64 = 50_000;

/// A job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub(crate) ranks: u64,
    pub(crate) iterations: u64,
    /// Of an iteration, on each rank.
    pub(crate) kernels: u64,
    pub(crate) seed: u64,
}

/// What makes an iteration slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slow {
    Nothing,
    /// A kernel of this rank takes long.
    Compute(u64),
    /// This rank launches the collective late.
    Launch(u64),
    /// This rank launches it in time, and it begins late.
    Queue(u64),
    Network,
}

/// An iteration, ns since the job began.
struct Iteration {
    begin: u64,
    /// When the data of the collective begins to go over the network.
    all_ready: u64,
    end: u64,
}

impl Job {
    /// What makes an iteration slow.
    pub(crate) fn slow(&self, iteration: u64) -> Slow {
        match iteration % 10 {
            1 => Slow::Compute(self.ranks / 4),
            3 => Slow::Launch(self.ranks / 2),
            5 => Slow::Queue(self.ranks * 3 / 4),
            7 => Slow::Network,
            _ => Slow::Nothing,
        }
    }

    /// The rank that has lost the last collective of the other kind.
    pub(crate) fn loser(&self) -> u64 {
        self.ranks - 1
    }

    /// The average power of a rank's GPU, thousandths of a watt.
    pub(crate) fn milliwatts(rank: u64) -> u64 {
        300_125 + rank % RANKS_OF_NODE * 500
    }

    /// The name of the host of a rank.
    pub(crate) fn node(rank: u64) -> String {
        format!("node{}", rank / RANKS_OF_NODE)
    }

    /// The file of a rank.
    pub(crate) fn file(directory: &Path, rank: u64) -> PathBuf {
        directory.join(format!("rank{rank:04}.rpd"))
    }

    /// Writes a file for each rank.
    ///
    /// # Errors
    /// When one cannot be written.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), Box<dyn Error>> {
        let mut iterations = Vec::new();
        let mut begin = MS;
        for iteration in 0..self.iterations {
            let ready = (0..self.ranks).map(|rank| begin + self.ready(rank, iteration).1);
            let all_ready = ready.max().unwrap_or(begin);
            let transfer = if self.slow(iteration) == Slow::Network { SLOW_TRANSFER } else { TRANSFER };
            let end = all_ready + transfer;
            iterations.push(Iteration { begin, all_ready, end });
            begin = end + BETWEEN_ITERATIONS;
        }
        (0..self.ranks).try_for_each(|rank| self.write_rank(&Job::file(directory, rank), rank, &iterations))
    }

    /// How long each kernel takes.
    fn kernel_times(&self, rank: u64, iteration: u64) -> impl Iterator<Item = u64> {
        let mut random = fastrand::Rng::with_seed(self.seed ^ rank << 40 ^ iteration << 8);
        let (kernels, extra) = (self.kernels, self.slow(iteration) == Slow::Compute(rank));
        (0..kernels).map(move |kernel| {
            let usual = COMPUTE / kernels;
            let extra = if extra && kernel == kernels - 1 { LATE } else { 0 };
            // One percent more or less: ranks are late by less than what counts.
            usual - usual / 100 + random.u64(0..=usual / 50) + extra
        })
    }

    /// When a rank is done with computing, and when its collective begins, ns since the iteration began.
    fn ready(&self, rank: u64, iteration: u64) -> (u64, u64) {
        let computed = LAUNCH + self.kernel_times(rank, iteration).sum::<u64>();
        let is_late = [Slow::Launch(rank), Slow::Queue(rank)].contains(&self.slow(iteration));
        (computed, computed + US + if is_late { LATE } else { 0 })
    }

    fn write_rank(&self, path: &Path, rank: u64, iterations: &[Iteration]) -> Result<(), Box<dyn Error>> {
        let (node, gpu) = (rank / RANKS_OF_NODE, rank % RANKS_OF_NODE);
        // The job's beginning on the clock of this node.
        let begin = (1 + node) * 1_000_000_000;
        let mut trace = Trace {
            appender: Appender::open(path)?,
            begin,
            gpu: gpu as u32,
            pid: 1000 + rank as u32,
            op: 0,
            call: 0,
        };
        trace.appender.begin()?;
        let moment = |ns: u64| [begin + ns, BEGIN + ns].map(|time| time.to_string());
        let [monotonic, realtime] = moment(0);
        let end = iterations.last().map_or(0, |last| last.end) + MS;
        let [end_monotonic, end_realtime] = moment(end);
        for (key, value) in [
            (session_fact::HOST.to_string(), Job::node(rank)),
            (session_fact::BOOT_ID.to_string(), format!("0000000{node:04}-boot")),
            (session_fact::PID.to_string(), trace.pid.to_string()),
            (session_fact::START_MONOTONIC_NS.to_string(), monotonic),
            (session_fact::START_REALTIME_NS.to_string(), realtime),
            (session_fact::END_MONOTONIC_NS.to_string(), end_monotonic),
            (session_fact::END_REALTIME_NS.to_string(), end_realtime),
            (session_fact::env("RANK"), rank.to_string()),
            (session_fact::env("WORLD_SIZE"), self.ranks.to_string()),
            (session_fact::env("SLURM_JOB_ID"), "4711".to_string()),
        ] {
            trace.appender.session_fact(&key, &value)?;
        }
        for (number, iteration) in (0..).zip(iterations) {
            self.write_iteration(&mut trace, rank, number, iteration)?;
            if trace.op % TRANSACTION < self.kernels + 4 {
                trace.appender.commit()?;
                trace.appender.begin()?;
            }
        }
        let milliwatts = Job::milliwatts(rank);
        for reading in 0..end.div_ceil(READING) {
            let start = begin + reading * READING;
            let watts = format!("{}.{:03}", milliwatts / 1000, milliwatts % 1000);
            let joules = format!("{:.3}", (reading * milliwatts * (READING / MS)) as f64 / 1e6);
            for (sensor, value) in [("power", watts), ("energy", joules)] {
                trace.appender.monitor(&MonitorRow {
                    device_type: "gpu",
                    device: gpu as u32,
                    monitor_type: sensor,
                    start,
                    end: start + READING,
                    value: &value,
                })?;
            }
        }
        trace.appender.commit()?;
        Ok(())
    }

    fn write_iteration(
        &self,
        trace: &mut Trace,
        rank: u64,
        number: u64,
        iteration: &Iteration,
    ) -> Result<(), Box<dyn Error>> {
        let begin = iteration.begin;
        trace.marker(number, &format!("step {number}"), (begin, iteration.end))?;
        trace.op(
            ("hipMemcpyAsync", "CopyHostToDevice", ""),
            0,
            begin,
            (begin + LAUNCH, begin + LAUNCH + 50 * US),
        )?;
        let is_lost = rank == self.loser() && number + 1 == self.iterations;
        if !is_lost {
            trace.op(
                ("ncclAllGather", "KernelExecution", GATHER),
                2,
                begin,
                (begin + LAUNCH, begin + LAUNCH + 300 * US),
            )?;
        }
        let mut at = begin + LAUNCH;
        for (kernel, time) in self.kernel_times(rank, number).enumerate() {
            let name = format!("kernel{}(float*)", kernel % 50);
            trace.op(("hipLaunchKernel", "KernelExecution", &name), 1, at - LAUNCH, (at, at + time))?;
            at += time;
        }
        let (computed, ready) = self.ready(rank, number);
        let (computed, ready) = (begin + computed, begin + ready);
        // The GPU waits, and does no work.
        trace.op(("hipStreamWaitEvent", "Barrier", ""), 3, computed - LAUNCH, (computed, ready))?;
        // The program runs ahead of its GPU, except where it is late itself.
        let called =
            if self.slow(number) == Slow::Launch(rank) { ready - LAUNCH } else { begin + COMPUTE / 2 };
        trace.op(("ncclAllReduce", "KernelExecution", REDUCE), 2, called, (ready, iteration.end))?;
        debug_assert!(ready <= iteration.all_ready, "nobody is later than the last");
        Ok(())
    }
}

/// The trace of a rank, and the ids of its last rows.
struct Trace {
    appender: Appender,
    /// When the job began, ns on the clock of the node.
    begin: u64,
    gpu: u32,
    pid: u32,
    op: u64,
    call: u64,
}

impl Trace {
    /// An operation of a call; times in ns since the job began.
    fn op(
        &mut self,
        (call, kind, name): (&str, &str, &str),
        queue: u32,
        called: u64,
        (start, end): (u64, u64),
    ) -> Result<(), rpd_schema::Error> {
        self.call += 1;
        self.op += 1;
        let (api, id) = (ApiId::call(self.call), OpId(self.op));
        let (call, op_type) = (self.appender.intern(call)?, self.appender.intern(kind)?);
        let (description, args) = (self.appender.intern(name)?, self.appender.empty());
        let called = self.begin + called;
        let (pid, tid) = (self.pid, self.pid);
        self.appender.api(&ApiRow {
            id: api,
            pid,
            tid,
            start: called,
            end: called + 5 * US,
            name: call,
            args,
        })?;
        let (start, end) = (self.begin + start, self.begin + end);
        let (gpu, sequence, completion_signal) = (self.gpu, self.op, 0);
        self.appender.op(&OpRow {
            id,
            gpu,
            queue,
            sequence,
            completion_signal,
            start,
            end,
            description,
            op_type,
        })?;
        self.appender.api_op(api, id)
    }

    fn marker(
        &mut self,
        number: u64,
        message: &str,
        (start, end): (u64, u64),
    ) -> Result<(), rpd_schema::Error> {
        let (name, args) = (self.appender.intern("UserMarker")?, self.appender.intern(message)?);
        let (id, pid, tid) = (ApiId::marker(number), self.pid, self.pid);
        let (start, end) = (self.begin + start, self.begin + end);
        self.appender.api(&ApiRow { id, pid, tid, start, end, name, args })
    }
}
