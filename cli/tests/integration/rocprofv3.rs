//! `rpd export rocprofv3`: against the keys that the format's schema requires, what TraceLens asks for, and SQL.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::export::{any_calls, expected, write};
use crate::generated::{generated, to_schema_3};
use crate::harness::Dir;
use crate::property::holds;

/// What rocprofv3-schema.json of rocprofiler-sdk (8ab1ed7) requires, as objects with their keys: a number for an integer, a text, a list of
/// such as its one element.
fn schema() -> Value {
    let handle = json!({"handle": 0});
    let correlation = json!({"internal": 0, "external": 0});
    let extent = json!({"x": 0, "y": 0, "z": 0});
    let call = json!({"size": 0, "kind": 0, "operation": 0, "correlation_id": correlation, "start_timestamp": 0, "end_timestamp": 0,
        "thread_id": 0});
    let capability: serde_json::Map<String, Value> = [
        "HotPluggable",
        "HSAMMUPresent",
        "SharedWithGraphics",
        "QueueSizePowerOfTwo",
        "QueueSize32bit",
        "QueueIdleEvent",
        "VALimit",
        "WatchPointsSupported",
        "WatchPointsTotalBits",
        "DoorbellType",
        "AQLQueueDoubleMap",
        "DebugTrapSupported",
        "WaveLaunchTrapOverrideSupported",
        "WaveLaunchModeSupported",
        "PreciseMemoryOperationsSupported",
        "DEPRECATED_SRAM_EDCSupport",
        "Mem_EDCSupport",
        "RASEventNotify",
        "ASICRevision",
        "SRAM_EDCSupport",
        "SVMAPISupported",
        "CoherentHostAccess",
        "DebugSupportedFirmware",
        "Reserved",
    ]
    .map(|key| (key.to_string(), json!(0)))
    .into_iter()
    .collect();
    let mut dispatch = call.clone();
    dispatch["dispatch_info"] = json!({"size": 0, "agent_id": handle, "queue_id": handle, "kernel_id": 0, "dispatch_id": 0,
        "private_segment_size": 0, "group_segment_size": 0, "workgroup_size": extent, "grid_size": extent});
    let mut copy = call.clone();
    for key in ["dst_agent_id", "src_agent_id"] {
        copy[key] = handle.clone();
    }
    copy["bytes"] = json!(0);
    let operations = json!([{"kind": "", "operations": [""]}]);
    json!({"rocprofiler-sdk-tool": [{
        "metadata": {"pid": 0, "init_time": 0, "fini_time": 0},
        "agents": [{"size": 0, "id": handle, "type": 0, "capability": capability}],
        "counters": [{"agent_id": handle}],
        "strings": {"callback_records": operations, "buffer_records": operations, "marker_api": [{"key": 0, "value": ""}],
            "counters": {"dimension_ids": [{"id": 0}]}},
        "code_objects": [{"code_object_id": 0}],
        "kernel_symbols": [{"size": 0, "kernel_id": 0, "code_object_id": 0, "kernel_name": "", "kernel_object": 0,
            "kernarg_segment_size": 0, "kernarg_segment_alignment": 0, "group_segment_size": 0, "private_segment_size": 0,
            "formatted_kernel_name": "", "demangled_kernel_name": "", "truncated_kernel_name": ""}],
        "callback_records": {},
        "buffer_records": {"kernel_dispatch": [dispatch], "hip_api": [call], "hsa_api": [call], "marker_api": [call],
            "memory_copy": [copy]},
    }]})
}

fn is_like(found: &Value, schema: &Value, path: &str) {
    match schema {
        Value::Object(keys) => {
            for (key, schema) in keys {
                is_like(
                    found.get(key).unwrap_or_else(|| panic!("{path}: no {key}")),
                    schema,
                    &format!("{path}.{key}"),
                );
            }
        }
        Value::Array(of) => {
            for element in found.as_array().unwrap_or_else(|| panic!("{path}: {found}")) {
                is_like(element, &of[0], path);
            }
        }
        Value::String(_) => assert!(found.is_string(), "{path}: {found}"),
        _ => assert!(found.is_i64(), "{path}: {found}"),
    }
}

