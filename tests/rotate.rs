//! RPDT_ROTATE: a recording in parts, which merged are what one file would have had.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use crate::harness::{Dir, Expected, Loading, Ran, Run, Trace, program, rpd, tool};
use crate::hazards::hazard;
use crate::links::check_links;

/// Bytes at which a part of most tests is over.
const SIZE: u64 = 1_000_000;
/// How much more a part may have: what is recorded from one commit to the next.
const COMMIT: u64 = 8_000_000;

/// `program` in parts of [`SIZE`], with many commits.
fn rotated<'a>(dir: &'a Dir, program: std::path::PathBuf) -> Run<'a> {
    let run = Run::new(dir, program).recorded(Loading::Preload);
    run.env("RPDT_ROTATE", format!("{SIZE}B")).env("RPDT_AUTOFLUSH", "100")
}

/// `rpd` with these arguments, in the directory.
fn run(dir: &Dir, arguments: &[&str]) -> Ran {
    arguments.iter().fold(Run::new(dir, rpd()), |run, argument| run.arg(*argument)).run()
}

/// The names of the parts in their order; they have all numbers.
fn parts(dir: &Dir) -> Vec<String> {
    let names = dir.names();
    let mut parts = vec!["trace.rpd".to_string()];
    let next = |number: usize| format!("trace-{number}.rpd");
    while names.contains(&next(parts.len() + 1)) {
        parts.push(next(parts.len() + 1));
    }
    let is_part = |name: &&String| name.starts_with("trace") && name.ends_with(".rpd");
    assert_eq!(names.iter().filter(is_part).count(), parts.len(), "{names:?}");
    parts
}

/// Each part is sound by itself, and says which part it is. Merged, in whatever order they are named.
#[track_caller]
fn merged(dir: &Dir) -> Trace {
    let parts = parts(dir);
    for (place, part) in parts.iter().enumerate() {
        let trace = dir.trace(part);
        trace.check_integrity();
        let numbers: BTreeSet<String> = trace.metadata("session::%::part").into_values().collect();
        assert_eq!(numbers, BTreeSet::from([(place + 1).to_string()]), "{part}");
        let checked = run(dir, &["check", part]);
        checked.expect(0);
        assert!(checked.stdout.contains("0 errors, 0 warnings, 0 notes"), "{part}{checked}");
    }
    if parts.len() > 1 {
        let names: Vec<&str> = parts.iter().rev().map(String::as_str).collect();
        run(dir, &[&["merge", "-o", "all.rpd"], &names[..]].concat()).expect(0);
        run(dir, &["check", "all.rpd"]).expect(0);
    } else {
        fs::copy(dir.path("trace.rpd"), dir.path("all.rpd")).unwrap();
    }
    let all = dir.trace("all.rpd");
    all.check_integrity();
    assert!(all.lost().is_empty(), "{:?}", all.lost());
    all
}

/// No part but the last is smaller than it may be, and none is much larger.
#[track_caller]
fn check_sizes(dir: &Dir) {
    let parts = parts(dir);
    let sizes: Vec<u64> = parts.iter().map(|part| dir.path(part).metadata().unwrap().len()).collect();
    assert!(sizes[..sizes.len() - 1].iter().all(|size| *size >= SIZE), "{sizes:?}");
    assert!(sizes.iter().all(|size| *size < SIZE + COMMIT), "{sizes:?}");
}

/// Calls that stand in for calls of earlier parts, over all parts.
fn stand_ins(dir: &Dir, all: &Trace) -> i64 {
    let calls = |trace: &Trace| trace.number("select count(*) from rocpd_api");
    parts(dir).iter().map(|part| calls(&dir.trace(part))).sum::<i64>() - calls(all)
}

/// What the sessions say that they have is what is there, and no launch lacks its operation.
#[track_caller]
fn check_counts(all: &Trace) {
    let sum = |fact: &str| -> i64 {
        let facts = all.metadata(&format!("session::%::{fact}"));
        facts.into_values().map(|count| count.parse::<i64>().unwrap()).sum()
    };
    let of_type = "select count(*) from op where opType";
    let kernels = all.number(&format!("{of_type} = 'KernelExecution'"));
    assert_eq!(sum("recorded::kernel"), kernels);
    assert_eq!(sum("recorded::copy"), all.number(&format!("{of_type} like 'Copy%'")));
    let markers = all.number("select count(*) from rocpd_api where id & 0xffffffff >= 2147483648");
    assert_eq!(sum("recorded::range") + sum("recorded::mark"), markers);
    let info = tool(rpd().to_str().unwrap(), &["info".as_ref(), "--json".as_ref(), all.path.as_os_str()]);
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["launches_without_op"], 0);
}

