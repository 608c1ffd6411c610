//! `rpd record`: streams, exit status, environment, the trace.

use std::io::Write;
use std::process::Stdio;

use crate::generated::number;
use crate::harness::{Dir, RPD, finished, installed, ran};

#[test]
fn choices_become_variables_of_the_recorder() {
    let dir = Dir::new();
    let show = "echo $RPDT_TIMING $RPDT_HIP_APIS";
    let options =
        ["record", "--timing", "hip", "--hip-apis", "-hipMalloc,+hipEventQuery", "--", "sh", "-c", show];
    assert_eq!(dir.run(&options).expect(0).stdout, "hip -hipMalloc,+hipEventQuery\n");
    dir.run(&["record", "--timing", "gpu", "--", "true"]).expect(2);
}

#[test]
fn a_misspelt_function_stops_before_the_command() {
    let dir = Dir::new();
    for (list, word) in
        [("+hipMaloc", "did you mean hipMalloc?"), ("hipFree", "neither +hipFree nor -hipFree")]
    {
        let result = dir.run(&["record", "--hip-apis", list, "--", "touch", "ran"]);
        result.expect(2).says(&["--hip-apis", word]);
    }
    assert!(dir.names().is_empty());
}

#[test]
fn the_exit_status_is_the_commands() {
    let dir = Dir::new();
    for code in [0, 1, 7, 126, 127, 255] {
        dir.run(&["record", "--", "sh", "-c", &format!("exit {code}")]).expect(code);
    }
    assert_eq!(dir.names(), ["trace.rpd"], "no temporary file is left");
}

#[test]
fn death_by_signal_is_the_commands() {
    let dir = Dir::new();
    for (name, signal) in [("TERM", 15), ("KILL", 9), ("SEGV", 11), ("INT", 2)] {
        let killed = dir.run(&["record", "--", "sh", "-c", &format!("kill -{name} $$")]);
        killed.expect_signal(signal);
        assert!(killed.stderr.contains("trace.rpd: "), "the line at the end is there: {killed}");
    }
    let shell =
        ran(dir.command("sh").args(["-c", &format!("{RPD} record -- sh -c 'kill -TERM $$'; exit $?")]));
    shell.expect(128 + 15);
    assert_eq!(dir.names(), ["trace.rpd"], "no core, no temporary file");
}

#[test]
fn what_cannot_be_run_is_126_or_127_and_leaves_no_trace() {
    let dir = Dir::new();
    dir.write("plain", "no program");
    dir.run(&["record", "--", "no-such-command"]).expect(127).says(&["no-such-command", "not found"]);
    dir.run(&["record", "--", "./no/such/command"]).expect(127).says(&["./no/such/command"]);
    dir.run(&["record", "--", "./plain"]).expect(126).says(&["./plain"]);
    dir.run(&["record", "--", "/"]).expect(126).says(&["/"]);
    // Executable by its mode, but its interpreter is not there: exec itself says so.
    dir.script("script", "#!/no/such/interpreter\n");
    dir.run(&["record", "--", "./script"]).expect(127).says(&["./script"]);
    assert_eq!(dir.names(), ["plain", "script"]);
}

#[test]
fn limits_reach_the_recorder() {
    let dir = Dir::new();
    let show = "echo $RPDT_DELAY $RPDT_DURATION $RPDT_MAX_MB";
    let options = ["record", "--delay", "0.5", "--duration", "60", "--max-mb", "100", "--", "sh", "-c", show];
    assert_eq!(dir.run(&options).expect(0).stdout, "500000000ns 60000000000ns 104857600B\n");
    let with_units =
        ["record", "--delay", "1.5ms", "--duration", "1m", "--max-size", "1GB", "--", "sh", "-c", show];
    assert_eq!(dir.run(&with_units).expect(0).stdout, "1500000ns 60000000000ns 1000000000B\n");
    assert_eq!(dir.run(&["record", "--", "sh", "-c", show]).expect(0).stdout, "\n");
    let rotated = |how: &str| dir.run(&["record", "--rotate", how, "--", "sh", "-c", "echo $RPDT_ROTATE"]);
    assert_eq!(rotated("1GB").expect(0).stdout, "1000000000B\n");
    assert_eq!(rotated("10min").expect(0).stdout, "600000000000ns\n");
    rotated("10m").expect(2).says(&["--rotate", "write 10min or 10MiB"]);
    rotated("100kB").expect(2).says(&["--rotate", "from 1MB"]);
}

