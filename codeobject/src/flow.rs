//! Basic blocks of a function, and where control goes from each.
//!
//! An instruction's name says whether it branches. The names are the same for all processors but for a few new ones. The encoding of a direct
//! branch says where it leads: the distance is the lower half of the first word in all of them (SOPP and SOPK). The ISA documents of gfx9
//! (Vega), gfx90a to gfx950 (CDNA) and gfx10 to gfx12 (RDNA) have these under "Program Control". The target of an indirect branch is known
//! where the code works it out of its own address.

mod registers;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::known_registers::KnownRegisters;

/// One instruction of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowStep<'a> {
    /// Virtual address.
    pub address: u64,
    /// Bytes.
    pub length: u32,
    /// Its first four bytes.
    pub word: u32,
    /// In LLVM's syntax.
    pub text: &'a str,
}

impl FlowStep<'_> {
    fn next(&self) -> u64 {
        self.address.saturating_add(self.length.into())
    }

    /// Where a direct branch leads: so many words behind the next instruction.
    fn target(&self) -> u64 {
        let words = i64::from((self.word & 0xffff) as u16 as i16);
        self.address.wrapping_add(4).wrapping_add_signed(words * 4)
    }
}

/// What an instruction does to control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ControlChange {
    Branch,
    Conditional,
    Call,
    IndirectCall,
    Indirect,
    /// To where a register says, or on.
    IndirectConditional,
    End,
}

impl ControlChange {
    /// Of the instruction with this text; `None` for one that control leaves towards the next.
    fn of(text: &str) -> Option<ControlChange> {
        let name = text.split_ascii_whitespace().next()?;
        Some(match name {
            "s_branch" => ControlChange::Branch,
            // gfx9: the fork of a wave, whose other half goes on later, at s_cbranch_join.
            "s_cbranch_g_fork" | "s_cbranch_join" => ControlChange::IndirectConditional,
            "s_cbranch_i_fork" => ControlChange::Conditional,
            // scc0, scc1, vccz, vccnz, execz, execnz, cdbgsys, cdbguser, cdbgsys_or_user, cdbgsys_and_user.
            name if name.starts_with("s_cbranch_") => ControlChange::Conditional,
            // gfx10: both halves of a wave of 64 through a loop, one after the other.
            "s_subvector_loop_begin" | "s_subvector_loop_end" => ControlChange::Conditional,
            "s_call_b64" | "s_call_i64" => ControlChange::Call,
            "s_swappc_b64" | "s_swap_pc_i64" => ControlChange::IndirectCall,
            "s_setpc_b64" | "s_set_pc_i64" | "s_add_pc_i64" => ControlChange::Indirect,
            "s_rfe_b64" | "s_rfe_i64" | "s_rfe_restore_b64" => ControlChange::Indirect,
            // s_endpgm_saved, s_endpgm_ordered_ps_done.
            name if name.starts_with("s_endpgm") => ControlChange::End,
            _ => return None,
        })
    }
}

/// How control goes on behind a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    /// To the next instruction, which something else branches to.
    FallThrough,
    /// Always to the target.
    Branch,
    /// To the target where the condition holds.
    Taken,
    /// On where it does not.
    NotTaken,
    /// Into a function.
    Call,
    /// On behind a call, when the function has returned.
    Return,
    /// To where a register says, which the code does not tell.
    Indirect,
    /// Into the function that a register says, which the code does not tell.
    IndirectCall,
    /// The wave ends.
    End,
    /// To where the function ends without a branch: into what follows it.
    RunsOut,
}

impl EdgeKind {
    /// Its name: `fallthrough`, `not-taken`.
    pub fn name(self) -> &'static str {
        match self {
            EdgeKind::FallThrough => "fallthrough",
            EdgeKind::Branch => "branch",
            EdgeKind::Taken => "taken",
            EdgeKind::NotTaken => "not-taken",
            EdgeKind::Call => "call",
            EdgeKind::Return => "return",
            EdgeKind::Indirect => "indirect",
            EdgeKind::IndirectCall => "indirect-call",
            EdgeKind::End => "end",
            EdgeKind::RunsOut => "runs-out",
        }
    }
}

/// Where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowTarget {
    /// A block of this function, by its place among them.
    Block(usize),
    /// Out of the function, or into the middle of an instruction.
    Address(u64),
    /// Not known, or nowhere.
    Unknown,
}

/// An edge from a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowEdge {
    /// How.
    pub kind: EdgeKind,
    /// Where to.
    pub to: FlowTarget,
}

/// Instructions that are executed one after the other, and how control goes on behind them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowBlock {
    /// Which instructions of the function.
    pub steps: Range<usize>,
    /// One or two.
    pub edges: Vec<FlowEdge>,
}

/// The blocks of a function whose instructions are `steps`, in order and without gaps. A call ends a block.
pub fn blocks(steps: &[FlowStep<'_>]) -> Vec<FlowBlock> {
    let mut function = FunctionFlow::of(steps);
    // What an indirect branch leads to begins a block, and what was known in front of that is not known in it: asked again until
    // nothing is added. Each time adds a block, or it ends.
    loop {
        let resolved = function.resolved();
        if resolved == function.resolved {
            return function.blocks();
        }
        let is_new = resolved.values().any(|target| !function.leaders.contains(target));
        function.leaders.extend(resolved.values());
        function.resolved = resolved;
        if !is_new {
            return function.blocks();
        }
    }
}

/// A function on the way to its blocks.
struct FunctionFlow<'s, 't> {
    steps: &'s [FlowStep<'t>],
    controls: Vec<Option<ControlChange>>,
    /// Addresses that begin a block.
    leaders: BTreeSet<u64>,
    /// Where indirect branches lead, by their places among the steps.
    resolved: BTreeMap<usize, u64>,
}

