//! The check whether the HSA runtime can load a code object that nobody vouches for.
//!
//! ROCr's loader (5.2 and later: loader/executable.cpp, libamdhsacode) trusts the tables of a code object: an address outside of its
//! segment ends the process by an assertion, a symbol of a section that is not there by a null pointer. So everything that it follows
//! is checked here, and what compilers never write is refused. It cannot say whether the instructions are sound.

use goblin::elf::header::ET_DYN;
use goblin::elf::program_header::{PF_W, PF_X, PT_DYNAMIC, PT_LOAD, PT_NOTE};
use goblin::elf::section_header::{
    SHF_ALLOC, SHN_ABS, SHN_UNDEF, SHT_DYNAMIC, SHT_DYNSYM, SHT_GNU_HASH, SHT_HASH, SHT_NOBITS, SHT_NOTE,
    SHT_NULL, SHT_PROGBITS, SHT_RELA, SHT_STRTAB, SHT_SYMTAB,
};
use goblin::elf::sym::{STT_FUNC, STT_NOTYPE, STT_OBJECT};
use goblin::elf::{ProgramHeader, SectionHeader};

use crate::code_object::{METADATA_NOTE, is_descriptor};
use crate::descriptor::{self, Descriptor};
use crate::elf::{ElfImage, NoteEntry};
use crate::{CodeObject, Error};

/// Bytes that a code object may take on a device, and at which it may begin.
const MOST_MEMORY: u64 = 1 << 30;
/// Largest alignment of a segment or section that linkers ask for.
const MOST_ALIGNMENT: u64 = 1 << 16;
/// Bytes of an entry of a table of relocations with addends, and of symbols.
const RELOCATION: u64 = 24;
const SYMBOL: u64 = 24;
/// Bytes of an entry of the dynamic table, and the one at its end.
const DYNAMIC: u64 = 16;
/// Relocations that the runtime knows: R_AMDGPU_ABS32_LO to R_AMDGPU_ABS64, R_AMDGPU_ABS32, R_AMDGPU_RELATIVE64.
const RELOCATIONS: [u32; 5] = [1, 2, 3, 6, 13];
/// Owner and kind of the note with the build's id (NT_GNU_BUILD_ID).
const BUILD_ID: (&[u8], u32) = (b"GNU", 3);
/// Which sections are of what kind.
const KINDS: [(&str, u32); 10] = [
    (".note", SHT_NOTE),
    (".symtab", SHT_SYMTAB),
    (".strtab", SHT_STRTAB),
    (".shstrtab", SHT_STRTAB),
    (".dynsym", SHT_DYNSYM),
    (".dynstr", SHT_STRTAB),
    (".dynamic", SHT_DYNAMIC),
    (".hash", SHT_HASH),
    (".text", SHT_PROGBITS),
    (".rodata", SHT_PROGBITS),
];
/// The first of section numbers that mean something else than a section.
const SHN_LORESERVE: u32 = 0xff00;

fn damaged(part: &'static str, why: impl Into<String>) -> Error {
    Error::malformed(part, why)
}

/// Checks a code object, and reads it.
///
/// # Errors
/// What the runtime might stumble over, or what [`CodeObject::parse`] cannot read.
pub fn loadable(bytes: &[u8]) -> Result<CodeObject, Error> {
    let code = CodeObject::parse(bytes)?;
    let image = ElfImage::open(bytes)?;
    header(&image)?;
    let segments = segments(&image)?;
    sections(&image, &segments)?;
    notes(&image)?;
    for kind in [SHT_DYNSYM, SHT_SYMTAB] {
        for table in image.sections.iter().filter(|section| section.sh_type == kind) {
            symbols(&image, table, &segments)?;
        }
    }
    for table in image.sections.iter().filter(|section| section.sh_type == SHT_RELA) {
        relocations(&image, table, &segments)?;
    }
    let described = described(&image, &segments)?;
    // The runtime names kernels by their descriptors' symbols.
    match code.kernels.iter().find(|kernel| !described.contains(&kernel.symbol.as_str())) {
        Some(kernel) => {
            Err(damaged("AMDGPU metadata", format!("{} has no kernel descriptor", kernel.symbol)))
        }
        None => Ok(code),
    }
}

