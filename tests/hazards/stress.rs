//! Nothing lost, nothing invented: as much as goes through the machine, against the device's log and the programs' own counts.

use std::time::{Duration, Instant};

use super::{assert_clean, recorded, soak};
use crate::harness::{Dir, Expected, Run, Trace};

/// What one process of each kind does.
struct Load {
    /// Of the program `mixed`: threads per GPU, streams per thread, dispatches and copies per stream, graph launches per thread.
    mixed: [i64; 5],
    /// Of the program `storm`: threads, marks per thread.
    storm: [i64; 2],
}

const SHORT: Load = Load { mixed: [4, 4, 1_563, 63, 25], storm: [8, 62_500] };
/// A million dispatches, 100,000 copies, 10,000 launches of 20 kernels; ten million marks.
const LONG: Load = Load { mixed: [4, 4, 31_250, 3_125, 1_250], storm: [8, 1_250_000] };

const GPUS: i64 = 2;

/// Patience for a machine that does more than this: what is tested is that everything arrives, not when.
fn with_arguments<'a>(run: Run<'a>, arguments: &[i64]) -> Run<'a> {
    let run = run.env("RPDT_WAIT_MS", "600000").timeout(Duration::from_secs(1800));
    arguments.iter().fold(run, |run, argument| run.arg(argument.to_string()))
}

fn mixed<'a>(dir: &'a Dir, load: &Load) -> Run<'a> {
    let run = with_arguments(recorded(dir, "mixed"), &load.mixed).gpus(GPUS as u32).env("RPDT_TICKS", "1");
    // A GPU cannot be made to wait: room for what it does while others have the file.
    let run = run.env("RPDT_BUFFER_MB", "2048");
    run.config("[timing]\nkernel_ns = 200\ngap_ns = 100\n")
}

/// The ops of process `pid` are what its devices did, as many as the program counted.
#[track_caller]
fn equals_log(dir: &Dir, trace: &Trace, pid: u32, load: &Load) {
    let logs = dir.logs();
    let (_, log) = logs.iter().find(|(of, _)| *of == pid).unwrap();
    let expected = Expected::of(log);
    let [threads, streams, dispatches, copies, graphs] = load.mixed;
    assert_eq!(expected.kernels() as i64, GPUS * threads * (streams * dispatches + graphs * 20));
    // And one for the counts, and one per stream in the end.
    assert_eq!(expected.copies() as i64, GPUS * threads * (streams * copies + 1 + streams));
    let session = trace.sessions()[&pid];
    let ops: Vec<_> = trace.ops().into_iter().filter(|op| op.id >> 32 == session).collect();
    expected.assert_equals_ops(trace, &ops);
}

/// Each mark of process `pid` is there once.
#[track_caller]
fn has_marks(trace: &Trace, pid: u32, load: &Load) {
    let [threads, marks] = load.storm;
    let (all, different): (i64, i64) = trace
        .rows(
            &format!(
                "select count(*), count(distinct args) from api where args like 'process {pid} thread %'"
            ),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .remove(0);
    assert_eq!((all, different), (threads * marks, threads * marks));
}

/// Two processes with GPUs and two with marks, into one file.
fn four_processes(load: &Load) {
    let dir = Dir::new();
    let storm = |peak: &str| with_arguments(recorded(&dir, "storm"), &load.storm).env("PEAK", dir.path(peak));
    let runs = [mixed(&dir, load), mixed(&dir, load), storm("peak.0"), storm("peak.1")];
    let mut pids = vec![];
    for running in Run::start_all(&runs) {
        let ran = running.finish();
        // With much to write, who waits for the file says so, once.
        ran.expect(0);
        assert!(ran.stderr.lines().all(|line| line.contains("another process has it locked")), "{ran}");
        pids.push(ran.pid);
    }
    for peak in ["peak.0", "peak.1"] {
        let kib = std::fs::read_to_string(dir.path(peak)).unwrap();
        std::fs::remove_file(dir.path(peak)).unwrap();
        let mib = kib.trim().parse::<u64>().unwrap() >> 10;
        println!("largest resident set with {} marks: {mib} MiB", load.storm[0] * load.storm[1]);
        // RPDT_BUFFER_MB, 20 MB, and what an allocator and a page cache may take in the worst case.
        assert!(mib < 256 + 20 + 8, "{mib} MiB");
    }
    let trace = assert_clean(&dir, 4);
    for pid in &pids[..2] {
        equals_log(&dir, &trace, *pid, load);
    }
    for pid in &pids[2..] {
        has_marks(&trace, *pid, load);
    }
}

#[test]
fn kernels_copies_graphs_and_marks_in_four_processes() {
    four_processes(&SHORT);
    if soak() {
        four_processes(&LONG);
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(20 * 60) {
            four_processes(&SHORT);
        }
    }
}

#[test]
fn memory_stays_where_it_is_with_a_small_buffer() {
    let dir = Dir::new();
    let marks: i64 = if soak() { 10_000_000 } else { 500_000 };
    let run = with_arguments(recorded(&dir, "storm"), &[8, marks / 8]);
    run.env("RPDT_BUFFER_MB", "16").env("PEAK", dir.path("peak")).run().expect(0).expect_silent();
    let mib = std::fs::read_to_string(dir.path("peak")).unwrap().trim().parse::<u64>().unwrap() >> 10;
    std::fs::remove_file(dir.path("peak")).unwrap();
    println!("largest resident set with {marks} marks through 16 MiB: {mib} MiB");
    assert!(mib < 16 + 20, "{mib} MiB");
    let trace = assert_clean(&dir, 1);
    assert_eq!(
        trace.number("select count(distinct args) from api where apiName = 'UserMarker'"),
        marks / 8 * 8
    );
}
