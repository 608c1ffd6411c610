//! `rpd code`: what kernels need, in every form; files that hold none, and names that nobody would give a kernel.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Dir, golden, not_installed, ran};

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

/// Names and types of arguments, a required size of workgroups, hidden arguments.
#[test]
fn arguments_as_the_source_names_them() {
    let dir = with("named-v5.co");
    golden("code-args-named.txt", &dir.run(&["code", "--args", "named-v5.co"]).expect(0).stdout);
    golden("code-args.json", &dir.run(&["code", "--args", "--json", "named-v5.co"]).expect(0).stdout);
}

/// The words of other versions differ.
const LLVM: &str = "libLLVM-15.so.1";

#[test]
fn instructions_and_blocks_in_every_form() {
    let dir = with("gfx906-v4.co");
    dir.write("lines.co", fs::read(object("lines-dwarf5.co")).unwrap());
    let listing = |options: &[&str]| dir.run(&[&["code", "--llvm", LLVM], options].concat());
    let first = listing(&["--disasm", "lines.co"]);
    if first.stderr.contains("cannot open shared object file") {
        return not_installed(format!("no {LLVM} (package libllvm15)"));
    }
    golden("code-disasm.txt", &first.expect(0).stdout);
    for (name, options) in [
        ("code-disasm.json", &["--disasm", "--json", "lines.co"][..]),
        ("code-cfg.txt", &["--cfg", "gfx906-v4.co"]),
        ("code-cfg.json", &["--cfg", "--json", "gfx906-v4.co"]),
        ("code-cfg.dot", &["--dot", "gfx906-v4.co"]),
        ("code-cfg-disasm.txt", &["--cfg", "--disasm", "--kernel", "^(plain|indirect)", "gfx906-v4.co"]),
    ] {
        golden(name, &listing(options).expect(0).stdout);
    }
    let with_arguments = ["--cfg", "--args", "--kernel", "^accumulate|^plain", "gfx906-v4.co"];
    let text = listing(&with_arguments).expect(0).stdout.clone();
    let plain: Vec<&str> = text.lines().skip_while(|line| !line.contains(" plain:")).take(3).collect();
    assert_eq!(plain[1..], ["      0    8  global_buffer global", "      8    8  global_buffer global"]);
    let json: Value =
        serde_json::from_str(&listing(&[&with_arguments[..], &["--json"]].concat()).stdout).unwrap();
    assert_eq!(json[0]["arguments"][1]["offset"], 8);
    listing(&["--dot", "--args", "gfx906-v4.co"]).expect(2);
    // Of a directory, each says whose it is.
    fs::create_dir(dir.path("builds")).unwrap();
    dir.write("builds/a.co", fs::read(object("gfx906-v4.co")).unwrap());
    let text = listing(&["--cfg", "--kernel", "^plain", "builds"]).expect(0).stdout.clone();
    assert!(text.starts_with("gfx906 plain in a.co: "), "{text}");
    let json = listing(&["--cfg", "--json", "--kernel", "^plain", "builds"]).expect(0).stdout.clone();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["file"], "builds/a.co");
}

#[test]
fn a_narrow_terminal_keeps_the_names_and_what_limits() {
    let dir = with("gfx90a-v5.co");
    for columns in ["50", "60", "80", "120"] {
        let answer = ran(dir.rpd(&["code", "gfx90a-v5.co"]).env("COLUMNS", columns));
        let header = answer.expect(0).stdout.lines().next().unwrap();
        for column in ["VGPR", "occupancy", "limit", "kernel"] {
            assert!(header.contains(column), "{columns}: {header}");
        }
        assert!(
            answer.stdout.lines().all(|line| line.chars().count() <= columns.parse().unwrap()),
            "{answer}"
        );
    }
}

