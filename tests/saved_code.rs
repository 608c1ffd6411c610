//! RPDT_SAVE_CODE: what a program loads lies in the directory, byte for byte, and the trace says which kernel came from where.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::harness::{Dir, Loading, Run, Trace, code_object, command, program, recorder, rpd, tool};

/// A kernel's code object by the trace: the kernel, the GPU, and the row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    kernel: String,
    gpu: u32,
    sha256: String,
    uri: String,
    target: String,
    size: i64,
}

/// What each kernel in the trace came from: once for each row of a kernel.
fn links(trace: &Trace) -> Vec<Link> {
    let sql = "select d.kernelName, d.gpuId, c.sha256, c.uri, c.target, c.size from dispatch d
        join ext_codeobject_kernel k on k.id = d.codeObject_id join ext_codeobject c on c.id = k.ext_codeobject_id
        where d.opType = 'KernelExecution' group by d.codeObject_id order by min(d.id)";
    trace.rows(sql, |row| {
        Ok(Link {
            kernel: row.get(0)?,
            gpu: row.get(1)?,
            sha256: row.get(2)?,
            uri: row.get(3)?,
            target: row.get(4)?,
            size: row.get(5)?,
        })
    })
}

fn sha256(file: &Path) -> String {
    tool("sha256sum", &[file]).split(' ').next().unwrap().to_string()
}

/// The hashes of the files in a directory, all of which are named for theirs.
#[track_caller]
fn saved(directory: &Path) -> BTreeSet<String> {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let hash = |file: PathBuf| {
        let hash = sha256(&file);
        assert_eq!(file.file_name().unwrap().to_str().unwrap(), format!("{hash}.hsaco"));
        hash
    };
    files.filter(|file| file.extension().is_some_and(|extension| extension == "hsaco")).map(hash).collect()
}

/// All that the compiler made of the program and of the module.
fn made(names: &[&str], targets: &[&str]) -> BTreeSet<String> {
    let of = |name: &&str| targets.iter().map(|gfx| sha256(&code_object(name, gfx))).collect::<Vec<_>>();
    names.iter().flat_map(of).collect()
}

/// The bytes that a `file://` address leads to.
fn at(uri: &str) -> Vec<u8> {
    let (path, range) = uri.strip_prefix("file://").unwrap().split_once("#offset=").unwrap();
    let (offset, size) = range.split_once("&size=").unwrap();
    let (offset, size): (usize, usize) = (offset.parse().unwrap(), size.parse().unwrap());
    fs::read(path).unwrap()[offset..offset + size].to_vec()
}

fn argument(kind: &str, file: &Path) -> String {
    format!("{kind}={}", file.display())
}

/// The sessions that have a code object of this hash.
fn sessions_with(trace: &Trace, hash: &str) -> usize {
    let sql = format!("select count(distinct id >> 32) from ext_codeobject where sha256 = '{hash}'");
    trace.number(&sql) as usize
}

#[test]
fn a_program_on_two_targets() {
    let dir = Dir::new();
    let module = program("module.co");
    let mut run = Run::new(&dir, program("load_code")).gpus(2).env("SIMGPU_GFX", "gfx900,gfx906");
    for device in ["device=0", "device=1"] {
        run = run.arg(device).arg("fat").arg(argument("file", &module)).arg(argument("memory", &module));
    }
    run.recorded(Loading::RpdRecord).record_option("--save-code").run().expect(0);
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let targets = ["gfx900", "gfx906"];
    let links = links(&trace);
    assert_eq!(links.len(), 6, "{links:#?}");
    for (gpu, gfx) in (0..).zip(targets) {
        let of =
            |kernel: &str| links.iter().filter(|l| l.gpu == gpu && l.kernel == kernel).collect::<Vec<_>>();
        for (kernel, name, count) in [("of_the_program(int*)", "load_code", 1), ("scale", "module.co", 2)] {
            let made = code_object(name, gfx);
            let found = of(kernel);
            assert_eq!(found.len(), count, "{links:#?}");
            for link in found {
                assert_eq!((&link.sha256, &*link.target), (&sha256(&made), gfx));
                assert_eq!(link.size, fs::metadata(&made).unwrap().len() as i64);
                if link.uri.starts_with("file://") {
                    assert_eq!(at(&link.uri), fs::read(&made).unwrap(), "{}", link.uri);
                    assert!(link.uri.contains(program(name).to_str().unwrap()), "{}", link.uri);
                } else {
                    assert!(link.uri.starts_with("memory://") && kernel == "scale", "{}", link.uri);
                }
            }
        }
        assert!(of("scale").iter().any(|link| link.uri.starts_with("file://")));
    }
    let saved = saved(&dir.path("trace.rpd.code"));
    let made = made(&["load_code", "module.co"], &targets);
    assert!(saved.is_superset(&made), "{saved:?} {made:?}");
    // The rest are kernels of the runtime's own.
    let rows: BTreeSet<String> = trace.texts("select sha256 from ext_codeobject").into_iter().collect();
    assert_eq!(rows, saved, "a file for each content");
    assert_eq!(
        trace.metadata("session::%::saved_code").into_values().collect::<Vec<_>>(),
        [dir.path("trace.rpd.code").to_str().unwrap()]
    );
    let (rpd, file) = (rpd(), dir.path("trace.rpd"));
    tool(rpd.to_str().unwrap(), &["check", file.to_str().unwrap()]);
    // Those that were in memory alone are found where they were saved.
    let output =
        tool(rpd.to_str().unwrap(), &["code", "--args", "--kernel", "^scale$", file.to_str().unwrap()]);
    assert!(output.contains("global_buffer"), "{output}");
    let ran = command(&rpd).args(["code".as_ref(), file.as_os_str()]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "", "each is found");
}

