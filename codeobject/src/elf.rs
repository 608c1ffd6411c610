//! The ELF file around a code object: headers, notes, sections and symbols, each checked against the bytes.
//!
//! Only the tables that are needed are read, one at a time, because the whole-file parse of the ELF crate would
//! refuse an object for damage in parts that nobody asks for. Names are borrowed. Structures that may overlap
//! (notes, symbol names) are read against a budget of the file's own size, so that a small hostile file cannot
//! cost more than a large honest one.

use std::ops::Range;

use object::LittleEndian;
use object::elf::{
    ELFCLASS64, ELFDATA2LSB, ELFMAG, FileHeader64, Machine, NoteHeader64, PT_LOAD, PT_NOTE, ProgramHeader64,
    Rela64, SHN_UNDEF, SHN_XINDEX, SHT_DYNSYM, SHT_NOBITS, SHT_NOTE, SHT_SYMTAB, SectionHeader64,
    SectionType, Sym64, SymbolType,
};
use object::pod::{self, Pod};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};

use crate::Error;
use crate::container::ReadAt;

/// How the numbers of a file are stored.
pub(crate) const LE: LittleEndian = LittleEndian;
pub(crate) type Header = FileHeader64<LittleEndian>;
pub(crate) type Segment = ProgramHeader64<LittleEndian>;
pub(crate) type Section = SectionHeader64<LittleEndian>;
pub(crate) type Symbol = Sym64<LittleEndian>;
pub(crate) type Relocation = Rela64<LittleEndian>;

/// Real code objects have about ten.
const MAX_PROGRAM_HEADERS: u16 = 256;
/// A symbol name longer than this is damage; mangled names of template kernels reach some ten thousand bytes.
const MAX_NAME: usize = 64 * 1024;
/// Bytes of the ELF header.
pub(crate) const HEADER: u64 = size_of::<Header>() as u64;
/// Bytes of the section table or of the sections' names: a million sections.
const MAX_TABLE: u64 = 64 << 20;
const BEYOND: &str = "they reach beyond the end of the file";

/// A 64-bit little-endian ELF file whose header tables lie inside the bytes.
pub(crate) struct ElfImage<'a> {
    bytes: &'a [u8],
    pub(crate) header: &'a Header,
    pub(crate) segments: &'a [Segment],
    pub(crate) sections: &'a [Section],
}

/// A defined symbol.
pub(crate) struct ElfSymbol<'a> {
    pub(crate) name: &'a str,
    /// Virtual address.
    pub(crate) address: u64,
    /// Bytes.
    pub(crate) size: u64,
    /// Kind: `STT_*`.
    pub(crate) kind: SymbolType,
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
    bytes.starts_with(&ELFMAG)
}

/// The header of a 64-bit little-endian ELF file.
fn header(bytes: &[u8]) -> Result<&Header, Error> {
    if !is_elf(bytes) {
        return Err(Error::UnknownFormat);
    }
    if bytes.get(ELFMAG.len()..ELFMAG.len() + 2) != Some(&[ELFCLASS64.0, ELFDATA2LSB.0]) {
        return Err(Error::malformed("ELF header", "not 64-bit little-endian"));
    }
    entries(bytes)
        .first()
        .ok_or_else(|| Error::malformed("ELF header", "it reaches beyond the end of the file"))
}

/// The machine that an ELF file is for, of which `bytes` are the first ones.
pub(crate) fn machine(bytes: &[u8]) -> Result<Machine, Error> {
    header(bytes).map(|header| header.e_machine(LE))
}

/// How many sections a file has. Where they are more than the header can count, the first one has the number.
fn section_count(header: &Header, first: &Section) -> u64 {
    match header.e_shnum(LE) {
        0 => first.sh_size(LE),
        count => count.into(),
    }
}

/// The section table; empty where an object is stripped of it.
fn sections<'a>(bytes: &'a [u8], header: &Header) -> Option<&'a [Section]> {
    match header.e_shoff(LE) {
        0 => Some(&[]),
        start => table(bytes, start, section_count(header, table(bytes, start, 1)?.first()?)),
    }
}

/// The entries of a table that `bytes` are. Bytes behind the last whole one are left out.
pub(crate) fn entries<T: Pod>(bytes: &[u8]) -> &[T] {
    const { assert!(align_of::<T>() == 1, "bytes of a file may lie anywhere in memory") };
    pod::slice_from_bytes(bytes, bytes.len() / size_of::<T>()).map_or(&[], |(entries, _)| entries)
}

