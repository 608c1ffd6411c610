//! Cubins: the ELF files in which NVIDIA's compilers put kernels. NVIDIA describes neither their sections nor the attributes in `.nv.info`;
//! what is read here was compared with what `ptxas -v` and `cuobjdump -res-usage` say of the same file (CUDA 12.4 and 13.0).

use std::collections::BTreeMap;

use object::elf::EM_CUDA;
use object::read::elf::{FileHeader, SectionHeader};

use crate::elf::{ElfImage, LE, text_at};
use crate::kernel::{Argument, Kernel};
use crate::{CodeObject, Error, FactsFrom, Target};

/// ABI version from which the processor's number lies in the second byte of the flags.
const NEWER_FLAGS: u8 = 8;
/// From sm_90 on, the first 1,024 bytes of a block's shared memory are the system's, and a section of the program's has them too.
const RESERVED_SHARED: u64 = 1024;
/// Lanes of a warp.
const WARP: u32 = 32;

/// Attributes (EIATTR), and where their values are.
mod attribute {
    pub(super) const REGISTERS: u8 = 0x2f;
    /// Of a function's own, per thread.
    pub(super) const FRAME: u8 = 0x11;
    pub(super) const ARGUMENT: u8 = 0x17;
    pub(super) const MOST_THREADS: u8 = 0x05;
    pub(super) const THREADS: u8 = 0x10;
    pub(super) const ARGUMENT_BYTES: u8 = 0x19;
}

/// One attribute: its number, and its value as it is there, 2 bytes where there is no length.
struct Attribute<'a> {
    number: u8,
    value: &'a [u8],
}

impl Attribute<'_> {
    fn word(&self, place: usize) -> u32 {
        let bytes = self.value.get(4 * place..4 * place + 4).and_then(|bytes| bytes.try_into().ok());
        u32::from_le_bytes(bytes.unwrap_or_default())
    }

    fn half(&self, place: usize) -> u16 {
        let bytes = self.value.get(2 * place..2 * place + 2).and_then(|bytes| bytes.try_into().ok());
        u16::from_le_bytes(bytes.unwrap_or_default())
    }
}

/// The attributes of a section.
fn attributes(mut bytes: &[u8]) -> Result<Vec<Attribute<'_>>, Error> {
    /// The value has a length in front of it.
    const WITH_LENGTH: u8 = 4;
    let mut found = Vec::new();
    while let [format, number, low, high, rest @ ..] = bytes {
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        if *format == WITH_LENGTH {
            let (value, behind) = rest.split_at_checked(length).ok_or_else(|| {
                Error::malformed(".nv.info", "an attribute goes on behind its section".to_string())
            })?;
            found.push(Attribute { number: *number, value });
            bytes = behind;
        } else {
            found.push(Attribute { number: *number, value: &bytes[2..4] });
            bytes = rest;
        }
    }
    Ok(found)
}

/// `sm_90`.
fn target(image: &ElfImage<'_>) -> Target {
    let flags = image.header.e_flags(LE).0;
    let number = if image.header.e_ident.abi_version >= NEWER_FLAGS { flags >> 8 } else { flags } & 0xff;
    Target::from(format!("sm_{number}").as_str())
}