#[test]
fn nothing_is_saved_unasked() {
    let dir = Dir::new();
    Run::new(&dir, program("load_code")).arg("fat").recorded(Loading::Preload).run().expect_silent();
    assert_eq!(dir.names(), ["trace.rpd"]);
    assert!(!dir.trace("trace.rpd").has_table("ext_codeobject"));
}

/// Code that is loaded in a pause, and before a trace that is deleted meanwhile.
#[test]
fn what_was_loaded_before_a_session_is_in_it() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("load_code"))
        .arg(argument("memory", &program("module.co")))
        .arg("fat")
        .arg("start")
        .arg("fat")
        .arg("flush")
        .arg("ready")
        .arg("fat");
    let run = run.env("RPDT_SAVE_CODE", "code-%p").env("RPDT_AUTOSTART", "0").recorded(Loading::Preload);
    let mut running = run.start();
    running.wait_for_output("ready");
    let directory = dir.path(&format!("code-{}", running.pid()));
    let expected = made(&["load_code", "module.co"], &["gfx900"]);
    let complete = |name: &str| {
        let trace = dir.trace(name);
        trace.check_integrity();
        let rows: BTreeSet<String> = trace.texts("select sha256 from ext_codeobject").into_iter().collect();
        assert!(rows.is_superset(&expected), "{rows:?}");
        let kernels: Vec<String> = links(&trace).into_iter().map(|link| link.kernel).collect();
        assert_eq!(kernels, ["of_the_program(int*)"]);
        rows
    };
    dir.wait_for_rows("trace.rpd", "select count(*) from ext_codeobject_kernel", 1);
    fs::rename(dir.path("trace.rpd"), dir.path("before.rpd")).unwrap();
    dir.touch("go");
    running.finish().expect_silent();
    assert_eq!(complete("before.rpd"), complete("trace.rpd"));
    assert!(saved(&directory).is_superset(&expected));
}

/// At whatever moment a process is killed, no file in the directory has other bytes than its name says, and the next process brings
/// what is missing.
#[test]
fn killed_processes() {
    let dir = Dir::new();
    let module = program("module.co");
    let run = |words: &[&str]| {
        let run = words.iter().fold(Run::new(&dir, program("load_code")), |run, word| run.arg(*word));
        run.env("RPDT_SAVE_CODE", "code").recorded(Loading::Preload)
    };
    let (file, memory) = (argument("file", &module), argument("memory", &module));
    for words in [&[&*file, "kill"][..], &["fat", "kill"], &["fat", &memory, "flush", "kill"]] {
        run(words).run().expect_signal(libc::SIGKILL);
        if dir.path("code").exists() {
            saved(&dir.path("code"));
        }
        if dir.path("trace.rpd").exists() {
            dir.trace("trace.rpd").check_integrity();
        }
    }
    // As a machine that goes down may leave it.
    let hash = sha256(&code_object("load_code", "gfx900"));
    let cut_off = dir.path("code").join(format!("{hash}.hsaco"));
    fs::create_dir_all(dir.path("code")).unwrap();
    fs::write(&cut_off, "half").unwrap();
    run(&["fat", &file]).run().expect_silent();
    assert!(saved(&dir.path("code")).is_superset(&made(&["load_code", "module.co"], &["gfx900"])));
}

