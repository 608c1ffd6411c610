//! The programs of tests/programs/hazards, compiled once.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::harness::tool;

/// The repository.
pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// `target`, of which this test program is `target/<profile>/deps/<name>`.
pub(super) fn target() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_path_buf()
}

/// The source file of that name; scripts are run as they are.
pub(super) fn source(file: &str) -> PathBuf {
    root().join("tests/programs/hazards").join(file)
}

/// The program of that name.
///
/// # Panics
/// When there is no such source or it does not compile.
pub(crate) fn hazard(name: &str) -> PathBuf {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let compilers: [(&str, &str, &[&str]); 3] = [
        ("c", "cc", &["-Wall", "-Wextra", "-Werror"]),
        ("cpp", "c++", &["-Wall", "-Wextra", "-Werror"]),
        ("hip", "hipcc", &["--offload-arch=gfx900"]),
    ];
    let mut known = compilers.iter().map(|(ending, ..)| source(&format!("{name}.{ending}")));
    let place = known.position(|path| path.exists());
    let place = place.unwrap_or_else(|| panic!("tests/programs/hazards has no program {name}"));
    let (ending, compiler, options) = compilers[place];
    // The sanitizer's own part in the program: as a library it would have to come first in LD_PRELOAD.
    let sanitizer: &[&str] = match name {
        "sanitized" => &["-fsanitize=address", "-static-libasan"],
        "sanitized_threads" => &["-fsanitize=thread", "-static-libtsan"],
        _ => &[],
    };
    let source_file = source(&format!("{name}.{ending}"));
    let program = target().join("programs").join(format!("hazards-{:016x}", contents())).join(name);
    if program.exists() {
        return program;
    }
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    // Under another name first: another test program may be doing the same.
    let part = program.with_extension(std::process::id().to_string());
    let mut arguments: Vec<OsString> =
        vec!["-O2".into(), source_file.into(), "-o".into(), part.clone().into()];
    arguments.extend(options.iter().chain(sanitizer).map(OsString::from));
    arguments.extend(["-Wl,--as-needed", "-ldl", "-lpthread", "-lhsa-runtime64"].map(OsString::from));
    tool(compiler, &arguments);
    std::fs::rename(part, &program).unwrap();
    program
}

/// A number for what all sources say: what is compiled under it is up to date.
fn contents() -> u64 {
    let mut files: Vec<_> =
        std::fs::read_dir(source("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut hash = DefaultHasher::new();
    for file in files {
        std::fs::read(file).unwrap().hash(&mut hash);
    }
    hash.finish()
}
