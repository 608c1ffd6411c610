//! `rpd run`: madengine's tools, by one recording or as configured; `rpd export gpu-info`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::harness::{Dir, ran};

/// A program that prints each of its arguments in brackets. One argument is the name of a script of madengine's, which cuts off what is in
/// front of its own name in a command.
const SHOWS: [&str; 8] = [
    "sh",
    "-c",
    "printf '[%s]' \"$@\"; exit 7",
    "sh",
    "a  b $HOME \"'",
    "--",
    "x/get_library_trace.py ",
    "y",
];

fn tools<'a>(tools: &'a str, options: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [&["run", "--tools", tools], options, &["--"], command].concat()
}

#[test]
fn a_program_keeps_its_arguments_and_its_status_under_every_tool() {
    let dir = Dir::new();
    let printed = "[a  b $HOME \"'][--][x/get_library_trace.py ][y]";
    for (given, options) in [
        ("rpd,rocblas_trace,gpu_info_power_profiler", &[][..]),
        ("rocprofv3_perfetto", &["--performance"]),
        (
            r#"[{"name": "rocblas_trace", "cmd": "echo cmd_A && "}, {"name": "rpd", "cmd": "env"}]"#,
            &["--exec"],
        ),
    ] {
        let ran = dir.run(&tools(given, &[options, &["--force"]].concat(), &SHOWS));
        let expected = if options == ["--exec"] { format!("cmd_A\n{printed}") } else { printed.to_string() };
        // The outer tool is env, and what it gets is the shell's list: `env echo cmd_A && program`.
        assert_eq!(ran.expect(7).stdout, expected, "{given}: {ran}");
    }
    dir.run(&tools("rpd", &["--force"], &["sh", "-c", "kill -TERM $$"])).expect_signal(15);
    dir.run(&tools("rpd", &["--force"], &["no-such-command"])).expect(127);
    // A script gets nothing of what is the program's.
    dir.write("script.sh", "cat\n");
    dir.write("input", "line\n");
    let scripts = r#"[{"name": "rpd", "pre_scripts": [{"path": "script.sh"}], "env_vars": {"X": "1"}}]"#;
    let mut command = dir.rpd(&tools(scripts, &["--exec"], &["sed", "s/^/program /"]));
    let ran = ran(command.stdin(fs::File::open(dir.path("input")).unwrap()));
    assert_eq!(ran.expect(0).stdout, "program line\n");
    let ran = dir.run(&tools(scripts, &["--exec"], &["no-such-command"]));
    ran.expect(127).says(&["cannot run no-such-command: command not found"]);
}

#[test]
fn what_is_wrong_is_said_before_the_program_starts() {
    let dir = Dir::new();
    dir.write("there.json", r#"{"tools": [{"name": "rocprofv3_compute"}]}"#);
    for (given, said) in [
        ("rocblas_trac", "there is no tool \"rocblas_trac\"; did you mean rocblas_trace?"),
        (
            "there.json",
            "rocprofv3_compute: a recording cannot stand in for it (hardware counters are not recorded)",
        ),
        (
            r#"[{"name": "gpu_info_vram_profiler", "env_vars": {"SAMPLING_RATE": "often"}}]"#,
            "SAMPLING_RATE=often",
        ),
        (
            r#"[{"name": "gpu_info_vram_profiler", "env_vars": {"OUTPUT_FILE": "trace.rpd"}}]"#,
            "trace.rpd: the trace and a tool's file would have this name",
        ),
        (
            r#"[{"name": "gpu_info_vram_profiler", "env_vars": {"OUTPUT_FILE": "./trace.rpd"}}]"#,
            "trace.rpd: the trace and a tool's file would have this name",
        ),
        (
            r#"[{"name": "gpu_info_power_profiler", "env_vars": {"OUTPUT_FILE": "./one.csv"}},
                {"name": "gpu_info_vram_profiler", "env_vars": {"OUTPUT_FILE": "one.csv"}}]"#,
            "one.csv: two tools would write this file",
        ),
        ("{'tools': [{'name': 'nothing'}]}", "there is no tool \"nothing\""),
        ("{", "is no JSON"),
    ] {
        dir.run(&tools(given, &[], &["touch", "ran"])).expect(1).says(&[said]);
    }
    dir.write("library_trace.csv", "mine");
    dir.run(&tools("rocblas_trace", &[], &["touch", "ran"]))
        .expect(1)
        .says(&["library_trace.csv", "--force"]);
    dir.run(&tools("rocblas_trace", &["--exec"], &["touch", "ran"])).expect(1).says(&["--definitions"]);
    let script = r#"[{"name": "rpd", "cmd": "env", "pre_scripts": [{"path": "scripts/no.sh"}]}]"#;
    dir.run(&tools(script, &["--exec"], &["touch", "ran"]))
        .expect(1)
        .says(&["there is no script scripts/no.sh"]);
    // Python takes what is in the current directory for its own, unless it is told otherwise.
    dir.write("json.py", "open('ran', 'w')\n");
    dir.run(&tools("{'tools': [{'name': 'nothing'}]}", &[], &["true"]))
        .expect(1)
        .says(&["no tool \"nothing\""]);
    assert_eq!(dir.names(), ["json.py", "library_trace.csv", "there.json"]);
    assert_eq!(fs::read_to_string(dir.path("library_trace.csv")).unwrap(), "mine");
}