#[test]
fn kernels_are_chosen_by_either_name() {
    let dir = with("gfx90a-v5.co");
    for pattern in ["^accumulate\\(", "_Z10accumulate"] {
        let answer = dir.run(&["code", "--json", "--kernel", pattern, "gfx90a-v5.co"]);
        let answer: Value = serde_json::from_str(&answer.expect(0).stdout).unwrap();
        assert_eq!(answer.as_array().unwrap().len(), 1);
        assert_eq!((&answer[0]["vgpr"], &answer[0]["agpr"]), (&Value::from(8), &Value::from(32)));
    }
    let none = dir.run(&["code", "--json", "--kernel", "nothing here", "gfx90a-v5.co"]);
    let words = ["gfx90a-v5.co", "none of its kernels matches --kernel nothing here; it has 6 kernels"];
    assert_eq!(none.expect(1).says(&words).stdout, "[\n]\n");
    let none = dir.run(&["code", "--cfg", "--kernel", "nothing here", "gfx90a-v5.co"]);
    none.expect(1).says(&["none of its functions matches --kernel nothing here; it has 6 functions"]);
    trace(&dir, "memory://1", SHA256, 9);
    let none = dir.run(&["code", "--code", "nowhere", "--kernel", "nothing here", "trace.rpd"]);
    assert_eq!(none.expect(1).stdout, "");
    assert!(
        none.stderr.contains("none of its kernels matches --kernel nothing here; it has 2 kernels"),
        "{none}"
    );
    dir.run(&["code", "--kernel", "(", "gfx90a-v5.co"]).expect(2);
}

