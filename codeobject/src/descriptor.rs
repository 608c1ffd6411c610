//! The kernel descriptor: the 64 bytes at `<name>.kd` that the command processor reads before it starts a kernel.
//!
//! It holds what the hardware needs and no more. Used where an object has no metadata note, and for what a runtime
//! has in memory.

use crate::{Kernel, Target};

/// Size of a descriptor.
pub const SIZE: usize = 64;

/// Bytes between the two entries of a kernel whose arguments are preloaded.
pub const SECOND_ENTRY: u64 = 256;

/// A decoded kernel descriptor (ABI version 3 and later).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelDescriptor {
    /// Bytes of static LDS per workgroup.
    pub group_segment_fixed_size: u32,
    /// Bytes of scratch per work-item.
    pub private_segment_fixed_size: u32,
    /// Bytes of arguments; 0 in objects of compilers that did not fill it in.
    pub kernarg_size: u32,
    /// Bytes from the descriptor to the first instruction.
    pub code_entry_offset: i64,
    /// Work-items per wave: 32 or 64.
    pub wavefront_size: u32,
    /// The kernel's scratch is not known beforehand.
    pub uses_dynamic_stack: bool,
    /// From gfx10 on: a workgroup may use both CUs of a workgroup processor. Means something else before.
    pub workgroup_processor_mode: bool,
    /// Arguments are in scalar registers when a wave starts (gfx90a and gfx940 on). Then it starts [`SECOND_ENTRY`] bytes behind the first
    /// instruction, where firmware does that, and at the first, which loads them, where it does not.
    pub preloads_arguments: bool,
    rsrc1: u32,
    rsrc3: u32,
}

/// Registers as the hardware allots them: the need, rounded up to the granule of the encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllottedRegisters {
    /// Vector registers; where they share a file with accumulation registers, both together.
    pub vgprs: u32,
    /// Accumulation registers.
    pub agprs: u32,
    /// Scalar registers.
    pub sgprs: u32,
}

impl KernelDescriptor {
    /// Decodes the bytes of a descriptor; any bytes are one.
    pub fn decode(bytes: &[u8; SIZE]) -> KernelDescriptor {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let properties = u16::from_le_bytes([bytes[56], bytes[57]]);
        KernelDescriptor {
            group_segment_fixed_size: word(0),
            private_segment_fixed_size: word(4),
            kernarg_size: word(8),
            code_entry_offset: (u64::from(word(16)) | u64::from(word(20)) << 32) as i64,
            wavefront_size: if properties & 1 << 10 != 0 { 32 } else { 64 },
            uses_dynamic_stack: properties & 1 << 11 != 0,
            workgroup_processor_mode: word(48) & 1 << 29 != 0,
            preloads_arguments: bytes[58] & 0x7f != 0,
            rsrc1: word(48),
            rsrc3: word(44),
        }
    }

    /// Registers, whose encoding depends on the processor. `None` for one this crate does not know.
    pub fn registers(&self, target: &Target) -> Option<AllottedRegisters> {
        let vector = self.rsrc1 & 0x3f;
        let scalar = (self.rsrc1 >> 6 & 0xf) / 2 * 16 + 16;
        let processor = target.processor.strip_prefix("gfx")?;
        let granule = |registers: u32| (vector + 1) * registers;
        let registers = match processor {
            // One file for both kinds: the descriptor holds the sum and where accumulation registers begin.
            _ if target.has_one_register_file() => {
                let vgprs = granule(8);
                let begin = ((self.rsrc3 & 0x3f) + 1) * 4;
                AllottedRegisters { vgprs, agprs: vgprs.saturating_sub(begin), sgprs: scalar }
            }
            // Two files of equal size.
            "908" => AllottedRegisters { vgprs: granule(4), agprs: granule(4), sgprs: scalar },
            _ if processor.starts_with('9') => {
                AllottedRegisters { vgprs: granule(4), agprs: 0, sgprs: scalar }
            }
            _ if ["10", "11", "12"].iter().any(|family| processor.starts_with(family)) => {
                let registers = if self.wavefront_size == 32 { 8 } else { 4 };
                AllottedRegisters { vgprs: granule(registers), agprs: 0, sgprs: 128 }
            }
            // Before gfx9 the scalar registers come in granules of 8.
            "803" => {
                AllottedRegisters { vgprs: granule(4), agprs: 0, sgprs: (self.rsrc1 >> 6 & 0xf) * 8 + 8 }
            }
            _ => return None,
        };
        Some(registers)
    }

    /// The kernel as far as a descriptor tells.
    pub(crate) fn kernel(&self, symbol: &str, target: &Target) -> Kernel {
        let name = symbol.strip_suffix(".kd").unwrap_or(symbol);
        let mut kernel = Kernel::named(symbol.to_string(), name.to_string());
        kernel.group_segment_fixed_size = self.group_segment_fixed_size;
        kernel.private_segment_fixed_size = self.private_segment_fixed_size;
        kernel.kernarg_segment_size = self.kernarg_size;
        kernel.wavefront_size = self.wavefront_size;
        kernel.uses_dynamic_stack = self.uses_dynamic_stack;
        kernel.workgroup_processor_mode = self.workgroup_processor_mode;
        if let Some(registers) = self.registers(target) {
            kernel.vgpr_count = registers.vgprs;
            kernel.agpr_count = registers.agprs;
            kernel.sgpr_count = registers.sgprs;
        }
        kernel
    }
}
