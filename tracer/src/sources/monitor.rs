//! The source of what sensors read: power, energy, memory, clocks, temperatures and load. Those of AMD's GPUs are in files of the kernel's
//! driver below /sys, and no library of AMD's is loaded; those of NVIDIA's are had from NVML.
//!
//! Off unless RPDT_MONITOR names sensors. Then a thread samples while recording is on, from the first record of the process on. In a process
//! that has no GPU runtime (`rpd monitor`), [`rpdmonitor`] has the GPUs of the node sampled, and [`rpdmonitor_sensors`] says before whether
//! there is anything to sample.
//!
//! - `config`: what the user wants; `metric`: the sensors, their names, units and limits
//! - `device`: one GPU; `sysfs`: the files of AMD's, `gpu_metrics` the binary one among them; `nvml`: NVIDIA's library
//! - `processes`: the memory of processes; `node`: the GPUs of the node
//! - `runs`: from samples to times in which a value did not change; `sampler`: the thread

mod config;
mod device;
mod gpu_metrics;
mod metric;
mod node;
mod nvml;
mod processes;
mod runs;
mod sampler;
mod sysfs;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rpd_transport::env::Env;
use rpd_transport::recorder::{self, Recorder};
use rpd_transport::source::{GpuFacts, Source};
use rpd_transport::{log, thread, writer};

use crate::guard::guard;
use device::SampledGpu;
use metric::Metric;
use sampler::Sampler;

pub(crate) struct Monitor;

/// How long its lock may take, which its holders keep for moments.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long the first values of sensors are waited for, and between two looks whether they are there.
const FIRST_VALUES: Duration = Duration::from_secs(1);
/// How long others may have the file then.
const FILE_PATIENCE: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(1);
/// How often it is looked whether there are GPUs to be sampled, and whose they are.
const LOOK: Duration = Duration::from_millis(10);

static SAMPLER: AtomicPtr<Sampler> = AtomicPtr::new(std::ptr::null_mut());
/// The thread that writes.
static WRITER: AtomicU32 = AtomicU32::new(0);

/// The GPUs of the node, where somebody has asked for them.
static NODE: OnceLock<Vec<GpuFacts>> = OnceLock::new();

/// The sensors that were said to be on no GPU.
static MISSING: OnceLock<Vec<Metric>> = OnceLock::new();

/// How many GPUs the node has, of those that RPDT_MONITOR_GPUS names or of all.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rpdmonitor_gpus() -> u32 {
    guard(0, || wanted_of_node().count() as u32)
}

/// How many of the sensors that RPDT_MONITOR names any of these GPUs has, or may have: one that sleeps is not woken. A sensor that none has is
/// named on standard error, but where RPDT_MONITOR asks for those that there are. Reads each sensor once.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rpdmonitor_sensors() -> u32 {
    guard(0, || {
        let config = config::get();
        let gpus: Vec<SampledGpu> = wanted_of_node().map(SampledGpu::of).collect();
        let missing = device::missing(config, &gpus);
        let count = config.metrics.len() - missing.len();
        if !config.is_lenient {
            for (metric, why) in &missing {
                log::problem(&format!("no sampled GPU has the sensor {}: {why}", metric.name()));
            }
            MISSING.get_or_init(|| missing.iter().map(|(metric, _)| *metric).collect());
        }
        count as u32
    })
}

/// Samples the sensors of the node's GPUs in a process that has no GPU runtime, as RPDT_MONITOR and its like say. Returns how many GPUs
/// this process samples, once it has the first values: another process may already sample some into the same file. Where one that
/// RPDT_MONITOR_GPUS names is missing, nothing is sampled.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rpdmonitor() -> u32 {
    guard(0, || {
        let Some(recorder) = recorder::get() else { return 0 };
        let gpus: Vec<u32> = wanted_of_node().map(|gpu| gpu.index).collect();
        if gpus.is_empty() || config::get().gpus.as_ref().is_some_and(|named| named.len() > gpus.len()) {
            return 0;
        }
        // Only a file says whether another process was first.
        recorder.requests.open(recorder, FILE_PATIENCE);
        let has_begun = || sampler().is_some_and(Sampler::has_sampled) || !recorder.switch.is_on();
        let deadline = Instant::now() + FIRST_VALUES;
        while !has_begun() && Instant::now() < deadline {
            std::thread::park_timeout(GLANCE);
        }
        recorder.requests.flush(FILE_PATIENCE);
        let are_anothers = |gpu: &u32| recorder.sensors.are_anothers(*gpu);
        let (anothers, own): (Vec<u32>, Vec<u32>) = gpus.into_iter().partition(are_anothers);
        for gpu in anothers.iter().filter(|_| !own.is_empty()) {
            log::problem(&format!(
                "another process samples GPU {gpu} into this file: its values are that one's"
            ));
        }
        own.len() as u32
    })
}

/// The GPUs of the node that are to be sampled.
fn wanted_of_node() -> impl Iterator<Item = &'static GpuFacts> {
    let gpus = NODE.get_or_init(|| node::gpus(&config::get().root, &config::get().procfs));
    gpus.iter().filter(|gpu| is_wanted(gpu.index))
}

