//! Instrumented kernels in the place of the program's own: right results, and findings in the trace that are exactly those computed by
//! hand here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rpd_simgpu::counts::{self, KernelCounts};
use rusqlite::types::FromSql;

use crate::harness::{
    Dir, HeldThread, Loading, Run, Trace, command, dh_comms_program, llvm_tool, probe_candidate, program,
    rpd, software_gpu, tool, wait_for,
};

/// As probe.hip has them: workgroups, each of one wavefront, and its work-items.
const WAVES: i64 = 8;
const ITEMS: i64 = 64;
/// Kernels of a round, and messages that they stream out.
const KERNELS: i64 = 5;
const MESSAGES: i64 = WAVES * (2 + 2 + 2 + 2 + 12);
/// Analyzers that work where nothing is said.
const ANALYZERS: i64 = 4;

/// The program with instrumented kernels of its own.
fn probed<'a>(dir: &'a Dir) -> Run<'a> {
    Run::new(dir, program("probe")).recorded(Loading::Preload).env("LOGDUR_INSTRUMENTED", "true")
}

/// Rows of pairs.
fn pairs<A: FromSql, B: FromSql>(trace: &Trace, sql: &str) -> Vec<(A, B)> {
    trace.rows(sql, |row| Ok((row.get(0)?, row.get(1)?)))
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/probe.hip")
}

/// The line of the source that has that comment.
fn line(comment: &str) -> i64 {
    line_of(&format!("// {comment}"))
}

/// The line of the source that ends so.
fn line_of(end: &str) -> i64 {
    let text = fs::read_to_string(source()).unwrap();
    text.lines().position(|line| line.ends_with(end)).unwrap() as i64 + 1
}

/// What is done at a line of the source: accesses, their size, lines needed and used, conflicts.
type Accesses = BTreeMap<(i64, String), [i64; 5]>;

fn accesses(trace: &Trace) -> Accesses {
    let sql = "select line, accessKind, accesses, size, linesNeeded, linesUsed, conflicts, file from ext_memoryaccess";
    let rows = trace.rows(sql, |row| {
        let numbers = [row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?];
        Ok(((row.get(0)?, row.get(1)?), numbers, row.get::<_, String>(7)?))
    });
    for (_, _, file) in &rows {
        assert_eq!(fs::canonicalize(file).unwrap(), fs::canonicalize(source()).unwrap());
    }
    rows.into_iter().map(|(place, numbers, _)| (place, numbers)).collect()
}

/// What the accesses must be, where cache lines have 64 bytes.
fn computed() -> Accesses {
    const LINE: i64 = 64;
    let lines = |bytes: i64| bytes / LINE;
    let floats = lines(4 * ITEMS);
    let shuffled = |wave: i64| {
        let address = |item: i64| (wave * ITEMS + item) * 37 % (WAVES * ITEMS) * 8;
        (0..ITEMS).map(|item| address(item) / LINE).collect::<BTreeSet<_>>().len() as i64
    };
    let shuffled: i64 = (0..WAVES).map(shuffled).sum();
    // Of 32 lanes that access LDS at the same time, 8 each meet in one of 4 banks.
    let conflicts = WAVES * 2 * 7;
    [
        ("coalesced load", "read", [WAVES, 4, WAVES * floats, WAVES * floats, 0]),
        ("coalesced store", "write", [WAVES, 4, WAVES * floats, WAVES * floats, 0]),
        ("strided load", "read", [WAVES, 4, WAVES * floats, WAVES * ITEMS, 0]),
        ("strided store", "write", [WAVES, 4, WAVES * floats, WAVES * floats, 0]),
        ("shuffled load", "read", [WAVES, 8, WAVES * lines(8 * ITEMS), shuffled, 0]),
        ("shuffled store", "write", [WAVES, 4, WAVES * floats, WAVES * floats, 0]),
        ("conflicting load", "read", [WAVES, 4, 0, 0, conflicts]),
        ("conflicting store", "write", [WAVES, 4, 0, 0, conflicts]),
    ]
    .into_iter()
    .map(|(comment, kind, numbers)| ((line(comment), kind.to_string()), numbers))
    .collect()
}

#[test]
fn findings_are_those_computed_by_hand() {
    let dir = Dir::new();
    let trace = dir.succeeded(&probed(&dir).run());
    assert_eq!(accesses(&trace), computed());
    // Lanes of the messages about global memory.
    let pages: Vec<(String, i64)> = pairs(
        &trace,
        "select S.string, sum(accesses) from ext_heatmap H join ext_instrumentation I on I.id = H.instrumentation_id
            join rocpd_string S on S.id = I.kernelName_id group by 1 order by 1",
    );
    let name =
        |name: &str| pages.iter().find(|(kernel, _)| kernel.starts_with(name)).map(|(_, count)| *count);
    for kernel in ["coalesced", "strided", "shuffled"] {
        assert_eq!(name(kernel), Some(2 * WAVES * ITEMS), "{pages:?}");
    }
    assert_eq!(pages.len(), 3);
    // Of five steps the last has no lane in block 2, the others 64, 48, 32 and 16.
    let blocks = "select block, count, timed, branchiness from ext_basicblock where cu = -1 order by 1";
    let blocks = trace.rows(blocks, |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?, row.get::<_, f64>(3)?))
    });
    let expected = [
        (0, WAVES, WAVES, 0.0),
        (1, 5 * WAVES, 5 * WAVES, 0.0),
        (2, 4 * WAVES, 4 * WAVES, 0.375),
        (3, WAVES, 0, 0.0),
    ];
    assert_eq!(blocks, expected);
    let units = "select block, sum(count) from ext_basicblock where cu >= 0 group by 1 order by 1";
    let units: Vec<(i64, i64)> = pairs(&trace, units);
    assert_eq!(units, expected.map(|(block, count, _, _)| (block, count)));
    let intervals: Vec<(i64, i64)> = pairs(
        &trace,
        "select count, total > 0 and firstBegin < lastEnd and total <= count * (lastEnd - firstBegin) from ext_timeinterval",
    );
    assert_eq!(intervals, [(WAVES, 1)]);
    let whole: Vec<(i64, i64)> = pairs(
        &trace,
        "select count(*), sum(messages) from ext_instrumentation where incomplete = 0 and dropped = 0 and reason = '' and op_id <> ''",
    );
    assert_eq!(whole, [(KERNELS * ANALYZERS, MESSAGES * ANALYZERS)]);
    // Each op has its own findings, and the application's name.
    let names = "select count(*) from ext_instrumentation I join op O on O.id = I.op_id join rocpd_string S on S.id = I.kernelName_id
        where O.description = S.string and O.gpuId = I.gpuId and O.queueId = I.queueId and O.sequenceId = I.sequenceId";
    assert_eq!(trace.number(names), KERNELS * ANALYZERS);
    // The views answer what is asked most.
    let worst = "select line, linesWasted from cacheLineWaste limit 1";
    let worst: Vec<(i64, i64)> = pairs(&trace, worst);
    assert_eq!(worst, [(line("strided load"), WAVES * (ITEMS - 4))]);
    assert_eq!(trace.number("select count(*) from hotBlock where kernelName like 'walk(%'"), 4);
}

