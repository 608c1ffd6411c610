//! `rpd libraries --replay`: with programs in the place of rocblas-bench and hipblaslt-bench. tests/libraries.rs runs the real rocblas-bench.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Dir, Ran, not_tested, ran};

/// A trace with calls of rocBLAS, each of which ran a kernel for 4 us, and with ranges of hipBLASLt's. `m` is the argument by that name.
fn trace(dir: &Dir, sizes: &[&str], ranges: &[&str]) -> String {
    let mut rows = "INSERT INTO rocpd_string VALUES (2, 'KernelExecution'), (3, 'kernel'), (4, 'hipLaunchKernel'), (5, 'rocblas'), (6, 'blas'),
                    (7, 'rocblas_sgemm'), (8, 'UserMarker');"
        .to_string();
    for (at, m) in sizes.iter().enumerate() {
        let (text, call, start) = (100 + at, 1 + 2 * at, 1000 * (1 + at));
        rows += &format!(
            "INSERT INTO rocpd_string VALUES ({text}, 'handle=0x1 | m={m} | n=64 | k=100');
             INSERT INTO rocpd_api VALUES ({call}, 7, 7, {start}, {start} + 100, 7, {text}), ({call} + 1, 7, 7, {start} + 10, {start} + 20, 4, 1);
             INSERT INTO ext_librarycall VALUES ({call}, 5, 6);
             INSERT INTO rocpd_op VALUES ({call}, 0, 0, {call}, '', {start} + 500, {start} + 4500, 3, 2);
             INSERT INTO rocpd_api_ops (api_id, op_id) VALUES ({call} + 1, {call});"
        );
    }
    for (at, range) in ranges.iter().enumerate() {
        let (id, start) = (500 + at, 90_000 + 100 * at);
        rows += &format!(
            "INSERT INTO rocpd_string VALUES ({id}, '{range}'); INSERT INTO rocpd_api VALUES ({id}, 7, 7, {start}, {start} + 10, 8, {id});"
        );
    }
    dir.trace("t.rpd", &format!("{} {rows}", rpd_sql::ext::RECORDERS.concat()))
}

/// rpd with `bin` of the directory in front of PATH, where `scripts` are.
fn replay(dir: &Dir, scripts: &[(&str, &str)], options: &[&str]) -> Ran {
    ran(&mut command(dir, scripts, options))
}

fn command(dir: &Dir, scripts: &[(&str, &str)], options: &[&str]) -> Command {
    for (name, body) in scripts {
        dir.script(&format!("bin/{name}"), &format!("#!/bin/sh\n{body}\n"));
    }
    let mut rpd = dir.rpd(&[&["libraries", "--replay", "t.rpd"], options].concat());
    rpd.env("PATH", format!("{}:/usr/bin:/bin", dir.path("bin").display()));
    rpd
}

/// What rocblas-bench 5.5.1 prints, with the arguments it got in a file.
const ROCBLAS: &str = r#"printf '%s\n' "$@" >>arguments
echo 'Query device success: there are 1 devices'
echo 'transA,transB,M,N,K,alpha,lda,beta,ldb,ldc,rocblas-Gflops,us'
echo 'N,N,64,64,64,1,64,0,64,64, 0.5, 10'"#;
/// As hipblaslt-bench prints a result.
const HIPBLASLT: &str = r#"printf '%s\n' "$@" >>arguments
echo '[0]:transA,transB,m,n,k,hipblaslt-Gflops,hipblaslt-GB/s,us'
echo '    N,N,4,4,4,1.5e+03,7, 20'"#;

