//! The registers that an instruction names.
//!
//! Where an operand's width depends on much, the widest is taken. So the answer may have a few registers that no instruction uses, and never
//! lacks one.

use super::{DPP, Format, Indexing, Instruction, SCALARS, SDWA, VECTORS, op};

/// Registers that instructions name: how many there are up to the highest one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Registers {
    /// Scalar registers: one more than the number of the highest, without VCC and the like.
    pub scalar: u32,
    /// Vector registers, without accumulation registers.
    pub vector: u32,
    /// The number of scalar registers does not tell: they are named by the contents of others.
    pub is_scalar_open: bool,
    /// That of vector registers does not tell: they are named by the contents of others, or the format is not followed so far.
    pub is_vector_open: bool,
}

impl Registers {
    /// Those of both.
    pub fn and(self, other: Registers) -> Registers {
        Registers {
            scalar: self.scalar.max(other.scalar),
            vector: self.vector.max(other.vector),
            is_scalar_open: self.is_scalar_open || other.is_scalar_open,
            is_vector_open: self.is_vector_open || other.is_vector_open,
        }
    }

    fn scalars(&mut self, first: u32, count: u32) {
        if first < SCALARS {
            self.scalar = self.scalar.max((first + count).min(SCALARS));
        }
    }

    fn vectors(&mut self, first: u32, count: u32) {
        self.vector = self.vector.max((first + count).min(VECTORS));
    }

    /// An operand of 9 bits.
    fn source(&mut self, code: u32, count: u32) {
        match code.checked_sub(VECTORS) {
            Some(vector) => self.vectors(vector, count),
            None => self.scalars(code, count),
        }
    }
}

/// Scalar registers that an instruction may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalarWrites {
    None,
    /// So many, from a first one on.
    Range(u16, u16),
    /// Not known which.
    Any,
}

impl Instruction {
    /// The registers that it names.
    pub fn registers(&self) -> Registers {
        let [first, second] = self.words;
        let mut found = Registers::default();
        match self.indexing() {
            Some(Indexing::Once) if self.format == Format::Sop1 => found.is_scalar_open = true,
            Some(Indexing::On | Indexing::Once) => found.is_vector_open = true,
            Some(Indexing::Off) | None => {}
        }
        match self.format {
            Format::Sop2 => {
                let width = if is_wide_sop2(self.op) { 2 } else { 1 };
                for operand in [first & 0xff, first >> 8 & 0xff, first >> 16 & 0x7f] {
                    found.scalars(operand, width);
                }
            }
            Format::Sop1 => {
                let width = if is_narrow_sop1(self.op) { 1 } else { 2 };
                found.scalars(first & 0xff, width);
                found.scalars(first >> 16 & 0x7f, width);
            }
            Format::Sopc => {
                let width = if matches!(self.op, 14 | 15 | 18 | 19) { 2 } else { 1 };
                found.scalars(first & 0xff, width);
                found.scalars(first >> 8 & 0xff, width);
            }
            Format::Sopk => found.scalars(first >> 16 & 0x7f, if self.op == 21 { 2 } else { 1 }),
            Format::Sopp => {}
            Format::Smem => {
                found.scalars(
                    (first & 0x3f) << 1,
                    if matches!(self.op, 8..=12 | 24..=26 | 64..=127) { 4 } else { 2 },
                );
                found.scalars(first >> 6 & 0x7f, smem_width(self.op));
                if first >> 17 & 1 == 0 {
                    found.scalars(second & 0x7f, 1);
                }
                if first >> 14 & 1 != 0 {
                    found.scalars(second >> 25, 1);
                }
            }
            Format::Vop1 => {
                let width = vop1_width(self.op);
                self.first_source(&mut found, width);
                match self.op {
                    // v_readfirstlane_b32
                    2 => found.scalars(first >> 17 & 0xff, 1),
                    _ => found.vectors(first >> 17 & 0xff, width),
                }
            }
            Format::Vop2 => {
                // v_fmac_f64 of gfx90a.
                let width = if self.op == 4 { 2 } else { 1 };
                self.first_source(&mut found, width);
                self.second_source(&mut found, width);
                found.vectors(first >> 17 & 0xff, width);
            }
            Format::Vopc => {
                let width = vopc_width(self.op);
                self.first_source(&mut found, width);
                self.second_source(&mut found, width);
                if first & 0x1ff == SDWA && second >> 15 & 1 != 0 {
                    found.scalars(second >> 8 & 0x7f, 2);
                }
            }
            Format::Vop3 => self.vop3_registers(&mut found),
            Format::Vop3p => {
                let (result, source) = match self.op {
                    // v_accvgpr_read and v_accvgpr_write
                    88 | 89 => (1, 1),
                    // Matrices, whose accumulation registers are counted as vector registers: no matter where they are many.
                    64.. => (32, 4),
                    // Pairs of numbers of 32 bits on gfx90a.
                    48..=63 => (2, 2),
                    _ => (1, 1),
                };
                if !self.is_accumulator_result() {
                    found.vectors(first & 0xff, result);
                }
                for operand in [second & 0x1ff, second >> 9 & 0x1ff, second >> 18 & 0x1ff] {
                    found.source(operand, source);
                }
            }
            Format::Ds => {
                found.vectors(second & 0xff, 1);
                let data = ds_data_width(self.op);
                found.vectors(second >> 8 & 0xff, data);
                found.vectors(second >> 16 & 0xff, data);
                found.vectors(second >> 24, ds_result_width(self.op));
            }
            Format::Flat => {
                let scalar_base = second >> 16 & 0x7f;
                let is_flat = first >> 14 & 3 == 0;
                let is_wide_address = is_flat || (first >> 14 & 3 == 2 && scalar_base == 127);
                found.vectors(second & 0xff, if is_wide_address { 2 } else { 1 });
                if !is_flat {
                    found.scalars(scalar_base, if first >> 14 & 3 == 2 { 2 } else { 1 });
                }
                let (data, result) = memory_widths(self.op);
                found.vectors(second >> 8 & 0xff, data);
                found.vectors(second >> 24, result);
            }
            Format::Mubuf | Format::Mtbuf => {
                let is_both = first >> 12 & 3 == 3;
                found.vectors(second & 0xff, if is_both { 2 } else { 1 });
                let (data, result) = match self.format {
                    Format::Mubuf => memory_widths(self.op),
                    _ => (4, 4),
                };
                found.vectors(second >> 8 & 0xff, data.max(result) + (second >> 23 & 1));
                found.scalars((second >> 16 & 0x1f) << 2, 4);
                found.scalars(second >> 24, 1);
            }
            Format::Vintrp | Format::Mimg | Format::Exp => found.is_vector_open = true,
        }
        found
    }