/// In the cache are kernels for both processors; the program has none.
#[test]
fn instrumented_kernels_of_a_cache() {
    let dir = Dir::new();
    let cache = dir.path("cache");
    fs::create_dir(&cache).unwrap();
    for gfx in ["gfx900", "gfx906"] {
        fs::copy(probe_candidate(gfx), cache.join(format!("{gfx}.hsaco"))).unwrap();
    }
    let run = Run::new(&dir, program("probe_plain")).recorded(Loading::Preload).gpus(2);
    let run = run.env("SIMGPU_GFX", "gfx900,gfx906").env("LOGDUR_INSTRUMENTED", "true").arg("two");
    let trace = dir.succeeded(&run.env("LOGDUR_KERNEL_CACHE", &cache).run());
    // Two streams of each GPU.
    let found = "select gpuId, sum(messages) from ext_instrumentation group by 1 order by 1";
    let found: Vec<(i64, i64)> = pairs(&trace, found);
    let of_gpu = 2 * MESSAGES * ANALYZERS;
    assert_eq!(found, [(0, of_gpu), (1, of_gpu)]);
    let replaced = "select count(*) from ext_replacement R join ext_candidate C on C.id = R.candidate_id where C.outcome = 'loaded'";
    assert_eq!(trace.number(replaced), 4 * KERNELS);
    let found: BTreeSet<i64> = accesses(&trace).into_keys().map(|(line, _)| line).collect();
    assert_eq!(found, computed().into_keys().map(|(line, _)| line).collect());
}

/// A sub-buffer that has room for one message, memory for one dispatch, two queues of each of two GPUs.
#[test]
fn far_more_messages_than_there_is_room_for_are_all_read() {
    let dir = Dir::new();
    let rounds = 6;
    let run = probed(&dir).gpus(2).arg("two").arg(rounds.to_string());
    let run = run.env("RPDT_PROBE_SUB_BUFFERS", "1").env("RPDT_PROBE_SUB_BUFFER_KB", "1");
    let trace = dir.succeeded(&run.env("RPDT_PROBE_IN_FLIGHT", "1").run());
    let found: Vec<(i64, i64)> = pairs(
        &trace,
        "select count(*), sum(messages) from ext_instrumentation where incomplete = 0 and dropped = 0 and reason = ''",
    );
    let dispatches = 4 * rounds * KERNELS;
    assert_eq!(found, [(dispatches * ANALYZERS, 4 * rounds * MESSAGES * ANALYZERS)]);
    let wrong = "select count(*) from ext_memoryaccess where accesses <> 8";
    assert_eq!(trace.number(wrong), 0);
}

/// The kernel that has the only memory waits for one that has none.
#[test]
fn a_kernel_that_waits_for_another_one() {
    let dir = Dir::new();
    let trace = dir.succeeded(&probed(&dir).arg("pair").env("RPDT_PROBE_IN_FLIGHT", "1").run());
    let blocks =
        "select S.string, sum(messages) from ext_instrumentation join rocpd_string S on S.id = kernelName_id
        where string like 'await%' or string like 'tell%' group by 1 order by 1";
    let blocks: Vec<(String, i64)> = pairs(&trace, blocks);
    assert_eq!(blocks, [("await(int*)".into(), ANALYZERS), ("tell(int*)".into(), ANALYZERS)]);
}

#[test]
fn messages_of_some_workgroups() {
    for (x, y, z, waves) in [
        ("2", "", "", 1),
        ("2:5", "0", "", 3),
        ("6:100", "0:1", "0", 2),
        ("", "1", "", 0),
        ("", "", "1:7", 0),
    ] {
        let dir = Dir::new();
        let run = probed(&dir).env("DH_COMMS_GROUP_FILTER_X", x).env("DH_COMMS_GROUP_FILTER_Y", y);
        let trace = dir.succeeded(&run.env("DH_COMMS_GROUP_FILTER_Z", z).run());
        let messages = trace.number("select sum(messages) from ext_instrumentation");
        assert_eq!(messages, MESSAGES / WAVES * waves * ANALYZERS, "{x} {y} {z}");
    }
}

#[test]
fn some_dispatches() {
    let instrumented = |dispatches: &str, seed: &str| {
        let dir = Dir::new();
        let run = probed(&dir).env("LOGDUR_DISPATCHES", dispatches).env("RPDT_SEED", seed).arg("60");
        let trace = dir.succeeded(&run.env("LOGDUR_HANDLERS", "Heatmap").run());
        let all = trace.number("select count(*) from dispatch");
        let taken = "select S.string, sequenceId from ext_instrumentation join rocpd_string S on S.id = kernelName_id order by 1, 2";
        let taken: Vec<(String, i64)> = pairs(&trace, taken);
        assert_eq!(all, 60 * KERNELS);
        assert_eq!(trace.number("select count(*) from ext_replacement"), taken.len() as i64);
        taken
    };
    let first = instrumented("1", "0");
    let kernels: BTreeSet<&String> = first.iter().map(|(kernel, _)| kernel).collect();
    assert_eq!((first.len() as i64, kernels.len() as i64), (KERNELS, KERNELS), "{first:?}");
    // Of 300 dispatches about three.
    let random = ["1", "2"].map(|seed| instrumented("random", seed));
    assert!(random.iter().all(|taken| taken.len() < 20) && random[0] != random[1], "{random:?}");
    assert_eq!(instrumented("random", "1"), random[0]);
}

