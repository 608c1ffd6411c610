//! What is found and counted: hits of a search, events of a selection, operations under a marker.

use rusqlite::Connection;
use serde_json::json;

use super::*;

/// A server of traces with these rows; texts 1 to 4 are an empty one, a type of operations, and names.
fn served(rows: &[&str], is_live: bool) -> Tested {
    let directory = TempDir::new().unwrap();
    let files: Vec<_> = rows
        .iter()
        .enumerate()
        .map(|(number, rows)| {
            let file = directory.path().join(format!("{number}.rpd"));
            rpd_schema::create(&file).unwrap();
            let texts = "(1, ''), (2, 'KernelExecution'), (3, 'gemm'), (4, 'hipMalloc'), (5, 'UserMarker'), (6, 'size = 64 | tag = Needle42'), (7, 'size = 64')";
            let insert = format!("PRAGMA foreign_keys = OFF; BEGIN; INSERT INTO rocpd_string (id, string) VALUES {texts}; {rows}; COMMIT;");
            Connection::open(&file).unwrap().execute_batch(&insert).unwrap();
            file
        })
        .collect();
    Tested::with(directory, &files, is_live)
}

/// Operations 1 to `count` of queue 0 of GPU 0: `start` and `end` are SQL of their number n.
fn ops(count: u32, start: &str, end: &str) -> String {
    format!(
        "WITH RECURSIVE N(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM N WHERE n < {count})
         INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
         SELECT n, 0, 0, 0, '', {start}, {end}, 3, 2 FROM N"
    )
}

#[test]
fn hits_behind_those_of_the_list_are_reached_from_where_one_is() {
    let tested = served(&[&ops(2500, "n * 1000", "n * 1000 + 10")], false);
    let found = tested.json("search?q=gemm");
    assert_eq!((&found["count"], found["hits"].as_array().unwrap().len()), (&json!(2500), 2000));
    let hit = |whence: &str| {
        let found = tested.json(&format!("hit?q=gemm&{whence}"));
        let id = tested.json(&format!("event?event={}&brief=true", found["event"]))["id"].clone();
        assert_eq!(found["of"], 2500);
        assert_eq!(id, found["place"].to_string());
        id.as_str().unwrap().parse::<u32>().unwrap()
    };
    let event = |id: u32| tested.json(&format!("event?op={id}"))["event"].clone();
    assert_eq!(hit(&format!("after={}", event(2000))), 2001);
    assert_eq!(hit(&format!("after={}&back=true", event(2400))), 2399);
    // Behind the last comes the first, and in front of it the last.
    assert_eq!(
        (hit(&format!("after={}", event(2500))), hit(&format!("after={}&back=true", event(1)))),
        (1, 2500)
    );
    // The axis begins with the first.
    assert_eq!((hit("at=2200000"), hit("at=2200000&back=true"), hit("at=0&back=true")), (2201, 2200, 2500));
}

#[test]
fn a_list_of_events_has_the_first_of_all_in_the_order_that_is_asked_for() {
    let tested =
        served(&[&ops(12_003, "n * 1000", "n * 1000 + iif(n = 12003, 90000000, 10 + n % 7)")], false);
    let listed = tested.json("events?from=0&to=999999999999&order=duration");
    assert_eq!((&listed["all"], listed["event"].as_array().unwrap().len()), (&json!(12_003), 10_000));
    assert_eq!((&listed["id"][0], &listed["duration_ns"][0]), (&json!("12003"), &json!(90_000_000)));
    assert_eq!(tested.json("events?from=0&to=999999999999&order=start")["id"][0], "12003");
    assert_eq!(tested.json("events?from=0&to=999999999999&order=id&ascending=true")["id"][0], "1");
}

#[test]
fn a_table_has_the_first_names_and_a_file_all() {
    let names = "WITH RECURSIVE N(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM N WHERE n < 600)
         INSERT INTO rocpd_string (id, string) SELECT 100 + n, 'name ' || n FROM N; UPDATE rocpd_op SET description_id = 100 + id";
    let tested = served(&[&format!("{}; {names}", ops(600, "n * 1000", "n * 1000 + n"))], false);
    let shown = |more: &str| {
        let found = tested.json(&format!("statistics?from=0&to=999999999{more}"));
        assert_eq!(found["all_names"], 600);
        found["names"].as_array().unwrap().len()
    };
    assert_eq!((shown(""), shown("&all=true")), (500, 600));
}

#[test]
fn what_found_no_row_is_counted_with_all_rows_of_its_track() {
    let tested = served(&[&ops(300, "n", "100000 - n")], false);
    let tracks = tested.json("trace")["groups"][0]["tracks"].clone();
    let rows: Vec<String> = tracks[0]["rows"].as_array().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!((rows.len(), &tracks[0]["not_shown"]), (255, &json!(45)));
    let count = |rows: &[String]| {
        let rows = rows.join(",");
        let counts = ["statistics", "events"]
            .map(|what| tested.json(&format!("{what}?from=0&to=99999999&rows={rows}")));
        assert_eq!(counts[0]["count"], counts[1]["all"]);
        counts[0]["count"].clone()
    };
    assert_eq!((count(&rows), count(&rows[..254]), count(&rows[..1])), (json!(300), json!(254), json!(1)));
}