#[test]
fn a_script_without_an_interpreter_line_runs_as_in_a_shell() {
    let dir = Dir::new();
    dir.script("script", "echo ran; exit 3\n");
    let result = dir.run(&["record", "--", "./script"]);
    assert_eq!(result.expect(3).stdout, "ran\n");
    assert!(
        result.stderr.lines().next().unwrap().contains("./script has no #! line, so /bin/sh runs it"),
        "{result}"
    );
    dir.run(&["record", "--force", "--", "sh", "./script"]).expect(3).says(&["0 kernels"]);
}

#[test]
fn the_variable_names_the_trace_where_no_option_does() {
    let dir = Dir::new();
    let record = |options: &[&str]| {
        let arguments = [&["record"], options, &["--", "sh", "-c", "echo $RPDT_FILENAME"]].concat();
        let mut command = dir.rpd(&arguments);
        command.env("RPDT_FILENAME", "of-%r-variable.rpd").env("RANK", "7");
        ran(&mut command)
    };
    let path = |name: &str| format!("{}\n", dir.path(name).display());
    assert_eq!(record(&[]).expect(0).stdout, path("of-7-variable.rpd"));
    assert_eq!(record(&["-o", "of-option.rpd"]).expect(0).stdout, path("of-option.rpd"));
    assert_eq!(dir.names(), ["of-7-variable.rpd", "of-option.rpd"]);
    // Ranks that a launcher below has, and processes, are the recorder's to replace.
    let show = ["--", "sh", "-c", "echo $RPDT_FILENAME"];
    for name in ["%p.rpd", "%h-%r.rpd"] {
        let result = dir.run(&[&["record", "-o", name], &show[..]].concat());
        assert_eq!(result.expect(0).stdout, path(name), "{result}");
    }
    dir.run(&["record", "-o", "no-such-place/%p.rpd", "--", "true"]).expect(1).says(&["no-such-place"]);
    for force in [&["--force"][..], &["--force", "--force"]] {
        dir.run(&[&["record"], force, &["-o", "%p.rpd", "--", "true"]].concat()).expect(1).says(&["--force"]);
    }
    let mut pipe = dir.rpd(&["record", "--", "true"]);
    ran(pipe.env("RPDT_FILENAME", "-")).expect(1).says(&["RPDT_FILENAME", "pipe"]);
    assert_eq!(dir.names(), ["of-7-variable.rpd", "of-option.rpd"]);
}