#[test]
fn tools_run_as_configured_in_madengine_s_order() {
    let dir = Dir::new();
    fs::create_dir_all(dir.path("scripts/common")).unwrap();
    for name in ["before_a", "before_b", "after_a", "after_b"] {
        dir.write(&format!("scripts/{name}.sh"), format!("echo {name} \"$@\" $SHARED >> log\n"));
    }
    dir.write(
        "scripts/common/tools.json",
        r#"{"tools": {
            "rpd": {"cmd": "sh scripts/outer.sh", "env_vars": {"SHARED": "a", "OF_A": "1"},
                "pre_scripts": [{"path": "scripts/before_a.sh", "args": "x 'y z'"}], "post_scripts": [{"path": "scripts/after_a.sh"}]},
            "mine": {"cmd": "nobody", "env_vars": {"SHARED": "b"},
                "pre_scripts": [{"path": "scripts/before_b.sh"}], "post_scripts": [{"path": "scripts/after_b.sh"}]}}}"#,
    );
    dir.write("scripts/outer.sh", "echo inner $SHARED $OF_A >> log; exec \"$@\"\n");
    dir.write("scripts/second.sh", "echo outer >> log; exec \"$@\"\n");
    let given = r#"{"tools": [{"name": "rpd"}, {"name": "mine", "cmd": "sh scripts/second.sh"}], "docker_env_vars": {"OF_A": "docker"}}"#;
    let ran = dir.run(&tools(given, &["--exec"], &["sh", "-c", "echo program >> log; exit 3"]));
    ran.expect(3);
    assert_eq!(
        fs::read_to_string(dir.path("log")).unwrap(),
        "before_b b\nbefore_a x y z b\nouter\ninner b docker\nprogram\nafter_a b\nafter_b b\n"
    );
    dir.write("scripts/before_a.sh", "exit 9\n");
    dir.run(&tools(given, &["--exec"], &["touch", "ran"])).expect(1).says(&["before_a.sh failed"]);
    assert!(!dir.path("ran").exists());
}

#[test]
fn the_first_line_of_performance_is_kept() {
    let dir = Dir::new();
    let prints = "echo working; echo 'performance: 14164.5/s, tokens' >&2; sleep 0.2; echo 'performance: 2 later'; printf end";
    let ran = dir.run(&tools("rpd", &["--performance"], &["sh", "-c", prints]));
    assert_eq!(ran.expect(0).stdout, "working\nperformance: 2 later\nend");
    assert!(ran.stderr.starts_with("performance: 14164.5/s, tokens\n"), "{ran}");
    let kept = dir.open("rpd_output/trace.rpd");
    let value = |tag: &str| -> String {
        kept.query_row("SELECT value FROM rocpd_metadata WHERE tag = ?1", [tag], |row| row.get(0)).unwrap()
    };
    assert_eq!((value("performance"), value("performance_metric")), ("14164.5".into(), "tokens".into()));
    assert!(dir.path("rpd_output/trace.json").exists());
    // What is left running still has its output, and the line counts.
    let leaves = "(sleep 3; echo performance: 7 late) & echo gone; exit 4";
    let ran = dir.run(&tools("rpd", &["--performance", "--force"], &["sh", "-c", leaves]));
    assert!(ran.stderr.starts_with("rpd: the command has ended; rpd passes on "), "{ran}");
    assert_eq!(ran.expect(4).stdout, "gone\nperformance: 7 late\n");
    let kept = dir.open("rpd_output/trace.rpd");
    let found = "SELECT value FROM rocpd_metadata WHERE tag = 'performance'";
    assert_eq!(kept.query_row(found, [], |row| row.get::<_, String>(0)).unwrap(), "7");
}

#[test]
fn output_that_cannot_be_written_is_said_and_the_command_goes_on() {
    let dir = Dir::new();
    for (status, expected) in [(0, 1), (5, 5)] {
        let prints =
            format!("echo one; sleep 0.1; echo performance: 3 samples; touch to_the_end; exit {status}");
        let mut command = dir.rpd(&tools("rpd", &["--performance", "--force"], &["sh", "-c", &prints]));
        let ran = ran(command.stdout(fs::File::options().write(true).open("/dev/full").unwrap()));
        let said = "rpd: cannot write what the command printed: No space left on device";
        assert!(ran.expect(expected).stderr.starts_with(said), "{ran}");
        fs::remove_file(dir.path("to_the_end")).unwrap();
        let kept = dir.open("rpd_output/trace.rpd");
        let found = "SELECT value FROM rocpd_metadata WHERE tag = 'performance'";
        assert_eq!(kept.query_row(found, [], |row| row.get::<_, String>(0)).unwrap(), "3");
    }
    // Who reads no more ends the command as without rpd.
    let run = format!("{} run --tools rpd --performance --force -- yes | head -1", crate::harness::RPD);
    let ran = ran(dir.command("bash").args(["-c", &format!("{run}; echo ${{PIPESTATUS[0]}}")]));
    assert_eq!(ran.expect(0).stdout, "y\n141\n", "{ran}");
}

