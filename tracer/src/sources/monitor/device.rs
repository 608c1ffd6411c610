//! A GPU whose sensors are sampled, whoever made it.

use std::path::Path;

use rpd_transport::source::GpuFacts;

use super::config::MonitorConfig;
use super::metric::{Metric, Micro};
use super::nvml::NvmlDevice;
use super::processes::ProcessTree;
use super::sysfs::SysfsDevice;

/// Which GPU it is.
#[derive(Clone, Debug)]
pub(super) struct SampledGpu {
    /// Its number in the file.
    pub(super) index: u32,
    /// Its PCI address.
    pub(super) bdf: String,
    /// NVIDIA's driver has its sensors.
    pub(super) is_nvidia: bool,
}

impl SampledGpu {
    pub(super) fn of(gpu: &GpuFacts) -> SampledGpu {
        SampledGpu { index: gpu.index, bdf: gpu.bdf.clone(), is_nvidia: gpu.target.starts_with("sm_") }
    }
}

/// Where its sensors are read.
#[derive(Debug)]
pub(super) enum Device {
    Sysfs(SysfsDevice),
    Nvml(NvmlDevice),
}

/// What became of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Value(Micro),
    /// A value that is of an earlier moment, ns of CLOCK_MONOTONIC.
    Of(u64, Micro),
    /// The value that was there when it was last asked: there is no newer one.
    Unchanged(Micro),
    /// What the driver has sampled since it was last asked, each with its time in ns of CLOCK_MONOTONIC; also nothing.
    Samples(Vec<(u64, Micro)>),
    /// The device sleeps.
    Asleep,
    /// Why there is no value.
    Nothing(String),
}

/// The sensors asked for that none of these GPUs has, each with why. One that sleeps may have all.
pub(super) fn missing(config: &MonitorConfig, gpus: &[SampledGpu]) -> Vec<(Metric, String)> {
    let metrics = &config.metrics;
    let processes = ProcessTree::of(&config.procfs, config.process);
    let mut is_there = vec![false; metrics.len()];
    let mut reasons: Vec<Vec<(u32, String)>> = vec![Vec::new(); metrics.len()];
    let probed: Vec<Metric> = metrics.iter().copied().chain([Metric::Vram]).collect();
    for gpu in gpus {
        match Device::find(&config.root, gpu, &probed, &processes) {
            Ok(mut device) => device.sample(|place, reading| match (reading, is_there.get_mut(place)) {
                (Reading::Nothing(why), Some(_)) => reasons[place].push((gpu.index, why)),
                (_, Some(is_there)) => *is_there = true,
                (Reading::Nothing(_), None) => {}
                // The driver may say what a process has only once that uses the GPU.
                (_, None) if !config.is_lenient => {
                    let of_process = metrics.iter().position(|metric| *metric == Metric::VramProcess);
                    of_process.into_iter().for_each(|place| is_there[place] = true);
                }
                (_, None) => {}
            }),
            Err(why) => reasons.iter_mut().for_each(|reasons| reasons.push((gpu.index, why.clone()))),
        }
    }
    let all = metrics.iter().zip(reasons).zip(is_there);
    let missing = all.filter(|(_, is_there)| !is_there);
    missing.map(|((metric, reasons), _)| (*metric, in_one_line(&reasons))).collect()
}

/// Why GPUs do not have a sensor: once where it is the same for all.
fn in_one_line(reasons: &[(u32, String)]) -> String {
    match reasons {
        [] => String::new(),
        [(_, first), others @ ..] if others.iter().all(|(_, why)| why == first) => first.clone(),
        reasons => {
            let each: Vec<String> = reasons.iter().map(|(gpu, why)| format!("GPU {gpu}: {why}")).collect();
            each.join("; ")
        }
    }
}

impl Device {
    /// That GPU's. `root` stands for /sys; `processes` are those whose memory is meant.
    ///
    /// # Errors
    /// Why it cannot be found.
    pub(super) fn find(
        root: &Path,
        gpu: &SampledGpu,
        metrics: &[Metric],
        processes: &ProcessTree,
    ) -> Result<Device, String> {
        let SampledGpu { index, bdf, is_nvidia } = gpu;
        if *is_nvidia {
            return NvmlDevice::find(bdf, metrics, processes)
                .map(Device::Nvml)
                .map_err(|why| format!("GPU {index} ({bdf}): {why}"));
        }
        SysfsDevice::find(root, bdf, metrics, processes)
            .map(Device::Sysfs)
            .ok_or_else(|| format!("no device {bdf:?} (GPU {index}) below {}", root.display()))
    }

    /// Reads all of it; `take` gets the place of the sensor among those asked for, and what it reads.
    pub(super) fn sample(&mut self, take: impl FnMut(usize, Reading)) {
        match self {
            Device::Sysfs(device) => device.sample(take),
            Device::Nvml(device) => device.sample(take),
        }
    }

    /// Looks for sensors that were not there before.
    pub(super) fn look_again(&mut self) {
        if let Device::Sysfs(device) = self {
            device.look_again();
        }
    }

    /// Leaves out what the driver samples until it is asked again.
    pub(super) fn skip(&mut self) {
        if let Device::Nvml(device) = self {
            device.skip();
        }
    }

    /// Where the last value of that sensor was read: a file below the device's directory, or a function.
    pub(super) fn origin(&self, place: usize) -> Option<String> {
        match self {
            Device::Sysfs(device) => device.origin(place),
            Device::Nvml(device) => device.origin(place).map(str::to_string),
        }
    }

    /// All of its memory, bytes.
    pub(super) fn vram_total(&self) -> Option<u64> {
        match self {
            Device::Sysfs(device) => device.vram_total(),
            Device::Nvml(device) => device.vram_total(),
        }
    }
}