#[test]
fn kernels_and_calls_over_many_parts() {
    for loading in Loading::BOTH {
        let dir = Dir::new();
        let ran = rotated(&dir, program("streams")).gpus(2).recorded(loading).run();
        ran.expect(0).expect_silent();
        let all = merged(&dir);
        assert!(parts(&dir).len() > 1, "{:?}", dir.names());
        check_sizes(&dir);
        let expected = Expected::of(&dir.logs()[0].1);
        assert_eq!(expected.kernels(), 8000);
        expected.assert_equals(&all);
        check_links(&all, ran.pid);
        check_counts(&all);
        assert_eq!(all.number("select count(*) from api where apiName like 'hsa%'"), 0);
    }
}

#[test]
fn copies_over_parts() {
    let dir = Dir::new();
    let ran = rotated(&dir, program("copies")).gpus(2).run();
    ran.expect(0).expect_silent();
    let all = merged(&dir);
    Expected::of(&dir.logs()[0].1).assert_equals(&all);
    check_links(&all, ran.pid);
}

/// The kernel completes many parts behind the one that has its call.
#[test]
fn a_kernel_that_goes_on_over_many_parts() {
    let dir = Dir::new();
    let ran = rotated(&dir, program("held")).arg("trace-6.rpd").run();
    ran.expect(0).expect_silent();
    let all = merged(&dir);
    assert!(parts(&dir).len() > 5, "{:?}", dir.names());
    assert!(stand_ins(&dir, &all) > 0, "nothing was under way at the end of a part");
    Expected::of(&dir.logs()[0].1).assert_equals(&all);
    check_links(&all, ran.pid);
    check_counts(&all);
    // By itself, the part that has the kernel shows a call of its thread in the launch's place.
    let long = "select apiName from api join rocpd_api_ops on api_id = api.id join op on op.id = op_id \
        where description like 'held_kernel%'";
    assert_eq!(all.texts(long), ["hipLaunchKernel"]);
    let alone: Vec<String> = parts(&dir).iter().flat_map(|part| dir.trace(part).texts(long)).collect();
    assert_eq!(alone, ["hsaDispatch"]);
    // Parts that are merged without the one that has the call keep what stands in for it.
    let parts = parts(&dir);
    let rest: Vec<&str> = parts[1..].iter().map(String::as_str).collect();
    run(&dir, &[&["merge", "-o", "rest.rpd"], &rest[..]].concat()).expect(0);
    let rest = dir.trace("rest.rpd");
    rest.check_integrity();
    assert_eq!(rest.texts(long), ["hsaDispatch"]);
    // A merged part merges as those it was made of.
    run(&dir, &["merge", "-o", "again.rpd", "rest.rpd", "trace.rpd"]).expect(0);
    let again = dir.trace("again.rpd");
    assert_eq!(again.texts(long), ["hipLaunchKernel"]);
    check_links(&again, ran.pid);
}

/// How often each mark is there.
fn marks(all: &Trace) -> BTreeMap<String, i64> {
    crate::hazards::markers(all)
}

/// Marks of `processes` times `threads` threads of the storm, `count` of each, once each.
#[track_caller]
fn check_storm(all: &Trace, processes: usize, threads: usize, count: usize) {
    let marks = marks(all);
    assert_eq!(marks.len(), processes * threads * count);
    assert!(marks.values().all(|times| *times == 1));
    assert_eq!(all.metadata("session::%::end_monotonic_ns").len(), all.session_count());
}

#[test]
fn markers_without_a_gpu() {
    let dir = Dir::new();
    let ran = rotated(&dir, hazard("storm")).arg("2").arg("20000").arg("1000").run();
    ran.expect(0).expect_silent();
    let all = merged(&dir);
    // How many depends on how much the writer finds at a time.
    let count = parts(&dir).len();
    assert!(count > 1, "{:?}", dir.names());
    check_sizes(&dir);
    check_storm(&all, 1, 2, 20_000);
    check_counts(&all);
    // Each part says what came before and comes behind.
    let fact = |part: &str, key: &str| dir.trace(part).metadata(&format!("session::0::{key}"));
    assert_eq!(fact("trace.rpd", "next_part").into_values().collect::<Vec<_>>(), ["trace-2.rpd"]);
    assert_eq!(fact("trace-2.rpd", "part_before").into_values().collect::<Vec<_>>(), ["trace.rpd"]);
    assert!(fact("trace.rpd", "part_before").is_empty());
    let info = run(&dir, &["info", "trace-2.rpd"]);
    let goes_on = if count > 2 { ", goes on in trace-3.rpd" } else { "" };
    assert!(info.stdout.contains(&format!("part 2, from trace.rpd{goes_on}\n")), "{info}");
}

