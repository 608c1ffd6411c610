//! `rpd table` against rpd2table.py's own question, in SQL.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::generated::generated;
use crate::harness::Dir;

type Key = (String, i64, String);

/// Ranges, calls, total, min, max, average and share.
type Numbers = (u64, u64, u64, u64, u64, f64, f64);

fn report(dir: &Dir, arguments: &[&str]) -> Vec<Value> {
    let json = dir.run(&[&["table", "--json"], arguments].concat());
    serde_json::from_str(&json.expect(0).stdout).unwrap_or_else(|error| panic!("{error}: {json}"))
}

fn found(rows: &[Value]) -> BTreeMap<Key, Numbers> {
    let of = |row: &Value| {
        let text = |key: &str| row[key].as_str().unwrap().to_string();
        let number = |key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key}: {row}"));
        let key = (text("marker_name"), row["gpuid"].as_i64().unwrap(), text("kernel_name"));
        let numbers = (
            number("marker_count"),
            number("kernel_count"),
            number("total_dur"),
            number("min_dur"),
            number("max_dur"),
            row["avg_dur"].as_f64().unwrap(),
            row["kernel_percentage"].as_f64().unwrap(),
        );
        (key, numbers)
    };
    rows.iter().map(of).collect()
}

/// The join of the original: each call of the thread that starts in a range, with its operations. Sessions with equal pids and tids are
/// kept apart, barriers are no work, and each operation has one call.
fn in_sql(dir: &Dir, trace: &str, markers: &[&str]) -> BTreeMap<Key, Numbers> {
    let connection = dir.open(trace);
    let texts: Vec<String> =
        markers.iter().map(|marker| format!("'{}'", marker.replace('\'', "''"))).collect();
    let query = format!(
        r#"WITH marker AS (
             SELECT A.id, A.pid, A.tid, A.start, A."end", G.string AS name FROM rocpd_api A JOIN rocpd_string G ON G.id = A.args_id
             WHERE apiName_id IN (SELECT id FROM rocpd_string WHERE string = 'UserMarker') AND G.string IN ({})),
           launched AS (
             SELECT M.name, M.id AS marker, O.gpuId, coalesce(nullif(D.string, ''), T.string) AS kernel, O."end" - O.start AS duration
             FROM marker M JOIN rocpd_api B ON B.start BETWEEN M.start AND M."end" AND B.pid = M.pid AND B.tid = M.tid AND B.id >> 32 = M.id >> 32
             JOIN (SELECT op_id, min(api_id) AS api_id FROM rocpd_api_ops GROUP BY op_id) L ON L.api_id = B.id
             JOIN rocpd_op O ON O.id = L.op_id
             JOIN rocpd_string D ON D.id = O.description_id JOIN rocpd_string T ON T.id = O.opType_id
             WHERE O.id NOT IN (SELECT op_ptr_id FROM rocpd_barrierop))
           SELECT name, gpuId, kernel, count(DISTINCT marker), count(*), sum(duration), min(duration), max(duration), avg(duration),
             sum(duration) * 100.0 / sum(sum(duration)) OVER (PARTITION BY name, gpuId)
           FROM launched GROUP BY name, gpuId, kernel"#,
        texts.join(", ")
    );
    let mut rows = connection.prepare(&query).unwrap();
    let rows = rows.query_map([], |row| {
        let number = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
        Ok((
            (row.get(0)?, row.get(1)?, row.get(2)?),
            (number(3)?, number(4)?, number(5)?, number(6)?, number(7)?, row.get(8)?, row.get(9)?),
        ))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

fn assert_same(found: &BTreeMap<Key, Numbers>, expected: &BTreeMap<Key, Numbers>, what: &str) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{what}");
    for (key, a) in found {
        let b = &expected[key];
        assert_eq!((a.0, a.1, a.2, a.3, a.4), (b.0, b.1, b.2, b.3, b.4), "{what}: {key:?}");
        assert!((a.5 - b.5).abs() < 1e-3 && (a.6 - b.6).abs() < 1e-6, "{what}: {key:?} {a:?} {b:?}");
    }
}

#[test]
fn the_numbers_are_those_of_the_originals_question() {
    let dir = Dir::new();
    let real = dir.unpacked("mytrace_raw.rpd");
    let texts = "SELECT G.string FROM rocpd_api A JOIN rocpd_string G ON G.id = A.args_id
         JOIN rocpd_string N ON N.id = A.apiName_id
         WHERE N.string = 'UserMarker' AND G.string <> '' GROUP BY 1 ORDER BY count(*) DESC LIMIT 6";
    let mut traces = vec![real];
    for seed in 0..3 {
        traces.push(generated(&dir, &format!("{seed}.rpd"), seed, 300));
    }
    for trace in &traces {
        let markers: Vec<String> = {
            let connection = dir.open(trace);
            let mut texts = connection.prepare(texts).unwrap();
            texts.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        let markers: Vec<&str> = markers.iter().map(String::as_str).collect();
        assert!(markers.len() > 1, "{trace}");
        let expected = in_sql(&dir, trace, &markers);
        assert!(!expected.is_empty(), "{trace}");
        let rows = report(&dir, &[&[trace.as_str()], &markers[..]].concat());
        assert_same(&found(&rows), &expected, trace);
        assert_eq!(rows.len(), expected.len(), "{trace}");
    }
}

#[test]
fn without_a_marker_the_table_is_of_the_whole_trace() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let rows = report(&dir, &[&trace]);
    let top = dir.run(&["top", "--json", &trace]);
    let top: Vec<Value> = serde_json::from_str(&top.expect(0).stdout).unwrap();
    let sums: BTreeMap<&str, (u64, u64)> = top
        .iter()
        .map(|row| {
            let number = |key: &str| row[key].as_u64().unwrap();
            (row["name"].as_str().unwrap(), (number("calls"), number("total_ns")))
        })
        .collect();
    let mut of_table: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for row in &rows {
        assert_eq!((row["marker_name"].as_str(), row["marker_count"].as_u64()), (Some(""), Some(0)));
        let sums = of_table.entry(row["kernel_name"].as_str().unwrap()).or_default();
        sums.0 += row["kernel_count"].as_u64().unwrap();
        sums.1 += row["total_dur"].as_u64().unwrap();
    }
    assert_eq!(of_table, sums);
    let shares: f64 = rows.iter().map(|row| row["kernel_percentage"].as_f64().unwrap()).sum();
    assert!((shares - 100.0).abs() < 1e-6, "one GPU: {shares}");
}

/// Two ranges of one marker, one inside the other, ranges that overlap, an edge at a call's start, another session with equal ids.
#[test]
fn ranges_own_the_calls_that_start_in_them() {
    let dir = Dir::new();
    let rows = |offset: i64, shift: i64| {
        let mut sql = format!(
            "INSERT INTO rocpd_string VALUES ({o}+1, ''), ({o}+2, 'UserMarker'), ({o}+3, 'KernelExecution'), ({o}+4, 'k'),
               ({o}+5, 'step'), ({o}+6, 'other, step'), ({o}+7, 'launch');",
            o = offset
        );
        let mut call = |id: i64, times: (i64, i64), name: i64, args: i64| {
            sql.push_str(&format!(
                "INSERT INTO rocpd_api VALUES ({}, 7, 7, {}, {}, {}, {});",
                offset + id,
                times.0 + shift,
                times.1 + shift,
                offset + name,
                offset + args
            ));
        };
        call(1, (100, 200), 2, 5);
        call(2, (110, 150), 2, 5);
        call(3, (140, 300), 2, 6);
        for (id, start) in [(11, 100), (12, 120), (13, 150), (14, 200), (15, 201), (16, 301)] {
            call(id, (start, start + 1), 7, 1);
        }
        for id in 11..17 {
            sql.push_str(&format!(
                "INSERT INTO rocpd_op VALUES ({o}+{id}, 0, 0, 0, '', {}, {}, {o}+4, {o}+3);
                 INSERT INTO rocpd_api_ops VALUES ({o}+{id}, {o}+{id}, {o}+{id});",
                1000 + shift + 20 * id,
                1000 + shift + 20 * id + id,
                o = offset
            ));
        }
        sql
    };
    // The other session has equal process and thread ids, at the times of the first one's ranges.
    let trace = dir.trace("t.rpd", &(rows(0, 0) + &rows(1 << 32, 1)));
    let rows = report(&dir, &[&trace, "step", "other, step"]);
    let numbers =
        |row: &Value| ["marker_count", "kernel_count", "total_dur"].map(|key| row[key].as_u64().unwrap());
    // A step has the calls 11 to 14, the one inside it 12 and 13; in each session.
    assert_eq!(numbers(&rows[0]), [4, 12, 2 * (11 + 12 + 13 + 14 + 12 + 13)]);
    assert_eq!(numbers(&rows[1]), [2, 6, 2 * (13 + 14 + 15)]);
    assert_eq!(rows.len(), 2);
    let csv = dir.run(&["table", "--csv", &trace, "step", "step", "no such"]);
    assert_eq!(
        csv.expect(0).stdout,
        "marker_name,gpuid,kernel_name,marker_count,kernel_count,total_dur,avg_dur,min_dur,max_dur,kernel_percentage\n\
         step,0,k,4,12,150,12.5,11,14,100.0\n"
    );
    csv.says(&["no marker has the text no such"]);
    dir.run(&["table", &trace, "no such"]).expect(1).says(&["no marker has the text no such", "rpd markers"]);
    let part = report(&dir, &[&trace, "step", "--session", "1"]);
    assert_eq!(numbers(&part[0]), [2, 6, 75]);
}