/// In one run are instrumented dispatches and plain ones of the same launch, beside which the first are put.
#[test]
fn what_instrumented_dispatches_cost() {
    let dir = Dir::new();
    let trace = dir.succeeded(&probed(&dir).env("LOGDUR_DISPATCHES", "1").arg("4").run());
    let both = "select instrumented, plain from instrumentationCost where instrumentedNs > 0 and ratio > 0";
    let both: Vec<(i64, i64)> = pairs(&trace, both);
    assert_eq!(both, vec![(1, 3); KERNELS as usize]);
    let top = |options: &[&str]| {
        let mut top = command(rpd());
        let top = top.args(["top", "--by", "kernel", "--csv"]).args(options).arg(dir.path("trace.rpd"));
        let output = top.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    };
    let (own, said) = top(&[]);
    assert_eq!(own.matches(",3,").count() as i64, KERNELS, "{own}");
    assert!(said.contains(&format!("{KERNELS} dispatches are left out")), "{said}");
    let (all, said) = top(&["--instrumented"]);
    assert!(all.matches(",4,").count() as i64 == KERNELS && said.is_empty(), "{all}{said}");
    // Without plain ones there is nothing to compare with.
    let dir = Dir::new();
    let trace = dir.succeeded(&probed(&dir).run());
    let alone =
        "select count(*) from instrumentationCost where instrumented = 1 and plain = 0 and ratio is null";
    assert_eq!(trace.number(alone), KERNELS);
}

/// The rows of an instrumented kernel have its own name and registers, though it is in the code object of the program's kernel.
#[test]
fn the_code_of_instrumented_kernels_is_theirs() {
    for save in ["", "1"] {
        let dir = Dir::new();
        let run = probed(&dir).env("LOGDUR_DISPATCHES", "1").env("RPDT_SAVE_CODE", save).arg("2");
        let trace = dir.succeeded(&run.run());
        let output = command(rpd()).args(["code", "--json"]).arg(dir.path("trace.rpd")).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        let (mut found, mut own) = (BTreeMap::new(), 0);
        for row in &rows {
            let name = row["kernel"].as_str().unwrap().to_string();
            match row["launches"]["candidate"].as_str() {
                Some(candidate) => {
                    assert_eq!(candidate, "(the program)");
                    found.insert(name, row["vgpr"].as_i64().unwrap());
                }
                None => own += i64::from(!name.starts_with("__amd_crk_")),
            }
        }
        let expected = "select K.kernelName, vgpr from ext_replacement R join rocpd_kernelcodeobject V on V.id = R.replacement_kernel_id
            join (select E.id, S.string as kernelName from ext_kernelcodeobject E join rocpd_string S on S.id = E.kernelName_id) K
            on K.id = R.replacement_kernel_id";
        let expected: BTreeMap<String, i64> = pairs(&trace, expected).into_iter().collect();
        assert!(expected.keys().all(|name| name.starts_with("__amd_crk_")), "{expected:?}");
        assert_eq!((found, own), (expected, KERNELS), "{save}: {rows:?}");
    }
}

/// What arrived before the fault is there, and said to be incomplete.
#[test]
fn a_fault_leaves_what_came_before_it() {
    let dir = Dir::new();
    let ran = probed(&dir).arg("fault").run();
    ran.expect_signal(libc::SIGABRT);
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!(
        trace.number("select count(*) from ext_instrumentation where incomplete = 0"),
        KERNELS * ANALYZERS
    );
    let incomplete = "select S.string || ' ' || messages || ' ' || analyzer from ext_instrumentation
        join rocpd_string S on S.id = kernelName_id where incomplete = 1 and op_id is null order by 1";
    let incomplete: Vec<String> = trace.texts(incomplete);
    let expected = ["BasicBlockAnalysis", "Heatmap", "MemoryAnalysis", "TimeInterval"];
    assert_eq!(incomplete, expected.map(|analyzer| format!("failing(int*, int*) 1 {analyzer}")));
    let last: i64 = trace.number("select max(line) from ext_memoryaccess");
    assert_eq!(last, line("last store"));
}

#[test]
fn a_killed_program_leaves_a_sound_file() {
    let dir = Dir::new();
    let running = probed(&dir).arg("endless").start();
    dir.wait_for_rows("trace.rpd", "select count(*) from ext_instrumentation", 40);
    running.signal(libc::SIGKILL);
    running.finish().expect_signal(libc::SIGKILL);
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let torn =
        "select count(*) from (select op_id from ext_instrumentation group by op_id having count(*) <> 4)";
    assert_eq!(trace.number(torn), 0);
}

/// The program ends while a kernel streams out more than is read until then: the kernel never waits for us for ever, nor the program.
#[test]
fn a_program_that_leaves_its_kernels_behind() {
    for how in ["leave", "exit"] {
        let dir = Dir::new();
        let ran = probed(&dir).env("RPDT_PROBE_SUB_BUFFER_KB", "1").arg(how).arg("pour=3000000").run();
        assert_eq!(ran.expect(0).stdout, "leaving\n", "{ran}");
        assert!(ran.stderr.contains("1 GPU operations had not completed"), "{ran}");
        let trace = dir.trace("trace.rpd");
        trace.check_integrity();
        let rest =
            "select min(incomplete) + count(*), min(messages) from ext_instrumentation where op_id is null";
        let rest: Vec<(i64, i64)> = pairs(&trace, rest);
        assert!(rest[0].0 == 1 + ANALYZERS && rest[0].1 > 100, "{rest:?}");
        let whole = "select count(*) from ext_instrumentation where incomplete = 0 and op_id <> ''";
        assert_eq!(trace.number(whole), KERNELS * ANALYZERS);
    }
}

/// Children meanwhile, which have no reader.
#[test]
fn a_program_that_forks() {
    let dir = Dir::new();
    let run = probed(&dir).arg("fork").arg("20").env("RPDT_PROBE_SUB_BUFFERS", "1");
    let trace = dir.succeeded(&run.env("RPDT_PROBE_SUB_BUFFER_KB", "1").run());
    let messages =
        trace.number("select sum(messages) from ext_instrumentation where incomplete = 0 and dropped = 0");
    assert_eq!(messages, 20 * MESSAGES * ANALYZERS);
}