#[test]
fn times_of_commands_are_beside_the_recorded_ones() {
    let dir = Dir::new();
    trace(
        &dir,
        &["8"],
        &["hipblaslt-bench --api_method c -m 4  --bias_vector", "s_api = miopenConvolutionForward"],
    );
    let scripts = [("rocblas-bench", ROCBLAS), ("hipblaslt-bench", HIPBLASLT)];
    let json = replay(&dir, &scripts, &["--json"]);
    let all: Value = serde_json::from_str(&json.expect(0).stdout).unwrap();
    let of = |library: &str| all.as_array().unwrap().iter().find(|of| of["library"] == library).unwrap();
    let expected = serde_json::json!({"us": 10.0, "gflop_per_s": 0.5, "ratio": 2.5, "error": null});
    assert_eq!(of("rocblas")["replay"], expected);
    assert_eq!(of("rocblas")["calls"], 1, "what there is without --replay is there");
    let expected = serde_json::json!({"us": 20.0, "gflop_per_s": 1500.0, "ratio": null, "error": null});
    assert_eq!(of("hipblaslt")["replay"], expected, "it launched nothing");
    assert_eq!(of("miopen")["replay"], Value::Null);
    let arguments = std::fs::read_to_string(dir.path("arguments")).unwrap();
    let words: Vec<&str> = arguments.lines().collect();
    assert_eq!(
        words,
        [
            "-f",
            "gemm",
            "-r",
            "f32_r",
            "-m",
            "8",
            "-n",
            "64",
            "-k",
            "100",
            "--api_method",
            "c",
            "-m",
            "4",
            "--bias_vector"
        ]
    );
    let csv = replay(&dir, &[], &["--csv"]);
    let lines: Vec<&str> = csv.expect(0).stdout.lines().collect();
    assert!(lines[0].ends_with(",bench,replay_us,replay_gflop_per_s,replay_ratio,replay_error"), "{csv}");
    assert!(
        lines[1]
            .ends_with(",./rocblas-bench -f gemm -r f32_r -m 8 -n 64 -k 100,10.000000,0.500000,2.500000,"),
        "{csv}"
    );
    let table = replay(&dir, &[], &["--bench"]);
    let lines: Vec<&str> = table.expect(0).stdout.lines().collect();
    assert!(
        lines[0].starts_with("calls  recorded  replayed  ratio  GFLOP/s  replayed GFLOP/s  configuration"),
        "{table}"
    );
    assert!(
        lines[1].starts_with(
            "    1  4.000 us  10.00 us   2.50   25.600             0.500  rocblas rocblas_sgemm m=8 n=64"
        ),
        "{table}"
    );
    assert_eq!(lines[2].trim(), "$ ./rocblas-bench -f gemm -r f32_r -m 8 -n 64 -k 100");
    table.says(&["1 configuration has no command for rocblas-bench or hipblaslt-bench"]);
}

#[test]
fn a_program_that_is_not_installed_is_named() {
    let dir = Dir::new();
    if ["/opt/rocm/bin/rocblas-bench", "/usr/libexec/rocm"].iter().any(|place| Path::new(place).exists()) {
        return not_tested("rocblas-bench is installed");
    }
    trace(&dir, &["8"], &["hipblaslt-bench -m 4"]);
    let none = replay(&dir, &[], &[]);
    none.expect(1).says(&[
        "--replay needs hipblaslt-bench, ",
        "; --replay needs rocblas-bench, which is not on PATH and not in /opt/rocm/bin: ROCm's package ",
    ]);
    assert_eq!(none.stdout, "");
    let one = replay(&dir, &[("hipblaslt-bench", HIPBLASLT)], &[]);
    one.expect(1).says(&["rocblas-bench", "rocblas-clients has it, and Debian's librocblas0-bench"]);
    assert!(
        one.stdout.contains("20.00 us") && one.stdout.contains("rocblas-bench is not installed"),
        "{one}"
    );
}

#[test]
fn a_command_that_fails_says_why_in_its_row() {
    let dir = Dir::new();
    trace(&dir, &["8", "-1", "2", "3"], &[]);
    let body = format!(
        r#"case "$6" in -1) echo 'Invalid value for -m -1' >&2; exit 255;; 2) echo nothing; exit 0;; 3) kill -SEGV $$;; esac
{ROCBLAS}"#
    );
    let json = replay(&dir, &[("rocblas-bench", &body)], &["--json"]);
    let all: Value = serde_json::from_str(&json.expect(1).stdout).unwrap();
    let of = |m: &str| {
        let is = |of: &&Value| of["configuration"].as_str().unwrap().starts_with(&format!("m={m} |"));
        all.as_array().unwrap().iter().find(is).unwrap()["replay"].clone()
    };
    assert_eq!(of("8")["us"], 10.0, "the others are run");
    assert_eq!(of("-1")["error"], "it failed (exit status: 255): Invalid value for -m -1");
    assert_eq!(of("2")["error"], "it printed no time");
    assert!(of("3")["error"].as_str().unwrap().starts_with("it failed (signal: 11 (SIGSEGV)"), "{all}");
    let table = replay(&dir, &[], &[]);
    assert!(
        table.expect(1).stdout.contains("it failed (exit status: 255): Invalid value for -m -1"),
        "{table}"
    );
}

