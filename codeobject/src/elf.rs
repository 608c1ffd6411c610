//! The ELF file around a code object: headers, notes, sections and symbols, each checked against the bytes.
//!
//! Only the tables that are needed are read, one at a time, because the whole-file parse of the ELF crate would
//! refuse an object for damage in parts that nobody asks for. Names are borrowed. Structures that may overlap
//! (notes, symbol names) are read against a budget of the file's own size, so that a small hostile file cannot
//! cost more than a large honest one.

use std::ops::Range;

use goblin::container::{Container, Ctx, Endian};
use goblin::elf::header::{EI_CLASS, EI_DATA, ELFCLASS64, ELFDATA2LSB, ELFMAG, SELFMAG};
use goblin::elf::program_header::{PT_LOAD, PT_NOTE};
use goblin::elf::section_header::{SHN_UNDEF, SHN_XINDEX, SHT_DYNSYM, SHT_NOBITS, SHT_NOTE, SHT_SYMTAB};
use goblin::elf::{Header, ProgramHeader, SectionHeader, Sym, Symtab};

use crate::Error;
use crate::container::ReadAt;

/// Machine number of CUDA.
pub(crate) const EM_CUDA: u16 = 190;
/// Real code objects have about ten.
const MAX_PROGRAM_HEADERS: usize = 256;
/// A symbol name longer than this is damage; mangled names of template kernels reach some ten thousand bytes.
const MAX_NAME: usize = 64 * 1024;
/// Bytes of the ELF header, and of an entry of the section table.
pub(crate) const HEADER: usize = 64;
const SECTION_HEADER: u64 = 64;
/// Bytes of the section table or of the sections' names: a million sections.
const MAX_TABLE: u64 = 64 << 20;
const CTX: Ctx = Ctx { container: Container::Big, le: Endian::Little };

/// A 64-bit little-endian ELF file whose header tables lie inside the bytes.
pub(crate) struct ElfImage<'a> {
    bytes: &'a [u8],
    pub(crate) header: Header,
    pub(crate) programs: Vec<ProgramHeader>,
    pub(crate) sections: Vec<SectionHeader>,
}

/// A defined symbol.
pub(crate) struct ElfSymbol<'a> {
    pub(crate) name: &'a str,
    /// Virtual address.
    pub(crate) address: u64,
    /// Bytes.
    pub(crate) size: u64,
    /// Kind: `STT_*`.
    pub(crate) kind: u8,
    /// Its place in its table, which others refer to it by.
    pub(crate) number: u32,
}

/// One entry of a note segment.
pub(crate) struct NoteEntry<'a> {
    pub(crate) owner: &'a [u8],
    pub(crate) kind: u32,
    pub(crate) descriptor: &'a [u8],
}

/// Whether the bytes begin as an ELF file does.
pub(crate) fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(&ELFMAG[..SELFMAG])
}

/// The header of a 64-bit little-endian ELF file.
fn header(bytes: &[u8]) -> Result<Header, Error> {
    if !is_elf(bytes) {
        return Err(Error::UnknownFormat);
    }
    if bytes.get(EI_CLASS) != Some(&ELFCLASS64) || bytes.get(EI_DATA) != Some(&ELFDATA2LSB) {
        return Err(Error::malformed("ELF header", "not 64-bit little-endian"));
    }
    goblin::elf::Elf::parse_header(bytes).map_err(|error| Error::malformed("ELF header", error.to_string()))
}

/// The machine that an ELF file is for, of which `bytes` are the first ones.
pub(crate) fn machine(bytes: &[u8]) -> Result<u16, Error> {
    header(bytes).map(|header| header.e_machine)
}

/// Where all sections of that name lie in a file of any size, of which the tables alone are read.
pub(crate) fn places_of(file: &(impl ReadAt + ?Sized), name: &str) -> Result<Vec<Range<u64>>, Error> {
    let damaged = |why: &str| Error::malformed("ELF section headers", why);
    let size = file.size();
    let read = |start: u64, length: u64| {
        let inside = start.checked_add(length).is_some_and(|end| end <= size);
        let length = Some(length).filter(|length| inside && *length <= MAX_TABLE);
        let length = length.ok_or_else(|| damaged("they reach beyond the end of the file"))?;
        file.read(start, length as usize).map_err(Error::unreadable)
    };
    let header = header(&read(0, HEADER as u64)?)?;
    // The ELF crate takes a table at 0 for none, so it gets what is in front as well.
    let sections = |count: u64| {
        let start =
            header.e_shoff.checked_sub(SECTION_HEADER).ok_or_else(|| damaged("they overlap the header"))?;
        let table = read(start, count.saturating_mul(SECTION_HEADER).saturating_add(SECTION_HEADER))?;
        SectionHeader::parse(&table, SECTION_HEADER as usize, count as usize, CTX)
            .map_err(|error| damaged(&error.to_string()))
    };
    if header.e_shoff == 0 {
        return Ok(Vec::new());
    }
    // A file with more sections than the header can count has the numbers in its first section.
    let first = sections(1)?;
    let count = if header.e_shnum == 0 { first[0].sh_size } else { header.e_shnum.into() };
    let names = if u32::from(header.e_shstrndx) == SHN_XINDEX {
        first[0].sh_link as usize
    } else {
        header.e_shstrndx.into()
    };
    let sections = sections(count)?;
    let Some(names) = sections.get(names) else { return Ok(Vec::new()) };
    let names = read(names.sh_offset, names.sh_size)?;
    let mut places = Vec::new();
    for section in sections.iter().filter(|section| is_named(section, &names, name)) {
        let end = section.sh_offset.checked_add(section.sh_size).filter(|end| *end <= size);
        places.push(section.sh_offset..end.ok_or_else(|| damaged("one reaches beyond the end of the file"))?);
    }
    Ok(places)
}