#[test]
fn parts_of_a_second() {
    let dir = Dir::new();
    let run = rotated(&dir, hazard("storm")).arg("1").arg("30000").arg("10000").env("RPDT_ROTATE", "1s");
    run.run().expect(0).expect_silent();
    let all = merged(&dir);
    let count = parts(&dir).len();
    // 300 pauses of 10 ms.
    assert!(count >= 3, "{:?}", dir.names());
    check_storm(&all, 1, 1, 30_000);
    for part in &parts(&dir)[..count - 1] {
        let span = dir.trace(part).number("select max(end) - min(start) from rocpd_api");
        assert!(span < 1_500_000_000, "{part} has {span} ns");
    }
}

#[test]
fn several_processes_go_from_part_to_part() {
    let dir = Dir::new();
    let runs: Vec<_> =
        (0..4).map(|_| rotated(&dir, hazard("storm")).arg("1").arg("20000").arg("2000")).collect();
    for running in Run::start_all(&runs) {
        running.finish().expect(0).expect_silent();
    }
    let all = merged(&dir);
    assert!(parts(&dir).len() > 1, "{:?}", dir.names());
    check_sizes(&dir);
    check_storm(&all, 4, 1, 20_000);
    let starts: BTreeSet<String> = all.metadata("session::%::start_monotonic_ns").into_values().collect();
    assert_eq!(starts.len(), 4);

    // One that comes later goes on where they were.
    let before = parts(&dir).len();
    let last = dir.trace(&parts(&dir)[before - 1]).session_count();
    rotated(&dir, hazard("storm")).arg("1").arg("10").run().expect(0).expect_silent();
    let after = parts(&dir);
    assert!(
        after.len() == before && dir.trace(&after[before - 1]).session_count() == last + 1
            || after.len() == before + 1
    );
    assert_eq!(dir.trace("trace.rpd").metadata("session::%::pid").values().collect::<BTreeSet<_>>().len(), 4);
}

/// Children of a fork go on in the part that is written then, and their parent too.
#[test]
fn forks_between_parts() {
    let dir = Dir::new();
    let marks_of = |letters: &[char]| {
        let mark = |letter: &char| [format!("mark={}", letter.to_string().repeat(50_000)), "flush".into()];
        letters.iter().flat_map(mark).collect::<Vec<String>>()
    };
    let letters: Vec<char> = ('A'..='R').chain('a'..='r').collect();
    let (before, after) = letters.split_at(18);
    let acts = [marks_of(before), vec!["fork".to_string()], marks_of(after)].concat();
    let run = acts.into_iter().fold(rotated(&dir, program("control")), Run::arg);
    run.run().expect(0).expect_silent();
    let all = merged(&dir);
    assert!(parts(&dir).len() > 1, "{:?}", dir.names());
    let marks = marks(&all);
    assert_eq!(marks.len(), 36);
    for (text, times) in marks {
        assert_eq!(times, if text.starts_with(|letter: char| letter.is_ascii_uppercase()) { 1 } else { 2 });
    }
}

/// What is killed on its way from part to part leaves parts that are sound, and all that it had committed.
#[test]
fn killed_at_any_moment_between_parts() {
    for round in 0..20_u64 {
        let dir = Dir::new();
        let running = rotated(&dir, hazard("storm")).arg("2").arg("1000000").arg("500").start();
        dir.wait_for_rows("trace-2.rpd", "select count(*) from rocpd_metadata", 1);
        let random = (round + 1).wrapping_mul(2_654_435_761) ^ u64::from(std::process::id());
        std::thread::sleep(Duration::from_micros(random % 300_000));
        let count = |part: &String| {
            Trace::count_so_far(&dir.path(part), "select count(*) from api where apiName = 'UserMarker'")
        };
        let before: i64 = parts(&dir).iter().map(count).sum();
        running.signal(libc::SIGKILL);
        running.finish().expect_signal(libc::SIGKILL).expect_silent();
        let mut marks = BTreeMap::<String, BTreeSet<usize>>::new();
        let (mut there, mut open) = (0, 0);
        for part in parts(&dir) {
            // The next part may have been opened and not been made.
            if dir.path(&part).metadata().unwrap().len() == 0 {
                continue;
            }
            // Who may write rolls back what was half done: of a part that was being made nothing stays.
            let info = run(&dir, &["info", &part]);
            if dir.path(&part).metadata().unwrap().len() == 0 {
                assert!(info.expect(1).stderr.contains("the file is empty"), "{info}");
                continue;
            }
            info.expect(0);
            let trace = dir.trace(&part);
            trace.check_integrity();
            for text in trace.texts("select args from api where apiName = 'UserMarker'") {
                let (thread, number) = text.rsplit_once(' ').unwrap();
                let is_new = marks.entry(thread.into()).or_default().insert(number.parse().unwrap());
                assert!(is_new, "{text} is there twice");
                there += 1;
            }
            let ends = trace.metadata("session::%::end_monotonic_ns").len();
            open += trace.metadata("session::%::pid").len() - ends;
        }
        assert!(there >= before, "{there} marks, {before} could be read before");
        assert!(open >= 1, "no session says that the process was killed");
        for (thread, numbers) in marks {
            assert!(numbers.iter().copied().eq(0..numbers.len()), "a gap in the marks of {thread}");
        }
    }
}

