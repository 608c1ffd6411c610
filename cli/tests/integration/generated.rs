//! Traces made of random numbers: two sessions, nested calls, ops of all kinds, every table of the format.

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::harness::Dir;

/// Numbers that are the same in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33).cast_signed() % limit
    }
}

/// The first call of a generated trace begins here, ns.
pub(crate) const BEGIN: i64 = 1_000_000;

/// A sound trace of schema 2 in which `calls` calls of each of two sessions were recorded.
pub(crate) fn generated(dir: &Dir, name: &str, seed: u64, calls: i64) -> String {
    let mut random = Random::new(seed);
    let mut sql = String::from("BEGIN;");
    rpd_sql::ext::RECORDERS.iter().for_each(|table| sql.push_str(table));
    for session in [0, 2] {
        self::session(&mut sql, &mut random, session, calls);
    }
    sql.push_str("INSERT INTO rocpd_metadata (tag, value) VALUES ('session_count', '3'); COMMIT;");
    dir.trace(name, &sql)
}

/// What two analyzers found in an instrumented dispatch; of some the operation is not known.
fn instrumentation(
    add: &mut impl FnMut(String),
    offset: i64,
    op: i64,
    kernel: i64,
    (gpu, queue): (i64, i64),
) {
    let op_id = if op % 4 == 0 { "NULL".to_string() } else { (offset + op).to_string() };
    for (number, analyzer) in ["MemoryAnalysis", "BasicBlockAnalysis"].iter().enumerate() {
        let id = offset + 2 * op + number as i64;
        add(format!(
            "ext_instrumentation VALUES ({id}, {op_id}, {kernel}, {gpu}, {queue}, {op}, '{analyzer}', 4, 400, 0, {}, '')",
            i64::from(op % 4 == 0)
        ));
        add(format!(
            "ext_memoryaccess VALUES ({id}, {id}, 'a.hip', {op}, 0, 'read', 'global', 4, 2, 8, 16, 0)"
        ));
        add(format!("ext_heatmap VALUES ({id}, {id}, 1048576, 1048576, {op})"));
        add(format!("ext_handlervalue VALUES ({id}, {id}, 'stride', {op})"));
        add(format!("ext_timeinterval VALUES ({id}, {id}, 2, {op}, 5, 9)"));
        add(format!(
            "ext_basicblock VALUES ({id}, {id}, 1, -1, 'a.hip', {op}, 3, 2, 7, 1, 2, 3, 4, 5, 0.25)"
        ));
    }
}

/// The names that calls have; the second half launches something.
const NAMES: [&str; 6] =
    ["UserMarker", "hipMalloc", "hipFree", "hipLaunchKernel", "hipMemcpy", "hipGraphLaunch"];