/// The process of an export that is as the schema wants it.
fn exported(dir: &Dir, trace: &str, options: &[&str]) -> Value {
    let ran = dir.run(&[&["export", "rocprofv3", trace], options].concat());
    let mut file: Value = serde_json::from_str(&ran.expect(0).stdout).unwrap();
    is_like(&file, &schema(), "");
    file["rocprofiler-sdk-tool"][0].take()
}

fn list<'a>(tool: &'a Value, kind: &str) -> &'a Vec<Value> {
    tool["buffer_records"][kind].as_array().unwrap()
}

fn number(of: &Value, key: &str) -> i64 {
    of[key].as_i64().unwrap()
}

type Row = (i64, i64, String, i64, i64);

/// Calls by thread and operations by GPU and queue, as `expected` has them, but for process ids and queues of copies.
fn found(tool: &Value) -> (Vec<Row>, Vec<Row>) {
    let text = |list: &Value, key: &str, value: &str| -> BTreeMap<i64, String> {
        let rows = list.as_array().unwrap().iter();
        rows.map(|row| (number(row, key), row[value].as_str().unwrap().to_string())).collect()
    };
    let messages = text(&tool["strings"]["marker_api"], "key", "value");
    let kernels = text(&tool["kernel_symbols"], "kernel_id", "truncated_kernel_name");
    let of_kind = |record: &Value| {
        let kind = &tool["strings"]["buffer_records"][number(record, "kind") as usize];
        (
            kind["kind"].as_str().unwrap().to_string(),
            kind["operations"][number(record, "operation") as usize].clone(),
        )
    };
    let times = |record: &Value| (number(record, "start_timestamp"), number(record, "end_timestamp"));
    let (mut calls, mut ops) = (Vec::new(), Vec::new());
    for (list_of, kind) in
        [("hip_api", "HIP_RUNTIME_API"), ("hsa_api", "HSA_CORE_API"), ("marker_api", "MARKER_CORE_API")]
    {
        for record in list(tool, list_of) {
            let (found, operation) = of_kind(record);
            assert_eq!(found, kind);
            let name = match list_of {
                "marker_api" => messages[&number(&record["correlation_id"], "internal")].clone(),
                _ => operation.as_str().unwrap().to_string(),
            };
            let (start, end) = times(record);
            calls.push((0, number(record, "thread_id"), name, start, end));
        }
    }
    for record in list(tool, "kernel_dispatch") {
        let info = &record["dispatch_info"];
        assert_eq!(of_kind(record), ("KERNEL_DISPATCH".into(), json!("KERNEL_DISPATCH_COMPLETE")));
        let (start, end) = times(record);
        let name = kernels[&number(info, "kernel_id")].clone();
        ops.push((
            number(&info["agent_id"], "handle") - 1,
            number(&info["queue_id"], "handle"),
            name,
            start,
            end,
        ));
    }
    for record in list(tool, "memory_copy") {
        assert_eq!(of_kind(record).0, "MEMORY_COPY");
        let (start, end) = times(record);
        let gpu =
            number(&record["src_agent_id"], "handle").max(number(&record["dst_agent_id"], "handle")) - 1;
        ops.push((gpu, i64::MIN, String::new(), start, end));
    }
    calls.sort();
    ops.sort();
    (calls, ops)
}

