//! Names from libraries that a C compiler makes here.

use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSymbol};

use super::*;
use crate::stack::module::FileIdentity;

const SOURCE: &str = "
static inline __attribute__((always_inline)) int inner(volatile int *p) {
    return *p + 1; /* line 3 */
}
__attribute__((noinline)) int outer(volatile int *p) {
    return inner(p) * 2; /* line 6 */
}
";

/// A library of SOURCE, made with these options.
fn library(folder: &Path, name: &str, options: &[&str]) -> PathBuf {
    let (source, path) = (folder.join("source.c"), folder.join(name));
    std::fs::write(&source, SOURCE).unwrap();
    let mut cc = Command::new("cc");
    cc.current_dir(folder).args(["-shared", "-fPIC", "-O2"]).args(options).arg(&source).arg("-o").arg(&path);
    assert!(cc.status().unwrap().success(), "{cc:?}");
    path
}

/// The module that would be loaded from there, and the address of `outer` in it.
fn module(path: &Path) -> (Module, u64) {
    let bytes = std::fs::read(path).unwrap();
    let elf = object::read::elf::ElfFile64::<object::LittleEndian>::parse(&*bytes).unwrap();
    let outer = elf.dynamic_symbols().find(|symbol| symbol.name() == Ok("outer")).unwrap().address();
    let identity = match elf.build_id().unwrap() {
        Some(id) => FileIdentity::BuildId(id.to_vec()),
        None => FileIdentity::Headers(object::pod::bytes_of_slice(elf.elf_program_headers()).to_vec()),
    };
    (Module { path: path.to_path_buf(), identity: Some(identity) }, outer)
}

fn names(module: &Module, address: u64) -> Vec<String> {
    Symbols::default().names_in(1, module, address, rpd_codeobject::demangle)
}

#[test]
fn what_a_file_says_decides() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source.c");
    for (options, expected) in [
        // In the order of the brief: inlined functions have frames of their own, the innermost first.
        (&["-g"][..], vec![format!("inner {}:3", source.display()), format!("outer {}:6", source.display())]),
        (
            &["-g", "-gz"],
            vec![format!("inner {}:3", source.display()), format!("outer {}:6", source.display())],
        ),
        (
            &["-g", "-Wl,--build-id=none"],
            vec![format!("inner {}:3", source.display()), format!("outer {}:6", source.display())],
        ),
        (&[], vec!["outer (lib.so)".to_string()]),
        (&["-s"], vec!["outer (lib.so)".to_string()]),
    ] {
        let path = library(folder.path(), "lib.so", options);
        let (module, outer) = module(&path);
        assert_eq!(names(&module, outer), expected, "{options:?}");
        assert_eq!(names(&module, 0x10), ["lib.so+0x10"], "no function there");
    }
}

#[test]
fn debug_information_in_a_file_of_its_own_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = library(folder.path(), "lib.so", &["-g", "-Wl,--build-id"]);
    let objcopy = |arguments: &[&str]| {
        let mut objcopy = Command::new("objcopy");
        objcopy.current_dir(folder.path()).args(arguments);
        assert!(objcopy.status().unwrap().success(), "{objcopy:?}");
    };
    objcopy(&["--only-keep-debug", "lib.so", "lib.so.debug"]);
    objcopy(&["--strip-all", "--add-gnu-debuglink=lib.so.debug", "lib.so"]);
    let (module, outer) = module(&path);
    assert_eq!(names(&module, outer).len(), 2, "{:?}", names(&module, outer));
    // Debug information of another build is not this one's.
    library(folder.path(), "lib.so.debug", &["-g", "-O0", "-Wl,--build-id"]);
    assert_eq!(names(&module, outer), ["outer (lib.so)"]);
}

#[test]
fn a_file_that_is_not_the_one_loaded_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for options in [&["-Wl,--build-id"][..], &["-Wl,--build-id=none"]] {
        let path = library(folder.path(), "lib.so", options);
        let (module, outer) = module(&path);
        assert_eq!(names(&module, outer), ["outer (lib.so)"]);
        let unnamed = [format!("lib.so+{outer:#x}")];
        library(folder.path(), "lib.so", &[options, &["-O0", "-Wl,-z,now"]].concat());
        assert_eq!(names(&module, outer), unnamed, "rebuilt");
        for contents in [&b""[..], b"\x7fELF", b"no library"] {
            std::fs::write(&path, contents).unwrap();
            assert_eq!(names(&module, outer), unnamed);
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(names(&module, outer), unnamed);
    }
    let kernels = Module { path: "linux-vdso.so.1".into(), identity: None };
    assert_eq!(names(&kernels, 0x5f0), ["linux-vdso.so.1+0x5f0"]);
}