fn session(sql: &mut String, random: &mut Random, session: i64, calls: i64) {
    let offset = session << 32;
    let text = |number: i64| offset + number;
    let mut add = |row: String| {
        sql.push_str("INSERT INTO ");
        sql.push_str(&row);
        sql.push(';');
    };
    add(format!("rocpd_string VALUES ({}, '')", text(1)));
    for (number, name) in NAMES.iter().enumerate() {
        add(format!("rocpd_string VALUES ({}, '{name}')", text(number as i64 + 2)));
    }
    for number in 0..5 {
        add(format!("rocpd_string VALUES ({}, 'kernel{number}')", text(20 + number)));
        add(format!("rocpd_string VALUES ({}, 'frame{number}')", text(40 + number)));
        add(format!("rocpd_kernelcodeobject VALUES ({}, {number}, 2, 0)", text(number + 1)));
        add(format!("ext_codeobject_kernel VALUES ({}, {})", text(number + 1), text(1)));
    }
    add(format!("ext_codeobject VALUES ({}, 'ab', 'file:///app', 'gfx90a', 4096)", text(1)));
    // The last one is never used.
    for number in 1..=3 {
        let loaded = if number == 3 { 0 } else { BEGIN + number };
        add(format!(
            "ext_candidate VALUES ({}, '/cache/{number}', 'c{number}', 'gfx90a', {loaded}, 'loaded', '')",
            text(number)
        ));
    }
    for (number, kind) in ["KernelExecution", "CopyHostToDevice", "Barrier"].iter().enumerate() {
        add(format!("rocpd_string VALUES ({}, '{kind}')", text(30 + number as i64)));
    }
    let pid = 100 + session;
    let (mut op, mut link) = (0, 0);
    // Per thread: its clock, and where the calls end that are open, outermost first.
    let mut threads = [(BEGIN, Vec::new()), (BEGIN + 3, Vec::new())];
    for number in 1..=calls {
        let id = offset + number;
        let thread = random.below(2) as usize;
        let (clock, open) = &mut threads[thread];
        *clock += random.below(40);
        open.retain(|end| *end > *clock);
        let room = open.last().map_or(4000, |end| *end - *clock);
        let end = *clock + random.below(room + 1);
        open.push(end);
        let start = *clock;
        *clock += random.below(3);
        let kind = random.below(NAMES.len() as i64);
        let args = text(100 + number % (calls / 3 + 1));
        if number <= calls / 3 + 1 {
            add(format!("rocpd_string VALUES ({args}, 'argument = {session}.{number}')"));
        }
        let tid = pid + thread as i64;
        add(format!("rocpd_api VALUES ({id}, {pid}, {tid}, {start}, {end}, {}, {args})", text(kind + 2)));
        if random.below(5) == 0 {
            add(format!(
                "rocpd_stackframe (api_ptr_id, depth, name_id) VALUES ({id}, 0, {})",
                text(40 + number % 5)
            ));
        }
        let kernel = text(20 + random.below(5));
        let object = text(1 + random.below(5));
        let launches = match kind {
            3 => {
                add(format!(
                    "rocpd_kernelapi VALUES ({id}, '0x0', 1, 1, 1, 64, 1, 1, 0, 0, '0x7', '', '', {object}, {kernel})"
                ));
                1
            }
            4 => {
                add(format!("rocpd_copyapi VALUES ({id}, '0x0', 64, '', '', 1, '0x1', '0x2', 0, -1, 1, 0)"));
                1
            }
            5 => random.below(6),
            _ => i64::from(random.below(20) == 0),
        };
        for _ in 0..launches {
            op += 1;
            let op_id = offset + op;
            let op_start = start + random.below(3000);
            let op_end = op_start + random.below(500);
            let op_type = if kind == 4 { 31 } else { 30 };
            let description = if kind == 4 { text(1) } else { kernel };
            let (gpu, queue) = (random.below(2), 1 + random.below(3));
            add(format!(
                "rocpd_op VALUES ({op_id}, {gpu}, {queue}, {op}, '', {op_start}, {op_end}, {description}, {})",
                text(op_type)
            ));
            if kind != 4 {
                let object = if random.below(3) == 0 { 0 } else { object };
                // The first session is of a recorder that wrote this for launches of one kernel too.
                if kind != 3 || session == 0 {
                    add(format!(
                        "ext_dispatch VALUES ({op_id}, {kernel}, 1, 1, 1, 64, 1, 1, 0, 0, '0x7', {object})"
                    ));
                }
                if op % 3 == 0 {
                    // Some of a kernel that nothing is known of.
                    let (original, replacement) =
                        if op % 2 == 0 { (0, 0) } else { (object, text(1 + op % 5)) };
                    let candidate = text(1 + op % 2);
                    add(format!(
                        "ext_replacement VALUES ({op_id}, {op_id}, {original}, {replacement}, {candidate})"
                    ));
                }
                if op % 3 == 1 {
                    instrumentation(&mut add, offset, op, kernel, (gpu, queue));
                }
            }
            // Some ops no call caused.
            if kind != 1 {
                link += 1;
                add(format!("rocpd_api_ops VALUES ({}, {id}, {op_id})", offset + link));
            }
            if random.below(8) == 0 && op > 1 {
                add(format!(
                    "\"rocpd_op_inputSignals\" (from_op_id, to_op_id) VALUES ({}, {op_id})",
                    op_id - 1
                ));
            }
        }
    }
    let mut at = BEGIN - 50;
    while at < BEGIN + calls * 60 {
        let end = at + 1 + random.below(calls);
        let value = random.below(1000);
        add(format!(
            "rocpd_monitor (deviceType, deviceId, monitorType, start, \"end\", value) VALUES ('gpu', {session}, 'sclk', {at}, {end}, '{value}')"
        ));
        at = end;
    }
    for (key, value) in [
        ("host", "node1".to_string()),
        ("boot_id", "boot1".to_string()),
        ("pid", pid.to_string()),
        ("start_monotonic_ns", BEGIN.to_string()),
        ("start_realtime_ns", (BEGIN + 1_000_000_000).to_string()),
        ("end_monotonic_ns", (BEGIN + calls * 50).to_string()),
        ("end_realtime_ns", (BEGIN + calls * 50 + 1_000_000_000).to_string()),
    ] {
        add(format!("rocpd_metadata (tag, value) VALUES ('session::{session}::{key}', '{value}')"));
    }
}

