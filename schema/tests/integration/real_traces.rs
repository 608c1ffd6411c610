//! Traces of the original recorder, an older schema 2, open and answer.

use rpd_schema::{Version, gpus, identify, lost, open_read, sessions};

use crate::sample::{lines, number, real_trace};

/// File, API rows, ops.
const TRACES: [(&str, i64, i64); 3] = [
    ("matmul_result.rpd", 125, 85),
    ("mytrace_raw.rpd.gz", 14_736, 10_124),
    ("mytrace_as_shipped.rpd.gz", 14_736, 10_124),
];

#[test]
fn they_are_schema_2_and_their_views_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    for (name, apis, ops) in TRACES {
        let path = real_trace(name, directory.path());
        assert_eq!(identify(&path).unwrap(), Version::V2);
        let (connection, version) = open_read(&path).unwrap();
        assert_eq!(version, Version::V2);
        assert_eq!(number(&connection, "SELECT count(*) FROM api"), apis, "{name}");
        assert_eq!(number(&connection, "SELECT count(*) FROM op"), ops, "{name}");
        assert!(number(&connection, "SELECT sum(TotalCalls) FROM top") <= ops, "{name}");
        assert_eq!(sessions(&connection).unwrap(), [], "the original says nothing of its sessions");
        assert_eq!(gpus(&connection).unwrap(), []);
        assert!(lost(&connection).unwrap().is_empty());
    }
}

/// Replaces the views of a real trace by ours.
fn with_our_views(connection: &rusqlite::Connection) {
    let views = lines(connection, "SELECT name FROM sqlite_master WHERE type = 'view'");
    for view in views {
        connection.execute_batch(&format!("DROP VIEW \"{view}\"")).unwrap();
    }
    // Later additions to the format that our views read.
    for sql in [rpd_sql::TABLES, rpd_sql::API_VIEW, rpd_sql::VIEWS] {
        connection.execute_batch(sql).unwrap();
    }
}

#[test]
fn our_views_say_what_theirs_say() {
    let directory = tempfile::tempdir().unwrap();
    for (name, ..) in TRACES {
        let path = real_trace(name, directory.path());
        let connection = rusqlite::Connection::open(&path).unwrap();
        let all = |view: &str| lines(&connection, &format!("SELECT * FROM \"{view}\""));
        let views = ["api", "op", "busy", "kernel", "copy", "copyop"];
        let theirs = views.map(all);
        with_our_views(&connection);
        for (view, theirs) in views.into_iter().zip(theirs) {
            assert!(!theirs.is_empty() && all(view) == theirs, "{name} {view}");
        }
        // Theirs drops equal ops, and in these older files the fraction of the average. Later ones have it: of whole ns.
        let expected = lines(
            &connection,
            "SELECT count(*) || '|' || (sum(\"end\" - start) / 1000) || '|' || (sum(\"end\" - start) / count(*) / 1000.0) AS line
             FROM op GROUP BY iif(description = '', opType, description) ORDER BY line",
        );
        let top =
            "SELECT TotalCalls || '|' || TotalDuration_us || '|' || Ave_us AS line FROM top ORDER BY line";
        assert_eq!(lines(&connection, top), expected, "{name}");
        let fractions =
            number(&connection, "SELECT count(*) FROM top WHERE Ave_us <> CAST(Ave_us AS integer)");
        assert!(fractions > 10, "{name}: {fractions}");
    }
}

#[test]
fn our_top_counts_every_op_of_theirs() {
    let directory = tempfile::tempdir().unwrap();
    for (name, _, ops) in TRACES {
        let path = real_trace(name, directory.path());
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection
            .execute_batch("DROP VIEW top; DROP VIEW busy; DROP VIEW kernel; DROP VIEW copyop")
            .unwrap();
        connection.execute_batch(rpd_sql::VIEWS).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(number(&connection, "SELECT sum(TotalCalls) FROM top"), ops);
        assert_eq!(lines(&connection, "SELECT round(sum(Percentage), 6) FROM top"), ["100"]);
        let total = number(&connection, "SELECT sum(\"end\" - start) FROM rocpd_op");
        assert_eq!(number(&connection, "SELECT sum(GpuTime) FROM busy"), total);
        let first = lines(&connection, "SELECT TotalDuration_us FROM top");
        let mut sorted: Vec<i64> = first.iter().map(|line| line.parse().unwrap()).collect();
        sorted.sort_unstable_by(|one, other| other.cmp(one));
        assert_eq!(first, sorted.iter().map(i64::to_string).collect::<Vec<_>>());
    }
}