/// A kernel that streams out more than can wait for analyzers does not wait for those that stand still: what they were not given is counted.
#[test]
fn analyzers_that_take_nothing_for_a_while() {
    let (dir, messages) = (Dir::new(), 90_000_i64);
    let running = probed(&dir).arg(format!("pour={messages}")).start();
    let held = HeldThread::of(&running, "rpd-analysis");
    dir.wait_for_rows("trace.rpd", "select count(*) from op where description like 'pour(%'", 1);
    drop(held);
    // It may be said that the kernel took long.
    running.finish().expect(0);
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert!(trace.lost().is_empty(), "{:?}", trace.lost());
    let poured =
        "select bytes + dropped, min(dropped > 0 and bytes > 0 and incomplete = 0) from ext_instrumentation
        join rocpd_string S on S.id = kernelName_id where string like 'pour(%' group by 1";
    let poured: Vec<(i64, i64)> = pairs(&trace, poured);
    // A message has a header, and what each work-item is and accesses.
    assert_eq!(poured, [(messages * (64 + ITEMS * (4 + 8)), 1)]);
}

/// A log on a full disk: the kernels do not wait for it, and the trace has everything.
#[test]
fn a_log_that_takes_nothing() {
    let dir = Dir::new();
    let run = probed(&dir).arg("20").env("LOGDUR_LOG_LOCATION", "/dev/full");
    let ran = run.env("LOGDUR_HANDLERS", "MessageLogger,Heatmap").env("LOGDUR_LOG_FORMAT", "json").run();
    ran.expect(0);
    assert_eq!(ran.stderr.lines().count(), 2, "{ran}");
    let lost = 20 * (MESSAGES + KERNELS);
    assert!(ran.stderr.ends_with(&format!("{lost} of {lost} lines are not in the log\n")), "{ran}");
    let trace = dir.trace("trace.rpd");
    let messages =
        trace.number("select sum(messages) from ext_instrumentation where incomplete = 0 and dropped = 0");
    assert_eq!(messages, 20 * MESSAGES * 2);
}

/// Without instrumented kernels it is a plain run, which says so.
#[test]
fn nothing_to_run_is_said() {
    let dir = Dir::new();
    let run =
        Run::new(&dir, program("probe_plain")).recorded(Loading::Preload).env("LOGDUR_INSTRUMENTED", "true");
    let ran = run.run();
    ran.expect(0);
    let said = "none has an instrumented one in the program or the kernel cache\n";
    assert!(ran.stderr.ends_with(said) && ran.stderr.lines().count() == 1, "{ran}");
    let trace = dir.trace("trace.rpd");
    assert!(!trace.has_table("ext_instrumentation") && trace.lost().is_empty());
    assert_eq!(trace.number("select count(*) from dispatch"), KERNELS);
}

/// `rpd probe` with these options, of the program that has instrumented kernels: standard output, standard error.
fn rpd_probe(dir: &Dir, options: &[&str]) -> (String, String) {
    let mut rpd = command(rpd());
    rpd.arg("probe").args(options).arg("--").arg(program("probe")).current_dir(dir.path(""));
    rpd.env("LD_PRELOAD", software_gpu()).env("SIMGPU_GPUS", "1").env("TMPDIR", dir.path(""));
    let output = rpd.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    (stdout, stderr)
}

/// Reports go to standard output, or where the user says; the trace has the findings either way.
#[test]
fn reports_of_analyzers() {
    let dir = Dir::new();
    let (stdout, stderr) = rpd_probe(&dir, &["-i", "-a", "MemoryAnalysis", "Heatmap", "-k", "strided"]);
    assert!(stderr.starts_with("rpd: trace.rpd: 5 kernels, 1 of them instrumented, 3 copies, "), "{stderr}");
    for part in
        ["=== L2 cache line use report", "=== Bank conflicts report", "memory heatmap report(strided("]
    {
        assert_eq!(stdout.matches(part).count(), 1, "{part}: {stdout}");
    }
    assert!(stdout.contains(&format!("probe.hip:{}", line("strided load"))), "{stdout}");
    assert_eq!(dir.trace("trace.rpd").number("select count(*) from ext_instrumentation"), 2);

    let options = ["-i", "-t", "json", "-a", "libMemAnalysis64.so,TimeInterval", "-l", "log.json", "--force"];
    let (stdout, _) = rpd_probe(&dir, &options);
    assert_eq!(stdout, "");
    let log = fs::read_to_string(dir.path("log.json")).unwrap();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len() as i64, 2 * KERNELS);
    let cache =
        lines.iter().filter_map(|line| line["kernel_analysis"]["cache_analysis"]["accesses"].as_array());
    let used: u64 =
        cache.flatten().filter_map(|access| access["access_info"]["cache_lines"]["used"].as_u64()).sum();
    assert_eq!(used as i64, computed().values().map(|[_, _, _, used, _]| used).sum::<i64>(), "{log}");

    // Each message, as omniprobe writes it: so many columns, and an address of each lane.
    rpd_probe(&dir, &["-i", "-a", "MessageLogger", "-k", "coalesced", "-l", "log.csv", "--force"]);
    let log = fs::read_to_string(dir.path("log.csv")).unwrap();
    let mut lines = log.lines();
    let header = lines.next().unwrap();
    assert!(header.starts_with("ADDRESS_MESSAGE,timestamp,kernel,src_line,dispatch,exec_mask,"), "{header}");
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len() as i64, 2 * WAVES, "{log}");
    assert!(lines.iter().all(|line| line.matches(",0x").count() as i64 == ITEMS + 1), "{log}");
}

