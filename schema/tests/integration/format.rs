//! A fresh file is exactly what the format says: tables, columns, types, index, views, metadata.

use std::process::{Command, Stdio};

use crate::sample::{lines, names};
use crate::skip::installed;

/// SQLite reports the standard types in capitals, however they are declared.
/// Every table and view: `name: column type[!][*], ...`; `!` not null, `*` primary key.
const FRESH: &str = "\
table ext_dispatch: op_id INTEGER!*, kernelName_id INTEGER!, gridX INTEGER!, gridY INTEGER!, gridZ INTEGER!, workgroupX INTEGER!, workgroupY INTEGER!, workgroupZ INTEGER!, groupSegmentSize INTEGER!, privateSegmentSize INTEGER!, kernelArgAddress varchar(18)!, codeObject_id INTEGER!
table rocpd_api: id INTEGER!*, pid INTEGER!, tid INTEGER!, start INTEGER!, end INTEGER!, apiName_id INTEGER!, args_id INTEGER!
table rocpd_api_ops: id INTEGER!*, api_id INTEGER!, op_id INTEGER!
table rocpd_barrierop: op_ptr_id INTEGER!*, signalCount INTEGER!, aquireFence varchar(8)!, releaseFence varchar(8)!
table rocpd_copyapi: api_ptr_id INTEGER!*, stream varchar(18)!, size INTEGER!, width INTEGER!, height INTEGER!, kind INTEGER!, dst varchar(18)!, src varchar(18)!, dstDevice INTEGER!, srcDevice INTEGER!, sync bool!, pinned bool!
table rocpd_kernelapi: api_ptr_id INTEGER!*, stream varchar(18)!, gridX INTEGER!, gridY INTEGER!, gridZ INTEGER!, workgroupX INTEGER!, workgroupY INTEGER!, workgroupZ INTEGER!, groupSegmentSize INTEGER!, privateSegmentSize INTEGER!, kernelArgAddress varchar(18)!, aquireFence varchar(8)!, releaseFence varchar(8)!, codeObject_id INTEGER!, kernelName_id INTEGER!
table rocpd_kernelcodeobject: id INTEGER!*, vgpr INTEGER!, sgpr INTEGER!, fbar INTEGER!
table rocpd_metadata: id INTEGER!*, tag varchar(4096)!, value varchar(4096)!
table rocpd_monitor: id INTEGER!*, deviceType varchar(16)!, deviceId INTEGER!, monitorType varchar(16)!, start INTEGER!, end INTEGER!, value varchar(255)!
table rocpd_op: id INTEGER!*, gpuId INTEGER!, queueId INTEGER!, sequenceId INTEGER!, completionSignal varchar(18)!, start INTEGER!, end INTEGER!, description_id INTEGER!, opType_id INTEGER!
table rocpd_op_inputSignals: id INTEGER!*, from_op_id INTEGER!, to_op_id INTEGER!
table rocpd_stackframe: id INTEGER!*, api_ptr_id INTEGER!, depth INTEGER!, name_id INTEGER!
table rocpd_string: id INTEGER!*, string varchar(4096)!
view api: id INTEGER, pid INTEGER, tid INTEGER, start INTEGER, end INTEGER, apiName varchar(4096), args varchar(4096)
view busy: gpuId INTEGER, GpuTime , WallTime , Busy 
view copy: id INTEGER, pid INTEGER, tid INTEGER, start INTEGER, end INTEGER, apiName varchar(4096), stream varchar(18), size INTEGER, width INTEGER, height INTEGER, kind INTEGER, dst varchar(18), src varchar(18), dstDevice INTEGER, srcDevice INTEGER, sync bool, pinned bool
view copyop: id INTEGER, gpuId INTEGER, queueId INTEGER, sequenceId INTEGER, start INTEGER, end INTEGER, duration , stream varchar(18), size INTEGER, width INTEGER, height INTEGER, kind INTEGER, dst varchar(18), src varchar(18), dstDevice INTEGER, srcDevice INTEGER, sync bool, pinned bool, apiName varchar(4096)
view dispatch: id INTEGER, gpuId INTEGER, queueId INTEGER, sequenceId INTEGER, start INTEGER, end INTEGER, description varchar(4096), opType varchar(4096), kernelName varchar(4096), gridX INTEGER, gridY INTEGER, gridZ INTEGER, workgroupX INTEGER, workgroupY INTEGER, workgroupZ INTEGER, groupSegmentSize INTEGER, privateSegmentSize INTEGER, kernelArgAddress varchar(18), codeObject_id INTEGER
view kernel: id INTEGER, gpuId INTEGER, queueId INTEGER, sequenceId INTEGER, start INTEGER, end INTEGER, duration , stream varchar(18), gridX INTEGER, gridY INTEGER, gridZ INTEGER, workgroupX INTEGER, workgroupY INTEGER, workgroupZ INTEGER, groupSegmentSize INTEGER, privateSegmentSize INTEGER, kernelName varchar(4096)
view op: id INTEGER, gpuId INTEGER, queueId INTEGER, sequenceId INTEGER, start INTEGER, end INTEGER, description varchar(4096), opType varchar(4096)
view stackframe: id INTEGER, string varchar(4096), depth INTEGER, string:1 varchar(4096)
view top: Name varchar(4096), TotalCalls , TotalDuration_us , Ave_us , Percentage ";

