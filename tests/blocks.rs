//! Basic blocks that the program's own kernels are made to count: right results, and counts that are those of the interpreter.

mod executed;
mod persistent;
mod refused;

use std::collections::BTreeMap;

use rpd_simgpu::counts;

use crate::harness::{
    Dir, HeldThread, Loading, Ran, Run, Trace, aql_code_object, loader, not_tested, program, recorder, rpd,
};
use crate::probe::code_with;
use crate::remote::ask;

/// The kernels of blocks.hip.
const KERNELS: [&str; 9] =
    ["straight", "collatz", "choose", "reduce", "calls", "pointers", "scratch", "large", "nothing"];
/// A kernel that has a block for each number of turns, and its waves in each dispatch.
const WAVES: i64 = 9;

/// Waves and active lanes, by kernel and address in the code object.
type Truth = BTreeMap<(String, i64), (i64, i64)>;

fn counted<'a>(dir: &'a Dir, what: &str) -> Run<'a> {
    Run::new(dir, program("blocks")).recorded(Loading::Preload).gpus(2).env("RPDT_COUNT_BLOCKS", what)
}

fn with<'a>(run: Run<'a>, arguments: &[&str]) -> Run<'a> {
    arguments.iter().fold(run, |run, argument| run.arg(*argument))
}

/// How often each instruction is executed by kernels that count nothing: by kernel and address in the code object, waves, and
/// active lanes.
fn truth(dir: &Dir, arguments: &[&str]) -> (Truth, Ran) {
    let run = Run::new(dir, program("blocks"))
        .recorded(Loading::Preload)
        .gpus(2)
        .env("SIMGPU_COUNTS", dir.path("counts"));
    let run = run.env("RPDT_SAVE_CODE", dir.path("code")).env("RPDT_FILENAME", "plain.rpd");
    let ran = with(run, arguments).run();
    ran.expect(0).expect_silent();
    let mut executed = Truth::new();
    for kernel in counts::read(dir.path("counts"), ran.pid).unwrap() {
        if !KERNELS.contains(&kernel.name.as_str()) {
            continue;
        }
        let (_, descriptor) = code_with(dir, &format!("{}.kd", kernel.name));
        for (pc, _, lanes, executions) in &kernel.instructions {
            let place = (kernel.name.clone(), (pc - kernel.object + descriptor) as i64);
            let sum = executed.entry(place).or_default();
            *sum = (sum.0 + *executions as i64, sum.1 + *lanes as i64);
        }
    }
    (executed, ran)
}

/// Kernel, address, waves, lanes, ticks.
type Counted = (String, i64, i64, Option<i64>, Option<i64>);

/// The blocks of a trace.
fn blocks(trace: &Trace) -> Vec<Counted> {
    let sql = "select S.string, B.offset, sum(C.waves), sum(C.lanes), sum(C.ticks) from ext_blockcount C
        join ext_block B on B.id = C.block_id join ext_instrumentation I on I.id = C.instrumentation_id
        join rocpd_string S on S.id = I.kernelName_id group by 1, 2";
    trace.rows(sql, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))
}

/// Its counters are never at rest until the program ends.
#[test]
fn a_kernel_that_is_always_in_flight_is_read_meanwhile() {
    let dir = Dir::new();
    let config = "[[kernel]]\nmatch = \"collatz\"\nns = 20000000\n";
    let mut running = counted(&dir, "count").gpus(1).config(config).arg("busy=100000").start();
    let counted = "select coalesce(sum(dispatches), 0) from ext_blockcount C join ext_block B on B.id = block_id where number = 0";
    dir.wait_for_rows("trace.rpd", counted, 5);
    assert!(running.is_alive());
    running.signal(libc::SIGKILL);
    running.finish().expect_signal(libc::SIGKILL);
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let (dispatches, waves) = (
        trace.number(counted),
        "select max(waves) from (select sum(waves) as waves from ext_blockcount C join ext_block B on B.id = block_id where number = 0)",
    );
    assert_eq!(trace.number(waves), dispatches * WAVES);
}