/// The examples of omniprobe's README and manual, with the names of a program and of kernels that are here.
#[test]
fn omniprobes_examples_run() {
    let dir = Dir::new();
    fs::create_dir(dir.path("cache")).unwrap();
    fs::write(dir.path("filter.json"), r#"{"include": ["**/probe"], "exclude": ["**/miopen/**"]}"#).unwrap();
    for (example, instrumented) in [
        ("", 0),
        ("-i -a MemoryAnalysis", KERNELS),
        ("-i -a Heatmap", KERNELS),
        ("-i -a MemoryAnalysis -k strided", 1),
        ("-i -a MemoryAnalysis -k strided|walk", 2),
        ("-i -a MemoryAnalysis -d all", KERNELS),
        ("-i -a MemoryAnalysis -d 1", KERNELS),
        ("-i -a MemoryAnalysis -d random --seed 4", 1),
        ("-i -a AddressLogger -t csv", KERNELS),
        ("-i -a AddressLogger -t json", KERNELS),
        ("-i -a AddressLogger -l output.csv", KERNELS),
        ("-i -a BasicBlockLogger -t json", KERNELS),
        ("-i -a MemoryAnalysis --filter-x 0 --filter-y 0 --filter-z 0", KERNELS),
        ("-i -a MemoryAnalysis --filter-x 10:20", KERNELS),
        ("-i -a MemoryAnalysis --library-filter filter.json", KERNELS),
        ("-i -a MemoryAnalysis -c cache", KERNELS),
        ("-i -a MemoryAnalysis --cache-location cache --log-location output.csv", KERNELS),
        ("-v -i -a MemoryAnalysis", KERNELS),
        ("-e -i -a MemoryAnalysis", KERNELS),
    ] {
        let options: Vec<&str> = example.split_whitespace().chain(["--force"]).collect();
        rpd_probe(&dir, &options);
        let trace = dir.trace("trace.rpd");
        let found = match trace.has_table("ext_instrumentation") {
            true => trace.number("select count(distinct op_id) from ext_instrumentation"),
            false => 0,
        };
        assert_eq!(found, instrumented, "{example}");
    }
}

/// Options of omniprobe's that mean nothing here are refused, and those that do nothing are named.
#[test]
fn options_and_variables_that_cannot_be() {
    let refused = |options: &[&str]| {
        let output = command(rpd()).arg("probe").args(options).args(["--", "true"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&["-a", "libMyHandler64.so"]).contains("is a handler of omniprobe's for C++"));
    assert!(refused(&["-a", "heat"]).contains("there are MessageLogger, Heatmap"));
    assert!(refused(&["--filter-x", "5:2"]).contains("must be N, or N:M with N below M"));
    assert!(refused(&["-a", "./none.so"]).contains("there is no such file"));
    assert!(refused(&["-d", "2"]).contains("all, random, 1"));
    let (_, stderr) = rpd_probe(&Dir::new(), &["-i", "-d", "random"]);
    assert!(stderr.starts_with("rpd: trace.rpd: 5 kernels, 0 of them instrumented, "), "{stderr}");
    let dir = Dir::new();
    let (_, stderr) = rpd_probe(&dir, &["-e", "-d", "1", "-l", "log"]);
    assert!(stderr.contains("without -i or --auto no kernel is instrumented"), "{stderr}");
    assert!(stderr.contains("rpd: LOGDUR_DISPATCHES=1\n"), "{stderr}");
    let log = fs::read_to_string(dir.path("log")).unwrap();
    assert_eq!(log.lines().count() as i64, 1 + KERNELS, "{log}");
    for (name, value, complaint) in [
        ("LOGDUR_INSTRUMENTED", "perhaps", "LOGDUR_INSTRUMENTED=perhaps is neither true nor false"),
        ("LOGDUR_DISPATCHES", "2", "LOGDUR_DISPATCHES=2 is not all, random, 1 or 1/N"),
        ("LOGDUR_HANDLERS", "libMine.so", "LOGDUR_HANDLERS: libMine.so is a handler of omniprobe's"),
        ("DH_COMMS_GROUP_FILTER_Y", "-1", "DH_COMMS_GROUP_FILTER_Y=-1: must be N"),
        ("RPDT_PROBE_SUB_BUFFERS", "0", "RPDT_PROBE_SUB_BUFFERS=0 is not a number from 1 to 65536"),
    ] {
        let dir = Dir::new();
        let ran = probed(&dir).env(name, value).run();
        ran.expect(0);
        assert!(ran.stderr.contains(complaint), "{ran}");
    }
}

/// The examples in C, Rust and Python find the same, and the program knows nothing of them.
#[test]
fn handlers_of_the_users_own() {
    let dir = Dir::new();
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/handlers/strides.py");
    let handlers = [program("strides.so"), program("strides_rust.so"), python];
    let mut options = vec!["-i", "-a"];
    options.extend(handlers.iter().map(|handler| handler.to_str().unwrap()));
    options.push("Heatmap");
    let (stdout, stderr) = rpd_probe(&dir, &options);
    assert!(stderr.starts_with("rpd: trace.rpd: 5 kernels") && stderr.lines().count() == 1, "{stderr}");
    let trace = dir.trace("trace.rpd");
    let strided = line("strided load");
    let said = format!("strided(float const*, float*): probe.hip:{strided}: 64 bytes from lane to lane\n");
    assert_eq!(stdout.matches(&said).count(), 3, "{stdout}");
    let analyzers = ["Heatmap", "strides.py", "strides.so", "strides_rust.so"];
    let sql = "select analyzer, sum(messages) from ext_instrumentation
        where op_id <> '' and dropped + incomplete = 0 and reason = '' group by 1 order by 1";
    let found: Vec<(String, i64)> = pairs(&trace, sql);
    assert_eq!(found, analyzers.map(|name| (name.to_string(), MESSAGES)));
    let values = |handler: &str| -> Vec<(String, f64)> {
        let sql = "select name, value from ext_handlervalue join ext_instrumentation I on I.id = instrumentation_id";
        pairs(&trace, &format!("{sql} where analyzer = '{handler}' order by 1"))
    };
    let first = values("strides.so");
    let expected = [("coalesced load", 4.0), ("strided load", 64.0), ("shuffled load", 37.0 * 8.0)];
    for (comment, apart) in expected {
        assert!(first.contains(&(format!("stride probe.hip:{}", line(comment)), apart)), "{first:?}");
    }
    assert_eq!((first.len(), &first), (8, &values("strides.py")));
    assert_eq!(first, values("strides_rust.so"));
    assert!(dir.names().iter().all(|name| name == "trace.rpd"), "{:?}", dir.names());
}

/// One that crashes, hangs, ends or takes all memory costs its own findings, and the trace says so.
#[test]
fn a_handler_that_misbehaves_costs_its_own_findings() {
    let handler = program("bad_handler.so");
    for (bad, said) in [
        ("crash", "its process has ended"),
        ("exit", "its process has ended"),
        ("leak", "its process has ended"),
        ("hang", "it took more than 5 s"),
        ("slow", ""),
    ] {
        let dir = Dir::new();
        let mut rpd = command(rpd());
        rpd.args(["probe", "-i", "-l", "log", "-a", "Heatmap", handler.to_str().unwrap(), "--"]);
        rpd.arg(program("probe")).current_dir(dir.path("")).env("TMPDIR", dir.path("")).env("BAD", bad);
        let output = rpd.env("LD_PRELOAD", software_gpu()).env("SIMGPU_GPUS", "1").output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{bad}: {stderr}");
        let trace = dir.trace("trace.rpd");
        let found = "select analyzer || ' ' || count(*) || ' ' || sum(messages) || ' ' || sum(dropped > 0) || ' ' || max(reason)
            from ext_instrumentation where op_id <> '' group by analyzer order by 1";
        let found = trace.texts(found);
        assert_eq!(found[0], format!("Heatmap {KERNELS} {MESSAGES} 0 "), "{bad}: {stderr}");
        let gone = "the handler is gone: ";
        match bad {
            "slow" => {
                assert_eq!(found[1], format!("bad_handler.so {KERNELS} {MESSAGES} 0 "), "{stderr}");
                assert_eq!(
                    trace.number(
                        "select cast(sum(value) as integer) from ext_handlervalue where name = 'messages'"
                    ),
                    MESSAGES
                );
            }
            _ => {
                assert_eq!(
                    found[1],
                    format!("bad_handler.so {KERNELS} 0 {KERNELS} {gone}{said}"),
                    "{bad}: {stderr}"
                );
                assert!(stderr.contains("is given no more messages: "), "{bad}: {stderr}");
            }
        }
        let ended =
            [("crash", "SIGSEGV ended it"), ("exit", "it ended with status 7"), ("leak", "SIGABRT ended it")];
        for (way, how) in ended {
            assert_eq!(stderr.contains(how), way == bad, "{bad}: {stderr}");
        }
    }
}

/// What analyzers counted is what the software GPU counted while it executed these kernels: the pages that their lanes accessed, and
/// how often a wavefront came by each place that sends messages.
#[test]
fn heat_and_blocks_are_the_interpreters_own() {
    let dir = Dir::new();
    let run = probed(&dir).arg("parted").arg("scattered").env("SIMGPU_COUNTS", dir.path("counts"));
    let ran = run.env("RPDT_SAVE_CODE", dir.path("code")).run();
    let trace = dir.succeeded(&ran);
    let kernels = counts::read(dir.path("counts"), ran.pid).unwrap();

    let scattered = kernels.iter().find(|kernel| kernel.name == "__amd_crk__Z9scatteredPiPv").unwrap();
    let heat: Vec<(i64, i64)> = pairs(
        &trace,
        "select H.address, H.accesses from ext_heatmap H join ext_instrumentation I on I.id = H.instrumentation_id
            join rocpd_string S on S.id = I.kernelName_id where S.string like 'scattered%' order by 1",
    );
    let accessed = |address: i64| {
        let here = |page: &&(u64, u64)| page.0 >> 20 == address as u64 >> 20;
        scattered.pages.iter().filter(here).map(|(_, accesses)| *accesses as i64).sum()
    };
    assert_eq!(heat, heat.iter().map(|(address, _)| (*address, accessed(*address))).collect::<Vec<_>>());
    assert_eq!(heat.len(), 16);
    assert_eq!(heat.iter().map(|(_, accesses)| accesses).sum::<i64>(), 2 * 20 * WAVES * ITEMS);

    let analyzed = "select line, accesses from ext_memoryaccess union all select line, count from ext_basicblock where cu = -1";
    let analyzed: BTreeSet<(i64, i64)> = pairs::<i64, i64>(&trace, analyzed).into_iter().collect();
    let executed: BTreeSet<(i64, i64)> = kernels.iter().flat_map(|kernel| sent(&dir, kernel)).collect();
    // `walk` sends an interval too, of which there are no counts.
    let interval = (line_of("RPD_END(probe, begin);"), WAVES);
    assert!(executed.contains(&interval) && !analyzed.contains(&interval));
    assert_eq!(analyzed, executed.into_iter().filter(|place| *place != interval).collect());
}

/// The saved code object that has the symbol, and its address there.
pub(crate) fn code_with(dir: &Dir, symbol: &str) -> (PathBuf, u64) {
    let code = fs::read_dir(dir.path("code")).unwrap().map(|file| file.unwrap().path());
    let found = code.filter_map(|code| {
        let names = tool(&llvm_tool("llvm-nm"), &["-D", code.to_str().unwrap()]);
        let address =
            names.lines().find(|line| line.ends_with(&format!(" {symbol}")))?.split(' ').next().unwrap();
        Some((code, u64::from_str_radix(address, 16).unwrap()))
    });
    let mut found: Vec<(PathBuf, u64)> = found.collect();
    assert_eq!(found.len(), 1, "{symbol}: {found:?}");
    found.remove(0)
}

/// Lines of the source that sent messages, and how often a wavefront executed the instructions that end sending one there.
fn sent(dir: &Dir, kernel: &KernelCounts) -> Vec<(i64, i64)> {
    let symbol = format!("{}.kd", kernel.name);
    let (code, descriptor) = code_with(dir, &symbol);
    let addresses =
        kernel.instructions.iter().map(|(pc, ..)| format!("{:#x}", pc - kernel.object + descriptor));
    let addresses: Vec<String> = addresses.collect();
    let mut arguments = vec!["--inlines", "--obj", code.to_str().unwrap()];
    arguments.extend(addresses.iter().map(String::as_str));
    let frames = tool(&llvm_tool("llvm-symbolizer"), &arguments);
    let header =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../include/rpd_probe.h")).unwrap();
    let end =
        header.lines().position(|line| line.contains("(&buffers->locks[index], uint8_t(0)")).unwrap() + 1;
    let mut sent = BTreeMap::new();
    for ((_, waves, ..), frames) in kernel.instructions.iter().zip(frames.trim().split("\n\n")) {
        let lines: Vec<&str> = frames.lines().collect();
        if !lines[1].contains(&format!("rpd_probe.h:{end}:")) {
            continue;
        }
        let mut place = lines.last().unwrap().rsplit(':').skip(1);
        let line: i64 = place.next().unwrap().parse().unwrap();
        assert_eq!(*sent.entry(line).or_insert(*waves as i64), *waves as i64, "{symbol}: {frames}");
    }
    sent.into_iter().collect()
}

/// Each branch has messages of its own, of its own lanes, though the compiler makes their code common; all lanes that read one address
/// need one cache line.
#[test]
fn lanes_that_part_say_so_themselves() {
    let dir = Dir::new();
    let trace = dir.succeeded(&probed(&dir).arg("parted").env("LOGDUR_FILTER", "parted").run());
    let expected = [
        ("even load", "read", [10, 4, 10 * 2, 10 * 4, 0]),
        ("odd load", "read", [10, 4, 10 * 2, 10 * 32, 0]),
        ("the same load", "read", [1, 4, 1, 1, 0]),
        ("parted store", "write", [1, 4, 4, 4, 0]),
    ];
    let expected = expected.map(|(comment, kind, numbers)| ((line(comment), kind.to_string()), numbers));
    assert_eq!(accesses(&trace), expected.into_iter().collect());
    let blocks =
        "select block || ' ' || count || ' ' || branchiness from ext_basicblock where cu = -1 order by 1";
    assert_eq!(trace.texts(blocks), ["1 1 0.5", "2 1 0.5"]);
}

/// An instrumented kernel prints as the plain one does, and recording begins and ends meanwhile.
#[test]
fn a_kernel_that_prints_while_recording_begins_and_ends() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("probe_say")).recorded(Loading::Preload).env("RPDT_AUTOSTART", "0");
    let ran = run.env("LOGDUR_INSTRUMENTED", "true").run();
    let trace = dir.succeeded(&ran);
    let lines = (0..7).flat_map(|launch| [0, 1].map(|lane| format!("lane {lane} of {launch}\n")));
    assert_eq!(ran.stdout, lines.collect::<String>());
    let said = "select count(*), sum(messages), count(op_id), (select count(*) from ext_replacement) from ext_instrumentation where reason = ''";
    let said = trace.rows(said, |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get::<_, i64>(3)?]));
    assert_eq!(said, [[4 * ANALYZERS, 4 * ANALYZERS, 4 * ANALYZERS, 4]]);
}

