//! Functions, files and lines from debug information (DWARF).

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use addr2line::Context;
use gimli::{Dwarf, EndianArcSlice, Error, LittleEndian, SectionId};
use object::read::CompressedData;
use object::{CompressionFormat, Object, ObjectSection};

use super::image::Elf;

/// Debug information of more bytes is not read: it would cost the program more memory and time than its names are worth.
const MOST: u64 = 64 << 20;

/// What is read of debug information.
const SECTIONS: [SectionId; 11] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugTypes,
];

type SectionBytes = EndianArcSlice<LittleEndian>;

pub(super) struct Lines {
    context: Context<SectionBytes>,
    size: usize,
}

/// One function at an address.
pub(super) struct FunctionAt {
    /// As the linker knows it.
    pub(super) function: Option<String>,
    /// `file:line`, `file` where the line is not known.
    pub(super) place: Option<String>,
}

impl Lines {
    /// The debug information of a file that has any, and not too much.
    pub(super) fn read(elf: &Elf<'_>, file: &File) -> Option<Lines> {
        let sections = || SECTIONS.iter().filter_map(|id| elf.section_by_name(id.name()));
        let size: u64 = sections().map(|section| section.size()).sum();
        if size > MOST || elf.section_by_name(SectionId::DebugInfo.name()).is_none() {
            return None;
        }
        let load = |id: SectionId| -> Result<SectionBytes, Error> {
            let wanted = SECTIONS.contains(&id);
            let section = wanted.then(|| elf.section_by_name(id.name())).flatten();
            let bytes = section.and_then(|section| contents(&section.compressed_file_range().ok()?, file));
            Ok(SectionBytes::new(bytes.unwrap_or_else(|| Arc::new([])), LittleEndian))
        };
        let context = Context::from_dwarf(Dwarf::load(load).ok()?).ok()?;
        Some(Lines { context, size: size as usize })
    }

    /// The functions at an address of the file, the innermost first.
    pub(super) fn at(&self, address: u64) -> Vec<FunctionAt> {
        let mut found = vec![];
        let Ok(mut frames) = self.context.find_frames(address).skip_all_loads() else { return found };
        while let Ok(Some(frame)) = frames.next() {
            let place = frame.location.and_then(|location| {
                let file = location.file?;
                Some(location.line.map_or_else(|| file.to_string(), |line| format!("{file}:{line}")))
            });
            let function = frame.function.and_then(|name| name.raw_name().map(Cow::into_owned).ok());
            found.push(FunctionAt { function, place });
        }
        found
    }

    /// Bytes of memory it takes, about.
    pub(super) fn size(&self) -> usize {
        self.size
    }
}

/// The bytes of a section, which the file may hold compressed.
fn contents(range: &object::CompressedFileRange, file: &File) -> Option<Arc<[u8]>> {
    let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, usize::try_from(range.compressed_size).ok()?).collect();
    file.read_exact_at(Arc::get_mut(&mut bytes)?, range.offset).ok()?;
    if range.format == CompressionFormat::None {
        return Some(bytes);
    }
    let data =
        CompressedData { format: range.format, data: &bytes, uncompressed_size: range.uncompressed_size };
    data.decompress().ok().map(|bytes| bytes.into_owned().into())
}
