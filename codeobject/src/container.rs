//! Containers of code objects: offload bundles, compressed ones too, and the section of a host program that holds those.
//!
//! Libraries of kernels have gigabytes. So a container is read through [`ReadAt`], piece by piece, and one code object is in memory at
//! a time, or one bundle where it is compressed.

mod compressed;
mod read_at;

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use object::elf::{EM_AMDGPU, EM_CUDA};

use crate::Error;
use crate::elf;

pub use read_at::ReadAt;

const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// Bundles of one host program lie at multiples of this.
const BUNDLE_ALIGNMENT: u64 = 4096;
/// Entries of one bundle: a target each. There are fewer processors than this.
const MAX_ENTRIES: u64 = 1024;
/// Bytes of a target's name.
const MAX_ID: u64 = 4096;
/// Bytes of one code object. The largest have some hundred megabytes.
const MAX_OBJECT: u64 = 2 << 30;

/// One code object of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<'a> {
    /// Target the container names: `gfx90a:sramecc+:xnack-`. `None` for a bare ELF file, which names it itself.
    pub target: Option<String>,
    /// Where it lies in the file. For one in a compressed bundle: where that bundle lies.
    pub place: Range<u64>,
    /// The ELF file, for [`crate::CodeObject::parse`].
    pub bytes: Cow<'a, [u8]>,
}

/// Code objects for AMD GPUs in the bytes of a code object, an offload bundle (`hipcc --genco`) or a host program or
/// library with kernels in it, all of them in memory. Parts for the host and empty parts are left out, so the list may be empty.
///
/// # Errors
/// Those of [`each`].
pub fn code_objects(bytes: &[u8]) -> Result<Vec<Part<'_>>, Error> {
    let mut parts = Vec::new();
    each(bytes, |part| {
        parts.push(part);
        ControlFlow::Continue(())
    })?;
    Ok(parts)
}

/// Hands each code object for AMD GPUs in `file` to `visit`, in the order of the file, until that says to stop.
///
/// # Errors
/// [`Error::UnknownFormat`] and [`Error::NoDeviceCode`] for something else, [`Error::Unreadable`] where reading fails,
/// [`Error::Unsupported`] for a compression that this crate does not know, [`Error::Malformed`] where an offset points outside of the
/// file, and [`Error::TooLarge`]. What comes before the damage has been visited.
pub fn each<'a>(
    file: &'a (impl ReadAt + ?Sized),
    mut visit: impl FnMut(Part<'a>) -> ControlFlow<()>,
) -> Result<(), Error> {
    let size = file.size();
    let begin = file.read(0, size.min(elf::HEADER) as usize).map_err(Error::unreadable)?;
    if begin.is_empty() {
        return Err(Error::UnknownFormat);
    }
    if !elf::is_elf(&begin) {
        return bundles(file, 0..size, &mut visit).map(drop);
    }
    match elf::machine(&begin)? {
        EM_AMDGPU | EM_CUDA => {
            let _ = visit(Part { target: None, place: 0..size, bytes: object(file, &(0..size))? });
            Ok(())
        }
        _ => {
            let sections = elf::places_of(file, ".hip_fatbin")?;
            if sections.is_empty() {
                return Err(Error::NoDeviceCode);
            }
            for section in sections {
                if bundles(file, section, &mut visit)?.is_break() {
                    break;
                }
            }
            Ok(())
        }
    }
}

/// The bytes of a code object.
fn object<'a>(file: &'a (impl ReadAt + ?Sized), place: &Range<u64>) -> Result<Cow<'a, [u8]>, Error> {
    let size = place.end - place.start;
    if size > MAX_OBJECT {
        return Err(Error::TooLarge { part: "a code object, in bytes,", limit: MAX_OBJECT as usize });
    }
    file.read(place.start, size as usize).map_err(Error::unreadable)
}

