//! The file against the device's log, by the mapping of docs/mapping.md: 0 missing, 0 invented.

use crate::harness::{Dir, Expected, Loading, Ran, Run, Trace, aql_code_object, program};
use crate::links::check_links;

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
    check_links(&trace, ran.pid);
    (trace, expected)
}

fn recorded<'a>(dir: &'a Dir, name: &str, gpus: u32) -> Run<'a> {
    recorded_by(dir, name, gpus, Loading::Preload)
}

fn recorded_by<'a>(dir: &'a Dir, name: &str, gpus: u32, loading: Loading) -> Run<'a> {
    Run::new(dir, program(name)).gpus(gpus).recorded(loading).env("RPDT_TICKS", "1")
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
    for loading in Loading::BOTH {
        let dir = Dir::new();
        let (_, expected) = assert_recorded(&dir, &recorded_by(&dir, "streams", 2, loading).run());
        assert_eq!(expected.kernels(), 8000);
    }
}

#[test]
fn graphs() {
    for loading in Loading::BOTH {
        let dir = Dir::new();
        let (_, expected) = assert_recorded(&dir, &recorded_by(&dir, "graph", 1, loading).run());
        assert_eq!(expected.kernels(), 1005, "50 x 20 captured, 5 built");
    }
}

#[test]
fn copies_of_every_form() {
    for loading in Loading::BOTH {
        let dir = Dir::new();
        let (trace, expected) = assert_recorded(&dir, &recorded_by(&dir, "copies", 2, loading).run());
        assert_eq!(expected.kernels(), 0);
        let kinds = trace.texts("select distinct opType from op order by 1");
        let all = ["CopyDeviceToDevice", "CopyDeviceToDevice2D", "CopyDeviceToHost", "CopyDeviceToHost2D"];
        let more = ["CopyHostToDevice", "CopyHostToDevice2D", "FillBuffer"];
        assert_eq!(kinds, [&all[..], &more[..]].concat());
    }
}

/// HIP copies with kernels of its own between host and device too: an operation is named for what it copies.
#[test]
fn copies_between_host_and_device_by_kernels() {
    for loading in Loading::BOTH {
        let dir = Dir::new();
        let run = recorded_by(&dir, "hip_copy_kernels", 1, loading).env("GPU_FORCE_BLIT_COPY_SIZE", "1024");
        let (trace, _) = assert_recorded(&dir, &run.run());
        let by_type = "select opType || ' ' || count(*) as type from op group by opType order by opType";
        assert_eq!(
            trace.texts(by_type),
            ["CopyDeviceToDevice 3", "CopyDeviceToHost 5", "CopyHostToDevice 6"],
            "{loading:?}"
        );
    }
}

#[test]
fn raw_packets_with_signals_of_their_own() {
    let dir = Dir::new();
    let run = recorded(&dir, "aql", 2).arg(aql_code_object("gfx900"));
    let (_, expected) = assert_recorded(&dir, &run.run());
    assert_eq!(expected.kernels(), 2 * (100 + 1000 + 2 + 640 + 4000));
    assert_eq!(expected.copies(), 2 * 7);
}

#[test]
fn events_of_the_program_and_times_in_the_file() {
    let dir = Dir::new();
    let run = recorded(&dir, "events", 1)
        .config("[timing]\ngap_ns = 700\n[[kernel]]\nmatch = \"timed_kernel\"\nns = 123456\n");
    // HIP measures from the end of the barrier before the kernel.
    let (trace, expected) = assert_recorded(&dir, &run.arg("124156").run());
    assert_eq!(expected.kernels(), 17, "8 in each part, and the one that holds the stream");
    let timed =
        "select count(*) from kernel where kernelName like 'timed_kernel(%' and abs(duration - 123456) < 100";
    assert_eq!(trace.number(timed), 16);
}

#[test]
fn clocks_that_are_offset_and_drift() {
    let dir = Dir::new();
    let clocks = "[device]\nclock_hz = 100000000.0\nclock_drift_ppm = 150.0\n\
        [[fault]]\nkind = \"clock\"\ndevice = 1\noffset = 123456789012345\ndrift_ppm = -300.0\n";
    assert_recorded(&dir, &recorded(&dir, "demo", 2).config(clocks).run());
}

#[test]
fn another_gpu() {
    let dir = Dir::new();
    let (trace, _) = assert_recorded(&dir, &recorded(&dir, "graph", 1).env("SIMGPU_GFX", "gfx906").run());
    let targets: Vec<_> = trace.metadata("gpu::0::target").into_values().collect();
    assert_eq!(targets, ["gfx906"]);
}

#[test]
fn kernels_that_take_no_time() {
    let dir = Dir::new();
    let run = recorded(&dir, "graph", 1).config("[[kernel]]\nmatch = \"captured_step\"\nns = 0\n");
    let (trace, _) = assert_recorded(&dir, &run.run());
    assert_eq!(trace.number("select count(*) from ext_tick where start = end"), 1000);
}

#[test]
fn a_slow_device() {
    let dir = Dir::new();
    let slow = "[[fault]]\nkind = \"slow\"\nfactor = 3.0\nlate_us = 2000\n";
    assert_recorded(&dir, &recorded(&dir, "graph", 1).config(slow).run());
}

#[test]
fn raw_ticks_only_on_request() {
    let dir = Dir::new();
    let ran = Run::new(&dir, program("graph")).recorded(Loading::Preload).run();
    let (trace, _) = assert_recorded(&dir, &ran);
    assert!(!trace.has_table("ext_tick"));
}
