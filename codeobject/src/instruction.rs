//! Instructions of gfx9: how long one is, what it does to control, and what kind of work it is.
//!
//! Numbers of formats and opcodes are those of AMD's documents "Vega" and "CDNA" (chapters "Microcode Formats" and "Instructions"). The
//! first word alone says how long an instruction is. [`registers`](Instruction::registers) says which registers one names,
//! [`work`](Instruction::work) what it computes and moves, [`waits`](Instruction::waits) what it waits for.

mod operands;
mod work;

pub use operands::Registers;
pub(crate) use operands::ScalarWrites;
pub use work::{InstructionSet, Wait, Work};

/// The format of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Scalar, two sources.
    Sop2,
    /// Scalar, 16-bit immediate.
    Sopk,
    /// Scalar, one source.
    Sop1,
    /// Scalar comparison.
    Sopc,
    /// Program control.
    Sopp,
    /// Scalar memory.
    Smem,
    /// Vector, one source.
    Vop1,
    /// Vector, two sources.
    Vop2,
    /// Vector comparison.
    Vopc,
    /// Vector, up to three sources, and the long forms of the three above.
    Vop3,
    /// Vector, packed halves, and matrices.
    Vop3p,
    /// Interpolation.
    Vintrp,
    /// LDS.
    Ds,
    /// Flat, global and private memory.
    Flat,
    /// Buffers.
    Mubuf,
    /// Buffers whose elements have a type.
    Mtbuf,
    /// Images.
    Mimg,
    /// Export.
    Exp,
}

/// What kind of work an instruction is, for reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstructionClass {
    /// Vector arithmetic.
    Valu,
    /// Scalar arithmetic.
    Salu,
    /// Vector memory: flat, global, private, buffers, images.
    Vmem,
    /// Scalar memory.
    Smem,
    /// LDS.
    Lds,
    /// Products of matrices.
    Mfma,
    /// Branches, calls, returns.
    Branch,
    /// Waits, barriers, messages, the end.
    Other,
}

impl InstructionClass {
    /// All, in the order of [`InstructionClass::index`].
    pub const ALL: [InstructionClass; 8] = [
        InstructionClass::Valu,
        InstructionClass::Salu,
        InstructionClass::Vmem,
        InstructionClass::Smem,
        InstructionClass::Lds,
        InstructionClass::Mfma,
        InstructionClass::Branch,
        InstructionClass::Other,
    ];

    /// Its place in [`InstructionClass::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// Its name in tables: `VALU`, `LDS`.
    pub fn name(self) -> &'static str {
        match self {
            InstructionClass::Valu => "VALU",
            InstructionClass::Salu => "SALU",
            InstructionClass::Vmem => "VMEM",
            InstructionClass::Smem => "SMEM",
            InstructionClass::Lds => "LDS",
            InstructionClass::Mfma => "MFMA",
            InstructionClass::Branch => "branch",
            InstructionClass::Other => "other",
        }
    }
}

/// What an instruction does to control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// On to the next instruction.
    Next,
    /// Always to so many words behind the next instruction.
    Branch(i16),
    /// There, or on.
    Conditional(i16),
    /// To where the pair of scalar registers says; the return address goes into the other pair (s_swappc_b64).
    Call {
        /// First register of the pair that has the function's address.
        target: u8,
    },
    /// To where the pair of scalar registers says, given by its first (s_setpc_b64).
    Jump(u8),
    /// The wave ends.
    End,
    /// Somewhere that is not followed, or what follows means something else: the instruction's name.
    Unfollowed(&'static str),
}

/// How values of the next instructions' registers are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Indexing {
    /// s_set_gpr_idx_on: vector registers are counted from M0 on.
    On,
    /// s_set_gpr_idx_off.
    Off,
    /// This instruction alone names registers by the contents of M0 (s_movrel, v_movrel).
    Once,
}

/// Operand codes of scalar sources: a literal, and the first that is no register.
pub(crate) const LITERAL: u32 = 255;
/// Values of the field src0 that mean a second word of modifiers.
const SDWA: u32 = 249;
const DPP: u32 = 250;
/// General scalar registers.
pub(crate) const SCALARS: u32 = 102;
/// Number of the first vector register among the operands of 9 bits.
const VECTORS: u32 = 256;

