//! `rpd code`: what kernels need, in every form; files that hold none, and names that nobody would give a kernel.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Dir, golden, ran};

/// A file of the code objects' own tests.
fn object(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../codeobject/tests/data").join(name)
}

/// A directory with a copy of it.
fn with(name: &str) -> Dir {
    let dir = Dir::new();
    dir.write(name, fs::read(object(name)).unwrap());
    dir
}

#[test]
fn every_form_says_the_same() {
    let dir = with("gfx90a-v5.co");
    for (name, form) in [("code.txt", "--wide"), ("code.json", "--json"), ("code.csv", "--csv")] {
        golden(name, &dir.run(&["code", form, "gfx90a-v5.co"]).expect(0).stdout);
    }
    golden("code-args.txt", &dir.run(&["code", "--args", "gfx90a-v5.co"]).expect(0).stdout);
    let json: Value = serde_json::from_str(&dir.run(&["code", "--json", "gfx90a-v5.co"]).stdout).unwrap();
    let csv = dir.run(&["code", "--csv", "gfx90a-v5.co"]).stdout;
    let mut csv = csv::Reader::from_reader(csv.as_bytes());
    let columns = csv.headers().unwrap().clone();
    for (kernel, line) in json.as_array().unwrap().iter().zip(csv.records()) {
        let line = line.unwrap();
        for (column, cell) in columns.iter().zip(&line) {
            let fit = &kernel["occupancy"];
            let value = match column {
                "waves" | "by_vgpr" | "by_sgpr" | "by_lds" | "by_workgroup" | "workgroup" | "workgroups" => {
                    &fit[column]
                }
                "hardware_waves" => &fit["hardware"],
                "workgroup_lds" => &fit["lds"],
                "limited_by" => &fit["limited_by"][0],
                _ => &kernel[column],
            };
            let value = match value {
                Value::String(text) => text.clone(),
                Value::Bool(flag) => u8::from(*flag).to_string(),
                Value::Null => String::new(),
                other => other.to_string(),
            };
            assert_eq!(cell, value, "{column}");
        }
    }
}

#[test]
fn a_narrow_terminal_keeps_the_names_and_what_limits() {
    let dir = with("gfx90a-v5.co");
    for columns in ["50", "60", "80", "120"] {
        let told = ran(dir.rpd(&["code", "gfx90a-v5.co"]).env("COLUMNS", columns));
        let header = told.expect(0).stdout.lines().next().unwrap();
        for column in ["VGPR", "occupancy", "limit", "kernel"] {
            assert!(header.contains(column), "{columns}: {header}");
        }
        assert!(told.stdout.lines().all(|line| line.chars().count() <= columns.parse().unwrap()), "{told}");
    }
}

#[test]
fn kernels_are_chosen_by_either_name() {
    let dir = with("gfx90a-v5.co");
    for pattern in ["^accumulate\\(", "_Z10accumulate"] {
        let told = dir.run(&["code", "--json", "--kernel", pattern, "gfx90a-v5.co"]);
        let told: Value = serde_json::from_str(&told.expect(0).stdout).unwrap();
        assert_eq!(told.as_array().unwrap().len(), 1);
        assert_eq!((&told[0]["vgpr"], &told[0]["agpr"]), (&Value::from(8), &Value::from(32)));
    }
    let none = dir.run(&["code", "--json", "--kernel", "nothing here", "gfx90a-v5.co"]);
    assert_eq!(none.expect(0).says(&["no such kernel"]).stdout, "[\n]\n");
    dir.run(&["code", "--kernel", "(", "gfx90a-v5.co"]).expect(2);
}

#[test]
fn the_occupancy_of_a_launch() {
    let dir = with("gfx900-v3.co");
    let waves = |more: &[&str]| {
        let arguments = [&["code", "--json", "--kernel", "^plain$", "gfx900-v3.co"], more].concat();
        let told: Value = serde_json::from_str(&dir.run(&arguments).expect(0).stdout).unwrap();
        let fit = &told[0]["occupancy"];
        (
            fit["waves"].as_u64().unwrap(),
            fit["limited_by"][0].as_str().unwrap().to_string(),
            fit["workgroups"].as_u64().unwrap(),
        )
    };
    assert_eq!(waves(&[]), (8, "workgroup".into(), 2));
    assert_eq!(waves(&["--workgroup", "256"]), (10, "hardware".into(), 10));
    assert_eq!(waves(&["--workgroup", "256", "--dynamic-lds", "20000"]), (3, "LDS".into(), 3));
    assert_eq!(waves(&["--dynamic-lds", "65537"]), (0, "LDS".into(), 0));
    for wrong in ["0", "1025", "x"] {
        dir.run(&["code", "--workgroup", wrong, "gfx900-v3.co"]).expect(2);
    }
}