fn is_named(section: &SectionHeader, names: &[u8], name: &str) -> bool {
    let rest = names.get(section.sh_name..).and_then(|rest| rest.strip_prefix(name.as_bytes()));
    rest.is_some_and(|rest| rest.first() == Some(&0))
}

impl<'a> ElfImage<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<ElfImage<'a>, Error> {
        let header = header(bytes)?;
        let count = usize::from(header.e_phnum);
        if count > MAX_PROGRAM_HEADERS {
            return Err(Error::TooLarge { part: "the ELF program header table", limit: MAX_PROGRAM_HEADERS });
        }
        let programs = ProgramHeader::parse(bytes, offset(header.e_phoff)?, count, CTX)
            .map_err(|error| Error::malformed("ELF program headers", error.to_string()))?;
        let sections = match header.e_shoff {
            // A stripped object has no section table; its notes are found through the segments.
            0 => Vec::new(),
            start => SectionHeader::parse(bytes, offset(start)?, usize::from(header.e_shnum), CTX)
                .map_err(|error| Error::malformed("ELF section headers", error.to_string()))?,
        };
        Ok(ElfImage { bytes, header, programs, sections })
    }

    pub(crate) fn slice(&self, start: u64, length: u64) -> Option<&'a [u8]> {
        let start = usize::try_from(start).ok()?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        self.bytes.get(start..end)
    }

    pub(crate) fn contents(&self, section: &SectionHeader) -> Option<&'a [u8]> {
        match section.sh_type {
            SHT_NOBITS => None,
            _ => self.slice(section.sh_offset, section.sh_size),
        }
    }

    /// Contents of the first section of that name; `None` when there is none inside the file.
    pub(crate) fn section(&self, name: &str) -> Option<&'a [u8]> {
        let names = self.contents(self.sections.get(usize::from(self.header.e_shstrndx))?)?;
        let section = self.sections.iter().find(|section| is_named(section, names, name))?;
        self.contents(section)
    }

    /// Descriptors of all notes of that owner and kind, in segments, else in sections.
    pub(crate) fn notes(&self, owner: &[u8], kind: u32) -> Result<Vec<&'a [u8]>, Error> {
        let segments = self.programs.iter().filter(|program| program.p_type == PT_NOTE);
        let found =
            self.notes_in(owner, kind, segments.map(|program| (program.p_offset, program.p_filesz)))?;
        if !found.is_empty() {
            return Ok(found);
        }
        let sections = self.sections.iter().filter(|section| section.sh_type == SHT_NOTE);
        self.notes_in(owner, kind, sections.map(|section| (section.sh_offset, section.sh_size)))
    }

    /// All notes of one place in the file.
    pub(crate) fn notes_at(&self, start: u64, length: u64) -> Result<Vec<NoteEntry<'a>>, Error> {
        let mut rest = self
            .slice(start, length)
            .ok_or_else(|| Error::malformed("ELF note", "it reaches beyond the end of the file"))?;
        let mut notes = Vec::new();
        while let Some((note, after)) = split_note(rest)? {
            notes.push(note);
            rest = after;
        }
        Ok(notes)
    }

    fn notes_in(
        &self,
        owner: &[u8],
        kind: u32,
        places: impl Iterator<Item = (u64, u64)>,
    ) -> Result<Vec<&'a [u8]>, Error> {
        let mut found = Vec::new();
        let mut budget = self.bytes.len();
        for (start, length) in places {
            budget = usize::try_from(length)
                .ok()
                .and_then(|length| budget.checked_sub(length))
                .ok_or_else(|| Error::malformed("ELF notes", "they overlap one another"))?;
            let wanted = self.notes_at(start, length)?.into_iter();
            let wanted = wanted.filter(|note| (note.owner, note.kind) == (owner, kind));
            found.extend(wanted.map(|note| note.descriptor));
        }
        // Two segments may name the same bytes.
        found.sort_by_key(|note: &&[u8]| note.as_ptr());
        found.dedup_by_key(|note| note.as_ptr());
        Ok(found)
    }

    /// Defined symbols, of the dynamic table, which the loader uses, or else of the static one.
    pub(crate) fn symbols(&self) -> Result<Vec<ElfSymbol<'a>>, Error> {
        let table = self.table_of(SHT_DYNSYM).or_else(|| self.table_of(SHT_SYMTAB));
        table.map_or(Ok(Vec::new()), |table| self.symbols_of(table))
    }

    /// Defined symbols of the dynamic table and of the static one, which has functions that no other object may call.
    pub(crate) fn all_symbols(&self) -> Result<Vec<ElfSymbol<'a>>, Error> {
        let mut symbols = Vec::new();
        for table in [SHT_DYNSYM, SHT_SYMTAB].into_iter().filter_map(|kind| self.table_of(kind)) {
            symbols.extend(self.symbols_of(table)?);
        }
        Ok(symbols)
    }

    fn table_of(&self, kind: u32) -> Option<&SectionHeader> {
        self.sections.iter().find(|section| section.sh_type == kind)
    }

    fn symbols_of(&self, table: &SectionHeader) -> Result<Vec<ElfSymbol<'a>>, Error> {
        let damaged = |why: &str| Error::malformed("ELF symbol table", why);
        let entries = self.contents(table).ok_or_else(|| damaged("it reaches beyond the end of the file"))?;
        let names = self.sections.get(table.sh_link as usize).and_then(|strings| self.contents(strings));
        let names = names.ok_or_else(|| damaged("its strings are missing"))?;
        // On disk an entry of a 64-bit table has 24 bytes.
        let entries = Symtab::parse(entries, 0, entries.len() / 24, CTX)
            .map_err(|error| damaged(&error.to_string()))?;
        let mut budget = self.bytes.len();
        let mut symbols = Vec::new();
        let is_defined = |entry: &Sym| entry.st_shndx != SHN_UNDEF as usize && entry.st_name != 0;
        for (number, entry) in (0..).zip(entries.iter()).filter(|(_, entry)| is_defined(entry)) {
            let name = text_at(names, entry.st_name).ok_or_else(|| damaged("a name is not a string"))?;
            budget =
                budget.checked_sub(name.len()).ok_or_else(|| damaged("its names overlap one another"))?;
            symbols.push(ElfSymbol {
                name,
                address: entry.st_value,
                size: entry.st_size,
                kind: entry.st_type(),
                number,
            });
        }
        Ok(symbols)
    }

    /// Bytes that the file puts at a virtual address, `length` of them.
    pub(crate) fn at_address(&self, address: u64, length: u64) -> Option<&'a [u8]> {
        self.loaded_from(address)?.get(..usize::try_from(length).ok()?)
    }

    /// Bytes that the file puts at a virtual address and behind it, to the end of the segment.
    pub(crate) fn loaded_from(&self, address: u64) -> Option<&'a [u8]> {
        let mut loads = self.programs.iter().filter(|program| program.p_type == PT_LOAD);
        loads.find_map(|load| {
            let into = address.checked_sub(load.p_vaddr)?;
            let length = load.p_filesz.checked_sub(into).filter(|length| *length > 0)?;
            self.slice(load.p_offset.checked_add(into)?, length)
        })
    }
}

