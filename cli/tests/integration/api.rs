//! `rpd api`: calls in order with what they caused.

use crate::harness::Dir;

/// Lines of calls, and lines of operations.
fn lines(dir: &Dir, arguments: &[&str]) -> (Vec<String>, Vec<String>) {
    let ran = dir.run(&[&["api"], arguments].concat());
    let text = &ran.expect(0).stdout;
    text.lines().map(str::to_string).partition(|line| !line.starts_with("    gpu "))
}

fn count(dir: &Dir, trace: &str, what: &str) -> usize {
    let query = format!("select count(*) from {what}");
    dir.open(trace).query_row(&query, [], |row| row.get::<_, u32>(0)).unwrap() as usize
}

#[test]
fn every_call_of_a_real_trace_and_every_operation_that_one_caused() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let (calls, operations) = lines(&dir, &[&trace]);
    assert_eq!(calls.len(), count(&dir, &trace, "rocpd_api"));
    assert_eq!(operations.len(), count(&dir, &trace, "rocpd_api_ops"));
    let times: Vec<f64> = calls.iter().map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted() && times[0] == 0.0, "in order, from the first on");
}

/// A call of 4 with a copy, a launch of 5 with a kernel, and a marker around the launch.
const CALLS: &str = "INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipMemcpy'), (3, 'hipLaunchKernel'), (4, 'UserMarker'),
         (5, 'step 1'), (6, 'CopyHostToDevice'), (7, 'gemm\u{1b}[31m'), (8, 'KernelExecution');
     INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES
         (1, 1, 4, 1000, 3000, 2, 1), (2, 1, 5, 5000, 6000, 3, 1), (2147483648, 1, 5, 4000, 9000, 4, 5);
     INSERT INTO rocpd_copyapi (api_ptr_id, stream, size, width, height, kind, dst, src, dstDevice, srcDevice, sync, pinned)
         VALUES (1, '0x0', 64, 0, 0, 1, '0xd', '0x5', 0, -1, 1, 0);
     INSERT INTO rocpd_kernelapi (api_ptr_id, stream, gridX, gridY, gridZ, workgroupX, workgroupY, workgroupZ, groupSegmentSize,
         privateSegmentSize, kernelArgAddress, aquireFence, releaseFence, codeObject_id, kernelName_id)
         VALUES (2, '0x7', 3, 2, 1, 64, 1, 1, 0, 0, '', '', '', 0, 7);
     INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id) VALUES
         (1, 0, 0, 0, '', 1500, 2500, 1, 6), (2, 0, 1, 0, '', 7000, 8000, 7, 8);
     INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (1, 1), (2, 2);";

const COPY: &str = "4 0.000000000 hipMemcpy(dst=0xd | src=0x5 | size=64 | kind=1 | stream=0x0) <2.000 us>";
const MARKER: &str = "5 0.000003000 UserMarker(step 1) <5.000 us>";
const LAUNCH: &str = "5 0.000004000 hipLaunchKernel(grid=3,2,1 | workgroup=64,1,1 | groupSegmentSize=0 | stream=0x7 | \
     kernel=gemm\\x1b[31m) <1.000 us>";

#[test]
fn arguments_operations_and_what_is_chosen() {
    let dir = Dir::new();
    dir.trace("t.rpd", CALLS);
    let (calls, operations) = lines(&dir, &["t.rpd"]);
    assert_eq!(calls, [COPY, MARKER, LAUNCH]);
    assert_eq!(
        operations,
        [
            "    gpu 0 queue 0 +500 ns CopyHostToDevice <1.000 us>",
            "    gpu 0 queue 1 +2.000 us gemm\\x1b[31m <1.000 us>"
        ]
    );
    let chosen = |arguments: &[&str]| lines(&dir, &[&["t.rpd"], arguments].concat()).0;
    assert_eq!(chosen(&["--thread", "4"]), [COPY]);
    assert_eq!(chosen(&["--grep", "^hip.*kind=1"]), [COPY]);
    assert_eq!(chosen(&["--in", "step 1"]), [MARKER, LAUNCH]);
    assert_eq!(chosen(&["--in", "..4000"]), [COPY, MARKER]);
    assert_eq!(chosen(&["--in", "marker:step 1..", "--grep", "Launch"]), [LAUNCH]);
}