/// Parent and child load the same at the same time. A child that the parent's threads are not in waits for none of them.
#[test]
fn forked_children() {
    let dir = Dir::new();
    let words = ["fork", "fat", &argument("file", &program("module.co")), "child", "fat", "child"];
    let run = words.iter().fold(Run::new(&dir, program("load_code")), |run, word| run.arg(*word));
    run.env("RPDT_SAVE_CODE", "code").recorded(Loading::Preload).run().expect_silent();
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let expected = made(&["load_code", "module.co"], &["gfx900"]);
    assert!(saved(&dir.path("code")).is_superset(&expected));
    for hash in &expected {
        assert_eq!((sessions_with(&trace, hash), trace.session_count()), (2, 2));
    }
    // The parent waits for the child, so this is the same again.
    let kernels: Vec<String> = links(&trace).into_iter().map(|link| link.kernel).collect();
    assert_eq!(kernels, ["of_the_program(int*)", "scale", "of_the_program(int*)", "scale"]);
}

/// Eight processes save the same in one directory.
#[test]
fn many_processes() {
    let dir = Dir::new();
    let file = argument("file", &program("module.co"));
    let run = || {
        let run = Run::new(&dir, program("load_code")).arg("fat").arg(&file);
        run.env("RPDT_SAVE_CODE", "code").recorded(Loading::Preload)
    };
    let runs: Vec<Run<'_>> = (0..8).map(|_| run()).collect();
    for running in Run::start_all(&runs) {
        running.finish().expect_silent();
    }
    assert!(saved(&dir.path("code")).is_superset(&made(&["load_code", "module.co"], &["gfx900"])));
    let names = fs::read_dir(dir.path("code")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| name.as_bytes().ends_with(b".hsaco")), "no other files are left");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!(links(&trace).len(), 16);
}

/// A directory that cannot be: one line, and all else goes on; the trace says what was loaded.
#[test]
fn a_directory_that_takes_nothing() {
    let dir = Dir::new();
    fs::write(dir.path("file"), "").unwrap();
    for directory in ["file", "file/below", "/proc/nowhere", "/dev/null"] {
        let run =
            Run::new(&dir, program("load_code")).arg("fat").arg(argument("file", &program("module.co")));
        let ran = run.env("RPDT_SAVE_CODE", directory).recorded(Loading::Preload).run();
        assert_eq!(ran.expect(0).stderr.lines().count(), 1, "{ran}");
        assert!(ran.stderr.contains("code objects cannot be saved ("), "{ran}");
        assert!(ran.stderr.contains(directory), "{ran}");
        let trace = dir.trace("trace.rpd");
        let hashes: BTreeSet<String> = links(&trace).into_iter().map(|link| link.sha256).collect();
        assert_eq!(hashes, made(&["load_code", "module.co"], &["gfx900"]), "{directory}");
        fs::remove_file(dir.path("trace.rpd")).unwrap();
    }
    let ran = Run::new(&dir, "true").recorded(Loading::RpdRecord).record_option("--save-code=file").run();
    assert!(ran.expect(2).stderr.contains("this is not a directory"), "{ran}");
}

/// What would have to wait and finds no room is counted, and has a row that does not say its hash.
#[test]
fn more_than_may_wait() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("load_code"))
        .arg("fat")
        .arg(argument("file", &program("module_large.co")))
        .arg(argument("file", &program("module.co")));
    let ran = run.env("RPDT_SAVE_CODE", "code").env("RPDT_BUFFER_MB", "1").recorded(Loading::Preload).run();
    assert_eq!(ran.expect(0).stderr.lines().count(), 1, "{ran}");
    assert!(ran.stderr.ends_with("more than RPDT_BUFFER_MB would have had to wait: 1\n"), "{ran}");
    let links = links(&dir.trace("trace.rpd"));
    let hashes: Vec<&str> = links.iter().map(|link| &*link.sha256).collect();
    let known = ["load_code", "module.co"].map(|name| sha256(&code_object(name, "gfx900")));
    assert_eq!(hashes, [&known[0], "", &known[1]]);
    assert!(links[1].size > 1 << 20 && links[1].uri.contains("module_large"), "{links:#?}");
}