fn check(dir: &Dir, trace: &str) {
    let connection = dir.open(trace);
    let tool = exported(dir, trace, &[]);
    let copies: BTreeSet<(i64, i64, i64)> = {
        let mut query =
            connection.prepare("SELECT gpuId, start, \"end\" FROM op WHERE opType LIKE 'Copy%'").unwrap();
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    let (calls, ops) = expected(&connection);
    let mut calls: Vec<Row> = calls.into_iter().map(|call| (0, call.1, call.2, call.3, call.4)).collect();
    let mut ops: Vec<Row> = ops
        .into_iter()
        .map(|op| match copies.contains(&(op.0, op.3, op.4)) {
            true => (op.0, i64::MIN, String::new(), op.3, op.4),
            false => op,
        })
        .collect();
    calls.sort();
    ops.sort();
    let found = found(&tool);
    assert_eq!(found.0, calls);
    assert_eq!(found.1, ops);
    // TraceLens takes the time of the process for that of the trace.
    let all = || calls.iter().chain(&ops);
    let span = (all().map(|row| row.3).min().unwrap_or(0), all().map(|row| row.4).max().unwrap_or(0));
    assert_eq!((number(&tool["metadata"], "init_time"), number(&tool["metadata"], "fini_time")), span);
    let agents: BTreeSet<i64> =
        tool["agents"].as_array().unwrap().iter().map(|agent| number(&agent["id"], "handle")).collect();
    assert!(ops.iter().all(|op| agents.contains(&(op.0 + 1))));
}

#[test]
fn everything_of_real_traces_is_there() {
    let dir = Dir::new();
    for trace in [
        dir.fixture("matmul_result.rpd"),
        dir.unpacked("mytrace_raw.rpd"),
        dir.unpacked("mytrace_as_shipped.rpd"),
    ] {
        check(&dir, &trace);
    }
}

#[test]
fn everything_of_generated_traces_is_there() {
    for (seed, schema) in [(1, 2), (2, 3)] {
        let dir = Dir::new();
        let trace = generated(&dir, "t.rpd", seed, 300);
        dir.open(&trace).execute_batch("DELETE FROM rocpd_barrierop").unwrap();
        if schema == 3 {
            to_schema_3(&dir, &trace);
        }
        check(&dir, &trace);
    }
}

#[test]
fn whatever_the_calls_and_operations_they_are_there() {
    holds(any_calls(), |calls| {
        let dir = Dir::new();
        check(&dir, &write(&dir, &calls));
    });
}

/// A launch, a copy and a fill of GPU 1 below a marker, a call of HSA, a kernel that nothing launched and of which nothing is known.
const WORK: &str = "
    INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, 'hipLaunchKernel'), (4, 'KernelExecution'), (5, 'CopyHostToDevice'),
        (6, 'FillBuffer'), (7, 'Barrier'), (8, 'k'), (9, 'step'), (10, 'hsa_init'), (11, 'cudaMalloc');
    INSERT INTO rocpd_api VALUES (1, 7, 8, 100, 400, 2, 9), (2, 7, 8, 110, 200, 3, 1), (3, 7, 8, 210, 300, 3, 1), (4, 7, 9, 310, 320, 10, 1),
        (5, 7, 8, 330, 330, 2, 9), (6, 7, 8, 340, 350, 11, 1);
    INSERT INTO rocpd_kernelapi VALUES (2, '0x1f', 4, 3, 2, 64, 2, 1, 512, 16, '', '', '', 0, 8);
    INSERT INTO rocpd_copyapi VALUES (3, '0x0', 4096, 0, 0, 1, '', '', 0, 0, 1, 0);
    INSERT INTO rocpd_op VALUES (1, 1, 3, 0, '', 150, 160, 8, 4), (2, 1, 0, 0, '', 250, 258, 1, 5), (3, 1, 2, 0, '', 270, 280, 1, 6),
        (4, 1, 2, 0, '', 280, 380, 1, 7), (5, 0, 0, 0, '', 500, 510, 8, 4);
    INSERT INTO rocpd_barrierop (op_ptr_id, signalCount, aquireFence, releaseFence) VALUES (4, 1, '', '');
    INSERT INTO rocpd_api_ops VALUES (1, 2, 1), (2, 3, 2);
    INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::host', 'node7'), ('session::0::pid', '7'), ('session::0::command', './train'),
        ('gpu::1::name', 'MI300X');";

