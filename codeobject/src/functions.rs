//! The code of an object: where each kernel and each function that kernels call begins and ends.

use std::collections::BTreeMap;

use object::elf::{STT_FUNC, STT_OBJECT};

use crate::descriptor::{self, KernelDescriptor};
use crate::elf::ElfImage;
use crate::{CodeObject, Error};

/// A kernel, or a function that kernels call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function<'a> {
    /// Mangled name, no suffix: `_Z4vaddPf`.
    pub name: &'a str,
    /// Virtual address of its first instruction, as debug information has it.
    pub address: u64,
    /// Its instructions. What follows them up to the next function, where the object does not say how long it is (assembly).
    pub code: &'a [u8],
    /// Of a kernel.
    pub descriptor: Option<KernelDescriptor>,
}

/// All functions of the code object that `bytes` are, in the order of their addresses. None overlaps the next.
///
/// # Errors
/// [`Error::Malformed`] where the symbol table is damaged, and those of [`CodeObject::parse`] for what is no code object.
pub fn functions(bytes: &[u8]) -> Result<Vec<Function<'_>>, Error> {
    let image = ElfImage::open(bytes)?;
    CodeObject::check(&image)?;
    // By address, the symbol's size with it. A kernel is known by its descriptor: what is assembled by hand may not say that it is a
    // function.
    let mut found: BTreeMap<u64, (&str, u64, Option<KernelDescriptor>)> = BTreeMap::new();
    let symbols = image.all_symbols()?;
    for symbol in symbols.iter().filter(|symbol| symbol.kind == STT_FUNC) {
        found.entry(symbol.address).or_insert((symbol.name, symbol.size, None));
    }
    for symbol in symbols.iter().filter(|symbol| symbol.kind == STT_OBJECT) {
        let Some(name) = symbol.name.strip_suffix(".kd") else { continue };
        let descriptor = image.at_address(symbol.address, descriptor::SIZE as u64);
        let Some(descriptor) =
            descriptor.and_then(|bytes| bytes.try_into().ok()).map(KernelDescriptor::decode)
        else {
            continue;
        };
        let Some(entry) = symbol.address.checked_add_signed(descriptor.code_entry_offset) else { continue };
        let function = found.entry(entry).or_insert((name, 0, None));
        function.0 = name;
        function.2 = Some(descriptor);
    }
    let mut functions = Vec::with_capacity(found.len());
    let mut rest = found.into_iter().peekable();
    while let Some((address, (name, size, descriptor))) = rest.next() {
        let Some(loaded) = image.loaded_from(address) else { continue };
        let mut length = if size > 0 { size } else { u64::MAX }.min(loaded.len() as u64);
        if let Some((next, _)) = rest.peek() {
            length = length.min(next - address);
        }
        functions.push(Function { name, address, code: &loaded[..length as usize], descriptor });
    }
    Ok(functions)
}
