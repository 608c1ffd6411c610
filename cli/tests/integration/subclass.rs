//! `rpd subclass`: arguments as columns.

use rusqlite::Connection;

use crate::harness::Dir;

/// Calls with arguments in both spellings, one without, and ops with arguments in their description.
const ROWS: &str = r#"
    INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipMalloc'), (3, 'hipFree'), (4, 'ptr=0x10 | size=0x20'),
        (5, 'ptr = 0x10 | Size = 3'), (6, 'other'), (7, 'note | ptr=0x30 | q"x=y | api_ptr_id=9 | s_api=z'), (8, 'Io'),
        (9, 'bytes = 12 | file = a');
    INSERT INTO rocpd_api VALUES (1, 10, 11, 100, 200, 2, 4), (2, 10, 11, 300, 400, 3, 5), (3, 10, 11, 500, 600, 6, 4),
        (4, 10, 11, 700, 800, 2, 1), (4294967301, 10, 11, 900, 1000, 2, 7);
    INSERT INTO rocpd_op VALUES (1, 0, 0, 1, '', 100, 200, 9, 8), (2, 0, 0, 1, '', 100, 200, 9, 6);"#;

/// All rows of a query, their values as text joined by a blank.
fn rows(trace: &Connection, query: &str) -> Vec<String> {
    let mut query = trace.prepare(query).unwrap();
    let columns = query.column_count();
    let rows = query.query_map([], |row| {
        let cells = (0..columns).map(|at| match row.get_ref(at).unwrap() {
            rusqlite::types::ValueRef::Integer(number) => number.to_string(),
            other => format!("'{}'", other.as_str().unwrap()),
        });
        Ok(cells.collect::<Vec<_>>().join(" "))
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn arguments_become_columns() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", ROWS);
    let made =
        dir.run(&["subclass", "--base", "api", "--name", "mem", "--apis", "hipMalloc,hipFree", &trace]);
    made.expect(0).says(&["t.rpd", "rocpd_memapi", "4 rows", "3 arguments: ptr, size, q\"x"]);
    let file = dir.open(&trace);
    assert_eq!(
        rows(&file, "SELECT * FROM rocpd_memapi"),
        ["1 '0x10' '0x20' ''", "2 '0x10' '3' ''", "4 '' '' ''", "4294967301 '0x30' '' 'y'"]
    );
    assert_eq!(
        rows(&file, "SELECT * FROM memapi WHERE id = 2"),
        ["2 10 11 300 400 'hipFree' 'ptr = 0x10 | Size = 3' 2 '0x10' '3' ''"]
    );
    drop(file);
    dir.run(&["subclass", "--base", "op", "--name", "io", "--apis", "Io", &trace]).expect(0);
    let file = dir.open(&trace);
    assert_eq!(rows(&file, "SELECT op_ptr_id, bytes, file FROM ioop"), ["1 '12' 'a'"]);
    dir.run(&["check", &trace]).expect(0);
}

#[test]
fn columns_of_numbers_are_compared_as_numbers() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", ROWS);
    dir.open(&trace)
        .execute_batch(
            "INSERT INTO rocpd_string VALUES (20, 'size=10 | rate=1.5'), (21, 'size=many | rate=2');
             INSERT INTO rocpd_api VALUES (20, 10, 11, 1100, 1200, 2, 20), (21, 10, 11, 1300, 1400, 2, 21);",
        )
        .unwrap();
    let arguments = ["subclass", "--base", "api", "--name", "mem", "--apis", "hipMalloc,hipFree", &trace];
    let types = ["--types", "size=integer,rate=double precision,ptr=varchar(18) NOT NULL,nothing=integer"];
    let made = dir.run(&[&arguments[..], &types].concat());
    let result: Vec<&str> = made.expect(0).stderr.lines().collect();
    assert!(result[0].contains("6 rows and 4 arguments"), "{made}");
    assert!(result[1].contains("nothing has an argument nothing"), "{made}");
    assert!(result[2].contains("1 argument is no number in columns of numbers and NULL there"), "{made}");
    let file = dir.open(&trace);
    assert_eq!(rows(&file, "SELECT api_ptr_id FROM rocpd_memapi WHERE size > 9 ORDER BY size"), ["20", "1"]);
    assert_eq!(rows(&file, "SELECT sum(size), count(size), count(*) FROM memapi"), ["45 3 6"]);
    assert_eq!(
        rows(&file, "SELECT typeof(size) || typeof(rate) || typeof(ptr) FROM memapi WHERE id = 20"),
        ["'integerrealtext'"]
    );
    drop(file);
    dir.run(&["check", &trace]).expect(0);
    for wrong in ["size", "size=", "size=blob"] {
        dir.run(&[&arguments[..], &["--types", wrong]].concat()).expect(2);
    }
}

#[test]
fn a_second_time_says_so_and_redo_makes_it_anew() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", ROWS);
    let arguments = ["subclass", "--base", "api", "--name", "mem", "--apis", "hipMalloc", &trace];
    dir.run(&arguments).expect(0);
    let more = "INSERT INTO rocpd_api VALUES (9, 10, 11, 100, 200, 2, 4)";
    dir.open(&trace).execute_batch(more).unwrap();
    dir.run(&arguments).expect(0).says(&["rocpd_memapi is there already", "--redo"]);
    assert_eq!(rows(&dir.open(&trace), "SELECT count(*) FROM rocpd_memapi"), ["3"]);
    dir.run(&[&arguments[..], &["--redo"]].concat()).expect(0).says(&["4 rows"]);
    assert_eq!(rows(&dir.open(&trace), "SELECT count(*) FROM memapi"), ["4"]);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let dir = Dir::new();
    let keys: Vec<String> = (0..300).map(|number| format!("k{number}=1")).collect();
    let sentence = format!("INSERT INTO rocpd_string VALUES (10, '{}');", keys.join("|"));
    let call = "INSERT INTO rocpd_api VALUES (20, 10, 11, 100, 200, 6, 10);";
    let trace = dir.trace("t.rpd", &format!("{ROWS}{sentence}{call}"));
    let before = std::fs::read(dir.path(&trace)).unwrap();
    for (name, words) in [
        ("kernel", "rocpd_kernelapi is something else"),
        ("KERNEL", "rocpd_KERNELapi is something else"),
        ("graphLaunch", "rocpd_graphLaunchapi is a table of rpd graph"),
        ("many", "no arguments"),
    ] {
        let arguments = ["subclass", "--base", "api", "--name", name, "--apis", "other", &trace];
        dir.run(&arguments).expect(1).says(&["t.rpd", "is as it was", words]);
        assert!(std::fs::read(dir.path(&trace)).unwrap() == before, "{name}");
    }
    assert_eq!(dir.names(), ["t.rpd"]);
}

#[test]
fn a_misspelt_member_is_said() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipMalloc'), (3, 'size=1');
         INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES (1, 1, 1, 1, 2, 2, 3);",
    );
    let made =
        dir.run(&["subclass", "--base", "api", "--name", "m", "--apis", "hipMalloc,hipMaloc,other", &trace]);
    assert!(made.expect(0).stderr.contains("no call is named hipMaloc; did you mean hipMalloc?"), "{made}");
    assert!(made.stderr.contains("no call is named other\n") && made.stderr.contains("1 row"), "{made}");
}
