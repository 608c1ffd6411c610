//! The check whether the HSA runtime can load a code object that nobody vouches for.
//!
//! ROCr's loader (5.2 and later: loader/executable.cpp, libamdhsacode) trusts the tables of a code object: an address outside of its
//! segment ends the process by an assertion, a symbol of a section that is not there by a null pointer. So everything that it follows
//! is checked here, and what compilers never write is refused. It cannot say whether the instructions are sound.

use object::elf::{
    ET_DYN, EV_CURRENT, PF_W, PF_X, PT_DYNAMIC, PT_LOAD, RelocationType, SHF_ALLOC, SHN_ABS, SHN_UNDEF,
    SHT_DYNAMIC, SHT_DYNSYM, SHT_GNU_HASH, SHT_HASH, SHT_NOBITS, SHT_NOTE, SHT_NULL, SHT_PROGBITS, SHT_RELA,
    SHT_STRTAB, SHT_SYMTAB, STT_FUNC, STT_NOTYPE, STT_OBJECT, SectionType,
};
use object::read::elf::{FileHeader, ProgramHeader, Rela, SectionHeader, Sym};

use crate::code_object::{METADATA_NOTE, is_descriptor};
use crate::descriptor::{self, KernelDescriptor};
use crate::elf::{ElfImage, LE, NoteEntry, Relocation, Section, Segment, Symbol, entries};
use crate::{CodeObject, Error};

/// Bytes that a code object may take on a device, and at which it may begin.
const MOST_MEMORY: u64 = 1 << 30;
/// Largest alignment of a segment or section that linkers ask for.
const MOST_ALIGNMENT: u64 = 1 << 16;
/// Bytes of an entry of a table of relocations with addends, and of symbols.
const RELOCATION: u64 = size_of::<Relocation>() as u64;
const SYMBOL: u64 = size_of::<Symbol>() as u64;
/// Bytes of an entry of the dynamic table.
const DYNAMIC: u64 = 16;
/// Relocations that the runtime knows: R_AMDGPU_ABS32_LO to R_AMDGPU_ABS64, R_AMDGPU_ABS32, R_AMDGPU_RELATIVE64.
const RELOCATIONS: [u32; 5] = [1, 2, 3, 6, 13];
/// Owner and kind of the note with the build's id (NT_GNU_BUILD_ID).
const BUILD_ID: (&[u8], u32) = (b"GNU", 3);
/// Which sections are of what kind.
const KINDS: [(&str, SectionType); 10] = [
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
        for table in image.sections.iter().filter(|section| section.sh_type(LE) == kind) {
            symbols(&image, table, &segments)?;
        }
    }
    for table in image.sections.iter().filter(|section| section.sh_type(LE) == SHT_RELA) {
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
        let into = |load: &Segment| address.checked_sub(load.p_vaddr(LE));
        let load = image.loads().find(|load| into(load).is_some_and(|into| into < load.p_memsz(LE)));
        load.is_some_and(|load| load.p_flags(LE).contains(PF_W))
    };
    let symbols = image.symbols()?;
    let variables = symbols.iter().filter(|symbol| symbol.kind == STT_OBJECT && is_writable(symbol.address));
    // Newer compilers mark each translation unit with a variable of that name.
    let own = variables.filter(|symbol| !symbol.name.starts_with("__hip_cuid_"));
    Ok(own.map(|symbol| symbol.name.to_string()).collect())
}

fn header(image: &ElfImage<'_>) -> Result<(), Error> {
    let header = image.header;
    let sizes = (header.e_ehsize(LE), header.e_phentsize(LE), header.e_shentsize(LE));
    let versions = (header.e_version(LE), header.e_ident.version);
    let is_usual = header.e_type(LE) == ET_DYN && versions == (EV_CURRENT.0.into(), EV_CURRENT);
    match is_usual && sizes == (64, 56, 64) && !image.sections.is_empty() {
        true => Ok(()),
        false => Err(damaged("ELF header", "not that of a shared object with sections")),
    }
}

/// The segments that are loaded, by their addresses.
fn segments<'a>(image: &ElfImage<'a>) -> Result<Vec<&'a Segment>, Error> {
    let wrong = |why: &str| damaged("ELF program headers", why);
    let mut segments = Vec::new();
    let mut end = 0;
    for segment in image.segments {
        let (address, offset) = (segment.p_vaddr(LE), segment.p_offset(LE));
        let (length, memory) = (segment.p_filesz(LE), segment.p_memsz(LE));
        let alignment = segment.p_align(LE);
        if length > 0 && image.slice(offset, length).is_none() {
            return Err(wrong("a segment reaches beyond the end of the file"));
        }
        if !matches!(alignment, 0 | 1) && !is_alignment(alignment) {
            return Err(wrong("a segment has an alignment that is none"));
        }
        if segment.p_type(LE) != PT_LOAD {
            continue;
        }
        let after = address.checked_add(memory).filter(|after| *after <= MOST_MEMORY);
        let after = after.ok_or_else(|| wrong("a segment is too large"))?;
        if length > memory || address < end {
            return Err(wrong("segments overlap one another, or have less memory than bytes"));
        }
        if alignment > 1 && address % alignment != offset % alignment {
            return Err(wrong("a segment does not lie as its alignment says"));
        }
        end = after;
        segments.push(segment);
    }
    match segments.first() {
        // The runtime takes the first address for the code object's begin.
        Some(first) if first.p_vaddr(LE) == 0 => Ok(segments),
        _ => Err(wrong("no segment begins at address 0")),
    }
}

