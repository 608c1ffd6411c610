//! A service that launches from four threads is recorded a hundred times, for a moment each.

use std::collections::BTreeMap;

use super::{ask, check, descriptors, end, service, status, threads};
use crate::harness::{Dir, Running, Trace, boot_minus_monotonic, wait_for};

/// Cycles of start and stop; 1000 with RPD_SOAK=1.
fn cycles() -> usize {
    if std::env::var_os("RPD_SOAK").is_some_and(|value| value == "1") { 1000 } else { 100 }
}

/// CLOCK_MONOTONIC, ns.
fn now() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// One recording of recording: what began after the start was acknowledged and ended before the stop was asked for is in the
/// file; what ended before the start was asked for or began after the stop was acknowledged is not.
struct Recording {
    asked: i64,
    begun: i64,
    end_asked: i64,
    ended: i64,
}

/// KiB of memory that are the process's own.
fn memory(running: &Running) -> i64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Lasts for a few steps of the program: at least one of them begins and ends in it.
fn cycle(dir: &Dir, running: &Running) -> Recording {
    let written = || std::fs::metadata(dir.path("steps")).unwrap().len();
    let asked = now();
    ask("start", &["--wait"], running).done();
    let (begun, before) = (now(), written());
    wait_for("steps of the program", || (written() > before + 1000).then_some(()));
    let end_asked = now();
    ask("stop", &["--wait"], running).done();
    Recording { asked, begun, end_asked, ended: now() }
}

fn recorded_in_parts(channel: &str) {
    let dir = Dir::new();
    // Small buffers also mean few remembered texts: what memory grows by then is a leak.
    let mut running = service(&dir).env("RPD_REMOTE", channel).env("RPDT_BUFFER_MB", "8").start();
    running.wait_for_output("ready");
    let (mut recordings, mut footprint) = (vec![], None);
    for number in 0..cycles() {
        recordings.push(cycle(&dir, &running));
        // By then everything that comes once has come.
        if number == 20 {
            footprint = Some((threads(&running), descriptors(&running), memory(&running)));
        }
    }
    let (names, open, before) = footprint.unwrap();
    assert_eq!(threads(&running), names);
    assert_eq!(descriptors(&running), open);
    let grown = memory(&running) - before;
    assert!(grown < 6 << 10, "{grown} KiB more after {} cycles", cycles());
    assert_eq!(status(&running)["lost"], 0);
    end(&dir);
    running.finish().expect(0).expect_silent();

    let trace = dir.trace("trace.rpd");
    check(&trace);
    assert!(trace.lost().is_empty(), "{:?}", trace.lost());
    assert_eq!(trace.session_count(), 1);
    let steps = steps(&dir);
    let mut marks = trace.texts("select args from api where apiName = 'UserMarker'");
    marks.sort();
    let several = marks.windows(2).find(|two| two[0] == two[1]);
    assert_eq!(several, None, "once each");
    let launches = launches(&trace);
    let mut expected = 0;
    for step in &steps {
        // The only recording that it can lie in, by either measure: they come one after the other.
        let recording = recordings.get(recordings.partition_point(|one| one.ended < step.before));
        let must = recording.is_some_and(|one| one.begun <= step.before && step.after <= one.end_asked);
        let may = recording.is_some_and(|one| one.asked <= step.after);
        let marked = marks.binary_search(&step.mark).is_ok();
        let ops = launches.get(&step.tid).and_then(|calls| {
            let next = calls.get(calls.partition_point(|call| call.start < step.before));
            next.filter(|call| call.end <= step.after).map(|call| call.ops)
        });
        let found = (marked, ops);
        if must {
            assert_eq!(found, (true, Some(1)), "mark and launch {} are missing", step.mark);
        }
        if !may {
            assert_eq!(found, (false, None), "launch {} came when nothing was recorded", step.mark);
        }
        expected += usize::from(must);
    }
    assert!(expected >= cycles(), "{expected} launches in {} recordings", cycles());
    // What was recorded is what the device did: every launch is a packet in its log, every op has the times of one.
    let log: Vec<_> =
        dir.logs().remove(0).1.into_iter().filter(|packet| packet.name.contains("work")).collect();
    assert_eq!(log.len(), steps.len() + 4, "each thread launches once before it counts");
    let offset = boot_minus_monotonic();
    let mut starts: Vec<_> = log.iter().map(|packet| packet.start_ns as i64 - offset).collect();
    starts.sort_unstable();
    for start in trace.rows("select start from rocpd_op", |row| row.get::<_, i64>(0)) {
        let place = starts.partition_point(|time| *time < start - CLOCKS);
        assert!(
            starts.get(place).is_some_and(|time| *time <= start + CLOCKS),
            "no packet started at {start}"
        );
    }
}

/// How far two readings of the same moment by different clocks may lie apart, ns.
const CLOCKS: i64 = 1_000;

/// What the program did: a mark and a launch.
struct Step {
    mark: String,
    tid: u32,
    before: i64,
    after: i64,
}

fn steps(dir: &Dir) -> Vec<Step> {
    let log = std::fs::read_to_string(dir.path("steps")).unwrap();
    let step = |line: &str| {
        let fields: Vec<i64> = line.split(' ').map(|field| field.parse().unwrap()).collect();
        let mark = format!("{}.{}", fields[0], fields[1]);
        Step { mark, tid: fields[2] as u32, before: fields[3], after: fields[4] }
    };
    log.lines().map(step).collect()
}

/// A recorded hipLaunchKernel and how many kernels it has. Those of each thread in the order of their starts.
struct Launch {
    start: i64,
    end: i64,
    ops: i64,
}

fn launches(trace: &Trace) -> BTreeMap<u32, Vec<Launch>> {
    // Counted once, not for each call: the table has no index.
    let sql = "with caused as materialized (select api_id, count(*) as ops from rocpd_api_ops group by api_id) \
         select tid, start, end, coalesce(ops, 0) from api left join caused on api_id = api.id \
         where apiName = 'hipLaunchKernel' order by start";
    let mut launches = BTreeMap::<u32, Vec<Launch>>::new();
    for (tid, start, end, ops) in
        trace.rows(sql, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
    {
        launches.entry(tid).or_default().push(Launch { start, end, ops });
    }
    launches
}

#[test]
fn a_hundred_times_by_the_flag() {
    recorded_in_parts("flag");
}

#[test]
fn a_hundred_times_by_signals() {
    recorded_in_parts("signal");
}