#[test]
fn the_occupancy_of_a_launch() {
    let dir = with("gfx900-v3.co");
    let waves = |more: &[&str]| {
        let arguments = [&["code", "--json", "--kernel", "^plain$", "gfx900-v3.co"], more].concat();
        let answer: Value = serde_json::from_str(&dir.run(&arguments).expect(0).stdout).unwrap();
        let fit = &answer[0]["occupancy"];
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
    assert_eq!(waves(&["--workgroup", "16x16"]), waves(&["--workgroup", "256"]));
    assert_eq!(waves(&["--workgroup", "16x16x1", "--dynamic-lds", "20KiB"]), (3, "LDS".into(), 3));
    for wrong in ["0", "1025", "x", "16x", "16x0", "33x32", "2x2x2x2", "65536x65536x1", "-1"] {
        dir.run(&["code", &format!("--workgroup={wrong}"), "gfx900-v3.co"]).expect(2).says(&[
            "--workgroup",
            wrong,
            "256 or 16x16",
        ]);
    }
    for wrong in ["x", "4GiB"] {
        dir.run(&["code", "--dynamic-lds", wrong, "gfx900-v3.co"]).expect(2).says(&["--dynamic-lds", wrong]);
    }
}

/// LDS and workgroup of the rows of the table.
fn sizes(dir: &Dir, arguments: &[&str]) -> Vec<[String; 2]> {
    let answer = dir.run(&[&["code", "--wide"], arguments].concat());
    let mut lines = answer.expect(0).stdout.lines();
    let header = lines.next().unwrap();
    let cell = |line: &str, column: &str| {
        // Both are right-aligned.
        let end = header.find(column).unwrap() + column.len();
        let begin = line[..end].trim_end().rfind("  ").unwrap();
        line[begin..end].trim().to_string()
    };
    lines.map(|line| [cell(line, "LDS"), cell(line, "workgroup")]).collect()
}

#[test]
fn a_row_has_the_sizes_that_its_occupancy_is_for() {
    let dir = with("gfx90a-v5.co");
    let of = |more: &[&str]| sizes(&dir, &[&["--kernel", "reversed", "gfx90a-v5.co"], more].concat());
    assert_eq!(of(&[]), [["1024", "128"]]);
    assert_eq!(of(&["--workgroup", "8x8", "--dynamic-lds", "4KiB"]), [["5120", "64"]]);
    let answer = dir.run(&["code", "--workgroup", "256", "--json", "--kernel", "reversed", "gfx90a-v5.co"]);
    let answer: Value = serde_json::from_str(&answer.expect(0).stdout).unwrap();
    let fit = &answer[0]["occupancy"];
    assert_eq!((&fit["waves"], &fit["workgroups"]), (&Value::from(0), &Value::from(0)), "128 is the most");
    assert_eq!(fit["limited_by"], serde_json::json!(["workgroup"]));
    // Of a trace, the sizes of the launches stand behind.
    trace(&dir, "memory://1", SHA256, 9);
    assert_eq!(sizes(&dir, &["trace.rpd"]), [["0", "64"], ["0", "256"], ["30000", "1024"]]);
    assert_eq!(
        sizes(&dir, &["trace.rpd", "--workgroup", "16x16"]),
        [["0", "256 (64)"], ["0", "256"], ["30000", "256 (1024)"]]
    );
    assert_eq!(
        sizes(&dir, &["trace.rpd", "--dynamic-lds", "0"]),
        [["0", "64"], ["0", "256"], ["0 (30000)", "1024"]]
    );
}

#[test]
fn the_code_objects_in_a_directory() {
    let dir = Dir::new();
    fs::create_dir_all(dir.path("builds/deep/er")).unwrap();
    dir.run(&["code", "builds"]).expect(1).says(&[
        "builds",
        "no .hsaco, .co or .cubin",
        "program",
        "library",
    ]);
    dir.write("builds/deep/er/a.hsaco", fs::read(object("gfx906-v4.co")).unwrap());
    dir.write("builds/b.co", fs::read(object("gfx90a-v5.co")).unwrap());
    dir.write("builds/c.txt", "no code");
    std::os::unix::fs::symlink("..", dir.path("builds/deep/loop")).unwrap();
    let answer = dir.run(&["code", "--json", "builds"]);
    assert_eq!(answer.expect(0).stderr, "");
    let answer: Value = serde_json::from_str(&answer.stdout).unwrap();
    let files: Vec<&str> =
        answer.as_array().unwrap().iter().map(|kernel| kernel["file"].as_str().unwrap()).collect();
    assert_eq!(files, [&["builds/b.co"; 6][..], &["builds/deep/er/a.hsaco"; 5]].concat());
    let answer = dir.run(&["code", "--kernel", "^plain$", "builds"]);
    let rows: Vec<Vec<&str>> =
        answer.expect(0).stdout.lines().map(|line| line.split_whitespace().rev().take(2).collect()).collect();
    assert_eq!(rows, [["kernel", "file"], ["plain", "b.co"], ["plain", "deep/er/a.hsaco"]]);
    let csv = dir.run(&["code", "--csv", "--kernel", "^plain$", "builds"]);
    let mut csv = csv::Reader::from_reader(csv.expect(0).stdout.as_bytes());
    let place = csv.headers().unwrap().iter().position(|field| field == "file").unwrap();
    let files: Vec<String> = csv.records().map(|record| record.unwrap()[place].to_string()).collect();
    assert_eq!(files, ["builds/b.co", "builds/deep/er/a.hsaco"]);
    dir.run(&["code", "--kernel", "nosuch", "builds"]).expect(1).says(&[
        "builds",
        "none of its kernels matches",
        "it has 6 kernels",
    ]);
    dir.run(&["code", "--code", ".", "builds"]).expect(1).says(&["--code is for a trace"]);
    // What is damaged hides nothing of the others.
    dir.write("builds/bad.hsaco", "\x7fELF");
    let answer = dir.run(&["code", "--csv", "builds"]);
    assert_eq!(answer.expect(1).stdout.lines().count(), 12, "{answer}");
    assert!(answer.stderr.contains("builds/bad.hsaco"), "{answer}");
    assert!(answer.stderr.ends_with("1 of the 3 code objects in builds cannot be read\n"), "{answer}");
}

#[test]
fn programs_libraries_and_bundles() {
    for (file, kernels) in
        [("two_units.so", 4), ("compressed-v2.bundle", 10), ("compressed-v3.bundle", 10), ("linked-v4.co", 2)]
    {
        let answer = with(file).run(&["code", "--csv", file]);
        assert_eq!(answer.expect(0).stdout.lines().count(), 1 + kernels, "{answer}");
        assert_eq!(answer.stderr, "");
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
        ("directory", "has no .hsaco, .co or .cubin file"),
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
        let answer = ran(dir.command("bash").args(["-c", &limited]));
        answer.expect(1).says(&[file, words]);
        assert_eq!(answer.stdout, "");
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
    let answer = dir.run(&["code", "--csv", "library.so"]);
    answer.expect(1).says(&["library.so", "too large"]);
    assert_eq!(answer.stdout.lines().count(), 3, "{answer}");
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
fn rpd_kernel_has_the_rows_of_its_kernel() {
    let dir = Dir::new();
    trace(&dir, "file:///nowhere/app", SHA256, 4096);
    let json =
        |arguments: &[&str]| -> Value { serde_json::from_str(&dir.run(arguments).expect(0).stdout).unwrap() };
    for region in [&[][..], &["--session", "0"]] {
        let code = json(&[&["code", "--json", "trace.rpd"], region].concat());
        let all = code.as_array().unwrap();
        for name in ["plain", "accumulate(float*, float, float)"] {
            let kernel = json(&[&["kernel", "--json", "trace.rpd", name], region].concat());
            let expected: Vec<&Value> = all.iter().filter(|row| row["kernel"] == name).collect();
            assert_eq!(kernel["code"].as_array().unwrap().iter().collect::<Vec<_>>(), expected);
            assert!(expected.iter().all(|row| row["occupancy"]["waves"].as_u64() > Some(0)), "{code}");
        }
    }
    let plain = dir.run(&["kernel", "trace.rpd", "plain"]);
    assert!(
        plain.expect(0).stdout.contains("occupancy") && plain.stdout.contains("8/8  hardware"),
        "{plain}"
    );
    plain.says(&["nowhere"]);
    let csv = dir.run(&["kernel", "--csv", "trace.rpd", "plain"]);
    assert!(csv.expect(0).stdout.contains("\nbuild,original of 1024,,2,100,,30000,"), "{csv}");
    // Another recorder says nothing of code, also in a file with those of this one, and so does a trace in which the facts of this kernel are
    // missing.
    let all = dir.run(&["code", "trace.rpd"]).expect(0).stdout.clone();
    let foreign = "INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
                 VALUES (900, 0, 0, 900, '', 1000, 1100, 2, 1);
             INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (900, 900);
             INSERT INTO rocpd_kernelapi VALUES (900, '', 7, 1, 1, 256, 1, 1, 0, 0, '', '', '', '', 2)";
    dir.open("trace.rpd").execute_batch(foreign).unwrap();
    assert_eq!(dir.run(&["code", "trace.rpd"]).expect(0).stdout, all);
    let other = dir.fixture("matmul_result.rpd");
    let ran = dir.run(&["kernel", "--json", &other, "."]);
    let why = "matmul_result.rpd does not say what the kernel's code needs, so its occupancy is not known";
    assert!(ran.expect(0).stderr.contains(why), "{ran}");
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["code"], Value::Array(Vec::new()));
    dir.open("trace.rpd").execute_batch("UPDATE rocpd_metadata SET value = 'gfx9999' WHERE tag = 'gpu::0::target'; UPDATE ext_codeobject SET target = 'gfx9999'").unwrap();
    let ran = dir.run(&["kernel", "trace.rpd", "plain"]);
    assert!(ran.expect(0).stderr.contains("the occupancy of the kernel is not known"), "{ran}");
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
                     VALUES ({op}, 0, 0, {op}, '', 1000, 1000 + {took}, {kernel} + 1, 1);"
            );
            // The kernels of one session are a graph's, those of the other were launched by calls.
            let launch = format!("7, 1, 1, {workgroup}, 1, 1, {lds}, 0, ''");
            rows += &match session {
                0 => format!(
                    "INSERT INTO ext_dispatch VALUES ({op}, {kernel} + 1, {launch}, {session} + {kernel});"
                ),
                _ => format!(
                    "INSERT INTO rocpd_api_ops (api_id, op_id) VALUES ({op}, {op});
                     INSERT INTO rocpd_kernelapi VALUES ({op}, '', {launch}, '', '', {session} + {kernel}, {kernel} + 1);"
                ),
            };
        }
    }
    dir.trace("trace.rpd", &rows);
}