fn is_alignment(alignment: u64) -> bool {
    alignment.is_power_of_two() && alignment <= MOST_ALIGNMENT
}

/// The segment that has `length` bytes at `address`.
fn segment_of<'a>(segments: &[&'a Segment], address: u64, length: u64) -> Option<&'a Segment> {
    let end = address.checked_add(length)?;
    segments.iter().copied().find(|load| {
        let begin = load.p_vaddr(LE);
        begin <= address && end <= begin + load.p_memsz(LE)
    })
}

fn sections(image: &ElfImage<'_>, segments: &[&Segment]) -> Result<(), Error> {
    let wrong = |number: usize, why: &str| damaged("ELF section headers", format!("section {number}: {why}"));
    let names = image.sections.get(usize::from(image.header.e_shstrndx(LE).0));
    let names = names.filter(|names| names.sh_type(LE) == SHT_STRTAB).and_then(|names| image.contents(names));
    let names = names.ok_or_else(|| damaged("ELF section headers", "their names are missing"))?;
    for (number, section) in image.sections.iter().enumerate() {
        let wrong = |why: &str| Err(wrong(number, why));
        let (kind, address, size) = (section.sh_type(LE), section.sh_addr(LE), section.sh_size(LE));
        let is_loaded = section.sh_flags(LE).contains(SHF_ALLOC);
        if (kind == SHT_NULL) != (number == 0) {
            return wrong("only the first one is empty");
        }
        if kind == SHT_NULL {
            continue;
        }
        let entry = match kind {
            SHT_PROGBITS | SHT_NOBITS | SHT_NOTE | SHT_STRTAB | SHT_HASH | SHT_GNU_HASH => 0,
            SHT_SYMTAB | SHT_DYNSYM => SYMBOL,
            SHT_RELA => RELOCATION,
            SHT_DYNAMIC => DYNAMIC,
            // LLVM's own, which are not loaded (SHT_LOUSER and the like).
            _ if !is_loaded => 0,
            _ => return wrong("it is of a kind that code objects do not have"),
        };
        let Some(name) = crate::elf::text_at(names, section.sh_name(LE)) else {
            return wrong("it has no name");
        };
        // The runtime looks for some by their names.
        if KINDS.iter().any(|(known, expected)| *known == name && *expected != kind) {
            return wrong("it is of another kind than its name says");
        }
        if kind != SHT_NOBITS && image.contents(section).is_none() {
            return wrong("it reaches beyond the end of the file");
        }
        if entry != 0 && (section.sh_entsize(LE) != entry || !size.is_multiple_of(entry)) {
            return wrong("its entries have another size");
        }
        if !matches!(section.sh_addralign(LE), 0 | 1) && !is_alignment(section.sh_addralign(LE)) {
            return wrong("it has an alignment that is none");
        }
        let Some(linked) = image.sections.get(section.sh_link(LE) as usize) else {
            return wrong("it belongs to a section that is not there");
        };
        let linked = linked.sh_type(LE);
        match kind {
            SHT_SYMTAB | SHT_DYNSYM | SHT_DYNAMIC if linked != SHT_STRTAB => {
                return wrong("its strings are missing");
            }
            SHT_HASH | SHT_GNU_HASH | SHT_RELA if !matches!(linked, SHT_DYNSYM | SHT_SYMTAB) => {
                return wrong("its symbols are missing");
            }
            SHT_STRTAB
                if image.contents(section).is_some_and(|text| text.last().is_some_and(|last| *last != 0)) =>
            {
                return wrong("its last text has no end");
            }
            _ => {}
        }
        if !is_loaded {
            continue;
        }
        let Some(load) = segment_of(segments, address, size) else {
            return wrong("it is in no segment");
        };
        let into = address - load.p_vaddr(LE);
        let begin = load.p_offset(LE).wrapping_add(into);
        if kind != SHT_NOBITS && (section.sh_offset(LE) != begin || into + size > load.p_filesz(LE)) {
            return wrong("it is elsewhere in its segment");
        }
    }
    Ok(())
}

/// Notes of other owners or kinds are those of older code objects, which the runtime would follow; but for the build's id, which newer
/// linkers leave and the runtime passes over.
fn notes(image: &ElfImage<'_>) -> Result<(), Error> {
    let (owner, kind) = METADATA_NOTE;
    for (start, length) in image.note_segments().chain(image.note_sections()) {
        let all = image.notes_at(start, length)?;
        let is_known = |note: &NoteEntry<'_>| [(owner, kind), BUILD_ID].contains(&(note.owner, note.kind));
        if all.is_empty() || !all.iter().all(is_known) {
            return Err(damaged("ELF notes", "there are others than the AMDGPU metadata"));
        }
    }
    Ok(())
}