/// Whether no process has that number, or one that has ended and was not waited for.
fn is_gone(dir: &Dir) -> bool {
    let pid = std::fs::read_to_string(dir.path("pid")).unwrap();
    let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    state.is_empty() || state.contains(") Z ")
}

#[track_caller]
fn soon(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < Duration::from_secs(60), "not within a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Goes on for long, in a process that it has started.
const HANGS: &str = "sleep 3600 & echo $! >pid.new; mv pid.new pid; wait";

#[test]
fn a_command_that_takes_too_long_is_ended_with_all_it_has_started() {
    let dir = Dir::new();
    trace(&dir, &["8"], &[]);
    let table = replay(&dir, &[("rocblas-bench", HANGS)], &["--timeout", "1s"]);
    assert!(table.expect(1).stdout.contains("not done within 1.000 s"), "{table}");
    soon(|| is_gone(&dir));
}

#[test]
fn a_process_that_holds_the_output_hides_no_time() {
    let dir = Dir::new();
    trace(&dir, &["8"], &[]);
    // A session of its own has a group of its own, which rpd does not end.
    let body = format!(
        "{ROCBLAS}\nsetsid sh -c 'echo $$ >pid.new; mv pid.new pid; exec sleep 600' &\n\
         until test -e pid; do sleep 0.01; done"
    );
    let json = replay(&dir, &[("rocblas-bench", &body)], &["--json"]);
    let holds = !is_gone(&dir);
    let pid = std::fs::read_to_string(dir.path("pid")).unwrap();
    ran(dir.command("kill").arg(pid.trim())).expect(0);
    let all: Value = serde_json::from_str(&json.expect(0).stdout).unwrap();
    assert!(holds, "it has ended");
    assert_eq!(all[0]["replay"]["us"], 10.0, "{all}");
}

#[test]
fn a_signal_ends_the_command_too() {
    let dir = Dir::new();
    trace(&dir, &["8"], &[]);
    let mut rpd = command(&dir, &[("rocblas-bench", HANGS)], &["--timeout", "1h"]).spawn().unwrap();
    soon(|| dir.path("pid").exists());
    ran(dir.command("kill").arg("-TERM").arg(rpd.id().to_string())).expect(0);
    let status = rpd.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15), "{status}");
    soon(|| is_gone(&dir));
}

#[test]
fn a_trace_chooses_no_file_and_no_other_command() {
    let dir = Dir::new();
    let hostile = [
        "hipblaslt-bench --data x",
        "hipblaslt-bench -m 4; touch x",
        "hipblaslt-bench --yaml=x",
        "hipblaslt-bench -m $(touch x)",
    ];
    trace(&dir, &["1 --yaml x", "--yaml", "1; touch x"], &hostile);
    let json = replay(&dir, &[("rocblas-bench", ROCBLAS), ("hipblaslt-bench", HIPBLASLT)], &["--json"]);
    let all: Value = serde_json::from_str(&json.expect(1).stdout).unwrap();
    for of in all.as_array().unwrap() {
        if of["configuration"] == hostile[0] {
            let why =
                "rpd does not pass \"--data\" on to hipblaslt-bench, because a trace is not to choose it";
            assert_eq!(of["replay"]["error"], why);
        } else {
            assert_eq!((&of["bench"], &of["replay"]), (&Value::Null, &Value::Null), "{of}");
        }
    }
    assert_eq!(dir.names(), ["bin", "t.rpd"], "nothing ran");
}
