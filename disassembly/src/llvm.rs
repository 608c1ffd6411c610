//! LLVM's library, and its disassembler.
//!
//! The declarations are those of llvm-c/Disassembler.h, llvm-c/DisassemblerTypes.h, llvm-c/Target.h and llvm-c/ErrorHandling.h.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::fs::File;
use std::io::{self, Read};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};

use libloading::Library;

use crate::{InstructionText, data, place};

/// `LLVMDisasmContextRef`.
type ContextRef = *mut c_void;
type Initialize = unsafe extern "C" fn();
type CreateContext = unsafe extern "C" fn(
    triple: *const c_char,
    processor: *const c_char,
    features: *const c_char,
    information: *mut c_void,
    tag: c_int,
    operand_information: Option<unsafe extern "C" fn()>,
    symbol_look_up: Option<unsafe extern "C" fn()>,
) -> ContextRef;
type DisassembleOne = unsafe extern "C" fn(
    context: ContextRef,
    bytes: *mut u8,
    length: u64,
    address: u64,
    text: *mut c_char,
    room: usize,
) -> usize;
type DisposeContext = unsafe extern "C" fn(context: ContextRef);
type OnFatalError = unsafe extern "C" fn(handler: extern "C" fn(why: *const c_char));

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoLlvm {
    #[error(
        "disassembly needs an LLVM that knows {processor}{}: install libLLVM (Debian and Ubuntu: libllvm19 or another; Fedora and Arch: \
         llvm-libs) or ROCm's LLVM, or name a library by --llvm",
        in_brackets(unfit)
    )]
    Missing {
        processor: String,
        /// Those that were found, and why they do not serve.
        unfit: Vec<String>,
    },
    #[error("{} {why}; name another by --llvm, or none", path.display())]
    Named { path: PathBuf, why: Unfit },
}

fn in_brackets(list: &[String]) -> String {
    if list.is_empty() { String::new() } else { format!(" ({})", list.join("; ")) }
}

/// Why a library does not serve.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unfit {
    #[error("cannot be opened ({0})")]
    NotOpened(String),
    #[error("has no disassembler for AMD GPUs")]
    NoAmdGpus,
    #[error("is not known to be a file")]
    NoFile,
    #[error("cannot be read ({0})")]
    NotRead(io::Error),
    #[error("does not know {processor}")]
    Unknown { processor: String, file: PathBuf },
}

/// The cause behind an error, which says most.
fn last_of(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), last_of)
}

/// An opened libLLVM that disassembles for a processor. It stays open: LLVM is not made to be closed.
pub(crate) struct Llvm {
    create: CreateContext,
    disassemble: DisassembleOne,
    dispose: DisposeContext,
    /// The name under which it knows the processor that it was found for.
    processor: CString,
}

impl Llvm {
    /// The library that `named` names, or the first one installed that knows `processor` (`gfx90a`).
    ///
    /// # Errors
    /// When there is none; it says what to install.
    pub(crate) fn find(processor: &str, named: Option<&OsStr>) -> Result<Llvm, NoLlvm> {
        if let Some(path) = named {
            return Llvm::open(path, processor).map_err(|why| NoLlvm::Named { path: path.into(), why });
        }
        let mut unfit: Vec<String> = Vec::new();
        for name in place::names() {
            match Llvm::open(&name, processor) {
                Ok(llvm) => return Ok(llvm),
                // One that is not there is not worth a word.
                Err(Unfit::NotOpened(_)) if !Path::new(&name).exists() => {}
                Err(why) => {
                    // One library has several names.
                    let file = match &why {
                        Unfit::Unknown { file, .. } => file.clone(),
                        _ => PathBuf::from(&name),
                    };
                    let file = std::fs::canonicalize(&file).unwrap_or(file);
                    let line = format!("{} {why}", file.display());
                    if !unfit.contains(&line) {
                        unfit.push(line);
                    }
                }
            }
        }
        Err(NoLlvm::Missing { processor: processor.to_string(), unfit })
    }