#[test]
fn programs_libraries_and_bundles() {
    for (file, kernels) in
        [("two_units.so", 4), ("compressed-v2.bundle", 10), ("compressed-v3.bundle", 10), ("linked-v4.co", 2)]
    {
        let told = with(file).run(&["code", "--csv", file]);
        assert_eq!(told.expect(0).stdout.lines().count(), 1 + kernels, "{told}");
        assert_eq!(told.stderr, "");
    }
}

#[test]
fn what_is_no_code_is_refused_at_once() {
    let dir = Dir::new();
    ran(dir.command("mkfifo").arg("fifo")).expect(0);
    fs::create_dir(dir.path("directory")).unwrap();
    dir.write("empty", "");
    dir.write("text", "#!/bin/sh\n");
    fs::File::create(dir.path("zeros")).unwrap().set_len(2 << 30).unwrap();
    let huge = dir.write("huge.co", fs::read(object("gfx906-v4.co")).unwrap());
    fs::OpenOptions::new().write(true).open(huge).unwrap().set_len(1 << 40).unwrap();
    for (file, words) in [
        ("fifo", "not a regular file"),
        ("directory", "is a directory"),
        ("/dev/zero", "not a regular file"),
        ("missing", "cannot open missing"),
        ("empty", "not a code object"),
        ("text", "not a code object"),
        ("zeros", "not a code object"),
        ("huge.co", "too large"),
        ("/bin/sh", "no kernels for AMD GPUs"),
    ] {
        // A quarter of a gigabyte of address space is enough to say so.
        let limited = format!("ulimit -v 262144; exec {} code {file}", crate::harness::RPD);
        let told = ran(dir.command("bash").args(["-c", &limited]));
        told.expect(1).says(&[file, words]);
        assert_eq!(told.stdout, "");
    }
}

#[test]
fn what_comes_before_the_damage_is_shown() {
    let mut library = fs::read(object("two_units.so")).unwrap();
    let bundles: Vec<usize> = memchr(&library, b"__CLANG_OFFLOAD_BUNDLE__");
    assert_eq!(bundles.len(), 2);
    library[bundles[1] + 24] = 0xff;
    library[bundles[1] + 25] = 0xff;
    let dir = Dir::new();
    dir.write("library.so", library);
    let told = dir.run(&["code", "--csv", "library.so"]);
    told.expect(1).says(&["library.so", "too large"]);
    assert_eq!(told.stdout.lines().count(), 3, "{told}");
}

fn memchr(bytes: &[u8], wanted: &[u8]) -> Vec<usize> {
    (0..bytes.len()).filter(|at| bytes[*at..].starts_with(wanted)).collect()
}

#[test]
fn names_are_harmless() {
    let mut bytes = fs::read(object("named-v5.co")).unwrap();
    // The note has each name twice: alone, and with .kd behind it.
    for at in memchr(&bytes, b"named").into_iter().rev() {
        bytes[at..at + 5].copy_from_slice(b"=\x1b\"\n,");
    }
    let dir = Dir::new();
    dir.write("hostile.co", bytes);
    let table = dir.run(&["code", "--args", "hostile.co"]).expect(0).stdout.clone();
    assert!(table.contains("=\\x1b\"\\n,"), "{table}");
    let csv = dir.run(&["code", "--csv", "hostile.co"]).expect(0).stdout.clone();
    assert!(csv.contains("\"'=\\x1b\"\"\\n,\""), "{csv}");
    let json = dir.run(&["code", "--json", "hostile.co"]).expect(0).stdout.clone();
    let value: Value = serde_json::from_str(&json).unwrap();
    assert!(value.as_array().unwrap().iter().any(|kernel| kernel["kernel"] == "=\x1b\"\n,"), "{json}");
    for text in [table, csv, json] {
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    }
}

#[test]
fn a_reader_that_has_seen_enough() {
    let dir = with("two_units.so");
    let mut rpd =
        dir.rpd(&["code", "two_units.so"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(rpd.stdout.take());
    let mut stderr = String::new();
    rpd.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((rpd.wait().unwrap().code(), stderr.as_str()), (Some(0), ""));
}
