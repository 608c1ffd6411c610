//! Words of the instructions that counting needs.

use crate::instruction::op;

/// Operand codes.
pub(super) const EXEC: u32 = 126;
pub(super) const ZERO: u32 = 128;
pub(super) const ONE: u32 = 129;
pub(super) const MINUS_ONE: u32 = 193;
const LITERAL: u32 = 255;

/// Code that is being written.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    pub(super) words: Vec<u32>,
    /// Virtual address of the first word.
    pub(super) start: u64,
}

impl Assembler {
    /// Address of what is written next.
    pub(super) fn here(&self) -> u64 {
        self.start + self.words.len() as u64 * 4
    }

    /// SOP1.
    pub(super) fn sop1(&mut self, number: u32, to: u32, source: u32) {
        self.words.push(0xbe80_0000 | to << 16 | number << 8 | source);
    }

    /// SOP2.
    pub(super) fn sop2(&mut self, number: u32, to: u32, one: u32, other: u32) {
        self.words.push(0x8000_0000 | number << 23 | to << 16 | other << 8 | one);
    }

    /// SOP2 whose second source is a literal.
    pub(super) fn sop2_literal(&mut self, number: u32, to: u32, one: u32, literal: u32) {
        self.sop2(number, to, one, LITERAL);
        self.words.push(literal);
    }

    /// SOPC.
    pub(super) fn sopc(&mut self, number: u32, one: u32, other: u32) {
        self.words.push(0xbf00_0000 | number << 16 | other << 8 | one);
    }

    /// SOPC whose second source is a literal.
    pub(super) fn sopc_literal(&mut self, number: u32, one: u32, literal: u32) {
        self.sopc(number, one, LITERAL);
        self.words.push(literal);
    }

    /// SOPP.
    pub(super) fn sopp(&mut self, number: u32, immediate: u32) {
        self.words.push(0xbf80_0000 | number << 16 | immediate & 0xffff);
    }

    pub(super) fn mov_b64(&mut self, to: u32, source: u32) {
        self.sop1(op::S_MOV_B64, to, source);
    }

    pub(super) fn mov_literal(&mut self, to: u32, literal: u32) {
        self.sop1(op::S_MOV_B32, to, LITERAL);
        self.words.push(literal);
    }

    /// Waits until all of scalar memory and LDS is done.
    pub(super) fn wait_scalar(&mut self) {
        self.sopp(12, 0xc07f);
    }

    /// Loads a pair.
    pub(super) fn load_pair(&mut self, to: u32, base: u32, offset: u32) {
        self.words.extend([0xc006_0000 | to << 6 | base >> 1, offset]);
    }

    pub(super) fn memtime(&mut self, to: u32) {
        self.words.extend([0xc090_0000 | to << 6, 0]);
    }

    /// s_atomic_add_x2 at base + offset, up to 20 bits.
    pub(super) fn scalar_add(&mut self, data: u32, base: u32, offset: u32) {
        self.words.extend([0xc28a_0000 | data << 6 | base >> 1, offset]);
    }

    /// s_atomic_add_x2 at base + register.
    pub(super) fn scalar_add_at(&mut self, data: u32, base: u32, register: u32) {
        self.words.extend([0xc288_0000 | data << 6 | base >> 1, register]);
    }

    /// v_mov_b32 of an operand.
    pub(super) fn vector_mov(&mut self, to: u32, source: u32) {
        self.words.push(0x7e00_0200 | to << 17 | source);
    }

    pub(super) fn vector_mov_literal(&mut self, to: u32, literal: u32) {
        self.vector_mov(to, LITERAL);
        self.words.push(literal);
    }

    /// global_atomic_add_x2 at scalar base + vector offset + immediate, up to 12 bits.
    pub(super) fn vector_add(&mut self, address: u32, data: u32, base: u32, offset: u32) {
        self.words.extend([0xdd88_8000 | offset & 0xfff, address | data << 8 | base << 16]);
    }

    /// An address of this code into a pair. Writes SCC.
    pub(super) fn address(&mut self, pair: u32, target: u64) {
        self.sop1(op::S_GETPC_B64, pair, 0);
        let distance = target.wrapping_sub(self.here());
        self.sop2_literal(op::S_ADD_U32, pair, pair, distance as u32);
        self.sop2_literal(op::S_ADDC_U32, pair + 1, pair + 1, (distance >> 32) as u32);
    }
}
