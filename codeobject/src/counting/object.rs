//! The ELF file: what the rewriter needs of the original one, and the segment that is put behind its others.

use object::elf::{
    PF_R, PF_W, PF_X, PT_GNU_STACK, PT_LOAD, PT_PHDR, ProgramType, SHN_UNDEF, SHT_DYNSYM, SHT_RELA,
    SHT_SYMTAB,
};
use object::pod::{bytes_of, bytes_of_slice};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::{U32, U64};

use super::{Refusal, is_rewritten};
use crate::code_object::CodeObject;
use crate::descriptor::{self, AllottedRegisters};
use crate::elf::{ElfImage, LE, Relocation, Segment, Symbol, entries, text_at};
use crate::{Function, Target, functions};

/// Where segments begin.
const PAGE: u64 = 4096;
/// Where a table begins.
const ALIGNMENT: u64 = 8;
/// Bytes that a code object may take on a device, and that a new segment may have.
const MOST_MEMORY: u64 = 1 << 30;
const MOST_ADDED: u64 = 1 << 28;

/// A code object that is to be rewritten.
pub(super) struct Original<'a> {
    image: ElfImage<'a>,
    pub(super) target: Target,
    pub(super) functions: Vec<Function<'a>>,
    /// Where the new segment begins.
    pub(super) end: u64,
}

impl<'a> Original<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Original<'a>, Refusal> {
        let image = ElfImage::open(bytes)?;
        let version = CodeObject::check(&image)?;
        let target = Target::from_flags(image.header.e_flags(LE).0, version);
        if !is_rewritten(&target) {
            return Err(Refusal::Target(target.processor));
        }
        if let Some(name) = external_symbol(&image) {
            return Err(Refusal::ExternalSymbol(name.to_string()));
        }
        let mut ends = image
            .loads()
            .map(|load| load.p_vaddr(LE).checked_add(load.p_memsz(LE)).filter(|end| *end <= MOST_MEMORY));
        let end = ends.try_fold(0, |last: u64, end| end.map(|end| last.max(end))).ok_or(Refusal::TooLarge)?;
        let functions = functions(bytes)?;
        Ok(Original { image, target, functions, end: end.next_multiple_of(PAGE) })
    }

    /// How its processor has its vector registers.
    pub(super) fn register_file(&self) -> RegisterFile {
        match self.target.has_one_register_file() {
            true => RegisterFile::One,
            false => RegisterFile::Vector,
        }
    }

    /// A kernel's descriptor, and its address.
    pub(super) fn descriptor(&self, kernel: usize) -> Option<(u64, DescriptorWords)> {
        let function = &self.functions[kernel];
        let address =
            function.address.checked_add_signed(function.descriptor?.code_entry_offset.checked_neg()?)?;
        let bytes = self.image.at_address(address, descriptor::SIZE as u64)?;
        Some((address, DescriptorWords(bytes.try_into().ok()?)))
    }
}

/// A symbol that a relocation refers to and that is defined elsewhere.
fn external_symbol<'a>(image: &ElfImage<'a>) -> Option<&'a str> {
    for table in image.sections.iter().filter(|section| section.sh_type(LE) == SHT_RELA) {
        let symbols = image.sections.get(table.sh_link(LE) as usize);
        let Some(symbols) = symbols.filter(|of| matches!(of.sh_type(LE), SHT_DYNSYM | SHT_SYMTAB)) else {
            continue;
        };
        let names = image.sections.get(symbols.sh_link(LE) as usize).and_then(|names| image.contents(names));
        let (symbols, names): (&[Symbol], _) = (entries(image.contents(symbols)?), names?);
        for relocation in entries::<Relocation>(image.contents(table).unwrap_or_default()) {
            // Number 0 is no symbol.
            let number = relocation.r_sym(LE, false) as usize;
            let symbol = symbols.get(number).filter(|symbol| number > 0 && symbol.st_shndx(LE) == SHN_UNDEF);
            if let Some(symbol) = symbol {
                return text_at(names, symbol.st_name(LE)).or(Some("a symbol"));
            }
        }
    }
    None
}

