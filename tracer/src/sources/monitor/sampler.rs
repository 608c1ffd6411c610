//! The thread that samples. It lives as long as the process; nobody waits for it. What it shares with others is locked for moments, never
//! while a file is read: a driver may take as long as it likes.
//!
//! It has descriptors of its own (`threads::leave_descriptors`), so that files that it opens and closes all the time never take a number
//! that the program expects for its own. Where a GPU is NVIDIA's it shares the program's: those of NVML are the process's.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use rpd_preload::clock::{self, Clock};
use rpd_preload::lock::{lock, lock_within};
use rpd_preload::threads;
use rpd_schema::session_fact::{MONITOR_PERIOD_NS, monitor_file, monitor_vram_total};
use rpd_transport::recorder::{self, Recorder};
use rpd_transport::records::{self, Kind};
use rpd_transport::thread::{self, Patience};
use rpd_transport::{log, switch};

use super::config::MonitorConfig;
use super::device::{Device, Reading, SampledGpu};
use super::metric::{Metric, shown};
use super::nvml;
use super::processes::ProcessTree;
use super::runs::{Run, Runs};

/// How often it looks whether it is wanted, while it is not.
const IDLE: Duration = Duration::from_millis(100);
/// How often it looks for a device that is gone, and whether the program has come to its end.
const LOOK: u64 = 500_000_000;

/// What others need of it.
struct Shared {
    runs: Runs,
    /// When it was last looked whether recording is on, ns of CLOCK_MONOTONIC.
    looked: u64,
    ended: bool,
    /// What there is to be said, and has not been.
    notes: Vec<String>,
    /// Which file each sensor is read from.
    origins: Vec<Option<String>>,
    /// The memory of each GPU, bytes, where the driver says it.
    vram_totals: Vec<Option<u64>>,
}

pub(super) struct Sampler {
    /// The recorder that it samples for.
    pub(super) epoch: u32,
    recorder: &'static Recorder,
    metrics: Vec<Metric>,
    /// Those of them that were said to be on no GPU.
    named: Vec<Metric>,
    period: Duration,
    root: PathBuf,
    is_lenient: bool,
    processes: ProcessTree,
    gpus: Vec<SampledGpu>,
    indices: Vec<u32>,
    shared: Mutex<Shared>,
    thread: OnceLock<Thread>,
    /// It is known of each GPU whether another process samples it into this file.
    are_owners_known: AtomicBool,
    ended: AtomicBool,
    samples: AtomicU64,
    late: AtomicU64,
}

/// What the thread knows of a GPU.
struct Sampled {
    device: Option<Device>,
    /// When its directory was last looked for.
    looked: u64,
    /// What has been said of each sensor that has no value; nothing where it has one.
    is_silent: Vec<bool>,
    was_said: Vec<bool>,
    was_missed: bool,
}

impl Sampled {
    /// See [`Device::skip`].
    fn skip(&mut self) {
        self.device.iter_mut().for_each(Device::skip);
    }
}

impl Sampler {
    /// For these GPUs. Of the sensors `named` nothing more is said.
    pub(super) fn new(
        recorder: &'static Recorder,
        config: &MonitorConfig,
        gpus: Vec<SampledGpu>,
        named: Vec<Metric>,
    ) -> Sampler {
        let sensors = gpus.len() * config.metrics.len();
        let longest = recorder.config.flush_interval.max(config.period);
        let shared = Shared {
            runs: Runs::new(sensors, config.period.as_nanos() as u64, longest.as_nanos() as u64),
            looked: clock::monotonic(),
            ended: false,
            notes: Vec::new(),
            origins: vec![None; sensors],
            vram_totals: vec![None; gpus.len()],
        };
        Sampler {
            epoch: recorder::epoch(),
            recorder,
            metrics: config.metrics.clone(),
            named,
            period: config.period,
            root: config.root.clone(),
            is_lenient: config.is_lenient,
            processes: ProcessTree::of(&config.procfs, config.process),
            indices: gpus.iter().map(|gpu| gpu.index).collect(),
            gpus,
            shared: Mutex::new(shared),
            thread: OnceLock::new(),
            are_owners_known: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            samples: AtomicU64::new(0),
            late: AtomicU64::new(0),
        }
    }

    /// Starts the thread.
    pub(super) fn start(&'static self) {
        if let Err(error) = threads::spawn(c"rpd-monitor", || self.run()) {
            log::problem(&format!("cannot start a thread ({error}): sensors are not recorded"));
        }
    }

    /// Recording has been started.
    pub(super) fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Indices of the GPUs.
    pub(super) fn gpus(&self) -> &[u32] {
        &self.indices
    }

    /// Whether it is known of each GPU that another process samples it into this file, or that none does.
    pub(super) fn are_owners_known(&self) -> bool {
        self.are_owners_known.load(Ordering::Relaxed)
    }

