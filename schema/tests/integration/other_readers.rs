//! The tools that people already have read what we write: the sqlite3 shell and Python's sqlite3.

use rpd_schema::Appender;
use std::path::Path;
use std::process::Command;

use crate::{sample, skip::installed};

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn written(path: &Path) {
    for _ in 0..2 {
        let mut appender = Appender::open(path).unwrap();
        appender.begin().unwrap();
        sample::every_table(&mut appender);
        appender.commit().unwrap();
    }
}

#[test]
fn the_sqlite3_shell_reads_it() {
    if !installed("sqlite3") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    written(&path);
    let shell = |query: &str| output(Command::new("sqlite3").env("HOME", "/dev/null").arg(&path).arg(query));
    assert_eq!(shell("PRAGMA integrity_check; PRAGMA foreign_key_check"), "ok\n");
    assert_eq!(
        shell("SELECT id, kernelName FROM kernel"),
        "1|vectorAdd(float*)\n4294967297|vectorAdd(float*)\n"
    );
    assert_eq!(
        shell("SELECT Name, TotalCalls FROM top"),
        "CopyHostToDevice|2\nvectorAdd(float*)|2\nBarrier|2\n"
    );
    assert_eq!(shell("SELECT \"string:1\" FROM stackframe LIMIT 1"), "main at add.cpp:7\n");
}

#[test]
fn python_reads_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    written(&path);
    let script = "
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
for view in ('api', 'op', 'busy', 'top', 'kernel', 'copy', 'copyop', 'stackframe', 'dispatch'):
    cursor = connection.execute('select * from ' + view)
    print(view, len(cursor.fetchall()), [column[0] for column in cursor.description][-1])
connection.execute('delete from rocpd_api')
connection.commit()
print(connection.execute('select count(*) from copy').fetchone()[0])
";
    assert_eq!(
        output(Command::new("python3").arg("-c").arg(script).arg(&path)),
        "api 6 args\nop 6 opType\nbusy 1 Busy\ntop 3 Percentage\nkernel 2 kernelName\ncopy 2 pinned\ncopyop 2 apiName\n\
         stackframe 2 string:1\ndispatch 2 codeObject_id\n0\n"
    );
}
