//! Before the first start the loader is nobody's business; the first start brings the recorder.

use super::{ask, check, early, end, maps, remote, service, status, threads, with_loader};
use crate::harness::{Dir, Run, loader, program, recorder, tool};

#[test]
fn before_the_first_start_there_is_one_thread_and_nothing_else() {
    let plain = Dir::new();
    let mut without = Run::new(&plain, program("service")).arg("4").arg("end").arg("steps").start();
    without.wait_for_output("ready");
    let expected = threads(&without).len();
    end(&plain);
    without.finish().expect(0).expect_silent();

    let dir = Dir::new();
    let mut running = service(&dir).start();
    running.wait_for_output("ready");
    let names = threads(&running);
    assert_eq!(names.iter().filter(|name| name.starts_with("rpd-")).collect::<Vec<_>>(), ["rpd-remote"]);
    assert_eq!(names.len(), expected + 1, "{names:?}");
    assert!(!maps(&running).contains("librpd_tracer"));
    let status = status(&running);
    assert_eq!((&status["state"], &status["file"]), (&"ready".into(), &serde_json::Value::Null));
    assert!(!maps(&running).contains("librpd_tracer"), "looking loads nothing");
    end(&dir);
    running.finish().expect(0).expect_silent();
    assert_eq!(dir.names(), ["end", "steps"]);
}

#[test]
fn a_helper_without_a_gpu_is_as_without() {
    let dir = Dir::new();
    // Its descriptors, its threads, its maps but for the libraries themselves.
    let script = "ls /proc/self/fd; ls /proc/self/task | wc -l; grep -c memfd /proc/self/maps; sh -c 'echo grandchild'";
    let run = |run: Run<'_>| {
        let ran = run.arg("-c").arg(script).run();
        ran.expect(0).expect_silent();
        ran.stdout
    };
    assert_eq!(run(with_loader(&dir, "sh")), run(Run::new(&dir, "sh")));
    assert_eq!(run(with_loader(&dir, "sh").env("RPD_REMOTE", "both")), run(Run::new(&dir, "sh")));
    assert_eq!(dir.names(), Vec::<String>::new());
}

#[test]
fn the_block_is_out_of_the_programs_way() {
    let dir = Dir::new();
    let mut running = early(&dir, "control").arg("say=ready").arg("wait=end").start();
    running.wait_for_output("ready");
    let folder = format!("/proc/{}/fd", running.pid());
    let blocks: Vec<u32> = std::fs::read_dir(&folder)
        .unwrap()
        .flatten()
        .filter(|entry| {
            std::fs::read_link(entry.path()).unwrap().to_string_lossy().starts_with("/memfd:rpd-remote")
        })
        .map(|entry| entry.file_name().to_str().unwrap().parse().unwrap())
        .collect();
    assert_eq!(blocks.len(), 1);
    assert!(blocks[0] >= 200, "descriptor {} is one that programs use", blocks[0]);
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::metadata(format!("{folder}/{}", blocks[0])).unwrap();
    assert_eq!(file.mode() & 0o777, 0o600);
    // Whoever may open it can still not make it fault.
    let block = std::fs::OpenOptions::new().write(true).open(format!("{folder}/{}", blocks[0])).unwrap();
    assert!(block.set_len(0).is_err());
    end(&dir);
    running.finish().expect(0).expect_silent();
}

#[test]
fn a_start_records_and_a_stop_makes_it_readable() {
    let dir = Dir::new();
    let acts = [
        "mark=before",
        "say=ready",
        "wait=go",
        "mark=one",
        "say=marked",
        "wait=on",
        "mark=after",
        "say=on",
        "wait=end",
    ];
    let mut running = acts.into_iter().fold(early(&dir, "control"), Run::arg).start();
    running.wait_for_output("ready");
    let trace = dir.path("trace.rpd");
    let said = ask("start", &["--wait"], &running).done();
    assert_eq!(said.stdout, format!("{}: recording into {}\n", running.pid(), trace.display()));
    assert!(trace.exists(), "made by the start, so that what is wrong with it shows then");
    let again = ask("start", &["--wait"], &running).done();
    assert!(again.stdout.contains("is recording already"), "{again:?}");
    std::fs::write(dir.path("go"), "").unwrap();
    running.wait_for_output("marked");
    let said = ask("stop", &["--wait"], &running).done();
    assert_eq!(said.stdout, format!("{}: stopped; 1 events in {}\n", running.pid(), trace.display()));
    let marks = || dir.trace("trace.rpd").texts("select args from api order by start");
    assert_eq!(marks(), ["one"], "while the program runs");
    std::fs::write(dir.path("on"), "").unwrap();
    running.wait_for_output("on\n");
    let status = status(&running);
    assert_eq!(
        (&status["state"], &status["events"], &status["session"]),
        (&"stopped".into(), &1.into(), &0.into())
    );
    let names = threads(&running);
    assert!(names.contains(&"rpd-remote".into()) && names.contains(&"rpd-writer".into()), "{names:?}");
    end(&dir);
    running.finish().expect(0).expect_silent();
    assert_eq!(marks(), ["one"]);
    check(&dir.trace("trace.rpd"));
}