/// Whether the GPU of that number is sampled at all.
fn is_wanted(gpu: u32) -> bool {
    config::get().gpus.as_ref().is_none_or(|gpus| gpus.contains(&gpu))
}

/// The one of this process: a forked child has none until it starts its own.
fn sampler() -> Option<&'static Sampler> {
    // SAFETY: null or a leaked box.
    let sampler = unsafe { SAMPLER.load(Ordering::Acquire).as_ref() };
    sampler.filter(|sampler| sampler.epoch == recorder::epoch())
}

/// Starts one, once there are GPUs. In a forked child only where nobody else samples into its file.
fn start(recorder: &'static Recorder) {
    let is_forked = recorder::epoch() > 1;
    let gpus = recorder.setup.gpus.gpus();
    let gpus = gpus.iter().filter(|gpu| is_wanted(gpu.index));
    let gpus = gpus.filter(|gpu| !is_forked || writer::claim_sensors(recorder, gpu.index));
    let mut gpus: Vec<SampledGpu> = gpus.map(SampledGpu::of).collect();
    if gpus.is_empty() || !recorder.switch.is_on() {
        return;
    }
    leave_out_parts(&mut gpus);
    let named = MISSING.get().cloned().unwrap_or_default();
    let sampler: &'static Sampler = Box::leak(Box::new(Sampler::new(recorder, config::get(), gpus, named)));
    SAMPLER.store(std::ptr::from_ref(sampler).cast_mut(), Ordering::Release);
    sampler.start();
    // Only a file says whether another process samples into it. Until it is there, both do.
    recorder.requests.want_file();
}

/// Leaves out further GPUs of one card, as an Instinct that is partitioned shows several: what the card's sensors read is that of all of it.
fn leave_out_parts(gpus: &mut Vec<SampledGpu>) {
    let mut cards: Vec<(String, u32)> = Vec::new();
    gpus.retain(|gpu| {
        if gpu.is_nvidia || gpu.bdf.is_empty() {
            return true;
        }
        let Some((_, first)) = cards.iter().find(|(bdf, _)| *bdf == gpu.bdf) else {
            cards.push((gpu.bdf.clone(), gpu.index));
            return true;
        };
        log::problem(&format!(
            "GPU {} is on the card of GPU {first}: its sensors are recorded as that one's",
            gpu.index
        ));
        false
    });
}

impl Source for Monitor {
    fn name(&self) -> &'static str {
        "monitor"
    }

    fn number(&self) -> u8 {
        7
    }

    fn gpus(&self) -> Vec<GpuFacts> {
        NODE.get().cloned().unwrap_or_default()
    }

    fn configure(&self, env: &mut Env<'_>) {
        config::configure(env);
    }

    fn started(&self, _: &'static Recorder) {
        if let Some(sampler) = sampler() {
            sampler.wake();
        }
    }

    fn visit(&self, recorder: &'static Recorder) {
        if config::get().metrics.is_empty() {
            return;
        }
        WRITER.store(thread::tid(), Ordering::Relaxed);
        let Some(sampler) = sampler() else { return start(recorder) };
        if !recorder.switch.is_on() {
            writer::leave_sensors();
            sampler.set_owners_known(false);
        } else if writer::has_file() {
            let is_open = |gpu: &&u32| !sampler.are_owners_known() || recorder.sensors.are_anothers(**gpu);
            sampler.gpus().iter().filter(is_open).for_each(|gpu| {
                writer::claim_sensors(recorder, *gpu);
            });
            sampler.set_owners_known(true);
        }
        sampler.take_notes(PATIENCE).iter().for_each(|note| log::problem(note));
    }

    fn next_visit(&self) -> Option<Duration> {
        if config::get().metrics.is_empty() {
            return None;
        }
        let is_on = recorder::get().is_some_and(|recorder| recorder.switch.is_on());
        // A forked child waits until another process leaves the sensors, which may be as long as that one lives.
        let are_owners_known = sampler().map_or_else(|| recorder::epoch() > 1, Sampler::are_owners_known);
        (is_on && !are_owners_known).then_some(LOOK)
    }

    /// For a program that flushes. The thread itself sees to it that no run stays out of the file for long.
    fn collect(&self, deadline: Duration) -> bool {
        if WRITER.load(Ordering::Relaxed) != thread::tid()
            && let Some(sampler) = sampler()
        {
            sampler.cut(deadline.min(PATIENCE));
        }
        // No call waits for a sensor.
        true
    }

    fn finish(&self, deadline: Duration) {
        if let Some(sampler) = sampler() {
            sampler.finish(deadline.min(PATIENCE));
            sampler.take_notes(PATIENCE).iter().for_each(|note| log::problem(note));
        }
    }

    fn is_used(&self) -> bool {
        sampler().is_some_and(Sampler::has_sampled)
    }

    fn facts(&self, add: &mut dyn FnMut(&str, &str)) {
        if let Some(sampler) = sampler() {
            sampler.facts(PATIENCE, add);
        }
    }
}
