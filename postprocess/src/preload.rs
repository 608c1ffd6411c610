//! Getting the recorder into the command: where librpd_tracer.so is, and the value of LD_PRELOAD.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The recorder's file name.
pub(crate) const LIBRARY: &str = "librpd_tracer.so";
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

/// Where the recorder is looked for, by where the rpd program is: a build directory, then an installation.
fn beside(program: &Path) -> Vec<PathBuf> {
    let directory = program.parent().unwrap_or(Path::new("/"));
    let prefix = directory.parent().unwrap_or(Path::new("/"));
    vec![directory.join(LIBRARY), prefix.join("lib/rpd").join(LIBRARY), prefix.join("lib").join(LIBRARY)]
}

/// The dynamic loader takes these between two libraries, and knows no quoting.
fn separates(byte: u8) -> bool {
    byte == b':' || byte == b' '
}

/// LD_PRELOAD with the recorder first and once, and everything that was there behind it.
pub(crate) fn ld_preload(library: &Path, before: Option<&OsStr>) -> OsString {
    let library = library.as_os_str().as_bytes();
    let mut value = library.to_vec();
    for kept in before.unwrap_or_default().as_bytes().split(|byte| separates(*byte)) {
        if !kept.is_empty() && kept != library {
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
        let library = Path::new("/l/librpd_tracer.so");
        assert_eq!(ld_preload(library, None), "/l/librpd_tracer.so");
        assert_eq!(
            ld_preload(library, Some(OsStr::new("a.so b.so:/l/librpd_tracer.so::c.so"))),
            "/l/librpd_tracer.so:a.so:b.so:c.so"
        );
    }

    #[test]
    fn a_build_directory_comes_before_an_installation() {
        let places = beside(Path::new("/usr/local/bin/rpd"));
        let expected = ["bin", "lib/rpd", "lib"].map(|at| Path::new("/usr/local").join(at).join(LIBRARY));
        assert_eq!(places, expected);
    }
}