    /// Opens a library, by its name for the dynamic loader or its path.
    fn open(name: &OsStr, processor: &str) -> Result<Llvm, Unfit> {
        // SAFETY: opening a library runs its constructors. The names tried are those of LLVM, whose constructors register options and
        // touch nothing of ours; a library that the user names is the user's choice, as with LD_PRELOAD.
        let library = unsafe { Library::new(name) }.map_err(|error| Unfit::NotOpened(last_of(&error)))?;
        // It must not be closed: LLVM leaves pointers into itself behind (handlers at exit, thread-local destructors).
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: each type is the C declaration of that function in the headers named above, the same in versions 14 to 22.
        let (info, target, disassembler, create, disassemble, dispose, on_fatal_error) = unsafe {
            (
                function::<Initialize>(library, c"LLVMInitializeAMDGPUTargetInfo")?,
                function::<Initialize>(library, c"LLVMInitializeAMDGPUTargetMC")?,
                function::<Initialize>(library, c"LLVMInitializeAMDGPUDisassembler")?,
                function::<CreateContext>(library, c"LLVMCreateDisasmCPUFeatures")?,
                function::<DisassembleOne>(library, c"LLVMDisasmInstruction")?,
                function::<DisposeContext>(library, c"LLVMDisasmDispose")?,
                function::<OnFatalError>(library, c"LLVMInstallFatalErrorHandler")?,
            )
        };
        let path = path_of(create as *const c_void).ok_or(Unfit::NoFile)?;
        let processor = known_as(&path, processor)?;
        // SAFETY: these take nothing and may be called at any time, also again. The handler is a function for ever, and LLVM's to call
        // with a string that ends.
        unsafe {
            on_fatal_error(fatal_error);
            info();
            target();
            disassembler();
        }
        Ok(Llvm { create, disassemble, dispose, processor })
    }

    /// A disassembler for the processor that this library was found for, and waves of that size.
    ///
    /// # Errors
    /// When LLVM refuses.
    pub(crate) fn disassembler(&self, wavefront_size: u32) -> Result<LlvmContext<'_>, Unfit> {
        let processor = self.processor.to_string_lossy();
        // Before gfx10 there is one size, and LLVM objects to being told.
        let features = match wavefront_size {
            32 => c"+wavefrontsize32,-wavefrontsize64",
            64 if ["gfx10", "gfx11", "gfx12"].iter().any(|family| processor.starts_with(family)) => {
                c"-wavefrontsize32,+wavefrontsize64"
            }
            _ => c"",
        };
        // SAFETY: the strings end with a zero and live until the call returns, which copies them. No callbacks and no data for them, as
        // the header allows.
        let context = unsafe {
            (self.create)(
                c"amdgcn-amd-amdhsa".as_ptr(),
                self.processor.as_ptr(),
                features.as_ptr(),
                ptr::null_mut(),
                0,
                None,
                None,
            )
        };
        let context = NonNull::new(context).ok_or(Unfit::NoAmdGpus)?;
        Ok(LlvmContext { llvm: self, context, not_shared: PhantomData })
    }
}

/// A function of the library.
///
/// # Safety
/// `T` is a pointer to a function with the signature that the library has under this name.
unsafe fn function<T: Copy>(library: &'static Library, name: &CStr) -> Result<T, Unfit> {
    // SAFETY: the caller's; the library is never closed, so that the copy of the pointer stays good.
    let found = unsafe { library.get::<T>(name.to_bytes_with_nul()) };
    found.map(|function| *function).map_err(|_| Unfit::NoAmdGpus)
}

/// The file that code at this address was loaded from.
fn path_of(address: *const c_void) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `dladdr` looks any address up and writes the structure where it knows it; a zeroed one is valid.
    let found = unsafe {
        if libc::dladdr(address, found.as_mut_ptr()) == 0 {
            return None;
        }
        found.assume_init()
    };
    if found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name is the loader's, ends with a zero, and stays as long as the library is loaded, which is for ever.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

