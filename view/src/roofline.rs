//! The kernels whose basic blocks were counted, below the roof that peaks of a GPU make: the numbers of `rpd blocks --roofline`.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, ensure};
use rpd_postprocess::code::KernelObjects;
use rpd_postprocess::region::Selected;
use rpd_postprocess::report::blocks::{BlockGroup, KernelBlocks, Peaks, add_rooflines, blocks};
use rusqlite::Connection;
use serde::Serialize;

/// A kernel whose blocks were counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacedKernel {
    /// It is the one that was asked for.
    pub is_asked: bool,
    /// Its sums, without rows.
    #[serde(flatten)]
    pub counted: KernelBlocks,
}

/// All of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rooflines {
    /// The kernels, the one that executed most first.
    pub kernels: Vec<PlacedKernel>,
    /// What is not there, and why.
    pub missing: BTreeSet<String>,
    /// The command that gives the same.
    pub command: String,
}

/// The counted kernels of the trace `file`, of which `name` was asked for. `shown` is the file in a command.
///
/// # Errors
/// When a peak is no number above 0, and when the trace or a code object cannot be read.
pub fn rooflines(
    (file, shown): (&Path, &str),
    trace: &Connection,
    name: &str,
    peaks: &Peaks,
) -> Result<Rooflines> {
    let mut command = String::from("rpd blocks --roofline");
    for (option, peak) in [("--peak-gflops", peaks.gflops), ("--peak-gbs", peaks.gbytes)] {
        let Some(peak) = peak else { continue };
        ensure!(peak.is_finite() && peak > 0.0, "a peak is a number above 0, of 1e9 per second");
        command += &format!(" {option} {peak}");
    }
    command += &format!(" {shown}");
    let objects = KernelObjects::of(trace, file, None)?;
    let mut missing = BTreeSet::new();
    let everything = Selected::everything();
    let mut counted = blocks((trace, &everything), None, BlockGroup::Block, &objects, |why| {
        missing.insert(why);
    })?;
    add_rooflines((trace, &everything), &mut counted, peaks)?;
    let placed = counted
        .into_iter()
        .map(|counted| PlacedKernel {
            is_asked: counted.kernel == name,
            counted: KernelBlocks { rows: Vec::new(), ..counted },
        })
        .collect();
    Ok(Rooflines { kernels: placed, missing, command })
}
