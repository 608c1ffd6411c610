//! Kernels of a cache in the place of the program's own: right results, and a trace that says which dispatch ran what. The device's
//! log names the kernel object of each dispatch.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::harness::{Dir, Loading, Ran, Run, Trace, block_kernel, candidate, program, rpd, tool};

/// Candidates that need other registers, LDS and scratch than the program's kernels.
const VARIANT: &[&str] = &["-DVARIANT=2"];
/// As newer linkers leave it in a note.
const BUILD_ID: &[&str] = &["-Xoffload-linker", "--build-id=sha1"];
/// LDS that its kernels declare, bytes; the program's declare none.
const LDS: u32 = 512;

/// A cache with these files.
fn cache(dir: &Dir, files: &[(&str, PathBuf)]) -> PathBuf {
    let cache = dir.path("cache");
    for (name, file) in files {
        let path = cache.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(file, path).unwrap();
    }
    cache
}

/// The program, with kernels of that cache in the place of its own.
fn replaced<'a>(dir: &'a Dir, cache: &Path) -> Run<'a> {
    let run = Run::new(dir, program("replace")).recorded(Loading::Preload);
    run.env("LOGDUR_KERNEL_CACHE", cache).env("RPDT_TICKS", "1")
}

/// A dispatch as the file and the device have it.
#[derive(Debug)]
pub(crate) struct Dispatch {
    gpu: u32,
    name: String,
    object: Option<u64>,
    replaced: bool,
}

/// All kernels of the program, found in the device's log by their ticks.
pub(crate) fn dispatches(dir: &Dir, trace: &Trace) -> Vec<Dispatch> {
    let logs = dir.logs();
    let mut log: BTreeMap<(u32, u64, u64), BTreeSet<u64>> = BTreeMap::new();
    for packet in logs.iter().flat_map(|(_, packets)| packets) {
        let ticks = (packet.device, packet.start_tick, packet.end_tick);
        log.entry(ticks).or_default().insert(packet.object);
    }
    let replaced: BTreeSet<i64> = match trace.has_table("ext_replacement") {
        true => trace.rows("select op_id from ext_replacement", |row| row.get(0)).into_iter().collect(),
        false => BTreeSet::new(),
    };
    let kernels = trace.ops().into_iter().filter(|op| op.op_type == "KernelExecution");
    let dispatches = kernels.map(|op| {
        let (start, end) = op.ticks.unwrap();
        // Of kernels of two queues that ran in the same ticks nobody knows which is which.
        let objects = &log[&(op.gpu, start, end)];
        let object = objects.first().copied().filter(|_| objects.len() == 1);
        Dispatch { gpu: op.gpu, name: op.description, object, replaced: replaced.contains(&op.id) }
    });
    dispatches.collect()
}

/// The rows say a replacement exactly where another object ran: no object ran with a row and without, and there is one object of each
/// kernel and GPU for the program and one for each candidate.
pub(crate) fn assert_named(dispatches: &[Dispatch]) {
    let mut objects: BTreeMap<u64, bool> = BTreeMap::new();
    for dispatch in dispatches {
        let Some(object) = dispatch.object else { continue };
        let known = objects.insert(object, dispatch.replaced);
        assert!(known.is_none_or(|known| known == dispatch.replaced), "{dispatch:x?}");
    }
    let originals: BTreeSet<(u32, &str, u64)> = dispatches
        .iter()
        .filter(|dispatch| !dispatch.replaced)
        .filter_map(|dispatch| Some((dispatch.gpu, dispatch.name.as_str(), dispatch.object?)))
        .collect();
    let kernels: BTreeSet<(u32, &str)> = originals.iter().map(|(gpu, name, _)| (*gpu, *name)).collect();
    assert_eq!(
        originals.len(),
        kernels.len(),
        "one kernel object for each kernel of the program: {originals:x?}"
    );
}

/// What became of the candidates: file name, outcome and reason.
fn outcomes(trace: &Trace) -> Vec<(String, String, String)> {
    let all = trace.rows("select path, outcome, reason from ext_candidate order by id", |row| {
        Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?))
    });
    let name = |path: String| Path::new(&path).file_name().unwrap().to_string_lossy().into_owned();
    all.into_iter().map(|(path, outcome, reason)| (name(path), outcome, reason)).collect()
}

/// Two processors, a graph, by-value structures, dynamic LDS, templates, printf; by turns, so that both kernels run.
#[test]
fn every_kind_of_kernel_is_replaced_and_the_trace_says_which() {
    let dir = Dir::new();
    let files = ["gfx900", "gfx906"]
        .map(|gfx| (["900.hsaco", "inner/906.hsaco"][usize::from(gfx == "gfx906")], candidate(gfx, VARIANT)));
    let rule = |name: &str| format!("[[kernel]]\nmatch = \"{name}\"\nlds = {LDS}\nns = 77000\n");
    let config = rule("_Z") + &rule("plain");
    let run = replaced(&dir, &cache(&dir, &files)).gpus(2).env("SIMGPU_GFX", "gfx900,gfx906").config(&config);
    let run = run.env("RPDT_ALTERNATE", "ABAB").arg("4").arg("graph").arg("two").arg("printf");
    let ran = run.run();
    let trace = dir.succeeded(&ran);
    assert_eq!(ran.stdout, "the kernel says 42\n");
    let dispatches = dispatches(&dir, &trace);
    assert_named(&dispatches);
    // For each GPU: eight launches of one kernel and four of three others, half of them replaced; kernels that run once are not.
    let replaced = dispatches.iter().filter(|dispatch| dispatch.replaced).count();
    assert_eq!((dispatches.len(), replaced), (2 * (8 + 3 * 4 + 2) + 1, 2 * 10));
    let ns = "select distinct end - start from op where id in (select op_id from ext_replacement)";
    let ns: Vec<i64> = trace.rows(ns, |row| row.get(0));
    assert!(ns.iter().all(|ns| (76_900..77_100).contains(ns)), "the candidates' time: {ns:?}");
    let others = "select max(end - start) from op where opType = 'KernelExecution' and id not in (select op_id from ext_replacement)";
    assert!(trace.number(others) < 20_000);
    assert_eq!(
        outcomes(&trace).iter().map(|(name, outcome, _)| format!("{name} {outcome}")).collect::<Vec<_>>(),
        ["900.hsaco loaded", "906.hsaco loaded"]
    );
    // Both kernels' registers; the op has the application's name.
    let view = "select count(*) from replacement where replacementVgpr > originalVgpr and kernelName <> '' and sha256 <> ''";
    assert_eq!(trace.number(view), 20);
    let session = trace.metadata("session::0::%");
    assert_eq!(session["session::0::alternate"], "ABAB");
}

