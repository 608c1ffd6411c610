//! The machine, as `rpd doctor` examines it: what it has, what of that is recorded, and what mends what is missing.
//!
//! | file | owns |
//! |---|---|
//! | `finding.rs` | what was found, and what to do about it |
//! | `system.rs` | the files, variables and libraries that are looked at |
//! | `amd.rs`, `nvidia.rs` | the GPUs: driver, permissions, runtime |
//! | `recorder.rs` | the recorder's own libraries, and whether one loads into a program |
//! | `tools.rs` | other profilers in the environment, and misspelt variables |
//! | `limits.rs` | the C library, and what the kernel or a container limits |
//! | `place.rs` | the directory that a trace would be written to |

mod amd;
mod finding;
mod limits;
mod nvidia;
mod place;
mod recorder;
mod system;
mod tools;

pub(crate) use finding::{MachineFinding, Status};
pub(crate) use system::System;

/// What was found, in the order in which it is shown.
pub(crate) fn examine(system: &System) -> Vec<MachineFinding> {
    let mut findings = recorder::examine(system);
    let amd = amd::examine(system);
    let nvidia = nvidia::examine(system);
    let has_gpu = amd.is_some() || nvidia.is_some();
    findings.extend(amd.unwrap_or_default());
    findings.extend(nvidia.unwrap_or_default());
    if !has_gpu {
        findings.push(MachineFinding::missing(
            "GPU",
            "no GPU of AMD or NVIDIA, and no driver of either",
            "in a container: --device /dev/kfd --device /dev/dri (AMD), --gpus all (NVIDIA); in a batch job: ask the scheduler for a GPU",
        ));
    }
    findings.extend(tools::examine(system));
    findings.extend(limits::examine(system));
    findings.extend(place::examine(system));
    findings
}

#[cfg(test)]
mod tests;