#[test]
fn a_few_calls_for_people_and_for_programs() {
    let dir = Dir::new();
    dir.trace("t.rpd", CALLS);
    assert_eq!(lines(&dir, &["-n", "2", "t.rpd"]).0, [COPY, MARKER]);
    assert_eq!(lines(&dir, &["-n", "1", "--grep", "Launch", "t.rpd"]).0, [LAUNCH]);
    let json = |arguments: &[&str]| -> serde_json::Value {
        let ran = dir.run(&[&["api", "--json", "t.rpd"], arguments].concat());
        serde_json::from_str(&ran.expect(0).stdout).unwrap_or_else(|error| panic!("{error}: {ran}"))
    };
    assert_eq!(json(&["--thread", "99"]), serde_json::json!([]));
    assert_eq!(json(&[]).as_array().unwrap().len(), 3);
    assert_eq!(
        json(&["--grep", "Launch"]),
        serde_json::json!([{
            "session": 0, "pid": 1, "tid": 5, "start_ns": 5000, "duration_ns": 1000, "function": "hipLaunchKernel",
            "arguments": "grid=3,2,1 | workgroup=64,1,1 | groupSegmentSize=0 | stream=0x7 | kernel=gemm\u{1b}[31m",
            "operations": [{"gpu": 0, "queue": 1, "start_ns": 7000, "duration_ns": 1000, "name": "gemm\u{1b}[31m"}]
        }])
    );
    let csv = dir.run(&["api", "--csv", "-n", "2", "t.rpd"]);
    assert_eq!(
        csv.expect(0).stdout.lines().skip(1).collect::<Vec<_>>(),
        [
            "1,4,1000,2000,hipMemcpy,dst=0xd | src=0x5 | size=64 | kind=1 | stream=0x0,0,0,CopyHostToDevice,1500,1000,0",
            "1,5,4000,5000,UserMarker,step 1,,,,,,0"
        ]
    );
}

#[test]
fn calls_of_one_process() {
    let dir = Dir::new();
    dir.trace("t.rpd", CALLS);
    // Threads of several processes may have one number.
    dir.open("t.rpd").execute_batch("UPDATE rocpd_api SET pid = 2, tid = 4 WHERE id = 2").unwrap();
    let chosen = |arguments: &[&str]| lines(&dir, &[&["t.rpd"], arguments].concat()).0;
    let launch = LAUNCH.replacen('5', "4", 1);
    assert_eq!(chosen(&["--pid", "1"]), [COPY, MARKER]);
    assert_eq!(chosen(&["--pid", "2"]), [&*launch]);
    assert_eq!(chosen(&["--thread", "4"]), [COPY.to_string(), launch]);
    assert_eq!(chosen(&["--thread", "4", "--pid", "1"]), [COPY]);
    assert_eq!(chosen(&["--pid", "3"]), [""; 0]);
    dir.run(&["api", "--pid", "main", "t.rpd"]).expect(2);
}

#[test]
fn what_is_not_there_is_said() {
    let dir = Dir::new();
    dir.trace("t.rpd", CALLS);
    let none = dir.run(&["api", "--thread", "99", "t.rpd"]);
    assert_eq!((&*none.expect(0).stdout, none.stderr.contains("no such call")), ("", true), "{none}");
    let unknown = dir.run(&["api", "--in", "step 2", "t.rpd"]);
    assert!(unknown.expect(1).stderr.contains("no marker has the text step 2"), "{unknown}");
    dir.run(&["api", "--in", "9..x", "t.rpd"]).expect(1).says(&["no marker has the text 9..x"]);
    for wrong in [["--start", "9x"], ["--grep", "("], ["--thread", "main"]] {
        dir.run(&["api", wrong[0], wrong[1], "t.rpd"]).expect(2);
    }
}

#[test]
fn rankings_of_calls_and_markers() {
    let dir = Dir::new();
    dir.trace("t.rpd", CALLS);
    for (by, name, total) in [
        ("kernel", "gemm", "1000"),
        ("copy", "CopyHostToDevice", "1000"),
        ("api", "hipMemcpy", "2000"),
        ("marker", "step 1", "5000"),
    ] {
        let csv = dir.run(&["top", "--csv", "--by", by, "t.rpd"]);
        let first = csv.expect(0).stdout.lines().nth(1).unwrap_or_default().to_string();
        assert!(first.starts_with(name) && first.contains(&format!(",1,{total},")), "{by}: {csv}");
        assert_eq!(csv.stdout.lines().count(), if by == "api" { 3 } else { 2 }, "{by}: {csv}");
    }
}
