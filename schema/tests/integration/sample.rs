//! A small trace with a row in every table, and the ways in which tests look at traces.

use rpd_schema::{
    ApiId, ApiRow, Appender, BarrierRow, CandidateId, CandidateRow, CodeObjectId, CodeObjectRow, CopyApiRow,
    DispatchRow, ExtCodeObjectRow, Fence, Finding, InstrumentationRow, KernelApiRow, LaunchAttributeRow,
    MonitorRow, OpId, OpRow, Outcome, ReplacementRow, SavedCodeId, SavedCodeRow, TickRow, ValidationRow,
};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An API row with this id and these texts.
pub(crate) fn api(appender: &mut Appender, id: ApiId, name: &str, args: &str, start: u64, end: u64) {
    let (name, args) = (appender.intern(name).unwrap(), appender.intern(args).unwrap());
    appender.api(&ApiRow { id, pid: 100, tid: 101, start, end, name, args }).unwrap();
}

/// A kernel that a call launched: api, kernelapi, op, dispatch and the link, all with number `n`.
pub(crate) fn kernel(appender: &mut Appender, n: u64, name: &str) {
    api(appender, ApiId::call(n), "hipLaunchKernel", "", n * 1000, n * 1000 + 50);
    let kernel_name = appender.intern(name).unwrap();
    let op_type = appender.intern("KernelExecution").unwrap();
    appender
        .kernel_api(&KernelApiRow {
            api: ApiId::call(n),
            stream: 0,
            grid: [4, 2, 1],
            workgroup: [64, 1, 1],
            group_segment_size: 1024,
            private_segment_size: 16,
            kernarg_address: 0x7f00_1000,
            acquire_fence: Fence::System,
            release_fence: Fence::Agent,
            code_object: CodeObjectId(1),
            kernel_name,
        })
        .unwrap();
    appender
        .op(&OpRow {
            id: OpId(n),
            gpu: 1,
            queue: 2,
            sequence: n,
            completion_signal: 0xabc0,
            start: n * 1000 + 100,
            end: n * 1000 + 400,
            description: kernel_name,
            op_type,
        })
        .unwrap();
    appender
        .dispatch(&DispatchRow {
            op: OpId(n),
            kernel_name,
            grid: [4, 2, 1],
            workgroup: [64, 1, 1],
            group_segment_size: 1024,
            private_segment_size: 16,
            kernarg_address: 0x7f00_1000,
            code_object: CodeObjectId::UNKNOWN,
        })
        .unwrap();
    appender.api_op(ApiId::call(n), OpId(n)).unwrap();
}