/// The same program where nothing in the cache is of use: the program's kernels run, nothing is said.
#[test]
fn a_cache_that_matches_nothing_changes_nothing() {
    let dir = Dir::new();
    let cache = cache(&dir, &[("other.hsaco", candidate("gfx906", VARIANT))]);
    let trace = dir.succeeded(&replaced(&dir, &cache).arg("2").run());
    assert_named(&dispatches(&dir, &trace));
    assert_eq!(trace.number("select count(*) from ext_replacement"), 0);
    assert_eq!(outcomes(&trace)[0].1, "other-target");
}

/// Candidates of code object version 5 have other hidden arguments than the program's kernels of version 4.
#[test]
fn hidden_arguments_of_version_5_are_made() {
    let dir = Dir::new();
    // As newer compilers do, hidden arguments that no kernel uses are left out.
    let assembly = dir.path("candidate.s");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/replace.hip");
    let options = ["-S", "--cuda-device-only", "--offload-arch=gfx900", "-O2", "-DVARIANT=2", "-DNO_PRINTF"];
    let more = ["-mcode-object-version=5".as_ref(), source.as_os_str(), "-o".as_ref(), assembly.as_os_str()];
    tool("hipcc", &[&options.map(AsRef::as_ref)[..], &more].concat());
    let text = fs::read_to_string(&assembly).unwrap();
    let (text, left_out) = without_arguments(&text, &["hostcall_buffer", "heap_v1", "queue_ptr"]);
    assert!(left_out > 5 && text.contains("hidden_block_count_x"), "{left_out}");
    fs::write(&assembly, text).unwrap();
    let cache = dir.path("cache");
    fs::create_dir(&cache).unwrap();
    let target = ["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx900", "-mcode-object-version=5", "-o"];
    let object = cache.join("v5.hsaco");
    tool("clang-15", &[&target.map(AsRef::as_ref)[..], &[object.as_os_str(), assembly.as_os_str()]].concat());
    let trace = dir.succeeded(&replaced(&dir, &cache).arg("3").arg("graph").run());
    let dispatches = dispatches(&dir, &trace);
    assert_named(&dispatches);
    assert!(dispatches.iter().all(|dispatch| dispatch.replaced), "{dispatches:x?}");
}

/// The assembly of a code object without these hidden arguments in its metadata, and how many that were.
fn without_arguments(assembly: &str, kinds: &[&str]) -> (String, usize) {
    let is_of = |argument: &str| kinds.iter().any(|kind| argument.contains(&format!("hidden_{kind}\n")));
    // An argument is an entry of a list, indented by six.
    let mut arguments = assembly.split_inclusive('\n').fold(vec![String::new()], |mut parts, line| {
        let is_inside = line.starts_with("        .");
        if line.starts_with("      - .") || !is_inside {
            parts.push(String::new());
        }
        parts.last_mut().unwrap().push_str(line);
        parts
    });
    let all = arguments.len();
    arguments.retain(|argument| !is_of(argument));
    (arguments.concat(), all - arguments.len())
}

/// Newer linkers leave the id of the build in a note.
#[test]
fn a_candidate_with_the_id_of_its_build() {
    let dir = Dir::new();
    let file = candidate("gfx900", &[VARIANT, BUILD_ID].concat());
    assert!(tool("readelf", &["-n".as_ref(), file.as_os_str()]).contains("NT_GNU_BUILD_ID"));
    let trace = dir.succeeded(&replaced(&dir, &cache(&dir, &[("a.hsaco", file)])).arg("2").run());
    assert!(dispatches(&dir, &trace).iter().all(|dispatch| dispatch.replaced));
}