    /// See [`Sampler::are_owners_known`].
    pub(super) fn set_owners_known(&self, are_owners_known: bool) {
        self.are_owners_known.store(are_owners_known, Ordering::Relaxed);
    }

    /// Whether it has sampled anything.
    pub(super) fn has_sampled(&self) -> bool {
        self.samples.load(Ordering::Relaxed) > 0
    }

    /// What there is to be said, once.
    pub(super) fn take_notes(&self, patience: Duration) -> Vec<String> {
        let shared = lock_within(&self.shared, patience);
        shared.map(|mut shared| std::mem::take(&mut shared.notes)).unwrap_or_default()
    }

    /// What the session says of it.
    pub(super) fn facts(&self, patience: Duration, add: &mut dyn FnMut(&str, &str)) {
        let units = self.metrics.iter().map(|metric| format!("{}={}", metric.name(), metric.unit()));
        add("monitor", &units.collect::<Vec<_>>().join(","));
        add(MONITOR_PERIOD_NS, &self.period.as_nanos().to_string());
        add("monitor_samples", &self.samples.load(Ordering::Relaxed).to_string());
        add("monitor_samples_missed", &self.late.load(Ordering::Relaxed).to_string());
        let Some(shared) = lock_within(&self.shared, patience) else { return };
        for (sensor, origin) in shared.origins.iter().enumerate() {
            if let Some(origin) = origin {
                let (gpu, metric) = self.of(sensor);
                add(&monitor_file(gpu, metric.name()), origin);
            }
        }
        for (place, total) in shared.vram_totals.iter().enumerate() {
            if let Some(total) = total {
                add(&monitor_vram_total(self.indices[place]), &total.to_string());
            }
        }
    }

    /// Puts what there is so far into a ring.
    pub(super) fn cut(&self, patience: Duration) {
        if let Some(mut shared) = lock_within(&self.shared, patience).filter(|shared| !shared.ended) {
            self.follow_switch(&mut shared);
            shared.runs.cut(clock::monotonic(), |run| self.push(run));
        }
    }

