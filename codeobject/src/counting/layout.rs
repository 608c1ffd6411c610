//! The place of each instruction of a group: sizes depend on distances, and distances on sizes.

use super::assembler::Assembler;
use super::object::Original;
use super::program::{Callee, Group, callee, is_last_call};
use super::sequences::{Sequences, Wants};
use crate::blocks::Step;
use crate::instruction::{Control, Format, op};

/// Rounds until branches that are too far must have been found; after that, all take their long form.
const ROUNDS: usize = 16;
/// Bytes of the forms that have only one.
const JUMP: u64 = 4;

/// What becomes of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// It stays as it is.
    Copy,
    /// A direct branch, by the SOPP opcode, to an instruction of the group.
    Branch {
        number: u32,
        target: usize,
        is_long: bool,
    },
    /// A call of a known function.
    Call {
        pair: u32,
        target: usize,
    },
    /// A call, or one that comes last, of a function that a register names: through the search of that number.
    PointerCall {
        pair: u32,
        search: usize,
    },
    PointerJump {
        search: usize,
    },
    /// s_getpc_b64.
    OwnAddress {
        pair: u32,
        keeps_scc: bool,
    },
}

/// An instruction in its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed<'p> {
    pub(super) step: &'p Step,
    pub(super) form: Form,
    /// For the first instruction of a block: its first counter.
    pub(super) counter: Option<u32>,
    /// Bytes that are put in front of it.
    prefix: u32,
    /// Bytes of its own form.
    length: u32,
    /// Address of what is in front of it.
    pub(super) address: u64,
}

/// Code that finds the counting copy of the function that a pair of registers names, and goes there: behind all functions.
pub(super) struct Search {
    /// The pair.
    pub(super) pointer: u32,
    pub(super) address: u64,
}

/// The code of a group.
pub(super) struct Layout<'p> {
    pub(super) placed: Vec<Placed<'p>>,
    /// One for each pair of registers that calls by pointers use.
    pub(super) searches: Vec<Search>,
    /// The functions that they look for: original address, and place of the first instruction among those placed.
    pub(super) pointed: Vec<(u32, usize)>,
    /// By function of the group: the first of its instructions.
    pub(super) firsts: Vec<usize>,
    pub(super) wants: Wants,
}

