//! What counting costs kernels on the interpreter: executed instructions, its time, and bytes of code, with counting and without.

use std::time::Duration;

use rpd_codeobject::counting::{Options, Variant, rewrite};

use crate::launch::{OBJECTS, Outcome, bytes, run_on};
use crate::machine::Machine;

/// Of one way to count.
pub(crate) struct Costs {
    variant: Variant,
    is_scalar: bool,
    pub(crate) kernels: Vec<KernelCost>,
    /// Bytes of code of all of them.
    pub(crate) plain_bytes: u64,
    pub(crate) counting_bytes: u64,
}

/// Of one kernel: executed instructions, and the interpreter's time, where it says something.
pub(crate) struct KernelCost {
    pub(crate) name: String,
    pub(crate) plain: (u64, Option<Duration>),
    pub(crate) counting: (u64, Option<Duration>),
}

/// A row of the table in docs/architecture.md, but for the time.
#[derive(Debug)]
pub(crate) struct CostRow {
    pub(crate) begin: String,
    /// Median and most.
    pub(crate) executed: String,
    pub(crate) bytes: String,
}

/// The least time of so many runs.
pub(crate) fn of(variant: Variant, scalar_first: bool, runs: usize) -> Costs {
    let mut costs =
        Costs { variant, is_scalar: scalar_first, kernels: Vec::new(), plain_bytes: 0, counting_bytes: 0 };
    for (file, target) in OBJECTS.into_iter().filter(|(file, _)| !file.contains("asm")) {
        let object = bytes(file);
        // To make it takes longer than these kernels do.
        let has_scratch = file.contains("o0");
        let made = rewrite(&object, &Options { variant, scalar_first, ..Options::default() }, &|_| true)
            .expect("a code object");
        costs.plain_bytes += made.blocks.iter().map(|block| block.end - block.start).sum::<u64>();
        costs.counting_bytes += made.map.stretches().map(|(_, length, _)| length).sum::<u64>();
        for kernel in &made.kernels {
            let all = |slot| {
                let machine = if has_scratch { Machine::new } else { Machine::prompt };
                let outcome =
                    |_| run_on(machine(target), (3, 128), &object, &made, kernel, slot).expect("its end");
                let outcomes: Vec<Outcome> = (0..if has_scratch { 1 } else { runs }).map(outcome).collect();
                let least = outcomes.iter().map(|outcome| outcome.time).min().expect("a run");
                let instructions = outcomes[0].counts.instructions.values();
                (
                    instructions.map(|executed| executed.executions).sum::<u64>(),
                    (!has_scratch).then_some(least),
                )
            };
            let name = format!("{file} {}", kernel.name);
            costs.kernels.push(KernelCost { name, plain: all(None), counting: all(Some(0)) });
        }
    }
    costs
}

impl Costs {
    pub(crate) fn name(&self) -> (&'static str, &'static str) {
        name(self.variant, self.is_scalar)
    }

    /// Least, median and most.
    pub(crate) fn executed(&self) -> [f64; 3] {
        spread(self.kernels.iter().map(|kernel| kernel.counting.0 as f64 / kernel.plain.0 as f64))
    }

    /// The same of the interpreter's time.
    pub(crate) fn time(&self) -> [f64; 3] {
        let ratio =
            |kernel: &KernelCost| Some(kernel.counting.1?.as_secs_f64() / kernel.plain.1?.as_secs_f64());
        spread(self.kernels.iter().filter_map(ratio))
    }

    pub(crate) fn row(&self) -> CostRow {
        let ((what, unit), [_, median, most]) = (self.name(), self.executed());
        CostRow {
            begin: format!("| {what} | {unit} |"),
            executed: format!("| {median:.2} | {most:.2} |"),
            bytes: format!("| {:.2} |", self.counting_bytes as f64 / self.plain_bytes as f64),
        }
    }
}

/// What is counted, and by which unit.
pub(crate) fn name(variant: Variant, is_scalar: bool) -> (&'static str, &'static str) {
    let what = match variant {
        Variant::Waves => "waves",
        Variant::Lanes => "waves and work-items",
        Variant::Time => "waves and time",
    };
    (what, if is_scalar { "scalar" } else { "vector" })
}

fn spread(ratios: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut ratios: Vec<f64> = ratios.collect();
    ratios.sort_by(f64::total_cmp);
    [ratios[0], ratios[ratios.len() / 2], ratios[ratios.len() - 1]]
}
