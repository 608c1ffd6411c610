//! An .rpd file as the tests read it: plain SQL on the tables themselves, typed rows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, Row};

use super::patience::PATIENCE;

/// A finished or growing trace.
pub(crate) struct Trace {
    pub(crate) path: PathBuf,
    connection: Connection,
}

/// A row of rocpd_op with its strings and, where there is one, its row of ext_tick.
#[derive(Debug, Clone)]
pub(crate) struct Op {
    pub(crate) id: i64,
    pub(crate) gpu: u32,
    pub(crate) queue: u32,
    pub(crate) sequence: u64,
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) description: String,
    pub(crate) op_type: String,
    pub(crate) ticks: Option<(u64, u64)>,
}

/// A launch's geometry: a row of the view dispatch or of rocpd_kernelapi.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    pub(crate) name: String,
    pub(crate) grid: [u32; 3],
    pub(crate) workgroup: [u32; 3],
    pub(crate) segments: [u32; 2],
    pub(crate) kernarg: String,
    pub(crate) code_object: i64,
}

/// A row of rocpd_api with its strings.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) name: String,
    pub(crate) args: String,
}

/// A row of rocpd_copyapi.
#[derive(Debug, Clone)]
pub(crate) struct CopyApi {
    pub(crate) size: u64,
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) kind: u32,
    pub(crate) source: i32,
    pub(crate) destination: i32,
}

const LAUNCH: &str = "kernelName, gridX, gridY, gridZ, workgroupX, workgroupY, workgroupZ, groupSegmentSize, \
     privateSegmentSize, kernelArgAddress, codeObject_id";