#[test]
fn a_configuration_may_come_by_a_pipe() {
    let dir = Dir::new();
    let run = |tools: &str| {
        let line = format!("{} run --exec --tools {tools} -- sh -c 'echo $X'", crate::harness::RPD);
        ran(dir.command("bash").args(["-c", &line]))
    };
    let tools = r#"<(echo '{"tools": [{"name": "rpd", "cmd": "env X=1"}]}')"#;
    assert_eq!(run(tools).expect(0).stdout, "1\n");
    let definitions = r#"rpd --definitions <(echo '{"tools": {"rpd": {"cmd": "env X=2"}}}')"#;
    assert_eq!(run(definitions).expect(0).stdout, "2\n");
    run("./").expect(1).says(&["there is no file ./"]);
}

#[test]
fn what_is_said_of_files_is_said_once_and_has_their_names() {
    let dir = Dir::new();
    let tools_of_all = "rpd,rocprofv3,rocprofv3_agent,rocprofv3_perfetto,rocm_trace_lite,rocblas_trace";
    // Nothing is recorded of a program without a GPU runtime, as of one into which the recorder does not come.
    let ran = dir.run(&tools(tools_of_all, &["--force"], &["env", "-u", "LD_PRELOAD", "true"]));
    let lines: Vec<&str> = ran.expect(0).stderr.lines().collect();
    let mut once = lines.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), lines.len(), "{ran}");
    assert!(!ran.stderr.contains(['{', '}']), "{ran}");
    // A program puts what was lost into the trace that is made of it.
    dir.write(
        "incomplete.py",
        "import os, sqlite3\ntrace = sqlite3.connect(os.environ['RPDT_FILENAME'])\n\
         facts = [('session_count', '1'), ('session::0::pid', '7'), ('session::0::lost::buffer_full', '3')]\n\
         trace.executemany('INSERT INTO rocpd_metadata (tag, value) VALUES (?, ?)', facts)\ntrace.commit()\n",
    );
    let program = ["env", "-u", "LD_PRELOAD", "python3", "incomplete.py"];
    let ran = dir.run(&tools(tools_of_all, &["--force"], &program));
    assert_eq!(ran.expect(0).stderr.matches("is incomplete").count(), 1, "{ran}");
    assert!(dir.path("rpd_output/trace.json").exists() && !ran.stderr.contains(['{', '}']), "{ran}");
}

#[test]
fn each_process_has_its_files_of_rocprofv3() {
    let dir = Dir::new();
    // Three processes, of which the second has two sessions and the third no rows.
    dir.write(
        "recorded.py",
        "import os, sqlite3\ntrace = sqlite3.connect(os.environ['RPDT_FILENAME'])\n\
         facts = [('session_count', '4')] \n\
         facts += [(f'session::{n}::{key}', pid) for n, pid in enumerate('7889') for key in ('pid', 'boot_id', 'start_monotonic_ns')]\n\
         trace.executemany('INSERT INTO rocpd_metadata (tag, value) VALUES (?, ?)', facts)\n\
         trace.execute(\"INSERT INTO rocpd_string (id, string) VALUES (1, 'hipMalloc'), (2, '')\")\n\
         for n, pid in enumerate((7, 8, 8)):\n\
         \x20   for call in range(n + 1):\n\
         \x20       row = ((n << 32) + call + 1, pid, pid, 100 + call, 110 + call, 1, 2)\n\
         \x20       trace.execute('INSERT INTO rocpd_api (id, pid, tid, start, end, apiName_id, args_id) VALUES (?, ?, ?, ?, ?, ?, ?)', row)\n\
         trace.commit()\n",
    );
    let program = ["env", "-u", "LD_PRELOAD", "python3", "recorded.py"];
    let ran = dir.run(&tools("rocprof_hip_only,rocprofv3_perfetto", &["--force"], &program));
    assert!(!ran.expect(0).stderr.contains("processes"), "{ran}");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let directory = dir.path("rocprof_output").join(host.trim());
    let mut written: Vec<String> = fs::read_dir(&directory)
        .unwrap()
        .flatten()
        .map(|file| file.file_name().into_string().unwrap())
        .collect();
    written.sort_unstable();
    let of = |pid: u32, end: &str| format!("{pid}_{end}");
    for (pid, calls) in [(7, 1), (8, 5)] {
        for end in ["hip_api_trace.csv", "results.json", "results.pftrace"] {
            assert!(written.contains(&of(pid, end)), "{pid} {end}: {written:?}");
        }
        let json = fs::read(directory.join(of(pid, "results.json"))).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let tool = &json["rocprofiler-sdk-tool"][0];
        assert_eq!(tool["metadata"]["pid"], pid);
        assert_eq!(tool["buffer_records"]["hip_api"].as_array().map(Vec::len), Some(calls), "{pid}");
        let table = fs::read_to_string(directory.join(of(pid, "hip_api_trace.csv"))).unwrap();
        assert_eq!(table.lines().count(), calls + 1, "{table}");
    }
    assert!(!written.iter().any(|name| name.starts_with('9')), "{written:?}");
}

