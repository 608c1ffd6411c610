//! The C library, and what the kernel or a container limits.

use super::finding::MachineFinding;
use super::system::System;
use crate::system::facts;

/// What PyTorch's workers, NCCL and RCCL want of /dev/shm at least.
const SHARED_MEMORY: u64 = 256 << 20;

/// The limits, and those that there are not.
pub(crate) fn examine(system: &System) -> Vec<MachineFinding> {
    let release = system.text("/proc/sys/kernel/osrelease").unwrap_or_else(|| "not known".into());
    let mut findings =
        vec![MachineFinding::ok("system", format!("Linux {release}, glibc {}", facts::glibc_version()))];
    findings.extend(selinux(system));
    findings.extend(ptrace(system));
    findings.extend(shared_memory(system));
    findings.extend(container(system));
    findings
}

fn selinux(system: &System) -> Option<MachineFinding> {
    let enforces = system.text("/sys/fs/selinux/enforce")? == "1";
    Some(match enforces {
        false => MachineFinding::ok("SELinux", "permissive"),
        true => MachineFinding::warn(
            "SELinux",
            "enforcing: a program that changes its domain is started without LD_PRELOAD, so without the recorder",
            "if rpd record says that the recorder was not loaded: sudo ausearch -m avc -ts recent",
        ),
    })
}

/// Yama asks who attaches to a process; rpdRemote does not attach.
fn ptrace(system: &System) -> Option<MachineFinding> {
    let scope = system.text("/proc/sys/kernel/yama/ptrace_scope")?;
    Some(MachineFinding::ok(
        "ptrace",
        format!("ptrace_scope {scope}; neither rpd record nor rpdRemote attaches to a process"),
    ))
}

fn shared_memory(system: &System) -> Option<MachineFinding> {
    let subject = "/dev/shm";
    let Ok(space) = facts::space(&system.path(subject)) else {
        return Some(MachineFinding::warn(
            subject,
            "there is none, which PyTorch's workers, NCCL and RCCL need",
            "mount a tmpfs there; in a container: --shm-size 1g",
        ));
    };
    Some(match space.total < SHARED_MEMORY {
        true => MachineFinding::warn(
            subject,
            format!("{} MiB in all, which is little for PyTorch's workers, NCCL and RCCL", space.total >> 20),
            "in a container: --shm-size 1g, or --ipc host",
        ),
        false => MachineFinding::ok(subject, format!("{} MiB free", space.free >> 20)),
    })
}

fn container(system: &System) -> Option<MachineFinding> {
    let marks =
        [("/.dockerenv", "Docker"), ("/run/.containerenv", "Podman"), ("/.singularity.d", "Apptainer")];
    let (_, kind) = marks.into_iter().find(|(file, _)| system.has(file))?;
    Some(MachineFinding::ok(
        "container",
        format!("{kind}: its process ids may be equal to others', which sessions of a trace tell apart"),
    ))
}
