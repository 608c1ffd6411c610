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

/// A trace of a gfx90a: `plain` in two sizes, `accumulate` in one, in two sessions, and their code object.
fn trace(dir: &Dir, uri: &str, sha256: &str, size: usize) {
    let names = ["KernelExecution", "plain", "accumulate(float*, float, float)"];
    let mut rows = include_str!("../../../sql/ext/kernelcodeobject.sql").to_string();
    rows += include_str!("../../../sql/ext/codeobject.sql");
    for (id, name) in names.iter().enumerate() {
        rows += &format!("INSERT INTO rocpd_string (id, string) VALUES ({}, '{name}');", id + 1);
    }
    rows += "INSERT INTO rocpd_metadata (tag, value) VALUES ('gpu::0::target', 'gfx90a:sramecc+:xnack-');";
    for session in [0, 100] {
        rows += &format!(
            "INSERT INTO rocpd_kernelcodeobject (id, vgpr, sgpr, fbar) VALUES ({0} + 1, 4, 9, 0), ({0} + 2, 40, 8, 0);
             INSERT INTO ext_kernelcodeobject VALUES ({0} + 1, 2, 0, 0, 0, 0, 0, 280, 64, 1024),
                 ({0} + 2, 3, 32, 0, 0, 0, 0, 16, 64, 1024);
             INSERT INTO ext_codeobject VALUES ({0} + 1, '{sha256}', '{uri}', 'gfx90a', {size});
             INSERT INTO ext_codeobject_kernel VALUES ({0} + 1, {0} + 1), ({0} + 2, {0} + 1);",
            session
        );
        for (op, (kernel, workgroup, lds, took)) in
            [(1, 256, 0, 100), (1, 256, 0, 200), (1, 1024, 30_000, 50), (2, 64, 0, 5000)]
                .into_iter()
                .enumerate()
        {
            let op = session + op + 1;
            rows += &format!(
                "INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
                     VALUES ({op}, 0, 0, {op}, '', 1000, 1000 + {took}, {kernel} + 1, 1);
                 INSERT INTO ext_dispatch VALUES ({op}, {kernel} + 1, 7, 1, 1, {workgroup}, 1, 1, {lds}, 0, '', {session} + {kernel});"
            );
        }
    }
    dir.trace("trace.rpd", &rows);
}

/// Of `gfx90a-v5.co`.
const SHA256: &str = "5802377b93ba184106f7c362ee31e3348340c65079598f7452d00d78f3551e73";

/// Name, workgroup, calls, waves and whether the arguments are known, of each row.
fn told(dir: &Dir, more: &[&str]) -> Vec<String> {
    let arguments = [&["code", "--json", "--args", "trace.rpd"], more].concat();
    let told: Value = serde_json::from_str(&dir.run(&arguments).expect(0).stdout).unwrap();
    let row = |row: &Value| {
        let (launches, fit) = (&row["launches"], &row["occupancy"]);
        let arguments = if row["arguments"].is_array() { "with" } else { "without" };
        format!(
            "{} {} {} {} {} {} {arguments}",
            row["symbol"].as_str().unwrap(),
            launches["workgroup"][0],
            launches["calls"],
            launches["total_ns"],
            fit["waves"],
            fit["limited_by"][0]
        )
    };
    told.as_array().unwrap().iter().map(row).collect()
}

