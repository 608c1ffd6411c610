//! The code objects of a file: a code object, an offload bundle, a host program or library.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rpd_codeobject::descriptor::KernelDescriptor;
use rpd_codeobject::{CodeObject, Function, Kernel, Target, container, cubin, functions};

use super::kernel::{Assumed, KernelFacts};

/// What files with code objects are called.
const EXTENSIONS: [&str; 3] = ["hsaco", "co", "cubin"];

/// A code object, and where it was found.
pub struct FoundObject {
    /// In words: `vadd.hsaco`, or `libx.so at 4096` for a part of a larger file.
    pub place: String,
    /// The ELF file.
    pub bytes: Vec<u8>,
}

/// Opens a regular file for reading; waits for nothing else, as a pipe that nobody writes.
///
/// # Errors
/// When it cannot be opened, or is no regular file.
pub(super) fn open(path: &Path) -> Result<File> {
    let shown = path.display();
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path);
    let file = file.with_context(|| format!("cannot open {shown}"))?;
    let metadata = file.metadata().with_context(|| format!("cannot open {shown}"))?;
    if metadata.is_dir() {
        bail!("{shown} is a directory; give a code object, a program, a library or a trace in it");
    }
    if !metadata.is_file() {
        bail!("{shown} is not a regular file; give a code object, a program, a library or a trace");
    }
    Ok(file)
}

/// Whether a file begins as an SQLite database does, which a trace is.
///
/// # Errors
/// When it cannot be read.
pub fn is_database(path: &Path) -> Result<bool> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut begin = Vec::new();
    let read = open(path)?.take(MAGIC.len() as u64).read_to_end(&mut begin);
    read.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(begin == MAGIC)
}

/// Whether a file is a cubin.
///
/// # Errors
/// When it cannot be read.
pub fn is_cubin(path: &Path) -> Result<bool> {
    const HEADER: u64 = 64;
    let mut begin = Vec::new();
    let read = open(path)?.take(HEADER).read_to_end(&mut begin);
    read.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(cubin::is_cubin(&begin))
}

/// The code objects in a directory and those below it, by the extensions that they have. Links to directories are not followed.
///
/// # Errors
/// When a directory cannot be read, or has no such file.
pub fn code_objects(directory: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut unread) = (Vec::new(), vec![directory.to_path_buf()]);
    while let Some(directory) = unread.pop() {
        let failed = || format!("cannot read the directory {}", directory.display());
        for entry in fs::read_dir(&directory).with_context(failed)? {
            let entry = entry.with_context(failed)?;
            let path = entry.path();
            if entry.file_type().with_context(failed)?.is_dir() {
                unread.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
            {
                found.push(path);
            }
        }
    }
    if found.is_empty() {
        bail!(
            "{} has no .hsaco, .co or .cubin file, and none is below it: give a code object, a program, a library or a trace by its name",
            directory.display()
        );
    }
    found.sort();
    Ok(found)
}

/// Hands each code object in the file to `visit`, until that says to stop or fails. One at a time is in memory.
///
/// # Errors
/// When the file has none or is damaged (those in front of the damage have been visited), and those of `visit`.
pub fn each_object(path: &Path, mut visit: impl FnMut(FoundObject) -> Result<ControlFlow<()>>) -> Result<()> {
    let file = open(path)?;
    let shown = path.display();
    let (mut found, mut failed) = (0_u64, None);
    let read = container::each(&file, |part| {
        found += 1;
        let place = match part.target {
            Some(_) => format!("{shown} at {}", part.place.start),
            None => shown.to_string(),
        };
        match visit(FoundObject { place, bytes: part.bytes.into_owned() }) {
            Ok(flow) => flow,
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    read.with_context(|| shown.to_string())?;
    if found == 0 {
        bail!("{shown} has no code for GPUs");
    }
    Ok(())
}

impl FoundObject {
    /// Its kernels, in the order of the file, and their arguments if asked for.
    ///
    /// # Errors
    /// When it cannot be read as a code object.
    pub fn kernels(&self, assumed: Assumed, with_arguments: bool) -> Result<Vec<KernelFacts>> {
        let mut kernels = Vec::new();
        self.each_kernel(|kernel, descriptor, target| {
            let facts = KernelFacts::of(kernel, descriptor, target, assumed);
            kernels.push(if with_arguments { facts.with_arguments(kernel) } else { facts });
        })?;
        Ok(kernels)
    }

    fn functions(&self) -> Result<Vec<Function<'_>>> {
        functions(&self.bytes).with_context(|| self.place.clone())
    }

    /// Hands each kernel to `visit`, with its descriptor where that is found and what the object is for.
    pub(super) fn each_kernel(
        &self,
        mut visit: impl FnMut(&Kernel, Option<&KernelDescriptor>, &Target),
    ) -> Result<()> {
        let object = CodeObject::parse(&self.bytes).with_context(|| self.place.clone())?;
        // Descriptors are AMD's.
        let functions = if cubin::is_cubin(&self.bytes) { Vec::new() } else { self.functions()? };
        let descriptors: HashMap<&str, KernelDescriptor> =
            functions.iter().filter_map(|function| Some((function.name, function.descriptor?))).collect();
        for kernel in &object.kernels {
            let name = kernel.symbol.strip_suffix(".kd").unwrap_or(&kernel.symbol);
            visit(kernel, descriptors.get(name), &object.target);
        }
        Ok(())
    }
}