/// One row in every table, with the ids 1 (kernel), 2 (copy) and 3 (barrier).
pub(crate) fn every_table(appender: &mut Appender) {
    kernel(appender, 1, "vectorAdd(float*)");
    api(appender, ApiId::call(2), "hipMemcpy", "dst=0x10 | size=4096", 2000, 2600);
    let (description, op_type) = (appender.empty(), appender.intern("CopyHostToDevice").unwrap());
    appender
        .copy_api(&CopyApiRow {
            api: ApiId::call(2),
            stream: 0xfeed,
            size: 3 << 32,
            width: 0,
            height: 0,
            kind: 1,
            dst: 0x10,
            src: 0x20,
            dst_device: 1,
            src_device: -1,
            sync: true,
            pinned: false,
        })
        .unwrap();
    let copy = OpRow {
        id: OpId(2),
        gpu: 1,
        queue: 3,
        sequence: 0,
        completion_signal: 0,
        start: 2100,
        end: 2500,
        description,
        op_type,
    };
    appender.op(&copy).unwrap();
    appender.api_op(ApiId::call(2), OpId(2)).unwrap();
    let op_type = appender.intern("Barrier").unwrap();
    appender.op(&OpRow { id: OpId(3), start: 2500, end: 2500, op_type, ..copy }).unwrap();
    appender
        .barrier(&BarrierRow {
            op: OpId(3),
            signal_count: 2,
            acquire_fence: Fence::None,
            release_fence: Fence::Unknown,
        })
        .unwrap();
    appender.input_signal(OpId(2), OpId(3)).unwrap();
    appender.code_object(&CodeObjectRow { id: CodeObjectId(1), vgpr: 24, sgpr: 32, fbar: 0 }).unwrap();
    let kernel_name = appender.intern("vectorAdd(float*)").unwrap();
    appender
        .ext_code_object(&ExtCodeObjectRow {
            id: CodeObjectId(1),
            kernel_name,
            agpr: 4,
            vgpr_spill: 1,
            sgpr_spill: 2,
            group_segment_size: 1024,
            private_segment_size: 16,
            kernarg_segment_size: 280,
            wavefront_size: 64,
            max_workgroup_size: 256,
        })
        .unwrap();
    appender
        .saved_code(&SavedCodeRow {
            id: SavedCodeId(1),
            sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            uri: "file:///opt/add#offset=4096&size=9216",
            target: "gfx90a:xnack-",
            size: 9216,
        })
        .unwrap();
    appender.saved_kernel(CodeObjectId(1), SavedCodeId(1)).unwrap();
    appender.code_object(&CodeObjectRow { id: CodeObjectId(2), vgpr: 12, sgpr: 16, fbar: 0 }).unwrap();
    appender
        .candidate(&CandidateRow {
            id: CandidateId(1),
            path: "/cache/add.hsaco",
            sha256: "",
            target: "gfx90a",
            loaded: 900,
            outcome: Outcome::Loaded,
            reason: "",
        })
        .unwrap();
    appender
        .replacement(&ReplacementRow {
            op: OpId(1),
            original: CodeObjectId(1),
            replacement: CodeObjectId(2),
            candidate: CandidateId(1),
        })
        .unwrap();
    appender
        .validation(&ValidationRow {
            op: OpId(1),
            argument: Some(2),
            offset: 16,
            compared: "f32",
            elements: 1024,
            written: 1024,
            different: 1,
            first: -3,
            original: "1.5",
            candidate: "1.75",
            largest: "0.25",
            reason: "",
        })
        .unwrap();
    let kernel_name = appender.intern("vectorAdd(float*)").unwrap();
    let instrumentation = InstrumentationRow {
        op: Some(OpId(1)),
        kernel_name,
        gpu: 1,
        queue: 2,
        sequence: 1,
        analyzer: "MemoryAnalysis",
        messages: 32,
        bytes: 4096,
        dropped: 64,
        incomplete: true,
        reason: "too many lines",
    };
    let findings = [
        Finding::MemoryAccess {
            file: "add.hip".into(),
            line: 7,
            column: 3,
            kind: "read".into(),
            space: "global".into(),
            size: 4,
            accesses: 32,
            lines_needed: 64,
            lines_used: 128,
            conflicts: 0,
        },
        Finding::Page { address: 0x7f00_0000, size: 1 << 20, accesses: 2048 },
        Finding::Intervals { count: 2, total: 30, first_begin: 1000, last_end: 1040 },
        Finding::BasicBlock {
            block: 1,
            cu: None,
            file: "add.hip".into(),
            line: 9,
            count: 4,
            timed: 3,
            total: 60,
            min: 10,
            p50: 20,
            p90: 30,
            p99: 30,
            max: 30,
            branchiness: 0.25,
        },
        Finding::BasicBlock {
            block: 1,
            cu: Some(3),
            file: String::new(),
            line: 0,
            count: 4,
            timed: 0,
            total: 0,
            min: 0,
            p50: 0,
            p90: 0,
            p99: 0,
            max: u64::MAX,
            branchiness: 0.5,
        },
        Finding::Value { name: "entropy".into(), value: 0.75 },
    ];
    appender.instrumentation(&instrumentation, &findings).unwrap();
    appender.instrumentation(&InstrumentationRow { op: None, ..instrumentation }, &[]).unwrap();
    let attributes = LaunchAttributeRow { op: OpId(1), graph: 3, graph_node: u64::MAX, cluster: [2, 1, 1] };
    appender.launch_attribute(&attributes).unwrap();
    appender.tick(&TickRow { op: OpId(1), start: 12345, end: u64::MAX }).unwrap();
    let monitor = MonitorRow {
        device_type: "gpu",
        device: 1,
        monitor_type: "sclk",
        start: 1000,
        end: 3000,
        value: "1700",
    };
    appender.monitor(&monitor).unwrap();
    api(appender, ApiId::marker(0), "UserMarker", "step 1", 500, 3000);
    let frame = appender.intern("main at add.cpp:7").unwrap();
    appender.stack_frame(ApiId::call(1), 0, frame).unwrap();
}

/// Every row of a query, as values.
pub(crate) fn rows(connection: &Connection, query: &str) -> Vec<Vec<Value>> {
    let mut statement = connection.prepare(query).unwrap();
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| (0..columns).map(|column| row.get(column)).collect()).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// Every row of a query, its values joined by `|` as the sqlite3 shell does.
pub(crate) fn lines(connection: &Connection, query: &str) -> Vec<String> {
    let show = |value: &Value| match value {
        Value::Null => String::new(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => format!("{bytes:?}"),
    };
    rows(connection, query).iter().map(|row| row.iter().map(show).collect::<Vec<_>>().join("|")).collect()
}

/// The first integer of a query.
pub(crate) fn number(connection: &Connection, query: &str) -> i64 {
    connection.query_row(query, [], |row| row.get(0)).unwrap()
}

/// One of the real traces, unpacked into `directory`.
pub(crate) fn real_trace(name: &str, directory: &Path) -> PathBuf {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/rpd").join(name);
    let path = directory.join(name.trim_end_matches(".gz"));
    if name.ends_with(".gz") {
        let unpacked = Command::new("gzip").arg("-dc").arg(&stored).output().unwrap();
        assert!(unpacked.status.success(), "gzip {}", stored.display());
        std::fs::write(&path, unpacked.stdout).unwrap();
    } else {
        std::fs::copy(&stored, &path).unwrap();
    }
    path
}

/// Names of the files in a directory, sorted.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Runs this test binary again, with only the test `name`, as a child that finds `path` in `variable`.
pub(crate) fn this_test_again(program: &Path, name: &str, variable: &str, path: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(variable, path);
    command
}
