//! One file of the kernel cache, read: the code objects in it, and their kernels with their arguments.

use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rpd_codeobject::{CodeObject, Kernel, TritonBuild};

use super::tree::Stamp;
use crate::gpu::code_objects::{origin::CodeLocation, sha256};

/// Bytes that a file may have. Libraries with the kernels of a whole framework stay below it.
const MOST: u64 = 1 << 30;
/// Bytes that a text of Triton's may have.
const MOST_TEXT: u64 = 64 << 20;
/// What Triton calls the description of a build, which it writes last, and the program that the build is of.
pub(super) const DESCRIPTION: &str = "json";
const TTIR: &str = "ttir";
/// Bytes by which a file is recognised.
const HEAD: usize = 24;

/// A file that was read.
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    /// Of its bytes, in hexadecimal digits.
    pub(super) sha256: String,
    /// Its code objects.
    pub(super) parts: Vec<Arc<CandidatePart>>,
    /// Where it is a build of Triton's.
    pub(super) triton: Option<Arc<Triton>>,
    stamp: Stamp,
}

/// What Triton has written beside a code object.
pub(super) struct Triton {
    /// How its kernel is launched.
    pub(super) build: TritonBuild,
    /// What it was made of ([`TritonBuild::program`]), where that can be read.
    pub(super) program: Option<String>,
}

impl Triton {
    /// What lies beside the file; nothing where Triton has written nothing there.
    ///
    /// # Errors
    /// Why it is of no use.
    fn beside(path: &Path) -> Result<Option<Triton>, CandidateError> {
        let beside = |extension| {
            let path = path.with_extension(extension);
            let why = |why| CandidateError::Useless(format!("{}: {why}", path.display()));
            match open(&path, MOST_TEXT) {
                Ok((file, _)) => {
                    let mut text = Vec::new();
                    file.take(MOST_TEXT).read_to_end(&mut text).map_err(|error| why(error.to_string()))?;
                    Ok(Some(text))
                }
                Err(CandidateError::Useless(reason)) => Err(why(reason)),
                Err(_) => Ok(None),
            }
        };
        let program = beside(TTIR)?;
        let program = program.map(|text| TritonBuild::program(&String::from_utf8_lossy(&text)));
        let build = beside(DESCRIPTION)?.map(|text| TritonBuild::parse(&text));
        match (build, program) {
            (Some(Ok(build)), program) => Ok(Some(Triton { build, program })),
            (Some(Err(why)), Some(_)) => {
                Err(format!("{}: {why}", path.with_extension(DESCRIPTION).display()).into())
            }
            // Somebody else's.
            (_, None) => Ok(None),
            // The last file that Triton writes.
            (None, Some(_)) => Err(CandidateError::Incomplete(format!(
                "{} is not there, which says how the kernel is launched",
                path.with_extension(DESCRIPTION).display()
            ))),
        }
    }
}

/// One code object of a file.
pub(super) struct CandidatePart {
    pub(super) code: CodeObject,
    /// Its variables, if it has any that the program could set.
    pub(super) variables: Vec<String>,
    /// Places of its kernels, by their symbols: libraries have thousands.
    by_symbol: HashMap<String, usize>,
}

impl CandidatePart {
    fn read(bytes: &[u8]) -> Result<Arc<CandidatePart>, CandidateError> {
        // The runtime would end the process over what is damaged.
        let code = rpd_codeobject::loadable(bytes)?;
        let variables = rpd_codeobject::variables(bytes)?;
        let places = code.kernels.iter().enumerate();
        let by_symbol = places.map(|(place, kernel)| (kernel.symbol.clone(), place)).collect();
        Ok(Arc::new(CandidatePart { code, variables, by_symbol }))
    }

    /// The kernel of that symbol.
    pub(super) fn kernel(&self, symbol: &str) -> Option<&Kernel> {
        self.code.kernels.get(*self.by_symbol.get(symbol)?)
    }
}

/// Why a file cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CandidateError {
    /// It is not there any more, or has other bytes: the tree tells of what is there now.
    Changed,
    /// Something beside it is not there yet, in words.
    Incomplete(String),
    /// In words.
    Useless(String),
}

impl<T: std::fmt::Display> From<T> for CandidateError {
    fn from(why: T) -> CandidateError {
        CandidateError::Useless(why.to_string())
    }
}

/// The bytes of a file.
struct CandidateBytes {
    bytes: Vec<u8>,
    stamp: Stamp,
}

impl Candidate {
    /// Reads it.
    ///
    /// # Errors
    /// Why it is of no use.
    pub(super) fn read(path: &Path) -> Result<Candidate, CandidateError> {
        let CandidateBytes { bytes, stamp } = contents(path)?;
        let parts = rpd_codeobject::container::code_objects(&bytes)?;
        let parts =
            parts.iter().map(|part| CandidatePart::read(&part.bytes)).collect::<Result<Vec<_>, _>>()?;
        if parts.is_empty() {
            return Err("it has no code object for an AMD GPU".into());
        }
        let triton = Triton::beside(path)?.map(Arc::new);
        Ok(Candidate { path: path.to_path_buf(), sha256: sha256(&bytes), parts, triton, stamp })
    }

    /// The bytes of the code object `part`, as they were when it was read, and where in the file they are.
    ///
    /// # Errors
    /// The file has changed or cannot be read.
    pub(super) fn code(&self, part: usize) -> Result<(Vec<u8>, CodeLocation), CandidateError> {
        let CandidateBytes { bytes, stamp } = contents(&self.path)?;
        if stamp != self.stamp {
            return Err(CandidateError::Changed);
        }
        let parts = rpd_codeobject::container::code_objects(&bytes)?;
        let part = parts.get(part).ok_or(CandidateError::Changed)?;
        let place = &part.place;
        let origin = CodeLocation::of_file(self.path.clone(), place.start, place.end - place.start);
        Ok((part.bytes.to_vec(), origin))
    }
}

/// Opens a regular file of `most` bytes at most.
fn open(path: &Path, most: u64) -> Result<(File, Metadata), CandidateError> {
    let error = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => CandidateError::Changed,
        _ => CandidateError::Useless(format!("it cannot be read ({error})")),
    };
    // A pipe that nobody writes must not keep this thread.
    let mut options = OpenOptions::new();
    let file: File = options.read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(error)?;
    let metadata = file.metadata().map_err(error)?;
    if !metadata.is_file() {
        return Err("it is not a regular file".into());
    }
    if metadata.len() > most {
        return Err(format!("it has {} bytes, of {most} at most", metadata.len()).into());
    }
    Ok((file, metadata))
}

fn contents(path: &Path) -> Result<CandidateBytes, CandidateError> {
    let (mut file, metadata) = open(path, MOST)?;
    let error = |error: std::io::Error| CandidateError::Useless(format!("it cannot be read ({error})"));
    let mut bytes = Vec::new();
    // Large files of something else are not read to the end.
    (&mut file).take(HEAD as u64).read_to_end(&mut bytes).map_err(error)?;
    let is_known =
        [&b"\x7fELF"[..], b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"].iter().any(|magic| bytes.starts_with(magic));
    if !is_known {
        return Err(rpd_codeobject::Error::UnknownFormat.into());
    }
    (&mut file).take(MOST).read_to_end(&mut bytes).map_err(error)?;
    Ok(CandidateBytes { bytes, stamp: Stamp::of(&metadata) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_code_object_is_refused_with_a_reason() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let refusal = |name: &str| match Candidate::read(&path(name)).err() {
            Some(CandidateError::Useless(why)) => why,
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