    /// v_accvgpr_write writes registers that are no vector registers.
    fn is_accumulator_result(&self) -> bool {
        self.op == 89
    }

    /// Source 0 of the short vector formats.
    fn first_source(&self, found: &mut Registers, width: u32) {
        let [first, second] = self.words;
        match first & 0x1ff {
            DPP => found.vectors(second & 0xff, width),
            SDWA if second >> 23 & 1 == 0 => found.vectors(second & 0xff, width),
            SDWA => found.scalars(second & 0xff, width),
            source => found.source(source, width),
        }
    }

    /// Source 1 of the short vector formats.
    fn second_source(&self, found: &mut Registers, width: u32) {
        let [first, second] = self.words;
        let source = first >> 9 & 0xff;
        match first & 0x1ff {
            SDWA if second >> 31 != 0 => found.scalars(source, width),
            _ => found.vectors(source, width),
        }
    }

    fn vop3_registers(&self, found: &mut Registers) {
        let [first, second] = self.words;
        let (result, source) = match self.op {
            0..0x100 => (2, vopc_width(self.op)),
            0x100..0x140 => (if self.op == 0x104 { 2 } else { 1 }, if self.op == 0x104 { 2 } else { 1 }),
            0x140..0x1c0 => (vop1_width(self.op - 0x140), vop1_width(self.op - 0x140)),
            // v_mqsad_u32_u8
            0x1e7 => (4, 4),
            // Of 64 bits: fma, div_fixup, div_scale, div_fmas, qsad, mqsad, mad; v_lshl_add_u64 of gfx940; add, mul, min, max, ldexp;
            // shifts and v_trig_preop.
            0x1cc
            | 0x1df..=0x1e1
            | 0x1e3
            | 0x1e5
            | 0x1e6
            | 0x1e8
            | 0x1e9
            | 0x208
            | 0x280..=0x284
            | 0x28f..=0x292 => (2, 2),
            _ => (1, 1),
        };
        let destination = first & 0xff;
        match self.op {
            0..0x100 => found.scalars(destination, 2),
            0x142 | 0x289 => found.scalars(destination, 1),
            _ => found.vectors(destination, result),
        }
        if self.has_scalar_result() {
            found.scalars(first >> 8 & 0x7f, 2);
        }
        for operand in [second & 0x1ff, second >> 9 & 0x1ff] {
            found.source(operand, source);
        }
        // A mask of lanes: v_cndmask, additions with carry.
        let last = if (0x100..0x140).contains(&self.op) { 2 } else { source };
        found.source(second >> 18 & 0x1ff, last);
    }

    /// Whether a long form has a field for a second result, a mask: sums with carry, div_scale, mad of 64 bits.
    fn has_scalar_result(&self) -> bool {
        matches!(self.op, 0x119..=0x11e | 0x1e0 | 0x1e1 | 0x1e8 | 0x1e9)
    }