/// All bundles of a section or file. The first must be there; what follows the last is padding.
fn bundles<'a>(
    file: &'a (impl ReadAt + ?Sized),
    place: Range<u64>,
    visit: &mut impl FnMut(Part<'a>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, Error> {
    let mut start = place.start;
    while start < place.end {
        let rest = start..place.end;
        let length = (rest.end - rest.start).min(BUNDLE.len() as u64);
        let magic = file.read(start, length as usize).map_err(Error::unreadable)?;
        let (end, flow) = if magic.as_ref() == BUNDLE {
            bundle(file, rest, |target, place| {
                Ok(visit(Part { target: Some(target), bytes: object(file, &place)?, place }))
            })?
        } else if magic.starts_with(compressed::MAGIC) {
            let (bytes, end) = compressed::bundle(file, rest)?;
            let (_, flow) = bundle(bytes.as_slice(), 0..bytes.len() as u64, |target, inside| {
                let object = object(bytes.as_slice(), &inside)?.into_owned();
                Ok(visit(Part { target: Some(target), place: start..end, bytes: Cow::Owned(object) }))
            })?;
            (end, flow)
        } else if start == place.start {
            return Err(Error::UnknownFormat);
        } else {
            (start, ControlFlow::Continue(()))
        };
        if flow.is_break() {
            return Ok(flow);
        }
        // From the section's beginning, which need not be aligned in the file.
        let next = (end.max(start + 1) - place.start).checked_next_multiple_of(BUNDLE_ALIGNMENT);
        start = next.and_then(|next| next.checked_add(place.start)).unwrap_or(place.end);
    }
    Ok(ControlFlow::Continue(()))
}

/// Takes fields off the front of a bundle's header.
struct HeaderFields<'a, B: ?Sized> {
    file: &'a B,
    at: u64,
    end: u64,
}

impl<'a, B: ReadAt + ?Sized> HeaderFields<'a, B> {
    fn bytes(&mut self, length: u64) -> Result<Cow<'a, [u8]>, Error> {
        if length > self.end - self.at {
            return Err(Error::malformed("offload bundle", "its header goes beyond its end"));
        }
        let bytes = self.file.read(self.at, length as usize).map_err(Error::unreadable)?;
        self.at += length;
        Ok(bytes)
    }

    fn numbers<const N: usize>(&mut self) -> Result<[u64; N], Error> {
        let bytes = self.bytes(8 * N as u64)?;
        let number =
            |at: usize| bytes[8 * at..8 * at + 8].iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
        Ok(std::array::from_fn(number))
    }
}

/// Visits the AMD GPU parts of the bundle that `place` begins with, and returns where its last part ends.
fn bundle<B: ReadAt + ?Sized>(
    file: &B,
    place: Range<u64>,
    mut visit: impl FnMut(String, Range<u64>) -> Result<ControlFlow<()>, Error>,
) -> Result<(u64, ControlFlow<()>), Error> {
    let mut fields = HeaderFields { file, at: place.start, end: place.end };
    if fields.bytes(BUNDLE.len() as u64)?.as_ref() != BUNDLE {
        return Err(Error::malformed("offload bundle", "it does not begin as one"));
    }
    let [count] = fields.numbers()?;
    if count > MAX_ENTRIES {
        return Err(Error::TooLarge { part: "the list of an offload bundle", limit: MAX_ENTRIES as usize });
    }
    let mut end = place.start + BUNDLE.len() as u64;
    for _ in 0..count {
        let [offset, size, id_length] = fields.numbers()?;
        let id = fields.bytes(id_length)?;
        let id = Some(id.as_ref()).filter(|_| id_length <= MAX_ID).and_then(|id| str::from_utf8(id).ok());
        let id = id.ok_or_else(|| Error::malformed("offload bundle", "a target is not text"))?;
        let begin = place.start.checked_add(offset);
        let part = begin.and_then(|begin| Some(begin..begin.checked_add(size)?));
        let Some(part) = part.filter(|part| part.end <= place.end) else {
            return Err(Error::malformed("offload bundle", format!("the part for {id} lies beyond its end")));
        };
        end = end.max(part.end);
        if let Some(target) = amd_target(id).filter(|_| !part.is_empty())
            && visit(target.to_string(), part)?.is_break()
        {
            return Ok((end, ControlFlow::Break(())));
        }
    }
    Ok((end, ControlFlow::Continue(())))
}

/// `gfx90a:xnack-` of `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`; `None` for parts of the host.
fn amd_target(id: &str) -> Option<&str> {
    let (kind, triple) = id.split_once('-')?;
    let target = triple.strip_prefix("amdgcn-amd-amdhsa-")?;
    // Older compilers leave out the triple's empty environment, and with it one dash.
    ["hip", "hipv4"].contains(&kind).then(|| target.strip_prefix('-').unwrap_or(target))
}
