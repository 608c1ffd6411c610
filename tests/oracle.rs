//! The file against the device's log, by the mapping of docs/mapping.md: 0 missing, 0 invented.

use crate::harness::{Dir, Expected, Loading, Ran, Run, Trace, aql_code_object, program};

/// A recorded run whose file equals the log of its one process.
fn assert_recorded(dir: &Dir, ran: &Ran) -> (Trace, Expected) {
    ran.expect(0);
    let logs = dir.logs();
    assert_eq!(logs.len(), 1, "one process used the GPU{ran}");
    let expected = Expected::of(&logs[0].1);
    let trace = dir.trace("trace.rpd");
    expected.assert_equals(&trace);
    assert!(trace.lost().is_empty(), "{:?}", trace.lost());
    trace.check_integrity();
    (trace, expected)
}

fn recorded<'a>(dir: &'a Dir, name: &str, gpus: u32) -> Run<'a> {
    Run::new(dir, program(name)).gpus(gpus).recorded(Loading::Preload).env("RPDT_TICKS", "1")
}

#[test]
fn demo_on_two_gpus() {
    let dir = Dir::new();
    let (trace, expected) = assert_recorded(&dir, &recorded(&dir, "demo", 2).run());
    assert_eq!((expected.kernels(), expected.fills()), (768, 42), "2 x (2 threads x 42 + 300)");
    assert_eq!(
        trace.number("select count(*) from ext_tick"),
        trace.number("select count(*) from rocpd_op where queueId > 0")
    );
}

#[test]
fn streams_on_two_gpus() {
    let dir = Dir::new();
    let (_, expected) = assert_recorded(&dir, &recorded(&dir, "streams", 2).run());
    assert_eq!(expected.kernels(), 8000);
}

#[test]
fn graphs() {
    let dir = Dir::new();
    let (_, expected) = assert_recorded(&dir, &recorded(&dir, "graph", 1).run());
    assert_eq!(expected.kernels(), 1005, "50 x 20 captured, 5 built");
}

#[test]
fn copies_of_every_form() {
    let dir = Dir::new();
    let (trace, expected) = assert_recorded(&dir, &recorded(&dir, "copies", 2).run());
    assert_eq!(expected.kernels(), 0);
    let kinds = trace.texts("select distinct opType from op order by 1");
    let all = ["CopyDeviceToDevice", "CopyDeviceToDevice2D", "CopyDeviceToHost", "CopyDeviceToHost2D"];
    let more = ["CopyHostToDevice", "CopyHostToDevice2D", "FillBuffer"];
    assert_eq!(kinds, [&all[..], &more[..]].concat());
}

#[test]
fn raw_packets_with_signals_of_their_own() {
    let dir = Dir::new();
    let run = recorded(&dir, "aql", 2).arg(aql_code_object("gfx900"));
    let (_, expected) = assert_recorded(&dir, &run.run());
    assert_eq!(expected.kernels(), 2 * (100 + 1000 + 2 + 640 + 4000));
    assert_eq!(expected.copies(), 2 * 7);
}