impl<'p> Layout<'p> {
    /// What becomes of each instruction. Nothing has an address so far.
    pub(super) fn new(original: &Original<'_>, group: &Group<'p>, counters_per_block: u32) -> Layout<'p> {
        let mut firsts = Vec::with_capacity(group.functions.len());
        let mut total = 0;
        for (_, code) in &group.functions {
            firsts.push(total);
            total += code.steps.len();
        }
        let first_of = |place: &usize| {
            let function = group.functions.binary_search_by_key(place, |(place, _)| *place).ok()?;
            Some((u32::try_from(original.functions[*place].address).ok()?, firsts[function]))
        };
        let pointed = group.pointed.iter().filter_map(first_of).collect();
        let mut layout = Layout {
            placed: Vec::with_capacity(total),
            searches: Vec::new(),
            pointed,
            firsts,
            wants: Wants::default(),
        };
        let mut counter = 0;
        for (number, (place, code)) in group.functions.iter().enumerate() {
            let is_kernel = original.functions[*place].descriptor.is_some();
            let place_of = |target: u64| match callee(&original.functions, *place, code, target)? {
                Callee::Here => {
                    let step = code.steps.binary_search_by_key(&target, |step| step.address).ok()?;
                    Some(layout.firsts[number] + step)
                }
                Callee::Function(callee) => {
                    let function = group.functions.binary_search_by_key(&callee, |(place, _)| *place).ok()?;
                    Some(layout.firsts[function])
                }
            };
            for block in &code.blocks {
                for at in block.clone() {
                    let step = &code.steps[at];
                    let (word, control) = (step.instruction.words[0], step.instruction.control());
                    let pair = word >> 16 & 0x7f;
                    let target = step.target.and_then(place_of);
                    let form = match (control, target) {
                        (Control::Branch(_) | Control::Conditional(_), Some(target)) => {
                            Form::Branch { number: step.instruction.op, target, is_long: false }
                        }
                        (Control::Jump(_), Some(target)) => {
                            Form::Branch { number: op::S_BRANCH, target, is_long: false }
                        }
                        (Control::Call { .. }, Some(target)) => Form::Call { pair, target },
                        // A call that writes the pair which it reads runs as it is.
                        (Control::Call { target: pointer }, None) if is_apart(pair, pointer.into()) => {
                            match search(&mut layout.searches, &layout.pointed, pointer.into()) {
                                Some(search) => Form::PointerCall { pair, search },
                                None => Form::Copy,
                            }
                        }
                        (Control::Jump(pointer), None) if !is_kernel && is_last_call(step) => {
                            match search(&mut layout.searches, &layout.pointed, pointer.into()) {
                                Some(search) => Form::PointerJump { search },
                                None => Form::Copy,
                            }
                        }
                        _ if (step.instruction.format, step.instruction.op)
                            == (Format::Sop1, op::S_GETPC_B64) =>
                        {
                            Form::OwnAddress { pair, keeps_scc: !is_scc_dead(&code.steps[at + 1..block.end]) }
                        }
                        _ => Form::Copy,
                    };
                    let by_pointer = matches!(form, Form::PointerCall { .. } | Form::PointerJump { .. });
                    layout.wants.addresses |= by_pointer || matches!(form, Form::Call { .. });
                    layout.wants.own_addresses |= by_pointer || matches!(form, Form::OwnAddress { .. });
                    layout.wants.scc |=
                        matches!(form, Form::OwnAddress { keeps_scc: true, .. } | Form::PointerJump { .. });
                    let counter = (at == block.start).then(|| {
                        counter += counters_per_block;
                        counter - counters_per_block
                    });
                    layout.placed.push(Placed { step, form, counter, prefix: 0, length: 0, address: 0 });
                }
            }
        }
        layout
    }

    /// Gives each instruction its address, from `start` on; in front of the function number `n` of the group, `room(n, address)` is the
    /// address behind what has to be there. Returns the address behind the last one.
    pub(super) fn place(
        &mut self,
        sequences: &Sequences,
        start: u64,
        limit: u32,
        room: &dyn Fn(usize, u64) -> u64,
    ) -> u64 {
        let mut scratch = Assembler::default();
        for placed in &mut self.placed {
            scratch.words.clear();
            placed.prefix(sequences, &mut scratch);
            placed.prefix = scratch.words.len() as u32 * 4;
        }
        for round in 0.. {
            let mut here = start;
            let mut function = 0;
            for (at, placed) in self.placed.iter_mut().enumerate() {
                while self.firsts.get(function) == Some(&at) {
                    here = room(function, here);
                    function += 1;
                }
                placed.address = here;
                placed.length = match placed.form {
                    Form::Branch { is_long: false, .. } => JUMP as u32,
                    Form::Copy => placed.step.instruction.length,
                    _ => {
                        scratch.words.clear();
                        placed.own(sequences, &mut scratch, 0);
                        scratch.words.len() as u32 * 4
                    }
                };
                here += u64::from(placed.prefix + placed.length);
            }
            for search in &mut self.searches {
                search.address = here;
                scratch.words.clear();
                sequences.search(&mut scratch, search.pointer, &self.pointed, &|_| 0);
                here += scratch.words.len() as u64 * 4;
            }
            let mut is_stable = true;
            for at in 0..self.placed.len() {
                let placed = self.placed[at];
                let Form::Branch { number, target, is_long: false } = placed.form else { continue };
                let words =
                    self.placed[target].address.cast_signed().wrapping_sub(placed.own_end().cast_signed())
                        / 4;
                let is_near = (-i64::from(limit)..i64::from(limit)).contains(&words);
                if !is_near || round >= ROUNDS {
                    self.placed[at].form = Form::Branch { number, target, is_long: true };
                    self.wants.addresses = true;
                    self.wants.scc = true;
                    is_stable = false;
                }
            }
            if is_stable {
                return here;
            }
        }
        start
    }
}