impl<'s, 't> FunctionFlow<'s, 't> {
    fn of(steps: &'s [FlowStep<'t>]) -> Self {
        let controls: Vec<Option<ControlChange>> =
            steps.iter().map(|step| ControlChange::of(step.text)).collect();
        let mut leaders: BTreeSet<u64> = steps.first().map(|step| step.address).into_iter().collect();
        for (step, control) in steps.iter().zip(&controls) {
            if control.is_some() {
                leaders.insert(step.next());
            }
            if let Some(ControlChange::Branch | ControlChange::Conditional | ControlChange::Call) = control {
                leaders.insert(step.target());
            }
        }
        FunctionFlow { steps, controls, leaders, resolved: BTreeMap::new() }
    }

    /// The blocks as stretches of steps. A target in the middle of an instruction begins none.
    fn ranges(&self) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            match found.last_mut() {
                Some(range) if !self.leaders.contains(&step.address) => range.end = index + 1,
                _ => found.push(index..index + 1),
            }
        }
        found
    }

    /// Where indirect branches lead, as far as the code in front of them tells: in their block, and in the one before it if only that
    /// leads there.
    fn resolved(&self) -> BTreeMap<usize, u64> {
        let blocks = self.blocks();
        let mut sources: Vec<Vec<usize>> = vec![Vec::new(); blocks.len()];
        for (from, block) in blocks.iter().enumerate() {
            for edge in &block.edges {
                if let FlowTarget::Block(to) = edge.to {
                    sources[to].push(if edge.kind == EdgeKind::Return { usize::MAX } else { from });
                }
            }
        }
        let mut resolved = BTreeMap::new();
        let mut behind: Vec<KnownRegisters> = Vec::with_capacity(blocks.len());
        for (place, block) in blocks.iter().enumerate() {
            // The first block is entered from outside.
            let mut registers = match sources[place][..] {
                [source] if place > 0 => behind.get(source).cloned().unwrap_or_default(),
                _ => KnownRegisters::default(),
            };
            for index in block.steps.clone() {
                let step = &self.steps[index];
                if let Some(ControlChange::Indirect | ControlChange::IndirectCall) = self.controls[index]
                    && let Some(target) = registers::target(&registers, step.text)
                {
                    resolved.insert(index, target);
                }
                registers::follow(&mut registers, step);
            }
            behind.push(registers);
        }
        resolved
    }

    fn blocks(&self) -> Vec<FlowBlock> {
        let ranges = self.ranges();
        let places: BTreeMap<u64, usize> = ranges
            .iter()
            .enumerate()
            .map(|(place, range)| (self.steps[range.start].address, place))
            .collect();
        let to = |address: u64| match places.get(&address) {
            Some(block) => FlowTarget::Block(*block),
            None => FlowTarget::Address(address),
        };
        let end = self.steps.last().map_or(0, FlowStep::next);
        let block = |steps: Range<usize>| {
            let last = steps.end - 1;
            let step = &self.steps[last];
            let go = |kind| FlowEdge { kind, to: to(step.target()) };
            let unknown = |kind| FlowEdge { kind, to: FlowTarget::Unknown };
            let next = |kind| match step.next() == end {
                true => FlowEdge { kind: EdgeKind::RunsOut, to: FlowTarget::Address(end) },
                false => FlowEdge { kind, to: to(step.next()) },
            };
            let resolved = self.resolved.get(&last).map(|target| to(*target));
            let edges = match (self.controls[last], resolved) {
                (None, _) => vec![next(EdgeKind::FallThrough)],
                (Some(ControlChange::Branch), _) => vec![go(EdgeKind::Branch)],
                (Some(ControlChange::Conditional), _) => vec![go(EdgeKind::Taken), next(EdgeKind::NotTaken)],
                (Some(ControlChange::Call), _) => vec![go(EdgeKind::Call), next(EdgeKind::Return)],
                (Some(ControlChange::IndirectCall), None) => {
                    vec![unknown(EdgeKind::IndirectCall), next(EdgeKind::Return)]
                }
                (Some(ControlChange::IndirectCall), Some(to)) => {
                    vec![FlowEdge { kind: EdgeKind::Call, to }, next(EdgeKind::Return)]
                }
                (Some(ControlChange::Indirect), None) => vec![unknown(EdgeKind::Indirect)],
                (Some(ControlChange::Indirect), Some(to)) => vec![FlowEdge { kind: EdgeKind::Branch, to }],
                (Some(ControlChange::IndirectConditional), _) => {
                    vec![unknown(EdgeKind::Indirect), next(EdgeKind::NotTaken)]
                }
                (Some(ControlChange::End), _) => vec![unknown(EdgeKind::End)],
            };
            FlowBlock { steps, edges }
        };
        ranges.into_iter().map(block).collect()
    }
}

#[cfg(test)]
mod tests;