#[test]
fn what_the_command_prints_stays_where_it_is() {
    // madengine takes the lines that it understands out of both streams, and all of stderr with one of them.
    let dir = Dir::new();
    let prints = "echo './rocblas-bench -f gemm -m 64'; echo './rocblas-bench -f gemm -m 65' >&2; echo 'performance: 3 samples' >&2; echo end; exit 5";
    let ran = dir.run(&tools("rocblas_trace,miopen_trace", &["--force"], &["sh", "-c", prints]));
    assert_eq!(ran.expect(5).stdout, "./rocblas-bench -f gemm -m 64\nend\n");
    let stderr: Vec<&str> = ran.stderr.lines().filter(|line| !line.starts_with("rpd: ")).collect();
    assert_eq!(stderr, ["./rocblas-bench -f gemm -m 65", "performance: 3 samples"], "{ran}");
}

#[test]
fn libraries_are_asked_for_ranges_of_their_own() {
    let dir = Dir::new();
    let shows = ["sh", "-c", "echo $HIPBLASLT_ENABLE_MARKER,$MIOPEN_ENABLE_LOGGING_ROCTX"];
    let record = |libraries: &str| {
        let mut command =
            dir.rpd(&[&["record", "--force", "--libraries", libraries, "--"], &shows[..]].concat());
        command.env_remove("HIPBLASLT_ENABLE_MARKER").env_remove("MIOPEN_ENABLE_LOGGING_ROCTX");
        command
    };
    for (libraries, printed) in
        [("all", "2,1\n"), ("hipblaslt", "2,\n"), ("rocblas,miopen", ",1\n"), ("rocblas", ",\n")]
    {
        assert_eq!(ran(&mut record(libraries)).expect(0).stdout, printed, "{libraries}");
    }
    let own = ran(record("all").env("HIPBLASLT_ENABLE_MARKER", "0"));
    assert_eq!(own.expect(0).stdout, "0,1\n", "what the user has set stays");
    let tool = ran(dir
        .rpd(&tools("hipblaslt_trace", &["--force"], &shows))
        .env_remove("HIPBLASLT_ENABLE_MARKER")
        .env_remove("MIOPEN_ENABLE_LOGGING_ROCTX"));
    assert_eq!(tool.expect(0).stdout, "2,\n");
}

#[test]
fn sensors_are_madengine_s_bytes() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::start_monotonic_ns', '1000000000'),
            ('session::0::start_realtime_ns', '1763805832540273000'), ('session::0::monitor_vram_total::0', '40000000000');
         INSERT INTO rocpd_monitor (id, deviceType, deviceId, monitorType, start, \"end\", value) VALUES
            (1, 'gpu', 0, 'power', 1000000000, 1150000000, '71.23'), (2, 'gpu', 1, 'power', 1100000000, 1300000000, '300'),
            (3, 'gpu', 0, 'power', 9000000000, 9000000001, '80.5'), (4, 'gpu', 0, 'vram', 1000000000, 1000000002, '10000000000'),
            (5, 'gpu', 1, 'vram', 1000000000, 1000000002, '1');",
    );
    let export = |arguments: &[&str]| {
        let mut command = dir.rpd(&[&["export", "gpu-info"], arguments].concat());
        ran(command.env("TZ", "UTC"))
    };
    let written = "time,Power(Watt) GPU0,Power(Watt) GPU1\r\n2025-11-22 10:03:52.540273,71.23,N/A\r\n\
        2025-11-22 10:03:52.640273,71.23,300.0\r\n2025-11-22 10:03:52.740273,N/A,300.0\r\n2025-11-22 10:04:00.540273,80.5,N/A\r\n";
    assert_eq!(export(&["power", &trace]).expect(0).stdout, written);
    assert_eq!(
        export(&["vram", &trace, "--gpu", "0"]).expect(0).stdout,
        "time,vram(%) GPU0\r\n2025-11-22 10:03:52.540273,25.0\r\n"
    );
    export(&["vram", &trace]).expect(1).says(&["how much memory GPU 1 has"]);
    // Of a time, both of its ends included; its first row is at its begin.
    let part = export(&["power", &trace, "--start", "1050000000", "--end", "1150000000", "--every", "50ms"]);
    assert_eq!(
        part.expect(0).stdout,
        "time,Power(Watt) GPU0,Power(Watt) GPU1\r\n2025-11-22 10:03:52.590273,71.23,N/A\r\n\
         2025-11-22 10:03:52.640273,71.23,300.0\r\n2025-11-22 10:03:52.690273,N/A,300.0\r\n"
    );
    export(&["power", &trace, "--gpu", "7"]).expect(1).says(&["GPU 7 has no readings"]);
    let some = export(&["power", &trace, "--gpu", "1,7,1", "--end", "1150000000"]);
    assert_eq!(
        some.expect(0).says(&["GPU 7 has no readings", "no column"]).stdout,
        "time,Power(Watt) GPU1\r\n2025-11-22 10:03:52.640273,300.0\r\n"
    );
    export(&["power", &trace, "--every", "0"]).expect(2).says(&["--every", "must be more than nothing"]);
    let empty = dir.trace("empty.rpd", "");
    assert_eq!(export(&["power", &empty]).expect(0).says(&["--monitor power"]).stdout, "time\r\n");
}

