//! AMD's GPUs: the driver amdgpu with its KFD, permissions, the HSA runtime and HIP.

use super::finding::MachineFinding;
use super::system::{System, shown};

const KFD: &str = "/dev/kfd";
const NODES: &str = "/sys/class/kfd/kfd/topology/nodes";
const PCI: &str = "/sys/bus/pci/devices";
/// AMD's number of PCI.
const VENDOR: &str = "0x1002";

/// What there is of AMD's; nothing on a machine without.
pub(crate) fn examine(system: &System) -> Option<Vec<MachineFinding>> {
    let gpus = gpus(system);
    let on_pci = on_pci(system, VENDOR);
    if !system.has(KFD) && gpus.is_empty() && on_pci == 0 {
        return None;
    }
    let mut findings = vec![driver(system, on_pci)];
    if system.has(KFD) {
        let processors: Vec<&str> = gpus.iter().map(|gpu| gpu.processor.as_str()).collect();
        findings.push(match gpus.is_empty() {
            false => MachineFinding::ok("AMD GPUs", processors.join(", ")),
            true => MachineFinding::missing(
                "AMD GPUs",
                "/dev/kfd is there, but its topology has no GPU",
                "sudo dmesg | grep -e amdgpu -e kfd says why; a container sees the GPUs whose /dev/dri/renderD* it is given",
            ),
        });
        findings.extend(render_nodes(system, &gpus));
    }
    findings.push(runtime(system));
    findings.push(hip(system));
    Some(findings)
}

fn driver(system: &System, on_pci: usize) -> MachineFinding {
    let subject = "AMD driver";
    if !system.has(KFD) {
        let found = match on_pci {
            0 => "there is a topology of the KFD, but no /dev/kfd".to_string(),
            n => format!("no /dev/kfd, and {n} of AMD's GPUs on the PCI bus"),
        };
        return MachineFinding::missing(
            subject,
            found,
            "sudo modprobe amdgpu; in a container: --device /dev/kfd --device /dev/dri",
        );
    }
    match system.usable(KFD) {
        Err((found, mend)) => MachineFinding::missing(subject, found, mend),
        Ok(()) => match system.text("/sys/module/amdgpu/version") {
            Some(version) => MachineFinding::ok(subject, format!("amdgpu {version}, /dev/kfd")),
            None => MachineFinding::ok(subject, "/dev/kfd (amdgpu of the kernel)"),
        },
    }
}

/// A GPU of the KFD's topology.
struct Gpu {
    /// Such as gfx90a.
    processor: String,
    /// The number in the name of its render node.
    render_minor: Option<u64>,
}

fn gpus(system: &System) -> Vec<Gpu> {
    let properties =
        system.names(NODES).into_iter().filter_map(|node| system.text(format!("{NODES}/{node}/properties")));
    let of = |text: &str, key: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        line?.trim().parse().ok()
    };
    let gpu = |text: String| {
        // Nodes of CPUs have none.
        of(&text, "simd_count").filter(|simds| *simds > 0)?;
        let version = of(&text, "gfx_target_version");
        Some(Gpu {
            processor: version.map_or_else(|| "a GPU".to_string(), processor),
            render_minor: of(&text, "drm_render_minor").filter(|minor| *minor > 0),
        })
    };
    properties.filter_map(gpu).collect()
}

/// The kernel writes 9.0.10 as 90010 (kfd_topology.c); the last two digits of the name are hexadecimal.
fn processor(version: u64) -> String {
    format!("gfx{}{:x}{:x}", version / 10_000, version / 100 % 100, version % 100)
}

/// GPUs of that vendor on the PCI bus: display controllers and processing accelerators.
pub(super) fn on_pci(system: &System, vendor: &str) -> usize {
    let devices = system.names(PCI);
    let is_gpu = |device: &String| {
        let of = |file: &str| system.text(format!("{PCI}/{device}/{file}")).unwrap_or_default();
        of("vendor") == vendor && ["0x03", "0x12"].iter().any(|class| of("class").starts_with(class))
    };
    devices.iter().filter(|device| is_gpu(device)).count()
}

/// The HSA runtime opens the render node of each GPU.
fn render_nodes(system: &System, gpus: &[Gpu]) -> Option<MachineFinding> {
    let subject = "render nodes";
    let nodes = gpus.iter().filter_map(|gpu| gpu.render_minor);
    let nodes: Vec<String> = nodes.map(|minor| format!("/dev/dri/renderD{minor}")).collect();
    if let Some(node) = nodes.iter().find(|node| !system.has(node)) {
        return Some(MachineFinding::missing(
            subject,
            format!("no {node}, which the HSA runtime opens"),
            "in a container: --device /dev/dri",
        ));
    }
    if let Some((found, mend)) = nodes.iter().find_map(|node| system.usable(node).err()) {
        return Some(MachineFinding::missing(subject, found, mend));
    }
    (!nodes.is_empty()).then(|| MachineFinding::ok(subject, nodes.join(", ")))
}

fn runtime(system: &System) -> MachineFinding {
    let subject = "HSA runtime";
    match system.libraries("libhsa-runtime64.so", &[]).first() {
        Some(file) => MachineFinding::ok(subject, shown(file)),
        None => MachineFinding::missing(
            subject,
            "no libhsa-runtime64.so in LD_LIBRARY_PATH, in the loader's cache or in /opt/rocm/lib",
            "install ROCm (Debian: libhsa-runtime64-1), or name its lib folder in LD_LIBRARY_PATH; PyTorch for ROCm has one of its own",
        ),
    }
}

fn hip(system: &System) -> MachineFinding {
    let subject = "HIP";
    match system.libraries("libamdhip64.so", &[]).first() {
        Some(file) => MachineFinding::ok(subject, shown(file)),
        None => MachineFinding::warn(
            subject,
            "no libamdhip64.so: kernels and copies are recorded, calls of HIP only of programs that bring HIP",
            "install HIP (Debian: libamdhip64-5)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_have_the_names_that_compilers_take() {
        for (version, name) in [
            (90_000, "gfx900"),
            (90_010, "gfx90a"),
            (90_402, "gfx942"),
            (110_001, "gfx1101"),
            (120_000, "gfx1200"),
        ] {
            assert_eq!(processor(version), name);
        }
    }
}
