//! The work of instructions: what they compute, move and wait for.
//!
//! Opcodes are those of AMD's documents "Vega" and, of gfx908 on, "CDNA" 1 to 3 (chapter "Instructions"); a few mean something else on later
//! processors. What counts as a floating-point
//! operation is what AMD's profiler counts: additions, multiplications and transcendental functions are one, fused and unfused
//! multiply-adds two; comparisons, conversions, minimum and maximum none. The product of a sparse matrix counts as that of a dense one.

use super::{Format, Instruction};

/// What an instruction, or several, compute and move.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Floating-point operations of each active lane.
    pub lane_flops: u64,
    /// Floating-point operations of a wave together: products of matrices.
    pub wave_flops: u64,
    /// Bytes of memory that each active lane reads or writes, before any cache. An atomic operation does both.
    pub lane_bytes: u64,
    /// Bytes of memory that a wave reads or writes through the scalar cache.
    pub wave_bytes: u64,
}

impl Work {
    /// The sum.
    pub fn and(self, other: Work) -> Work {
        Work {
            lane_flops: self.lane_flops.saturating_add(other.lane_flops),
            wave_flops: self.wave_flops.saturating_add(other.wave_flops),
            lane_bytes: self.lane_bytes.saturating_add(other.lane_bytes),
            wave_bytes: self.wave_bytes.saturating_add(other.wave_bytes),
        }
    }
}

/// What a wave can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// Vector memory (vmcnt).
    VectorMemory,
    /// LDS, scalar memory, messages (lgkmcnt).
    LdsOrScalar,
    /// The other waves of the workgroup (s_barrier).
    Barrier,
    /// Time (s_sleep).
    Sleep,
}

impl Wait {
    /// Its name in tables: `VMEM`, `LDS/SMEM`.
    pub fn name(self) -> &'static str {
        match self {
            Wait::VectorMemory => "VMEM",
            Wait::LdsOrScalar => "LDS/SMEM",
            Wait::Barrier => "barrier",
            Wait::Sleep => "sleep",
        }
    }
}

/// Processors of gfx9 whose opcodes mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    /// gfx900 to gfx909, and gfx90c.
    Gfx900,
    /// gfx90a.
    Gfx90a,
    /// gfx940 to gfx942.
    Gfx940,
}

impl InstructionSet {
    /// That of a processor of gfx9.
    pub fn of(processor: &str) -> InstructionSet {
        match processor {
            "gfx90a" => InstructionSet::Gfx90a,
            _ if processor.starts_with("gfx94") => InstructionSet::Gfx940,
            _ => InstructionSet::Gfx900,
        }
    }
}

impl Instruction {
    /// What it computes and moves.
    pub fn work(&self, set: InstructionSet) -> Work {
        let (lane_flops, wave_flops) = match self.format {
            Format::Vop1 => (of_vop1(self.op), 0),
            Format::Vop2 => (of_vop2(self.op, set), 0),
            Format::Vop3 => (of_vop3(self.op, set), 0),
            Format::Vop3p if self.op < FIRST_MATRIX => (of_vop3p(self.op), 0),
            Format::Vop3p => (0, of_matrices(self.op, set)),
            _ => (0, 0),
        };
        let (lane_bytes, wave_bytes) = match self.format {
            // global_load_lds and scratch_load_lds.
            Format::Flat if set == InstructionSet::Gfx940 && matches!(self.op, 38 | 39) => (1, 0),
            Format::Flat if set == InstructionSet::Gfx940 && matches!(self.op, 40 | 41) => (2, 0),
            Format::Flat if set == InstructionSet::Gfx940 && self.op == 42 => (4, 0),
            Format::Flat | Format::Mubuf => (of_vector_memory(self.op), 0),
            // x to xyzw, loaded, stored, and the same of 16 bits.
            Format::Mtbuf => (if self.op < 8 { 4 } else { 2 } * u64::from(self.op % 4 + 1), 0),
            Format::Smem => (0, of_scalar_memory(self.op)),
            _ => (0, 0),
        };
        Work { lane_flops, wave_flops, lane_bytes, wave_bytes }
    }

    /// What it makes a wave wait for.
    pub fn waits(&self) -> impl Iterator<Item = Wait> {
        let immediate = self.words[0] & 0xffff;
        let waits = match (self.format, self.op) {
            (Format::Sopp, 10) => [Some(Wait::Barrier), None],
            // The largest number of each field waits for nothing.
            (Format::Sopp, 12) => [
                (immediate & 0xc00f != 0xc00f).then_some(Wait::VectorMemory),
                (immediate >> 8 & 0xf != 0xf).then_some(Wait::LdsOrScalar),
            ],
            (Format::Sopp, 14) => [Some(Wait::Sleep), None],
            _ => [None, None],
        };
        waits.into_iter().flatten()
    }
}

