//! A source of ten lines, and what the file has of its records: no GPU runtime is needed for it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rpd_transport::config::Config;
use rpd_transport::env::Env;
use rpd_transport::recorder::{self, Recorder, Setup};
use rpd_transport::records::{Call, Dispatch, Kind, NO_GPU, NO_KERNEL};
use rpd_transport::source::{CallText, Detail, GpuFacts, GpuTable, KernelText, Launch, Source};
use rpd_transport::thread::{self, Patience};
use rpd_transport::writer;
use rusqlite::Connection;

static VISITS: AtomicU32 = AtomicU32::new(0);

/// Observes nothing: the test pushes its records.
struct Toy;

impl Source for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }
    fn number(&self) -> u8 {
        77
    }
    fn is_used(&self) -> bool {
        true
    }
    fn visit(&self, _: &'static Recorder) {
        VISITS.fetch_add(1, Ordering::Relaxed);
    }
    fn next_visit(&self) -> Option<Duration> {
        Some(Duration::from_millis(1))
    }
    fn function(&self, index: u16) -> &'static str {
        ["toyLaunch", "toyDispatch"][usize::from(index)]
    }
    fn describe(&self, call: &Call, arguments: &[u8]) -> Option<CallText> {
        Some(CallText {
            name: self.function(call.function),
            arguments: format!("bytes={}", arguments.len()),
            launches: true,
            detail: Detail::Launch(Launch { grid: [2, 1, 1], workgroup: [64, 1, 1], ..Launch::default() }),
        })
    }
}

struct Table;

impl GpuTable for Table {
    fn kernel(&self, id: u32) -> Option<KernelText> {
        (id == 5).then(|| KernelText { name: "toy(float*)".into(), ..KernelText::default() })
    }
    fn gpus(&self) -> Vec<GpuFacts> {
        vec![GpuFacts { index: 0, name: "Toy GPU".into(), ..GpuFacts::default() }]
    }
    fn timing(&self) -> Vec<&'static str> {
        vec!["toy"]
    }
}

#[test]
fn records_of_a_source_become_rows() {
    let directory = tempfile::tempdir().unwrap();
    let get = |_: &str| None;
    let config = Config::read(&mut Env::new(&get), directory.path());
    let setup =
        Setup { sources: &[&Toy], gpus: &Table, demangle: |name| name.to_string(), writer: writer::run };
    let recorder = recorder::install(config, setup);

    let id = thread::begin_call(recorder).expect("room for a record");
    let call = Call {
        start: 1_000,
        end: 2_000,
        correlation: id,
        arguments: 3,
        function: 0,
        source: 77,
        reserved: 0,
        kernel: NO_KERNEL,
        submitted: 1,
        dst_gpu: NO_GPU,
        src_gpu: NO_GPU,
        pinned: 0,
        commanded: 0,
        tid: 0,
    };
    thread::end_call(recorder, &call, [b"abc", b""]);
    let dispatch = Dispatch {
        submit_start: 1_100,
        submit_end: 1_200,
        start: 3_000,
        end: 4_000,
        correlation: id,
        kernel: 5,
        queue: 1,
        tid: thread::tid(),
        grid: [128, 1, 1],
        workgroup: [64, 1, 1],
        launch: 1,
        source: 77,
        function: 1,
        ..bytemuck::Zeroable::zeroed()
    };
    let alone = Dispatch { correlation: 0, start: 5_000, end: 5_500, launch: 0, ..dispatch };
    for record in [dispatch, alone] {
        let body = bytemuck::bytes_of(&record);
        assert!(thread::push(recorder, Kind::Dispatch, body, [b"", b""], Patience::Waits));
    }
    // At the pace of RPDT_AUTOFLUSH they would take 50 s.
    let begin = Instant::now();
    while VISITS.load(Ordering::Relaxed) < 100 {
        assert!(begin.elapsed() < Duration::from_secs(25), "{VISITS:?} visits");
        std::thread::sleep(Duration::from_millis(1));
    }
    writer::finish(recorder);

    let trace = Connection::open(directory.path().join("trace.rpd")).unwrap();
    let texts = |sql: &str| -> Vec<String> {
        let mut statement = trace.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(
        texts("select apiName || ' ' || args || ' ' || (end - start) from api order by start"),
        ["toyLaunch bytes=3 1000", "toyDispatch  100"]
    );
    assert_eq!(
        texts("select opType || ' ' || description || ' ' || (end - start) from op order by start"),
        ["KernelExecution toy(float*) 1000", "KernelExecution toy(float*) 500"]
    );
    assert_eq!(
        texts("select api.apiName from api join rocpd_api_ops on api.id = api_id order by api.start"),
        ["toyLaunch", "toyDispatch"]
    );
    let fact =
        |tag: &str| texts(&format!("select value from rocpd_metadata where tag = 'session::0::{tag}'"));
    assert_eq!(fact("sources"), ["toy"]);
    assert_eq!(fact("timing"), ["toy"]);
    assert_eq!(fact("recorded::kernel"), ["2"]);
    assert!(texts("select tag from rocpd_metadata where tag like 'session::0::lost%'").is_empty());
}