/// Variables of a code object that a program could set: each code object has its own, so a kernel that runs in the place of another
/// one would not see what the program has put into the other's.
///
/// # Errors
/// The tables of the code object are damaged.
pub fn variables(bytes: &[u8]) -> Result<Vec<String>, Error> {
    let image = ElfImage::open(bytes)?;
    let is_writable = |address: u64| {
        let at = |load: &&ProgramHeader| load.p_vaddr <= address && address - load.p_vaddr < load.p_memsz;
        let mut loads = image.programs.iter().filter(|program| program.p_type == PT_LOAD);
        loads.find(at).is_some_and(|load| load.p_flags & PF_W != 0)
    };
    let symbols = image.symbols()?;
    let variables = symbols.iter().filter(|symbol| symbol.kind == STT_OBJECT && is_writable(symbol.address));
    // Newer compilers mark each translation unit with a variable of that name.
    let own = variables.filter(|symbol| !symbol.name.starts_with("__hip_cuid_"));
    Ok(own.map(|symbol| symbol.name.to_string()).collect())
}

fn header(image: &ElfImage<'_>) -> Result<(), Error> {
    let header = &image.header;
    let sizes = (header.e_ehsize, header.e_phentsize, header.e_shentsize);
    let is_usual = header.e_type == ET_DYN && header.e_version == 1 && header.e_ident[6] == 1;
    match is_usual && sizes == (64, 56, 64) && !image.sections.is_empty() {
        true => Ok(()),
        false => Err(damaged("ELF header", "not that of a shared object with sections")),
    }
}

/// The segments that are loaded, by their addresses.
fn segments<'a>(image: &'a ElfImage<'_>) -> Result<Vec<&'a ProgramHeader>, Error> {
    let wrong = |why: &str| damaged("ELF program headers", why);
    let mut segments = Vec::new();
    let mut end = 0;
    for program in &image.programs {
        if program.p_filesz > 0 && image.slice(program.p_offset, program.p_filesz).is_none() {
            return Err(wrong("a segment reaches beyond the end of the file"));
        }
        if !matches!(program.p_align, 0 | 1) && !is_alignment(program.p_align) {
            return Err(wrong("a segment has an alignment that is none"));
        }
        if program.p_type != PT_LOAD {
            continue;
        }
        let after = program.p_vaddr.checked_add(program.p_memsz).filter(|after| *after <= MOST_MEMORY);
        let after = after.ok_or_else(|| wrong("a segment is too large"))?;
        if program.p_filesz > program.p_memsz || program.p_vaddr < end {
            return Err(wrong("segments overlap one another, or have less memory than bytes"));
        }
        if program.p_align > 1 && program.p_vaddr % program.p_align != program.p_offset % program.p_align {
            return Err(wrong("a segment does not lie as its alignment says"));
        }
        end = after;
        segments.push(program);
    }
    match segments.first() {
        // The runtime takes the first address for the code object's begin.
        Some(first) if first.p_vaddr == 0 => Ok(segments),
        _ => Err(wrong("no segment begins at address 0")),
    }
}

fn is_alignment(alignment: u64) -> bool {
    alignment.is_power_of_two() && alignment <= MOST_ALIGNMENT
}

/// The segment that has `length` bytes at `address`.
fn segment_of<'a>(segments: &[&'a ProgramHeader], address: u64, length: u64) -> Option<&'a ProgramHeader> {
    let end = address.checked_add(length)?;
    segments.iter().copied().find(|load| load.p_vaddr <= address && end <= load.p_vaddr + load.p_memsz)
}