/// Of `gfx90a-v5.co`.
const SHA256: &str = "5802377b93ba184106f7c362ee31e3348340c65079598f7452d00d78f3551e73";

/// Name, workgroup, calls, waves and whether the arguments are known, of each row.
fn answer(dir: &Dir, more: &[&str]) -> Vec<String> {
    let arguments = [&["code", "--json", "--args", "trace.rpd"], more].concat();
    let answer: Value = serde_json::from_str(&dir.run(&arguments).expect(0).stdout).unwrap();
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
    answer.as_array().unwrap().iter().map(row).collect()
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
    assert_eq!(answer(&dir, &[]), without);
    // Names in brackets are those of the trace where there is no code object; the same rows where there is.
    let with = [
        "_Z10accumulatePfff 64 2 10000 8 \"hardware\" with",
        "plain 256 4 600 8 \"hardware\" with",
        "plain 1024 2 100 8 \"hardware\" with",
    ];
    let bytes = fs::read(object("gfx90a-v5.co")).unwrap();
    dir.write(&format!("{SHA256}.hsaco"), &bytes);
    golden("code-trace.txt", &dir.run(&["code", "trace.rpd"]).expect(0).stdout);
    golden("code-trace.csv", &dir.run(&["code", "--csv", "trace.rpd"]).expect(0).stdout);
    fs::remove_file(dir.path(&format!("{SHA256}.hsaco"))).unwrap();
    for folder in ["trace.rpd.code", "code", ".", "recorded", "elsewhere"] {
        let saved = format!("{folder}/{SHA256}.hsaco");
        fs::create_dir_all(dir.path(folder)).unwrap();
        if folder == "recorded" {
            let connection = rusqlite::Connection::open(dir.path("trace.rpd")).unwrap();
            let said = "INSERT INTO rocpd_metadata (tag, value) VALUES ('session_count', '1'), ('session::0::saved_code', ?1)";
            connection.execute(said, [dir.path(folder).to_str().unwrap()]).unwrap();
        }
        dir.write(&saved, &bytes);
        let more: &[&str] = if folder == "elsewhere" { &["--code", "elsewhere"] } else { &[] };
        assert_eq!(answer(&dir, more), with, "{folder}");
        // It has the bytes that its name says, or it is none of the trace's.
        dir.write(&saved, &bytes[1..]);
        assert_eq!(answer(&dir, more), without, "{folder}");
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
    assert!(answer(&dir, &[]).iter().all(|row| row.ends_with(" with")));
    let listed = dir.run(&["code", "--cfg", "--json", "trace.rpd"]);
    let listed: Value = serde_json::from_str(&listed.expect(0).stdout).unwrap();
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|function| function["function"].as_str().unwrap()).collect();
    assert_eq!(names, ["plain", "accumulate(float*, float, float)"]);
    let changed = |contents: &[u8], why: &str| {
        dir.write("a library.so", contents);
        dir.run(&["code", "trace.rpd"]).expect(0).says(&[why]);
        let listed = dir.run(&["code", "--disasm", "trace.rpd"]);
        assert!(listed.expect(1).stdout.is_empty() && listed.stderr.contains(why), "{listed}");
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
        let answer = dir.run(&["code", "trace.rpd"]);
        answer.expect(0).says(&[why]);
        assert!(!answer.stderr.contains('\x1b'));
        assert_eq!(answer.stdout.lines().count(), 4, "{answer}");
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
    // Whoever records with rpd record meets its option before the variable.
    trace(&dir, "", "", 9);
    let how = "rpd record --save-code (or RPDT_SAVE_CODE=DIR)";
    let answer = dir.run(&["code", "--args", "trace.rpd"]);
    answer.expect(0).says(&["trace.rpd", how]);
    assert_eq!(answer.stdout.lines().count(), 4, "said once: {answer}");
    dir.run(&["code", "--disasm", "trace.rpd"]).expect(1).says(&["trace.rpd", how]);
}

/// Of `gfx906-v4.co`.
const OTHER_SHA256: &str = "bd686abf266aa6e4b6011a4c38e45f1b5476c9eb55d647545402ac096b6616f6";
/// Of `gfx906-v4.co` as a candidate, and of candidates that have no code object here.
const CANDIDATES: [&str; 2] = ["fast/plain.hsaco", "triton/plain.hsaco"];

/// A trace of a gfx906: `plain` of the program twice, and five times a candidate: two builds, one that the trace says nothing more of.
pub(crate) fn replaced_trace(dir: &Dir) {
    let mut rows = rpd_sql::ext::RECORDERS.concat();
    let cache = dir.path("builds");
    let cache = cache.display();
    let facts = [("gpu::0::target", "gfx90a".to_string()), ("session_count", "1".into())];
    let facts = facts.into_iter().chain([("session::0::kernel_cache", cache.to_string())]);
    for (key, value) in facts {
        rows += &format!("INSERT INTO rocpd_metadata (tag, value) VALUES ('{key}', '{value}');");
    }
    let digest = |digit: char| digit.to_string().repeat(64);
    rows += &format!(
        "INSERT INTO rocpd_string (id, string) VALUES (1, 'KernelExecution'), (2, 'plain');
         INSERT INTO rocpd_kernelcodeobject (id, vgpr, sgpr, fbar) VALUES (1, 4, 9, 0), (2, 4, 11, 0), (3, 100, 13, 0);
         INSERT INTO ext_kernelcodeobject VALUES (1, 2, 0, 0, 0, 512, 0, 280, 64, 1024), (2, 2, 0, 0, 0, 0, 0, 20, 64, 1024),
             (3, 2, 0, 1, 0, 2048, 0, 20, 64, 512);
         INSERT INTO ext_codeobject VALUES (1, '{SHA256}', 'memory://1', 'gfx90a', 1),
             (2, '{OTHER_SHA256}', 'file://{cache}/{}', 'gfx906', 1);
         INSERT INTO ext_codeobject_kernel VALUES (1, 1), (2, 2);
         INSERT INTO ext_candidate VALUES (1, '{cache}/{}', '{OTHER_SHA256}', 'gfx906', 9, 'loaded', ''),
             (2, '{cache}/{}', '{}', 'gfx90a', 9, 'loaded', ''), (3, '{cache}/gone.hsaco', '{}', 'gfx90a', 9, 'loaded', '');",
        CANDIDATES[0], CANDIDATES[0], CANDIDATES[1], digest('b'), digest('c')
    );
    // What ran: the kernel and the candidate of each dispatch, and how long it took.
    let ran = [(0, 0, 900), (0, 0, 900), (2, 1, 500), (2, 1, 500), (3, 2, 300), (0, 3, 20), (2, 0, 10)];
    for (op, (kernel, candidate, took)) in (1..).zip(ran) {
        rows += &format!(
            "INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
                 VALUES ({op}, 0, 0, {op}, '', 1000, 1000 + {took}, 2, 1);
             INSERT INTO ext_dispatch VALUES ({op}, 2, 7, 1, 1, 256, 1, 1, 612, 0, '', 1);"
        );
        if op > 2 {
            rows += &format!("INSERT INTO ext_replacement VALUES ({op}, {op}, 1, {kernel}, {candidate});");
        }
    }
    dir.trace("ab.rpd", &rows);
    for (name, sha256) in [("gfx90a-v5.co", SHA256), ("gfx906-v4.co", OTHER_SHA256)] {
        fs::create_dir_all(dir.path("ab.rpd.code")).unwrap();
        dir.write(&format!("ab.rpd.code/{sha256}.hsaco"), fs::read(object(name)).unwrap());
    }
}

#[test]
fn what_ran_in_the_place_of_a_programs_kernel_has_rows_of_its_own() {
    let dir = Dir::new();
    replaced_trace(&dir);
    let answer = dir.run(&["code", "--json", "--args", "ab.rpd"]);
    let answer: Value = serde_json::from_str(&answer.expect(0).stdout).unwrap();
    let row = |row: &Value| {
        let launches = &row["launches"];
        let candidate =
            launches["candidate"].as_str().map_or("original", |path| path.rsplit('/').nth(1).unwrap_or(path));
        let arguments = row["arguments"].as_array().map_or("none".to_string(), |all| all.len().to_string());
        let waves = &row["occupancy"]["waves"];
        format!(
            "{candidate} {} calls {} ns, {} VGPR {} SGPR {} kernarg {} LDS, {waves} waves, {arguments} arguments",
            launches["calls"],
            launches["total_ns"],
            row["vgpr"],
            row["sgpr"],
            row["kernarg"],
            launches["lds"]
        )
    };
    let rows: Vec<String> = answer.as_array().unwrap().iter().map(row).collect();
    assert_eq!(
        rows,
        [
            "original 2 calls 1800 ns, 4 VGPR 9 SGPR 280 kernarg 612 LDS, 8 waves, 20 arguments",
            "fast 2 calls 1000 ns, 4 VGPR 11 SGPR 20 kernarg 100 LDS, 10 waves, 3 arguments",
            "triton 1 calls 300 ns, 100 VGPR 13 SGPR 20 kernarg 2148 LDS, 4 waves, none arguments",
            "builds 1 calls 20 ns, null VGPR null SGPR null kernarg null LDS, null waves, none arguments",
            "(a candidate that is not in the file) 1 calls 10 ns, 4 VGPR 11 SGPR 20 kernarg 100 LDS, 10 waves, 3 arguments",
        ]
    );
    assert_eq!(answer[1]["launches"]["sha256"], OTHER_SHA256);
    assert_eq!(answer[0]["launches"]["candidate"], Value::Null);
    golden("code-trace-candidates.txt", &dir.run(&["code", "ab.rpd"]).expect(0).stdout);
    golden(
        "code-trace-candidates.csv",
        &dir.run(&["code", "--csv", "ab.rpd"]).expect(0).stdout.replace(dir.path("").to_str().unwrap(), "/"),
    );
    let arguments = dir.run(&["code", "--args", "ab.rpd"]).expect(0).stdout.clone();
    for why in ["its code object is not here", "the trace does not say what this build needs"] {
        assert_eq!(arguments.matches(why).count(), 1, "{arguments}");
    }
    // A terminal that is too narrow for the columns of numbers keeps what ran.
    let narrow = ran(dir.rpd(&["code", "ab.rpd"]).env("COLUMNS", "90"));
    assert!(narrow.expect(0).stdout.contains("  fast/plain.hsaco "), "{narrow}");
}

/// HIP's own records have only the LDS that a launch adds.
#[test]
fn launches_that_hip_timed_have_all_of_their_lds() {
    let dir = Dir::new();
    trace(&dir, "", "", 9);
    let own = "UPDATE ext_kernelcodeobject SET groupSegmentSize = 512;";
    dir.open("trace.rpd").execute_batch(own).unwrap();
    let lds = || sizes(&dir, &["trace.rpd"]).into_iter().map(|[lds, _]| lds).collect::<Vec<_>>();
    let by_hip = "INSERT INTO rocpd_metadata (tag, value) VALUES ('session_count', '1'), ('session::0::timing', 'hip')";
    dir.open("trace.rpd").execute_batch(by_hip).unwrap();
    assert_eq!(lds(), ["512", "512", "30512"]);
    dir.open("trace.rpd")
        .execute_batch("UPDATE ext_dispatch SET groupSegmentSize = groupSegmentSize + 512; UPDATE rocpd_kernelapi SET groupSegmentSize = groupSegmentSize + 512")
        .unwrap();
    dir.open("trace.rpd")
        .execute_batch("UPDATE rocpd_metadata SET value = 'dispatch' WHERE value = 'hip'")
        .unwrap();
    assert_eq!(lds(), ["512", "512", "30512"]);
}

/// Triton's builds run in workgroups of their own and with LDS that their descriptions say.
#[test]
fn triton_builds_have_the_sizes_that_triton_says() {
    let dir = Dir::new();
    replaced_trace(&dir);
    let path = dir.path("builds").join(CANDIDATES[1]);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "whatever").unwrap();
    let hash = |bytes: &str| {
        let answer = ran(dir.command("sh").args(["-c", &format!("printf '{bytes}' | sha256sum")]));
        answer.stdout.split(' ').next().unwrap().to_string()
    };
    let size = || {
        let answer = dir.run(&["code", "--json", "ab.rpd"]);
        let answer: Value = serde_json::from_str(&answer.expect(0).stdout).unwrap();
        let launches = &answer[2]["launches"];
        (
            launches["workgroup"][0].as_u64(),
            launches["lds"].as_u64(),
            answer[2]["occupancy"]["workgroup"].as_u64(),
        )
    };
    let description = r#"{"name": "plain", "num_warps": 8, "warp_size": 64, "shared": 4096}"#;
    fs::write(path.with_extension("json"), description).unwrap();
    fs::write(path.with_extension("ttir"), "").unwrap();
    assert_eq!(size(), (Some(256), Some(2148), Some(256)), "it is another file now");
    let of_it = format!("UPDATE ext_candidate SET sha256 = '{}' WHERE id = 2", hash("whatever"));
    dir.open("ab.rpd").execute_batch(&of_it).unwrap();
    assert_eq!(size(), (Some(512), Some(6144), Some(512)));
    fs::remove_file(path.with_extension("ttir")).unwrap();
    assert_eq!(size(), (Some(256), Some(2148), Some(256)), "it is not Triton's");
    // A workgroup that the build could not have run in is no workgroup of its.
    fs::remove_file(path.with_extension("json")).unwrap();
    dir.open("ab.rpd")
        .execute_batch("UPDATE ext_kernelcodeobject SET maxWorkgroupSize = 128 WHERE id = 3")
        .unwrap();
    assert_eq!(size(), (Some(128), None, None));
}