#[test]
fn therock_check_looks_at_the_installation_before_the_run() {
    let dir = Dir::new();
    std::fs::create_dir_all(dir.path("rocm/share/therock")).unwrap();
    let run = || {
        let mut command = dir.rpd(&tools("therock_check,rpd", &["--force"], &["touch", "ran"]));
        ran(command.env("ROCM_PATH", dir.path("rocm")).env("PATH", "/usr/bin:/bin"))
    };
    run().expect(1).says(&["therock_check: ROCm does not come from TheRock"]);
    assert!(!dir.path("ran").exists());
    dir.write("rocm/share/therock/therock_manifest.json", "{}");
    let checked = run();
    let line = checked.expect(0).stderr.lines().next().unwrap_or_default();
    assert!(line.starts_with("rpd: therock_check: ROCm comes from TheRock: "), "{checked}");
    assert!(line.ends_with("therock_manifest.json"), "{checked}");
    assert!(dir.path("ran").exists() && dir.path("rpd_output/trace.json").exists());
    // The variables of the configuration are the command's.
    let given = format!(
        r#"{{"tools": ["therock_check"], "docker_env_vars": {{"ROCM_PATH": "{}"}}}}"#,
        dir.path("rocm").display()
    );
    let mut command = dir.rpd(&tools(&given, &["--force"], &["true"]));
    ran(command.env_remove("ROCM_PATH").env("PATH", "/usr/bin:/bin")).expect(0);
}

#[test]
fn names_of_tools_are_no_files_of_the_directory() {
    let dir = Dir::new();
    dir.write("rpd", b"\x7fELF\xff");
    dir.write("rocprofv3_lightweight", "x");
    for names in ["rpd", " rpd , rocprofv3_lightweight"] {
        dir.run(&tools(names, &["--force"], &["true"])).expect(0);
    }
}

#[test]
fn a_trace_may_be_named_for_its_host() {
    let dir = Dir::new();
    dir.run(&tools("rpd", &["-o", "%h/x/t.rpd"], &["true"])).expect(0);
    let names = dir.names();
    let made = |name: &String| dir.path(name).join("x/t.rpd").exists();
    assert!(names.iter().any(made) && !names.iter().any(|name| name.contains('%')), "{names:?}");
}

#[test]
fn a_run_that_says_nothing_of_its_performance_has_none() {
    let dir = Dir::new();
    let run = |prints: &str| {
        dir.run(&tools("rocprofv3_lightweight", &["--performance", "--force"], &["echo", prints])).expect(0);
        let tags = "select count(*) as n from rocpd_metadata where tag like 'performance%'";
        dir.run(&["sql", "--csv", "trace.rpd", tags]).expect(0).stdout.lines().nth(1).unwrap().to_string()
    };
    assert_eq!(run("performance: 12 tokens"), "2");
    assert_eq!(run("it has crashed"), "0");
}

#[test]
fn a_signal_ends_the_wait_for_what_the_command_left_and_the_files_are_written() {
    let dir = Dir::new();
    let leaves = "echo 'performance: 12 tokens'; sleep 1000 & echo $! > left; exit 4";
    let mut command = dir.rpd(&tools("rpd", &["--performance"], &["sh", "-c", leaves]));
    let mut rpd = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(rpd.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("the command has ended; rpd passes on")));
    dir.command("kill").args(["-TERM", &rpd.id().to_string()]).status().unwrap();
    // What it left has this pipe too.
    let ended = rpd.wait().unwrap();
    let left = fs::read_to_string(dir.path("left")).unwrap();
    dir.command("kill").args(["-KILL", left.trim()]).status().unwrap();
    assert_eq!(ended.code(), Some(4), "{ended}");
    assert!(dir.path("rpd_output/trace.json").exists());
    let number = "select value from rocpd_metadata where tag = 'performance'";
    let kept = dir.run(&["sql", "--csv", "rpd_output/trace.rpd", number]);
    assert!(kept.expect(0).stdout.contains("12"), "{kept}");
}