fn sections(image: &ElfImage<'_>, segments: &[&ProgramHeader]) -> Result<(), Error> {
    let wrong = |number: usize, why: &str| damaged("ELF section headers", format!("section {number}: {why}"));
    let names = image.sections.get(usize::from(image.header.e_shstrndx));
    let names = names.filter(|names| names.sh_type == SHT_STRTAB).and_then(|names| image.contents(names));
    let names = names.ok_or_else(|| damaged("ELF section headers", "their names are missing"))?;
    for (number, section) in image.sections.iter().enumerate() {
        let wrong = |why: &str| Err(wrong(number, why));
        if (section.sh_type == SHT_NULL) != (number == 0) {
            return wrong("only the first one is empty");
        }
        if section.sh_type == SHT_NULL {
            continue;
        }
        let entry = match section.sh_type {
            SHT_PROGBITS | SHT_NOBITS | SHT_NOTE | SHT_STRTAB | SHT_HASH | SHT_GNU_HASH => 0,
            SHT_SYMTAB | SHT_DYNSYM => SYMBOL,
            SHT_RELA => RELOCATION,
            SHT_DYNAMIC => DYNAMIC,
            // LLVM's own, which are not loaded (SHT_LOUSER and the like).
            _ if section.sh_flags & u64::from(SHF_ALLOC) == 0 => 0,
            _ => return wrong("it is of a kind that code objects do not have"),
        };
        let Some(name) = crate::elf::text_at(names, section.sh_name) else {
            return wrong("it has no name");
        };
        // The runtime looks for some by their names.
        if KINDS.iter().any(|(known, kind)| *known == name && *kind != section.sh_type) {
            return wrong("it is of another kind than its name says");
        }
        if section.sh_type != SHT_NOBITS && image.contents(section).is_none() {
            return wrong("it reaches beyond the end of the file");
        }
        if entry != 0 && (section.sh_entsize != entry || !section.sh_size.is_multiple_of(entry)) {
            return wrong("its entries have another size");
        }
        if !matches!(section.sh_addralign, 0 | 1) && !is_alignment(section.sh_addralign) {
            return wrong("it has an alignment that is none");
        }
        if section.sh_link as usize >= image.sections.len() {
            return wrong("it belongs to a section that is not there");
        }
        let strings = || &image.sections[section.sh_link as usize];
        match section.sh_type {
            SHT_SYMTAB | SHT_DYNSYM | SHT_DYNAMIC if strings().sh_type != SHT_STRTAB => {
                return wrong("its strings are missing");
            }
            SHT_HASH | SHT_GNU_HASH | SHT_RELA if !matches!(strings().sh_type, SHT_DYNSYM | SHT_SYMTAB) => {
                return wrong("its symbols are missing");
            }
            SHT_STRTAB
                if image.contents(section).is_some_and(|text| text.last().is_some_and(|last| *last != 0)) =>
            {
                return wrong("its last text has no end");
            }
            _ => {}
        }
        if section.sh_flags & u64::from(SHF_ALLOC) == 0 {
            continue;
        }
        let Some(load) = segment_of(segments, section.sh_addr, section.sh_size) else {
            return wrong("it is in no segment");
        };
        let into = section.sh_addr - load.p_vaddr;
        if section.sh_type != SHT_NOBITS
            && (section.sh_offset != load.p_offset.wrapping_add(into)
                || into + section.sh_size > load.p_filesz)
        {
            return wrong("it is elsewhere in its segment");
        }
    }
    Ok(())
}

/// Notes of other owners or kinds are those of older code objects, which the runtime would follow; but for the build's id, which newer
/// linkers leave and the runtime passes over.
fn notes(image: &ElfImage<'_>) -> Result<(), Error> {
    let (owner, kind) = METADATA_NOTE;
    let segments = image.programs.iter().filter(|program| program.p_type == PT_NOTE);
    let sections = image.sections.iter().filter(|section| section.sh_type == SHT_NOTE);
    let places = segments.map(|program| (program.p_offset, program.p_filesz));
    let places = places.chain(sections.map(|section| (section.sh_offset, section.sh_size)));
    for (start, length) in places {
        let all = image.notes_at(start, length)?;
        let is_known = |note: &NoteEntry<'_>| [(owner, kind), BUILD_ID].contains(&(note.owner, note.kind));
        if all.is_empty() || !all.iter().all(is_known) {
            return Err(damaged("ELF notes", "there are others than the AMDGPU metadata"));
        }
    }
    Ok(())
}