/// What a stop waits for is counted when it answers, though the counters are seldom at rest.
#[test]
fn a_stop_reads_the_counters() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("blocks")).preload(&[recorder(), loader()]).gpus(1).arg("busy=1000000");
    let running = run.env("RPDT_COUNT_BLOCKS", "count").start();
    let all = "select count(*) from ext_instrumentation";
    let mut before = 0;
    for round in 0..3 {
        dir.wait_for_rows("trace.rpd", all, before + 20);
        ask("stop", &["--wait", "--drain", "60s"], &running).done();
        let trace = dir.trace("trace.rpd");
        let counts = trace.number("select sum(dispatches) from ext_blockcount C join ext_block B on B.id = block_id where number = 0");
        before = trace.number(all);
        assert_eq!(counts, before, "round {round}");
        ask("start", &["--wait"], &running).done();
    }
    running.signal(libc::SIGKILL);
    running.finish().expect_signal(libc::SIGKILL);
}

/// The assembler gives each instruction the line that it is on.
#[test]
fn blocks_have_the_lines_of_their_source() {
    let dir = Dir::new();
    let turns = "s_movk_i32 s4, 3\nturn: s_sub_u32 s4, s4, 1\ns_cmp_lg_u32 s4, 0\ns_cbranch_scc1 turn";
    let module = refused::module(&dir, 16, turns, "");
    counted(&dir, "count").gpus(1).arg(&module).run().expect(0).expect_silent();
    let source = std::fs::read_to_string(dir.path("kernel.s")).unwrap();
    let line = |text: &str| source.lines().position(|line| line.contains(text)).unwrap() as i64 + 1;
    let trace = dir.trace("trace.rpd");
    let sql = "select file, line, sum(waves) from ext_block B join ext_blockcount C on C.block_id = B.id group by offset order by offset";
    let blocks =
        trace.rows(sql, |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)));
    let (lines, waves): (Vec<i64>, Vec<i64>) = blocks.iter().map(|(_, line, waves)| (*line, *waves)).unzip();
    assert_eq!(lines, ["s_load_dwordx2", "s_sub_u32", "s_endpgm"].map(line), "{source}");
    assert!(blocks.iter().all(|(file, ..)| std::path::Path::new(file) == dir.path("kernel.s")), "{blocks:?}");
    assert_eq!((waves[1], waves[2]), (3 * waves[0], waves[0]));
    assert!(waves[0] > 0);
}

/// All kinds of control flow, on two GPUs, in each variant.
#[test]
fn counts_are_the_interpreters_own() {
    let dir = Dir::new();
    let (executed, plain) = truth(&dir, &KERNELS);
    for what in ["count", "lanes", "time"] {
        let ran = with(counted(&dir, what).env("RPDT_FILENAME", format!("{what}.rpd")), &KERNELS).run();
        ran.expect(0).expect_silent();
        assert_eq!(ran.stdout, plain.stdout);
        let trace = dir.trace(&format!("{what}.rpd"));
        let found = blocks(&trace);
        for (kernel, offset, waves, lanes, ticks) in &found {
            let truth = executed.get(&(kernel.clone(), *offset)).copied().unwrap_or_default();
            assert_eq!(*waves, truth.0, "{what} {kernel} {offset:#x}");
            assert_eq!(*lanes, (what == "lanes").then_some(truth.1), "{what} {kernel} {offset:#x}");
            assert_eq!(ticks.is_some(), what == "time");
            assert!(ticks.is_none_or(|ticks| (ticks > 0) == (*waves > 0)), "{kernel} {offset:#x} {ticks:?}");
        }
        for kernel in KERNELS {
            let first = found.iter().filter(|block| block.0 == kernel).map(|block| block.2).max().unwrap();
            assert!(first >= 2 * WAVES, "{kernel}: {first}");
        }
        let is_counted = |(kernel, offset): &&(String, i64)| {
            let sql = format!(
                "select count(*) from ext_block B join ext_instrumentation I join rocpd_string S on S.id = I.kernelName_id
                 join ext_blockcount C on C.block_id = B.id and C.instrumentation_id = I.id
                 where S.string = '{kernel}' and {offset} >= offset and {offset} < offset + size"
            );
            trace.number(&sql) > 0
        };
        let uncounted: Vec<_> = executed.keys().filter(|place| !is_counted(place)).collect();
        assert!(uncounted.is_empty(), "{uncounted:?}");
        assert_eq!(
            trace.number(
                "select count(*) from ext_instrumentation where op_id is null or analyzer <> 'blocks'"
            ),
            0
        );
        assert_eq!(
            trace.number("select count(distinct op_id) from ext_instrumentation"),
            2 * KERNELS.len() as i64
        );
    }
}

