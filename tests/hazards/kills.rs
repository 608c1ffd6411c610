//! Processes that are killed at any moment.

use std::fs;
use std::time::Duration;

use rpd_simgpu::execlog::{Kind, Packet};

use super::{markers, recorded, soak};
use crate::harness::{Dir, Expected, Run, Trace, rpd, tool};

/// Processes at once.
const AT_ONCE: usize = 4;

/// Places of the kernels in their queue.
const SEQUENCES: &str = "select sequenceId from rocpd_op where opType_id in (select id from rocpd_string where string = \
     'KernelExecution') order by 1";

/// A moment of the program's life: a number it says, and a few ms more, from `seed`.
fn moment(seed: u32) -> (u32, Duration) {
    let random = seed.wrapping_mul(2_654_435_761) ^ std::process::id().wrapping_mul(40_503);
    (random % 10 * 50, Duration::from_micros(u64::from(random / 16 % 50_000)))
}

const MARKS: &str = "select count(*) from api where apiName = 'UserMarker'";
const KERNELS: &str = "select count(*) from dispatch";

/// Bytes of the journal, in which a transaction has the pages that it replaces.
fn journal_length(dir: &Dir) -> u64 {
    fs::metadata(dir.path("trace.rpd-journal")).map_or(0, |journal| journal.len())
}

/// The file of a killed process: sound, and what could be read before the kill is in it: so many marks, so many kernels. Whether the
/// process was killed in a transaction.
fn check(dir: &Dir, before: (i64, i64), gpu: bool) -> bool {
    let in_transaction = journal_length(dir) > 0;
    let mut left = dir.names();
    // The software GPU's memory is a file that a killed process leaves.
    left.retain(|name| !name.starts_with("simgpu-"));
    assert!(left.iter().all(|name| name == "trace.rpd" || name == "trace.rpd-journal"), "{left:?}");
    // The first that may write it rolls back what was half done.
    tool(rpd().to_str().unwrap(), &["info".as_ref(), dir.path("trace.rpd").as_os_str()]);
    // A journal without a word in it, of a writer that had just made it, rolls nothing back: the next that writes removes it.
    assert_eq!(journal_length(dir), 0, "bytes that are left");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let marks = markers(&trace);
    let count = marks.len() as i64;
    assert!((0..count).all(|number| marks.get(&number.to_string()) == Some(&1)), "a gap in {count} marks");
    assert!(count >= before.0, "{count} marks, {} could be read before", before.0);
    if gpu {
        let log = dir.logs().remove(0).1;
        let kernels = Expected::of(&log).kernels();
        let tick = |packet: &&Packet| packet.kind == Kind::Dispatch && packet.name.contains("tick");
        let mut ticks: Vec<_> = log.iter().filter(tick).map(|packet| packet.index as i64).collect();
        ticks.sort();
        let (must, there) = (before.1, trace.number(KERNELS));
        assert!(
            (must..=kernels as i64).contains(&there),
            "{there} kernels, {must} could be read before, {kernels} ran"
        );
        let sequences = trace.rows(SEQUENCES, |row| row.get::<_, i64>(0));
        assert_eq!(sequences, ticks[..sequences.len()], "a gap in the kernels");
    }
    in_transaction
}

#[test]
fn killed_at_any_moment() {
    let kills = if soak() { 1000 } else { 20 };
    let mut in_transactions = 0;
    for batch in 0..kills / AT_ONCE {
        let dirs: Vec<_> = (0..AT_ONCE).map(|_| Dir::new()).collect();
        // Every other one without a GPU: there markers alone keep the writer busy.
        let with_gpu = |place: usize| place.is_multiple_of(2);
        // Half of them commit often, and are killed when a transaction has begun to write.
        let is_awaited = |place: usize| place >= AT_ONCE / 2;
        let runs = dirs.iter().enumerate().map(|(place, dir)| {
            let run = recorded(dir, "ticker");
            let run = if is_awaited(place) { run.env("RPDT_AUTOFLUSH", "100") } else { run };
            if with_gpu(place) { run } else { run.arg("marks") }
        });
        let mut running = Run::start_all(&runs.collect::<Vec<_>>());
        let (said, _) = moment(batch as u32);
        running.iter_mut().for_each(|running| running.wait_for_output(&format!("<{said}>\n")));
        for ((place, dir), mut running) in dirs.iter().enumerate().zip(running) {
            // What was said comes into the file by itself.
            dir.wait_for_rows("trace.rpd", MARKS, i64::from(said) + 1);
            std::thread::sleep(moment((batch * AT_ONCE + place) as u32).1);
            let count = |sql| Trace::count_so_far(&dir.path("trace.rpd"), sql);
            let before = (count(MARKS), count(KERNELS));
            while is_awaited(place) && journal_length(dir) == 0 && running.is_alive() {
                std::hint::spin_loop();
            }
            running.signal(libc::SIGKILL);
            running.finish().expect_signal(libc::SIGKILL).expect_silent();
            in_transactions += u32::from(check(dir, before, with_gpu(place)));
        }
    }
    assert!(in_transactions > 0, "no transaction was cut off");
}
