//! Joules by kernel, marker, rank and GPU: what a GPU's sensor read, shared out among the operations that ran meanwhile.
//!
//! A sensor gives steps: a time, and the energy of it. An energy counter's step lies between two changes of its value; the first of a
//! recording is left out, since nobody saw where it began. Each reading of a power sensor is a step. In each step the idle floor is taken
//! off first: the power of all steps in which the GPU ran nothing. The rest is shared by the operations of the step by the time that they
//! ran, and in equal parts where several ran at once. So the energy of a GPU is that of its operations and of its idle floor.
//!
//! Only steps in which nothing else ran were really measured for a row; what it got of others was worked out by time, and each row says how
//! much it is. A row that ran for less than a step of the sensor of its GPU got no energy that means anything, and has none. Sensors of
//! several GPUs may have steps of several lengths: of a row of several GPUs, the time on each counts in steps of that GPU's.

mod groups;
mod long_enough;
mod of_ops;
mod sensor;
mod sweep;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use anyhow::Result;
use rpd_schema::Version;
use rusqlite::Connection;
use serde::Serialize;

use self::groups::{EnergyGroup, GroupedOp, Groups};
pub(super) use self::long_enough::{SampledTime, StepLengths};
pub(super) use self::of_ops::OpEnergies;
pub use self::sensor::PowerSensor;
use self::sensor::Steps;
use self::sweep::{EnergySweep, Parents, RunningOps, Share};
use super::gpu_time::LeftOut;
use crate::pass::sorted::Sorted;
use crate::region::Selected;

/// What rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnergyBy {
    /// The names of operations.
    Kernel,
    /// Ranges of markers, with those inside them.
    Marker,
    /// Ranks of sessions.
    Rank,
    /// GPUs.
    Gpu,
}

/// Where the energy of a trace went.
#[derive(Debug)]
pub struct Energy {
    /// Most energy first, those without any last; of markers parents before their children.
    pub rows: Vec<EnergyRow>,
    /// GPUs that were sampled, by number.
    pub gpus: Vec<GpuEnergy>,
    /// Whether any sensor of energy or power was read; it may have no step.
    pub is_read: bool,
    /// Operations that count nowhere.
    pub left_out: LeftOut,
    /// Selected operations that ran while no sensor of their GPU was read: rows of such alone are left out.
    pub unsampled: u64,
}

/// The energy of a group of operations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EnergyRow {
    /// What they have in common.
    pub name: String,
    /// For a marker: how many are around it.
    pub depth: usize,
    /// For a marker: how many ranges there are.
    pub ranges: Option<u64>,
    /// How many operations, without those that ran while no sensor was read.
    pub operations: u64,
    /// Sum of their durations, as far as a sensor was read meanwhile, ns.
    pub gpu_ns: u64,
    /// Their energy; none where they ran for less than a step of the sensor of their GPU, or of several GPUs for less than one in all.
    pub joules: Option<f64>,
    /// The part of that which no marker inside has; the same where rows are no markers.
    pub own_joules: Option<f64>,
    /// Of `joules`, what is of steps in which nothing else ran, percent.
    pub measured_percent: Option<f64>,
    /// Why there are none.
    pub refused: Option<String>,
}

/// The energy of a GPU: `joules = idle_joules + operations_joules`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GpuEnergy {
    /// Its number, `gpuId`.
    pub gpu: i64,
    /// What was read.
    pub sensor: PowerSensor,
    /// The time of all steps, ns.
    pub measured_ns: u64,
    /// How long a step is, ns: half of them are not longer.
    pub step_ns: u64,
    /// All of it.
    pub joules: f64,
    /// What it would have taken had it run nothing.
    pub idle_joules: f64,
    /// What the operations took above that.
    pub operations_joules: f64,
    /// The idle floor, W; none where the GPU was never idle for a whole step and no floor was given.
    pub idle_watts: Option<f64>,
}