#[test]
fn records_have_what_tools_ask_for() {
    let dir = Dir::new();
    let tool = exported(&dir, &dir.trace("t.rpd", WORK), &[]);
    assert_eq!(
        tool["metadata"],
        json!({"pid": 7, "init_time": 100, "fini_time": 510, "node": {"hostname": "node7"}, "command": ["./train"]})
    );
    let dispatches = list(&tool, "kernel_dispatch");
    // The barrier is no dispatch; the fill is one.
    assert_eq!(dispatches.len(), 3);
    let launched = dispatches.iter().find(|dispatch| dispatch["thread_id"] == 8).unwrap();
    let info = json!({"size": 0, "agent_id": {"handle": 2}, "queue_id": {"handle": 3}, "kernel_id": launched["dispatch_info"]["kernel_id"],
        "dispatch_id": 1, "private_segment_size": 16, "group_segment_size": 512, "workgroup_size": {"x": 64, "y": 2, "z": 1},
        "grid_size": {"x": 256, "y": 6, "z": 2}});
    assert_eq!(launched["dispatch_info"], info);
    assert_eq!(
        (&launched["stream_id"]["handle"], &launched["correlation_id"]["internal"]),
        (&json!(31), &json!(2))
    );
    let copy = &list(&tool, "memory_copy")[0];
    assert_eq!(
        [
            &copy["bytes"],
            &copy["operation"],
            &copy["src_agent_id"]["handle"],
            &copy["dst_agent_id"]["handle"]
        ],
        [&json!(4096), &json!(2), &json!(0), &json!(2)]
    );
    let kinds = &tool["strings"]["buffer_records"];
    assert_eq!(kinds[5], json!({"kind": "HIP_RUNTIME_API", "operations": ["hipLaunchKernel", "cudaMalloc"]}));
    assert_eq!(kinds[1], json!({"kind": "HSA_CORE_API", "operations": ["hsa_init"]}));
    assert_eq!(
        tool["strings"]["marker_api"],
        json!([{"key": 1, "value": "step"}, {"key": 5, "value": "step"}])
    );
    let marks: Vec<i64> =
        list(&tool, "marker_api").iter().map(|marker| number(marker, "operation")).collect();
    assert_eq!(marks, [1, 0]);
    let names: Vec<(&Value, &Value)> =
        tool["agents"].as_array().unwrap().iter().map(|agent| (&agent["type"], &agent["name"])).collect();
    assert_eq!(names, [(&json!(1), &json!("")), (&json!(2), &json!("")), (&json!(2), &json!("MI300X"))]);
}

#[test]
fn several_processes_are_said_and_one_is_not() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 4, 30);
    dir.run(&["export", "rocprofv3", &trace]).expect(0).says(&["2 processes", "--session"]);
    let one = dir.run(&["export", "rocprofv3", "--session", "2", &trace]);
    assert!(one.expect(0).stderr.is_empty(), "{one}");
    let empty = exported(&dir, &dir.trace("empty.rpd", ""), &[]);
    assert_eq!(empty["metadata"]["pid"], 0);
}

/// The rows of a table of rocprofv3, without their header; none where it has no file.
fn table(dir: &Dir, begin: &str, table: &str) -> Vec<Vec<String>> {
    let Ok(text) = std::fs::read(dir.path(&format!("{begin}_{table}.csv"))) else { return Vec::new() };
    let rows = csv::Reader::from_reader(text.as_slice()).into_records();
    rows.map(|row| row.unwrap().iter().map(str::to_string).collect()).collect()
}