/// An instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Its words; the second one is 0 if it has none.
    pub words: [u32; 2],
    /// Its format.
    pub format: Format,
    /// Its number in the format.
    pub op: u32,
    /// Bytes: 4 or 8.
    pub length: u32,
}

/// Opcodes that the rest of the crate asks for.
pub(crate) mod op {
    pub(crate) const S_ADD_U32: u32 = 0;
    pub(crate) const S_SUB_U32: u32 = 1;
    pub(crate) const S_ADD_I32: u32 = 2;
    pub(crate) const S_SUB_I32: u32 = 3;
    pub(crate) const S_ADDC_U32: u32 = 4;
    pub(crate) const S_SUBB_U32: u32 = 5;
    pub(crate) const S_CSELECT_B32: u32 = 10;
    pub(crate) const S_MOVK_I32: u32 = 0;
    pub(crate) const S_MOV_B32: u32 = 0;
    pub(crate) const S_MOV_B64: u32 = 1;
    pub(crate) const S_SEXT_I32_I16: u32 = 23;
    pub(crate) const S_GETPC_B64: u32 = 28;
    pub(crate) const S_SETPC_B64: u32 = 29;
    pub(crate) const S_SWAPPC_B64: u32 = 30;
    pub(crate) const S_ABS_I32: u32 = 48;
    pub(crate) const S_CMP_LG_U32: u32 = 7;
    pub(crate) const S_CMP_GE_U32: u32 = 9;
    pub(crate) const S_BRANCH: u32 = 2;
    pub(crate) const S_CBRANCH_SCC1: u32 = 5;
}

impl Instruction {
    /// The instruction that begins with `words`, of which the second may be missing where the first one is all. `None` for what is
    /// none: a format or, of the scalar ones, an opcode that gfx9 does not have.
    pub fn decode(first: u32, second: Option<u32>) -> Option<Instruction> {
        let (format, op) = classify(first)?;
        let is_long = match format {
            Format::Sop2 | Format::Sopc => first & 0xff == LITERAL || first >> 8 & 0xff == LITERAL,
            Format::Sop1 => first & 0xff == LITERAL,
            Format::Sopk => op == 20,
            Format::Sopp | Format::Vintrp => false,
            // v_madmk and v_madak of 32 and 16 bits.
            Format::Vop2 if matches!(op, 23 | 24 | 36 | 37) => true,
            Format::Vop1 | Format::Vop2 | Format::Vopc => matches!(first & 0x1ff, SDWA | DPP | LITERAL),
            _ => true,
        };
        let (length, second) = if is_long { (8, second?) } else { (4, 0) };
        Some(Instruction { words: [first, second], format, op, length })
    }

    /// What it does to control.
    pub fn control(&self) -> Control {
        let distance = self.words[0] as u16 as i16;
        match (self.format, self.op) {
            (Format::Sopp, 1 | 27 | 30) => Control::End,
            (Format::Sopp, op::S_BRANCH) => Control::Branch(distance),
            (Format::Sopp, 4..=9) => Control::Conditional(distance),
            (Format::Sopp, 23..=26) => Control::Unfollowed("s_cbranch_cdbg"),
            (Format::Sop1, op::S_SETPC_B64) => Control::Jump(self.words[0] as u8),
            (Format::Sop1, op::S_SWAPPC_B64) => Control::Call { target: self.words[0] as u8 },
            (Format::Sop1, 31) => Control::Unfollowed("s_rfe_b64"),
            (Format::Sop1, 46) => Control::Unfollowed("s_cbranch_join"),
            (Format::Sop2, 41) => Control::Unfollowed("s_cbranch_g_fork"),
            (Format::Sop2, 43) => Control::Unfollowed("s_rfe_restore_b64"),
            (Format::Sopc, 16) => Control::Unfollowed("s_setvskip"),
            (Format::Sopk, 16) => Control::Unfollowed("s_cbranch_i_fork"),
            (Format::Sopk, 21) => Control::Unfollowed("s_call_b64"),
            (Format::Sopk, 18 | 20) if self.sets_skipping() => Control::Unfollowed("s_setreg of MODE"),
            _ => Control::Next,
        }
    }

