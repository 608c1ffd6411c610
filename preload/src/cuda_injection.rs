//! `CUDA_INJECTION64_PATH`: the one library that CUDA's driver loads in a process's first cuInit, and whose `InitializeInjection` it calls
//! then (CUDA's documentation of CUPTI, "CUDA injection").

use std::ffi::{CStr, OsStr, c_int};
use std::os::unix::ffi::OsStrExt;

use crate::environment;
use crate::library::file_name;

/// `InitializeInjection`. The driver asks no more of the answer than that there is one.
pub type InitializeInjection = extern "C-unwind" fn() -> c_int;

/// Who is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// Nobody was, or another copy of the caller's library: now it is the caller's own.
    Nobody,
    /// The caller's own library.
    Own,
    /// A library of that file name, of those that the caller knows.
    Known,
    /// Another tool's.
    Another,
}

/// Names `own` where nobody is named. `known`: file names of other libraries of ours.
pub fn claim(own: &CStr, known: &[&str]) -> Named {
    let named = named_by(std::env::var_os("CUDA_INJECTION64_PATH").as_deref(), own, known);
    if named == Named::Nobody {
        replace(own);
    }
    named
}

/// Names `own`, whoever is named.
pub fn replace(own: &CStr) {
    environment::put(c"CUDA_INJECTION64_PATH", own);
}

fn named_by(value: Option<&OsStr>, own: &CStr, known: &[&str]) -> Named {
    match value.map(OsStr::as_bytes) {
        None | Some(b"") => Named::Nobody,
        Some(path) if path == own.to_bytes() => Named::Own,
        // Another installation's: two recorders in a process would have one CUPTI between them.
        Some(path) if file_name(path) == file_name(own.to_bytes()) => Named::Nobody,
        Some(path) if known.iter().any(|known| known.as_bytes() == file_name(path)) => Named::Known,
        Some(_) => Named::Another,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_of_others_are_known() {
        let named = |value: Option<&str>| named_by(value.map(OsStr::new), c"/a/libown.so", &["libours.so"]);
        assert_eq!(named(None), Named::Nobody);
        assert_eq!(named(Some("")), Named::Nobody);
        assert_eq!(named(Some("/a/libown.so")), Named::Own);
        // Another copy of the own library would be loaded beside this one.
        assert_eq!(named(Some("/b/libown.so")), Named::Nobody);
        assert_eq!(named(Some("/b/libours.so")), Named::Known);
        assert_eq!(named(Some("libours.so")), Named::Known);
        assert_eq!(named(Some("/opt/libToolsInjection64.so")), Named::Another);
    }
}