/// Of many dispatches in flight each counts, and the last of so many where that was asked for.
#[test]
fn sums_are_of_whole_dispatches() {
    let dir = Dir::new();
    let waves = |trace: &Trace| -> i64 {
        trace.number(
            "select max(waves) from (select sum(waves) as waves from ext_blockcount group by block_id)",
        )
    };
    let run = |dispatches: &str| {
        counted(&dir, "count").gpus(1).env("LOGDUR_DISPATCHES", dispatches).arg("straight=500")
    };
    let all = dir.succeeded(&run("all").run());
    assert_eq!(all.number("select count(distinct op_id) from ext_instrumentation"), 500);
    assert_eq!((waves(&all), all.number("select sum(dispatches) from ext_blockcount where block_id & 65535 = (select min(block_id & 65535) from ext_blockcount)")), (500 * WAVES, 500));
    std::fs::remove_file(dir.path("trace.rpd")).unwrap();
    let some = dir.succeeded(&run("1/10").run());
    assert_eq!(some.number("select count(distinct op_id) from ext_instrumentation"), 50);
    assert_eq!(waves(&some), 50 * WAVES);
    let neighbours = "select instrumented * 9 = plain from instrumentationCost";
    assert_eq!(some.number(neighbours), 1);
}

/// Kernels that the user does not mean run as they are.
#[test]
fn only_the_kernels_that_are_meant() {
    let dir = Dir::new();
    let ran = with(counted(&dir, "count").env("LOGDUR_FILTER", "^ch"), &["choose", "collatz"]).run();
    let trace = dir.succeeded(&ran);
    let names = "select group_concat(distinct S.string) from ext_instrumentation I join rocpd_string S on S.id = I.kernelName_id";
    assert_eq!(trace.texts(names), ["choose"]);
}

#[test]
fn words_that_are_none() {
    let dir = Dir::new();
    let ran = counted(&dir, "everything").arg("straight").run();
    ran.expect(0);
    assert!(ran.stderr.contains("RPDT_COUNT_BLOCKS=everything is not count, lanes or time"), "{ran}");
    std::fs::remove_file(dir.path("trace.rpd")).unwrap();
    let ran = counted(&dir, "count").env("LOGDUR_INSTRUMENTED", "true").arg("straight").run();
    ran.expect(0);
    assert!(
        ran.stderr.contains("RPDT_COUNT_BLOCKS: blocks are not counted where other kernels run"),
        "{ran}"
    );
}

/// The commands.
#[test]
fn rpd_probe_and_rpd_blocks() {
    let dir = Dir::new();
    let run =
        Run::new(&dir, rpd()).arg("probe").arg("--auto=lanes").arg("-l").arg("log").arg("-o").arg("t.rpd");
    let run = run.arg("--").arg(program("blocks")).arg("calls");
    run.run().expect(0);
    let shown = Run::new(&dir, rpd()).arg("blocks").arg("t.rpd").arg("calls").run();
    shown.expect(0);
    for word in ["calls", "1 dispatch counted", "VALU", "twice(int)", "deep(int, int)"] {
        assert!(shown.stdout.contains(word), "{word}: {shown}");
    }
}

/// Numbers of the dispatches of `straight` that counted, of so many, with these options of `rpd probe --auto`; the file's counts are of these alone.
#[track_caller]
fn chosen(options: &[&str], launches: i64) -> Vec<i64> {
    let dir = Dir::new();
    let run = with(Run::new(&dir, rpd()), &["probe", "--auto=count", "-k", "^straight$", "-o", "t.rpd"]);
    let ran = with(run, options).arg("--").arg(program("blocks")).arg(format!("straight={launches}")).run();
    ran.expect(0);
    let trace = dir.trace("t.rpd");
    trace.check_integrity();
    let all = "select number from (select id, row_number() over (order by sequenceId) - 1 as number from op
        where description = 'straight') O";
    assert_eq!(trace.number(&format!("select count(*) from ({all})")), launches);
    if !trace.has_table("ext_instrumentation") {
        return Vec::new();
    }
    let counted = format!(
        "{all} where exists (select 1 from ext_instrumentation I where I.op_id = O.id and I.analyzer = 'blocks') order by 1"
    );
    let numbers: Vec<i64> = trace.rows(&counted, |row| row.get(0));
    let count = numbers.len() as i64;
    let sums: (i64, i64) = (
        trace.number(&format!("select sum(dispatches) from ext_blockcount where {FIRST_BLOCK}")),
        trace.number(&format!("select sum(waves) from ext_blockcount where {FIRST_BLOCK}")),
    );
    assert_eq!(sums, (count, count * WAVES), "{options:?}");
    let cost = "select instrumented || ' ' || plain from instrumentationCost";
    assert_eq!(trace.texts(cost), [format!("{count} {}", launches - count)], "{options:?}");
    numbers
}

