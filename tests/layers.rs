//! `scripts/circles`: known circles and imports upwards in trees of a few files make it fail, and it says which imports to cut.

use std::fs;
use std::process::Output;

use crate::harness::{Dir, command};

/// What the script says of a tree with these files.
fn checked(files: &[(&str, &str)]) -> (Option<i32>, String) {
    let dir = Dir::new();
    for (file, text) in files {
        let path = dir.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/circles");
    let Output { status, stdout, stderr } = command(script).arg(dir.path("")).output().unwrap();
    assert!(stderr.is_empty(), "{}", String::from_utf8_lossy(&stderr));
    (status.code(), String::from_utf8(stdout).unwrap())
}

/// A crate `schema` whose modules need each other in a ring, and what the script says of it.
fn ring(modules: usize) -> (Option<i32>, String) {
    let module = |at: usize| {
        let text = format!("use crate::m{}::Item;\npub struct Item(Box<Item>);", (at + 1) % modules);
        (format!("schema/src/m{at}.rs"), text)
    };
    let modules: Vec<_> = (0..modules).map(module).collect();
    let files = modules.iter().map(|(file, text)| (&**file, &**text));
    checked(&files.chain([("schema/Cargo.toml", "[package]\nname = 'rpd-schema'")]).collect::<Vec<_>>())
}

#[test]
fn a_circle_of_more_than_twelve_files_fails() {
    let (status, said) = ring(12);
    assert_eq!((status, said.lines().count()), (Some(0), 1), "{said}");
    let (status, said) = ring(13);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("schema: 13 modules need each other:\n"), "{said}");
    assert!(said.contains("\n    m12 -> m0: Item\n"), "{said}");
}

#[test]
fn a_circle_across_folders_fails() {
    let files = |below: &'static str| {
        checked(&[
            ("schema/Cargo.toml", "[package]\nname = 'rpd-schema'"),
            ("schema/src/a.rs", "mod b;"),
            ("schema/src/a/b.rs", "use crate::c::d::D;\npub struct B(D);"),
            ("schema/src/c.rs", "mod d;"),
            ("schema/src/c/d.rs", below),
        ])
    };
    assert_eq!(files("pub struct D;").0, Some(0));
    let (status, said) = files("pub struct D(Box<crate::a::b::B>);");
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains(
            "2 modules need each other, across folders:\n    a::b -> c::d: D\n    c::d -> a::b: B\n"
        ),
        "{said}"
    );
}

#[test]
fn an_import_of_a_layer_above_fails() {
    let files = |name: &'static str, text: &'static str| {
        checked(&[
            ("tracer/Cargo.toml", "[package]\nname = 'rpd-tracer'"),
            ("tracer/src/call.rs", "pub struct Call;"),
            ("tracer/src/sources.rs", "pub struct Sources;"),
            (name, text),
        ])
    };
    let below = files("tracer/src/sources/hip.rs", "use crate::call::Call;\npub struct Hip(Call);");
    assert_eq!(below.0, Some(0), "{}", below.1);
    let above = files("tracer/src/gpu.rs", "use crate::call::Call;\npub struct Gpu(Call);");
    assert_eq!(above.0, Some(1));
    assert!(above.1.contains("tracer: gpu may not need call: Call\n"), "{}", above.1);
    let beside = checked(&[
        ("tracer/Cargo.toml", "[package]\nname = 'rpd-tracer'"),
        ("tracer/src/sources/hip.rs", "pub struct Hip;"),
        ("tracer/src/sources/cuda.rs", "use crate::sources::hip::Hip;\npub struct Cuda(Hip);"),
    ]);
    assert_eq!(beside.0, Some(1));
    assert!(beside.1.contains("tracer: sources::cuda may not need sources::hip: Hip\n"), "{}", beside.1);
    let crates = checked(&[
        (
            "schema/Cargo.toml",
            "[package]\nname = 'rpd-schema'\n[dependencies]\nrpd-transport.workspace = true",
        ),
        ("schema/src/lib.rs", ""),
        ("transport/Cargo.toml", "[package]\nname = 'rpd-transport'"),
    ]);
    assert_eq!(crates.0, Some(1));
    assert!(crates.1.contains("schema may not need transport\n"), "{}", crates.1);
}
