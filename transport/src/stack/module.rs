//! A loaded object's description in this process's memory: its code, its build id, its unwind tables.
//!
//! Nothing is read from files here: the memory is what runs.

use std::ffi::CString;
use std::ops::Range;
use std::path::PathBuf;
use std::slice;

use framehop::ExplicitModuleSectionInfo;
use gimli::{BaseAddresses, EhFrameHdr, LittleEndian, Pointer};
use object::elf::{FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::NoteIterator;

use super::loader::LoadedObject;

/// An object as symbols are looked up in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Module {
    /// Its file when it was first met; a name without a slash has no file.
    pub(crate) path: PathBuf,
    /// What its file must be for its symbols to be these; None: nothing is known of it.
    pub(crate) identity: Option<FileIdentity>,
}

/// By what a file is known to be the one that was loaded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileIdentity {
    /// The linker's build id.
    BuildId(Vec<u8>),
    /// The program headers, where there is no build id.
    Headers(Vec<u8>),
}

/// The parts of a loaded object that a walk over the stack needs.
pub(super) struct ObjectParts {
    /// Addresses of its code in this process.
    pub(super) text: Vec<Range<u64>>,
    /// By what it is distinguished from others.
    pub(super) sign: Sign,
    /// For [`Module`].
    pub(super) identity: Option<FileIdentity>,
    /// Its unwind tables. To be read only while it stays loaded.
    pub(super) unwind: ExplicitModuleSectionInfo<&'static [u8]>,
}

impl ObjectParts {
    /// Reads the object's headers.
    ///
    /// # Safety
    /// The object is loaded, and stays so during the call. What `unwind` refers to may be read only while it is.
    pub(super) unsafe fn of(object: &LoadedObject) -> ObjectParts {
        // SAFETY: the caller's promise.
        let headers = unsafe { object.headers() };
        let text = headers
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0)
            .map(|header| (object.bias.wrapping_add(header.p_vaddr as usize) as u64, header.p_filesz))
            .map(|(start, size)| start..start.saturating_add(size))
            .filter(|text| object.start as u64 <= text.start && text.end <= object.end as u64)
            .collect();
        // SAFETY: the caller's promise.
        let unwind = unsafe { unwind_tables(object, headers) };
        let unwind = unwind.unwrap_or_else(|| ExplicitModuleSectionInfo {
            base_svma: object.start.wrapping_sub(object.bias) as u64,
            ..Default::default()
        });
        // SAFETY: the caller's promise.
        let build_id = unsafe { build_id(object, headers) };
        // SAFETY: the caller's promise.
        let name = unsafe { object.name() }.to_owned();
        let sign = Sign { name, build_id: build_id.map(|id| (id.as_ptr() as usize, id.to_vec())) };
        let identity = match build_id {
            Some(id) => Some(FileIdentity::BuildId(id.to_vec())),
            None if headers.is_empty() => None,
            // SAFETY: plain bytes.
            None => Some(FileIdentity::Headers(unsafe {
                slice::from_raw_parts(headers.as_ptr().cast::<u8>(), size_of_val(headers)).to_vec()
            })),
        };
        ObjectParts { text, sign, identity, unwind }
    }
}

/// What tells an object from another one that was loaded to the same place later, of the same size: the loader's own memory of it
/// then lies in the same place, too.
pub(super) struct Sign {
    name: CString,
    /// Where its build id lies, and what it is.
    build_id: Option<(usize, Vec<u8>)>,
}

impl Sign {
    /// Whether `object` still is the one that this was taken of.
    ///
    /// # Safety
    /// The object is loaded, and has the size and place of that one.
    #[inline]
    pub(super) unsafe fn is_of(&self, object: &LoadedObject) -> bool {
        let same_id = self.build_id.as_ref().is_none_or(|(place, id)| {
            // SAFETY: inside the object (the caller's promise), which is as large as the one that had its build id there.
            unsafe { bytes(object, *place, id.len()) }.is_some_and(|found| found == id)
        });
        // SAFETY: the caller's promise.
        same_id && unsafe { object.name() } == self.name.as_c_str()
    }
}

/// `size` bytes at `address`, where they lie inside the object.
///
/// # Safety
/// The bytes are mapped, and read only while they are.
unsafe fn bytes(object: &LoadedObject, address: usize, size: usize) -> Option<&'static [u8]> {
    let inside = object.start <= address && address.checked_add(size)? <= object.end;
    // SAFETY: the caller's promise.
    inside.then(|| unsafe { slice::from_raw_parts(address as *const u8, size) })
}

/// # Safety
/// As [`ObjectParts::of`].
unsafe fn build_id(object: &LoadedObject, headers: &[libc::Elf64_Phdr]) -> Option<&'static [u8]> {
    let endian = object::LittleEndian;
    headers.iter().filter(|header| header.p_type == libc::PT_NOTE).find_map(|header| {
        let address = object.bias.wrapping_add(header.p_vaddr as usize);
        // SAFETY: notes lie in a loaded segment.
        let data = unsafe { bytes(object, address, header.p_filesz as usize) }?;
        let notes = NoteIterator::<FileHeader64<_>>::new(endian, header.p_align, data).ok()?;
        let mut ids = notes.flatten().filter(|note| note.n_type(endian) == NT_GNU_BUILD_ID);
        ids.find(|note| note.name() == b"GNU").map(|note| note.desc())
    })
}

/// # Safety
/// As [`ObjectParts::of`].
unsafe fn unwind_tables(
    object: &LoadedObject,
    headers: &[libc::Elf64_Phdr],
) -> Option<ExplicitModuleSectionInfo<&'static [u8]>> {
    let stated = |address: usize| address.wrapping_sub(object.bias) as u64;
    let header = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME)?;
    // SAFETY: the C++ runtime reads it there.
    let hdr = unsafe { bytes(object, object.eh_frame_hdr, header.p_memsz as usize) }?;
    let hdr_svma = stated(object.eh_frame_hdr);
    let bases = BaseAddresses::default().set_eh_frame_hdr(hdr_svma);
    let parsed = EhFrameHdr::new(hdr, LittleEndian).parse(&bases, 8).ok()?;
    let Pointer::Direct(frames_svma) = parsed.eh_frame_ptr() else { return None };
    // Its length is written nowhere in memory: it ends before its segment does.
    let segment = headers.iter().find(|header| {
        header.p_type == libc::PT_LOAD
            && (header.p_vaddr..header.p_vaddr.saturating_add(header.p_filesz)).contains(&frames_svma)
    })?;
    let size = segment.p_vaddr + segment.p_filesz - frames_svma;
    let address = object.bias.wrapping_add(frames_svma as usize);
    // SAFETY: a part of a loaded segment.
    let frames = unsafe { bytes(object, address, size as usize) }?;
    Some(ExplicitModuleSectionInfo {
        base_svma: stated(object.start),
        eh_frame_svma: Some(frames_svma..frames_svma + size),
        eh_frame: Some(frames),
        eh_frame_hdr_svma: Some(hdr_svma..hdr_svma + hdr.len() as u64),
        eh_frame_hdr: Some(hdr),
        ..Default::default()
    })
}