#[test]
fn lists_of_libraries_are_added_to_those_that_are_there() {
    let dir = Dir::new();
    let given = r#"[{"name": "rpd", "cmd": "env", "env_vars": {"LD_LIBRARY_PATH": "./of_the_tool", "LD_PRELOAD": "libm.so.6"}}]"#;
    for options in [&["--force"][..], &["--exec"]] {
        let shows = ["sh", "-c", "echo $LD_LIBRARY_PATH; echo $LD_PRELOAD"];
        let mut command = dir.rpd(&tools(given, options, &shows));
        let ran = ran(command.env("LD_LIBRARY_PATH", "/mine").env("LD_PRELOAD", "libdl.so.2"));
        let lines: Vec<&str> = ran.expect(0).stdout.lines().collect();
        assert!(lines[0].contains("./of_the_tool:/mine"), "{ran}");
        assert!(lines[1].contains("libm.so.6:libdl.so.2"), "{ran}");
        assert_eq!(lines[1].contains("librpd_tracer.so"), options == ["--force"], "{ran}");
    }
}

#[test]
fn ranges_that_are_commands_are_configurations_and_others_are_not() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string (id, string) VALUES (1, ''), (2, 'UserMarker'), (3, 'hipblaslt-bench -m 4, -n 4'),
            (4, 's_api = miopenConvolutionForward | handle = 0x1');
         INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES
            (1, 1, 1, 100, 110, 2, 3), (2, 1, 1, 120, 130, 2, 4), (3, 1, 1, 140, 150, 2, 3);",
    );
    let export = |arguments: &[&str]| {
        let mut command =
            dir.rpd(&[&["export", "library-trace", &trace, "--date", "today"], arguments].concat());
        ran(command.env_remove("JENKINS_BUILD_NUMBER").env_remove("MAD_MODEL_NAME"))
    };
    let header = "jobid,created_date,model,library,config,calls\r\n";
    let row = "0,today,,hipblaslt,\"hipblaslt-bench -m 4, -n 4\",2\r\n";
    assert_eq!(export(&[]).expect(0).stdout, format!("{header}{row}"));
    assert_eq!(export(&["--libraries", "hipblaslt,tensile"]).expect(0).stdout, format!("{header}{row}"));
    assert_eq!(export(&["--libraries", "rocblas"]).expect(0).stdout, header);
    let of_job = row.replace("0,today,,", "77,today,demo,");
    assert_eq!(export(&["--jobid", "77", "--model", "demo"]).expect(0).stdout, format!("{header}{of_job}"));
    export(&["--libraries", "cublas"]).expect(2);
}

/// Each process of the real library prints one line for each configuration, in which it has counted the calls.
#[test]
fn calls_of_rocblas_are_counted_as_its_profile_counts_them() {
    let dir = Dir::new();
    let second = 1_i64 << 32;
    let rows = format!(
        "INSERT INTO rocpd_string VALUES (2, 'rocblas'), (3, 'blas'), (4, 'rocblas_saxpy'), (5, 'rocblas_set_atomics_mode'),
             (6, 'handle=0x1 | n=10 | alpha=2.5 | x=0xa | incx=1 | y=0xb | incy=1'), (7, 'handle=0x1 | atomics_mode=rocblas_atomics_not_allowed'),
             (8, 'handle=0x2 | n=10 | alpha=0x7f | x=0xa | incx=1 | y=0xb | incy=1'), (9, 'rocblas_create_handle'), (10, 'handle=0x1');
         INSERT INTO rocpd_api VALUES (1, 7, 7, 100, 110, 4, 6), (2, 7, 7, 200, 210, 5, 7), (3, 7, 7, 300, 310, 4, 6), (4, 7, 7, 120, 130, 4, 6),
             (5, 7, 7, 400, 410, 4, 8), (6, 7, 7, 500, 510, 9, 10), (7, 7, 7, 600, 610, 4, 6), ({}, 8, 8, 700, 710, 4, 6);
         INSERT INTO ext_librarycall SELECT id, 2, 3 FROM rocpd_api;
         INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::pid', '7'), ('session::1::pid', '8');",
        second + 1
    );
    let trace = dir.trace("t.rpd", &format!("{} {rows}", rpd_sql::ext::RECORDERS.concat()));
    let written = dir.run(&["export", "library-trace", "--date", "today", &trace]);
    let rows: Vec<&str> = written.expect(0).stdout.lines().skip(1).collect();
    let bench = "0,today,,rocblas,./rocblas-bench -f axpy -r f32_r -n 10";
    let line = |mode: &str, calls: u32, rows: u32| {
        format!(
            "0,today,,rocblas_function,\"- {{ rocblas_function: \"\"rocblas_saxpy\"\", atomics_mode: {mode}, N: 10, incx: 1, incy: 1, \
             call_count: {calls} }}\",{rows}"
        )
    };
    assert_eq!(
        rows,
        [
            format!("{bench} --alpha 2.5 --incx 1 --incy 1,4"),
            format!("{bench} --alpha 2.5 --incx 1 --incy 1 --atomics_not_allowed,1"),
            format!("{bench} --incx 1 --incy 1,1"),
            line("atomics_allowed", 4, 1),
            line("atomics_not_allowed", 1, 1),
            line("atomics_allowed", 1, 1),
        ],
        "{written}"
    );
    let part = dir.run(&["export", "library-trace", "--date", "today", "--start", "290", &trace]);
    assert!(part.expect(0).stdout.contains(&line("atomics_not_allowed", 1, 1)), "{part}");
}