/// The end of the program waits for what is still being saved. Meanwhile each GPU is given the same bytes, which wait once: there is no
/// room for them twice.
#[test]
fn what_is_being_saved_when_the_program_ends() {
    let dir = Dir::new();
    dir.touch("stuck");
    let large = program("module_large.co");
    let size = fs::metadata(code_object("module_large.co", "gfx900")).unwrap().len();
    let run = Run::new(&dir, program("load_code"))
        .gpus(2)
        .env("RPDT_SAVE_CODE", "code")
        .env("RPDT_EXIT_MS", "600000");
    let run =
        run.preload(&[recorder(), program("stuck_save")]).env("RPDT_BUFFER_MB", format!("{}B", size * 3 / 2));
    let mut running = ["device=0", "device=1"]
        .into_iter()
        .fold(run, |run, device| run.arg(device).arg(argument("file", &large)))
        .arg("exiting")
        .start();
    running.wait_for_output("exiting");
    // Some time for an end that does not wait.
    std::thread::sleep(Duration::from_millis(300));
    fs::remove_file(dir.path("stuck")).unwrap();
    running.finish().expect(0).expect_silent();
    let known = sha256(&code_object("module_large.co", "gfx900"));
    assert!(saved(&dir.path("code")).contains(&known));
    let links = links(&dir.trace("trace.rpd"));
    assert!(links.len() == 2 && links.iter().all(|link| link.sha256 == known), "{links:#?}");
}

/// Code that runs in the place of the program's own is saved too.
#[test]
fn candidates_of_a_kernel_cache() {
    let dir = Dir::new();
    fs::create_dir(dir.path("cache")).unwrap();
    let candidate = code_object("module_variant.co", "gfx900");
    fs::copy(&candidate, dir.path("cache/scale.hsaco")).unwrap();
    let run = Run::new(&dir, program("load_code")).arg(argument("file", &program("module.co")));
    let run = run.recorded(Loading::RpdRecord).record_option("--save-code=code");
    run.record_option("--kernel-cache=cache").run().expect(0);
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let rows = trace.rows(
        "select c.sha256, c.uri from ext_replacement r
         join ext_codeobject_kernel k on k.id = r.replacement_kernel_id
         join ext_codeobject c on c.id = k.ext_codeobject_id",
        |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)),
    );
    let expected = format!("file://{}#offset=0&", dir.path("cache/scale.hsaco").display());
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].0, sha256(&candidate));
    assert!(rows[0].1.starts_with(&expected), "{rows:?}");
    assert!(saved(&dir.path("code")).contains(&rows[0].0));
    let original = links(&trace);
    assert_eq!(original[0].sha256, sha256(&code_object("module.co", "gfx900")));
    // What is shown of the dispatch is what ran in it.
    let shown = |options: &[&str], file: &Path| {
        let arguments =
            [&["code", "--json", "--kernel", "^scale"], options, &[file.to_str().unwrap()]].concat();
        let output = tool(rpd().to_str().unwrap(), &arguments);
        serde_json::from_str::<Vec<serde_json::Value>>(&output).unwrap().remove(0)
    };
    let of_trace = shown(&["--args"], &dir.path("trace.rpd"));
    let path = dir.path("cache/scale.hsaco");
    assert_eq!(of_trace["launches"]["candidate"], path.to_str().unwrap());
    assert_eq!(of_trace["launches"]["sha256"], rows[0].0.as_str());
    let [of_candidate, of_program] =
        [&candidate, &code_object("module.co", "gfx900")].map(|file| shown(&["--args"], file));
    let facts = ["vgpr", "sgpr", "lds", "kernarg", "arguments"];
    let facts = |of: &serde_json::Value| facts.map(|fact| of[fact].clone());
    assert_eq!(facts(&of_trace), facts(&of_candidate));
    assert_ne!(facts(&of_trace), facts(&of_program));
    let listed = shown(&["--cfg"], &dir.path("trace.rpd"));
    assert_eq!(listed["candidate"], path.to_str().unwrap());
    assert_eq!(listed["blocks"], shown(&["--cfg"], &candidate)["blocks"]);
}

#[test]
fn rpd_record_says_where_nothing_was_saved() {
    for (name, saves) in [("demo", true), ("noop", false)] {
        let dir = Dir::new();
        let run =
            Run::new(&dir, program(name)).recorded(Loading::RpdRecord).record_option("--save-code=code");
        let ran = run.run();
        ran.expect(0);
        let said = ran.stderr.matches("; no code object was saved").count();
        assert_eq!(said, usize::from(!saves), "{name}: {ran}");
        assert_eq!(dir.path("code").exists(), saves, "{name}");
    }
}