/// Rows of ext_blockcount of the first block of the only kernel.
const FIRST_BLOCK: &str = "block_id = (select id from ext_block order by number limit 1)";

/// Which dispatches count is what `-d` says, and the file has which ones those were.
#[test]
fn the_dispatches_that_are_chosen() {
    assert_eq!(chosen(&["-d", "all"], 20), (0..20).collect::<Vec<_>>());
    assert_eq!(chosen(&["-d", "1"], 20), [0]);
    assert_eq!(chosen(&["-d", "1/7"], 40), [6, 13, 20, 27, 34]);
    // One in a hundred, the same ones with the same seed.
    let of_seeds = ["0", "1", "2"].map(|seed| chosen(&["-d", "random", "--seed", seed], 1000));
    assert_eq!(chosen(&["-d", "random"], 1000), of_seeds[0], "the seed is 0 without one");
    assert_eq!(chosen(&["-d", "random", "--seed", "2"], 1000), of_seeds[2]);
    assert!(of_seeds[0] != of_seeds[1] && of_seeds[1] != of_seeds[2], "{of_seeds:?}");
    let count: usize = of_seeds.iter().map(Vec::len).sum();
    assert!(of_seeds.iter().all(|chosen| !chosen.is_empty()) && (10..=60).contains(&count), "{of_seeds:?}");
}

/// Sums over the file of the first block of `collatz`: dispatches that were counted, and waves that entered it.
fn counted_collatz(trace: &Trace) -> (i64, i64) {
    let sum = |of: &str| {
        trace.number(&format!(
            "select coalesce(sum(C.{of}), 0) from ext_blockcount C join ext_block B on B.id = C.block_id
             where B.functionName = 'collatz' and B.number = (select min(number) from ext_block where functionName = 'collatz')"
        ))
    };
    (sum("dispatches"), sum("waves"))
}

/// What the recorder says before the number of dispatches of collatz that came before it was rewritten.
const EARLY: &str =
    "(the program): dispatches of collatz that came before it was rewritten were not counted: ";

/// Without waiting, each dispatch is counted, or among those of which the recorder says that they came before the kernel was rewritten.
#[test]
fn kernels_that_nobody_waits_for() {
    let dir = Dir::new();
    let arguments = ["probe", "--auto", "--no-wait", "-k", "^collatz$", "-o", "t.rpd", "--"];
    let run = with(Run::new(&dir, rpd()), &arguments).arg(program("blocks"));
    let ran = with(run, &["collatz=30", "pause=10", "collatz=30"]).run();
    ran.expect(0);
    let early = ran.stderr.lines().find_map(|line| line.split_once(EARLY)).map(|(_, count)| count);
    let early: i64 = early.map_or(0, |number| number.parse().unwrap());
    let (dispatches, waves) = counted_collatz(&dir.trace("t.rpd"));
    assert_eq!((dispatches + early, waves), (60, dispatches * WAVES), "{ran}");
    assert!(dispatches >= 30, "those after the pause: {ran}");
}

/// The same for kernels that are gone, or whose program ends, before they were rewritten.
#[test]
fn kernels_that_are_gone_before_they_are_rewritten() {
    let dir = Dir::new();
    let module = format!("module={}", aql_code_object("gfx900").display());
    let run = with(counted(&dir, "count,no-wait"), &["collatz", "pause=10", &module, "pause=10"]);
    let running = run.start();
    let held = HeldThread::of(&running, "rpd-candidates");
    dir.wait_for_rows("trace.rpd", "select count(*) from op where description = 'aql_count'", 3);
    drop(held);
    let ran = running.finish();
    ran.expect(0);
    let said = "dispatches of aql_count that came before it was rewritten were not counted: 1";
    assert_eq!(ran.stderr.matches(said).count(), 1, "{ran}");
    let sql = format!("select count(*) from ext_candidate where reason = '{said}'");
    assert_eq!(dir.trace("trace.rpd").number(&sql), 3, "{ran}");
}