#[test]
fn listings_tell_candidates_from_the_programs_kernels() {
    let dir = Dir::new();
    replaced_trace(&dir);
    let listing = |options: &[&str]| {
        dir.run(&[&["code", "--llvm", LLVM, "--kernel", "plain", "ab.rpd"], options].concat())
    };
    let first = listing(&["--cfg", "--json"]);
    if first.stderr.contains("cannot open shared object file") {
        return not_installed(format!("no {LLVM} (package libllvm15)"));
    }
    let listed: Value =
        serde_json::from_str(&first.expect(0).says(&["2 kernels", "--save-code"]).stdout).unwrap();
    let of =
        |listed: &Value| (listed["target"].clone(), listed["candidate"].clone(), listed["sha256"].clone());
    let of: Vec<_> = listed.as_array().unwrap().iter().map(of).collect();
    let path = dir.path("builds").join(CANDIDATES[0]);
    let not_in_file = "(a candidate that is not in the file)";
    assert_eq!(
        of,
        [
            ("gfx90a".into(), Value::Null, Value::Null),
            ("gfx906".into(), not_in_file.into(), "".into()),
            ("gfx906".into(), path.to_str().unwrap().into(), OTHER_SHA256.into()),
        ]
    );
    let text = listing(&["--disasm"]).expect(0).stdout.clone();
    assert!(
        text.contains("gfx90a plain: ") && text.contains("gfx906 plain of fast/plain.hsaco bd686abf: "),
        "{text}"
    );
    let graph = listing(&["--dot"]).expect(0).stdout.clone();
    assert!(graph.contains("gfx906 plain of fast/plain.hsaco"), "{graph}");
}