#[test]
fn rccls_kernel_trace_has_begin_and_end_per_block() {
    let dir = Dir::new();
    let log = include_str!("../../../fixtures/library-logs/rccl-info-init-coll-2gpus.log");
    dir.write("rccl.log", log);
    let csv = dir.run(&["libraries", "--channels", "--csv", "--log", "rccl.log"]);
    let lines: Vec<&str> = csv.expect(0).stdout.lines().collect();
    assert_eq!(lines[0], "process,rank,block,channel,thread,pci,op,function,begin_us,end_us");
    assert_eq!(
        lines[1],
        "vm:4643:4818,0,0,,,0000:04:00.0,000000,AllReduceRingLLSum_f32,45416931176,45416951684"
    );
    assert_eq!((lines.len() - 1, &*csv.stderr), (log.matches(" KE ").count(), ""));
    let table = dir.run(&["libraries", "--channels", "--log", "rccl.log"]);
    let lines: Vec<&str> = table.expect(0).stdout.lines().collect();
    assert_eq!(lines[0], "       begin  duration  rank  block  channel      op  GPU           function");
    assert_eq!(
        lines[1],
        "45416.931176  20.51 ms     0      0           000000  0000:04:00.0  AllReduceRingLLSum_f32"
    );
    // The program was killed; another log has nothing.
    let begun = log.lines().take_while(|line| !line.contains(" KE ")).collect::<Vec<_>>().join("\n");
    dir.write("killed.log", begun);
    dir.write("other.log", "\x1b[31m\nNCCL INFO ## KL\n");
    let killed = dir.run(&["libraries", "--channels", "--json", "--log", "killed.log", "other.log"]);
    let found: serde_json::Value = serde_json::from_str(&killed.expect(0).stdout).unwrap();
    assert_eq!((found.as_array().unwrap().len(), &found[0]["end_us"]), (2, &serde_json::Value::Null));
    killed.says(&["2 collectives of workgroups have no end in the logs"]);
    let none = dir.run(&["libraries", "--channels", "--log", "other.log"]);
    none.expect(0).says(&["RCCL_KERNEL_COLL_TRACE_ENABLE=1"]);
    dir.run(&["libraries", "--channels", "t.rpd"]).expect(2);
}

#[test]
fn logs_are_read_line_by_line_whatever_they_are() {
    let dir = Dir::new();
    let rocblas = "./rocblas-bench -f gemm -m 64";
    let one = [
        b"\xff\xfe no text \0\r\n",
        format!("{rocblas}\r\nRunning kernel: Cijk_A\n").as_bytes(),
        rocblas.as_bytes(),
    ]
    .concat();
    dir.write("one.log", one);
    dir.write("two.log", format!("{rocblas}\nrocsparse_csrmv,N\n"));
    let header = "jobid,created_date,model,library,config,calls\r\n";
    let export = |arguments: &[&str]| {
        let given = [&["export", "library-trace", "--date", "today", "--log"], arguments].concat();
        let mut command = dir.rpd(&given);
        ran(command.env_remove("JENKINS_BUILD_NUMBER").env_remove("MAD_MODEL_NAME"))
    };
    assert_eq!(
        export(&["one.log", "two.log"]).expect(0).stdout,
        format!("{header}0,today,,rocblas,{rocblas},3\r\n0,today,,tensile,Cijk_A,1\r\n")
    );
    export(&["one.log", "no.log"]).expect(1).says(&["cannot read the log no.log"]);
    // A call of MIOpen's counts as often as it is there.
    let miopen = "MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 1 -F 1 -t 1\n";
    dir.write("miopen.log", [miopen, "other\n", miopen, &miopen.replace("-F 1", "-F 2")].concat());
    assert_eq!(
        export(&["miopen.log"]).expect(0).stdout,
        format!(
            "{header}0,today,,miopen,./bin/MIOpenDriver conv -n 1 -F 1 -t 1,2\r\n0,today,,miopen,./bin/MIOpenDriver conv -n 1 -F 2 -t 1,1\r\n"
        )
    );
    let shown = dir.run(&["libraries", "--csv", "--log", "one.log", "two.log"]);
    assert_eq!(
        shown.expect(0).stdout,
        format!(
            "library,configuration,calls\nrocblas,{rocblas},3\ntensile,Cijk_A,1\nrocsparse,\"rocsparse_csrmv,N\",1\n"
        )
    );
    // A log has no times.
    for region in [&["--start", "1"][..], &["--in", "step"], &["--kernel", "gemm"]] {
        let libraries = [&["libraries", "--log", "one.log"], region].concat();
        for ran in [export(&[&["one.log"], region].concat()), dir.run(&libraries)] {
            let refused = "'--log <LOG>...' cannot be used with";
            assert!(ran.expect(2).stderr.contains(refused) && ran.stderr.contains(region[0]), "{ran}");
        }
    }
    let ran = dir.run(&["libraries", "--bench", "--log", "one.log"]);
    assert!(ran.expect(2).stderr.contains("'--bench'"), "{ran}");
}

