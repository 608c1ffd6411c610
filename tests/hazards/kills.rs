//! Processes that are killed at any moment.

use std::fs;
use std::time::Duration;

use rpd_simgpu::execlog::{Kind, Packet};

use super::{markers, recorded, soak};
use crate::harness::{Dir, Expected, Run, rpd, tool};

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

fn boot_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a live timespec; every Linux has the clock.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The file of a killed process: sound, everything from more than a second before the kill in it.
fn check(dir: &Dir, said: u32, killed_at: u64, gpu: bool) {
    let mut left = dir.names();
    // The software GPU's memory is a file that a killed process leaves.
    left.retain(|name| !name.starts_with("simgpu-"));
    assert!(left.iter().all(|name| name == "trace.rpd" || name == "trace.rpd-journal"), "{left:?}");
    // The first that may write it rolls back what was half done.
    tool(rpd().to_str().unwrap(), &["info".as_ref(), dir.path("trace.rpd").as_os_str()]);
    // A journal without a word in it, of a writer that had just made it, rolls nothing back: the next that writes removes it.
    let journal = fs::read(dir.path("trace.rpd-journal"));
    assert!(
        journal.as_ref().map_or(true, Vec::is_empty),
        "{:?} bytes are left",
        journal.map(|bytes| bytes.len())
    );
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let marks = markers(&trace);
    let count = marks.len() as u32;
    assert!((0..count).all(|number| marks.get(&number.to_string()) == Some(&1)), "a gap in {count} marks");
    assert!(count > said, "{count} marks, {said} was said a second before the end");
    if gpu {
        let log = dir.logs().remove(0).1;
        let kernels = Expected::of(&log).kernels();
        let tick = |packet: &&Packet| packet.kind == Kind::Dispatch && packet.name.contains("tick");
        let mut ticks: Vec<_> = log.iter().filter(tick).map(|packet| packet.index as i64).collect();
        ticks.sort();
        let old =
            log.into_iter().filter(|packet| packet.end_ns + 1_000_000_000 < killed_at).collect::<Vec<_>>();
        let must = Expected::of(&old).kernels();
        let there = trace.number("select count(*) from ext_dispatch") as usize;
        assert!(
            (must..=kernels).contains(&there),
            "{there} kernels, {must} were a second old, {kernels} ran"
        );
        let sequences = trace.rows(SEQUENCES, |row| row.get::<_, i64>(0));
        assert_eq!(sequences, ticks[..sequences.len()], "a gap in the kernels");
    }
}

#[test]
fn killed_at_any_moment() {
    let kills = if soak() { 1000 } else { 20 };
    for batch in 0..kills / AT_ONCE {
        let dirs: Vec<_> = (0..AT_ONCE).map(|_| Dir::new()).collect();
        // Every other one without a GPU: there markers alone keep the writer busy.
        let with_gpu = |place: usize| place.is_multiple_of(2);
        let runs = dirs.iter().enumerate().map(|(place, dir)| {
            let run = recorded(dir, "ticker");
            if with_gpu(place) { run } else { run.arg("marks") }
        });
        let mut running = Run::start_all(&runs.collect::<Vec<_>>());
        let (said, _) = moment(batch as u32);
        running.iter_mut().for_each(|running| running.wait_for_output(&format!("<{said}>\n")));
        std::thread::sleep(Duration::from_secs(1));
        for ((place, dir), running) in dirs.iter().enumerate().zip(running) {
            std::thread::sleep(moment((batch * AT_ONCE + place) as u32).1);
            let now = boot_time();
            running.signal(libc::SIGKILL);
            running.finish().expect_signal(libc::SIGKILL).expect_silent();
            check(dir, said, now, with_gpu(place));
        }
    }
}
