//! What instructions compute, move and wait for.
//!
//! Opcodes are those of AMD's document "Vega" (chapter "Instructions") and, of products of matrices, "CDNA". What counts as a floating-point
//! operation is what AMD's profiler counts: additions, multiplications and transcendental functions are one, fused and unfused
//! multiply-adds two; comparisons, conversions, minimum and maximum none.

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

impl Instruction {
    /// What it computes and moves.
    pub fn work(&self) -> Work {
        let (lane_flops, wave_flops) = match self.format {
            Format::Vop1 => (of_vop1(self.op), 0),
            Format::Vop2 => (of_vop2(self.op), 0),
            Format::Vop3 => (of_vop3(self.op), 0),
            Format::Vop3p => of_vop3p(self.op),
            _ => (0, 0),
        };
        let (lane_bytes, wave_bytes) = match self.format {
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

fn of_vop2(op: u32) -> u64 {
    match op {
        // v_add, v_sub, v_subrev, v_mul.
        1..=5 | 31..=34 => 1,
        // v_mac, v_madmk, v_madak, v_fmac.
        22..=24 | 35..=37 | 59 => 2,
        // v_dot2c_f32_f16, v_pk_fmac_f16.
        55 | 60 => 4,
        _ => 0,
    }
}

fn of_vop3(op: u32) -> u64 {
    match op {
        256..=319 => of_vop2(op - 256),
        320..=447 => of_vop1(op - 320),
        // v_add_f64, v_mul_f64.
        640 | 641 => 1,
        // v_mad, v_fma, v_div_fmas.
        448 | 449 | 459 | 460 | 482 | 483 | 490 | 494 | 515 | 518 => 2,
        _ => 0,
    }
}

/// Of a lane, and of a wave.
fn of_vop3p(op: u32) -> (u64, u64) {
    match op {
        // v_pk_fma_f16, v_dot2_f32_f16.
        14 | 35 => (4, 0),
        // v_pk_add_f16, v_pk_mul_f16, v_mad_mix.
        15 | 16 | 32..=34 => (2, 0),
        // v_mfma_f32_*: 2 x rows x columns x depth x blocks. Those of integers compute no floating-point numbers.
        66 => (0, 512),
        107 => (0, 1024),
        65 | 69 | 74 => (0, 2048),
        64 | 68 | 105 | 109 => (0, 4096),
        73 | 77 | 104 | 108 => (0, 8192),
        72 | 76 => (0, 16384),
        _ => (0, 0),
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
        64..=78 => 8,
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
