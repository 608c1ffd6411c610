//! What code objects come wrapped in: offload bundles, and the section of a host program that holds those.

use std::str;

use crate::Error;
use crate::elf::{self, ElfImage};

/// ELF machine number of AMDGPU.
pub(crate) const EM_AMDGPU: u16 = 224;

const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
const COMPRESSED: &[u8] = b"CCOB";
/// Bundles of one host program lie at multiples of this.
const BUNDLE_ALIGNMENT: usize = 4096;
/// Entries of one bundle: a target each. There are fewer processors than this.
const MAX_ENTRIES: u64 = 1024;

/// One code object of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// Target the container names: `gfx90a:sramecc+:xnack-`. `None` for a bare ELF file, which names it itself.
    pub target: Option<&'a str>,
    /// The ELF file, for [`crate::CodeObject::parse`].
    pub bytes: &'a [u8],
}

/// Code objects for AMD GPUs in the bytes of a code object, an offload bundle (`hipcc --genco`) or a host program or
/// library with kernels in it. Parts for the host and empty parts are left out, so the list may be empty.
///
/// # Errors
/// [`Error::UnknownFormat`] and [`Error::OtherMachine`] for something else, [`Error::Unsupported`] for compressed
/// bundles, [`Error::Malformed`] where an offset points outside of the bytes.
pub fn code_objects(bytes: &[u8]) -> Result<Vec<Part<'_>>, Error> {
    if !elf::is_elf(bytes) {
        return bundles(bytes);
    }
    let image = ElfImage::open(bytes)?;
    if image.header.e_machine == EM_AMDGPU {
        return Ok(vec![Part { target: None, bytes }]);
    }
    match image.section(".hip_fatbin") {
        Some(section) => bundles(section),
        None => Err(Error::OtherMachine { machine: image.header.e_machine }),
    }
}

/// All bundles of a section or file. The first must be there; what follows the last is padding.
fn bundles(bytes: &[u8]) -> Result<Vec<Part<'_>>, Error> {
    let mut parts = Vec::new();
    let mut start = 0;
    while let Some(rest) = bytes.get(start..) {
        if rest.starts_with(COMPRESSED) {
            return Err(compressed(rest));
        }
        if rest.starts_with(BUNDLE) {
            let end = bundle(rest, &mut parts)?;
            start = start.saturating_add(end.max(1)).next_multiple_of(BUNDLE_ALIGNMENT);
        } else if start == 0 {
            return Err(Error::UnknownFormat);
        } else {
            start = match start.checked_add(BUNDLE_ALIGNMENT) {
                Some(next) => next,
                None => break,
            };
        }
    }
    Ok(parts)
}

fn compressed(bytes: &[u8]) -> Error {
    let method = match bytes.get(6..8) {
        Some([0, 0]) => "zlib",
        Some([1, 0]) => "zstd",
        _ => "an unknown method",
    };
    Error::Unsupported {
        what: format!("a compressed offload bundle ({method})"),
        advice: "build with --no-offload-compress, or unpack it with clang-offload-bundler --unbundle",
    }
}

/// Takes fields off the front of a bundle's header.
struct HeaderFields<'a>(&'a [u8]);

impl<'a> HeaderFields<'a> {
    fn bytes(&mut self, length: u64) -> Result<&'a [u8], Error> {
        let split = usize::try_from(length).ok().and_then(|length| self.0.split_at_checked(length));
        let (taken, rest) =
            split.ok_or_else(|| Error::malformed("offload bundle", "its header goes beyond its end"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, Error> {
        let bytes = self.bytes(8)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

/// Adds the AMD GPU parts of the bundle that `bytes` begins with, and returns where its last part ends.
fn bundle<'a>(bytes: &'a [u8], parts: &mut Vec<Part<'a>>) -> Result<usize, Error> {
    let mut fields = HeaderFields(&bytes[BUNDLE.len()..]);
    let count = fields.number()?;
    if count > MAX_ENTRIES {
        return Err(Error::TooLarge { part: "the list of an offload bundle", limit: MAX_ENTRIES as usize });
    }
    let mut end = BUNDLE.len();
    for _ in 0..count {
        let (offset, size, id_length) = (fields.number()?, fields.number()?, fields.number()?);
        let id = str::from_utf8(fields.bytes(id_length)?)
            .map_err(|_| Error::malformed("offload bundle", "a target is not text"))?;
        let range = usize::try_from(offset).ok().zip(usize::try_from(size).ok());
        let range = range.and_then(|(offset, size)| Some(offset..offset.checked_add(size)?));
        let part = range.clone().and_then(|range| bytes.get(range));
        let (Some(range), Some(part)) = (range, part) else {
            return Err(Error::malformed("offload bundle", format!("the part for {id} lies beyond its end")));
        };
        end = end.max(range.end);
        if let Some(target) = amd_target(id).filter(|_| !part.is_empty()) {
            parts.push(Part { target: Some(target), bytes: part });
        }
    }
    Ok(end)
}

/// `gfx90a:xnack-` of `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`; `None` for parts of the host.
fn amd_target(id: &str) -> Option<&str> {
    let (kind, triple) = id.split_once('-')?;
    let target = triple.strip_prefix("amdgcn-amd-amdhsa-")?;
    // Older compilers leave out the triple's empty environment, and with it one dash.
    ["hip", "hipv4"].contains(&kind).then(|| target.strip_prefix('-').unwrap_or(target))
}
