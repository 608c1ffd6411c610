//! The decisions before a row is copied: how ids, hosts, GPUs and times of each trace are moved.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Result, bail};

use super::gpu::GpuNumbers;
use super::input::Input;
use super::node::{self, ClockDomain, Moved, Nodes};
use crate::text;

/// How clocks and hosts are to be found.
#[derive(Debug, Default)]
pub struct MergeOptions {
    /// All traces were recorded on one host, whatever they say.
    pub is_same_host: bool,
    /// The marker that begins at one time everywhere.
    pub align: Option<String>,
    /// What is added to the times of a trace, ns.
    pub offsets: Vec<(PathBuf, i64)>,
}

/// Everything that is decided before a row is copied.
pub(super) struct MergePlan<'a> {
    pub(super) inputs: &'a [Input],
    /// What is added to the ids of each trace.
    pub(super) offsets: Vec<i64>,
    pub(super) nodes: Nodes,
    pub(super) gpus: GpuNumbers,
    pub(super) shifts: BTreeMap<ClockDomain, i64>,
    /// They come from a marker.
    pub(super) is_aligned: bool,
    /// By trace, in place of the above.
    pub(super) given: BTreeMap<usize, i64>,
}

impl MergePlan<'_> {
    /// What is added to the times of a node of trace `input`, ns.
    pub(super) fn shift(&self, input: usize, moved: Moved) -> i64 {
        let found = || self.shifts.get(&node::timeline(self.inputs, input, moved.to));
        self.given.get(&input).or_else(found).copied().unwrap_or(0)
    }
}

impl<'a> MergePlan<'a> {
    /// Decides how `inputs` are put together.
    ///
    /// # Errors
    /// What does not fit, or was asked for and cannot be found.
    pub(super) fn of(inputs: &'a [Input], options: &MergeOptions) -> Result<MergePlan<'a>> {
        let mut given = BTreeMap::new();
        for (file, shift) in &options.offsets {
            let wanted = fs::canonicalize(file).ok();
            let at = inputs
                .iter()
                .position(|input| wanted.is_some() && fs::canonicalize(&input.path).ok() == wanted);
            let Some(at) = at else {
                bail!("--offset: {} is not one of the traces to be merged", text::escape_path(file));
            };
            given.insert(at, *shift);
        }
        let mut offsets = Vec::new();
        let mut sessions = 0_i64;
        for input in inputs {
            offsets.push(sessions << 32);
            sessions += input.session_span;
            if sessions >= 1 << 31 {
                bail!("together the traces have more sessions than a file can have; merge fewer of them");
            }
        }
        let nodes = Nodes::of(inputs, options.is_same_host);
        let exempt: Vec<usize> = given.keys().copied().collect();
        let shifts = match &options.align {
            Some(name) => node::by_marker(inputs, &nodes, &exempt, name)?,
            None => node::by_clocks(inputs, &nodes, &exempt)?,
        };
        Ok(MergePlan {
            inputs,
            offsets,
            gpus: GpuNumbers::of(inputs, &nodes),
            nodes,
            shifts,
            is_aligned: options.align.is_some(),
            given,
        })
    }
}