impl Placed<'_> {
    /// Address of its own form.
    pub(super) fn own_address(&self) -> u64 {
        self.address + u64::from(self.prefix)
    }

    /// Address behind its own form.
    fn own_end(&self) -> u64 {
        self.own_address() + u64::from(self.length)
    }

    /// Bytes of all.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.prefix + self.length)
    }

    /// Whether its own form is not the original instruction's length.
    pub(super) fn is_longer(&self) -> bool {
        self.length != self.step.instruction.length
    }

    /// What is put in front of it.
    pub(super) fn prefix(&self, sequences: &Sequences, code: &mut Assembler) {
        if let Some(counter) = self.counter {
            sequences.block(code, counter);
        }
        if self.step.instruction.control() == Control::End {
            sequences.end(code);
        }
    }

    /// Its own form, where `target` is the address that it leads to.
    pub(super) fn own(&self, sequences: &Sequences, code: &mut Assembler, target: u64) {
        let [first, second] = self.step.instruction.words;
        match self.form {
            Form::Copy => {
                code.words.push(first);
                if self.step.instruction.length == 8 {
                    code.words.push(second);
                }
            }
            Form::Branch { number, is_long: false, .. } => {
                let distance = target.wrapping_sub(code.here() + 4) / 4;
                code.sopp(number, distance as u32);
            }
            Form::Branch { number, is_long: true, .. } => {
                let mut jump = Assembler { start: code.here(), ..Assembler::default() };
                if number != op::S_BRANCH {
                    // Over the jump where the condition does not hold: they are in pairs, 4 and 5, 6 and 7, 8 and 9.
                    jump.start += 4;
                }
                sequences.jump(&mut jump, target);
                if number != op::S_BRANCH {
                    code.sopp(number ^ 1, jump.words.len() as u32);
                }
                code.words.extend(jump.words);
            }
            Form::Call { pair, .. } | Form::PointerCall { pair, .. } => sequences.call(code, pair, target),
            Form::PointerJump { .. } => sequences.jump(code, target),
            Form::OwnAddress { pair, keeps_scc } => {
                sequences.own_address(code, pair, self.step.next(), keeps_scc);
            }
        }
    }
}

/// Whether two pairs of registers have none in common.
fn is_apart(one: u32, other: u32) -> bool {
    one.abs_diff(other) > 1
}

/// The number of the search for a function that the pair `pointer` names; nothing where there is none to be found.
fn search(searches: &mut Vec<Search>, pointed: &[(u32, usize)], pointer: u32) -> Option<usize> {
    if pointed.is_empty() {
        return None;
    }
    let found = searches.iter().position(|search| search.pointer == pointer);
    Some(found.unwrap_or_else(|| {
        searches.push(Search { pointer, address: 0 });
        searches.len() - 1
    }))
}

/// Whether nothing reads SCC before one of these instructions, the rest of a block, writes it.
fn is_scc_dead(rest: &[Step]) -> bool {
    for step in rest {
        let instruction = step.instruction;
        match (instruction.format, instruction.op) {
            (Format::Sop2, op::S_ADD_U32 | op::S_SUB_U32 | op::S_ADD_I32 | op::S_SUB_I32) => return true,
            (Format::Sop1, op::S_MOV_B32 | op::S_MOV_B64 | op::S_GETPC_B64)
            | (Format::Sopk, op::S_MOVK_I32) => {}
            _ if instruction.is_scalar() => return false,
            _ => {}
        }
    }
    false
}
