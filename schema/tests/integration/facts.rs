//! Facts about sessions and GPUs are replaced as they change and read back, also from files that say odd things.

use rpd_schema::{Appender, create, gpus, lost, open_read, session_fact as fact, sessions};

use crate::sample::lines;

#[test]
fn facts_are_written_once_replaced_later_and_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    let mut first = Appender::open(&path).unwrap();
    let mut second = Appender::open(&path).unwrap();
    for (appender, rank) in [(&mut first, "0"), (&mut second, "1")] {
        appender.begin().unwrap();
        appender.session_fact(fact::HOST, "node::7").unwrap();
        appender.session_fact(fact::PID, "4711").unwrap();
        appender.session_fact(fact::COMMAND, "python3 train.py --name \"it's\"\n").unwrap();
        appender.session_fact(&fact::env("SLURM_PROCID"), "77").unwrap();
        appender.session_fact(&fact::env("RANK"), rank).unwrap();
        appender.session_fact(&fact::recorded("kernel"), "10").unwrap();
        appender.session_fact(&fact::lost("buffer_full"), "0").unwrap();
        appender.session_fact(&fact::version("hsa"), "1.1").unwrap();
        appender.gpu_fact(0, fact::GPU_TARGET, "gfx90a").unwrap();
        appender.commit().unwrap();
    }
    for count in ["20", "30"] {
        first.begin().unwrap();
        first.session_fact(&fact::recorded("kernel"), count).unwrap();
        first.session_fact(&fact::lost("buffer_full"), "5").unwrap();
        first.commit().unwrap();
    }
    second.session_fact(&fact::lost("buffer_full"), "2").unwrap();
    second.session_fact(&fact::lost("disk_full"), "1").unwrap();
    second.session_fact(fact::END_MONOTONIC_NS, "123").unwrap();
    second.gpu_fact(0, fact::GPU_TARGET, "gfx942").unwrap();
    second.gpu_fact(3, fact::GPU_NAME, "MI300").unwrap();

    let (connection, _) = open_read(&path).unwrap();
    assert_eq!(
        lines(&connection, "SELECT value FROM rocpd_metadata WHERE tag = 'session::0::recorded::kernel'"),
        ["30"]
    );
    let found = sessions(&connection).unwrap();
    assert_eq!(found.iter().map(|info| info.session).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(found[0].host(), Some("node::7"));
    assert_eq!(found[0].pid(), Some(4711));
    assert_eq!(found[0].command(), Some("python3 train.py --name \"it's\"\n"));
    assert_eq!((found[0].rank(), found[1].rank()), (Some("0"), Some("1")));
    assert_eq!(found[0].recorded()["kernel"], 30);
    assert_eq!(found[1].number(fact::END_MONOTONIC_NS), Some(123));
    assert_eq!(found[0].number(fact::END_MONOTONIC_NS), None);
    assert_eq!(found[1].get("version::hsa"), Some("1.1"));
    assert_eq!(found[0].lost()["buffer_full"], 5);
    let sum: Vec<_> = lost(&connection).unwrap().into_iter().collect();
    assert_eq!(sum, [("buffer_full".to_owned(), 7), ("disk_full".to_owned(), 1)]);
    let found = gpus(&connection).unwrap();
    assert_eq!(found.iter().map(|info| info.gpu).collect::<Vec<_>>(), [0, 3]);
    assert_eq!(found[0].get(fact::GPU_TARGET), Some("gfx942"));
    assert_eq!(found[1].get(fact::GPU_NAME), Some("MI300"));
}

#[test]
fn the_next_session_states_its_own_facts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    let mut appender = Appender::open(&path).unwrap();
    appender.session_fact(fact::HOST, "a").unwrap();
    appender.next_session().unwrap();
    appender.session_fact(fact::HOST, "b").unwrap();
    let found = sessions(&open_read(&path).unwrap().0).unwrap();
    assert_eq!(found.iter().map(rpd_schema::SessionInfo::host).collect::<Vec<_>>(), [Some("a"), Some("b")]);
}

#[test]
fn odd_metadata_is_no_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    create(&path).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::lost::x', '3'), ('session::0::lost::x', '4'),
             ('session::1::lost::x', 'many'), ('session::2::lost::x', '18446744073709551615'), ('session::-1::host', 'h'),
             ('session::', ''), ('session::5', ''), ('session::6::host', x'ff'), ('SESSION::7::host', 'h'),
             ('session::99999999999::host', 'h'), ('gpu::x::name', 'n'), ('gpu::1::', 'nameless'), (x'00ff', 17), (8, 9)",
        )
        .unwrap();
    let found = sessions(&connection).unwrap();
    assert_eq!(found.iter().map(|info| info.session).collect::<Vec<_>>(), [0, 1, 2, 6]);
    assert_eq!(found[3].host(), Some("\u{fffd}"));
    assert_eq!(lost(&connection).unwrap()["x"], u64::MAX, "the last of equal tags, and no overflow");
    assert_eq!(gpus(&connection).unwrap().len(), 1);
    connection.execute_batch("DROP TABLE rocpd_metadata").unwrap();
    assert_eq!(sessions(&connection).unwrap(), []);
}
