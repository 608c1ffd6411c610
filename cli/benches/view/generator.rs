//! Traces of any size, made fast: the same number of events gives the same rows.

use std::path::Path;

use rusqlite::Connection;

/// Threads that launch, each on a queue of its own; half of these are of another GPU.
const THREADS: u64 = 8;

/// Names of kernels.
const KERNELS: u64 = 60;

/// Time from a launch of a thread to the next, ns.
const PERIOD_NS: u64 = 9_000;

/// Random numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Writes a trace with so many events, half of them calls, half operations.
pub(crate) fn generate(file: &Path, events: u64) {
    rpd_schema::create(file).unwrap();
    let mut trace = Connection::open(file).unwrap();
    trace
        .execute_batch("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF")
        .unwrap();
    let rows = trace.transaction().unwrap();
    let text = "INSERT INTO rocpd_string (id, string) VALUES (?1, ?2)";
    for (id, name) in [(1, ""), (2, "KernelExecution"), (3, "hipLaunchKernel")] {
        rows.execute(text, (id, name)).unwrap();
    }
    for kernel in 0..KERNELS {
        rows.execute(text, (10 + kernel as i64, format!("void gemm_{kernel}<float, {kernel}>(float*, int)")))
            .unwrap();
    }
    let fact = "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::' || ?1, ?2)";
    for (key, value) in [("pid", "7"), ("command", "./train"), ("start_monotonic_ns", "1000")] {
        rows.execute(fact, (key, value)).unwrap();
    }
    let prepare = |statement: &str| rows.prepare(statement).unwrap();
    let mut call = prepare(
        "INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES (?1, 7, ?2, ?3, ?4, 3, 1)",
    );
    let mut kernel =
        prepare("INSERT INTO rocpd_kernelapi VALUES (?1, '0x0', 1, 1, 1, 64, 1, 1, 0, 0, '', '', '', 0, ?2)");
    let mut op = prepare(
        "INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id) VALUES (?1, ?2, ?3, ?1, '', ?4, ?5, ?6, 2)",
    );
    let mut link = prepare("INSERT INTO rocpd_api_ops (id, api_id, op_id) VALUES (?1, ?1, ?1)");
    let mut random = Random(7);
    let mut free = [0_u64; THREADS as usize];
    for launch in 0..events / 2 {
        let (thread, id) = (launch % THREADS, launch as i64 + 1);
        let start = 10_000 + launch / THREADS * PERIOD_NS + random.below(3_000);
        let end = start + 1_500 + random.below(3_000);
        let name = 10 + random.below(KERNELS);
        // An operation begins behind its call and behind the one before it.
        let begins = free[thread as usize].max(end + random.below(4_000));
        let ends = begins + 500 + random.below(12_000);
        free[thread as usize] = ends;
        call.execute((id, 7 + thread as i64, start as i64, end as i64)).unwrap();
        kernel.execute((id, name as i64)).unwrap();
        op.execute((id, (thread % 2) as i64, (thread / 2) as i64, begins as i64, ends as i64, name as i64))
            .unwrap();
        link.execute([id]).unwrap();
    }
    drop((call, kernel, op, link));
    rows.commit().unwrap();
}
