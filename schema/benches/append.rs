//! What it costs to append: time per event and rows per second, for events as a recorder has them (a call, its launch
//! arguments, an op, a link: four rows), the same in front of the rows of a later session, and for markers that are all different.
//!
//! `cargo bench -p rpd-schema [-- EVENTS]`. The file is written to the current directory's file system and removed.

use rpd_schema::{ApiId, ApiRow, Appender, CodeObjectId, Error, Fence, KernelApiRow, OpId, OpRow, open_read};
use std::path::Path;
use std::time::Instant;

/// Events between two commits: about what a second of a busy program brings.
const TRANSACTION: u64 = 100_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let events = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    let directory = tempfile::tempdir_in(".")?;
    let cases = [
        ("launch", 4, launch as Event, false),
        ("launch, a later session", 4, launch, true),
        ("marker, unique text", 2, marker, false),
    ];
    for (name, rows, event, later) in cases {
        let path = directory.path().join("bench.rpd");
        let (elapsed, cpu) = record(&path, events, event, later)?;
        let size = std::fs::metadata(&path)?.len();
        println!(
            "{name}: {events} events, {:.0} ns each ({:.0} ns of CPU), {:.2} M rows per CPU second, {:.0} bytes each",
            elapsed / events as f64,
            cpu / events as f64,
            (events * rows) as f64 / cpu * 1e3,
            size as f64 / events as f64,
        );
        let (connection, _) = open_read(&path)?;
        let begin = Instant::now();
        let names: i64 = connection.query_row("SELECT count(*) FROM top", [], |row| row.get(0))?;
        println!("    view top: {names} names in {:.0} ms", begin.elapsed().as_secs_f64() * 1e3);
        std::fs::remove_file(&path)?;
    }
    Ok(())
}

type Event = fn(&mut Appender, u64) -> Result<(), Error>;

/// Nanoseconds that it took, and that this thread spent on a processor: other programs' load is in the first only. `later`: another session has
/// rows behind those of this one.
fn record(path: &Path, events: u64, event: Event, later: bool) -> Result<(f64, f64), Error> {
    let mut appender = Appender::open(path)?;
    if later {
        let mut other = Appender::open(path)?;
        other.begin()?;
        event(&mut other, 1)?;
        other.commit()?;
    }
    let (begin, cpu) = (Instant::now(), cpu_ns());
    for number in 0..events {
        if number == 0 || number % TRANSACTION == 0 || appender.is_full() {
            if number > 0 {
                appender.commit()?;
            }
            appender.begin()?;
        }
        event(&mut appender, number + 1)?;
    }
    appender.commit()?;
    Ok((begin.elapsed().as_nanos() as f64, cpu_ns() - cpu))
}

fn cpu_ns() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    schedstat.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok()).unwrap_or(f64::NAN)
}

fn launch(appender: &mut Appender, number: u64) -> Result<(), Error> {
    let (api, op, start) = (ApiId::call(number), OpId(number), number * 1000);
    let name = appender.intern("hipLaunchKernel")?;
    let kernel_name = appender.intern(KERNELS[number as usize % KERNELS.len()])?;
    let op_type = appender.intern("KernelExecution")?;
    let args = appender.empty();
    appender.api(&ApiRow { id: api, pid: 4711, tid: 4712, start, end: start + 900, name, args })?;
    appender.kernel_api(&KernelApiRow {
        api,
        stream: 0x55d0_1234_5678,
        grid: [1024, 1, 1],
        workgroup: [256, 1, 1],
        group_segment_size: 0,
        private_segment_size: 0,
        kernarg_address: 0x7f00_0000_0000 + number * 64,
        acquire_fence: Fence::System,
        release_fence: Fence::System,
        code_object: CodeObjectId(1),
        kernel_name,
    })?;
    appender.op(&OpRow {
        id: op,
        gpu: 0,
        queue: 1,
        sequence: number,
        completion_signal: 0x7f11_0000_0000 + number % 64 * 64,
        start,
        end: start + 700,
        description: kernel_name,
        op_type,
    })?;
    appender.api_op(api, op)
}

fn marker(appender: &mut Appender, number: u64) -> Result<(), Error> {
    let name = appender.intern("UserMarker")?;
    let args = appender.intern(&format!("step {number} of an epoch"))?;
    let (id, start) = (ApiId::marker(number), number * 1000);
    appender.api(&ApiRow { id, pid: 4711, tid: 4712, start, end: start + 500, name, args })
}

const KERNELS: [&str; 4] = [
    "vectorAdd(float const*, float const*, float*, int)",
    "void reduce<256>(float*, int)",
    "Cijk_Ailk_Bljk_SB_MT128x64x16",
    "transpose(double*)",
];