const LAYOUT: &str = "
    SELECT M.type || ' ' || M.name || ': ' || group_concat(
        C.name || ' ' || C.type || CASE C.\"notnull\" WHEN 1 THEN '!' ELSE '' END || CASE C.pk WHEN 1 THEN '*' ELSE '' END,
        ', ' ORDER BY C.cid)
    FROM sqlite_master M, pragma_table_info(M.name) C
    WHERE M.type IN ('table', 'view') AND M.name NOT LIKE 'sqlite_%'
    GROUP BY M.name ORDER BY M.type, M.name";

#[test]
fn a_fresh_file_has_the_tables_and_views_of_the_format_and_no_others() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fresh.rpd");
    rpd_schema::create(&path).unwrap();
    assert_eq!(names(directory.path()), ["fresh.rpd"], "nothing beside it");
    let (connection, version) = rpd_schema::open_read(&path).unwrap();
    assert_eq!(version, rpd_schema::Version::V2);
    assert_eq!(lines(&connection, LAYOUT).join("\n"), FRESH);
}

#[test]
fn a_fresh_file_has_one_index_and_three_metadata_rows_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fresh.rpd");
    rpd_schema::create(&path).unwrap();
    let (connection, _) = rpd_schema::open_read(&path).unwrap();
    assert_eq!(
        lines(&connection, "SELECT name, tbl_name FROM sqlite_master WHERE type IN ('index', 'trigger')"),
        ["rocpd_strin_string_c7b9cd_idx|rocpd_string"]
    );
    assert_eq!(
        lines(&connection, "SELECT * FROM pragma_index_info('rocpd_strin_string_c7b9cd_idx')"),
        ["0|1|string"]
    );
    assert_eq!(
        lines(&connection, "SELECT * FROM rocpd_metadata"),
        [
            "1|schema_version|2",
            "2|references::rocpd_string.id|(\"rocpd_stackframe\", \"name_id\")",
            "3|references::rocpd_string.id|(\"ext_dispatch\", \"kernelName_id\")",
        ]
    );
    assert_eq!(lines(&connection, "SELECT count(*) FROM rocpd_string"), ["0"]);
    assert_eq!(lines(&connection, "PRAGMA journal_mode"), ["delete"]);
}

#[test]
fn keys_are_autoincrement_and_foreign_keys_are_deferred_as_the_format_declares_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fresh.rpd");
    rpd_schema::create(&path).unwrap();
    let (connection, _) = rpd_schema::open_read(&path).unwrap();
    assert_eq!(
        lines(
            &connection,
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%' ORDER BY name"
        ),
        [
            "rocpd_api",
            "rocpd_api_ops",
            "rocpd_kernelcodeobject",
            "rocpd_metadata",
            "rocpd_monitor",
            "rocpd_op",
            "rocpd_op_inputSignals",
            "rocpd_stackframe",
            "rocpd_string",
        ]
    );
    let keys = lines(
        &connection,
        "SELECT M.name, F.\"from\", F.\"table\", F.\"to\" FROM sqlite_master M, pragma_foreign_key_list(M.name) F
         WHERE M.type = 'table' ORDER BY 1, 2",
    );
    assert_eq!(
        keys,
        [
            "ext_dispatch|kernelName_id|rocpd_string|id",
            "ext_dispatch|op_id|rocpd_op|id",
            "rocpd_api|apiName_id|rocpd_string|id",
            "rocpd_api|args_id|rocpd_string|id",
            "rocpd_api_ops|api_id|rocpd_api|id",
            "rocpd_api_ops|op_id|rocpd_op|id",
            "rocpd_barrierop|op_ptr_id|rocpd_op|id",
            "rocpd_copyapi|api_ptr_id|rocpd_api|id",
            "rocpd_kernelapi|api_ptr_id|rocpd_api|id",
            "rocpd_kernelapi|codeObject_id|rocpd_kernelcodeobject|id",
            "rocpd_kernelapi|kernelName_id|rocpd_string|id",
            "rocpd_op|description_id|rocpd_string|id",
            "rocpd_op|opType_id|rocpd_string|id",
            "rocpd_op_inputSignals|from_op_id|rocpd_op|id",
            "rocpd_op_inputSignals|to_op_id|rocpd_op|id",
            "rocpd_stackframe|api_ptr_id|rocpd_api|id",
            "rocpd_stackframe|name_id|rocpd_string|id",
        ]
    );
    // Deferral is not in any pragma: each REFERENCES must be followed by it.
    let undeferred = lines(
        &connection,
        "SELECT name FROM sqlite_master WHERE type = 'table' AND
         (length(sql) - length(replace(sql, 'REFERENCES', ''))) / length('REFERENCES') <>
         (length(sql) - length(replace(sql, 'DEFERRABLE INITIALLY DEFERRED', ''))) / length('DEFERRABLE INITIALLY DEFERRED')",
    );
    assert_eq!(undeferred, [""; 0]);
}

