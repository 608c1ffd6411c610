//! Joules of library calls by configuration, worked out by hand.

// A panic is how tests fail.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use rpd_postprocess::moment::{Moment, TimeRange};
use rpd_postprocess::region::Region;
use rpd_postprocess::report::energy::{Energy, EnergyBy};
use rpd_postprocess::report::libraries::{Configuration, Libraries};
use rpd_schema::Version;
use rusqlite::Connection;
use tempfile::TempDir;

const MS: i64 = 1_000_000;
/// The arguments of each collective that are no addresses.
const COLLECTIVE: &str = "count=16 | datatype=ncclFloat32";

/// A trace while it is written, all of it by one thread.
struct Written {
    connection: Connection,
    _dir: TempDir,
}

impl Written {
    /// GPU 0 takes so many watts in each 10 ms, the first from 10 ms on; GPU 1 has no sensor.
    fn new(watts: &[u32]) -> Written {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("trace.rpd");
        let connection = created(&file);
        for (at, watts) in watts.iter().enumerate() {
            let start = 10 * (1 + at as i64) * MS;
            let row = "INSERT INTO rocpd_monitor (deviceType, deviceId, monitorType, start, \"end\", value)
                           VALUES ('gpu', 0, 'power', ?1, ?2, ?3)";
            connection.execute(row, (start, start + 10 * MS, watts.to_string())).unwrap();
        }
        Written { connection, _dir: dir }
    }

    fn text(&self, text: &str) -> i64 {
        self.connection.execute("INSERT INTO rocpd_string (string) VALUES (?1)", [text]).unwrap();
        self.connection.last_insert_rowid()
    }

    fn call(&self, name: &str, arguments: &str, (start, end): (i64, i64)) -> i64 {
        let (name, arguments) = (self.text(name), self.text(arguments));
        let row = "INSERT INTO rocpd_api (pid, tid, start, \"end\", apiName_id, args_id) VALUES (7, 7, ?1, ?2, ?3, ?4)";
        self.connection.execute(row, (start, end, name, arguments)).unwrap();
        self.connection.last_insert_rowid()
    }

    /// A call of a library; times of calls are in ns.
    fn library_call(&self, library: &str, function: &str, arguments: &str, times: (i64, i64)) {
        let call = self.call(function, arguments, times);
        let row = "INSERT INTO ext_librarycall VALUES (?1, ?2, ?2)";
        self.connection.execute(row, (call, self.text(library))).unwrap();
    }

    /// An operation; its times are in us.
    fn op(&self, kernel: &str, gpu: i64, (start, end): (i64, i64)) -> i64 {
        let (kernel, kind) = (self.text(kernel), self.text("KernelExecution"));
        let row = "INSERT INTO rocpd_op (gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
                       VALUES (?1, 0, 0, '', ?2, ?3, ?4, ?5)";
        self.connection.execute(row, (gpu, start * 1000, end * 1000, kernel, kind)).unwrap();
        self.connection.last_insert_rowid()
    }

    /// The call that launches an operation on stream 0x7.
    fn launch(&self, at: i64, op: i64) {
        let call = self.call("hipLaunchKernel", "", (at, at + 1));
        self.connection
            .execute("INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (?1, ?2)", [call, op])
            .unwrap();
        let row = "INSERT INTO rocpd_kernelapi VALUES (?1, '0x7', 1, 1, 1, 1, 1, 1, 0, 0, '', '', '', 0, 0)";
        self.connection.execute(row, [call]).unwrap();
    }

    fn libraries(&self, region: Region) -> Libraries {
        let selected = region.select(&self.connection, Version::V2).unwrap();
        Libraries::of((&self.connection, Version::V2), &selected).unwrap()
    }

    fn joules_of_kernels(&self) -> Vec<(String, Option<f64>)> {
        let everything = Region::default().select(&self.connection, Version::V2).unwrap();
        let found = Energy::of((&self.connection, Version::V2), &everything, EnergyBy::Kernel, None).unwrap();
        found.rows.into_iter().map(|row| (row.name, row.joules)).collect()
    }
}

