//! The instructions that are put into the code: at the start of each block, at the end of a wave, and at a kernel's entry; and the
//! registers for it.

use super::assembler::{Assembler, EXEC, MINUS_ONE, ONE, ZERO};
use super::{Refusal, Variant};
use crate::instruction::{SCALARS, op};

/// Vector registers of a wave.
const VECTORS: u32 = 256;
/// Offsets that a global instruction reaches.
const NEAR: u32 = 4096;
/// Offsets that a scalar memory instruction reaches.
const SCALAR_REACH: u32 = 1 << 20;

/// What the code of one group needs beyond what all need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wants {
    /// It works out addresses of its own.
    pub(super) own_addresses: bool,
    /// It calls known functions, or has branches in their long form.
    pub(super) addresses: bool,
    /// SCC has to be kept.
    pub(super) scc: bool,
}

/// How the counting is done, and with which registers: the first of each pair. All are kept for it while a wave lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sequences {
    variant: Variant,
    pub(super) is_scalar: bool,
    /// Counters of 8 bytes of the buffer, without the one that is none of a block.
    counters: u32,
    /// Address of the buffer.
    base: u32,
    /// Where EXEC is kept, the number 1, or a time: any use outside of the sequences of a block is free to change it, but where it is 1.
    work: u32,
    /// The number 1 of the scalar variant; EXEC while a time is in `work`.
    second: u32,
    /// The block that a wave is in, by the offset of its sum of exits.
    current: u32,
    /// Address of the original.
    load: u32,
    /// A pair for addresses.
    address: u32,
    scc: u32,
    /// One past the highest.
    pub(super) scalars: u32,
    /// Numbers 1 and 0; the second is an offset too.
    vector: u32,
    /// A pair for a time.
    stamp: u32,
    /// A large offset.
    offset: u32,
    /// One past the highest.
    pub(super) vectors: u32,
}

impl Sequences {
    /// With registers above those in use.
    pub(super) fn new(
        variant: Variant,
        is_scalar: bool,
        counters: u32,
        wants: Wants,
        (scalars, vectors): (u32, u32),
        has_even_pairs: bool,
    ) -> Result<Sequences, Refusal> {
        let mut next = scalars.next_multiple_of(2);
        let mut pair = |is_wanted: bool| {
            let first = next;
            next += if is_wanted { 2 } else { 0 };
            first
        };
        let is_timed = variant == Variant::Time;
        let base = pair(true);
        let work = pair(true);
        let second = pair(is_timed);
        let load = pair(wants.own_addresses);
        // Between blocks nothing is in the register for EXEC or a time.
        let has_free_work = is_timed || !is_scalar;
        let address = if has_free_work { work } else { pair(wants.addresses) };
        let mut single = |is_wanted: bool| {
            let register = next;
            next += u32::from(is_wanted);
            register
        };
        let current = single(is_timed);
        let scc = single(wants.scc);
        if next > SCALARS {
            return Err(Refusal::NoScalarRegisters { used: scalars, needed: next - scalars });
        }
        let offsets = counters.saturating_add(3).saturating_mul(8);
        let count = match (is_scalar, variant) {
            (true, _) => 0,
            (false, Variant::Time) => 5,
            (false, _) if offsets > NEAR => 3,
            (false, _) => 2,
        };
        let vector = if has_even_pairs && count > 0 { vectors.next_multiple_of(2) } else { vectors };
        if vector + count > VECTORS {
            return Err(Refusal::NoVectorRegisters { used: vectors, needed: count });
        }
        if is_scalar && offsets > SCALAR_REACH {
            return Err(Refusal::TooManyBlocks((counters / variant.counters_per_block()) as usize));
        }
        Ok(Sequences {
            variant,
            is_scalar,
            counters,
            base,
            work,
            second,
            current,
            load,
            address,
            scc,
            scalars: next,
            vector,
            stamp: vector + 2,
            offset: vector + if is_timed { 4 } else { 2 },
            vectors: vector + count,
        })
    }

