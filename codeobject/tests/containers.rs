//! Code objects inside bundles and host files, and what is said about files that hold none.

use std::fs;
use std::path::PathBuf;

use rpd_codeobject::container::{Part, code_objects};
use rpd_codeobject::{CodeObject, Error};

fn bytes(file: &str) -> Vec<u8> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "data", file].iter().collect();
    fs::read(path).expect(file)
}

/// A bundle of these parts, as compilers lay it out.
fn bundle(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut header = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    header.extend((parts.len() as u64).to_le_bytes());
    let mut body: Vec<u8> = Vec::new();
    for (id, part) in parts {
        header.extend((4096 + body.len() as u64).to_le_bytes());
        header.extend((part.len() as u64).to_le_bytes());
        header.extend((id.len() as u64).to_le_bytes());
        header.extend(id.as_bytes());
        body.extend(*part);
    }
    header.resize(4096, 0);
    header.extend(body);
    header
}

fn targets<'a>(parts: &[Part<'a>]) -> Vec<Option<&'a str>> {
    parts.iter().map(|part| part.target).collect()
}

#[test]
fn a_bare_code_object_is_its_own_only_part() {
    let object = bytes("gfx906-v4.co");
    assert_eq!(code_objects(&object).unwrap(), [Part { target: None, bytes: &object }]);
}

#[test]
fn a_library_of_two_translation_units_has_two_bundles() {
    let library = bytes("two_units.so");
    let parts = code_objects(&library).unwrap();
    let both = [Some("gfx900"), Some("gfx90a:xnack-")];
    assert_eq!(targets(&parts), [both, both].concat());
    let kernels = parts.iter().map(|part| {
        let object = CodeObject::parse(part.bytes).unwrap();
        // The container and the object agree on what it is for.
        assert_eq!(Some(object.target.to_string().as_str()), part.target);
        object.kernels[0].demangled()
    });
    assert_eq!(kernels.collect::<Vec<_>>(), ["first(int*)", "first(int*)", "second(int*)", "second(int*)"]);
}

#[test]
fn parts_of_the_host_and_empty_parts_are_left_out() {
    let object = bytes("gfx900-v3.co");
    let bundle = bundle(&[
        ("host-x86_64-unknown-linux-", b""),
        ("host-x86_64-unknown-linux-gnu-", b"host code"),
        ("hip-amdgcn-amd-amdhsa-gfx803", &object),
        ("hip-amdgcn-amd-amdhsa--gfx900", &object),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", &object),
        ("hipv4-amdgcn-amd-amdhsa--gfx1030", b""),
        ("openmp-nvptx64--sm_70", b"other code"),
        ("nonsense", b"what"),
    ]);
    let parts = code_objects(&bundle).unwrap();
    assert_eq!(targets(&parts), [Some("gfx803"), Some("gfx900"), Some("gfx90a:sramecc+:xnack-")]);
    assert!(parts.iter().all(|part| part.bytes == object));
}

#[test]
fn bundles_follow_one_another_with_gaps() {
    let object = bytes("gfx906-v4.co");
    let mut file = bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx906", &object)]);
    // The end of the first is padded, then a page of nothing.
    file.resize(file.len().next_multiple_of(4096) + 4096, 0);
    file.extend(bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx900", &object[..100])]));
    assert_eq!(targets(&code_objects(&file).unwrap()), [Some("gfx906"), Some("gfx900")]);
}

#[test]
fn compressed_bundles_are_recognised() {
    for (method, name) in [(0, "zlib"), (1, "zstd"), (9, "an unknown method")] {
        let mut file = b"CCOB\x02\0".to_vec();
        file.extend([method, 0, 40, 0, 0, 0]);
        let error = code_objects(&file).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }));
        let text = error.to_string();
        assert!(text.contains("compressed") && text.contains(name) && text.contains("unbundle"), "{text}");
    }
}

#[test]
fn other_files_are_distinguished() {
    let host = fs::read(std::env::current_exe().unwrap()).unwrap();
    assert!(matches!(code_objects(&host), Err(Error::OtherMachine { .. })));
    assert!(matches!(CodeObject::parse(&host), Err(Error::OtherMachine { .. })));
    for nothing in [&b""[..], b"\x7fEL", b"#!/bin/sh\n", b"__CLANG_OFFLOAD_BUNDLE_", &[0; 8192]] {
        assert_eq!(code_objects(nothing), Err(Error::UnknownFormat));
        assert_eq!(CodeObject::parse(nothing), Err(Error::UnknownFormat));
    }
    assert_eq!(CodeObject::parse(&bundle(&[])), Err(Error::UnknownFormat));
    assert_eq!(code_objects(&bundle(&[])), Ok(vec![]));
}

#[test]
fn a_bundle_that_points_outside_is_damaged() {
    let object = bytes("gfx906-v4.co");
    let good = bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx906", &object)]);
    let with = |at: usize, value: u64| {
        let mut bad = good.clone();
        bad[at..at + 8].copy_from_slice(&value.to_le_bytes());
        code_objects(&bad).unwrap_err()
    };
    for huge in [good.len() as u64, u64::MAX, u64::MAX - 4095, 1 << 63] {
        assert!(matches!(with(32, huge), Error::Malformed { part: "offload bundle", .. }), "offset {huge}");
        assert!(matches!(with(40, huge), Error::Malformed { part: "offload bundle", .. }), "size {huge}");
        assert!(matches!(with(48, huge), Error::Malformed { part: "offload bundle", .. }), "length {huge}");
        assert!(matches!(with(24, huge), Error::TooLarge { .. }), "count {huge}");
    }
    assert!(code_objects(&good[..good.len() - 1]).is_err());
}