/// The bytes of a descriptor.
#[derive(Clone)]
pub(super) struct DescriptorWords([u8; descriptor::SIZE]);

/// How descriptors ask for vector registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RegisterFile {
    /// In units of 4. Accumulation registers, where there are some, are as many, in a file of their own.
    Vector,
    /// In units of 8, together with accumulation registers, which begin behind them at a multiple of 4.
    One,
}

/// Accumulation registers of a wave, and vector registers.
const MOST_ACCUMULATION: u32 = 256;

/// Places in a descriptor.
const ENTRY: usize = 16;
const RSRC3: usize = 44;
const RSRC1: usize = 48;
const RSRC2: usize = 52;
/// Scalar registers that every wave has behind its own: VCC, FLAT_SCRATCH, XNACK_MASK.
const NAMED: u32 = 6;

impl DescriptorWords {
    fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    /// Scalar registers that hold something when a wave starts.
    pub(super) fn initial_scalars(&self) -> u32 {
        let rsrc2 = self.word(RSRC2);
        // User registers, then the workgroup's ids and information, then the offset of the wave's scratch.
        (rsrc2 >> 1 & 0x1f) + (rsrc2 >> 7 & 0xf).count_ones() + (rsrc2 & 1)
    }

    /// The registers that it asks for.
    pub(super) fn allotted(&self, file: RegisterFile) -> AllottedRegisters {
        let rsrc1 = self.word(RSRC1);
        let unit = if file == RegisterFile::One { 8 } else { 4 };
        let vgprs = ((rsrc1 & 0x3f) + 1) * unit;
        let agprs = match file {
            RegisterFile::Vector => 0,
            RegisterFile::One => vgprs.saturating_sub(self.accumulation_begin()).min(MOST_ACCUMULATION),
        };
        AllottedRegisters { vgprs, agprs, sgprs: (rsrc1 >> 6 & 0xf) / 2 * 16 + 16 }
    }

    /// The first accumulation register, as a vector register.
    fn accumulation_begin(&self) -> u32 {
        ((self.word(RSRC3) & 0x3f) + 1) * 4
    }

    /// Vector registers that code under it may name.
    pub(super) fn most_vectors(&self, file: RegisterFile) -> u32 {
        let all = self.allotted(file).vgprs;
        match file {
            RegisterFile::Vector => all,
            RegisterFile::One => all.min(self.accumulation_begin()),
        }
    }

    /// Scalar registers that code under it may name.
    pub(super) fn most_scalars(&self, file: RegisterFile) -> u32 {
        self.allotted(file).sgprs - NAMED
    }

    /// For a kernel at `entry` that needs at least so many registers, when it lies at `address`.
    pub(super) fn with(
        &self,
        file: RegisterFile,
        address: u64,
        entry: u64,
        scalars: u32,
        vectors: u32,
    ) -> DescriptorWords {
        let mut made = self.clone();
        made.0[ENTRY..ENTRY + 8].copy_from_slice(&entry.wrapping_sub(address).to_le_bytes());
        let rsrc1 = self.word(RSRC1);
        let vectors = vectors.max(1);
        let needed = match file {
            RegisterFile::Vector => vectors.div_ceil(4),
            RegisterFile::One => {
                // Accumulation registers are counted from where they begin, so all of them move.
                let begin = vectors.next_multiple_of(4).max(self.accumulation_begin());
                let rsrc3 = self.word(RSRC3) & !0x3f | (begin / 4 - 1);
                made.0[RSRC3..RSRC3 + 4].copy_from_slice(&rsrc3.to_le_bytes());
                let agprs = self.allotted(file).agprs;
                if agprs > 0 { (begin + agprs).div_ceil(8) } else { vectors.div_ceil(8) }
            }
        };
        let vector = (rsrc1 & 0x3f).max(needed - 1);
        let scalar = (rsrc1 >> 6 & 0xf).max(((scalars + NAMED).div_ceil(16) - 1) * 2);
        let rsrc1 = rsrc1 & !0x3ff | vector | scalar << 6;
        made.0[RSRC1..RSRC1 + 4].copy_from_slice(&rsrc1.to_le_bytes());
        made
    }
}