    /// Whether it calls the trap handler (s_trap).
    pub(crate) fn is_trap(&self) -> bool {
        (self.format, self.op) == (Format::Sopp, 18)
    }

    /// Whether s_setreg writes the bits of MODE that switch relative registers (27) or skipping (28) on.
    fn sets_skipping(&self) -> bool {
        let place = self.words[0] & 0xffff;
        let (register, first, count) = (place & 0x3f, place >> 6 & 0x1f, (place >> 11 & 0x1f) + 1);
        register == 1 && first <= 28 && first + count > 27
    }

    /// How it changes what registers' numbers mean.
    pub(crate) fn indexing(&self) -> Option<Indexing> {
        match (self.format, self.op) {
            (Format::Sopc, 17) => Some(Indexing::On),
            (Format::Sopp, 28) => Some(Indexing::Off),
            (Format::Sop1, 42..=45) => Some(Indexing::Once),
            // v_movreld, v_movrels, v_movrelsd, and their long forms.
            (Format::Vop1, 66..=68) | (Format::Vop3, 386..=388) => Some(Indexing::Once),
            _ => None,
        }
    }

    /// What kind of work it is.
    pub fn class(&self) -> InstructionClass {
        match self.format {
            // Of gfx940 two are in front of the others (xf32).
            Format::Vop3p if (62..88).contains(&self.op) || self.op > 89 => InstructionClass::Mfma,
            Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 | Format::Vop3p | Format::Vintrp => {
                InstructionClass::Valu
            }
            Format::Flat | Format::Mubuf | Format::Mtbuf | Format::Mimg => InstructionClass::Vmem,
            Format::Ds => InstructionClass::Lds,
            Format::Smem => InstructionClass::Smem,
            Format::Exp => InstructionClass::Other,
            Format::Sop1 | Format::Sop2 | Format::Sopk | Format::Sopc | Format::Sopp => {
                match (self.control(), self.format) {
                    (Control::End, _) | (Control::Next, Format::Sopp) => InstructionClass::Other,
                    (Control::Next, _) => InstructionClass::Salu,
                    _ => InstructionClass::Branch,
                }
            }
        }
    }

    /// Whether each active lane executes it.
    pub fn is_by_lanes(&self) -> bool {
        !self.is_scalar() && self.format != Format::Smem
    }

    /// Whether it belongs to the scalar unit, and so may read or write SCC.
    pub(crate) fn is_scalar(&self) -> bool {
        matches!(self.format, Format::Sop1 | Format::Sop2 | Format::Sopk | Format::Sopc | Format::Sopp)
    }
}

/// Format and opcode; opcodes behind the last one of gfx9 are none where they could change control.
fn classify(first: u32) -> Option<(Format, u32)> {
    let scalar = |format, op: u32, last: u32| (op <= last).then_some((format, op));
    match first >> 23 {
        0x17d => return scalar(Format::Sop1, first >> 8 & 0xff, 55),
        0x17e => return scalar(Format::Sopc, first >> 16 & 0x7f, 19),
        0x17f => return scalar(Format::Sopp, first >> 16 & 0x7f, 30),
        0x160..=0x17c => return scalar(Format::Sopk, first >> 23 & 0x1f, 21),
        0x100..=0x15f => return scalar(Format::Sop2, first >> 23 & 0x7f, 52),
        0x1a7 => return Some((Format::Vop3p, first >> 16 & 0x7f)),
        _ => {}
    }
    Some(match first >> 26 {
        0x00..=0x1f => match first >> 25 {
            0x3f => (Format::Vop1, first >> 9 & 0xff),
            0x3e => (Format::Vopc, first >> 17 & 0xff),
            op => (Format::Vop2, op),
        },
        0x30 => (Format::Smem, first >> 18 & 0xff),
        0x31 => (Format::Exp, 0),
        0x34 => (Format::Vop3, first >> 16 & 0x3ff),
        0x35 => (Format::Vintrp, first >> 16 & 3),
        0x36 => (Format::Ds, first >> 17 & 0xff),
        0x37 => (Format::Flat, first >> 18 & 0x7f),
        0x38 => (Format::Mubuf, first >> 18 & 0x7f),
        0x3a => (Format::Mtbuf, first >> 15 & 0xf),
        0x3c => (Format::Mimg, first >> 18 & 0x7f),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