#[test]
fn the_sqlite3_shell_makes_the_same_file_from_the_sql_files() {
    if !installed("sqlite3") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let ours = directory.path().join("ours.rpd");
    let theirs = directory.path().join("theirs.rpd");
    rpd_schema::create(&ours).unwrap();
    let sql = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql");
    for file in ["tables.sql", "indexes.sql", "api.sql", "views.sql", "metadata.sql", "ext/dispatch.sql"] {
        let text = std::fs::File::open(sql.join(file)).unwrap();
        let status = Command::new("sqlite3")
            .env("HOME", "/dev/null")
            .arg("-bail")
            .arg(&theirs)
            .stdin(Stdio::from(text))
            .status()
            .unwrap();
        assert!(status.success(), "{file}");
    }
    let everything =
        "SELECT type, name, sql FROM sqlite_master UNION ALL SELECT id, tag, value FROM rocpd_metadata";
    let read = |path: &std::path::Path| lines(&rpd_schema::open_read(path).unwrap().0, everything);
    assert_eq!(read(&ours), read(&theirs));
}

#[test]
fn every_sql_file_can_run_twice_and_changes_nothing_the_second_time() {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    let all = rpd_sql::FRESH.iter().chain(&rpd_sql::ext::RECORDERS);
    all.clone().for_each(|text| connection.execute_batch(text).unwrap());
    let everything =
        "SELECT type, name, sql FROM sqlite_master UNION ALL SELECT id, tag, value FROM rocpd_metadata";
    let once = lines(&connection, everything);
    all.for_each(|text| connection.execute_batch(text).unwrap());
    assert_eq!(lines(&connection, everything), once);
}