fn offset(value: u64) -> Result<usize, Error> {
    usize::try_from(value).map_err(|_| Error::malformed("ELF header", "an offset is out of range"))
}

pub(crate) fn text_at(strings: &[u8], start: usize) -> Option<&str> {
    let rest = strings.get(start..)?;
    let rest = &rest[..rest.len().min(MAX_NAME)];
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}

/// First note of a segment, and what follows it. Owner and descriptor are padded to 4 bytes.
fn split_note(bytes: &[u8]) -> Result<Option<(NoteEntry<'_>, &[u8])>, Error> {
    let Some((head, rest)) = bytes.split_first_chunk::<12>() else { return Ok(None) };
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let cut = || Error::malformed("ELF note", "its length goes beyond its segment");
    let (owner, rest) = split_padded(rest, word(0)).ok_or_else(cut)?;
    let (descriptor, rest) = split_padded(rest, word(4)).ok_or_else(cut)?;
    let owner = owner.strip_suffix(b"\0").unwrap_or(owner);
    Ok(Some((NoteEntry { owner, kind: word(8), descriptor }, rest)))
}

fn split_padded(bytes: &[u8], length: u32) -> Option<(&[u8], &[u8])> {
    let length = usize::try_from(length).ok()?;
    let part = bytes.get(..length)?;
    // The padding of the last note may be missing.
    let padded = length.checked_next_multiple_of(4)?.min(bytes.len());
    Some((part, &bytes[padded..]))
}