#[test]
fn tables_are_rocprofv3_s_bytes() {
    let dir = Dir::new();
    let rows = "INSERT INTO rocpd_string VALUES (2, 'KernelExecution'), (3, 'scale(float*, \"x\")'), (4, 'CopyHostToDevice'), (5, 'hipLaunchKernel'),
             (6, 'stream=0x1f | kernel=scale | grid=4,2,1 | workgroup=64,1,1 | shmem=513'), (7, 'UserMarker'), (8, '=step'), (9, 'hsa_amd_signal_create'), (10, 'ncclAllReduce'),
             (11, 'rocblas_sgemm'), (12, 'rocblas'), (13, 'blas'), (14, '__hipPushCallConfiguration');
         INSERT INTO rocpd_api VALUES (1, 7, 9, 100, 200, 5, 1), (2, 7, 9, 210, 260, 7, 8), (3, 7, 9, 300, 301, 9, 1), (4, 7, 9, 310, 330, 10, 1),
             (5, 7, 9, 340, 350, 11, 1), (6, 7, 9, 90, 95, 14, 1), (7, 7, 9, 400, 700, 5, 1);
         INSERT INTO ext_librarycall VALUES (4, 10, 13), (5, 12, 13);
         INSERT INTO rocpd_op VALUES (1, 0, 3, 1, '', 1000, 2000, 3, 2), (2, 0, 3, 2, '', 3000, 5000, 3, 2), (3, 0, 3, 3, '', 5000, 5100, 1, 4);
         INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (1, 1), (7, 2), (7, 3);
         INSERT INTO rocpd_metadata (tag, value) VALUES ('gpu::0::bdf', '0000:c3:00.0'), ('gpu::0::name', 'AMD Instinct MI210'), ('gpu::0::target', 'gfx90a');";
    let trace = dir.trace("t.rpd", &format!("{} {rows}", rpd_sql::ext::RECORDERS.concat()));
    dir.run(&["export", "rocprofv3-csv", &trace, "-o", "run"]).expect(0);
    let text = |table: &str| std::fs::read_to_string(dir.path(&format!("run_{table}.csv"))).unwrap();
    let kernels = text("kernel_trace");
    assert_eq!(
        kernels.lines().collect::<Vec<_>>(),
        [
            "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\",\"Correlation_Id\",\
             \"Start_Timestamp\",\"End_Timestamp\",\"LDS_Block_Size\",\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\
             \"Workgroup_Size_X\",\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"",
            "\"KERNEL_DISPATCH\",\"Agent 1\",3,0,9,1,1,\"scale(float*, \"\"x\"\")\",1,1000,2000,0,0,0,0,0,0,0,0,0,0,0",
            "\"KERNEL_DISPATCH\",\"Agent 1\",3,0,9,2,1,\"scale(float*, \"\"x\"\")\",7,3000,5000,0,0,0,0,0,0,0,0,0,0,0",
        ]
    );
    let statistics = "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\",\"MinNs\",\"MaxNs\",\"StdDev\"\n";
    let of_kernels = "2,3000,1500.000000,100.00,1000,2000,707.106781\n";
    assert_eq!(text("kernel_stats"), format!("{statistics}\"scale(float*, \"\"x\"\")\",{of_kernels}"));
    assert_eq!(
        text("domain_stats"),
        format!(
            "{statistics}\"KERNEL_DISPATCH\",2,3000,1500.000000,83.89,1000,2000,707.106781\n\
             \"HIP_API\",3,405,135.000000,11.33,5,300,150.582203\n\
             \"MEMORY_COPY\",1,100,100.000000,2.80,100,100,0.00000000e+00\n\
             \"MARKER_API\",1,50,50.000000,1.40,50,50,0.00000000e+00\n\
             \"RCCL_API\",1,20,20.000000,0.5593,20,20,0.00000000e+00\n\
             \"HSA_API\",1,1,1.000000,0.0280,1,1,0.00000000e+00\n"
        )
    );
    let api = "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n";
    assert_eq!(
        text("hip_api_trace"),
        format!(
            "{api}\"HIP_RUNTIME_API\",\"hipLaunchKernel\",7,9,1,100,200\n\
             \"HIP_COMPILER_API\",\"__hipPushCallConfiguration\",7,9,6,90,95\n\"HIP_RUNTIME_API\",\"hipLaunchKernel\",7,9,7,400,700\n"
        )
    );
    assert_eq!(
        text("hsa_api_trace"),
        format!("{api}\"HSA_AMD_EXT_API\",\"hsa_amd_signal_create\",7,9,3,300,301\n")
    );
    assert_eq!(text("rccl_api_trace"), format!("{api}\"RCCL_API\",\"ncclAllReduce\",7,9,4,310,330\n"));
    assert_eq!(text("marker_api_trace"), format!("{api}\"MARKER_CORE_API\",\"'=step\",7,9,2,210,260\n"));
    assert_eq!(
        text("memory_copy_trace").lines().nth(1),
        Some("\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_DEVICE\",0,\"Agent 0\",\"Agent 1\",7,5000,5100")
    );
    let agents = table(&dir, "run", "agent_info");
    assert_eq!((agents.len(), agents[0].len()), (2, 53));
    assert_eq!((&*agents[0][0], &*agents[0][2], &*agents[0][50]), ("0", "CPU", "CPU"));
    assert_eq!(
        [0, 2, 20, 21, 23, 49, 50, 51].map(|cell| &*agents[1][cell]),
        ["1", "GPU", "90010", "4098", "49920", "gfx90a", "AMD", "AMD Instinct MI210"]
    );
    // A file that is there stays, and no other is written; a table without rows has none.
    dir.write("part_kernel_trace.csv", "mine");
    let part = ["export", "rocprofv3-csv", &trace, "-o", "part"];
    dir.run(&part).expect(1).says(&["part_kernel_trace.csv: the file exists already", "--force"]);
    dir.run(&[&part[..], &["--tables", "kernel_stats,hsa_api_trace", "--end", "250"]].concat()).expect(0);
    dir.run(&[&part[..], &["--tables", "kernels"]].concat()).expect(2);
    dir.run(&["export", "rocprofv3-csv", &trace]).expect(2);
    let names: Vec<String> = dir.names().into_iter().filter(|name| name.starts_with("part")).collect();
    // A kernel is of the part in which its launch is; the call of HSA is later.
    assert_eq!(names, ["part_kernel_stats.csv", "part_kernel_trace.csv"]);
    assert_eq!(std::fs::read_to_string(dir.path("part_kernel_trace.csv")).unwrap(), "mine");
    // With --force too there is no file of a table without rows: what is there is of something else.
    let forced = ["--force", "--tables", "kernel_stats,hsa_api_trace", "--end", "250"];
    dir.write("part_hsa_api_trace.csv", "of another trace");
    dir.run(&[&part[..], &forced].concat()).expect(0).says(&["part_hsa_api_trace.csv stays as it was"]);
    let empty = dir.trace("empty.rpd", "");
    let none = dir.run(&["export", "rocprofv3-csv", &empty, "-o", "none"]);
    none.expect(0).says(&["holds no calls and no operations"]);
    assert_eq!(table(&dir, "none", "agent_info").len(), 1);
}