fn symbols(image: &ElfImage<'_>, table: &Section, segments: &[&Segment]) -> Result<(), Error> {
    let wrong = |why: String| damaged("ELF symbol table", why);
    let names = image.contents(&image.sections[table.sh_link(LE) as usize]).unwrap_or_default();
    let is_dynamic = table.sh_type(LE) == SHT_DYNSYM;
    // The first entry is empty, by the format.
    for symbol in entries::<Symbol>(image.contents(table).unwrap_or_default()).iter().skip(1) {
        let (kind, section) = (symbol.st_type(), symbol.st_shndx(LE));
        let (value, size) = (symbol.st_value(LE), symbol.st_size(LE));
        let name = crate::elf::text_at(names, symbol.st_name(LE));
        let name = name.ok_or_else(|| wrong("a name is not a string".into()))?;
        // rocRAND has names of LDS that is defined nowhere; nothing refers to them.
        if section == SHN_ABS || (section == SHN_UNDEF && (value, size, kind) == (0, 0, STT_NOTYPE)) {
            continue;
        }
        let Some(section) = section.index() else {
            return Err(wrong(format!("{name} is defined elsewhere")));
        };
        let Some(of) = image.sections.get(usize::from(section)) else {
            return Err(wrong(format!("{name} is of a section that is not there")));
        };
        if !matches!(kind, STT_NOTYPE | STT_OBJECT | STT_FUNC) && is_dynamic {
            return Err(wrong(format!("{name} is of a kind that code objects do not have")));
        }
        if !of.sh_flags(LE).contains(SHF_ALLOC) {
            // Of debug information, say; the runtime gives kernels, functions and variables addresses in segments.
            match kind {
                STT_OBJECT | STT_FUNC => {
                    return Err(wrong(format!("{name} is of a section that is not loaded")));
                }
                _ if is_dynamic => return Err(wrong(format!("{name} is not loaded"))),
                _ => continue,
            }
        }
        let into = value.checked_sub(of.sh_addr(LE)).and_then(|into| into.checked_add(size));
        if into.is_none_or(|end| end > of.sh_size(LE)) || segment_of(segments, value, size).is_none() {
            return Err(wrong(format!("{name} lies outside of its section")));
        }
    }
    Ok(())
}

fn relocations(image: &ElfImage<'_>, table: &Section, segments: &[&Segment]) -> Result<(), Error> {
    let wrong = |why: String| damaged("ELF relocations", why);
    let symbols = image.contents(&image.sections[table.sh_link(LE) as usize]).unwrap_or_default();
    let symbols: &[Symbol] = entries(symbols);
    let is_defined = |number: u32| {
        // Number 0 is no symbol.
        symbols.get(number as usize).is_some_and(|symbol| number == 0 || symbol.st_shndx(LE) != SHN_UNDEF)
    };
    for relocation in entries::<Relocation>(image.contents(table).unwrap_or_default()) {
        let (offset, RelocationType(kind)) = (relocation.r_offset(LE), relocation.r_type(LE, false));
        if !RELOCATIONS.contains(&kind) {
            return Err(wrong(format!("type {kind} is not one that the runtime knows")));
        }
        let symbol = relocation.r_sym(LE, false);
        if !is_defined(symbol) || relocation.r_addend(LE).unsigned_abs() > MOST_MEMORY {
            return Err(wrong("one is of a symbol that is not there".into()));
        }
        if segment_of(segments, offset, 8).is_none() {
            return Err(wrong(format!("offset {offset:#x} is in no segment")));
        }
    }
    Ok(())
}

/// The symbols of kernel descriptors whose kernels begin in code.
fn described<'a>(image: &ElfImage<'a>, segments: &[&Segment]) -> Result<Vec<&'a str>, Error> {
    let mut described = Vec::new();
    for symbol in image.symbols()?.iter().filter(|symbol| is_descriptor(symbol)) {
        let wrong = |why: &str| damaged("kernel descriptor", format!("{} {why}", symbol.name));
        let bytes = image.at_address(symbol.address, symbol.size);
        let bytes = bytes.and_then(|bytes| <&[u8; descriptor::SIZE]>::try_from(bytes).ok());
        let descriptor = KernelDescriptor::decode(bytes.ok_or_else(|| wrong("lies outside of the file"))?);
        let entry = symbol.address.checked_add_signed(descriptor.code_entry_offset);
        let code = entry.and_then(|entry| segment_of(segments, entry, 4));
        if code.is_none_or(|code| !code.p_flags(LE).contains(PF_X)) {
            return Err(wrong("begins outside of the code"));
        }
        described.push(symbol.name);
    }
    let dynamic = image.segments.iter().filter(|segment| segment.p_type(LE) == PT_DYNAMIC).count();
    match dynamic {
        0 | 1 => Ok(described),
        _ => Err(damaged("ELF program headers", "there are several dynamic tables")),
    }
}
