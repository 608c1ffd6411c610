//! Getting the recorder into the command: where librpd_tracer.so is, and the value of LD_PRELOAD.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The recorder's file name.
pub(crate) const LIBRARY: &str = "librpd_tracer.so";
/// The library with HIP's names, installed beside it.
pub(crate) const SYMBOLS: &str = "librpd_hip.so";
/// The library with the names of GPU libraries' functions, installed beside it.
pub(crate) const LIBRARY_SYMBOLS: &str = "librpd_libraries.so";
/// Names the recorder, or the directory it is in, before any other place.
const PATH_VARIABLE: &str = "RPD_TRACER_PATH";

/// The recorder's absolute path: RPD_TRACER_PATH if that is set, otherwise beside this program or where
/// an installation puts it.
///
/// # Errors
/// When there is none (the message says where it was looked for), or when its path cannot be written
/// into LD_PRELOAD.
pub(crate) fn find_library() -> Result<PathBuf> {
    let program = env::current_exe().context("cannot find the directory of the rpd program")?;
    let given = env::var_os(PATH_VARIABLE).filter(|given| !given.is_empty());
    let places = match &given {
        Some(given) => vec![PathBuf::from(given), Path::new(given).join(LIBRARY)],
        None => beside(&program),
    };
    let Some(found) = places.iter().find(|place| place.is_file()) else {
        let searched: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        match &given {
            Some(_) => bail!(
                "the recorder is not where {PATH_VARIABLE} says: neither {} is a file; \
                 correct or unset the variable",
                searched.join(" nor ")
            ),
            None => bail!(
                "cannot find the recorder {LIBRARY}: searched {}; set {PATH_VARIABLE} to where it is",
                searched.join(", ")
            ),
        }
    };
    let library = found.canonicalize().with_context(|| format!("cannot resolve {}", found.display()))?;
    if library.as_os_str().as_bytes().iter().any(|byte| separates(*byte)) {
        bail!(
            "cannot preload {:?}: the dynamic loader splits LD_PRELOAD at blanks and colons; \
             copy the recorder to a path without them and set {PATH_VARIABLE}",
            library.display()
        );
    }
    Ok(library)
}

/// The library of that name in the directory of the recorder.
///
/// # Errors
/// When there is none.
pub(crate) fn beside_library(library: &Path, name: &str) -> Result<PathBuf> {
    let place = library.with_file_name(name);
    if !place.is_file() {
        bail!("cannot find {}, which belongs beside {LIBRARY}; install rpd anew", place.display());
    }
    Ok(place)
}

/// Where the recorder is looked for, by where the rpd program is: a build directory, then an installation.
fn beside(program: &Path) -> Vec<PathBuf> {
    let directory = program.parent().unwrap_or(Path::new("/"));
    let prefix = directory.parent().unwrap_or(Path::new("/"));
    let installed = ["lib/rpd", "lib", "lib64"].map(|folder| prefix.join(folder).join(LIBRARY));
    std::iter::once(directory.join(LIBRARY)).chain(installed).collect()
}

/// The dynamic loader takes these between two libraries, and knows no quoting.
fn separates(byte: u8) -> bool {
    byte == b':' || byte == b' '
}

/// LD_PRELOAD with our libraries first and once, and everything that was there behind them.
pub(crate) fn ld_preload(libraries: &[&Path], before: Option<&OsStr>) -> OsString {
    let ours: Vec<&[u8]> = libraries.iter().map(|library| library.as_os_str().as_bytes()).collect();
    let mut value = ours.join(&b':');
    for kept in before.unwrap_or_default().as_bytes().split(|byte| separates(*byte)) {
        if !kept.is_empty() && !ours.contains(&kept) {
            value.push(b':');
            value.extend_from_slice(kept);
        }
    }
    OsString::from_vec(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorder_is_first_and_once() {
        let [recorder, symbols] = ["/l/librpd_tracer.so", "/l/librpd_hip.so"].map(Path::new);
        assert_eq!(ld_preload(&[recorder], None), "/l/librpd_tracer.so");
        let before = Some(OsStr::new("a.so b.so:/l/librpd_tracer.so::c.so"));
        assert_eq!(ld_preload(&[recorder], before), "/l/librpd_tracer.so:a.so:b.so:c.so");
        assert_eq!(
            ld_preload(&[recorder, symbols], before),
            "/l/librpd_tracer.so:/l/librpd_hip.so:a.so:b.so:c.so"
        );
    }

    #[test]
    fn a_build_directory_comes_before_an_installation() {
        let places = beside(Path::new("/usr/local/bin/rpd"));
        let expected =
            ["bin", "lib/rpd", "lib", "lib64"].map(|at| Path::new("/usr/local").join(at).join(LIBRARY));
        assert_eq!(places, expected);
    }
}