/// What the JSON has of the same trace.
#[test]
fn tables_have_the_records_of_the_json() {
    for seed in 0..8 {
        let dir = Dir::new();
        let trace = generated(&dir, "t.rpd", seed, 200);
        let part: &[&str] = if seed % 2 == 0 { &[] } else { &["--gpu", "0"] };
        let json = exported(&dir, &trace, part);
        dir.run(&[&["export", "rocprofv3-csv", &trace, "-o", "run"], part].concat()).expect(0);
        let numbers = |rows: Vec<Vec<String>>, columns: &[usize]| -> BTreeSet<Vec<i64>> {
            rows.iter()
                .map(|row| columns.iter().map(|column| row[*column].parse().unwrap()).collect())
                .collect()
        };
        let records = |kind: &str| -> BTreeSet<Vec<i64>> {
            let of = |record: &Value| {
                let times = ["start_timestamp", "end_timestamp"].map(|key| number(record, key));
                [record["correlation_id"]["internal"].as_i64().unwrap(), times[0], times[1]].to_vec()
            };
            list(&json, kind).iter().map(of).collect()
        };
        let dispatches = table(&dir, "run", "kernel_trace");
        assert_eq!(dispatches.len(), list(&json, "kernel_dispatch").len(), "{seed}");
        assert_eq!(numbers(dispatches, &[8, 9, 10]), records("kernel_dispatch"), "{seed}");
        assert_eq!(
            numbers(table(&dir, "run", "memory_copy_trace"), &[5, 6, 7]),
            records("memory_copy"),
            "{seed}"
        );
        assert_eq!(numbers(table(&dir, "run", "hsa_api_trace"), &[4, 5, 6]), records("hsa_api"), "{seed}");
        assert_eq!(
            numbers(table(&dir, "run", "marker_api_trace"), &[4, 5, 6]),
            records("marker_api"),
            "{seed}"
        );
    }
}