/// `count` entries of a table that begins at `start`, where they lie inside `bytes`.
fn table<T: Pod>(bytes: &[u8], start: u64, count: u64) -> Option<&[T]> {
    if count == 0 {
        return Some(&[]);
    }
    let length = count.checked_mul(size_of::<T>() as u64)?;
    Some(entries(slice(bytes, start, length)?))
}

fn slice(bytes: &[u8], start: u64, length: u64) -> Option<&[u8]> {
    let start = usize::try_from(start).ok()?;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    bytes.get(start..end)
}

/// Where all sections of that name lie in a file of any size, of which the tables alone are read.
pub(crate) fn places_of(file: &(impl ReadAt + ?Sized), name: &str) -> Result<Vec<Range<u64>>, Error> {
    let damaged = |why: &str| Error::malformed("ELF section headers", why);
    let size = file.size();
    let read = |start: u64, length: u64| {
        let inside = start.checked_add(length).is_some_and(|end| end <= size);
        let length = Some(length).filter(|length| inside && *length <= MAX_TABLE);
        let length = length.ok_or_else(|| damaged(BEYOND))?;
        file.read(start, length as usize).map_err(Error::unreadable)
    };
    let begin = read(0, HEADER)?;
    let header = header(&begin)?;
    let start = header.e_shoff(LE);
    if start == 0 {
        return Ok(Vec::new());
    }
    if start < HEADER {
        return Err(damaged("they overlap the header"));
    }
    let read_table = |count: u64| read(start, count.saturating_mul(size_of::<Section>() as u64));
    let first = read_table(1)?;
    let Some(first) = entries::<Section>(&first).first() else { return Ok(Vec::new()) };
    let names = match header.e_shstrndx(LE) {
        SHN_XINDEX => first.sh_link(LE) as usize,
        names => names.0.into(),
    };
    let sections = read_table(section_count(header, first))?;
    let sections: &[Section] = entries(&sections);
    let Some(names) = sections.get(names) else { return Ok(Vec::new()) };
    let names = read(names.sh_offset(LE), names.sh_size(LE))?;
    let mut places = Vec::new();
    for section in sections.iter().filter(|section| is_named(section, &names, name)) {
        let start = section.sh_offset(LE);
        let end = start.checked_add(section.sh_size(LE)).filter(|end| *end <= size);
        places.push(start..end.ok_or_else(|| damaged("one reaches beyond the end of the file"))?);
    }
    Ok(places)
}

fn is_named(section: &Section, names: &[u8], name: &str) -> bool {
    let rest = names.get(section.sh_name(LE) as usize..);
    let rest = rest.and_then(|rest| rest.strip_prefix(name.as_bytes()));
    rest.is_some_and(|rest| rest.first() == Some(&0))
}