/// What cannot be made right is said once, with both values, and the program's own kernel runs.
#[test]
fn what_cannot_be_made_right_is_refused() {
    let other_hidden = "it needs hidden_hostcall_buffer, which the application's kernel does not have";
    for (options, message, lines, of) in [
        (
            &["-DPARAMETERS=long more"][..],
            "plain is not replaced on GPU 0: its argument 2 has size 8, that of the application's kernel 4",
            1,
            "plain",
        ),
        (
            &["-DPARAMETERS=int more, int _"],
            "plain is not replaced on GPU 0: it has 3 arguments, the application's kernel 2",
            1,
            "plain",
        ),
        (
            &["-DOWN"],
            "its code object has a variable own of its own, which the program does not set",
            7,
            "add",
        ),
        (
            &["-DBOUNDS=64"],
            "is not replaced in a launch: its workgroups have 64 work-items at most, those of the launch 256",
            1,
            "add",
        ),
        (&["-mcode-object-version=5"], other_hidden, 5, "add"),
        (
            &["-DROOM=16300"],
            "bytes of LDS with the 512 that the launch adds, a workgroup has 65536",
            1,
            "reverse",
        ),
    ] {
        let dir = Dir::new();
        let cache = cache(&dir, &[("a.hsaco", candidate("gfx900", &[VARIANT, options].concat()))]);
        let ran = replaced(&dir, &cache).arg("2").arg("graph").run();
        ran.expect(0);
        assert_eq!(ran.stderr.matches(message).count(), lines, "{message}{ran}");
        let dispatches = dispatches(&dir, &dir.trace("trace.rpd"));
        assert_named(&dispatches);
        let refused: Vec<&Dispatch> =
            dispatches.iter().filter(|dispatch| dispatch.name.starts_with(of)).collect();
        assert!(!refused.is_empty() && refused.iter().all(|dispatch| !dispatch.replaced), "{of}{ran}");
    }
}