    /// At the start of the block whose first counter is `counter`.
    pub(super) fn block(&self, code: &mut Assembler, counter: u32) {
        let offset = counter * 8;
        match (self.variant, self.is_scalar) {
            (Variant::Waves | Variant::Lanes, true) => code.scalar_add(self.work, self.base, offset),
            (Variant::Waves, false) => {
                code.mov_b64(self.work, EXEC);
                code.mov_b64(EXEC, ONE);
                self.vector_add(code, offset);
                code.mov_b64(EXEC, self.work);
            }
            (Variant::Lanes, false) => {
                self.vector_add(code, offset + 8);
                code.mov_b64(self.work, EXEC);
                code.mov_b64(EXEC, ONE);
                self.vector_add(code, offset);
                code.mov_b64(EXEC, self.work);
            }
            (Variant::Time, true) => {
                self.exit(code);
                code.scalar_add(self.work, self.base, offset + 8);
                code.mov_literal(self.current, offset + 16);
                code.scalar_add(self.second, self.base, offset);
            }
            (Variant::Time, false) => {
                self.exit_with_lane(code);
                code.mov_literal(self.current, offset + 16);
                code.vector_mov_literal(self.offset, offset);
                code.vector_add(self.offset, self.stamp, self.base, 8);
                code.vector_add(self.offset, self.vector, self.base, 0);
                code.mov_b64(EXEC, self.second);
            }
        }
    }

    /// Before a wave ends.
    pub(super) fn end(&self, code: &mut Assembler) {
        match (self.variant, self.is_scalar) {
            (Variant::Waves | Variant::Lanes, _) => {}
            (Variant::Time, true) => self.exit(code),
            (Variant::Time, false) => {
                self.exit_with_lane(code);
                code.mov_b64(EXEC, self.second);
            }
        }
    }

    /// Adds 1 under EXEC.
    fn vector_add(&self, code: &mut Assembler, offset: u32) {
        if offset < NEAR {
            code.vector_add(self.vector + 1, self.vector, self.base, offset);
        } else {
            code.vector_mov_literal(self.offset, offset);
            code.vector_add(self.offset, self.vector, self.base, 0);
        }
    }

    /// The time goes to the exits of the block that the wave was in, and stays in `work`.
    fn exit(&self, code: &mut Assembler) {
        code.memtime(self.work);
        code.wait_scalar();
        code.scalar_add_at(self.work, self.base, self.current);
    }

    /// The same with one lane, which stays the only active one; EXEC is in `second`, the time in `stamp`.
    fn exit_with_lane(&self, code: &mut Assembler) {
        code.memtime(self.work);
        code.mov_b64(self.second, EXEC);
        code.wait_scalar();
        code.mov_b64(EXEC, ONE);
        code.vector_mov(self.stamp, self.work);
        code.vector_mov(self.stamp + 1, self.work + 1);
        code.vector_mov(self.offset, self.current);
        code.vector_add(self.offset, self.stamp, self.base, 0);
    }

    /// At an entry: reads the cell, and sets the registers.
    pub(super) fn prologue(&self, code: &mut Assembler, cell: u64, wants: Wants) {
        code.address(self.work, cell);
        code.load_pair(self.base, self.work, 0);
        if wants.own_addresses {
            code.load_pair(self.load, self.work, 8);
        }
        code.wait_scalar();
        let is_timed = self.variant == Variant::Time;
        if self.is_scalar {
            code.mov_b64(if is_timed { self.second } else { self.work }, ONE);
        } else {
            // Of all lanes: code that makes all of them active has them counted too.
            let keep = if is_timed { self.second } else { self.work };
            code.mov_b64(keep, EXEC);
            code.mov_b64(EXEC, MINUS_ONE);
            code.vector_mov(self.vector, ONE);
            code.vector_mov(self.vector + 1, ZERO);
            code.mov_b64(EXEC, keep);
        }
        if is_timed {
            // Time before the first block is that of no block.
            code.mov_literal(self.current, self.counters * 8);
        }
    }

