//! A code object as a whole: which ABI, which processor, which kernels.

use object::elf::{EM_AMDGPU, EM_CUDA, Machine, OsAbi, STT_OBJECT};
use object::read::elf::FileHeader;

use crate::cubin;
use crate::descriptor::{self, KernelDescriptor};
use crate::elf::{ElfImage, ElfSymbol, LE};
use crate::{Error, Kernel, Target, metadata};

/// `EI_OSABI` of code objects for the HSA runtime.
const ELFOSABI_AMDGPU_HSA: OsAbi = OsAbi(64);
/// Owner and kind of the metadata note.
pub(crate) const METADATA_NOTE: (&[u8], u32) = (b"AMDGPU", 32);

/// Where the facts about kernels were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactsFrom {
    /// The metadata notes: all there is.
    Metadata,
    /// Kernel descriptors: memory sizes, and registers rounded up to what the hardware allots. No arguments, no spills.
    Descriptors,
}

/// What a code object says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeObject {
    /// Processor and features it was built for.
    pub target: Target,
    /// Version of the code object ABI, 3 to 6.
    pub abi_version: u8,
    /// Version of the metadata (1.0 for ABI version 3, 1.1 for 4, 1.2 for 5), where there is any.
    pub metadata_version: Option<(u32, u32)>,
    /// Where the kernels' facts come from.
    pub source: FactsFrom,
    /// In the order of the file.
    pub kernels: Vec<Kernel>,
}

impl CodeObject {
    /// Reads the bytes of one ELF file, for a GPU of AMD's or a cubin; [`crate::container`] takes it out of other files. Bytes behind it do no
    /// harm.
    ///
    /// # Errors
    /// [`Error::UnknownFormat`] and [`Error::OtherMachine`] for what is not a code object, [`Error::Unsupported`] for
    /// ABI versions outside of 3 to 6, [`Error::Malformed`] and [`Error::TooLarge`] for damage.
    pub fn parse(bytes: &[u8]) -> Result<CodeObject, Error> {
        let image = ElfImage::open(bytes)?;
        if image.header.e_machine(LE) == EM_CUDA {
            return cubin::parse(&image);
        }
        let abi_version = CodeObject::check(&image)?;
        let target = Target::from_flags(image.header.e_flags(LE).0, abi_version);
        let (owner, kind) = METADATA_NOTE;
        // Linked of several objects it has a note of each, as rocBLAS has for its assembled kernels.
        let mut notes: Vec<_> = image.notes(owner, kind)?.into_iter().map(metadata::read).collect();
        // A damaged one does not take the others' kernels away.
        if notes.iter().any(Result::is_ok) {
            notes.retain(Result::is_ok);
        }
        let notes = notes.into_iter().collect::<Result<Vec<_>, _>>()?;
        if let Some(first) = notes.first() {
            return Ok(CodeObject {
                target,
                abi_version,
                metadata_version: first.version,
                source: FactsFrom::Metadata,
                kernels: notes.into_iter().flat_map(|note| note.kernels).collect(),
            });
        }
        let kernels = described(&image, &target)?;
        Ok(CodeObject {
            target,
            abi_version,
            metadata_version: None,
            source: FactsFrom::Descriptors,
            kernels,
        })
    }

    /// The version of the ABI, of an ELF file that is a code object of a version that this crate reads.
    pub(crate) fn check(image: &ElfImage<'_>) -> Result<u8, Error> {
        match image.header.e_machine(LE) {
            EM_AMDGPU => abi_version(image),
            Machine(machine) => Err(Error::OtherMachine { machine }),
        }
    }

    /// The kernel of that symbol, with or without `.kd`.
    pub fn kernel(&self, symbol: &str) -> Option<&Kernel> {
        let wanted = symbol.strip_suffix(".kd").unwrap_or(symbol);
        let is_wanted =
            |kernel: &&Kernel| kernel.symbol.strip_suffix(".kd").unwrap_or(&kernel.symbol) == wanted;
        self.kernels.iter().find(is_wanted)
    }
}

fn abi_version(image: &ElfImage<'_>) -> Result<u8, Error> {
    let ident = &image.header.e_ident;
    let unsupported = |what: String| Error::Unsupported {
        what,
        advice: "build it for the HSA runtime with -mcode-object-version=3, 4, 5 or 6",
    };
    if ident.os_abi != ELFOSABI_AMDGPU_HSA {
        return Err(unsupported(format!("a code object for another runtime (ELF OS ABI {})", ident.os_abi)));
    }
    match ident.abi_version {
        // The file counts from 0 for version 2.
        version @ 1..=4 => Ok(version + 2),
        version => Err(unsupported(format!("code object version {}", u32::from(version) + 2))),
    }
}

/// Kernels by their descriptors, which are data symbols of the right size and suffix.
fn described(image: &ElfImage<'_>, target: &Target) -> Result<Vec<Kernel>, Error> {
    let symbols = image.symbols()?;
    let kernels = symbols.iter().filter(|symbol| is_descriptor(symbol)).map(|symbol| {
        let bytes = image.at_address(symbol.address, symbol.size);
        let bytes = bytes.and_then(|bytes| <&[u8; descriptor::SIZE]>::try_from(bytes).ok());
        let bytes = bytes.ok_or_else(|| {
            Error::malformed("kernel descriptor", format!("{} lies outside of the file", symbol.name))
        })?;
        Ok(KernelDescriptor::decode(bytes).kernel(symbol.name, target))
    });
    kernels.collect()
}

/// Whether a symbol is that of a kernel descriptor.
pub(crate) fn is_descriptor(symbol: &ElfSymbol<'_>) -> bool {
    symbol.kind == STT_OBJECT && symbol.size == descriptor::SIZE as u64 && symbol.name.ends_with(".kd")
}
