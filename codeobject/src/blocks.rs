//! Basic blocks of a function of gfx9, from its bytes alone.
//!
//! The instructions are decoded one behind the other; what nothing leads to is left out, so padding and data behind the code do no harm.
//! Indirect branches and calls are followed where their address comes from the code's own (`known_registers`). Whatever
//! cannot be followed is an [`Obstacle`], except a return and a call to an unknown function. [`crate::flow`] has the same for reports, for
//! all processors, out of LLVM's text.

mod indirect;

use std::ops::Range;

use crate::Function;
use crate::descriptor::SECOND_ENTRY;
use crate::instruction::{Control, Indexing, Instruction};

/// Why the blocks of a function are not known. Addresses are virtual ones of the code object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Obstacle {
    /// A word that begins no instruction of gfx9, where control goes.
    #[error("unknown instruction {word:#010x} at {address:#x}")]
    UnknownInstruction {
        /// Where.
        address: u64,
        /// Its first word.
        word: u32,
    },
    /// A branch to somewhere else than one of the function's instructions.
    #[error("the branch at {address:#x} leaves its function, or leads into an instruction ({target:#x})")]
    StrayBranch {
        /// Where the branch is.
        address: u64,
        /// Where it leads.
        target: u64,
    },
    /// A kernel with preloaded arguments has two entries.
    #[error("no instruction is at its second entry, {address:#x}")]
    NoSecondEntry {
        /// Where it should be.
        address: u64,
    },
    /// The last instruction is no branch.
    #[error("the code runs out of its function at {address:#x}")]
    RunsOut {
        /// Behind the last instruction.
        address: u64,
    },
    /// An instruction that does to control what is not followed.
    #[error("{name} at {address:#x} is not followed")]
    Unfollowed {
        /// Its name.
        name: &'static str,
        /// Where.
        address: u64,
    },
    /// A branch of a kernel, to where only its registers say.
    #[error("indirect branch at {address:#x}, whose target is not known")]
    UnknownTarget {
        /// Where.
        address: u64,
    },
    /// Indirect branches whose targets depend on each other.
    #[error("indirect branches whose targets depend on one another")]
    Unsettled,
}

/// An instruction of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Virtual address.
    pub address: u64,
    /// What is there.
    pub instruction: Instruction,
    /// Where it leads beside the next instruction: of direct branches, and of indirect ones and calls whose target is known.
    pub target: Option<u64>,
}

impl Step {
    /// Address of what follows it.
    pub fn next(&self) -> u64 {
        self.address + u64::from(self.instruction.length)
    }
}

/// The instructions of a function that control can reach, by their addresses, and its blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionBlocks {
    /// The instructions. There are gaps where nothing is reached.
    pub steps: Vec<Step>,
    /// Which of them are a block: executed one behind the other, entered at the first only. A call ends a block.
    pub blocks: Vec<Range<usize>>,
    /// For a kernel whose arguments are preloaded: which of the instructions is its second entry.
    pub second_entry: Option<usize>,
}

impl FunctionBlocks {
    /// The same, where a block also ends in front of the first vector instruction behind one that writes EXEC: all vector instructions of a
    /// block are executed by the lanes that are active where it begins, but for what comes before such an instruction.
    pub fn by_lanes(mut self) -> FunctionBlocks {
        let mut parts = Vec::with_capacity(self.blocks.len());
        for block in std::mem::take(&mut self.blocks) {
            let (mut begin, mut is_other) = (block.start, false);
            for at in block.clone() {
                let instruction = &self.steps[at].instruction;
                if is_other && instruction.is_by_lanes() {
                    parts.push(begin..at);
                    (begin, is_other) = (at, false);
                }
                is_other |= instruction.writes_exec();
            }
            parts.push(begin..block.end);
        }
        self.blocks = parts;
        self
    }

    /// Whether a block begins where vector registers are counted from M0 on (s_set_gpr_idx_on).
    pub(crate) fn has_indexed_block(&self) -> bool {
        let mut is_on = false;
        for block in &self.blocks {
            if is_on {
                return true;
            }
            for step in &self.steps[block.clone()] {
                match step.instruction.indexing() {
                    Some(Indexing::On) => is_on = true,
                    Some(Indexing::Off) => is_on = false,
                    Some(Indexing::Once) | None => {}
                }
            }
        }
        false
    }
}

/// Finds them.
///
/// # Errors
/// Why they are not known.
pub fn blocks(function: &Function<'_>) -> Result<FunctionBlocks, Obstacle> {
    let mut code = Code::of(function)?;
    code.follow_indirect()?;
    code.reached(function.descriptor.is_some())
}

/// Place of what is no step.
const NONE: u32 = u32::MAX;

/// One word that may begin an instruction.
struct Decoded {
    address: u64,
    /// Its first word, for messages.
    word: u32,
    instruction: Option<Instruction>,
    /// Known target.
    target: Option<u64>,
}

impl Decoded {
    fn next(&self) -> u64 {
        self.address + self.instruction.map_or(4, |instruction| u64::from(instruction.length))
    }

    fn control(&self) -> Control {
        self.instruction.map_or(Control::Next, |instruction| instruction.control())
    }
}

/// All of a function, in order.
struct Code {
    start: u64,
    decoded: Vec<Decoded>,
    /// By word of the function: which instruction begins there.
    places: Vec<u32>,
    /// Whether a block begins there.
    leads: Vec<bool>,
    /// Places of the instructions at which it is entered.
    entries: Vec<usize>,
}