    /// The original's address of `address` into a pair, as s_getpc_b64 would have it there.
    pub(super) fn own_address(&self, code: &mut Assembler, pair: u32, address: u64, keeps_scc: bool) {
        if keeps_scc {
            self.keep_scc(code);
        }
        code.sop2_literal(op::S_ADD_U32, pair, self.load, address as u32);
        code.sop2(op::S_ADDC_U32, pair + 1, self.load + 1, ZERO);
        if keeps_scc {
            self.restore_scc(code);
        }
    }

    /// A call of the new code at `target`, with the return address into `pair`. SCC is not kept: no call keeps it.
    pub(super) fn call(&self, code: &mut Assembler, pair: u32, target: u64) {
        code.address(self.address, target);
        code.sop1(op::S_SWAPPC_B64, pair, self.address);
    }

    /// Behind a call by a pointer: on to the counting copy of the function that the pair `pointer` names, which is one of `functions`, or to
    /// where it leads. `functions` have addresses in the original, in order, and what `address` makes the new one of. SCC is not kept.
    pub(super) fn search(
        &self,
        code: &mut Assembler,
        pointer: u32,
        functions: &[(u32, usize)],
        address: &dyn Fn(usize) -> u64,
    ) {
        code.sop2(op::S_SUB_U32, self.address, pointer, self.load);
        code.sop2(op::S_SUBB_U32, self.address + 1, pointer + 1, self.load + 1);
        let mut misses = Vec::new();
        code.sopc(op::S_CMP_LG_U32, self.address + 1, ZERO);
        misses.push(code.words.len());
        code.sopp(op::S_CBRANCH_SCC1, 0);
        self.halve(code, functions, address, &mut misses);
        // Whatever it is, it is not counted.
        for miss in misses {
            code.words[miss] |= (code.words.len() - miss - 1) as u32 & 0xffff;
        }
        code.mov_b64(self.address, pointer);
        code.sop1(op::S_SETPC_B64, 0, self.address);
    }

    /// Looks for the original address in `address`, half of the functions at a time; adds to `misses` branches that are taken where it is not
    /// found.
    fn halve(
        &self,
        code: &mut Assembler,
        functions: &[(u32, usize)],
        address: &dyn Fn(usize) -> u64,
        misses: &mut Vec<usize>,
    ) {
        match functions {
            [] => {}
            [(original, function)] => {
                code.sopc_literal(op::S_CMP_LG_U32, self.address, *original);
                misses.push(code.words.len());
                code.sopp(op::S_CBRANCH_SCC1, 0);
                code.address(self.address, address(*function));
                code.sop1(op::S_SETPC_B64, 0, self.address);
            }
            _ => {
                let (lower, upper) = functions.split_at(functions.len() / 2);
                code.sopc_literal(op::S_CMP_GE_U32, self.address, upper[0].0);
                let branch = code.words.len();
                code.sopp(op::S_CBRANCH_SCC1, 0);
                self.halve(code, lower, address, misses);
                code.words[branch] |= (code.words.len() - branch - 1) as u32 & 0xffff;
                self.halve(code, upper, address, misses);
            }
        }
    }

    /// A jump over any distance.
    pub(super) fn jump(&self, code: &mut Assembler, target: u64) {
        self.keep_scc(code);
        code.address(self.address, target);
        self.restore_scc(code);
        code.sop1(op::S_SETPC_B64, 0, self.address);
    }

    fn keep_scc(&self, code: &mut Assembler) {
        code.sop2(op::S_CSELECT_B32, self.scc, ONE, ZERO);
    }

    fn restore_scc(&self, code: &mut Assembler) {
        code.sopc(op::S_CMP_LG_U32, self.scc, ZERO);
    }
}
