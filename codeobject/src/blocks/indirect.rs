//! The targets of indirect branches and calls.

use super::{Code, Obstacle};
use crate::instruction::{Control, Format, Instruction, LITERAL, ScalarWrites, op};
use crate::known_registers::{Arithmetic, KnownRegisters};

/// Rounds until all targets must be known: each finds targets with the edges that the one before has found.
const ROUNDS: usize = 8;

impl Code {
    /// Finds the targets, and begins blocks there.
    pub(super) fn follow_indirect(&mut self) -> Result<(), Obstacle> {
        let asked: Vec<usize> = (0..self.decoded.len())
            .filter(|place| matches!(self.decoded[*place].control(), Control::Jump(_) | Control::Call { .. }))
            .collect();
        let works_out = |instruction: Instruction| {
            (instruction.format, instruction.op) == (Format::Sop1, op::S_GETPC_B64)
        };
        if asked.is_empty() || !self.decoded.iter().any(|decoded| decoded.instruction.is_some_and(works_out))
        {
            return Ok(());
        }
        for _ in 0..ROUNDS {
            let found = self.targets();
            if asked.iter().zip(&found).all(|(place, target)| self.decoded[*place].target == *target) {
                return Ok(());
            }
            for (place, target) in asked.iter().zip(found) {
                self.decoded[*place].target = target;
                self.lead_to_target(*place);
            }
        }
        Err(Obstacle::Unsettled)
    }

    /// Of each jump and call, in order, by the edges that are known so far.
    fn targets(&self) -> Vec<Option<u64>> {
        let starts: Vec<usize> = (0..self.leads.len()).filter(|place| self.leads[*place]).collect();
        let end = |block: usize| starts.get(block + 1).copied().unwrap_or(self.decoded.len());
        let mut block_of = vec![0; self.decoded.len()];
        for (block, start) in starts.iter().enumerate() {
            block_of[*start] = block;
        }
        // What is known where a block begins; `None` for one that has not been reached so far.
        let mut known: Vec<Option<KnownRegisters>> = vec![None; starts.len()];
        let mut open: Vec<usize> = Vec::new();
        for entry in self.entries.iter().filter(|entry| **entry < block_of.len()) {
            known[block_of[*entry]] = Some(KnownRegisters::default());
            open.push(block_of[*entry]);
        }
        // Each block that nothing known leads to is entered from somewhere with nothing known, as the first one is.
        for first in 0..starts.len() {
            if known[first].is_none() {
                known[first] = Some(KnownRegisters::default());
                open.push(first);
            }
            while let Some(block) = open.pop() {
                let mut registers = known[block].clone().unwrap_or_default();
                for place in starts[block]..end(block) {
                    self.follow(place, &mut registers);
                }
                let last = end(block) - 1;
                let (goes_on, target) = self.successors(last);
                let next = Some(last + 1).filter(|next| goes_on && *next < self.decoded.len());
                for to in [next, target].into_iter().flatten() {
                    let to = block_of[to];
                    let is_less = match &mut known[to] {
                        Some(before) => before.keep_common(&registers),
                        unknown => {
                            *unknown = Some(registers.clone());
                            true
                        }
                    };
                    if is_less {
                        open.push(to);
                    }
                }
            }
        }
        let mut found = Vec::new();
        for (block, start) in starts.iter().enumerate() {
            let mut registers = known[block].take().unwrap_or_default();
            for place in *start..end(block) {
                match self.decoded[place].control() {
                    Control::Jump(pair) | Control::Call { target: pair } => {
                        found.push(registers.pair(pair.into()));
                    }
                    _ => {}
                }
                self.follow(place, &mut registers);
            }
        }
        found
    }

    /// Takes one instruction into account.
    fn follow(&self, place: usize, registers: &mut KnownRegisters) {
        let decoded = &self.decoded[place];
        let Some(instruction) = decoded.instruction else {
            *registers = KnownRegisters::default();
            return;
        };
        let (format, number, [first, second]) = (instruction.format, instruction.op, instruction.words);
        let value = |code: u32| match code {
            0..=127 => registers.value(code as u16),
            128..=192 => Some(code - 128),
            193..=208 => Some(192u32.wrapping_sub(code)),
            LITERAL => Some(second),
            _ => None,
        };
        let destination = (first >> 16 & 0x7f) as u16;
        let (one, other) = (value(first & 0xff), value(first >> 8 & 0xff));
        match (format, number) {
            (Format::Sop1, op::S_GETPC_B64) => return registers.set_pair(destination, decoded.next()),
            (Format::Sop1, op::S_MOV_B64) if first & 0xff < 128 => {
                let high = value((first & 0xff) + 1);
                registers.apply(Arithmetic::Move, Some(destination), one, None);
                return registers.apply(Arithmetic::Move, destination.checked_add(1), high, None);
            }
            (Format::Sop1, op::S_SWAPPC_B64) => {
                // Functions return nothing in scalar registers, so code that reads one behind a call counts on its value from before:
                // it is one that functions keep, or the compiler has looked which ones this function changes.
                registers.forget_carry();
                return registers.forget(destination, 2);
            }
            (Format::Sopk, op::S_MOVK_I32) => {
                return registers.apply(Arithmetic::Extend, Some(destination), Some(first & 0xffff), None);
            }
            _ => {}
        }
        let arithmetic = match (format, number) {
            (Format::Sop1, op::S_MOV_B32) => Some(Arithmetic::Move),
            (Format::Sop1, op::S_SEXT_I32_I16) => Some(Arithmetic::Extend),
            (Format::Sop1, op::S_ABS_I32) => Some(Arithmetic::Absolute),
            (Format::Sop2, op::S_ADD_U32) => Some(Arithmetic::Add),
            (Format::Sop2, op::S_ADDC_U32) => Some(Arithmetic::AddCarry),
            (Format::Sop2, op::S_ADD_I32) => Some(Arithmetic::AddSigned),
            (Format::Sop2, op::S_SUB_U32) => Some(Arithmetic::Subtract),
            (Format::Sop2, op::S_SUBB_U32) => Some(Arithmetic::SubtractBorrow),
            _ => None,
        };
        if let Some(arithmetic) = arithmetic {
            return registers.apply(arithmetic, Some(destination), one, other);
        }
        if instruction.is_scalar() && format != Format::Sopp {
            registers.forget_carry();
        }
        match instruction.scalar_writes() {
            ScalarWrites::None => {}
            ScalarWrites::Range(first, count) => registers.forget(first, count),
            ScalarWrites::Any => *registers = KnownRegisters::default(),
        }
    }
}