    /// The process ends: the same for the last time.
    pub(super) fn finish(&self, patience: Duration) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(mut shared) = lock_within(&self.shared, patience) {
            self.follow_switch(&mut shared);
            shared.runs.end_all(clock::monotonic(), |run| self.push(run));
            shared.ended = true;
        }
        self.wake();
        nvml::leave(patience);
    }

    /// The GPU and the kind of a sensor.
    fn of(&self, sensor: usize) -> (u32, Metric) {
        (self.indices[sensor / self.metrics.len()], self.metrics[sensor % self.metrics.len()])
    }

    fn push(&self, run: Run) {
        let (gpu, metric) = self.of(run.sensor);
        let (name, value) = (metric.name(), shown(run.value));
        let body = records::Sensor { start: run.start, end: run.end, gpu, name_len: name.len() as u32 };
        let text = [name.as_bytes(), value.as_bytes()];
        thread::push(self.recorder, Kind::Sensor, bytemuck::bytes_of(&body), text, Patience::Drops);
    }

    /// Ends all runs where recording has stopped since it was last looked.
    fn follow_switch(&self, shared: &mut Shared) {
        let switch = &self.recorder.switch;
        let now = clock::monotonic();
        if !switch.is_on() || switch.resumed_at() >= shared.looked {
            let history = switch.history();
            let stopped = history.iter().find(|change| !change.on && change.time >= shared.looked);
            let stopped = stopped.map_or_else(
                || if switch::was_on(&history, now) { now } else { shared.looked },
                |change| change.time,
            );
            shared.runs.end_all(stopped, |run| self.push(run));
        }
        shared.looked = now;
    }

    fn run(&self) {
        let _ = self.thread.set(std::thread::current());
        if !self.gpus.iter().any(|gpu| gpu.is_nvidia) {
            threads::leave_descriptors();
        }
        let count = self.metrics.len();
        let gpu = || Sampled {
            device: None,
            looked: 0,
            is_silent: vec![true; count],
            was_said: self.metrics.iter().map(|metric| self.named.contains(metric)).collect(),
            was_missed: false,
        };
        let mut gpus: Vec<Sampled> = self.gpus.iter().map(|_| gpu()).collect();
        let period = self.period.as_nanos() as u64;
        let (mut next, mut looked) = (clock::monotonic(), clock::monotonic());
        let mut cpu = clock::read(Clock::ThreadCpu);
        while !self.ended.load(Ordering::Relaxed) {
            let now = clock::monotonic();
            if now.saturating_sub(looked) >= LOOK {
                looked = now;
                if threads::are_alone() {
                    return self.finish(IDLE);
                }
                let used = clock::read(Clock::ThreadCpu);
                self.recorder.counters.cpu_ns.fetch_add(used - cpu, Ordering::Relaxed);
                cpu = used;
            }
            let is_wanted = |place: usize| !self.recorder.sensors.are_anothers(self.indices[place]);
            self.follow_switch(&mut lock(&self.shared));
            if !self.recorder.switch.is_on() || !(0..gpus.len()).any(is_wanted) {
                let mut shared = lock(&self.shared);
                shared.runs.forget(0..gpus.len() * count);
                drop(shared);
                gpus.iter_mut().for_each(Sampled::skip);
                std::thread::park_timeout(IDLE);
                next = clock::monotonic();
                continue;
            }
            if now < next {
                std::thread::park_timeout(Duration::from_nanos(next - now));
                continue;
            }
            for (place, gpu) in gpus.iter_mut().enumerate() {
                if is_wanted(place) {
                    self.sample(place, gpu);
                } else {
                    lock(&self.shared).runs.forget(place * count..(place + 1) * count);
                    gpu.skip();
                }
            }
            self.samples.fetch_add(1, Ordering::Relaxed);
            next += period;
            let missed = clock::monotonic().saturating_sub(next) / period;
            self.late.fetch_add(missed, Ordering::Relaxed);
            next += missed * period;
        }
    }

    /// Samples one GPU.
    fn sample(&self, place: usize, gpu: &mut Sampled) {
        let index = self.indices[place];
        let now = clock::monotonic();
        let is_time = now.saturating_sub(gpu.looked) >= LOOK;
        if let Some(device) = &mut gpu.device
            && is_time
            && gpu.is_silent.contains(&true)
        {
            gpu.looked = now;
            device.look_again();
        } else if gpu.device.is_none() && is_time {
            gpu.looked = now;
            match Device::find(&self.root, &self.gpus[place], &self.metrics, &self.processes) {
                Ok(device) => {
                    gpu.device = Some(device);
                }
                Err(why) => {
                    if !std::mem::replace(&mut gpu.was_missed, true) {
                        lock(&self.shared).notes.push(format!("{why}: its sensors are not recorded"));
                    }
                }
            }
        }
        let Some(device) = &mut gpu.device else { return };
        if gpu.looked == now
            && let Some(total) = device.vram_total()
        {
            lock(&self.shared).vram_totals[place] = Some(total);
        }
        let first = place * self.metrics.len();
        let mut is_gone = true;
        device.sample(|sensor, reading| {
            let mut shared = lock(&self.shared);
            // Read with the lock held: rows that another thread cuts meanwhile end before it.
            let time = clock::monotonic();
            if shared.ended {
                return;
            }
            match reading {
                Reading::Value(value) => {
                    is_gone = false;
                    gpu.is_silent[sensor] = false;
                    shared.runs.sample(first + sensor, time, value, |run| self.push(run));
                }
                Reading::Of(then, value) => {
                    is_gone = false;
                    gpu.is_silent[sensor] = false;
                    let then = then.max(self.recorder.switch.resumed_at()).min(time);
                    shared.runs.earlier(first + sensor, (then, time), value, |run| self.push(run));
                }
                Reading::Unchanged(value) => {
                    is_gone = false;
                    gpu.is_silent[sensor] = false;
                    shared.runs.unchanged(first + sensor, time, value, |run| self.push(run));
                }
                Reading::Samples(samples) => {
                    is_gone = false;
                    gpu.is_silent[sensor] = false;
                    let resumed = self.recorder.switch.resumed_at();
                    for (taken, value) in samples {
                        let taken = taken.max(resumed).min(time);
                        shared.runs.buffered(first + sensor, taken, value, |run| self.push(run));
                    }
                }
                Reading::Asleep => {
                    is_gone = false;
                    shared.runs.end(first + sensor, time, |run| self.push(run));
                }
                Reading::Nothing(why) => {
                    shared.runs.end(first + sensor, time, |run| self.push(run));
                    gpu.is_silent[sensor] = true;
                    let is_expected = !self.is_lenient || shared.origins[first + sensor].is_some();
                    if is_expected && !std::mem::replace(&mut gpu.was_said[sensor], true) {
                        let name = self.metrics[sensor].name();
                        shared.notes.push(format!("sensor {name} of GPU {index} cannot be read: {why}"));
                    }
                }
            }
        });
        let mut shared = lock(&self.shared);
        for (sensor, silent) in gpu.is_silent.iter().enumerate() {
            if !silent && shared.origins[first + sensor].is_none() {
                shared.origins[first + sensor] = device.origin(sensor);
            }
        }
        drop(shared);
        // It may come back elsewhere, with other files.
        if is_gone {
            (gpu.device, gpu.looked) = (None, now);
        }
    }
}
