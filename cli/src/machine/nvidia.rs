//! NVIDIA's GPUs: the driver, its device files, libcuda and CUPTI.

use std::path::PathBuf;

use super::amd::on_pci;
use super::finding::Finding;
use super::system::{System, shown, version};

const DRIVER: &str = "/proc/driver/nvidia/version";
const CONTROL: &str = "/dev/nvidiactl";
/// NVIDIA's number of PCI.
const VENDOR: &str = "0x10de";
/// Major versions of CUPTI whose records are known.
const CUPTI: [u32; 2] = [13, 12];

/// What there is of NVIDIA's; nothing on a machine without.
pub(crate) fn examine(system: &System) -> Option<Vec<Finding>> {
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
        findings.push(Finding::ok(
            "NVIDIA counters",
            "for root alone (RmProfilingAdminOnly); the recorder reads none",
        ));
    }
    Some(findings)
}

fn driver(system: &System, on_pci: usize) -> Finding {
    let subject = "NVIDIA driver";
    if !system.has(CONTROL) {
        let found = match on_pci {
            0 => format!("a driver, but no {CONTROL}"),
            n => format!("no {CONTROL}, and {n} of NVIDIA's GPUs on the PCI bus"),
        };
        return Finding::missing(
            subject,
            found,
            "sudo modprobe nvidia; in a container: --gpus all with the NVIDIA container toolkit",
        );
    }
    match system.usable(CONTROL) {
        Err((found, mend)) => Finding::missing(subject, found, mend),
        Ok(()) => {
            let text = system.text(DRIVER).unwrap_or_default();
            let mut words = text.lines().next().unwrap_or_default().split_whitespace();
            // NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build
            let version =
                words.find(|word| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit()));
            Finding::ok(
                subject,
                version.map_or_else(|| CONTROL.to_string(), |version| format!("{version}, {CONTROL}")),
            )
        }
    }
}

fn gpus(system: &System) -> Finding {
    let subject = "NVIDIA GPUs";
    let is_gpu = |name: &String| name.strip_prefix("nvidia").is_some_and(|n| n.parse::<u32>().is_ok());
    let devices: Vec<String> =
        system.names("/dev").into_iter().filter(is_gpu).map(|name| format!("/dev/{name}")).collect();
    if devices.is_empty() {
        return Finding::missing(
            subject,
            "no /dev/nvidia0 or the like",
            "nvidia-smi makes them where the driver works; in a container: --gpus all",
        );
    }
    if let Some((found, mend)) = devices.iter().find_map(|device| system.usable(device).err()) {
        return Finding::missing(subject, found, mend);
    }
    let information = "/proc/driver/nvidia/gpus";
    let models = system.names(information).into_iter().filter_map(|gpu| {
        let text = system.text(format!("{information}/{gpu}/information"))?;
        Some(text.lines().find_map(|line| line.strip_prefix("Model:"))?.trim().to_string())
    });
    let models: Vec<String> = models.collect();
    Finding::ok(subject, if models.is_empty() { devices.join(", ") } else { models.join(", ") })
}

fn libcuda(system: &System) -> Finding {
    let subject = "CUDA driver library";
    match system.libraries("libcuda.so", &[]).first() {
        Some(file) => Finding::ok(subject, shown(file)),
        None => Finding::missing(
            subject,
            "no libcuda.so.1: it comes with the driver",
            "install the driver's user-space part (Debian: libcuda1); in a container: --gpus all with the NVIDIA container toolkit",
        ),
    }
}

fn cupti(system: &System) -> Finding {
    let subject = "CUPTI";
    if let Some(named) = system.variable("RPDT_CUPTI") {
        let file = PathBuf::from(named);
        return match system.path(&file).exists() || !named.as_encoded_bytes().contains(&b'/') {
            true => Finding::ok(subject, format!("RPDT_CUPTI names {}", file.display())),
            false => Finding::missing(
                subject,
                format!("RPDT_CUPTI names {}, which is not there", file.display()),
                "unset RPDT_CUPTI, or let it name a libcupti.so.13 or .12",
            ),
        };
    }
    let found = system.libraries("libcupti.so", &folders(system));
    let major = |file: &PathBuf| {
        // CUDA 13 brings libcupti.so.2025.3.1 behind the link libcupti.so.13.
        let number: u32 = version(file)?.split('.').next()?.parse().ok()?;
        Some(number)
    };
    let known = |file: &&PathBuf| major(file).is_none_or(|number| CUPTI.contains(&number) || number > 2000);
    match (found.iter().find(known), found.first()) {
        (Some(file), _) => Finding::ok(subject, shown(file)),
        (None, Some(old)) => Finding::missing(
            subject,
            format!("{} is older than CUPTI 12.0", shown(old)),
            "pip install nvidia-cuda-cupti, or RPDT_CUPTI=/path/to/libcupti.so.12",
        ),
        (None, None) => Finding::missing(
            subject,
            "no libcupti.so.13 or .12 where the loader, the CUDA toolkit and Python have it",
            "pip install nvidia-cuda-cupti, or RPDT_CUPTI=/path/to/libcupti.so.13; a program that brings one, as PyTorch does, is recorded",
        ),
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