#[test]
fn the_tables_added_later_are_as_documented() {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    rpd_sql::FRESH.iter().for_each(|text| connection.execute_batch(text).unwrap());
    rpd_sql::ext::RECORDERS.iter().for_each(|text| connection.execute_batch(text).unwrap());
    let added: Vec<_> =
        lines(&connection, LAYOUT).into_iter().filter(|line| !FRESH.contains(line.as_str())).collect();
    assert_eq!(
        added,
        [
            "table ext_basicblock: id INTEGER!*, instrumentation_id INTEGER!, block INTEGER!, cu INTEGER!, file varchar(4096)!, \
             line INTEGER!, count INTEGER!, timed INTEGER!, total INTEGER!, min INTEGER!, p50 INTEGER!, p90 INTEGER!, \
             p99 INTEGER!, max INTEGER!, branchiness REAL!",
            "table ext_block: id INTEGER!*, kernel_id INTEGER!, number INTEGER!, functionName varchar(4096)!, offset INTEGER!, \
             size INTEGER!, file varchar(4096)!, line INTEGER!, instructions INTEGER!, valu INTEGER!, salu INTEGER!, \
             vmem INTEGER!, smem INTEGER!, lds INTEGER!, mfma INTEGER!, branch INTEGER!, other INTEGER!",
            "table ext_blockcount: id INTEGER!*, instrumentation_id INTEGER!, block_id INTEGER!, dispatches INTEGER!, \
             waves INTEGER, lanes INTEGER, ticks INTEGER",
            "table ext_candidate: id INTEGER!*, path varchar(4096)!, sha256 varchar(64)!, target varchar(64)!, loaded INTEGER!, \
             outcome varchar(16)!, reason varchar(4096)!",
            "table ext_codeobject: id INTEGER!*, sha256 varchar(64)!, uri varchar(4096)!, target varchar(64)!, size INTEGER!",
            "table ext_codeobject_kernel: id INTEGER!*, ext_codeobject_id INTEGER!",
            "table ext_handlervalue: id INTEGER!*, instrumentation_id INTEGER!, name varchar(4096)!, value REAL!",
            "table ext_heatmap: id INTEGER!*, instrumentation_id INTEGER!, address INTEGER!, size INTEGER!, accesses INTEGER!",
            "table ext_instrumentation: id INTEGER!*, op_id INTEGER, kernelName_id INTEGER!, gpuId INTEGER!, queueId INTEGER!, \
             sequenceId INTEGER!, analyzer varchar(64)!, messages INTEGER!, bytes INTEGER!, dropped INTEGER!, \
             incomplete INTEGER!, reason varchar(4096)!",
            "table ext_kernelcodeobject: id INTEGER!*, kernelName_id INTEGER!, agpr INTEGER!, vgprSpill INTEGER!, \
             sgprSpill INTEGER!, groupSegmentSize INTEGER!, privateSegmentSize INTEGER!, kernargSegmentSize INTEGER!, \
             wavefrontSize INTEGER!, maxWorkgroupSize INTEGER!",
            "table ext_launchattribute: op_id INTEGER!*, graph INTEGER!, graphNode INTEGER!, clusterX INTEGER!, clusterY INTEGER!, \
             clusterZ INTEGER!",
            "table ext_librarycall: api_ptr_id INTEGER!*, domain_id INTEGER!, category_id INTEGER!",
            "table ext_memoryaccess: id INTEGER!*, instrumentation_id INTEGER!, file varchar(4096)!, line INTEGER!, column INTEGER!, \
             accessKind varchar(16)!, space varchar(16)!, size INTEGER!, accesses INTEGER!, linesNeeded INTEGER!, \
             linesUsed INTEGER!, conflicts INTEGER!",
            "table ext_replacement: id INTEGER!*, op_id INTEGER!, original_kernel_id INTEGER!, replacement_kernel_id INTEGER!, \
             candidate_id INTEGER!",
            "table ext_tick: op_id INTEGER!*, start INTEGER!, end INTEGER!",
            "table ext_timeinterval: id INTEGER!*, instrumentation_id INTEGER!, count INTEGER!, total INTEGER!, \
             firstBegin INTEGER!, lastEnd INTEGER!",
            "table ext_validation: id INTEGER!*, op_id INTEGER!, argument INTEGER!, offset INTEGER!, compared varchar(8)!, \
             elements INTEGER!, written INTEGER!, different INTEGER!, first INTEGER!, original varchar(64)!, \
             candidate varchar(64)!, largest varchar(64)!, reason varchar(4096)!",
            "view cacheLineWaste: kernelName varchar(4096), file varchar(4096), line INTEGER, accessKind varchar(16), \
             space varchar(16), size INTEGER, accesses , linesNeeded , linesUsed , linesWasted , conflicts ",
            "view hotBlock: kernelName varchar(4096), block INTEGER, file varchar(4096), line INTEGER, count , total , min , max , \
             branchiness ",
            "view instrumentationCost: kernelName varchar(4096), gpuId INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, \
             workgroupX INTEGER, workgroupY INTEGER, workgroupZ INTEGER, instrumented , plain , instrumentedNs , plainNs , ratio ",
            "view libraryCall: id INTEGER, pid INTEGER, tid INTEGER, start INTEGER, end INTEGER, domain varchar(4096), \
             category varchar(4096), apiName varchar(4096), args varchar(4096)",
            "view replacement: id INTEGER, gpuId INTEGER, queueId INTEGER, sequenceId INTEGER, start INTEGER, end INTEGER, \
             kernelName varchar(4096), original_kernel_id INTEGER, originalVgpr INTEGER, originalSgpr INTEGER, \
             replacement_kernel_id INTEGER, replacementVgpr INTEGER, replacementSgpr INTEGER, path varchar(4096), \
             sha256 varchar(64)",
        ]
    );
    assert_eq!(
        lines(
            &connection,
            "SELECT value FROM rocpd_metadata WHERE tag = 'references::rocpd_string.id' AND value LIKE '%codeobject%'"
        ),
        ["(\"ext_kernelcodeobject\", \"kernelName_id\")"]
    );
}