/// Its name is one letter off, so it is for no kernel of the program.
#[test]
fn an_instrumented_kernel_for_none_is_named() {
    let dir = Dir::new();
    let ran = Run::new(&dir, program("probe_misspelt")).recorded(Loading::Preload);
    let ran = ran.env("LOGDUR_INSTRUMENTED", "true").run();
    ran.expect(0);
    let said = "__amd_crk__Z10coalescedzPKfPfPv.kd is the instrumented kernel of none that the program has loaded: is the name in RPD_INSTRUMENTED the mangled one?\n";
    assert!(ran.stderr.ends_with(said) && ran.stderr.lines().count() == 1, "{ran}");
    let instrumented = dir.whole_trace().number("select count(*) from ext_instrumentation where op_id <> ''");
    assert_eq!(instrumented, KERNELS * ANALYZERS);
}

/// What is wrong with the messages is said by each handler, also where no analyzer of rpd's works.
#[test]
fn a_kernel_that_says_wrong_sizes() {
    let handler = program("bad_handler.so");
    let handler = handler.to_str().unwrap();
    for (analyzers, rows) in [(vec![handler], 1), (vec![handler, "Heatmap"], 2)] {
        let dir = Dir::new();
        let mut rpd = command(rpd());
        rpd.args(["probe", "-i", "-l", "log", "-k", "scribble", "-a"]).args(analyzers).arg("--");
        rpd.arg(program("probe")).arg("scribble").current_dir(dir.path("")).env("TMPDIR", dir.path(""));
        let output = rpd.env("LD_PRELOAD", software_gpu()).env("SIMGPU_GPUS", "1").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = "messages larger than a sub-buffer were dropped by the kernel (RPDT_PROBE_SUB_BUFFER_KB); \
            sub-buffers said sizes that they do not have: 1; 65536 bytes are no messages, and were skipped";
        let trace = dir.trace("trace.rpd");
        let reasons = trace.texts("select reason from ext_instrumentation where op_id <> ''");
        assert_eq!(reasons, vec![said; rows]);
    }
}