impl Trace {
    #[track_caller]
    pub(crate) fn open(path: &Path) -> Trace {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags);
        let connection = connection.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        connection.busy_timeout(PATIENCE).unwrap();
        Trace { path: path.to_path_buf(), connection }
    }

    /// What a query counts in a trace that is being written; 0 while there is no file or no table yet.
    pub(crate) fn count_so_far(path: &Path, sql: &str) -> i64 {
        let Ok(connection) = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY) else {
            return 0;
        };
        connection.busy_timeout(PATIENCE).unwrap();
        connection.query_row(sql, [], |row| row.get(0)).unwrap_or(0)
    }

    /// All rows of a query.
    #[track_caller]
    pub(crate) fn rows<T>(&self, sql: &str, read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>) -> Vec<T> {
        let mut statement = self.connection.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        statement.query_map([], read).unwrap().collect::<Result<_, _>>().unwrap()
    }

    /// The one number a query gives.
    #[track_caller]
    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.rows(sql, |row| row.get(0)).into_iter().next().unwrap()
    }

    /// The texts a query gives.
    #[track_caller]
    pub(crate) fn texts(&self, sql: &str) -> Vec<String> {
        self.rows(sql, |row| row.get(0))
    }

    pub(crate) fn has_table(&self, name: &str) -> bool {
        self.number(&format!("select count(*) from sqlite_master where type = 'table' and name = '{name}'"))
            > 0
    }

    /// Every op, by GPU, queue and place in the queue.
    pub(crate) fn ops(&self) -> Vec<Op> {
        let (ticks, join) = match self.has_table("ext_tick") {
            true => ("K.start, K.end", "left join ext_tick K on K.op_id = O.id"),
            false => ("null, null", ""),
        };
        let sql = format!(
            "select O.id, gpuId, queueId, sequenceId, O.start, O.end, D.string, T.string, {ticks} from rocpd_op O \
             join rocpd_string D on D.id = description_id join rocpd_string T on T.id = opType_id {join} \
             order by gpuId, queueId, sequenceId, O.id"
        );
        self.rows(&sql, |row| {
            Ok(Op {
                id: row.get(0)?,
                gpu: row.get(1)?,
                queue: row.get(2)?,
                sequence: row.get::<_, i64>(3)? as u64,
                start: row.get(4)?,
                end: row.get(5)?,
                description: row.get(6)?,
                op_type: row.get(7)?,
                ticks: row
                    .get::<_, Option<i64>>(8)?
                    .zip(row.get(9)?)
                    .map(|(a, b): (i64, i64)| (a as u64, b as u64)),
            })
        })
    }

    /// The view dispatch by op.
    pub(crate) fn dispatches(&self) -> BTreeMap<i64, Launch> {
        self.rows(&format!("select id, {LAUNCH} from dispatch"), launch).into_iter().collect()
    }

    /// rocpd_kernelapi by call.
    pub(crate) fn kernel_apis(&self) -> BTreeMap<i64, Launch> {
        let sql = format!(
            "select api_ptr_id, {LAUNCH} from (select *, string as kernelName from rocpd_kernelapi \
             join rocpd_string N on N.id = kernelName_id)"
        );
        self.rows(&sql, launch).into_iter().collect()
    }

    /// rocpd_api by id.
    pub(crate) fn apis(&self) -> BTreeMap<i64, Api> {
        let sql = "select A.id, pid, tid, start, end, N.string, G.string from rocpd_api A \
             join rocpd_string N on N.id = apiName_id join rocpd_string G on G.id = args_id";
        let api = |row: &Row<'_>| {
            let (pid, tid, start, end) = (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
            Ok((row.get(0)?, Api { pid, tid, start, end, name: row.get(5)?, args: row.get(6)? }))
        };
        self.rows(sql, api).into_iter().collect()
    }

    /// rocpd_copyapi by call.
    pub(crate) fn copy_apis(&self) -> BTreeMap<i64, CopyApi> {
        let sql = "select api_ptr_id, size, width, height, kind, srcDevice, dstDevice from rocpd_copyapi";
        let copy = |row: &Row<'_>| {
            let size = |at| row.get::<_, i64>(at).map(|n| n as u64);
            let (size, width, height) = (size(1)?, size(2)?, size(3)?);
            let (kind, source, destination) = (row.get(4)?, row.get(5)?, row.get(6)?);
            Ok((row.get(0)?, CopyApi { size, width, height, kind, source, destination }))
        };
        self.rows(sql, copy).into_iter().collect()
    }

    /// rocpd_api_ops: the calls of each op.
    pub(crate) fn calls_of_ops(&self) -> BTreeMap<i64, Vec<i64>> {
        let mut calls = BTreeMap::<i64, Vec<i64>>::new();
        for (api, op) in self.rows("select api_id, op_id from rocpd_api_ops", |r| Ok((r.get(0)?, r.get(1)?)))
        {
            calls.entry(op).or_default().push(api);
        }
        calls
    }

    /// All metadata whose tag is like that.
    pub(crate) fn metadata(&self, like: &str) -> BTreeMap<String, String> {
        let sql = format!("select tag, value from rocpd_metadata where tag like '{like}'");
        self.rows(&sql, |row| Ok((row.get(0)?, row.get(1)?))).into_iter().collect()
    }

    /// How many sessions were taken.
    pub(crate) fn session_count(&self) -> usize {
        self.metadata("session_count")["session_count"].parse().unwrap()
    }

    /// Numbers of the sessions by the process that took them.
    pub(crate) fn sessions(&self) -> BTreeMap<u32, i64> {
        let sessions = self.metadata("session::%::pid").into_iter();
        sessions
            .map(|(tag, pid)| (pid.parse().unwrap(), tag.split("::").nth(1).unwrap().parse().unwrap()))
            .collect()
    }

    /// A fact of the session with this number.
    #[track_caller]
    pub(crate) fn fact(&self, session: u32, key: &str) -> String {
        let tag = format!("session::{session}::{key}");
        self.metadata(&tag).into_values().next().unwrap_or_else(|| panic!("no {tag}"))
    }

    /// Times that a fact of a session tells: from, to, how many records were lost in it.
    #[track_caller]
    pub(crate) fn times(&self, session: u32, key: &str) -> Vec<(i64, Option<i64>, i64)> {
        let time = |text: &str| {
            let (time, lost) = text.split_once(':').unwrap_or((text, ""));
            let (from, to) = time.split_once('-').unwrap();
            let lost = lost
                .split(',')
                .filter_map(|of| of.split_once('='))
                .map(|(_, count)| count.parse::<i64>().unwrap());
            (from.parse().unwrap(), (!to.is_empty()).then(|| to.parse().unwrap()), lost.sum())
        };
        self.fact(session, key).split(' ').map(time).collect()
    }

    /// Records lost by cause, of all sessions; a cause without a loss is left out.
    pub(crate) fn lost(&self) -> BTreeMap<String, String> {
        self.metadata("session::%::lost::%").into_iter().filter(|(_, count)| count != "0").collect()
    }

    /// The file is sound in SQLite's own eyes, and every id leads to a row.
    #[track_caller]
    pub(crate) fn check_integrity(&self) {
        assert_eq!(self.texts("pragma integrity_check"), ["ok"]);
        let dangling = self.rows("pragma foreign_key_check", |row| {
            Ok(format!(
                "{} {:?} -> {}",
                row.get::<_, String>(0)?,
                row.get::<_, Option<i64>>(1)?,
                row.get::<_, String>(2)?
            ))
        });
        assert_eq!(dangling, Vec::<String>::new(), "{}", self.path.display());
    }
}

fn launch(row: &Row<'_>) -> rusqlite::Result<(i64, Launch)> {
    let sizes =
        |from: usize| Ok::<_, rusqlite::Error>([row.get(from)?, row.get(from + 1)?, row.get(from + 2)?]);
    let launch = Launch {
        name: row.get(1)?,
        grid: sizes(2)?,
        workgroup: sizes(5)?,
        segments: [row.get(8)?, row.get(9)?],
        kernarg: row.get(10)?,
        code_object: row.get(11)?,
    };
    Ok((row.get(0)?, launch))
}