/// All of a cubin.
pub(crate) fn parse(image: &ElfImage<'_>) -> Result<CodeObject, Error> {
    let target = target(image);
    let reserves = target.processor.strip_prefix("sm_").and_then(|number| number.parse().ok());
    let reserved = if reserves.is_some_and(|number: u32| number >= 90) { RESERVED_SHARED } else { 0 };
    let names = image.section_names().unwrap_or_default();
    // By the numbers of symbols: registers and frames.
    let (mut registers, mut frames) = (BTreeMap::new(), BTreeMap::new());
    for attribute in attributes(image.section(".nv.info").unwrap_or_default())? {
        match attribute.number {
            attribute::REGISTERS => registers.insert(attribute.word(0), attribute.word(1)),
            attribute::FRAME => frames.insert(attribute.word(0), attribute.word(1)),
            _ => None,
        };
    }
    let numbers: BTreeMap<&str, u32> =
        image.all_symbols()?.iter().map(|symbol| (symbol.name, symbol.number)).collect();
    let mut kernels = Vec::new();
    for section in image.sections {
        let name = text_at(names, section.sh_name(LE)).unwrap_or_default();
        // Functions that kernels call have no section of that name.
        let Some(name) = name.strip_prefix(".nv.info.") else { continue };
        let mut kernel = Kernel::named(name.to_string(), name.to_string());
        let shared = format!(".nv.shared.{name}");
        let shared =
            image.sections.iter().find(|section| text_at(names, section.sh_name(LE)) == Some(&shared));
        let shared = shared.map_or(0, |section| section.sh_size(LE).saturating_sub(reserved));
        kernel.group_segment_fixed_size = u32::try_from(shared).unwrap_or(u32::MAX);
        kernel.wavefront_size = WARP;
        if let Some(number) = numbers.get(name) {
            kernel.vgpr_count = registers.get(number).copied().unwrap_or_default();
            kernel.private_segment_fixed_size = frames.get(number).copied().unwrap_or_default();
        }
        for attribute in attributes(image.contents(section).unwrap_or_default())? {
            let threads = [0, 1, 2].map(|axis| attribute.word(axis));
            match attribute.number {
                attribute::ARGUMENT_BYTES => kernel.kernarg_segment_size = attribute.half(0).into(),
                attribute::MOST_THREADS => {
                    kernel.max_flat_workgroup_size =
                        threads.iter().fold(1, |all: u32, axis| all.saturating_mul(*axis));
                }
                attribute::THREADS => kernel.reqd_workgroup_size = Some(threads),
                attribute::ARGUMENT => kernel.args.push(Argument {
                    offset: attribute.half(3).into(),
                    size: attribute.word(2) >> 18,
                    value_kind: "by_value".to_string(),
                    ..Argument::default()
                }),
                _ => {}
            }
        }
        kernel.args.sort_by_key(|argument| argument.offset);
        kernels.push(kernel);
    }
    let abi_version = image.header.e_ident.abi_version;
    Ok(CodeObject { target, abi_version, metadata_version: None, source: FactsFrom::Metadata, kernels })
}

/// Whether the bytes are a cubin.
#[must_use]
pub fn is_cubin(bytes: &[u8]) -> bool {
    crate::elf::is_elf(bytes) && crate::elf::machine(bytes).is_ok_and(|machine| machine == EM_CUDA)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ptxas -arch=sm_90` of CUDA 12.4 made it of scale.ptx beside it, and says with -v: 12 registers, 64 bytes stack frame, 1024 bytes
    /// smem; and of the second kernel: 4 registers.
    const SCALE: &[u8] = include_bytes!("../tests/data/scale.cubin");

    #[test]
    fn kernels_need_what_the_assembler_says() {
        assert!(is_cubin(SCALE) && !is_cubin(&SCALE[..10]) && !is_cubin(b"text"));
        let object = CodeObject::parse(SCALE).unwrap();
        assert_eq!(object.target.processor, "sm_90");
        let of = |name: &str| object.kernel(name).unwrap().clone();
        let scale = of("_Z5scalePffi");
        assert_eq!(scale.demangled(), "scale(float*, float, int)");
        assert_eq!((scale.vgpr_count, scale.group_segment_fixed_size), (12, 1024));
        assert_eq!((scale.private_segment_fixed_size, scale.max_flat_workgroup_size), (64, 256));
        assert_eq!((scale.kernarg_segment_size, scale.wavefront_size), (16, 32));
        let places: Vec<_> = scale.args.iter().map(|argument| (argument.offset, argument.size)).collect();
        assert_eq!(places, [(0, 8), (8, 4), (12, 4)]);
        let empty = of("_Z5emptyv");
        assert_eq!((empty.vgpr_count, empty.group_segment_fixed_size, empty.args.len()), (4, 0, 0));
    }

    #[test]
    fn damage_is_an_error_or_nothing_and_never_a_panic() {
        for length in 0..SCALE.len() {
            let _ = CodeObject::parse(&SCALE[..length]);
        }
        for place in 0..SCALE.len() {
            let mut damaged = SCALE.to_vec();
            damaged[place] = !damaged[place];
            let _ = CodeObject::parse(&damaged);
        }
    }
}