/// A run of `rpd` in which a process has written its number into `pid`, by `kill -SIGNAL`: how it ended. Nobody whose number is in a file
/// `pid*` is left.
fn ended_by(dir: &Dir, signal: &str, arguments: &[&str]) -> std::process::ExitStatus {
    let pids = |dir: &Dir| -> Vec<String> {
        let files = dir.names().into_iter().filter(|name| name.starts_with("pid"));
        files.map(|file| fs::read_to_string(dir.path(&file)).unwrap().trim().to_string()).collect()
    };
    for file in dir.names().into_iter().filter(|name| name.starts_with("pid") || name == "log") {
        fs::remove_file(dir.path(&file)).unwrap();
    }
    let mut rpd = dir.rpd(arguments).spawn().unwrap();
    let begun = std::time::Instant::now();
    while !dir.path("pid").exists() || pids(dir).iter().any(String::is_empty) {
        assert!(rpd.try_wait().unwrap().is_none(), "{arguments:?} has ended");
        assert!(begun.elapsed().as_secs() < 100, "{arguments:?} does not begin");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    dir.command("kill").args([format!("-{signal}"), rpd.id().to_string()]).status().unwrap();
    let ended = rpd.wait().unwrap();
    let is_left = |pid: &String| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while pids(dir).iter().any(is_left) {
        assert!(begun.elapsed().as_secs() < 100, "{arguments:?}: a process is left");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    ended
}

#[test]
fn what_exec_started_gets_the_signals_of_rpd() {
    let dir = Dir::new();
    let sleeps =
        "echo $$ > pid_of_shell; sh -c 'echo $$ > new; mv new pid; exec sleep 100'; echo $? >> log\n";
    dir.write("sleeps.sh", sleeps);
    dir.write(
        "wrapper.sh",
        "echo $$ > pid_of_wrapper; \"$@\"; status=$?; echo wrapper $status >> log; exit $status\n",
    );
    dir.write("after.sh", "echo after >> log\n");
    let tool = |rest: &str| format!(r#"[{{"name": "rpd", "env_vars": {{"X": "1"}}, {rest}}}]"#);
    let wrapped =
        tool(r#""cmd": "echo begin > log && sh wrapper.sh", "post_scripts": [{"path": "after.sh"}]"#);
    let begins = "echo $$ > new; mv new pid; ";
    for (signal, number) in [("TERM", 15), ("HUP", 1), ("INT", 2)] {
        // A program that ends by the signal.
        let program = format!("{begins}exec sleep 100");
        let ended = ended_by(&dir, signal, &tools(&wrapped, &["--exec"], &["sh", "-c", &program]));
        assert_eq!(ended.signal(), Some(number), "{ended}");
        // One that has its own way.
        let own = format!(
            "import os, signal, sys
def end(*_):
    print('program', file=open('log', 'a'), flush=True)
    sys.exit(3)
signal.signal({number}, end)
print(os.getpid(), file=open('new', 'w'), flush=True)
os.rename('new', 'pid')
while True: signal.pause()"
        );
        let ended = ended_by(&dir, signal, &tools(&wrapped, &["--exec"], &["python3", "-c", &own]));
        let log = fs::read_to_string(dir.path("log")).unwrap();
        assert_eq!((ended.code(), &*log), (Some(3), "begin\nprogram\nwrapper 3\nafter\n"), "{ended}");
        // A script, whose name is not the first word of the process.
        dir.script("own", &format!("#!/usr/bin/env python3\n{own}\n"));
        let ended = ended_by(&dir, signal, &tools(&wrapped, &["--exec"], &["./own", "x"]));
        assert_eq!(ended.code(), Some(3), "{ended}");
        // A tool of which nobody knows where the program is.
        let changed = tool(r#""cmd": "sh sleeps.sh""#);
        let ended = ended_by(&dir, signal, &tools(&changed, &["--exec"], &["touch", "ran"]));
        assert_eq!(ended.signal(), Some(number), "{ended}");
        // Scripts: the program does not begin after one; another one does not begin after the last.
        let before = tool(r#""pre_scripts": [{"path": "sleeps.sh"}]"#);
        let ended = ended_by(&dir, signal, &tools(&before, &["--exec"], &["touch", "ran"]));
        assert_eq!(ended.signal(), Some(number), "{ended}");
        assert!(!dir.path("ran").exists());
        let after = tool(r#""post_scripts": [{"path": "sleeps.sh"}, {"path": "after.sh"}]"#);
        let ended = ended_by(&dir, signal, &tools(&after, &["--exec"], &["sh", "-c", "exit 7"]));
        assert_eq!(ended.code(), Some(7), "{ended}");
        assert!(!fs::read_to_string(dir.path("log")).unwrap_or_default().contains("after"));
    }
}