fn created(file: &Path) -> Connection {
    rpd_schema::create(file).unwrap();
    let connection = Connection::open(file).unwrap();
    connection.execute_batch(&format!("PRAGMA foreign_keys = OFF; {}", rpd_sql::ext::LIBRARYCALL)).unwrap();
    connection
}

/// What two products that overlap, one in another library's call, a group of collectives and an operation without a call took.
fn written() -> Written {
    // The idle floor is 100 W: above it 2, 4, 1, 3, 6, 2 and 0.5 J.
    let trace = Written::new(&[100, 300, 500, 200, 400, 700, 300, 150]);
    let gemm = |size: i64, times| {
        trace.library_call("rocblas", "rocblas_sgemm", &format!("handle=0x1 | m={size}"), times);
    };
    gemm(64, (100, 200));
    trace.launch(110, trace.op("gemm 64", 0, (20_000, 40_000)));
    gemm(128, (300, 400));
    trace.launch(310, trace.op("gemm 128", 0, (30_000, 40_000)));
    trace.library_call("hipblas", "hipblasSgemm", "m=256", (500, 600));
    gemm(256, (510, 590));
    trace.launch(520, trace.op("gemm 256", 0, (40_000, 50_000)));
    trace.library_call("rccl", "ncclGroupStart", "", (700, 710));
    let collective = |function: &str, times| {
        trace.library_call("rccl", function, &format!("{COLLECTIVE} | comm=0x5 | stream=0x7"), times);
    };
    collective("ncclAllReduce", (720, 730));
    collective("ncclAllGather", (740, 750));
    trace.library_call("rccl", "ncclGroupEnd", "", (760, 800));
    trace.launch(770, trace.op("collectives", 0, (50_000, 70_000)));
    // Half of the time alone.
    trace.op("without a call", 0, (70_000, 80_000));
    gemm(64, (900, 1000));
    trace.launch(910, trace.op("gemm 64", 0, (75_000, 80_000)));
    gemm(1, (1100, 1200));
    trace.launch(1110, trace.op("gemm 1", 0, (80_000, 80_004)));
    gemm(512, (1300, 1400));
    trace.launch(1310, trace.op("gemm 512", 1, (20_000, 40_000)));
    trace
}

fn of<'a>(found: &'a Libraries, function: &str, configuration: &str) -> &'a Configuration {
    let mut all = found.configurations.iter();
    all.find(|of| of.function == function && of.configuration == configuration).unwrap()
}

#[track_caller]
fn has(found: &Libraries, function: &str, configuration: &str, joules: f64) {
    let of = of(found, function, configuration);
    assert!(of.joules.is_some_and(|has| (has - joules).abs() < 1e-9), "{joules} J: {of:?}");
    assert_eq!(of.joules_refused, None);
}

#[test]
fn configurations_have_the_joules_of_what_they_launched() {
    let trace = written();
    let found = trace.libraries(Region::default());
    assert!(found.has_sensors);
    // 2 J alone, half of 4 J beside the other one, half of the second half of 2 J beside what no call launched.
    has(&found, "rocblas_sgemm", "m=64", 2.0 + 2.0 + 0.5);
    has(&found, "rocblas_sgemm", "m=128", 2.0);
    has(&found, "hipblasSgemm", "m=256", 1.0);
    has(&found, "rocblas_sgemm", "m=256", 1.0);
    // The two collectives share the time and the energy.
    has(&found, "ncclAllReduce", COLLECTIVE, 4.5);
    has(&found, "ncclAllGather", COLLECTIVE, 4.5);
    let launches_nothing = of(&found, "ncclGroupEnd", "");
    assert_eq!((launches_nothing.joules, &launches_nothing.joules_refused), (None, &None));
    let short = of(&found, "rocblas_sgemm", "m=1");
    assert_eq!(short.joules, None);
    assert_eq!(
        short.joules_refused.as_deref(),
        Some("it ran for 0.004 ms, which is less than a step of the sensor (10.000 ms)")
    );
    let elsewhere = of(&found, "rocblas_sgemm", "m=512");
    assert_eq!((elsewhere.operations, elsewhere.joules, &elsewhere.joules_refused), (1, None, &None));
    assert_eq!(found.unsampled, 1, "no sensor of GPU 1 was read");
}

