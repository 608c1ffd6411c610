//! The functions of a symbol table by address.

use std::fs::File;
use std::os::unix::fs::FileExt;

use object::read::elf::{SectionHeader, Sym};
use object::{LittleEndian, elf};

use super::image::Elf;
use super::source::FileReader;

/// A larger table is not read: two and a half million symbols.
const MOST: u64 = 64 << 20;
/// Bytes of a name.
const LONGEST: usize = 16 << 10;

struct SymbolRange {
    start: u64,
    size: u64,
    /// Place of its name among the names.
    name: u32,
}

/// See the module. Names stay in the file until they are asked for.
pub(super) struct SymbolTable {
    /// By address.
    functions: Vec<SymbolRange>,
    source: FileReader,
    /// Where the names begin in it.
    names: u64,
}

impl SymbolTable {
    /// The full table if the file has it, otherwise that of exported symbols; none where neither has a function.
    pub(super) fn read(elf: &Elf<'_>, file: &File, source: FileReader) -> Option<SymbolTable> {
        let kinds = [elf::SHT_SYMTAB, elf::SHT_DYNSYM].into_iter();
        let (functions, names) = kinds
            .filter_map(|kind| functions(elf, file, kind))
            .find(|(functions, _)| !functions.is_empty())?;
        Some(SymbolTable { functions, source, names })
    }

    /// The symbol of the function that `address` lies in.
    pub(super) fn at(&self, address: u64) -> Option<String> {
        let behind = self.functions.partition_point(|function| function.start <= address);
        let function = self.functions.get(behind.checked_sub(1)?)?;
        if address - function.start >= function.size {
            return None;
        }
        let mut name = vec![0; LONGEST];
        let read = self.source.again()?.read_at(&mut name, self.names + u64::from(function.name)).ok()?;
        let end = name[..read].iter().position(|byte| *byte == 0)?;
        (end > 0).then(|| String::from_utf8_lossy(&name[..end]).into_owned())
    }

    /// Bytes of memory it takes.
    pub(super) fn size(&self) -> usize {
        self.functions.capacity() * size_of::<SymbolRange>()
    }
}

/// The functions of one table, and where their names begin.
fn functions(elf: &Elf<'_>, file: &File, kind: elf::SectionType) -> Option<(Vec<SymbolRange>, u64)> {
    let endian = LittleEndian;
    let sections = elf.elf_section_table();
    let section = sections.iter().find(|section| section.sh_type(endian) == kind)?;
    let (offset, size) = section.file_range(endian).filter(|(_, size)| *size <= MOST)?;
    let names = sections.section(section.link(endian)).ok()?.file_range(endian)?.0;
    let mut bytes = vec![0; size as usize];
    file.read_exact_at(&mut bytes, offset).ok()?;
    let symbols = object::pod::slice_from_all_bytes::<elf::Sym64<LittleEndian>>(&bytes).ok()?;
    let mut functions: Vec<_> = symbols
        .iter()
        .filter(|symbol| matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC))
        .filter(|symbol| symbol.st_shndx(endian) != elf::SHN_UNDEF)
        .map(|symbol| SymbolRange {
            start: symbol.st_value(endian),
            size: symbol.st_size(endian),
            name: symbol.st_name(endian),
        })
        .collect();
    // Of several names of one function the first one stays; of functions that begin at one place the longest is found.
    functions.sort_by_key(|function| (function.start, function.size));
    functions.dedup_by_key(|function| (function.start, function.size));
    functions.shrink_to_fit();
    Some((functions, names))
}