/// Turns a generated trace into one of schema 3 with the same events.
pub(crate) fn to_schema_3(dir: &Dir, name: &str) {
    dir.open(name)
        .execute_batch(
            "BEGIN;
             DROP VIEW api; DROP VIEW stackframe; DROP VIEW copy; DROP VIEW copyop; DROP VIEW kernel; DROP VIEW op;
             DROP VIEW IF EXISTS instrumentationCost; DROP VIEW dispatch; DROP VIEW busy; DROP VIEW top;
             DROP VIEW IF EXISTS libraryCall; DROP TABLE IF EXISTS ext_librarycall;
             CREATE TABLE rocpd_ustring (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, string varchar(4096) NOT NULL);
             INSERT INTO rocpd_ustring SELECT * FROM rocpd_string WHERE id IN (SELECT args_id FROM rocpd_api);
             CREATE TABLE v3 (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, pid integer NOT NULL, tid integer NOT NULL,
                 start integer NOT NULL, \"end\" integer NOT NULL,
                 apiName_id bigint NOT NULL REFERENCES rocpd_string (id), category_id bigint NOT NULL REFERENCES rocpd_string (id),
                 domain_id bigint NOT NULL REFERENCES rocpd_string (id), args_id bigint NOT NULL REFERENCES rocpd_ustring (id));
             INSERT INTO v3 SELECT id, pid, tid, start, \"end\", apiName_id, (id >> 32 << 32) + 1, (id >> 32 << 32) + 2, args_id FROM rocpd_api;
             DROP TABLE rocpd_api; ALTER TABLE v3 RENAME TO rocpd_api;
             ALTER TABLE rocpd_op DROP COLUMN completionSignal;
             ALTER TABLE rocpd_kernelapi DROP COLUMN kernelArgAddress; ALTER TABLE rocpd_kernelapi DROP COLUMN aquireFence;
             ALTER TABLE rocpd_kernelapi DROP COLUMN codeObject_id;
             ALTER TABLE rocpd_kernelapi DROP COLUMN releaseFence;
             CREATE TABLE rocpd_counter (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, value real NOT NULL,
                 op_id bigint NOT NULL REFERENCES rocpd_op (id), name_id bigint NOT NULL REFERENCES rocpd_string (id));
             INSERT INTO rocpd_counter (value, op_id, name_id) SELECT 0.5, id, description_id FROM rocpd_op WHERE id % 3 = 0;
             DROP VIEW IF EXISTS replacement; DROP TABLE IF EXISTS ext_replacement; DROP TABLE IF EXISTS ext_candidate;
             DROP TABLE IF EXISTS ext_codeobject_kernel; DROP TABLE IF EXISTS ext_codeobject;
             DROP TABLE IF EXISTS ext_kernelcodeobject; DROP TABLE IF EXISTS ext_tick;
             DROP VIEW IF EXISTS cacheLineWaste; DROP VIEW IF EXISTS hotBlock;
             DROP TABLE IF EXISTS ext_memoryaccess; DROP TABLE IF EXISTS ext_heatmap; DROP TABLE IF EXISTS ext_timeinterval;
             DROP TABLE IF EXISTS ext_basicblock; DROP TABLE IF EXISTS ext_handlervalue; DROP TABLE IF EXISTS ext_instrumentation;
             DELETE FROM rocpd_metadata WHERE value GLOB '(\"ext_kernelcodeobject\"*' OR value GLOB '(\"ext_instrumentation\"*';
             DROP TABLE ext_dispatch; DROP TABLE rocpd_barrierop;
             DELETE FROM rocpd_metadata WHERE value = '(\"ext_dispatch\", \"kernelName_id\")';
             UPDATE rocpd_metadata SET value = '3' WHERE tag = 'schema_version';
             CREATE VIEW api AS SELECT A.id, pid, tid, start, \"end\", D.string AS domain, C.string AS category, N.string AS apiName,
                 G.string AS args FROM rocpd_api A JOIN rocpd_string D ON D.id = domain_id JOIN rocpd_string C ON C.id = category_id
                 JOIN rocpd_string N ON N.id = apiName_id JOIN rocpd_ustring G ON G.id = args_id;
             CREATE VIEW op AS SELECT O.id, gpuId, queueId, sequenceId, start, \"end\", D.string AS description, T.string AS opType
                 FROM rocpd_op O JOIN rocpd_string D ON D.id = description_id JOIN rocpd_string T ON T.id = opType_id;
             COMMIT;",
        )
        .unwrap();
}

/// All rows of a query, sorted by SQLite's order of values in them.
pub(crate) fn rows(trace: &Connection, query: &str) -> Vec<Vec<Value>> {
    let mut query = trace.prepare(query).unwrap();
    let columns = query.column_count();
    let rows = query.query_map([], |row| (0..columns).map(|at| row.get(at)).collect());
    let mut rows: Vec<Vec<Value>> = rows.unwrap().collect::<Result<_, _>>().unwrap();
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

/// The one number that a query yields.
pub(crate) fn number(trace: &Connection, query: &str) -> i64 {
    trace.query_row(query, [], |row| row.get(0)).unwrap()
}

/// Drops all views of a trace, so that columns of its tables can be renamed.
pub(crate) fn drop_views(dir: &Dir, trace: &str) {
    let connection = dir.open(trace);
    let drop: String = connection
        .query_row(
            "SELECT group_concat('DROP VIEW ' || name || ';', '') FROM sqlite_master WHERE type = 'view'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    connection.execute_batch(&drop).unwrap();
}