#[test]
fn configurations_and_kernels_have_the_same_joules() {
    let trace = written();
    let of_kernels: f64 = trace
        .joules_of_kernels()
        .iter()
        .filter(|(name, _)| name != "without a call")
        .filter_map(|(_, joules)| *joules)
        .sum();
    let found = trace.libraries(Region::default());
    // What is in a call of hipBLAS is in one of rocBLAS too.
    let disjoint = found.configurations.iter().filter(|of| of.library != "hipblas");
    let of_configurations: f64 = disjoint.filter_map(|of| of.joules).sum();
    assert!((of_kernels - 16.5).abs() < 1e-9 && (of_configurations - 16.5).abs() < 1e-9);
}

#[test]
fn what_is_beside_a_part_has_its_share() {
    let trace = written();
    // The first product alone, which runs beside the second one.
    let time = TimeRange { end: Some(Moment::At(250)), ..TimeRange::default() };
    let found = trace.libraries(Region { time, ..Region::default() });
    has(&found, "rocblas_sgemm", "m=64", 2.0 + 2.0);
    assert_eq!((found.configurations.len(), found.unsampled), (1, 0));
    let time = TimeRange { start: Some(Moment::At(1250)), ..TimeRange::default() };
    let found = trace.libraries(Region { time, ..Region::default() });
    assert!(found.has_sensors && found.unsampled == 1);
    assert_eq!((found.configurations.len(), found.configurations[0].joules), (1, None));
}

#[test]
fn what_ran_on_a_gpu_is_refused_by_the_step_of_its_own_sensor() {
    let trace = written();
    // GPU 1 takes 50 W while it is idle; its steps are four times as long as those of GPU 0.
    let rows = "INSERT INTO rocpd_monitor (deviceType, deviceId, monitorType, start, \"end\", value) VALUES
                    ('gpu', 1, 'power', 10000000, 50000000, '100'), ('gpu', 1, 'power', 50000000, 90000000, '50')";
    trace.connection.execute_batch(rows).unwrap();
    let found = trace.libraries(Region::default());
    // It ran for a step of GPU 0.
    has(&found, "rocblas_sgemm", "m=128", 2.0);
    let refused = |configuration| of(&found, "rocblas_sgemm", configuration).joules_refused.as_deref();
    assert_eq!(
        refused("m=512"),
        Some("it ran for 20.000 ms, which is less than a step of the sensor of GPU 1 (40.000 ms)")
    );
    assert_eq!(
        refused("m=1"),
        Some("it ran for 0.004 ms, which is less than a step of the sensor of GPU 0 (10.000 ms)")
    );
    // Half a step of each GPU is one.
    trace.library_call("rocblas", "rocblas_sgemm", "handle=0x1 | m=512", (1500, 1600));
    trace.launch(1510, trace.op("gemm 512", 0, (80_000, 85_000)));
    let found = trace.libraries(Region::default());
    // 2 J, and of 0.5 J what 4 us beside the product of 1 leave.
    has(&found, "rocblas_sgemm", "m=512", 2.0 + 0.5 - 0.5 * 0.002 / 5.0);
}

#[test]
fn without_sensors_there_are_no_joules_and_no_reason() {
    let trace = written();
    trace.connection.execute_batch("DELETE FROM rocpd_monitor").unwrap();
    let found = trace.libraries(Region::default());
    assert!(!found.has_sensors && found.unsampled == 0);
    assert!(found.configurations.iter().all(|of| of.joules.is_none() && of.joules_refused.is_none()));
    assert_eq!(of(&found, "rocblas_sgemm", "m=64").gpu_ns, 25_000_000);
}