/// What happens to programs: each behaves as without counting, and what was counted is of whole dispatches.
#[test]
fn whatever_the_program_does() {
    let module = format!("module={}", aql_code_object("gfx900").display());
    // Arguments, and dispatches of collatz on both GPUs that have completed and are recorded.
    let moments: [(&[&str], i64); 6] = [
        (&["collatz=5", "graph=20", "collatz"], 2 * 6 + 20),
        (&["collatz", &module, "collatz"], 4),
        (&["collatz", "fork", "collatz=3", "fork", "reduce"], 8),
        (&["collatz=3", "reset", "collatz=2", "reset"], 10),
        (&["collatz=2", "stop", "choose=4", "start", "collatz"], 6),
        (&["stop", "collatz", "fork", "start", "collatz"], 2),
    ];
    for (place, (arguments, expected)) in moments.into_iter().enumerate() {
        let (dir, ran) = as_without_counting(arguments, place);
        ran.expect_silent();
        assert_eq!(counted_collatz(&dir.trace("trace.rpd")), (expected, expected * WAVES), "{arguments:?}");
    }
}

/// Runs the program with and without counting, in the way of that number: it ends alike and has the same output, and the file is whole.
#[track_caller]
fn as_without_counting(arguments: &[&str], way: usize) -> (Dir, Ran) {
    let (dir, without) = (Dir::new(), Dir::new());
    let plain = with(Run::new(&without, program("blocks")).gpus(2), arguments).run();
    let ran = with(counted(&dir, ["count", "lanes", "time"][way % 3]), arguments).run();
    assert_eq!((ran.status, &ran.stdout), (plain.status, &plain.stdout), "{arguments:?}: {ran}");
    dir.trace("trace.rpd").check_integrity();
    (dir, ran)
}

/// The program ends while 300 kernels are in flight: what had completed before is in the file with its counts, and of the others none counts in part. A
/// process that is killed has written what was there a moment earlier.
#[test]
fn however_the_program_ends() {
    const IN_FLIGHT: i64 = 300;
    let ends: [(&str, Option<i32>); 4] =
        [("leave", Some(0)), ("exit", Some(0)), ("quick", Some(0)), ("kill", None)];
    for (place, (how, status)) in ends.into_iter().enumerate() {
        let (dir, ran) = as_without_counting(&["collatz=4", "pause=3", how], place);
        assert_eq!(ran.status.code(), status, "{how}: {ran}");
        let trace = dir.trace("trace.rpd");
        let (dispatches, waves) = counted_collatz(&trace);
        assert_eq!(waves, dispatches * WAVES, "{how}: {ran}");
        assert!((8..=8 + IN_FLIGHT).contains(&dispatches), "{how}: {dispatches} {ran}");
        let ops = trace.number("select count(*) from op where description = 'collatz'");
        let with_counts =
            trace.number("select count(distinct op_id) from ext_instrumentation where reason = ''");
        assert!(with_counts <= ops && ops <= 8 + IN_FLIGHT, "{how}: {with_counts} of {ops} {ran}");
        if how == "kill" {
            ran.expect_silent();
            continue;
        }
        // Each dispatch that is recorded as complete counted, and whoever is missing is said.
        assert_eq!((dispatches, with_counts), (ops, ops), "{how}: {ran}");
        let missing = 8 + IN_FLIGHT - ops;
        let line = format!("{missing} GPU operations had not completed");
        assert_eq!(ran.stderr.lines().count(), usize::from(missing > 0), "{how}: {ran}");
        assert!(missing == 0 || ran.stderr.contains(&line), "{how}: {missing} {ran}");
    }
}

/// The file may not grow any more: that is said, once, and the program has its results. With room everything is there.
#[test]
fn a_file_that_is_full() {
    let without = Dir::new();
    let arguments = ["collatz", "choose=50", "reduce=50"];
    let plain = with(Run::new(&without, program("blocks")), &arguments).run();
    for (size, has_room) in [("100k", false), ("100m", true)] {
        let dir = Dir::new();
        let run = Run::new(&dir, "unshare").arg("--mount").arg("sh").arg("-c");
        let script = format!(
            "mkdir small && mount -t tmpfs -o size={size} none small && {{ LD_PRELOAD=$RECORDER:$LD_PRELOAD RPDT_FILENAME=small/t.rpd \"$@\"
             status=$?; cp small/t.rpd trace.rpd; exit $status; }}"
        );
        let run = run.arg(script).arg("sh").arg(program("blocks")).env("RECORDER", recorder());
        let ran = with(run.env("RPDT_COUNT_BLOCKS", "lanes"), &arguments).run();
        if ran.stderr.contains("unshare") || ran.stderr.contains("mount:") {
            return not_tested(format!("no disk can be mounted: {}", ran.stderr));
        }
        assert_eq!(ran.expect(0).stdout, plain.stdout, "{size}");
        if has_room {
            let trace = dir.succeeded(&ran);
            assert_eq!(trace.number("select count(distinct op_id) from ext_instrumentation"), 101);
            continue;
        }
        let line = "small/t.rpd: no space left on the disk";
        assert!(ran.stderr.contains(line) && ran.stderr.lines().count() == 1, "{ran}");
    }
}