impl Energy {
    /// Reads the sensors and operations of a trace; what runs beside the selected operations has its share too. `idle_watts`: the idle
    /// floor, in the place of the one that is found out.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub fn of(
        (trace, version): (&Connection, Version),
        selected: &Selected,
        by: EnergyBy,
        idle_watts: Option<f64>,
    ) -> Result<Energy> {
        let Groups { mut groups, ops, left_out } = Groups::of((trace, version), selected, by)?;
        let parents = Parents(groups.iter().map(|group| group.parent).collect());
        let mut unsampled = 0;
        let gpus = share_out((sensor::steps(trace)?, &parents), ops, idle_watts, |gpu, group, share| {
            if let Some(group) = usize::try_from(group).ok().and_then(|group| groups.get_mut(group)) {
                unsampled += share.unread;
                group.own.add(&share);
                group.sampled.add(gpu, share.ns as f64);
            }
            Ok(())
        })?;
        let is_read = !gpus.is_empty() || sensor::is_read(trace)?;
        Ok(Energy { rows: rows(groups, &StepLengths::of(&gpus)), gpus, is_read, left_out, unsampled })
    }
}

/// Shares the energy of each step out among the operations that ran meanwhile, in the order of GPUs and time. `ended` is told the GPU, the
/// group and the share of each; and first, what was measured for a group by steps of which several parts of it have the energy.
fn share_out(
    (mut steps, parents): (BTreeMap<i64, Steps>, &Parents),
    (mut first, mut second): (Sorted<GroupedOp>, Sorted<GroupedOp>),
    idle_watts: Option<f64>,
    mut ended: impl FnMut(i64, i64, Share) -> Result<()>,
) -> Result<Vec<GpuEnergy>> {
    // What ran in each step has to be known before it can be shared.
    let mut sweeps = Sweeps::new(&mut steps, parents);
    while let Some(op) = first.next()? {
        sweeps.add(op, &mut |_, _, _| Ok(()))?;
    }
    sweeps.finish(&mut |_, _, _| Ok(()))?;
    let gpus = steps.iter_mut().map(|(gpu, steps)| share(*gpu, steps, idle_watts)).collect();
    for (gpu, steps) in &steps {
        for step in &steps.steps {
            if let RunningOps::Within(group) = step.runs {
                let measured = step.joules_per_busy_ns * step.busy_ns as f64;
                ended(*gpu, group, Share { measured, ..Share::default() })?;
            }
        }
    }
    let mut sweeps = Sweeps::new(&mut steps, parents);
    while let Some(op) = second.next()? {
        sweeps.add(op, &mut ended)?;
    }
    sweeps.finish(&mut ended)?;
    Ok(gpus)
}

/// Sweeps GPU after GPU.
struct Sweeps<'a> {
    steps: &'a mut BTreeMap<i64, Steps>,
    parents: &'a Parents,
    current: Option<(i64, EnergySweep<'a>)>,
}

impl<'a> Sweeps<'a> {
    fn new(steps: &'a mut BTreeMap<i64, Steps>, parents: &'a Parents) -> Sweeps<'a> {
        Sweeps { steps, parents, current: None }
    }

    fn add(&mut self, op: GroupedOp, ended: &mut impl FnMut(i64, i64, Share) -> Result<()>) -> Result<()> {
        if self.current.as_ref().is_none_or(|(gpu, _)| *gpu != op.gpu) {
            self.end_gpu(ended)?;
            self.current = Some((op.gpu, EnergySweep::new(op.start, self.parents)));
        }
        match (&mut self.current, self.steps.get_mut(&op.gpu)) {
            (Some((_, sweep)), Some(steps)) => {
                sweep.begin(&mut steps.steps, &op, &mut |group, share| ended(op.gpu, group, share))
            }
            _ => ended(op.gpu, op.group, Share { unread: 1, ..Share::default() }),
        }
    }

    fn end_gpu(&mut self, ended: &mut impl FnMut(i64, i64, Share) -> Result<()>) -> Result<()> {
        let Some((gpu, sweep)) = self.current.take() else { return Ok(()) };
        let Some(steps) = self.steps.get_mut(&gpu) else { return Ok(()) };
        sweep.finish(&mut steps.steps, &mut |group, share| ended(gpu, group, share))
    }

    fn finish(mut self, ended: &mut impl FnMut(i64, i64, Share) -> Result<()>) -> Result<()> {
        self.end_gpu(ended)
    }
}

