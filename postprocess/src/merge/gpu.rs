//! GPUs: which ones of several traces are the same, and their numbers in the result.
//!
//! On one host GPUs with the same number are the same, unless their UUIDs or bus addresses differ, as in containers that see different
//! GPUs. GPUs with the same UUID are the same whatever their numbers, and so are those with the same bus address unless their UUIDs differ. A
//! GPU whose number belongs to another one gets the first free number.

use std::collections::{BTreeMap, BTreeSet};

use rpd_schema::{GpuInfo, session_fact};

use super::input::Input;
use super::node::{Moved, Nodes};

/// Added to the number of a GPU and of a queue for each node.
pub(super) const GPU_STRIDE: i64 = 1000;

/// The numbers that GPUs of the traces have in the result where they differ from `number + node strides`.
#[derive(Debug, Default)]
pub(super) struct GpuNumbers {
    /// By trace and number there.
    renumbered: BTreeMap<(usize, i64), i64>,
}

/// A GPU that says what it is.
struct IdentifiedGpu {
    node: i64,
    number: i64,
    uuid: Option<String>,
    bus: Option<String>,
}

impl GpuNumbers {
    /// Finds what is the same.
    pub(super) fn of(inputs: &[Input], nodes: &Nodes) -> GpuNumbers {
        let mut gpus = GpuNumbers::default();
        let mut known: Vec<IdentifiedGpu> = Vec::new();
        let mut taken: BTreeSet<(i64, i64)> = BTreeSet::new();
        for (input, trace) in inputs.iter().enumerate() {
            for gpu in &trace.gpus {
                let (node, local) = place(trace, nodes, input, gpu);
                let fact =
                    |key| gpu.get(key).map(str::trim).filter(|fact| !fact.is_empty()).map(str::to_string);
                let (uuid, bus) = (fact(session_fact::GPU_UUID), fact(session_fact::GPU_BDF));
                let same = |one: &Option<String>, other: &Option<String>| one.is_some() && one == other;
                let found = known.iter().find(|known| {
                    known.node == node
                        && (same(&known.uuid, &uuid)
                            || (same(&known.bus, &bus) && !differ(&known.uuid, &uuid)))
                });
                let number = match found {
                    Some(found) => found.number,
                    None => {
                        let is_other = known.iter().any(|known| {
                            known.node == node
                                && known.number == local
                                && (differ(&known.uuid, &uuid) || differ(&known.bus, &bus))
                        });
                        let number = match is_other {
                            true => (0..).find(|free| !taken.contains(&(node, *free))).unwrap_or(local),
                            false => local,
                        };
                        known.push(IdentifiedGpu { node, number, uuid, bus });
                        number
                    }
                };
                taken.insert((node, number));
                if number != local {
                    gpus.renumbered.insert((input, i64::from(gpu.gpu)), number + node * GPU_STRIDE);
                }
            }
        }
        gpus
    }

    /// The number in the result of the GPU with this number in trace `input`, on a node that moved so.
    pub(super) fn number(&self, input: usize, gpu: i64, moved: Moved) -> i64 {
        let moved = gpu + (moved.to - moved.from) * GPU_STRIDE;
        self.renumbered.get(&(input, gpu)).copied().unwrap_or(moved)
    }

    /// The same as an SQL expression. `moved`: for a GPU that is not renumbered.
    pub(super) fn expression(&self, input: usize, gpu: &str, moved: &str) -> String {
        let cases = self.renumbered.range((input, i64::MIN)..=(input, i64::MAX));
        let cases: String = cases.map(|((_, from), to)| format!(" WHEN {from} THEN {to}")).collect();
        if cases.is_empty() { moved.to_string() } else { format!("CASE {gpu}{cases} ELSE {moved} END") }
    }
}

/// Node in the result, and number there, of a GPU as its trace has it.
fn place(trace: &Input, nodes: &Nodes, input: usize, gpu: &GpuInfo) -> (i64, i64) {
    let (number, from) = match trace.is_merged {
        true => (i64::from(gpu.gpu) % GPU_STRIDE, i64::from(gpu.gpu) / GPU_STRIDE),
        false => (i64::from(gpu.gpu), 0),
    };
    (nodes.moved_node(input, from).to, number)
}

fn differ(one: &Option<String>, other: &Option<String>) -> bool {
    one.is_some() && other.is_some() && one != other
}