fn of_vop1(op: u32) -> u64 {
    // exp, log, rcp, rsq, sqrt, sin, cos.
    u64::from(matches!(op, 32..=42 | 61..=65 | 73..=76))
}

fn of_vop2(op: u32, set: InstructionSet) -> u64 {
    match op {
        // v_fmac_f64, formerly v_mul_legacy_f32.
        4 if set != InstructionSet::Gfx900 => 2,
        // v_add, v_sub, v_subrev, v_mul.
        1..=5 | 31..=34 => 1,
        // v_mac, v_madmk, v_madak, v_fmac.
        22..=24 | 35..=37 | 59 => 2,
        // v_dot2c_f32_f16, v_pk_fmac_f16.
        55 | 60 => 4,
        _ => 0,
    }
}

fn of_vop3(op: u32, set: InstructionSet) -> u64 {
    match op {
        256..=319 => of_vop2(op - 256, set),
        320..=447 => of_vop1(op - 320),
        // v_add_f64, v_mul_f64.
        640 | 641 => 1,
        // v_mad, v_fma, v_div_fmas.
        448 | 449 | 459 | 460 | 482 | 483 | 490 | 494 | 515 | 518 => 2,
        _ => 0,
    }
}

/// Of VOP3P, the first that is a product of matrices.
const FIRST_MATRIX: u32 = 62;

fn of_vop3p(op: u32) -> u64 {
    match op {
        // v_pk_fma_f16, v_dot2_f32_f16, v_pk_fma_f32.
        14 | 35 | 48 => 4,
        // v_pk_add_f16, v_pk_mul_f16, v_mad_mix, v_pk_mul_f32, v_pk_add_f32.
        15 | 16 | 32..=34 | 49 | 50 => 2,
        _ => 0,
    }
}

/// 2 x rows x columns x depth x blocks. Products of integers compute no floating-point numbers.
fn of_matrices(op: u32, set: InstructionSet) -> u64 {
    match (set, op) {
        // Of f32 and f16.
        (_, 66) => 512,
        (_, 65 | 69 | 74) => 2048,
        (_, 64 | 68) => 4096,
        (_, 73 | 77) => 8192,
        (_, 72 | 76) => 16384,
        // Of bf16.
        (InstructionSet::Gfx900 | InstructionSet::Gfx90a, 107) => 1024,
        (InstructionSet::Gfx900 | InstructionSet::Gfx90a, 105 | 109) => 4096,
        (InstructionSet::Gfx900 | InstructionSet::Gfx90a, 104 | 108) => 8192,
        (InstructionSet::Gfx90a, 101) | (InstructionSet::Gfx940, 95) => 2048,
        (InstructionSet::Gfx90a, 100 | 103) | (InstructionSet::Gfx940, 94 | 97) => 8192,
        (InstructionSet::Gfx90a, 99 | 102) | (InstructionSet::Gfx940, 93 | 96) => 16384,
        // Of f64.
        (InstructionSet::Gfx90a | InstructionSet::Gfx940, 110) => 2048,
        (InstructionSet::Gfx90a | InstructionSet::Gfx940, 111) => 512,
        // Of xf32, of 8 bits, and of sparse matrices of 16 and of 8 bits.
        (InstructionSet::Gfx940, 62) => 4096,
        (InstructionSet::Gfx940, 63) => 8192,
        (InstructionSet::Gfx940, 112..=115 | 98 | 102) => 16384,
        (InstructionSet::Gfx940, 116..=119 | 100 | 104 | 120..=123) => 32768,
        (InstructionSet::Gfx940, 124..=127) => 65536,
        _ => 0,
    }
}

/// Of FLAT and MUBUF, which have the same numbers but for loads and stores with a format.
fn of_vector_memory(op: u32) -> u64 {
    match op {
        0..=7 => 4 * u64::from(op % 4 + 1),
        8..=15 => 2 * u64::from(op % 4 + 1),
        16 | 17 | 24 | 25 | 32..=35 => 1,
        18 | 19 | 26 | 27 | 36..=39 => 2,
        20..=23 => 4 * u64::from(op - 19),
        28..=31 => 4 * u64::from(op - 27),
        64..=78 | 82 => 8,
        // Of f64.
        79..=81 => 16,
        96..=108 => 16,
        _ => 0,
    }
}

fn of_scalar_memory(op: u32) -> u64 {
    match op {
        // s_load, s_buffer_load: up to 16 words.
        0..=4 => 4 << op,
        8..=12 => 4 << (op - 8),
        // s_scratch_load, s_store, s_scratch_store, s_buffer_store: up to 4 words.
        5..=7 => 4 << (op - 5),
        16..=18 => 4 << (op - 16),
        21..=23 => 4 << (op - 21),
        24..=26 => 4 << (op - 24),
        // s_buffer_atomic, s_atomic, of 32 and of 64 bits.
        64..=95 | 128..=159 => 8,
        96..=127 | 160..=191 => 16,
        _ => 0,
    }
}