/// Takes the idle floor off each step of a GPU, of which is known how long it was busy.
fn share(gpu: i64, steps: &mut Steps, given: Option<f64>) -> GpuEnergy {
    let idle = steps.steps.iter().filter(|step| step.busy_ns == 0);
    let (joules, ns) = idle.fold((0.0, 0), |(joules, ns), step| (joules + step.joules, ns + step.length()));
    let idle_watts = given.or_else(|| (ns > 0).then(|| joules / (ns as f64 / 1e9)));
    let (mut all, mut measured_ns, mut shared) = (0.0, 0, 0.0);
    for step in &mut steps.steps {
        all += step.joules;
        measured_ns += step.length();
        if step.busy_ns > 0 {
            let floor = idle_watts.unwrap_or(0.0) * step.length() as f64 / 1e9;
            let above = (step.joules - floor).max(0.0);
            step.joules_per_busy_ns = above / step.busy_ns as f64;
            shared += above;
        }
    }
    GpuEnergy {
        gpu,
        sensor: steps.sensor,
        measured_ns,
        step_ns: steps.step_ns(),
        joules: all,
        idle_joules: all - shared,
        operations_joules: shared,
        idle_watts,
    }
}

fn rows(mut groups: Vec<EnergyGroup>, steps: &StepLengths) -> Vec<EnergyRow> {
    // A parent is before its children.
    for at in (0..groups.len()).rev() {
        let own = groups[at].own;
        groups[at].all.add(&own);
        groups[at].all_operations += groups[at].operations;
        let (all, operations) = (groups[at].all, groups[at].all_operations);
        if let Some(parent) = groups[at].parent {
            let sampled = groups[at].sampled.clone();
            groups[parent].all.add(&all);
            groups[parent].all_operations += operations;
            groups[parent].sampled.add_all(&sampled);
        }
    }
    let mut children: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (at, group) in groups.iter().enumerate() {
        children.entry(group.parent).or_default().push(at);
    }
    let mut refusals: Vec<Option<String>> =
        groups.iter().map(|group| steps.refusal(&group.sampled)).collect();
    for siblings in children.values_mut() {
        siblings.sort_by(|one, other| {
            let by_refusal = refusals[*one].is_some().cmp(&refusals[*other].is_some());
            let (one, other) = (&groups[*one], &groups[*other]);
            let energy = other.all.joules.partial_cmp(&one.all.joules).unwrap_or(Ordering::Equal);
            by_refusal.then(energy).then_with(|| one.name.cmp(&other.name))
        });
    }
    let mut rows = Vec::with_capacity(groups.len());
    let mut waiting: Vec<(usize, usize)> = Vec::new();
    let wait = |waiting: &mut Vec<(usize, usize)>, parent: Option<usize>, depth: usize| {
        let of = children.get(&parent).map_or(&[][..], Vec::as_slice);
        waiting.extend(of.iter().rev().map(|at| (*at, depth)));
    };
    wait(&mut waiting, None, 0);
    while let Some((at, depth)) = waiting.pop() {
        let group = &groups[at];
        let refused = refusals[at].take();
        wait(&mut waiting, Some(at), depth + 1);
        if group.all.ns == 0 {
            continue;
        }
        rows.push(EnergyRow {
            name: group.name.clone(),
            depth,
            ranges: group.ranges,
            operations: group.all_operations.saturating_sub(group.all.unread),
            gpu_ns: group.all.ns,
            joules: refused.is_none().then_some(group.all.joules),
            own_joules: refused.is_none().then_some(group.own.joules),
            measured_percent: (refused.is_none() && group.all.joules > 0.0)
                .then(|| 100.0 * group.all.measured / group.all.joules),
            refused,
        });
    }
    rows
}