/// The place of the next part is taken: recording goes on, with one line, and goes there when the place is free.
#[test]
fn a_next_part_that_cannot_be_made() {
    let dir = Dir::new();
    fs::create_dir(dir.path("trace-2.rpd")).unwrap();
    let mut running = rotated(&dir, hazard("storm")).arg("1").arg("80000").arg("10000").start();
    running.wait_for_error("recording goes on in ");
    fs::remove_dir(dir.path("trace-2.rpd")).unwrap();
    let ran = running.finish();
    ran.expect(0);
    assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
    assert!(ran.stderr.contains("trace-2.rpd") && ran.stderr.contains("trace.rpd for now"), "{ran}");
    check_storm(&merged(&dir), 1, 1, 80_000);
    assert!(parts(&dir).len() > 1, "{:?}", dir.names());
}

#[test]
fn rpd_record_counts_all_parts_and_replaces_them() {
    let dir = Dir::new();
    let record = |options: &[&str]| {
        let storm = hazard("storm");
        let command =
            ["--rotate", "1MB", "-o", "trace.rpd", "--", storm.to_str().unwrap(), "2", "20000", "1000"];
        let arguments = [&["record"], options, &command].concat();
        let run = arguments.iter().fold(Run::new(&dir, rpd()), |run, argument| run.arg(*argument));
        run.env("RPDT_AUTOFLUSH", "100").run()
    };
    let ran = record(&[]);
    ran.expect(0);
    let count = parts(&dir).len();
    // A writer that is late has more in one part.
    let more = match count {
        0 | 1 => panic!("{:?}", dir.names()),
        2 => "1 more part".to_string(),
        _ => format!("{} more parts", count - 1),
    };
    let line = format!("rpd: trace.rpd and {more}: 0 kernels, 0 copies, 40000 markers, 0 records lost");
    assert!(ran.stderr.lines().last().unwrap().starts_with(&line), "{line}{ran}");
    check_storm(&merged(&dir), 1, 2, 20_000);

    // Parts are recordings like any other.
    let names = dir.names();
    fs::rename(dir.path("trace.rpd"), dir.path("moved.rpd")).unwrap();
    let refused = record(&[]);
    assert!(refused.expect(1).stderr.contains("trace-2.rpd already holds a recording"), "{refused}");
    fs::rename(dir.path("moved.rpd"), dir.path("trace.rpd")).unwrap();
    record(&[]).expect(1);
    assert_eq!(dir.names(), names);

    // What follows goes into the last part, and then into more.
    fs::remove_file(dir.path("all.rpd")).unwrap();
    record(&["--append"]).expect(0);
    assert!(parts(&dir).len() > count, "{:?}", dir.names());
    check_storm(&merged(&dir), 2, 2, 20_000);

    // All old parts go.
    fs::remove_file(dir.path("all.rpd")).unwrap();
    fs::copy(dir.path("trace.rpd"), dir.path("trace-99.rpd")).unwrap();
    record(&["--force"]).expect(0);
    assert!(!dir.path("trace-99.rpd").exists());
    check_storm(&merged(&dir), 1, 2, 20_000);
}

#[test]
fn a_wrong_value_is_one_line() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("control")).arg("mark=x").recorded(Loading::Preload);
    let ran = run.env("RPDT_ROTATE", "10").run();
    ran.expect(0);
    assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
    assert!(ran.stderr.contains("RPDT_ROTATE=10 is neither a size"), "{ran}");
    assert_eq!(dir.names(), ["trace.rpd"]);
}