/// Nothing of a handler stays behind.
#[test]
fn a_handler_that_forks() {
    let dir = Dir::new();
    let handler = program("bad_handler.so");
    let mut rpd = command(rpd());
    rpd.args(["probe", "-i", "-l", "log", "-a", handler.to_str().unwrap(), "--"]).arg(program("probe"));
    rpd.current_dir(dir.path("")).env("TMPDIR", dir.path("")).env("BAD", "fork");
    let output = rpd.env("LD_PRELOAD", software_gpu()).env("SIMGPU_GPUS", "1").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let child = fs::read_to_string(dir.path("child")).unwrap();
    let has_ended = || match fs::read_to_string(format!("/proc/{child}/stat")) {
        Ok(stat) => stat.contains(") Z "),
        Err(_) => true,
    };
    wait_for("end of the handler's child", || has_ended().then_some(()));
}

/// A signal that comes while a handler begins is the command's, and nothing stays behind.
#[test]
fn a_signal_while_a_handler_begins() {
    let dir = Dir::new();
    let handler = "
import os, sys, time
with open('part', 'w') as place: place.write(os.path.dirname(sys.argv[1]))
os.rename('part', 'place')
time.sleep(1)
class Handler: pass
";
    fs::write(dir.path("handler.py"), handler).unwrap();
    let mut rpd = command(rpd());
    rpd.args(["probe", "-i", "-l", "log", "-a", "handler.py", "--"]).arg(program("probe")).arg("endless");
    rpd.current_dir(dir.path("")).env("TMPDIR", dir.path(""));
    rpd.env("LD_PRELOAD", software_gpu()).env("SIMGPU_GPUS", "1");
    let mut child = rpd.stderr(Stdio::null()).spawn().unwrap();
    let place = wait_for("the handler", || fs::read_to_string(dir.path("place")).ok());
    assert!(Path::new(&place).is_dir(), "{place}");
    // SAFETY: only sends a signal to a child that nobody has waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
    assert!(!Path::new(&place).exists(), "{place}");
}