    /// Whether other lanes may be active behind it: a mask of lanes is written as a result, by s_and_saveexec_b64 and the like, or by v_cmpx.
    pub fn writes_exec(&self) -> bool {
        const EXEC: [u32; 2] = [126, 127];
        let is_result = match self.scalar_writes() {
            ScalarWrites::None => false,
            ScalarWrites::Any => true,
            ScalarWrites::Range(first, count) => {
                let (first, count) = (u32::from(first), u32::from(count));
                EXEC.iter().any(|register| (first..first + count).contains(register))
            }
        };
        let is_saving = self.format == Format::Sop1 && matches!(self.op, 0x20..=0x27 | 0x33..=0x36);
        let is_comparison = self.format == Format::Vopc || self.format == Format::Vop3 && self.op < 0x100;
        // v_cmpx_class of three types, then v_cmp and v_cmpx of each type, 16 each.
        let is_cmpx = matches!(self.op, 0x11 | 0x13 | 0x15) || self.op >= 0x20 && self.op & 0x10 != 0;
        is_result || is_saving || is_comparison && is_cmpx
    }

    /// Scalar registers that it may write, SCC, EXEC and other named ones aside.
    pub(crate) fn scalar_writes(&self) -> ScalarWrites {
        let [first, second] = self.words;
        let range = |first: u32, count: u32| ScalarWrites::Range(first as u16, count as u16);
        if self.indexing() == Some(Indexing::Once) && self.format == Format::Sop1 {
            return ScalarWrites::Any;
        }
        match self.format {
            Format::Sop2 => range(first >> 16 & 0x7f, if is_wide_sop2(self.op) { 2 } else { 1 }),
            Format::Sop1 if self.op == op::S_SETPC_B64 => ScalarWrites::None,
            Format::Sop1 => range(first >> 16 & 0x7f, if is_narrow_sop1(self.op) { 1 } else { 2 }),
            Format::Sopk => range(first >> 16 & 0x7f, 2),
            Format::Smem => range(first >> 6 & 0x7f, smem_width(self.op)),
            Format::Vop1 if self.op == 2 => range(first >> 17 & 0xff, 1),
            Format::Vopc if first & 0x1ff == SDWA && second >> 15 & 1 != 0 => range(second >> 8 & 0x7f, 2),
            Format::Vop3 if self.op < 0x100 || matches!(self.op, 0x142 | 0x289) => range(first & 0xff, 2),
            Format::Vop3 if self.has_scalar_result() => range(first >> 8 & 0x7f, 2),
            _ => ScalarWrites::None,
        }
    }
}

fn is_wide_sop2(number: u32) -> bool {
    matches!(number, 11 | 13 | 15 | 17 | 19 | 21 | 23 | 25 | 27 | 29 | 31 | 33 | 35 | 39 | 40 | 41 | 43)
}

/// Of which neither source nor result has 64 bits.
fn is_narrow_sop1(number: u32) -> bool {
    matches!(number, 0 | 2 | 4 | 6 | 8 | 10 | 12 | 14 | 16 | 18 | 20 | 22..=24 | 26 | 40 | 42 | 44 | 47..=50)
}

/// Registers of data.
fn smem_width(number: u32) -> u32 {
    match number {
        0 | 5 | 8 | 16 | 21 | 24 => 1,
        1 | 6 | 9 | 17 | 22 | 25 => 2,
        2 | 7 | 10 | 18 | 23 | 26 => 4,
        3 | 11 => 8,
        4 | 12 => 16,
        36 | 37 => 2,
        // Comparison and exchange has two numbers.
        65 | 129 => 2,
        97 | 161 => 4,
        64..=95 | 128..=159 => 1,
        96..=127 | 160..=191 => 2,
        _ => 0,
    }
}

fn vop1_width(number: u32) -> u32 {
    // Numbers of 64 bits as source or result; v_mov_b64 of gfx940.
    let is_wide = matches!(number, 3 | 4 | 15 | 16 | 21..=26 | 37 | 38 | 40 | 48..=50 | 56);
    if is_wide { 2 } else { 1 }
}

fn vopc_width(number: u32) -> u32 {
    if matches!(number, 0x12 | 0x13 | 0x60..=0x7f | 0xe0..=0xff) { 2 } else { 1 }
}

fn ds_data_width(number: u32) -> u32 {
    match number {
        0xc0.. => 4,
        0x40..=0x7f => 2,
        _ => 1,
    }
}

fn ds_result_width(number: u32) -> u32 {
    match number {
        0x77 | 0x78 | 0xc0.. => 4,
        // ds_read2_b32 and the like, exchanges of two numbers.
        0x2e | 0x2f | 0x37 | 0x38 | 0x40..=0x6d | 0x70..=0x76 | 0x79..=0x7f => 2,
        0x6e | 0x6f => 4,
        _ => 1,
    }
}

/// Registers of data that are stored, and that are loaded, by flat and buffer instructions.
fn memory_widths(number: u32) -> (u32, u32) {
    match number {
        // Typed: x, xy, xyz, xyzw.
        0..=15 => (4, 4),
        0x10..=0x14 | 0x18..=0x1c | 0x20..=0x27 => (1, 1),
        0x15 | 0x1d => (2, 2),
        0x16 | 0x1e => (3, 3),
        0x17 | 0x1f => (4, 4),
        // Comparison and exchange has two numbers.
        0x41 => (2, 1),
        0x61 => (4, 2),
        0x40..=0x5f => (1, 1),
        0x60..=0x7f => (2, 2),
        _ => (4, 4),
    }
}
