//! What panes ask: it reads only, says the numbers of the reports, and no more than is asked.

use serde_json::Value;

use super::*;

fn worked() -> Tested {
    let directory = TempDir::new().unwrap();
    let file = trace(directory.path());
    Tested::of(directory, &[file])
}

/// A trace in which a marker launches on two streams and a graph launches two kernels; memory is allocated, copied to and freed.
fn trace(directory: &Path) -> std::path::PathBuf {
    let file = directory.join("it's a trace.rpd");
    rpd_schema::create(&file).unwrap();
    let mut rows = String::from("PRAGMA foreign_keys = OFF;");
    let texts = [
        "",
        "KernelExecution",
        "UserMarker",
        "hipLaunchKernel",
        "hipGraphLaunch",
        "hipMalloc",
        "hipFree",
        "hipMemcpy",
        "step <b>1</b>",
        "saxpy",
        "ptr = 0x1000 | size = 4096",
        "ptr = 0x1000",
        "ptr = 0x9000 | size = 1024",
        "CopyHostToDevice",
    ];
    for (id, text) in texts.iter().enumerate() {
        rows += &format!(
            "INSERT INTO rocpd_string (id, string) VALUES ({}, '{}');",
            id + 1,
            text.replace('\'', "''")
        );
    }
    let call = |id: u32, start: u32, end: u32, name: u32, text: u32| {
        format!(
            "INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES ({id}, 7, 7, {start}, {end}, {name}, {text});"
        )
    };
    rows += &call(1, 1000, 9000, 3, 9);
    rows += &call(2, 1100, 1200, 6, 11);
    rows += &call(3, 1300, 1400, 8, 1);
    rows += &call(4, 2000, 2100, 4, 1);
    rows += &call(5, 2200, 2300, 4, 1);
    rows += &call(6, 3000, 3100, 5, 1);
    rows += &call(7, 8000, 8100, 7, 12);
    rows += &call(8, 9500, 9600, 6, 13);
    let op = |id: u32, queue: u32, start: u32, end: u32, name: u32, kind: u32| {
        format!("INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
                 VALUES ({id}, 0, {queue}, {id}, '', {start}, {end}, {name}, {kind});")
    };
    rows += &op(1, 0, 1500, 1900, 1, 14);
    rows += &op(2, 0, 2500, 4500, 10, 2);
    rows += &op(3, 0, 2600, 3600, 10, 2);
    rows += &op(4, 0, 5000, 5500, 10, 2);
    rows += &op(5, 0, 6000, 12000, 10, 2);
    for (call, op) in [(3, 1), (4, 2), (5, 3), (6, 4), (6, 5)] {
        rows += &format!("INSERT INTO rocpd_api_ops (api_id, op_id) VALUES ({call}, {op});");
    }
    for (call, stream) in [(4, "0x1"), (5, "0x2")] {
        rows += &format!(
            "INSERT INTO rocpd_kernelapi (api_ptr_id, stream, gridX, gridY, gridZ, workgroupX, workgroupY, workgroupZ, groupSegmentSize, privateSegmentSize, kernelArgAddress, aquireFence, releaseFence, codeObject_id, kernelName_id)
             VALUES ({call}, '{stream}', 1, 1, 1, 64, 1, 1, 0, 0, '', '', '', 0, 10);"
        );
    }
    rows += "INSERT INTO rocpd_copyapi (api_ptr_id, stream, size, width, height, kind, dst, src, dstDevice, srcDevice, sync, pinned)
             VALUES (3, '0x1', 256, 0, 0, 1, '0x1040', '0x77', 0, 0, 1, 0);";
    Connection::open(&file).unwrap().execute_batch(&rows).unwrap();
    file
}

fn asked(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

impl Tested {
    fn query(&self, question: &str) -> (StatusCode, Value) {
        let (status, _, body) =
            self.ask(Method::GET, &self.path(&format!("query?q={}", asked(question))), &[]);
        (status, serde_json::from_slice(&body).unwrap())
    }
}

#[test]
fn a_question_may_only_read() {
    let tested = worked();
    let before = fs::read(tested.directory.path().join("it's a trace.rpd")).unwrap();
    for question in [
        "delete from rocpd_op",
        "create table t (a)",
        "create temp table t (a)",
        "attach 'other.rpd' as other",
        "pragma journal_mode = wal",
        "pragma writable_schema = 1",
        "select load_extension('x')",
        "select writefile('x', 'y')",
        "select readfile('/etc/passwd')",
        "begin",
        "select 1; delete from rocpd_op",
        "vacuum into 'x'",
        "select ?1",
        "",
        "no_such_question",
    ] {
        let (status, said) = tested.query(question);
        assert_eq!(status, 400, "{question}: {said}");
        assert!(!said["error"].as_str().unwrap().is_empty(), "{question}");
    }
    assert_eq!(fs::read(tested.directory.path().join("it's a trace.rpd")).unwrap(), before);
    assert_eq!(fs::read_dir(tested.directory.path()).unwrap().count(), 1);
}

#[test]
fn a_question_that_takes_too_long_is_ended() {
    let endless = "with recursive n(n) as (select 1 union all select n + 1 from n) select count(*) from n";
    let (status, said) = worked().query(endless);
    assert_eq!(status, 400);
    assert_eq!(said["error"], "the query was ended after 10 s");
}

#[test]
fn what_is_wrong_with_a_question_is_said_without_a_command() {
    let tested = worked();
    for (question, expected) in [
        ("select zzz from op", "there is no column zzz; pragma table_info(op) lists those of the table op"),
        ("select 1; select 2", "there is more than one statement"),
        ("select * from before.op", "there is no table before.op: the query compares two traces"),
    ] {
        assert_eq!(tested.query(question).1["error"], expected);
    }
    assert_eq!(tested.query("pragma table_info(op)").0, 200);
}

#[test]
fn rows_of_an_answer_are_events_where_they_have_times_or_ids() {
    let tested = worked();
    let (_, found) = tested.query(
        "select id, start, \"end\", 'x' as name, null as lacking, 0.5 as half from rocpd_op where id = 2",
    );
    assert_eq!(found["rows"], serde_json::json!([["2", "2500", "4500", "x", null, "0.5"]]));
    assert_eq!(found["is_number"], serde_json::json!([true, true, true, false, false, true]));
    let event = &found["events"][0];
    assert_eq!(
        (&event["start_ns"], &event["duration_ns"], &event["name"]),
        (&1500.into(), &2000.into(), &"x".into())
    );
    let brief = tested.json(&format!("event?event={}&brief=true", event["event"]));
    assert_eq!((&brief["id"], &brief["is_op"]), (&"2".into(), &true.into()));
    // An id alone is that of what is read; where both are, of nothing.
    let (_, found) = tested.query("select id from rocpd_api where id = 2");
    let call = tested.json(&format!("event?event={}&brief=true", found["events"][0]["event"]));
    assert_eq!((&call["id"], &call["is_op"]), (&"2".into(), &false.into()));
    assert_eq!(found["events"][0]["name"], "hipMalloc");
    let (_, found) = tested.query("select O.id from rocpd_op O join rocpd_api C on C.id = O.id");
    assert_eq!(found["events"], serde_json::json!([]));
    // Times that are not the trace's are none.
    let (_, found) = tested.query(
        "select -5 as start, 7 as \"end\" union all select 99999999, 99999999 union all select 3000, 2000",
    );
    assert_eq!((found["rows"].as_array().unwrap().len(), &found["events"]), (3, &serde_json::json!([])));
    let many =
        "with recursive n(n) as (select 1 union all select n + 1 from n where n < 20000) select n from n";
    let (_, found) = tested.query(many);
    assert_eq!((found["rows"].as_array().unwrap().len(), &found["is_cut"]), (10_000, &true.into()));
    let ready = tested.json("queries");
    for one in ready.as_array().unwrap() {
        let (status, said) = tested.query(one["name"].as_str().unwrap());
        assert_eq!(status, 200, "{}: {said}", one["name"]);
    }
}

#[test]
fn reports_are_those_of_the_library_and_name_their_command() {
    let tested = worked();
    let gaps = tested.json("report?which=gaps");
    assert_eq!(gaps["command"], "rpd gaps 'it'\\''s a trace.rpd'");
    // 1900 to 2500, 4500 to 5000, 5500 to 6000.
    assert_eq!((&gaps["report"][0]["idle_ns"], &gaps["report"][0]["gaps"]), (&1600.into(), &3.into()));
    // Times of the trace's clock are since its begin.
    assert_eq!(gaps["report"][0]["longest"][0]["start_ns"], 900);
    let part = tested.json("report?which=gaps&from=900&to=2001");
    assert_eq!(part["command"], "rpd gaps --in 1900..3000 'it'\\''s a trace.rpd'");
    assert_eq!(part["report"][0]["operations"], 4);
    let memory = tested.json("report?which=memory");
    assert_eq!(
        (&memory["report"][0]["peak_bytes"], &memory["report"][0]["left_bytes"]),
        (&4096.into(), &1024.into())
    );
    assert_eq!(memory["report"][0]["peak_ns"], 200);
    assert_eq!(tested.json("report?which=markers")["report"]["nodes"][0]["operations"], 5);
    assert_eq!(tested.json("report?which=copies")["report"].as_array().unwrap().len(), 1);
    assert_eq!(tested.json("report?which=queues")["report"][0]["operations"], 5);
    assert!(tested.json("report?which=sessions")["report"]["operations"][0]["count"].is_u64());
    for pass in ["graphs", "operators"] {
        let missing = tested.json(&format!("report?which={pass}"));
        assert!(missing["missing"].as_str().unwrap().contains("adds them to the trace"), "{missing}");
    }
    assert_eq!(tested.get(&tested.path("report?which=passwords"), &[]), 400);
    assert_eq!(tested.get(&tested.path("report"), &[]), 400);
}

#[test]
fn the_tree_of_calls_is_that_of_the_export() {
    let tested = worked();
    let tree = tested.json("tree?of=gpu");
    assert_eq!(tree["total_ns"], 400 + 2000 + 1000 + 500 + 6000);
    assert_eq!(tree["names"][tree["nodes"][0]["name"].as_u64().unwrap() as usize], "step <b>1</b>");
    let cpu = tested.json("tree?of=cpu&from=0&to=1000");
    assert_eq!(cpu["command"], "rpd export collapsed --time cpu --in 1000..1999 'it'\\''s a trace.rpd'");
    assert_eq!(tested.json("tree?of=cpu&from=500000&to=600000")["nodes"], serde_json::json!([]));
}

#[test]
fn rows_are_worked_out_when_they_are_asked_for() {
    let tested = worked();
    let labels = |what: &str| -> Vec<(String, String, u64)> {
        let groups = tested.json(&format!("derive?what={what}"));
        let tracks = groups.as_array().unwrap().iter().flat_map(|group| {
            group["tracks"].as_array().unwrap().iter().map(|track| {
                (
                    group["key"].as_str().unwrap().into(),
                    track["label"].as_str().unwrap().into(),
                    track["events"].as_u64().unwrap(),
                )
            })
        });
        tracks.collect()
    };
    let of = |group: &str, label: &str, events| (group.to_string(), label.to_string(), events);
    assert_eq!(labels("streams"), [of("g0", "stream 0x1", 2), of("g0", "stream 0x2", 1)]);
    assert_eq!(labels("markers"), [of("g0", "markers", 1)]);
    assert_eq!(labels("graphs"), [of("g0", "graph launches", 1)]);
    assert_eq!(labels("memory"), [of("p7.0", "GPU memory, each", 2)]);
    // From the first start to the last end of what was launched inside.
    let span = |what: &str, at: u64| {
        let row = tested.json(&format!("derive?what={what}"))[0]["tracks"][0]["rows"][0].as_u64().unwrap();
        let span = tested.json(&format!("span?row={row}&at={at}&near=0"));
        (span["start_ns"].as_u64().unwrap(), span["duration_ns"].as_u64().unwrap(), span["bytes"].as_u64())
    };
    assert_eq!(span("markers", 600), (500, 10_500, None));
    assert_eq!(span("graphs", 4600), (4000, 7000, None));
    assert_eq!(span("memory", 300), (200, 6800, Some(4096)));
    let row = tested.json("derive?what=memory")[0]["counters"][0].clone();
    assert_eq!((&row["greatest"], &row["least"]), (&4096.0.into(), &0.0.into()));
    let value = |at: u64| {
        tested.json(&format!("value?row={}&at={at}&from={at}&to={at}", row["row"]))["held"]["value"].clone()
    };
    assert_eq!((value(5000), value(7500), value(9000)), ("4096".into(), "0".into(), "1024".into()));
    // 256 bytes in 400 ns.
    let copies = tested.json("derive?what=bandwidth")[0]["counters"][0].clone();
    assert_eq!((&copies["label"], &copies["greatest"]), (&"copy bandwidth".into(), &640_000_000.0.into()));
    // The call says what became of it.
    let call = tested.json("event?call=2");
    let memory = &call["memory"];
    assert_eq!(
        (&memory["bytes"], &memory["until_ns"], &memory["all_uses"]),
        (&4096.into(), &7000.into(), &1.into())
    );
    assert_eq!(memory["freed_by"]["start_ns"], 7000);
    assert_eq!(tested.json("event?call=8")["memory"]["until_ns"], Value::Null);
    assert_eq!(tested.json("event?call=3")["memory"], Value::Null);
    assert_eq!(tested.get(&tested.path("derive?what=all"), &[]), 400);
    assert_eq!(tested.get(&tested.path("span?row=0&at=0&near=0"), &[]), 404);
    assert_eq!(tested.get(&tested.path("span?row=4294967295&at=0&near=0"), &[]), 404);
}

#[test]
fn events_are_listed_one_by_one_in_the_order_that_is_asked_for() {
    let tested = worked();
    let of = |question: &str, column: &str| tested.json(&format!("events?{question}"))[column].clone();
    assert_eq!(
        of("from=0&to=20000&sort=operations&ascending=true", "id"),
        serde_json::json!(["1", "2", "3", "4", "5"])
    );
    assert_eq!(
        of("from=0&to=20000&sort=operations&order=duration", "id"),
        serde_json::json!(["5", "2", "3", "4", "1"])
    );
    assert_eq!(of("from=900&to=1600&sort=operations&q=saxpy", "start_ns"), serde_json::json!([1500]));
    assert_eq!(
        of("from=1600&to=1601&sort=operations&ascending=true", "duration_ns"),
        serde_json::json!([2000, 1000])
    );
    assert_eq!(of("from=0&to=20000", "all"), 13);
    assert_eq!(tested.get(&tested.path("events?from=0&to=1&order=none"), &[]), 400);
}

#[test]
fn statistics_say_how_many_run_at_once_and_how_long_they_are() {
    let tested = worked();
    let found = tested.json("statistics?from=0&to=20000&sort=operations&q=saxpy");
    // 2000, 1000, 500 and 6000 ns; the second runs inside of the first.
    assert_eq!((&found["busy_ns"], &found["most_at_once"]), (&8500.into(), &2.into()));
    assert!((found["concurrency"].as_f64().unwrap() - 9500.0 / 8500.0).abs() < 1e-9);
    let bins: Vec<(u64, u64)> = found["histogram"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bin| (bin["from_ns"].as_u64().unwrap(), bin["count"].as_u64().unwrap()))
        .collect();
    assert_eq!(bins, [(500, 1), (1000, 1), (2000, 1), (5000, 1)]);
    // Only what is inside of the time runs at once there.
    let part = tested.json("statistics?from=1500&to=1600&sort=operations&q=saxpy");
    assert_eq!((&part["concurrency"], &part["most_at_once"]), (&1.0.into(), &1.into()));
}

#[test]
fn code_that_is_not_there_is_said() {
    let tested = worked();
    let code = tested.json("code?name=0");
    assert_eq!((&code["builds"], &code["blocks"]), (&serde_json::json!([]), &Value::Null));
    assert!(!code["missing"].as_array().unwrap().is_empty());
    assert_eq!(tested.json("code?name=99999")["facts"], serde_json::json!([]));
}

#[test]
fn rooflines_are_of_peaks_that_are_some() {
    let tested = worked();
    let found = tested.json("roofline?name=0&gflops=500&gbytes=0.5");
    assert_eq!(found["kernels"], serde_json::json!([]), "no blocks were counted");
    let command = found["command"].as_str().unwrap();
    assert!(command.starts_with("rpd blocks --roofline --peak-gflops 500 --peak-gbs 0.5 "), "{command}");
    let command = tested.json("roofline?name=0")["command"].clone();
    assert!(command.as_str().unwrap().starts_with("rpd blocks --roofline '"), "{command}");
    for wrong in ["gflops=0", "gbytes=-1", "gflops=NaN", "gbytes=inf", "gflops=much", "gflops="] {
        assert_eq!(tested.get(&tested.path(&format!("roofline?name=0&{wrong}")), &[]), 400, "{wrong}");
    }
}

#[test]
fn of_two_traces_each_is_asked_by_its_number() {
    let directory = TempDir::new().unwrap();
    let one = trace(directory.path());
    let other = directory.path().join("later.rpd");
    fs::copy(&one, &other).unwrap();
    let later = "PRAGMA foreign_keys = OFF; UPDATE rocpd_api SET start = start + 1000000, \"end\" = \"end\" + 1000000;
         UPDATE rocpd_op SET start = start + 1000000, \"end\" = \"end\" + 1000000; DELETE FROM rocpd_op WHERE id = 5;";
    Connection::open(&other).unwrap().execute_batch(later).unwrap();
    let tested = Tested::of(directory, &[one, other]);
    let question = asked("select id, start, \"end\" from rocpd_op where id = 2");
    // The second lies where it was laid, and what was worked out goes with it.
    for shift in [0, 250] {
        tested.json(&format!("align?by=hand&ns={shift}"));
        for (source, start) in [(0, 1500), (1, 1500 + shift)] {
            let found = tested.json(&format!("query?q={question}&source={source}"));
            assert_eq!(found["events"][0]["start_ns"], start);
            let event = tested.json(&format!("event?event={}&brief=true", found["events"][0]["event"]));
            assert_eq!((&event["source"], &event["start_ns"]), (&source.into(), &start.into()));
        }
        let gaps = tested.json("report?which=gaps&source=1");
        assert_eq!(
            (&gaps["command"], &gaps["report"][0]["operations"]),
            (&"rpd gaps later.rpd".into(), &4.into())
        );
        assert_eq!(gaps["report"][0]["longest"][0]["start_ns"], 900 + shift);
        let part = tested.json(&format!("tree?of=cpu&source=1&from={shift}&to={}", shift + 1000));
        assert_eq!(part["command"], "rpd export collapsed --time cpu --in 1001000..1001999 later.rpd");
        let groups = tested.json("derive?what=memory");
        let keys: Vec<&str> =
            groups.as_array().unwrap().iter().map(|group| group["key"].as_str().unwrap()).collect();
        assert_eq!(keys, ["p7.0", "b.p7.0"]);
        let row = &groups[1]["tracks"][0]["rows"][0];
        let span = tested.json(&format!("span?row={row}&at={}&near=0", 300 + shift));
        assert_eq!((&span["start_ns"], &span["duration_ns"]), (&(200 + shift).into(), &6800.into()));
        assert_eq!(tested.json("event?call=2&source=1")["memory"]["until_ns"], 7000 + shift);
        let streams = tested.json("derive?what=streams");
        let of: Vec<&str> =
            streams.as_array().unwrap().iter().map(|group| group["key"].as_str().unwrap()).collect();
        assert_eq!(of, ["b.g0", "g0"]);
    }
    assert_eq!(tested.get(&tested.path(&format!("query?q={question}&source=2")), &[]), 404);
}

#[test]
fn a_trace_that_is_recorded_is_not_read_for_panes() {
    let directory = TempDir::new().unwrap();
    let file = trace(directory.path());
    let tested = Tested::with(directory, &[file], true);
    for question in [
        "query?q=select+1",
        "report?which=gaps",
        "tree?of=cpu",
        "code?name=0",
        "roofline?name=0",
        "derive?what=markers",
    ] {
        let (status, _, body) = tested.ask(Method::GET, &tested.path(question), &[]);
        assert_eq!(status, 409, "{question}");
        assert!(String::from_utf8_lossy(&body).contains("without --live"), "{question}");
    }
    assert_eq!(tested.json("event?call=2")["id"], "2");
}