impl Code {
    fn of(function: &Function<'_>) -> Result<Code, Obstacle> {
        let words: Vec<u32> = function
            .code
            .chunks_exact(4)
            .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            .collect();
        let mut code = Code {
            start: function.address,
            decoded: Vec::with_capacity(words.len()),
            places: vec![NONE; words.len()],
            leads: Vec::new(),
            entries: vec![0],
        };
        let mut at = 0;
        while at < words.len() {
            code.places[at] = code.decoded.len() as u32;
            let address = function.address.saturating_add(at as u64 * 4);
            let instruction = Instruction::decode(words[at], words.get(at + 1).copied());
            let target = instruction.and_then(|instruction| match instruction.control() {
                Control::Branch(distance) | Control::Conditional(distance) => {
                    Some(address.wrapping_add(4).wrapping_add_signed(i64::from(distance) * 4))
                }
                _ => None,
            });
            code.decoded.push(Decoded { address, word: words[at], instruction, target });
            at += instruction.map_or(1, |instruction| instruction.length as usize / 4);
        }
        code.leads = vec![false; code.decoded.len()];
        if function.descriptor.is_some_and(|descriptor| descriptor.preloads_arguments) {
            let address = function.address.saturating_add(SECOND_ENTRY);
            code.entries.push(code.place(address).ok_or(Obstacle::NoSecondEntry { address })?);
        }
        for entry in &code.entries {
            if let Some(first) = code.leads.get_mut(*entry) {
                *first = true;
            }
        }
        for place in 0..code.decoded.len() {
            if code.decoded[place].control() != Control::Next {
                if let Some(next) = code.leads.get_mut(place + 1) {
                    *next = true;
                }
                code.lead_to_target(place);
            }
        }
        Ok(code)
    }

    /// The instruction at an address of this function.
    fn place(&self, address: u64) -> Option<usize> {
        let into = address.checked_sub(self.start).filter(|into| into.is_multiple_of(4))?;
        let place = *self.places.get(usize::try_from(into / 4).ok()?)?;
        (place != NONE).then_some(place as usize)
    }

    /// A block begins where the instruction at `place` leads, if that is here.
    fn lead_to_target(&mut self, place: usize) {
        if let Some(target) = self.decoded[place].target.and_then(|target| self.place(target)) {
            self.leads[target] = true;
        }
    }

    /// Where control goes on from an instruction within the function: the next one, and the target.
    fn successors(&self, place: usize) -> (bool, Option<usize>) {
        let target = self.decoded[place].target.and_then(|target| self.place(target));
        match self.decoded[place].control() {
            Control::Next => (true, None),
            Control::Branch(_) | Control::Jump(_) => (false, target),
            Control::Conditional(_) | Control::Call { .. } => (true, target),
            Control::End | Control::Unfollowed(_) => (false, None),
        }
    }

    /// What can be reached from the first instruction.
    fn reached(&self, is_kernel: bool) -> Result<FunctionBlocks, Obstacle> {
        let mut is_reached = vec![false; self.decoded.len()];
        let mut open = self.entries.clone();
        while let Some(mut place) = open.pop() {
            loop {
                let Some(decoded) = self.decoded.get(place) else {
                    let address = self.decoded.last().map_or(self.start, Decoded::next);
                    return Err(Obstacle::RunsOut { address });
                };
                if std::mem::replace(&mut is_reached[place], true) {
                    break;
                }
                let address = decoded.address;
                if decoded.instruction.is_none() {
                    return Err(Obstacle::UnknownInstruction { address, word: decoded.word });
                }
                let (goes_on, to) = self.successors(place);
                match (decoded.control(), decoded.target) {
                    (Control::Unfollowed(name), _) => return Err(Obstacle::Unfollowed { name, address }),
                    (Control::Branch(_) | Control::Conditional(_), Some(target)) if to.is_none() => {
                        return Err(Obstacle::StrayBranch { address, target });
                    }
                    (Control::Jump(_), None) if is_kernel => return Err(Obstacle::UnknownTarget { address }),
                    _ => {}
                }
                open.extend(to.filter(|to| !is_reached[*to]));
                // Nothing comes back from a trap that ends its function, or from a call that does (__assert_fail).
                let is_last = place + 1 == self.decoded.len();
                let is_call = matches!(decoded.control(), Control::Call { .. });
                let is_trap = decoded.instruction.is_some_and(|last| last.is_trap());
                if !goes_on || is_last && (is_trap || is_call) {
                    break;
                }
                place += 1;
            }
        }
        let mut found = FunctionBlocks::default();
        let mut is_behind = false;
        for (place, decoded) in self.decoded.iter().enumerate() {
            let Some(instruction) = decoded.instruction.filter(|_| is_reached[place]) else {
                is_behind = false;
                continue;
            };
            let at = found.steps.len();
            match found.blocks.last_mut() {
                Some(block) if is_behind && !self.leads[place] => block.end = at + 1,
                _ => found.blocks.push(at..at + 1),
            }
            is_behind = true;
            if self.entries.get(1) == Some(&place) {
                found.second_entry = Some(at);
            }
            found.steps.push(Step { address: decoded.address, instruction, target: decoded.target });
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