/// Numbers and text that JSON cannot have.
#[test]
fn a_handler_in_python_that_says_what_cannot_be_said() {
    let dir = Dir::new();
    let handler = "
class Handler:
    def __init__(self, dispatch): pass
    def message(self, message): pass
    def finish(self, output):
        output.value('none', float('nan'))
        output.value('all', float('inf'))
        output.value('half \\udc80', 0.5)
        output.print('text \\udc80')
";
    fs::write(dir.path("handler.py"), handler).unwrap();
    let (stdout, stderr) = rpd_probe(&dir, &["-i", "-a", "handler.py"]);
    assert!(stderr.lines().count() == 1 && stdout.matches("text ?\n").count() as i64 == KERNELS, "{stderr}");
    let trace = dir.trace("trace.rpd");
    let values: Vec<(String, f64)> = pairs(&trace, "select distinct name, value from ext_handlervalue");
    assert_eq!(values, [("half ?".to_string(), 0.5)]);
    assert_eq!(trace.number("select count(*) from ext_instrumentation where reason = ''"), KERNELS);
}

/// A process that ends does not wait for a handler longer than for anything else, and what others have found is there.
#[test]
fn a_handler_that_does_not_answer_before_the_end() {
    let dir = Dir::new();
    let handler = program("bad_handler.so");
    let mut rpd = command(rpd());
    rpd.args(["probe", "-i", "-l", "log", "-a", "Heatmap", handler.to_str().unwrap(), "--"]);
    rpd.arg(program("probe")).current_dir(dir.path("")).env("TMPDIR", dir.path("")).env("BAD", "hang");
    rpd.env("LD_PRELOAD", software_gpu()).env("SIMGPU_GPUS", "1").env("RPDT_EXIT_MS", "2000");
    let output = rpd.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let trace = dir.trace("trace.rpd");
    let found = "select analyzer || ' ' || count(*) || ' ' || sum(messages) || ' ' || max(reason) from ext_instrumentation
        where op_id <> '' group by analyzer order by 1";
    let silent = format!("bad_handler.so {KERNELS} 0 it had not answered when the recording ended");
    assert_eq!(trace.texts(found), [format!("Heatmap {KERNELS} {MESSAGES} "), silent]);
}

#[test]
fn what_is_no_handler_is_refused() {
    let dir = Dir::new();
    fs::write(dir.path("nothing.py"), "x = 1\n").unwrap();
    fs::write(dir.path("wrong.py"), "import nothing_of_the_kind\n").unwrap();
    fs::write(dir.path("text.so"), "no library").unwrap();
    let cpp = dir.path("cpp.so");
    let source = "extern \"C\" void getMessageHandlers() {}\n";
    fs::write(dir.path("cpp.cpp"), source).unwrap();
    crate::harness::tool(
        "c++",
        &["-shared", "-fPIC", "-o", cpp.to_str().unwrap(), dir.path("cpp.cpp").to_str().unwrap()],
    );
    for (file, said) in [
        (dir.path("nothing.py"), "it has no class Handler"),
        (dir.path("wrong.py"), "nothing_of_the_kind"),
        (dir.path("text.so"), "text.so"),
        (cpp, "is a handler of omniprobe's for C++"),
        (program("other_handler.so"), "it is for version 7 of rpd_handler.h, and this rpd has version 1"),
        (
            program("next_exit"),
            "it has no function rpd_handler_version: rpd_handler.h says what a handler has",
        ),
    ] {
        let mut rpd = command(rpd());
        rpd.args(["probe", "-i", "-a", file.to_str().unwrap(), "--", "true"]).current_dir(dir.path(""));
        let output = rpd.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(said) && stderr.contains("cannot be used"), "{stderr}");
    }
}

/// The device functions of AMD's dh_comms itself, with sub-buffers for one message and for all.
#[test]
#[ignore = "needs RPD_DH_COMMS, the directory of a checkout of AMD's dh_comms"]
fn the_device_functions_of_dh_comms() {
    let program = dh_comms_program(&std::env::var("RPD_DH_COMMS").unwrap());
    for kb in ["1", "64"] {
        let dir = Dir::new();
        let run = Run::new(&dir, &program).recorded(Loading::Preload).env("LOGDUR_INSTRUMENTED", "true");
        let run = run.env("RPDT_PROBE_SUB_BUFFERS", "3").env("RPDT_PROBE_SUB_BUFFER_KB", kb);
        let trace = dir.succeeded(&run.run());
        const BLOCKS: i64 = 40;
        let whole = "select count(*), sum(messages) from ext_instrumentation where incomplete + dropped = 0 and op_id <> ''
            and reason = '40 messages are of a kind that no analyzer knows; MessageLogger has them'";
        let whole: Vec<(i64, i64)> = pairs(&trace, whole);
        assert_eq!(whole, [(3 * ANALYZERS, 3 * ANALYZERS * 6 * BLOCKS)]);
        // Every other lane reads 4 bytes from a cache line of its own, and writes them to every other word.
        let accesses = "select distinct line || ' ' || column || ' ' || accessKind || ' ' || space || ' ' || size || ' ' || accesses
            || ' ' || linesNeeded || ' ' || linesUsed from ext_memoryaccess order by 1";
        let expected = [
            format!("13 5 read global 4 {BLOCKS} {} {}", 2 * BLOCKS, 32 * BLOCKS),
            format!("14 5 write global 4 {BLOCKS} {} {}", 2 * BLOCKS, 4 * BLOCKS),
        ];
        assert_eq!(trace.texts(accesses), expected);
        let blocks = "select distinct block || ' ' || count || ' ' || branchiness from ext_basicblock where cu = -1 order by 1";
        assert_eq!(trace.texts(blocks), [format!("0 {BLOCKS} 0.0"), format!("1 {BLOCKS} 0.5")]);
        assert_eq!(trace.number("select sum(count) from ext_timeinterval"), 3 * BLOCKS);
    }
}