/// Files that are no candidates are named with a reason, and harm nobody.
#[test]
fn files_that_are_no_candidates() {
    let dir = Dir::new();
    let good = candidate("gfx900", VARIANT);
    let cache = cache(&dir, &[("good.hsaco", good.clone())]);
    let path = |name: &str| cache.join(name);
    let bytes = fs::read(&good).unwrap();
    fs::write(path("short.hsaco"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(path("text.hsaco"), "no code").unwrap();
    fs::write(path("empty.hsaco"), "").unwrap();
    fs::File::create(path("zeros.hsaco")).unwrap().set_len(2 << 30).unwrap();
    tool("mkfifo", &[path("pipe.hsaco")]);
    fs::create_dir(path("directory.hsaco")).unwrap();
    symlink("loop.hsaco", path("loop.hsaco")).unwrap();
    symlink(&cache, path("inner")).unwrap();
    let ran = replaced(&dir, &cache).arg("2").run();
    ran.expect(0);
    let trace = dir.trace("trace.rpd");
    assert!(dispatches(&dir, &trace).iter().all(|dispatch| dispatch.replaced));
    let outcomes = outcomes(&trace);
    let said = |name: &str| {
        outcomes
            .iter()
            .find(|(other, ..)| other == name)
            .map(|(_, outcome, reason)| format!("{outcome}: {reason}"))
    };
    assert_eq!(said("good.hsaco").unwrap(), "loaded: ");
    for (name, reason) in [
        ("short.hsaco", "failed: damaged ELF section headers"),
        ("text.hsaco", "failed: not a code object"),
        ("empty.hsaco", "failed: not a code object"),
        ("zeros.hsaco", "failed: it has 2147483648 bytes"),
        ("pipe.hsaco", "failed: it is not a regular file"),
    ] {
        assert!(said(name).is_some_and(|said| said.starts_with(reason)), "{name}: {:?}", said(name));
        assert!(ran.stderr.contains(&format!("{name}: ")), "{name}{ran}");
    }
    assert_eq!(outcomes.len(), 6, "{outcomes:?}");
}

/// `rpd record` says at its end what the cache was good for.
#[test]
fn the_summary_says_what_was_replaced() {
    let dir = Dir::new();
    let own = cache(&dir, &[("own.hsaco", candidate("gfx900", VARIANT))]);
    let record = |dir: &Dir, more: &[&str]| {
        let run = Run::new(dir, program("replace")).recorded(Loading::RpdRecord).arg("2");
        more.iter().fold(run, |run, option| run.record_option(option)).run()
    };
    let option = format!("--kernel-cache={}", own.display());
    let ran = record(&dir, &[&option, "--alternate"]);
    let trace = dir.trace("trace.rpd");
    let all = trace.number("select count(*) from op where opType = 'KernelExecution'");
    let replaced = trace.number("select count(*) from ext_replacement");
    assert!(replaced > 0 && replaced < all, "{ran}");
    let said = format!("rpd: trace.rpd: {all} kernels, {replaced} of them replaced, ");
    assert!(ran.stderr.starts_with(&said) && ran.stderr.ends_with(" s recorder CPU\n"), "{ran}");

    let dir = Dir::new();
    fs::copy(candidate("gfx906", VARIANT), own.join("other.hsaco")).unwrap();
    fs::write(own.join("text.hsaco"), "no code").unwrap();
    fs::copy(candidate("gfx900", &[VARIANT, &["-DOWN"]].concat()), own.join("bad.hsaco")).unwrap();
    fs::copy(candidate("gfx900", &["-DVARIANT=3"]), own.join("second.hsaco")).unwrap();
    let ran = record(&dir, &[&option]);
    let useless = "; of 5 files in the kernel cache 1 failed, 1 refused, 1 for another GPU, 1 unused";
    assert!(ran.stderr.ends_with(&format!("{useless}: rpd replacements trace.rpd says why\n")), "{ran}");
}

/// Why a file was of no use, in the trace and for people.
#[test]
fn what_is_unused_says_why() {
    let own = candidate("gfx900", VARIANT);
    let libraries = ("LOGDUR_LIBRARY_FILTER", "filter.json");
    for (file, variables, reason) in [
        (
            block_kernel("gfx900", &["-DWARPS=4", "-DBLOCK=1024"]),
            &[][..],
            "the program has loaded no kernel of the names that it has: add_kernel",
        ),
        (own.clone(), &[("LOGDUR_FILTER", "^nothing")], "LOGDUR_FILTER does not select its kernels: "),
        (
            own.clone(),
            &[libraries],
            "LOGDUR_LIBRARY_FILTER does not select where the program has its kernels from: ",
        ),
        (own, &[("LOGDUR_FILTER", "^say")], "the program has launched none of its kernels: say(int)"),
    ] {
        let dir = Dir::new();
        fs::write(dir.path("filter.json"), r#"{"include": ["/nothing"]}"#).unwrap();
        let cache = cache(&dir, &[("a.hsaco", file)]);
        let run = variables.iter().fold(replaced(&dir, &cache), |run, (name, value)| run.env(name, *value));
        let ran = run.arg("2").run();
        ran.expect(0);
        let outcomes = outcomes(&dir.trace("trace.rpd"));
        let (_, outcome, said) = outcomes.last().unwrap();
        assert!(outcome == "unused" && said.starts_with(reason), "{reason}: {outcomes:?}");
        assert_eq!(said.ends_with(" more"), reason.ends_with(' '), "two names are enough: {said}");
        let shown = Run::new(&dir, rpd()).arg("replacements").arg("trace.rpd").run();
        let list = format!("candidates of {}: 1 unused\n", cache.display());
        assert!(shown.stdout.contains(&list) && shown.stdout.contains(&reason[..20]), "{shown}");
    }
}

/// A pattern that is misspelt would change nothing without a word.
#[test]
fn a_pattern_without_a_kernel_is_said_once() {
    let file = candidate("gfx900", VARIANT);
    let no_kernel = "no kernel of the program has that in its demangled name; rpd top ";
    for (variables, said) in [
        (&[("LOGDUR_FILTER", "^ad+d")][..], ""),
        (&[("LOGDUR_FILTER", "^nothing")], "LOGDUR_FILTER=^nothing: "),
        (&[("RPDT_VALIDATE", "^nothing")], "RPDT_VALIDATE=^nothing: "),
        (
            &[("RPDT_VALIDATE", "^weigh"), ("LOGDUR_FILTER", "^add")],
            "RPDT_VALIDATE=^weigh: nothing was validated, because no kernel of such a name was replaced",
        ),
        (
            &[("LOGDUR_KERNEL_CACHE", ""), ("LOGDUR_LOG_LOCATION", "log.csv"), ("LOGDUR_FILTER", "^nothing")],
            "LOGDUR_FILTER=^nothing: ",
        ),
    ] {
        let dir = Dir::new();
        let cache = cache(&dir, &[("a.hsaco", file.clone())]);
        let run = variables.iter().fold(replaced(&dir, &cache), |run, (name, value)| run.env(name, *value));
        let ran = run.arg("2").arg("fork").run();
        ran.expect(0);
        let of_kernels = if said.ends_with(": ") { no_kernel } else { "" };
        let lines: Vec<&str> = ran.stderr.lines().collect();
        assert_eq!(lines.len(), usize::from(!said.is_empty()), "{ran}");
        assert!(lines.iter().all(|line| line.contains(&format!("{said}{of_kernels}"))), "{said}{ran}");
    }
}

/// A file takes effect by the next dispatch after it was renamed into the cache, and so does its absence: also for a graph that was
/// made before.
#[test]
fn files_come_and_go_while_the_program_runs() {
    let dir = Dir::new();
    let cache = dir.path("cache");
    fs::create_dir_all(cache.join("inner")).unwrap();
    fs::copy(candidate("gfx900", VARIANT), dir.path("first")).unwrap();
    fs::copy(candidate("gfx900", &["-DVARIANT=3"]), dir.path("second")).unwrap();
    let mut running = replaced(&dir, &cache).arg("4").arg("graph").arg("wait").start();
    let loaded = |count: i64| {
        dir.wait_for_rows("trace.rpd", "select count(*) from ext_candidate where outcome = 'loaded'", count);
    };
    let gone = |count: i64| {
        dir.wait_for_rows("trace.rpd", "select count(*) from ext_candidate where outcome = 'removed'", count);
    };
    let rename = |from: PathBuf, to: PathBuf| fs::rename(from, to).unwrap();
    for (what, round) in
        ["graph", "round"].into_iter().flat_map(|what| (0..4).map(move |round| (what, round)))
    {
        running.wait_for_output(&format!("{what} {round}.\n"));
        match (what, round) {
            ("graph", 1) => {
                rename(dir.path("first"), cache.join("a.hsaco"));
                loaded(1);
            }
            // In the place of a file.
            ("graph", 2) => {
                rename(dir.path("second"), cache.join("a.hsaco"));
                loaded(2);
            }
            ("graph", 3) => {
                rename(cache.join("a.hsaco"), dir.path("second"));
                gone(2);
            }
            ("round", 1) => {
                rename(dir.path("second"), cache.join("c.hsaco"));
                loaded(3);
            }
            // In a directory that is new.
            ("round", 2) => {
                rename(cache.join("c.hsaco"), dir.path("second"));
                fs::create_dir(dir.path("fresh")).unwrap();
                rename(dir.path("second"), dir.path("fresh/b.hsaco"));
                rename(dir.path("fresh"), cache.join("inner/fresh"));
                loaded(4);
            }
            ("round", 3) => {
                fs::remove_dir_all(cache.join("inner")).unwrap();
                gone(4);
            }
            _ => {}
        }
        dir.touch(&format!("{what}.{round}"));
    }
    let ran = running.finish();
    let trace = dir.succeeded(&ran);
    let dispatches = dispatches(&dir, &trace);
    assert_named(&dispatches);
    let adds: Vec<bool> = dispatches
        .iter()
        .filter(|dispatch| dispatch.name.starts_with("add"))
        .map(|dispatch| dispatch.replaced)
        .collect();
    assert_eq!(adds, [false, true, true, false, false, true, true, false]);
    let files = "select C.sha256 from ext_replacement R join op O on O.id = R.op_id \
                 join ext_candidate C on C.id = R.candidate_id where O.description like 'add%' order by O.start";
    let files = trace.texts(files);
    assert!(files.len() == 4 && files[0] != files[1], "{files:?}");
    assert!(files[1..].iter().all(|file| *file == files[1]), "{files:?}");
}

/// Without intercepted queues nothing can be replaced: one line says so.
#[test]
fn where_hip_times_its_commands_nothing_is_replaced() {
    let dir = Dir::new();
    let cache = cache(&dir, &[("a.hsaco", candidate("gfx900", VARIANT))]);
    let ran = replaced(&dir, &cache).env("RPDT_TIMING", "hip").arg("2").run();
    ran.expect(0);
    assert_eq!(
        ran.stderr.matches("kernels are not replaced where HIP's own records time them").count(),
        1,
        "{ran}"
    );
    let trace = dir.trace("trace.rpd");
    let replaced =
        trace.has_table("ext_replacement") && trace.number("select count(*) from ext_replacement") > 0;
    assert!(
        !replaced && trace.number("select count(*) from op where opType = 'KernelExecution'") > 0,
        "{ran}"
    );
}

/// How a program of a library's behaves with caches of candidates, beside how it behaves without the recorder (`plain`): one cache
/// matches nothing, one has all code objects that the program loads, as the recorder has saved them. The second trace, with what it ran.
pub(crate) fn with_caches<'a>(
    plain: &Ran,
    nothing: (&'a Dir, &Path),
    all: &'a Dir,
    run: impl Fn(&'a Dir) -> Run<'a>,
) -> (Trace, Vec<Dispatch>, Ran) {
    let (dir, other) = nothing;
    let cache = cache(dir, &[("other.hsaco", other.to_path_buf())]);
    let recorded = |dir: &'a Dir, cache: &Path| {
        run(dir).recorded(Loading::Preload).env("LOGDUR_KERNEL_CACHE", cache).env("RPDT_TICKS", "1")
    };
    let code = dir.path("code");
    let ran = recorded(dir, &cache).env("RPDT_SAVE_CODE", &code).run();
    assert_eq!(ran.expect(0).stdout, plain.stdout, "{ran}");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_named(&dispatches(dir, &trace));
    assert_eq!(trace.number("select count(*) from ext_replacement"), 0);
    let outcomes = outcomes(&trace);
    let [(name, outcome, reason)] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert_eq!((name.as_str(), outcome.as_str()), ("other.hsaco", "unused"));
    assert!(reason.starts_with("the program has loaded no kernel of the names that it has: "), "{reason}");

    let ran = recorded(all, &code).run();
    assert_eq!(ran.expect(0).stdout, plain.stdout, "{ran}");
    let trace = all.trace("trace.rpd");
    trace.check_integrity();
    // Calls of HIP by destructors of thread-local data are counted, not recorded: rocBLAS 6.4 frees its handles so.
    let lost: Vec<_> =
        trace.lost().into_iter().filter(|(cause, _)| !cause.ends_with("::ending_thread")).collect();
    assert_eq!(lost, []);
    let dispatches = dispatches(all, &trace);
    assert_named(&dispatches);
    (trace, dispatches, ran)
}

/// How many dispatches of kernels with that in their name were replaced, and how many there were.
pub(crate) fn replaced_of(dispatches: &[Dispatch], pattern: &str) -> (usize, usize) {
    let of: Vec<bool> =
        dispatches.iter().filter(|one| one.name.contains(pattern)).map(|one| one.replaced).collect();
    (of.iter().filter(|replaced| **replaced).count(), of.len())
}

#[track_caller]
fn assert_all_of_the_libraries(dispatches: &[Dispatch], ran: &Ran) {
    for (library, least) in [("rocprim::", 3), ("rocrand", 1)] {
        let (replaced, of) = replaced_of(dispatches, library);
        assert!(replaced == of && of >= least, "{library}: {replaced} of {of}{ran}");
    }
}

/// rocPRIM and rocRAND with a cache that has none of their kernels, with all of them as the recorder saves them, and with the program
/// and the library themselves, as the compiler made them.
#[test]
fn kernels_of_libraries_are_replaced_by_themselves() {
    let [without, nothing, all, files] = [(); 4].map(|()| Dir::new());
    let primitives = program("primitives");
    let plain = Run::new(&without, &primitives).run();
    let other = candidate("gfx900", VARIANT);
    let (_, replaced, ran) = with_caches(&plain, (&nothing, &other), &all, |dir| Run::new(dir, &primitives));
    assert_all_of_the_libraries(&replaced, &ran);

    let library = fs::canonicalize("/usr/lib/x86_64-linux-gnu/librocrand.so.1").unwrap();
    let cache = cache(&files, &[("program.hsaco", primitives.clone()), ("library.hsaco", library)]);
    let run = Run::new(&files, primitives).recorded(Loading::Preload);
    let ran = run.env("LOGDUR_KERNEL_CACHE", cache).env("RPDT_TICKS", "1").run();
    assert_eq!(ran.expect(0).stdout, plain.stdout);
    let replaced = dispatches(&files, &files.trace("trace.rpd"));
    assert_named(&replaced);
    assert_all_of_the_libraries(&replaced, &ran);
}

/// Builds of a kernel in a directory as Triton lays it out, each with its description and the program that it was made of.
fn triton_cache(dir: &Dir, builds: &[(&str, u32, &str)]) -> PathBuf {
    let cache = dir.path("triton");
    for (warps, block, ttir) in builds {
        let folder = cache.join(format!("{warps}x{block}{ttir}"));
        fs::create_dir_all(&folder).unwrap();
        let options = [&*format!("-DWARPS={warps}"), &*format!("-DBLOCK={block}")];
        fs::copy(block_kernel("gfx900", &options), folder.join("add_kernel.hsaco")).unwrap();
        let warps: u32 = warps.parse().unwrap();
        let description = format!(
            "{{\"name\": \"add_kernel\", \"num_warps\": {warps}, \"warp_size\": 64, \"shared\": {}}}",
            4 * 64 * warps
        );
        fs::write(folder.join("add_kernel.json"), description).unwrap();
        fs::write(folder.join("add_kernel.ttir"), format!("module {{ {ttir} }} loc(#loc{block})\n")).unwrap();
    }
    cache
}

/// The program launches a kernel of four wavefronts in workgroups of 256.
fn of_triton<'a>(dir: &'a Dir, cache: &Path) -> Run<'a> {
    let own = block_kernel("gfx900", &["-DWARPS=4", "-DBLOCK=1024"]);
    let run = Run::new(dir, program("triton")).arg(own).arg("add_kernel").arg("4").arg("1024").arg("1024");
    run.arg("6").recorded(Loading::Preload).env("LOGDUR_KERNEL_CACHE", cache).env("RPDT_TICKS", "1")
}

/// Another build of Triton's is launched in the workgroups and with the LDS that it was compiled for.
#[test]
fn builds_of_triton_are_launched_in_their_own_workgroups() {
    let dir = Dir::new();
    let cache = triton_cache(&dir, &[("2", 1024, "same"), ("8", 1024, "same"), ("4", 1024, "same")]);
    let trace = dir.succeeded(&of_triton(&dir, &cache).env("RPDT_ALTERNATE", "ABAB").run());
    let dispatches = dispatches(&dir, &trace);
    assert_named(&dispatches);
    assert_eq!(dispatches.iter().filter(|dispatch| dispatch.replaced).count(), 4);
    let workgroups = "select distinct workgroupX, gridX from dispatch";
    let workgroups: Vec<(u32, u32)> = trace.rows(workgroups, |row| Ok((row.get(0)?, row.get(1)?)));
    assert_eq!(workgroups, [(256, 10)], "as the program launched it");
    let own = "select reason from ext_candidate where outcome = 'unused'";
    assert_eq!(trace.texts(own), ["it is the build that the program itself has loaded"]);
}

/// What is not known to be another build of the program's own kernel does not run in its place.
#[test]
fn builds_of_triton_that_may_compute_something_else_are_refused() {
    let refused = |builds: &[(&str, u32, &str)], change: &dyn Fn(&Path)| {
        let dir = Dir::new();
        let cache = triton_cache(&dir, builds);
        change(&cache);
        let ran = of_triton(&dir, &cache).run();
        ran.expect(0);
        let trace = dir.trace("trace.rpd");
        assert_eq!(trace.number("select count(*) from ext_replacement"), 0, "{ran}");
        outcomes(&trace)
            .into_iter()
            .map(|(_, outcome, reason)| format!("{outcome}: {reason}"))
            .collect::<Vec<_>>()
    };
    let nothing = |_: &Path| ();
    // The program's own build says what it was made of.
    let other = refused(&[("4", 1024, "own"), ("4", 512, "other")], &nothing);
    assert!(
        other[0].starts_with("refused: add_kernel is not replaced on GPU 0: it was made of other code"),
        "{other:?}"
    );
    let several = refused(&[("8", 1024, "one"), ("8", 512, "other")], &nothing);
    assert!(
        several.len() == 2 && several[0].contains("the directory has builds of 2 programs of that name"),
        "{several:?}"
    );
    let incomplete = refused(&[("8", 1024, "one")], &|cache| {
        fs::remove_file(cache.join("8x1024one/add_kernel.json")).unwrap();
    });
    assert!(
        incomplete[0].ends_with("add_kernel.json is not there, which says how the kernel is launched"),
        "{incomplete:?}"
    );
    let damaged = refused(&[("8", 1024, "one")], &|cache| {
        fs::write(cache.join("8x1024one/add_kernel.json"), "{}").unwrap();
    });
    assert!(damaged[0].ends_with("add_kernel.json: it does not say name"), "{damaged:?}");
}

/// Triton writes a build's description last: until it is there, the build is not used.
#[test]
fn a_build_of_triton_that_is_being_written() {
    let dir = Dir::new();
    let cache = cache(&dir, &[("build/a.hsaco", candidate("gfx900", VARIANT))]);
    fs::write(cache.join("build/a.ttir"), "module {}\n").unwrap();
    let mut running = replaced(&dir, &cache).arg("2").arg("wait").start();
    running.wait_for_output("round 0.\n");
    dir.touch("round.0");
    running.wait_for_output("round 1.\n");
    let other = "{\"name\": \"other\", \"num_warps\": 4, \"warp_size\": 64, \"shared\": 0}";
    fs::write(dir.path("a.json"), other).unwrap();
    fs::rename(dir.path("a.json"), cache.join("build/a.json")).unwrap();
    dir.wait_for_rows("trace.rpd", "select count(*) from ext_candidate where outcome = 'loaded'", 1);
    dir.touch("round.1");
    let trace = dir.succeeded(&running.finish());
    let dispatches = dispatches(&dir, &trace);
    assert_named(&dispatches);
    let adds = dispatches.iter().filter(|dispatch| dispatch.name.starts_with("add"));
    assert_eq!(adds.map(|dispatch| dispatch.replaced).collect::<Vec<_>>(), [false, true]);
    assert_eq!(outcomes(&trace).len(), 1);
}

/// A child that is forked while the loader is at work records its marks, and says nothing of the parent's candidates.
#[test]
fn a_forked_child_has_no_candidates() {
    let dir = Dir::new();
    let cache = cache(&dir, &[("a.hsaco", candidate("gfx900", VARIANT))]);
    let ran = replaced(&dir, &cache).arg("2").arg("fork").arg("printf").run();
    let trace = dir.succeeded(&ran);
    assert_eq!((trace.session_count(), ran.stdout.as_str()), (2, "the kernel says 42\n"));
    assert_eq!(outcomes(&trace).len(), 1, "the parent's");
    assert!(dispatches(&dir, &trace).iter().all(|dispatch| dispatch.replaced));
}

/// Whose turn it is.
#[test]
fn candidates_run_by_turns() {
    let dir = Dir::new();
    let files =
        [("a.hsaco", candidate("gfx900", VARIANT)), ("b/a.hsaco", candidate("gfx900", &["-DVARIANT=3"]))];
    let cache = cache(&dir, &files);
    let turns = |how: &str, seed: &str| {
        let dir = Dir::new();
        let run = replaced(&dir, &cache).env("RPDT_ALTERNATE", how).env("RPDT_SEED", seed);
        let trace = dir.succeeded(&run.arg("12").env("LOGDUR_FILTER", "^add").run());
        let ran = "select coalesce(R.candidate_id, 0) from op O left join ext_replacement R on R.op_id = O.id \
                   where O.description like 'add%' order by O.start";
        let turns: Vec<i64> = trace.rows(ran, |row| row.get(0));
        assert_eq!(trace.number("select count(distinct kernelName) from replacement"), 1, "the filter");
        turns
    };
    let trace = dir.succeeded(&replaced(&dir, &cache).arg("2").run());
    let without_turns: Vec<String> =
        outcomes(&trace).into_iter().map(|(_, outcome, reason)| format!("{outcome}: {reason}")).collect();
    let first = "unused: without turns, the kernels of the file whose path comes first run";
    assert_eq!(without_turns, ["loaded: ", first]);
    assert_eq!(turns("ABAB", "0"), [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert_eq!(turns("blocks=2", "0"), [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]);
    let random = turns("random", "7");
    assert_eq!(random, turns("random", "7"), "a seed says what happens");
    assert_ne!(random, turns("random", "8"));
}

/// A candidate that never ends is named, and so is one that stops its queue.
#[test]
fn a_candidate_that_fails_is_named() {
    let dir = Dir::new();
    let endless = cache(&dir, &[("endless.hsaco", candidate("gfx900", &["-DVARIANT=2", "-DENDLESS"]))]);
    let mut running = replaced(&dir, &endless).arg("2").start();
    let launched = "select count(*) from rocpd_kernelapi K join rocpd_string N on N.id = K.kernelName_id \
                    where N.string like 'weigh%'";
    dir.wait_for_rows("trace.rpd", launched, 1);
    running.wait_for_error("endless.hsaco has held its queue up for 10 s");
    running.signal(libc::SIGTERM);
    let ran = running.finish();
    ran.expect_signal(libc::SIGTERM);
    let line = "weigh(Window, double*, int) of the candidate ";
    assert!(ran.stderr.contains(line), "{ran}");
    assert_eq!(ran.stderr.matches("has held its queue up").count(), 1, "{ran}");

    let dir = Dir::new();
    let cache = cache(&dir, &[("bad.hsaco", candidate("gfx900", VARIANT))]);
    let fault = "[[fault]]\nkind = \"queue_error\"\nkernel = \"weigh\"\nerror = \"illegal_instruction\"\n";
    let ran = replaced(&dir, &cache).config(fault).arg("2").run();
    ran.expect_signal(libc::SIGABRT);
    let errors = dir.trace("trace.rpd").metadata("session::0::queue_error");
    let error = errors.values().next().cloned().unwrap_or_default();
    assert!(
        error.contains("in weigh(Window, double*, int) of the candidate") && error.contains("bad.hsaco"),
        "{error}{ran}"
    );
}

/// Candidates come and go while four threads launch on two GPUs: results stay right, nothing is lost, and what is not used any more
/// is given back.
#[test]
fn candidates_come_and_go_under_load() {
    let soak = std::env::var_os("RPD_SOAK").is_some();
    let (launches, least) = if soak { (250_000, 1000) } else { (4_000, 20) };
    let dir = Dir::new();
    let cache = dir.path("cache");
    fs::create_dir(&cache).unwrap();
    let both = [("900", "gfx900"), ("906", "gfx906")];
    for (name, gfx) in both {
        for (variant, options) in [("a", VARIANT), ("b", &["-DVARIANT=3"])] {
            fs::copy(candidate(gfx, options), dir.path(&format!("{name}{variant}"))).unwrap();
        }
    }
    let run = replaced(&dir, &cache).gpus(2).env("SIMGPU_GFX", "gfx900,gfx906").env("RPDT_BUFFER_MB", "64");
    let mut running = run.arg(launches.to_string()).arg("many").arg("two").start();
    let (mut renames, mut early, mut late) = (0, 0, 0);
    while running.is_alive() {
        for (name, _) in both {
            let variant = ["a", "b"][renames / 2 % 2];
            let (outside, inside) =
                (dir.path(&format!("{name}{variant}")), cache.join(format!("{name}.hsaco")));
            let (from, to) = if renames % 2 == 0 { (outside, inside) } else { (inside, outside) };
            fs::rename(from, to).unwrap();
        }
        renames += 1;
        std::thread::sleep(std::time::Duration::from_millis(if soak { 10 } else { 5 }));
        let memory = resident(running.pid()).unwrap_or(late);
        if renames == least / 10 {
            early = memory;
        }
        late = memory;
    }
    let ran = running.finish();
    let trace = dir.succeeded(&ran);
    assert!(renames >= least, "{renames}");
    let replaced = trace.number("select count(*) from ext_replacement");
    let all = trace.number("select count(*) from op where opType = 'KernelExecution'");
    assert_eq!(all, 4 * i64::from(launches));
    assert!(replaced > all / 50 && replaced < all, "{replaced} of {all} replaced, {renames} renames");
    assert_named(&dispatches(&dir, &trace));
    println!(
        "{renames} renames, {replaced} of {all} dispatches replaced, {early} kB resident early, {late} late"
    );
    assert!(
        !soak || late < early + early / 4,
        "{early} kB resident after {} renames, {late} at the end",
        least / 10
    );
}

/// Memory of a process that is in RAM, kB.
fn resident(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok())
}

/// Code objects with wrong bytes at places that lead somewhere go through the runtime's loader, which trusts them, and the program
/// hears nothing of it. None of their kernels runs.
#[test]
fn hostile_code_objects_do_not_reach_the_program() {
    let soak = std::env::var_os("RPD_SOAK").is_some();
    let (runs, files) = if soak { (250, 400) } else { (4, 150) };
    let (mut random, mut loaded, mut failed) = (Random(1), 0, 0);
    for run in 0..runs {
        let gfx = ["gfx900", "gfx906"][run % 2];
        let options = if run % 4 < 2 { VARIANT.to_vec() } else { [VARIANT, BUILD_ID].concat() };
        let file = candidate(gfx, &options);
        let good = fs::read(&file).unwrap();
        let dir = Dir::new();
        let cache = cache(&dir, &[("good.hsaco", file)]);
        for file in 0..files {
            fs::write(cache.join(format!("{file}.hsaco")), random.change(&good)).unwrap();
        }
        // The program loads that kernel, and does not launch it.
        let program = replaced(&dir, &cache).env("SIMGPU_GFX", gfx).env("LOGDUR_FILTER", "^say");
        program.env("RPDT_ALTERNATE", "ABAB").arg("1").run().expect(0);
        let trace = dir.trace("trace.rpd");
        loaded += trace.number("select count(*) from ext_candidate where outcome = 'loaded'");
        failed += trace.number("select count(*) from ext_candidate where outcome = 'failed'");
    }
    let all = (runs * files) as i64;
    assert!(loaded > all / 20 && failed > all / 5, "{loaded} loaded, {failed} failed");
}

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }

    /// A code object with a few other bytes, most of them in its tables.
    fn change(&mut self, good: &[u8]) -> Vec<u8> {
        let mut bytes = good.to_vec();
        for _ in 0..[1, 1, 1, 2, 4, 16][self.below(6)] {
            let place = match self.below(5) {
                0 => self.below(64),
                1 => self.below(64 + 56 * 9),
                2 => bytes.len() - 1 - self.below(64 * 16),
                3 => self.below(bytes.len()),
                _ => 0x200 + self.below(0x1600),
            };
            let value: &[u8] = match self.below(6) {
                0 | 1 => &[self.below(256) as u8],
                2 => &[bytes[place] ^ 1 << self.below(8)],
                3 => [&[0xff; 4], &[0; 4], &[0xff, 0xff, 0xff, 0x7f], &[0, 0, 0, 0x80]][self.below(4)],
                4 => [&[0xff; 8], &[0; 8]][self.below(2)],
                _ => &(self.below(1 << 31) as u64 * 512).to_le_bytes(),
            };
            let end = bytes.len().min(place + value.len());
            bytes[place..end].copy_from_slice(&value[..end - place]);
        }
        if self.below(20) == 0 {
            bytes.truncate(self.below(good.len()));
        }
        bytes
    }
}

/// Ten thousand files are read before the first dispatch, and none that no kernel needs is loaded.
#[test]
fn ten_thousand_files() {
    let dir = Dir::new();
    let cache = cache(&dir, &[("z.hsaco", candidate("gfx900", VARIANT))]);
    let other = candidate("gfx906", VARIANT);
    for folder in 0..100 {
        let folder = cache.join(format!("{folder:02}"));
        fs::create_dir(&folder).unwrap();
        for file in 0..100 {
            fs::hard_link(&other, folder.join(format!("{file:02}.hsaco")))
                .or_else(|_| fs::copy(&other, folder.join(format!("{file:02}.hsaco"))).map(drop))
                .unwrap();
        }
    }
    let trace = dir.succeeded(&replaced(&dir, &cache).arg("2").run());
    assert_eq!(trace.number("select count(*) from ext_candidate where outcome = 'other-target'"), 10_000);
    assert_eq!(trace.number("select count(*) from ext_candidate where outcome = 'loaded'"), 1);
    assert!(trace.number("select count(*) from ext_replacement") > 0);
}