/// The rank of a place is not that of the ranks that a launcher starts there: srun's below torchrun, that of a batch script below mpirun.
#[test]
fn ranks_below_the_command_name_their_own_files() {
    let dir = Dir::new();
    let show = ["--", "sh", "-c", "echo $RPDT_FILENAME $RPDT_APPEND"];
    let record = |options: &[&str], environment: &[(&str, &str)]| {
        let arguments = [&["record"], options, &show[..]].concat();
        ran(dir.rpd(&arguments).envs(environment.iter().copied()))
    };
    let path = |name: &str| format!("{}\n", dir.path(name).display());
    let step = [("SLURM_JOB_ID", "77"), ("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "1")];
    for environment in [&step[..], &step[2..], &[("FLUX_TASK_RANK", "1")], &[("JOB_COMPLETION_INDEX", "1")]] {
        let result = record(&["-o", "q%r.rpd"], environment);
        assert_eq!(result.expect(0).stdout, path("q%r.rpd 0"), "{environment:?} {result}");
    }
    assert!(dir.names().is_empty());
    let torchrun = [&step[..], &[("RANK", "6")]].concat();
    assert_eq!(record(&["-o", "q%r-%j.rpd"], &torchrun).expect(0).stdout, path("q6-77.rpd"));
    // srun starts the ranks themselves, as far as is known beforehand.
    dir.trace("q1.rpd", &begun(0x7fff_ffff, &[("end_monotonic_ns", "9100000000000000000")]));
    record(&["-o", "q%r.rpd"], &step).expect(1).says(&["q1.rpd already holds a recording"]);
    assert_eq!(record(&["-o", "q%r.rpd", "--force"], &step).expect(0).stdout, path("q1.rpd"));
    assert_eq!(number(&dir.open("q1.rpd"), "select count(*) from rocpd_op"), 0, "replaced");
    assert_eq!(record(&["-o", "q%r.rpd", "--append"], &step).expect(0).stdout, path("q%r.rpd"));
    // A job that only a launcher below the command knows.
    assert_eq!(record(&["-o", "j%j.rpd"], &[]).expect(0).stdout, path("j%j.rpd 0"));
    assert_eq!(record(&["-o", "j%j.rpd"], &step).expect(0).stdout, path("j77.rpd"));
}

#[test]
fn a_letter_that_stands_for_nothing_is_said() {
    let dir = Dir::new();
    let result = dir.run(&["record", "-o", "a%q.rpd", "--", "true"]);
    let said = "rpd: %q in a%q.rpd stays: it stands for nothing. %p is the process, ";
    assert!(result.expect(0).stderr.starts_with(said), "{result}");
    assert_eq!(dir.names(), ["a%q.rpd"]);
}

/// An operation, and a session of process `pid` on this host that has not ended; `facts` count before these.
fn begun(pid: u32, facts: &[(&str, &str)]) -> String {
    let own = |file: &str| std::fs::read_to_string(file).unwrap().trim().to_string();
    let (boot, host) = (own("/proc/sys/kernel/random/boot_id"), own("/proc/sys/kernel/hostname"));
    let pid = pid.to_string();
    let known = [
        ("boot_id", &*boot),
        ("host", &*host),
        ("pid", &*pid),
        ("start_monotonic_ns", "9000000000000000000"),
    ];
    let known = known.iter().filter(|(key, _)| facts.iter().all(|(other, _)| other != key));
    let rows = known.chain(facts).map(|(key, value)| format!("('session::0::{key}', '{value}')"));
    format!(
        "INSERT INTO rocpd_op (gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
             VALUES (0, 0, 0, '', 1, 2, 1, 1);
         INSERT INTO rocpd_metadata (tag, value) VALUES ('session_count', '1'), {}",
        rows.collect::<Vec<_>>().join(", ")
    )
}

#[test]
fn a_late_rank_of_the_same_job_adds_to_the_trace() {
    let dir = Dir::new();
    let none = 0x7fff_ffff;
    // The process that records now is this test's own, whose process group rpd is in.
    dir.trace("running.rpd", &begun(std::process::id(), &[]));
    dir.trace("ended.rpd", &begun(std::process::id(), &[("end_monotonic_ns", "9100000000000000000")]));
    dir.trace("killed.rpd", &begun(none, &[]));
    let step = [("env::SLURM_JOB_ID", "12"), ("env::SLURM_STEP_ID", "3")];
    dir.trace("step.rpd", &begun(none, &step));
    dir.trace("torchrun.rpd", &begun(none, &[("env::TORCHELASTIC_RUN_ID", "none")]));
    let record = |trace: &str, environment: &[(&str, &str)]| {
        let mut command = dir.rpd(&["record", "-o", trace, "--", "true"]);
        for name in ["SLURM_JOB_ID", "SLURM_STEP_ID", "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE"] {
            command.env_remove(name);
        }
        ran(command.envs(environment.iter().copied()))
    };
    record("running.rpd", &[]).expect(0);
    record("step.rpd", &[("SLURM_JOB_ID", "12"), ("SLURM_STEP_ID", "3")]).expect(0);
    for (trace, environment) in [
        ("ended.rpd", &[][..]),
        ("killed.rpd", &[]),
        ("step.rpd", &[]),
        ("step.rpd", &[("SLURM_JOB_ID", "12")]),
        ("step.rpd", &[("SLURM_JOB_ID", "12"), ("SLURM_STEP_ID", "4")]),
        ("torchrun.rpd", &[("TORCHELASTIC_RUN_ID", "none")]),
    ] {
        record(trace, environment).expect(1).says(&[trace, "already holds a recording", "--append"]);
    }
}

/// What another host or container does is not seen from here: a session without an end may be going on there.
#[test]
fn a_file_that_may_be_recorded_elsewhere_is_not_replaced_by_one_force() {
    let dir = Dir::new();
    let none = 0x7fff_ffff;
    let own = std::fs::read_link("/proc/self/ns/pid").unwrap().display().to_string();
    let boot = ("boot_id", "11111111-2222-3333-4444-555555555555");
    let ended = ("end_monotonic_ns", "9100000000000000000");
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_string();
    for (trace, who, facts) in [
        ("host.rpd", Some("node7"), &[("host", "node7"), boot][..]),
        ("ended.rpd", None, &[("host", "node7"), boot, ended]),
        ("before.rpd", None, &[boot]),
        ("before-in-container.rpd", None, &[boot, ("pid_namespace", "pid:[1]")]),
        ("killed.rpd", None, &[("pid_namespace", &own)]),
        ("container.rpd", Some(&*host), &[("pid_namespace", "pid:[1]")]),
        ("named-container.rpd", Some("c0ffee"), &[("host", "c0ffee"), ("pid_namespace", "pid:[1]")]),
    ] {
        dir.trace(trace, &begun(none, facts));
        let one = dir.run(&["record", "-o", trace, "--force", "--", "true"]);
        let operations = || number(&dir.open(trace), "select count(*) from rocpd_op");
        match who {
            Some(who) => {
                one.expect(1).says(&[trace, &format!("{who} may be recording into it"), "--force --force"]);
                assert_eq!(operations(), 1);
            }
            None => {
                one.expect(0);
            }
        }
        dir.run(&["record", "-o", trace, "--force", "--force", "--", "true"]).expect(0);
        assert_eq!(operations(), 0);
    }
}

#[test]
fn the_streams_are_the_commands() {
    let dir = Dir::new();
    let mut child = dir
        .rpd(&["record", "--", "sh", "-c", "cat; echo to stderr >&2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"line one\nline two\n").unwrap();
    let result = finished(child.wait_with_output().unwrap(), "record cat".into());
    assert_eq!(result.expect(0).stdout, "line one\nline two\n");
    let lines: Vec<&str> = result.stderr.lines().collect();
    assert_eq!((lines.len(), lines[0]), (2, "to stderr"), "{result}");
    assert!(
        lines[1].starts_with("rpd: trace.rpd: 0 kernels, 0 copies, 0 records lost, 0.00 s recorder CPU"),
        "{result}"
    );
}

#[test]
fn the_arguments_and_the_name_are_the_commands() {
    let dir = Dir::new();
    let result =
        dir.run(&["record", "--", "sh", "-c", "printf '%s|' \"$0\" \"$@\"", "--force", "-o", "", "a b"]);
    assert_eq!(result.expect(0).stdout, "--force|-o||a b|");
}

#[test]
fn the_recorder_learns_where_and_when() {
    let dir = Dir::new();
    let show = "echo \"$RPDT_FILENAME $RPDT_AUTOSTART ${LD_PRELOAD%%:*}\"; test -w \"$RPDT_REPORT\"";
    let result = dir.run(&["record", "-o", "100%%p.rpd", "--no-start", "--", "sh", "-c", show]);
    let expected = dir.path("100%%p.rpd").display().to_string();
    let words: Vec<&str> = result.expect(0).stdout.split_whitespace().collect();
    assert_eq!(words[..2], [expected.as_str(), "0"], "{result}");
    assert!(words[2].ends_with("/librpd_tracer.so") && words[2].starts_with('/'), "{result}");
    assert_eq!(dir.names(), ["100%p.rpd"]);
    let result = dir.run(&["record", "--", "sh", "-c", "echo ${RPDT_AUTOSTART-unset}"]);
    assert_eq!(result.expect(0).stdout, "unset\n");
}

#[test]
fn other_preloaded_libraries_stay() {
    let dir = Dir::new();
    let library = dir.compile("other.so", "int other(void) { return 1; }", &["-shared", "-fPIC"]);
    let mut command = dir.rpd(&["record", "--", "sh", "-c", "echo $LD_PRELOAD"]);
    let result = ran(command.env("LD_PRELOAD", &library));
    let preloaded: Vec<&str> = result.expect(0).stdout.trim().split(':').collect();
    // Behind the recorder and HIP's names.
    assert_eq!(preloaded.len(), 3, "{result}");
    assert_eq!(preloaded[2], library.to_str().unwrap());
}

#[test]
fn hips_names_are_preloaded_where_they_are_of_use() {
    let dir = Dir::new();
    for (folder, file) in [("old", "libamdhip64.so.5.2.21153"), ("new", "libamdhip64.so.6.4.43484")] {
        std::fs::create_dir(dir.path(folder)).unwrap();
        dir.write(&format!("{folder}/{file}"), "");
        std::os::unix::fs::symlink(file, dir.path(&format!("{folder}/{}", &file[..16]))).unwrap();
    }
    // By the names of now and by those of an earlier version.
    let is_preloaded = |folder: &str, how: &str, variable: &str| {
        let by = |option: &str, name: &str| {
            let mut command =
                dir.rpd(&["record", "--force", option, how, "--", "sh", "-c", "echo $LD_PRELOAD"]);
            let ran = ran(command.env("LD_LIBRARY_PATH", dir.path(folder)).env(name, variable));
            ran.expect(0).stdout.contains("/librpd_hip.so")
        };
        let is_preloaded = by("--hip-calls", "RPDT_HIP_CALLS");
        assert_eq!(by("--hip-door", "RPDT_HIP_DOOR"), is_preloaded);
        is_preloaded
    };
    assert!(is_preloaded("old", "auto", ""));
    assert!(!is_preloaded("new", "auto", ""));
    assert!(!is_preloaded("old", "callbacks", "") && !is_preloaded("old", "auto", "callbacks"));
    assert!(is_preloaded("new", "symbols", "") && is_preloaded("new", "auto", "symbols"));
}

#[test]
fn an_empty_or_fresh_file_is_used() {
    let dir = Dir::new();
    dir.write("empty.rpd", "");
    dir.run(&["create", "fresh.rpd"]).expect(0);
    for name in ["empty.rpd", "fresh.rpd", "missing.rpd"] {
        dir.run(&["record", "-o", name, "--", "true"]).expect(0).says(&[name]);
        dir.run(&["info", name]).expect(0);
    }
}

#[test]
fn a_trace_that_cannot_be_made_stops_before_the_command() {
    let dir = Dir::new();
    dir.run(&["record", "-o", "no/such/t.rpd", "--", "touch", "ran"]).expect(1).says(&["no/such/t.rpd"]);
    assert!(dir.names().is_empty());
}

#[test]
fn a_missing_place_for_temporary_files_stops_before_the_command() {
    let dir = Dir::new();
    let mut command = dir.rpd(&["record", "--", "touch", "ran"]);
    ran(command.env("TMPDIR", "/no/such/dir")).expect(1).says(&["/no/such/dir"]);
    assert!(dir.names().is_empty());
}

#[test]
fn a_missing_recorder_stops_before_the_command() {
    let dir = Dir::new();
    let mut command = dir.rpd(&["record", "--", "touch", "ran"]);
    ran(command.env("RPD_TRACER_PATH", "/no/such.so")).expect(1).says(&["RPD_TRACER_PATH", "/no/such.so"]);
    // A copy of rpd without the library anywhere near it.
    dir.install(RPD, "bin/rpd");
    let lost = ran(dir.command(dir.path("bin/rpd")).args(["record", "--", "touch", "ran"]));
    lost.expect(1).says(&["searched", "bin/librpd_tracer.so", "lib/rpd/librpd_tracer.so", "RPD_TRACER_PATH"]);
    assert_eq!(dir.names(), ["bin"]);
}

#[test]
fn an_installed_recorder_is_found_and_blanks_in_its_path_are_refused() {
    let dir = Dir::new();
    let library = std::path::Path::new(RPD).with_file_name("librpd_tracer.so");
    for (prefix, runs) in [("prefix", true), ("a b", false)] {
        dir.install(RPD, &format!("{prefix}/bin/rpd"));
        dir.install(&library, &format!("{prefix}/lib/rpd/librpd_tracer.so"));
        let result = ran(dir.command(dir.path(prefix).join("bin/rpd")).args([
            "record",
            "--",
            "sh",
            "-c",
            "echo $LD_PRELOAD",
        ]));
        if runs {
            assert!(result.expect(0).stdout.trim().ends_with("prefix/lib/rpd/librpd_tracer.so"), "{result}");
        } else {
            result.expect(1).says(&["LD_PRELOAD", "blanks and colons"]);
        }
    }
}

#[test]
fn only_this_runs_rows_are_counted() {
    if !installed("sqlite3") {
        return;
    }
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    dir.run(&["record", "--append", "-o", &trace, "--", "true"]).expect(0).says(&["0 kernels, 0 copies"]);
    // A command that adds sessions as recorders do: one of this run, with loss, and one of another.
    let rows = "UPDATE rocpd_metadata SET value = '3' WHERE tag = 'session_count';
        INSERT INTO rocpd_string VALUES (4294967297, ''), (4294967298, 'KernelExecution'), (4294967299, 'CopyHostToDevice'),
            (4294967300, 'FillBuffer');
        INSERT INTO rocpd_op VALUES (4294967297, 0, 0, 0, '', 1, 2, 4294967297, 4294967298),
            (4294967298, 0, 0, 0, '', 1, 2, 4294967297, 4294967298),
            (4294967299, 0, 0, 0, '', 1, 2, 4294967297, 4294967299),
            (4294967300, 0, 0, 0, '', 1, 2, 4294967297, 4294967300),
            (8589934593, 0, 0, 0, '', 1, 2, 4294967297, 4294967298);
        INSERT INTO rocpd_metadata (tag, value) VALUES ('session::1::lost::buffer_full', '5'),
            ('session::1::recorder_cpu_ns', '1250000000'),
            ('session::2::run', 'of another'), ('session::2::lost::buffer_full', '7');";
    dir.write("rows.sql", rows);
    let run =
        "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::1::run', '$(basename $RPDT_REPORT)')";
    let result = dir.run(&[
        "record",
        "--append",
        "-o",
        &trace,
        "--",
        "sh",
        "-c",
        &format!("sqlite3 {trace} < rows.sql; sqlite3 {trace} \"{run}\""),
    ]);
    result.expect(0);
    assert_eq!(
        result.stderr,
        format!("rpd: {trace}: 2 kernels, 1 copy, 1 fill, 5 records lost, 1.25 s recorder CPU\n")
    );
}

#[test]
fn a_trace_that_vanishes_changes_nothing_for_the_command() {
    let dir = Dir::new();
    dir.run(&["record", "--", "sh", "-c", "rm trace.rpd; exit 5"])
        .expect(5)
        .says(&["trace.rpd", "cannot read back"]);
}

#[test]
fn a_working_directory_that_is_gone() {
    let dir = Dir::new();
    let record = |options: &str| {
        let shell =
            format!("mkdir gone && cd gone && rmdir ../gone && exec {RPD} record {options} -- /bin/true");
        ran(dir.command("bash").args(["-c", &shell]))
    };
    record("").expect(1).says(&["trace.rpd: the working directory is not there", "-o"]);
    let elsewhere = dir.path("elsewhere.rpd");
    record(&format!("-o {}", elsewhere.display())).expect(0).says(&["elsewhere.rpd: 0 kernels"]);
}
