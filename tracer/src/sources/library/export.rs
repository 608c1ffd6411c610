//! Symbol interposition: what librpd_libraries.so asks.

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rpd_preload::library;
use rpd_transport::recorder;

use super::config;
use crate::guard::guard;
use crate::library_call::{self, Library};

/// The functions that RCCL and NCCL share are RCCL's here.
static IS_RCCL: AtomicBool = AtomicBool::new(false);

/// What librpd_libraries.so is to call for the function `name`, of which `original` is the library's own. Asked once for each function, at
/// its first call.
///
/// # Safety
/// `name` is NUL-terminated; `original` is that function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rpd_library_symbol(
    name: *const c_char,
    original: *mut c_void,
) -> *mut c_void {
    guard(original, || {
        // SAFETY: the caller's promise.
        let name = unsafe { CStr::from_ptr(name) };
        function(name, original as usize).map_or(original, |function| function as *mut c_void)
    })
}

fn function(name: &CStr, original: usize) -> Option<usize> {
    recorder::get()?;
    let text = name.to_str().ok()?;
    let library = library_call::library_of(text)?;
    if !config::is_wanted(library) {
        return None;
    }
    // SAFETY: the library whose function is about to be called.
    let file = unsafe { library::of_address(original as *const c_void) }.unwrap_or_default();
    if library == Library::Nccl {
        let name = file.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        // By itself, or linked into PyTorch's library for HIP.
        let has = |part: &[u8]| name.windows(part.len()).any(|window| window == part);
        IS_RCCL.store(has(b"rccl") || has(b"hip"), Ordering::Relaxed);
    }
    let version = match library {
        Library::RocSparse => version(Path::new(OsStr::from_bytes(file.to_bytes()))),
        _ => String::new(),
    };
    library_call::stand_in(text, &version, original)
}

/// The first number behind `.so` in the name of the file that this name leads to; nothing where there is none.
fn version(file: &Path) -> String {
    let file = fs::canonicalize(file).unwrap_or_default();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let version = name.split_once(".so.").map_or("", |(_, version)| version);
    version.split('.').next().unwrap_or_default().to_string()
}

/// What calls of `library` are called in the file.
pub(super) fn domain(library: Library) -> &'static str {
    match library.names() {
        [nccl, rccl] => {
            if IS_RCCL.load(Ordering::Relaxed) {
                rccl
            } else {
                nccl
            }
        }
        names => names.first().copied().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_library_is_that_of_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        for (name, expected) in [
            ("librocsparse.so.0.1.50703", "0"),
            ("librocsparse.so.1", "1"),
            ("librocsparse.so", ""),
            ("static_program", ""),
        ] {
            let file = dir.path().join(name);
            fs::write(&file, "").unwrap();
            assert_eq!(version(&file), expected);
            std::os::unix::fs::symlink(&file, &link).unwrap();
            assert_eq!(version(&link), expected);
            fs::remove_file(&link).unwrap();
        }
    }
}
