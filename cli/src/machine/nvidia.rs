//! NVIDIA's GPUs: the driver, its device files, libcuda and CUPTI.

use std::path::{Path, PathBuf};

use super::amd::on_pci;
use super::finding::MachineFinding;
use super::system::{System, shown, version};

const DRIVER: &str = "/proc/driver/nvidia/version";
const CONTROL: &str = "/dev/nvidiactl";
/// NVIDIA's number of PCI.
const VENDOR: &str = "0x10de";
/// Major versions of CUPTI whose records are known.
const CUPTI: [u32; 2] = [13, 12];
/// The first driver that a CUPTI of CUDA 13 works with (CUDA 13.0 release notes, "CUDA Toolkit and Driver Compatibility").
const DRIVER_OF_13: u32 = 580;

/// What there is of NVIDIA's; nothing on a machine without.
pub(crate) fn examine(system: &System) -> Option<Vec<MachineFinding>> {
    let on_pci = on_pci(system, VENDOR);
    if !system.has(DRIVER) && !system.has(CONTROL) && on_pci == 0 {
        return None;
    }
    let mut findings = vec![driver(system, on_pci)];
    if system.has(CONTROL) {
        findings.push(gpus(system));
    }
    findings.extend([libcuda(system), cupti(system)]);
    if let Some(parameters) = system.text("/proc/driver/nvidia/params")
        && parameters.lines().any(|line| line == "RmProfilingAdminOnly: 1")
    {
        // Activity records need no privilege, counters do.
        findings.push(MachineFinding::ok(
            "NVIDIA counters",
            "for root alone (RmProfilingAdminOnly); the recorder reads none",
        ));
    }
    Some(findings)
}

fn driver(system: &System, on_pci: usize) -> MachineFinding {
    let subject = "NVIDIA driver";
    if !system.has(CONTROL) {
        let found = match on_pci {
            0 => format!("a driver, but no {CONTROL}"),
            n => format!("no {CONTROL}, and {n} of NVIDIA's GPUs on the PCI bus"),
        };
        return MachineFinding::missing(
            subject,
            found,
            "sudo modprobe nvidia; in a container: --gpus all with the NVIDIA container toolkit",
        );
    }
    match system.usable(CONTROL) {
        Err((found, mend)) => MachineFinding::missing(subject, found, mend),
        Ok(()) => {
            let version = driver_version(system);
            MachineFinding::ok(
                subject,
                version.map_or_else(|| CONTROL.to_string(), |version| format!("{version}, {CONTROL}")),
            )
        }
    }
}

fn driver_version(system: &System) -> Option<String> {
    let text = system.text(DRIVER)?;
    let mut words = text.lines().next()?.split_whitespace();
    // NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build
    let is_version = |word: &&str| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
    words.find(is_version).map(str::to_string)
}

fn gpus(system: &System) -> MachineFinding {
    let subject = "NVIDIA GPUs";
    let is_gpu = |name: &String| name.strip_prefix("nvidia").is_some_and(|n| n.parse::<u32>().is_ok());
    let devices: Vec<String> =
        system.names("/dev").into_iter().filter(is_gpu).map(|name| format!("/dev/{name}")).collect();
    if devices.is_empty() {
        return MachineFinding::missing(
            subject,
            "no /dev/nvidia0 or the like",
            "nvidia-smi makes them where the driver works; in a container: --gpus all",
        );
    }
    if let Some((found, mend)) = devices.iter().find_map(|device| system.usable(device).err()) {
        return MachineFinding::missing(subject, found, mend);
    }
    let information = "/proc/driver/nvidia/gpus";
    let models = system.names(information).into_iter().filter_map(|gpu| {
        let text = system.text(format!("{information}/{gpu}/information"))?;
        Some(text.lines().find_map(|line| line.strip_prefix("Model:"))?.trim().to_string())
    });
    let models: Vec<String> = models.collect();
    MachineFinding::ok(subject, if models.is_empty() { devices.join(", ") } else { models.join(", ") })
}

fn libcuda(system: &System) -> MachineFinding {
    let subject = "CUDA driver library";
    match system.libraries("libcuda.so", &[]).first() {
        Some(file) => MachineFinding::ok(subject, shown(file)),
        None => MachineFinding::missing(
            subject,
            "no libcuda.so.1: it comes with the driver",
            "install the driver's user-space part (Debian: libcuda1); in a container: --gpus all with the NVIDIA container toolkit",
        ),
    }
}