fn symbols(image: &ElfImage<'_>, table: &SectionHeader, segments: &[&ProgramHeader]) -> Result<(), Error> {
    let wrong = |why: String| damaged("ELF symbol table", why);
    let names = image.contents(&image.sections[table.sh_link as usize]).unwrap_or_default();
    let entries = image.contents(table).unwrap_or_default();
    // The first entry is empty, by the format.
    for entry in entries.chunks_exact(SYMBOL as usize).skip(1) {
        let word = |at: usize| u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let (kind, section) = (entry[4] & 0xf, u32::from(entry[6]) | u32::from(entry[7]) << 8);
        let (value, size) = (long(8), long(16));
        let name = crate::elf::text_at(names, word(0) as usize);
        let name = name.ok_or_else(|| wrong("a name is not a string".into()))?;
        // rocRAND has names of LDS that is defined nowhere; nothing refers to them.
        if section == SHN_ABS || (section == SHN_UNDEF && (value, size, kind) == (0, 0, STT_NOTYPE)) {
            continue;
        }
        if section == SHN_UNDEF || section >= SHN_LORESERVE {
            return Err(wrong(format!("{name} is defined elsewhere")));
        }
        let Some(of) = image.sections.get(section as usize) else {
            return Err(wrong(format!("{name} is of a section that is not there")));
        };
        if !matches!(kind, STT_NOTYPE | STT_OBJECT | STT_FUNC) && table.sh_type == SHT_DYNSYM {
            return Err(wrong(format!("{name} is of a kind that code objects do not have")));
        }
        if of.sh_flags & u64::from(SHF_ALLOC) == 0 {
            // Of debug information, say; the runtime gives kernels, functions and variables addresses in segments.
            match kind {
                STT_OBJECT | STT_FUNC => {
                    return Err(wrong(format!("{name} is of a section that is not loaded")));
                }
                _ if table.sh_type == SHT_DYNSYM => return Err(wrong(format!("{name} is not loaded"))),
                _ => continue,
            }
        }
        let into = value.checked_sub(of.sh_addr).and_then(|into| into.checked_add(size));
        if into.is_none_or(|end| end > of.sh_size) || segment_of(segments, value, size).is_none() {
            return Err(wrong(format!("{name} lies outside of its section")));
        }
    }
    Ok(())
}

fn relocations(
    image: &ElfImage<'_>,
    table: &SectionHeader,
    segments: &[&ProgramHeader],
) -> Result<(), Error> {
    let wrong = |why: String| damaged("ELF relocations", why);
    let symbols = &image.sections[table.sh_link as usize];
    let entries = image.contents(symbols).unwrap_or_default();
    let is_defined = |symbol: u32| {
        let entry = entries.chunks_exact(SYMBOL as usize).nth(symbol as usize);
        // Number 0 is no symbol.
        entry.is_some_and(|entry| symbol == 0 || entry[6..8] != [0, 0])
    };
    for entry in image.contents(table).unwrap_or_default().chunks_exact(RELOCATION as usize) {
        let word = |at: usize| u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let (offset, kind, symbol, addend) = (long(0), word(8), word(12), long(16));
        if !RELOCATIONS.contains(&kind) {
            return Err(wrong(format!("type {kind} is not one that the runtime knows")));
        }
        if !is_defined(symbol) || addend.cast_signed().unsigned_abs() > MOST_MEMORY {
            return Err(wrong("one is of a symbol that is not there".into()));
        }
        if segment_of(segments, offset, 8).is_none() {
            return Err(wrong(format!("offset {offset:#x} is in no segment")));
        }
    }
    Ok(())
}

/// The symbols of kernel descriptors whose kernels begin in code.
fn described<'a>(image: &ElfImage<'a>, segments: &[&ProgramHeader]) -> Result<Vec<&'a str>, Error> {
    let mut described = Vec::new();
    for symbol in image.symbols()?.iter().filter(|symbol| is_descriptor(symbol)) {
        let wrong = |why: &str| damaged("kernel descriptor", format!("{} {why}", symbol.name));
        let bytes = image.at_address(symbol.address, symbol.size);
        let bytes = bytes.and_then(|bytes| <&[u8; descriptor::SIZE]>::try_from(bytes).ok());
        let descriptor = Descriptor::decode(bytes.ok_or_else(|| wrong("lies outside of the file"))?);
        let entry = symbol.address.checked_add_signed(descriptor.code_entry_offset);
        let code = entry.and_then(|entry| segment_of(segments, entry, 4));
        if code.is_none_or(|code| code.p_flags & PF_X == 0) {
            return Err(wrong("begins outside of the code"));
        }
        described.push(symbol.name);
    }
    let dynamic = image.programs.iter().filter(|program| program.p_type == PT_DYNAMIC).count();
    match dynamic {
        0 | 1 => Ok(described),
        _ => Err(damaged("ELF program headers", "there are several dynamic tables")),
    }
}