#[test]
fn what_the_loader_is_made_of() {
    let dynamic = tool("readelf", &["-dW".as_ref(), loader().as_os_str()]);
    let needed: Vec<_> = dynamic.lines().filter(|line| line.contains("(NEEDED)")).collect();
    for library in &needed {
        let allowed = ["libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2"];
        assert!(allowed.iter().any(|name| library.contains(&format!("[{name}]"))), "{library}");
    }
    assert!(dynamic.contains("Library soname: [librpd_remote.so]"), "{dynamic}");
    let flags = dynamic.lines().find(|line| line.contains("(FLAGS_1)")).unwrap();
    assert!(flags.contains("NODELETE"), "{flags}");
    let size = std::fs::metadata(loader()).unwrap().len();
    assert!(size < 512 << 10, "{size} bytes");
    let text = tool("nm", &["-D".as_ref(), "--defined-only".as_ref(), loader().as_os_str()]);
    let mut exports: Vec<_> = text.lines().filter_map(|line| line.split(' ').next_back()).collect();
    exports.sort();
    assert_eq!(
        exports,
        [
            "HSA_AMD_TOOL_PRIORITY",
            "InitializeInjection",
            "OnLoad",
            "OnUnload",
            "RPD_REMOTE_LOADING",
            "_Exit",
            "_exit",
            "pthread_exit",
            "sigaction",
            "signal"
        ]
    );
    let bytes = std::fs::read(loader()).unwrap();
    assert!(!bytes.windows(6).any(|six| six.eq_ignore_ascii_case(b"sqlite")), "SQLite in the loader");
}

#[test]
fn usage_and_what_cannot_be_controlled() {
    assert_eq!(remote(&["start"]).code, Some(2));
    assert_eq!(remote(&["begin", "1"]).code, Some(2));
    remote(&["stop", "4194305"]).failed("4194305: there is no such process");
    let dir = Dir::new();
    let mut without = Run::new(&dir, program("control")).arg("say=ready").arg("wait=end").start();
    without.wait_for_output("ready");
    ask("start", &["--wait"], &without).failed("start the program with LD_PRELOAD=librpd_remote.so");
    end(&dir);
    without.finish().expect(0).expect_silent();
    let dir = Dir::new();
    let mut running = with_loader(&dir, program("control")).arg("say=ready").arg("wait=end").start();
    running.wait_for_output("ready");
    ask("start", &[], &running).failed("no GPU runtime has called it yet");
    assert!(!maps(&running).contains("memfd:rpd-remote"), "there is no block yet");
    end(&dir);
    running.finish().expect(0).expect_silent();
}

#[test]
fn a_stop_says_what_was_recorded() {
    let dir = Dir::new();
    let both = [recorder(), loader()];
    let mut running = service(&dir).preload(&both).env("RPDT_AUTOSTART", "0").start();
    running.wait_for_output("ready");
    ask("start", &["--wait"], &running).done();
    dir.wait_for_rows("trace.rpd", "select count(*) from dispatch", 1);
    ask("stop", &["--wait"], &running).done();
    let trace = dir.trace("trace.rpd");
    let fact = |key: &str| trace.metadata(&format!("session::0::{key}")).into_values().next().unwrap();
    assert_eq!(fact("sources"), "hsa,hip");
    assert!(!fact("hip_door").is_empty());
    let kernels = trace.number("select count(*) from op where opType = 'KernelExecution'");
    assert!(kernels > 0);
    assert_eq!(fact("recorded::kernel"), kernels.to_string());
    end(&dir);
    running.finish().expect(0).expect_silent();
}