/// What the new segment holds.
pub(super) struct Appended {
    start: u64,
    bytes: Vec<u8>,
}

impl Appended {
    pub(super) fn new(start: u64) -> Appended {
        Appended { start, bytes: Vec::new() }
    }

    /// Whether code may end there.
    pub(super) fn may_end_at(&self, address: u64) -> bool {
        address - self.start <= MOST_ADDED
    }

    /// Address of what is added next.
    pub(super) fn here(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Adds instructions at `address`, which is not in front of what is there; s_nop fills the gap.
    pub(super) fn code(&mut self, address: u64, words: &[u32]) {
        self.fill(address);
        self.bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    /// Adds a descriptor at `address`.
    pub(super) fn descriptor(&mut self, address: u64, words: &DescriptorWords) {
        self.fill(address);
        self.bytes.extend(words.0);
    }

    /// Adds zeros at `address`.
    pub(super) fn zeros(&mut self, address: u64, length: u64) {
        self.fill(address);
        self.bytes.resize(self.bytes.len() + length as usize, 0);
    }

    fn fill(&mut self, address: u64) {
        while self.here() < address {
            self.bytes.extend(0xbf80_0000_u32.to_le_bytes());
        }
    }
}

/// The original with one more segment.
///
/// Its program header takes the place of that of the stack's permissions, which no loader of code objects asks for; where there is
/// none, the table moves behind everything else.
pub(super) fn append(object: &[u8], original: &Original<'_>, mut appended: Appended) -> Vec<u8> {
    // The hardware reads ahead of what it executes.
    let end = appended.here();
    appended.code(end, &[0xbf80_0000; 64]);
    let end = appended.here().next_multiple_of(ALIGNMENT);
    appended.zeros(end, 0);
    let mut segments = original.image.segments.to_vec();
    let mut made = object.to_vec();
    made.resize(made.len().next_multiple_of(PAGE as usize), 0);
    let segment = segment(made.len() as u64, appended.start, appended.bytes.len() as u64);
    made.extend(appended.bytes);
    let of_kind = |kind: ProgramType, segments: &[Segment]| {
        segments.iter().position(|segment| segment.p_type(LE) == kind)
    };
    let mut header = *original.image.header;
    let table = match of_kind(PT_GNU_STACK, &segments) {
        Some(spare) => {
            segments.remove(spare);
            header.e_phoff(LE) as usize
        }
        None => {
            // It would say where the table was.
            if let Some(own) = of_kind(PT_PHDR, &segments) {
                segments.remove(own);
            }
            made.len()
        }
    };
    let last = segments.iter().rposition(|segment| segment.p_type(LE) == PT_LOAD);
    segments.insert(last.map_or(0, |last| last + 1), segment);
    header.e_phoff.set(LE, table as u64);
    header.e_phnum.set(LE, segments.len() as u16);
    let segments = bytes_of_slice(&segments);
    made.resize(made.len().max(table + segments.len()), 0);
    made[table..table + segments.len()].copy_from_slice(segments);
    let header = bytes_of(&header);
    made[..header.len()].copy_from_slice(header);
    made
}

/// A program header: cells are written, code is executed.
fn segment(offset: u64, address: u64, length: u64) -> Segment {
    Segment {
        p_type: U32::new(LE, PT_LOAD),
        p_flags: U32::new(LE, PF_R | PF_W | PF_X),
        p_offset: U64::new(LE, offset),
        p_vaddr: U64::new(LE, address),
        p_paddr: U64::new(LE, address),
        p_filesz: U64::new(LE, length),
        p_memsz: U64::new(LE, length),
        p_align: U64::new(LE, PAGE),
    }
}
