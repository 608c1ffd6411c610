//! Code objects inside bundles and host files, and what is said about files that hold none.

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use rpd_codeobject::container::{Part, code_objects, each};
use rpd_codeobject::{CodeObject, Error};
use ruzstd::encoding::CompressionLevel;

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

fn targets<'a>(parts: &'a [Part<'_>]) -> Vec<Option<&'a str>> {
    parts.iter().map(|part| part.target.as_deref()).collect()
}

#[test]
fn a_bare_code_object_is_its_own_only_part() {
    let object = bytes("gfx906-v4.co");
    let whole = Part { target: None, place: 0..object.len() as u64, bytes: object.as_slice().into() };
    assert_eq!(code_objects(&object).unwrap(), [whole]);
}

#[test]
fn a_library_of_two_translation_units_has_two_bundles() {
    let library = bytes("two_units.so");
    let parts = code_objects(&library).unwrap();
    let both = [Some("gfx900"), Some("gfx90a:xnack-")];
    assert_eq!(targets(&parts), [both, both].concat());
    let kernels = parts.iter().map(|part| {
        let object = CodeObject::parse(&part.bytes).unwrap();
        // The container and the object agree on what it is for.
        assert_eq!(Some(object.target.to_string()), part.target);
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

/// A compressed bundle of that version, with a head that says `size`.
fn compressed(version: u16, method: u16, bundle: &[u8], size: u64) -> Vec<u8> {
    let body = match method {
        0 => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(bundle).expect("in memory");
            encoder.finish().expect("in memory")
        }
        _ => ruzstd::encoding::compress_to_vec(bundle, CompressionLevel::Fastest),
    };
    let mut file = [b"CCOB".as_slice(), &version.to_le_bytes(), &method.to_le_bytes()].concat();
    match version {
        1 => file.extend((size as u32).to_le_bytes()),
        2 => file.extend([24 + body.len() as u32, size as u32].map(u32::to_le_bytes).concat()),
        _ => file.extend([32 + body.len() as u64, size].map(u64::to_le_bytes).concat()),
    }
    file.extend([0; 8]);
    file.extend(body);
    file
}

#[test]
fn compressed_bundles_of_clang() {
    let (old, new) = (bytes("gfx900-v3.co"), bytes("gfx906-v4.co"));
    for file in ["compressed-v2.bundle", "compressed-v3.bundle"] {
        let file = bytes(file);
        let parts = code_objects(&file).unwrap();
        assert_eq!(targets(&parts), [Some("gfx906"), Some("gfx900")]);
        assert_eq!((&*parts[0].bytes, &*parts[1].bytes), (&new[..], &old[..]));
        assert!(parts.iter().all(|part| part.place == (0..file.len() as u64)));
    }
}

#[test]
fn compressed_bundles_of_all_versions_follow_one_another() {
    let object = bytes("gfx906-v4.co");
    let bundle = bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx906", &object)]);
    let mut file = vec![];
    for version in [1, 2, 3] {
        for method in [0, 1] {
            file.extend(compressed(version, method, &bundle, bundle.len() as u64));
            file.resize(file.len().next_multiple_of(4096), 0);
        }
    }
    file.extend(&bundle);
    let parts = code_objects(&file).unwrap();
    assert_eq!(targets(&parts), [Some("gfx906"); 7]);
    assert!(parts.iter().all(|part| part.bytes == object));
}

#[test]
fn a_compressed_bundle_is_as_long_as_it_says() {
    let object = bytes("gfx906-v4.co");
    let bundle = bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx906", &object)]);
    for (version, method) in [(1, 0), (2, 1), (3, 0), (3, 1)] {
        for wrong in [bundle.len() as u64 - 1, bundle.len() as u64 + 1, 0] {
            let error = code_objects(&compressed(version, method, &bundle, wrong)).unwrap_err();
            assert!(matches!(error, Error::Malformed { part: "compressed offload bundle", .. }), "{error}");
        }
        let good = compressed(version, method, &bundle, bundle.len() as u64);
        for end in [5, 7, 12, 20, 31, 40, good.len() - 9] {
            assert!(code_objects(&good[..end]).is_err(), "{version} {method} {end}");
        }
        // What is inside must be a bundle, and not one more layer.
        for inside in [good.as_slice(), b"", b"nothing"] {
            let error = code_objects(&compressed(version, method, inside, inside.len() as u64)).unwrap_err();
            assert!(matches!(error, Error::Malformed { .. }), "{error}");
        }
    }
}

#[test]
fn a_small_file_does_not_stand_for_much_memory() {
    let bomb = vec![0; 64 << 20];
    for (version, method) in [(1, 1), (2, 0), (3, 1)] {
        let file = compressed(version, method, &bomb, bomb.len() as u64);
        assert!(file.len() < 100_000, "{}", file.len());
        let short = compressed(version, method, &bomb[..1000], bomb.len() as u64);
        assert!(matches!(code_objects(&short), Err(Error::TooLarge { .. })));
        // One whose head is modest is stopped where the head says.
        let liar = compressed(version, method, &bomb, 1000);
        assert!(matches!(code_objects(&liar), Err(Error::Malformed { .. })));
    }
    let huge = compressed(3, 0, b"", u64::MAX);
    assert!(matches!(code_objects(&huge), Err(Error::TooLarge { .. })));
}

#[test]
fn unknown_compressions_are_named() {
    let mut file = compressed(2, 0, b"", 0);
    file[6] = 9;
    let text = code_objects(&file).unwrap_err().to_string();
    assert!(text.contains("method 9") && text.contains("--unbundle"), "{text}");
    file[4] = 4;
    let text = code_objects(&file).unwrap_err().to_string();
    assert!(text.contains("version 4") && text.contains("--unbundle"), "{text}");
}

#[test]
fn a_file_is_read_piece_by_piece() {
    let path = [env!("CARGO_MANIFEST_DIR"), "tests", "data", "two_units.so"].iter().collect::<PathBuf>();
    let library = fs::File::open(&path).unwrap();
    let mut parts = vec![];
    each(&library, |part| {
        parts.push(part);
        if parts.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap();
    let bytes = bytes("two_units.so");
    assert_eq!(parts, code_objects(&bytes).unwrap()[..3]);
    assert!(
        parts.iter().all(|part| bytes[part.place.start as usize..part.place.end as usize] == *part.bytes)
    );
}

#[test]
fn other_files_are_distinguished() {
    let host = fs::read(std::env::current_exe().unwrap()).unwrap();
    assert_eq!(code_objects(&host), Err(Error::NoDeviceCode));
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