/// The name under which the library knows a processor: one that is in its file. LLVM's C interface does not say; asked to disassemble for
/// a processor that it does not know, LLVM ends the process.
fn known_as(path: &Path, processor: &str) -> Result<CString, Unfit> {
    // LLVM 21 has forgotten two of which no product has come. gfx942 has all their instructions.
    let later = ["gfx940", "gfx941"].contains(&processor).then_some("gfx942");
    for name in [Some(processor), later].into_iter().flatten() {
        let Ok(name) = CString::new(name) else { continue };
        if contains(path, &[b"\0", name.as_bytes_with_nul()].concat()).map_err(Unfit::NotRead)? {
            return Ok(name);
        }
    }
    Err(Unfit::Unknown { processor: processor.to_string(), file: path.to_path_buf() })
}

fn contains(path: &Path, wanted: &[u8]) -> io::Result<bool> {
    const CHUNK: usize = 1 << 20;
    let finder = memchr::memmem::Finder::new(wanted);
    let mut file = File::open(path)?;
    let mut chunk = Vec::with_capacity(CHUNK + wanted.len());
    loop {
        // What begins at the end of a chunk ends in the next.
        let kept = chunk.len().min(wanted.len() - 1);
        chunk.drain(..chunk.len() - kept);
        if (&mut file).take(CHUNK as u64).read_to_end(&mut chunk)? == 0 {
            return Ok(false);
        }
        if finder.find(&chunk).is_some() {
            return Ok(true);
        }
    }
}

/// LLVM gives up, and would abort: the process ends, as for each failure of LLVM.
extern "C" fn fatal_error(_why: *const c_char) {
    // SAFETY: takes a number, and runs no handlers inside of LLVM's failure.
    unsafe { libc::_exit(1) }
}

/// Turns instructions of one processor into text. For one thread at a time.
pub(crate) struct LlvmContext<'a> {
    llvm: &'a Llvm,
    context: NonNull<c_void>,
    not_shared: PhantomData<*mut c_void>,
}

impl LlvmContext<'_> {
    /// The instruction that `code` begins with, which lies at `address`. `code` must not be empty.
    pub(crate) fn instruction(&mut self, code: &[u8], address: u64) -> InstructionText {
        let mut text = [0_u8; 512];
        // SAFETY: the context is one of this library that has not been disposed of. LLVM reads up to `length` bytes of the code, which
        // it does not write in spite of the type, and writes up to `room` bytes of text, a zero at the end included.
        let length = unsafe {
            (self.llvm.disassemble)(
                self.context.as_ptr(),
                code.as_ptr().cast_mut(),
                code.len() as u64,
                address,
                text.as_mut_ptr().cast(),
                text.len(),
            )
        };
        let words = CStr::from_bytes_until_nul(&text).map(CStr::to_string_lossy).unwrap_or_default();
        let words = words.trim();
        if length == 0 || length > code.len() || words.is_empty() {
            return data(code);
        }
        // LLVM puts a tab behind the mnemonic of some.
        InstructionText { length, text: words.replace('\t', " ") }
    }
}

impl Drop for LlvmContext<'_> {
    fn drop(&mut self) {
        // SAFETY: the context is one of this library, and nothing uses it afterwards.
        unsafe { (self.llvm.dispose)(self.context.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_across_chunks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("library");
        let wanted = b"\0gfx906\0";
        for before in
            [0, 1, (1 << 20) - 9, (1 << 20) - 8, (1 << 20) - 7, (1 << 20) - 1, 1 << 20, (2 << 20) - 3]
        {
            std::fs::write(&path, [vec![b'x'; before], wanted.to_vec(), vec![0; 3]].concat()).unwrap();
            assert!(contains(&path, wanted).unwrap(), "{before}");
            assert!(!contains(&path, b"\0gfx90a\0").unwrap(), "{before}");
        }
        assert_eq!(known_as(&path, "gfx906").unwrap().as_c_str(), c"gfx906");
        assert_eq!(known_as(&path, "gfx90").unwrap_err().to_string(), "does not know gfx90");
        std::fs::write(&path, b"\0gfx942\0").unwrap();
        assert_eq!(known_as(&path, "gfx940").unwrap().as_c_str(), c"gfx942");
        assert!(known_as(&path, "gfx9\0").is_err());
    }
}