/// Loops and branches, memory and instructions, as `rpd blocks` tells them of a real run.
#[test]
fn what_rpd_blocks_says_of_a_run() {
    let dir = Dir::new();
    let run = Run::new(&dir, rpd()).arg("probe").arg("--auto=lanes").arg("-o").arg("t.rpd");
    let plain = with(Run::new(&dir, program("blocks")), &["straight", "collatz"]).run();
    let ran = with(run.arg("--").arg(program("blocks")), &["straight", "collatz"]).run();
    assert_eq!(
        ran.expect(0).stdout,
        plain.expect(0).stdout,
        "no line of the recorder's is in the program's output"
    );
    assert!(dir.path("t.rpd.code").is_dir());
    let json = Run::new(&dir, rpd()).arg("blocks").arg("--json").arg("--disasm").arg("t.rpd").run();
    let kernels: serde_json::Value = serde_json::from_str(&json.expect(0).expect_silent().stdout).unwrap();
    let of = |name: &str| kernels.as_array().unwrap().iter().find(|kernel| kernel["kernel"] == name).unwrap();
    let (straight, collatz) = (of("straight"), of("collatz"));
    // A number for each work-item is stored, and what a wave needs to know of its launch is loaded.
    let stored = WAVES * 64 * 4;
    for kernel in [straight, collatz] {
        let loaded = kernel["memory_bytes"].as_i64().unwrap() - stored;
        assert!(loaded > 0 && loaded % (WAVES * 4) == 0 && loaded <= WAVES * 64, "{kernel}: {loaded}");
    }
    assert_eq!(straight["flops"], 0);
    // Each wave enters the loop, and stays until the last of its numbers is 1.
    let steps = |mut number: i64| {
        let mut count = 0;
        while number != 1 {
            number = if number % 2 == 1 { 3 * number + 1 } else { number / 2 };
            count += 1;
        }
        count
    };
    let turns: i64 = (0..WAVES).map(|wave| (1..=64).map(|item| steps(wave * 64 + item)).max().unwrap()).sum();
    let rows = collatz["rows"].as_array().unwrap();
    let head = rows.iter().find(|row| row["loop_entries"].is_i64()).expect("a loop");
    assert_eq!(head["loop_entries"], WAVES);
    assert!((turns..=turns + WAVES).contains(&head["waves"].as_i64().unwrap()), "{head} {turns}");
    for row in rows {
        let taken = row["taken"].as_i64().unwrap_or(0);
        assert!((0..=row["waves"].as_i64().unwrap()).contains(&taken), "{row}");
        assert_eq!(row["code"].as_array().unwrap().len() as i64, row["instructions"].as_i64().unwrap());
    }
    assert!(rows.iter().any(|row| row["taken"].as_i64().is_some_and(|taken| taken > 0)));
    // `rpd code`, and with it the page, shows the code that the counts are of, though each dispatch ran the counting kernel.
    let listed =
        Run::new(&dir, rpd()).arg("code").arg("--json").arg("--cfg").arg("--kernel").arg("^collatz$");
    let listed = listed.arg("t.rpd").run();
    let listed: serde_json::Value = serde_json::from_str(&listed.expect(0).expect_silent().stdout).unwrap();
    let blocks: Vec<i64> = listed[0]["blocks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["address"].as_i64().unwrap())
        .collect();
    let of_collatz = rows.iter().filter(|row| row["function"] == "collatz");
    let shared = of_collatz.filter(|row| blocks.contains(&row["offset"].as_i64().unwrap())).count();
    assert!(blocks.len() > 3 && shared == blocks.len(), "{shared} of {blocks:x?}: {rows:?}");
}