fn cupti(system: &System) -> MachineFinding {
    let subject = "CUPTI";
    let driver = driver_version(system);
    let is_old = driver
        .as_deref()
        .and_then(|version| number(version.split('.').next()))
        .is_some_and(|major| major < DRIVER_OF_13);
    let suits = |file: &Path| !is_old || major(file) != Some(13);
    let unsuitable = |file: String| {
        MachineFinding::missing(
            subject,
            format!(
                "{file} needs a driver from {DRIVER_OF_13} on; this is {}",
                driver.as_deref().unwrap_or_default()
            ),
            "pip install nvidia-cuda-cupti-cu12, or RPDT_CUPTI=/path/to/libcupti.so.12",
        )
    };
    if let Some(named) = system.variable("RPDT_CUPTI") {
        let file = PathBuf::from(named);
        let there = system.path(&file);
        let named = format!("RPDT_CUPTI names {}", file.display());
        let is_file = there.is_file() || !file.as_os_str().as_encoded_bytes().contains(&b'/');
        return match is_file {
            true if major(&file).is_some_and(|number| !CUPTI.contains(&number)) => MachineFinding::missing(
                subject,
                format!("{named}, which is older than CUPTI 12.0"),
                "unset RPDT_CUPTI, or let it name a libcupti.so.13 or .12",
            ),
            true if suits(&there.canonicalize().unwrap_or(file)) => MachineFinding::ok(subject, named),
            true => unsuitable(format!("{named}, which")),
            false => MachineFinding::missing(
                subject,
                format!("{named}, which is no file"),
                "unset RPDT_CUPTI, or let it name a libcupti.so.13 or .12",
            ),
        };
    }
    let found = system.libraries("libcupti.so", &folders(system));
    let is_known = |file: &&PathBuf| major(file).is_none_or(|number| CUPTI.contains(&number));
    let known: Vec<&PathBuf> = found.iter().filter(is_known).collect();
    match (known.iter().find(|file| suits(file)), known.first(), found.first()) {
        (Some(file), ..) => MachineFinding::ok(subject, shown(file)),
        (None, Some(new), _) => unsuitable(shown(new)),
        (None, None, Some(old)) => MachineFinding::missing(
            subject,
            format!("{} is older than CUPTI 12.0", shown(old)),
            "pip install nvidia-cuda-cupti, or RPDT_CUPTI=/path/to/libcupti.so.12",
        ),
        (None, None, None) => MachineFinding::missing(
            subject,
            "no libcupti.so.13 or .12 where the loader, the CUDA toolkit and Python have it",
            format!(
                "pip install nvidia-cuda-cupti{}, or RPDT_CUPTI=/path/to/libcupti.so.{}; a program that brings one, as PyTorch does, is recorded",
                if is_old { "-cu12" } else { "" },
                if is_old { 12 } else { 13 },
            ),
        ),
    }
}

fn number(text: Option<&str>) -> Option<u32> {
    text?.parse().ok()
}

/// The major version of CUDA that a CUPTI is of, by the name of its file: the toolkit has it by year and release, from 2022.4 on for CUDA 12 and from
/// 2025.3 on for CUDA 13.
fn major(file: &Path) -> Option<u32> {
    let mut parts = version(file)?.split('.');
    let first = number(parts.next())?;
    if first < 2000 {
        return Some(first);
    }
    match (first, number(parts.next()).unwrap_or_default()) {
        (2025, 3..) | (2026.., _) => Some(13),
        (2022, 4..) | (2023.., _) => Some(12),
        _ => Some(11),
    }
}

/// Where the toolkit and Python's packages have CUPTI; the recorder looks there too, and beside the libraries of the process.
fn folders(system: &System) -> Vec<PathBuf> {
    let variables =
        ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(|name| system.variable(name)).map(PathBuf::from);
    let mut folders = Vec::new();
    for toolkit in
        variables.chain(["/usr/local/cuda", "/usr/local/cuda-13", "/usr/local/cuda-12"].map(PathBuf::from))
    {
        folders.extend(["extras/CUPTI/lib64", "lib64"].map(|part| toolkit.join(part)));
    }
    let environment = system.variable("VIRTUAL_ENV").map(PathBuf::from);
    for prefix in environment.into_iter().chain(["/usr", "/usr/local"].map(PathBuf::from)) {
        let library = prefix.join("lib");
        for python in system.names(&library).into_iter().filter(|name| name.starts_with("python3")) {
            for packages in ["site-packages", "dist-packages"] {
                let nvidia = library.join(&python).join(packages).join("nvidia");
                folders.extend(["cu13/lib", "cu12/lib", "cuda_cupti/lib"].map(|part| nvidia.join(part)));
            }
        }
    }
    folders
}
