//! One file of the kernel cache, read: the code objects in it, and their kernels with their arguments.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rpd_codeobject::{CodeObject, Kernel};

use super::tree::Stamp;
use crate::gpu::code_objects::{origin::Origin, sha256};

/// Bytes that a file may have. Libraries with the kernels of a whole framework stay below it.
const MOST: u64 = 1 << 30;
/// Bytes by which a file is recognised.
const HEAD: usize = 24;

/// A file that was read.
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    /// Of its bytes, in hexadecimal digits.
    pub(super) sha256: String,
    /// Its code objects.
    pub(super) parts: Vec<Arc<Part>>,
    stamp: Stamp,
}

/// One code object of a file.
pub(super) struct Part {
    pub(super) code: CodeObject,
    /// Its variables, if it has any that the program could set.
    pub(super) variables: Vec<String>,
    /// Places of its kernels, by their symbols: libraries have thousands.
    by_symbol: HashMap<String, usize>,
}

impl Part {
    fn read(bytes: &[u8]) -> Result<Arc<Part>, Failure> {
        // The runtime would end the process over what is damaged.
        let code = rpd_codeobject::loadable(bytes)?;
        let variables = rpd_codeobject::variables(bytes)?;
        let places = code.kernels.iter().enumerate();
        let by_symbol = places.map(|(place, kernel)| (kernel.symbol.clone(), place)).collect();
        Ok(Arc::new(Part { code, variables, by_symbol }))
    }

    /// The kernel of that symbol.
    pub(super) fn kernel(&self, symbol: &str) -> Option<&Kernel> {
        self.code.kernels.get(*self.by_symbol.get(symbol)?)
    }
}

/// Why a file cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It is not there any more, or has other bytes: the tree tells of what is there now.
    Changed,
    /// In words.
    Useless(String),
}

impl<T: std::fmt::Display> From<T> for Failure {
    fn from(why: T) -> Failure {
        Failure::Useless(why.to_string())
    }
}

/// The bytes of a file.
struct Contents {
    bytes: Vec<u8>,
    stamp: Stamp,
}

impl Candidate {
    /// Reads it.
    ///
    /// # Errors
    /// Why it is of no use.
    pub(super) fn read(path: &Path) -> Result<Candidate, Failure> {
        let Contents { bytes, stamp } = contents(path)?;
        let parts = rpd_codeobject::container::code_objects(&bytes)?;
        let parts = parts.iter().map(|part| Part::read(&part.bytes)).collect::<Result<Vec<_>, _>>()?;
        if parts.is_empty() {
            return Err("it has no code object for an AMD GPU".into());
        }
        Ok(Candidate { path: path.to_path_buf(), sha256: sha256(&bytes), parts, stamp })
    }

    /// The bytes of the code object `part`, as they were when it was read, and where in the file they are.
    ///
    /// # Errors
    /// The file has changed or cannot be read.
    pub(super) fn code(&self, part: usize) -> Result<(Vec<u8>, Origin), Failure> {
        let Contents { bytes, stamp } = contents(&self.path)?;
        if stamp != self.stamp {
            return Err(Failure::Changed);
        }
        let parts = rpd_codeobject::container::code_objects(&bytes)?;
        let part = parts.get(part).ok_or(Failure::Changed)?;
        let place = &part.place;
        let origin = Origin::of_file(self.path.clone(), place.start, place.end - place.start);
        Ok((part.bytes.to_vec(), origin))
    }
}

fn contents(path: &Path) -> Result<Contents, Failure> {
    let error = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => Failure::Changed,
        _ => Failure::Useless(format!("it cannot be read ({error})")),
    };
    // A pipe that nobody writes must not keep this thread.
    let mut options = OpenOptions::new();
    let mut file: File = options.read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(error)?;
    let metadata = file.metadata().map_err(error)?;
    if !metadata.is_file() {
        return Err("it is not a regular file".into());
    }
    if metadata.len() > MOST {
        return Err(format!("it has {} bytes; a candidate has {MOST} at most", metadata.len()).into());
    }
    let mut bytes = Vec::new();
    // Large files of something else are not read to the end.
    (&mut file).take(HEAD as u64).read_to_end(&mut bytes).map_err(error)?;
    let is_known =
        [&b"\x7fELF"[..], b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"].iter().any(|magic| bytes.starts_with(magic));
    if !is_known {
        return Err(rpd_codeobject::Error::UnknownFormat.into());
    }
    (&mut file).take(MOST).read_to_end(&mut bytes).map_err(error)?;
    Ok(Contents { bytes, stamp: Stamp::of(&metadata) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_code_object_is_refused_with_a_reason() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let refusal = |name: &str| match Candidate::read(&path(name)).err() {
            Some(Failure::Useless(why)) => why,
            other => format!("{other:?}"),
        };
        assert_eq!(refusal("missing.hsaco"), "Some(Changed)", "it was removed a moment ago");
        assert_eq!(refusal(""), "it is not a regular file");
        std::fs::write(path("text.hsaco"), "hello").unwrap();
        assert!(refusal("text.hsaco").contains("not a code object"), "{}", refusal("text.hsaco"));
        // 2 GB of zeros, which take no room on the disk.
        File::create(path("zeros.hsaco")).unwrap().set_len(2 << 30).unwrap();
        assert!(refusal("zeros.hsaco").contains("2147483648 bytes"), "{}", refusal("zeros.hsaco"));
        File::create(path("less.hsaco")).unwrap().set_len(1 << 29).unwrap();
        assert!(refusal("less.hsaco").contains("not a code object"), "{}", refusal("less.hsaco"));
        let pipe = std::ffi::CString::new(path("pipe.hsaco").to_str().unwrap()).unwrap();
        // SAFETY: a NUL-terminated path.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        assert_eq!(refusal("pipe.hsaco"), "it is not a regular file");
    }
}