#[test]
fn each_of_two_traces_is_counted_alone() {
    let tested =
        served(&[&ops(10, "n * 1000", "n * 1000 + 10"), &ops(4, "n * 1000", "n * 1000 + 30")], false);
    let all = tested.json("statistics?from=0&to=99999999");
    assert_eq!(all["count"], 14);
    for (source, count, total) in [(0, 10, 100), (1, 4, 120)] {
        let of = tested.json(&format!("statistics?from=0&to=99999999&source={source}"));
        assert_eq!((&of["count"], &of["total_ns"]), (&json!(count), &json!(total)));
        assert_eq!(tested.json(&format!("events?from=0&to=99999999&source={source}"))["all"], count);
        let name = &of["names"][0]["name"];
        assert_eq!(tested.json(&format!("next?from=0&to=99999999&source={source}&name={name}"))["of"], count);
    }
}

const CALLS: &str = "INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES
     (1, 1, 1, 1000, 1100, 4, 6), (2, 1, 1, 1200, 1300, 4, 7), (3, 1, 2, 1400, 1500, 4, 6), (4, 1, 2, 1600, 1700, 5, 6)";

#[test]
fn a_search_for_arguments_finds_the_calls_that_have_them() {
    let tested = served(&[CALLS, CALLS], false);
    let found = tested.json("search?q=arg:needle42");
    // A marker's arguments are its name.
    assert_eq!((&found["count"], found["names"].as_array().unwrap().len()), (&json!(4), 1));
    assert!(found["bits"].is_string(), "others have that name too");
    let ids: Vec<_> = found["hits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| tested.json(&format!("event?event={}", hit["event"]))["id"].clone())
        .collect();
    assert_eq!(ids, ["1", "1", "3", "3"]);
    let count = |q: &str| tested.json(&format!("search?q={q}"))["count"].as_u64().unwrap();
    assert_eq!((count("arg:needle42%20arg:64"), count("arg:size"), count("arg:needle42%20gemm")), (4, 6, 0));
    assert_eq!((count("arg:nothing"), count("hipMalloc"), count("needle42")), (0, 6, 2));
    assert_eq!(tested.json("hit?q=arg:needle42&at=300")["place"], 3);
    // A recorder would have to wait.
    let live = served(&[CALLS], true);
    let (status, _, body) = live.ask(Method::GET, &live.path("search?q=arg:needle42"), &[]);
    assert_eq!(status, 400);
    assert!(String::from_utf8_lossy(&body).contains("start rpd view without --live"));
    assert_eq!(live.json("search?q=hipMalloc")["count"], 3);
}

#[test]
fn a_marker_leads_to_what_the_calls_inside_of_it_launched() {
    // Markers of thread 1 from 2000 to 2500 and inside of it; thread 2 launches at the same time.
    let rows = "WITH RECURSIVE N(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM N WHERE n < 3000)
         INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) SELECT n, 1, 1 + n % 2, n * 10, n * 10 + 5, 4, 1 FROM N;
         INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES
             (5001, 1, 1, 2003, 26004, 5, 7), (5002, 1, 1, 2100, 2300, 5, 6), (5003, 1, 1, 2003, 2004, 5, 1);
         INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
             SELECT id, 0, id % 3, 0, '', start + 40 + id % 17, start + 90 + id % 23, 3, 2 FROM rocpd_api WHERE id < 5000;
         INSERT INTO rocpd_api_ops (api_id, op_id) SELECT id, id FROM rocpd_op";
    let tested = served(&[rows], false);
    let sql = Connection::open(tested.directory.path().join("0.rpd")).unwrap();
    for marker in [5001, 5002] {
        let (count, first, last, sum): (i64, i64, i64, i64) = sql
            .query_row(
                "SELECT count(*), min(O.start), max(O.\"end\"), sum(O.\"end\" - O.start) FROM rocpd_api M
                 JOIN rocpd_api A ON A.pid = M.pid AND A.tid = M.tid AND A.start >= M.start AND A.\"end\" <= M.\"end\"
                 JOIN rocpd_api_ops L ON L.api_id = A.id JOIN rocpd_op O ON O.id = L.op_id WHERE M.id = ?1",
                [marker],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
            )
            .unwrap();
        let found = tested.json(&format!("event?call={marker}"));
        // The axis begins with the first call.
        assert_eq!(found["under"], json!({ "start_ns": first - 10, "end_ns": last - 10, "total_ns": sum }));
        assert_eq!(
            (&found["all_links"], found["links"].as_array().unwrap().len() as i64),
            (&json!(count), count.min(1000))
        );
        assert!(count > if marker == 5001 { 1000 } else { 9 });
        assert_eq!(found["links"][0]["start_ns"], first - 10);
    }
    let none = tested.json("event?call=5003");
    assert_eq!((&none["under"], &none["all_links"]), (&json!(null), &json!(0)));
    assert_eq!(tested.json("event?call=7")["under"], json!(null));
}