impl<'a> ElfImage<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<ElfImage<'a>, Error> {
        let header = header(bytes)?;
        let count = header.e_phnum(LE);
        if count > MAX_PROGRAM_HEADERS {
            let limit = MAX_PROGRAM_HEADERS.into();
            return Err(Error::TooLarge { part: "the ELF program header table", limit });
        }
        let segments = table(bytes, header.e_phoff(LE), count.into());
        let segments = segments.ok_or_else(|| Error::malformed("ELF program headers", BEYOND))?;
        let sections = sections(bytes, header);
        let sections = sections.ok_or_else(|| Error::malformed("ELF section headers", BEYOND))?;
        Ok(ElfImage { bytes, header, segments, sections })
    }

    pub(crate) fn slice(&self, start: u64, length: u64) -> Option<&'a [u8]> {
        slice(self.bytes, start, length)
    }

    pub(crate) fn contents(&self, section: &Section) -> Option<&'a [u8]> {
        match section.sh_type(LE) {
            SHT_NOBITS => None,
            _ => self.slice(section.sh_offset(LE), section.sh_size(LE)),
        }
    }

    /// Contents of the section that has the names of the others.
    pub(crate) fn section_names(&self) -> Option<&'a [u8]> {
        self.contents(self.sections.get(usize::from(self.header.e_shstrndx(LE).0))?)
    }

    /// Contents of the first section of that name; `None` when there is none inside the file.
    pub(crate) fn section(&self, name: &str) -> Option<&'a [u8]> {
        let names = self.section_names()?;
        let section = self.sections.iter().find(|section| is_named(section, names, name))?;
        self.contents(section)
    }

    /// Descriptors of all notes of that owner and kind, in segments, else in sections.
    pub(crate) fn notes(&self, owner: &[u8], kind: u32) -> Result<Vec<&'a [u8]>, Error> {
        let found = self.notes_in(owner, kind, self.note_segments())?;
        if !found.is_empty() {
            return Ok(found);
        }
        self.notes_in(owner, kind, self.note_sections())
    }

    /// Where segments of notes lie in the file: begin and length.
    pub(crate) fn note_segments(&self) -> impl Iterator<Item = (u64, u64)> {
        let segments = self.segments.iter().filter(|segment| segment.p_type(LE) == PT_NOTE);
        segments.map(|segment| (segment.p_offset(LE), segment.p_filesz(LE)))
    }

    /// The same of sections.
    pub(crate) fn note_sections(&self) -> impl Iterator<Item = (u64, u64)> {
        let sections = self.sections.iter().filter(|section| section.sh_type(LE) == SHT_NOTE);
        sections.map(|section| (section.sh_offset(LE), section.sh_size(LE)))
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

    fn table_of(&self, kind: SectionType) -> Option<&'a Section> {
        self.sections.iter().find(|section| section.sh_type(LE) == kind)
    }

    fn symbols_of(&self, table: &Section) -> Result<Vec<ElfSymbol<'a>>, Error> {
        let damaged = |why: &str| Error::malformed("ELF symbol table", why);
        let contents = self.contents(table);
        let contents = contents.ok_or_else(|| damaged("it reaches beyond the end of the file"))?;
        let names = self.sections.get(table.sh_link(LE) as usize).and_then(|strings| self.contents(strings));
        let names = names.ok_or_else(|| damaged("its strings are missing"))?;
        if contents.is_empty() {
            return Err(damaged("it is empty"));
        }
        let mut budget = self.bytes.len();
        let mut symbols = Vec::new();
        let is_defined = |entry: &Symbol| entry.st_shndx(LE) != SHN_UNDEF && entry.st_name(LE) != 0;
        for (number, entry) in (0..).zip(entries(contents)).filter(|(_, entry)| is_defined(entry)) {
            let name = text_at(names, entry.st_name(LE)).ok_or_else(|| damaged("a name is not a string"))?;
            budget =
                budget.checked_sub(name.len()).ok_or_else(|| damaged("its names overlap one another"))?;
            symbols.push(ElfSymbol {
                name,
                address: entry.st_value(LE),
                size: entry.st_size(LE),
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
        self.loads().find_map(|load| {
            let into = address.checked_sub(load.p_vaddr(LE))?;
            let length = load.p_filesz(LE).checked_sub(into).filter(|length| *length > 0)?;
            self.slice(load.p_offset(LE).checked_add(into)?, length)
        })
    }

    /// The segments that are loaded.
    pub(crate) fn loads(&self) -> impl Iterator<Item = &'a Segment> + use<'a> {
        self.segments.iter().filter(|segment| segment.p_type(LE) == PT_LOAD)
    }
}

pub(crate) fn text_at(strings: &[u8], start: u32) -> Option<&str> {
    let rest = strings.get(start as usize..)?;
    let rest = &rest[..rest.len().min(MAX_NAME)];
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}

/// First note of a segment, and what follows it. Owner and descriptor are padded to 4 bytes.
fn split_note(bytes: &[u8]) -> Result<Option<(NoteEntry<'_>, &[u8])>, Error> {
    let Ok((head, rest)) = pod::from_bytes::<NoteHeader64<LittleEndian>>(bytes) else { return Ok(None) };
    let cut = || Error::malformed("ELF note", "its length goes beyond its segment");
    let (owner, rest) = split_padded(rest, head.n_namesz.get(LE)).ok_or_else(cut)?;
    let (descriptor, rest) = split_padded(rest, head.n_descsz.get(LE)).ok_or_else(cut)?;
    let owner = owner.strip_suffix(b"\0").unwrap_or(owner);
    Ok(Some((NoteEntry { owner, kind: head.n_type.get(LE).0, descriptor }, rest)))
}

fn split_padded(bytes: &[u8], length: u32) -> Option<(&[u8], &[u8])> {
    let length = usize::try_from(length).ok()?;
    let part = bytes.get(..length)?;
    // The padding of the last note may be missing.
    let padded = length.checked_next_multiple_of(4)?.min(bytes.len());
    Some((part, &bytes[padded..]))
}