#[test]
fn kernels_of_a_trace_are_in_the_sizes_of_their_launches() {
    let dir = Dir::new();
    trace(&dir, "memory://17#offset=0x7f00&size=9", SHA256, 9);
    let without = [
        " 64 2 10000 8 \"hardware\" without",
        " 256 4 600 8 \"hardware\" without",
        " 1024 2 100 8 \"hardware\" without",
    ];
    assert_eq!(told(&dir, &[]), without);
    // Names in brackets are those of the trace where there is no code object; the same rows where there is.
    let with = [
        "_Z10accumulatePfff 64 2 10000 8 \"hardware\" with",
        "plain 256 4 600 8 \"hardware\" with",
        "plain 1024 2 100 8 \"hardware\" with",
    ];
    let bytes = fs::read(object("gfx90a-v5.co")).unwrap();
    for folder in ["trace.rpd-code", "code", ".", "elsewhere"] {
        let saved = format!("{folder}/{SHA256}.hsaco");
        fs::create_dir_all(dir.path(folder)).unwrap();
        dir.write(&saved, &bytes);
        let more: &[&str] = if folder == "elsewhere" { &["--code", "elsewhere"] } else { &[] };
        assert_eq!(told(&dir, more), with, "{folder}");
        // It has the bytes that its name says, or it is none of the trace's.
        dir.write(&saved, &bytes[1..]);
        assert_eq!(told(&dir, more), without, "{folder}");
        let ran = dir.run(&[&["code", "trace.rpd"], more].concat());
        ran.expect(0).says(&[
            &saved[saved.len() - 70..],
            "other bytes than its name says",
            &SHA256[..12],
            "gfx90a",
        ]);
        fs::remove_file(dir.path(&saved)).unwrap();
    }
    let sizes = dir.run(&["code", "--workgroup", "512", "--dynamic-lds", "40000", "--csv", "trace.rpd"]);
    assert!(sizes.expect(0).stdout.lines().skip(1).all(|line| line.contains(",LDS,")), "{sizes}");
}

#[test]
fn code_objects_in_the_programs_own_files() {
    let dir = Dir::new();
    let object_bytes = fs::read(object("gfx90a-v5.co")).unwrap();
    let library = [vec![0; 4096], object_bytes.clone(), vec![1; 100]].concat();
    dir.write("a library.so", &library);
    let uri =
        format!("file://{}#offset=4096&size={}", dir.path("a%20library.so").display(), object_bytes.len());
    trace(&dir, &uri, SHA256, object_bytes.len());
    assert!(told(&dir, &[]).iter().all(|row| row.ends_with(" with")));
    let listed = dir.run(&["code", "--cfg", "--json", "trace.rpd"]);
    let listed: Value = serde_json::from_str(&listed.expect(0).stdout).unwrap();
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|function| function["function"].as_str().unwrap()).collect();
    assert_eq!(names, ["plain", "accumulate(float*, float, float)"]);
    let changed = |contents: &[u8], why: &str| {
        dir.write("a library.so", contents);
        dir.run(&["code", "trace.rpd"]).expect(0).says(&[why]);
        let listed = dir.run(&["code", "--disasm", "trace.rpd"]);
        assert!(listed.expect(0).stdout.is_empty() && listed.stderr.contains(why), "{listed}");
    };
    changed(&library[1..], "has changed since the recording");
    changed(&library[..5000], "too short");
    fs::remove_file(dir.path("a library.so")).unwrap();
    dir.run(&["code", "trace.rpd"]).expect(0).says(&["cannot open", "a library.so"]);
}

#[test]
fn hostile_rows_of_code_objects() {
    for (sha256, uri, why) in [
        ("../../../etc/passwd", "file:///etc/passwd", "its sha256 is none"),
        (SHA256, "file:///dev/zero#offset=0&size=99", "not a regular file"),
        (SHA256, "file:///etc#offset=0&size=99", "is a directory"),
        (SHA256, "file:///etc/passwd#offset=18446744073709551615&size=2", "too short"),
        (SHA256, "file:///etc/passwd#offset=0&size=18446744073709551615", "too short"),
        (SHA256, "\x1b[31mx", "was not saved"),
    ] {
        let dir = Dir::new();
        trace(&dir, uri, sha256, 9);
        let told = dir.run(&["code", "trace.rpd"]);
        told.expect(0).says(&[why]);
        assert!(!told.stderr.contains('\x1b'));
        assert_eq!(told.stdout.lines().count(), 4, "{told}");
    }
}

#[test]
fn traces_that_say_nothing_of_code() {
    let dir = Dir::new();
    dir.trace("empty.rpd", "");
    dir.run(&["code", "empty.rpd"]).expect(1).says(&["empty.rpd", "says nothing of its kernels' code"]);
    let other = dir.fixture("matmul_result.rpd");
    dir.run(&["code", &other]).expect(1).says(&[&other, "says nothing of its kernels' code"]);
    dir.write("gfx906.co", fs::read(object("gfx906-v4.co")).unwrap());
    dir.run(&["code", "--code", ".", "gfx906.co"]).expect(1).says(&["--code is for a trace"]);
}
