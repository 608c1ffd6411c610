//! `rpd run`: one recording on the software GPU, and every file that stacked tools of madengine would have written.

use std::fs;

use crate::harness::{Dir, Run, Running, program, rpd};
use crate::monitor::{Sysfs, WAITS};

/// A program under these tools, which waits for a file `go`; `trace` has what both sensors read.
fn waiting(dir: &Dir, tools: &str, trace: &str) -> Running {
    Sysfs::new(dir).put("mem_info_vram_total", "40960000000\n");
    let run = Run::new(dir, rpd()).arg("run").arg("--tools").arg(tools).arg("--").arg(program("control"));
    let run = WAITS.iter().fold(run, |run, act| run.arg(*act)).env("RPDT_SYSFS", dir.path("sys"));
    let mut running = run.start();
    running.wait_for_output("ready");
    for sensor in ["power", "vram"] {
        let rows = format!("select count(*) from rocpd_monitor where monitorType = '{sensor}'");
        dir.wait_for_rows(trace, &rows, 1);
    }
    running
}

#[test]
fn stacked_tools_have_their_files_from_one_run() {
    let dir = Dir::new();
    let tools = "rpd,rocprofv3,rocprofv3_agent,rocprofv3_perfetto,rocm_trace_lite,rocblas_trace,gpu_info_power_profiler,gpu_info_vram_profiler";
    let running = waiting(&dir, tools, "rpd_output/trace.rpd");
    dir.touch("go");
    running.finish().expect(0);
    let calls = "select count(*) from rocpd_api";
    let recorded = dir.trace("rpd_output/trace.rpd").number(calls);
    assert!(recorded > 0);
    assert_eq!(dir.trace("rocm_trace_lite_output/trace.db").number(calls), recorded);
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.path("rpd_output/trace.json")).unwrap()).unwrap();
    assert!(json["traceEvents"].as_array().is_some_and(|events| !events.is_empty()));
    assert_eq!(
        fs::read_to_string(dir.path("library_trace.csv")).unwrap(),
        "jobid,created_date,model,library,config,calls\r\n"
    );
    for (file, ends) in [("gpu_info_power_profiler", ",237.0"), ("gpu_info_vram_profiler", ",25.0")] {
        let csv = fs::read_to_string(dir.path(&format!("{file}_output.csv"))).unwrap();
        let rows: Vec<&str> = csv.lines().skip(1).collect();
        assert!(!rows.is_empty() && rows.iter().all(|row| row.ends_with(ends)), "{csv}");
    }
}

#[test]
fn rocprofv3_has_its_tables() {
    let dir = Dir::new();
    let run = Run::new(&dir, rpd())
        .arg("run")
        .arg("--tools")
        .arg("rpd,rocprofv3,rocprofv3_agent,rocprofv3_perfetto");
    run.arg("--").arg(program("demo")).run().expect(0);
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let written = fs::read_dir(dir.path("rocprof_output").join(host.trim())).unwrap().flatten();
    let written: Vec<String> = written.map(|file| file.file_name().into_string().unwrap()).collect();
    let trace = dir.trace("rpd_output/trace.rpd");
    let pid = trace.metadata("session::0::pid").into_values().next().unwrap();
    for file in ["agent_info.csv", "hip_api_trace.csv", "kernel_trace.csv", "results.json", "results.pftrace"]
    {
        assert!(written.contains(&format!("{pid}_{file}")), "{file} {written:?}");
    }
    assert!(written.iter().all(|name| name.starts_with(&format!("{pid}_"))), "{written:?}");
    // Of rocprofv3_agent the statistics too.
    let of_agent = |table: &str| {
        fs::read_to_string(dir.path(&format!("rocprof_output/rocprofv3_output_{table}.csv"))).unwrap()
    };
    // What fills memory is a kernel too.
    let kernels = trace.number("select count(*) from op where opType in ('KernelExecution', 'FillBuffer')");
    let counted: Option<i64> = of_agent("domain_stats")
        .lines()
        .find_map(|row| row.strip_prefix("\"KERNEL_DISPATCH\",")?.split(',').next()?.parse().ok());
    assert!(kernels > 0);
    assert_eq!((of_agent("kernel_trace").lines().count() as i64 - 1, counted), (kernels, Some(kernels)));
}

/// madengine's profilers go on after a SIGTERM until they are killed, and leave a process behind.
#[test]
fn sensors_end_with_a_command_that_gets_a_signal() {
    let dir = Dir::new();
    let running = waiting(&dir, "gpu_info_power_profiler,gpu_info_vram_profiler", "trace.rpd");
    running.signal(libc::SIGTERM);
    running.finish().expect_signal(libc::SIGTERM);
    for file in ["gpu_info_power_profiler", "gpu_info_vram_profiler"] {
        let csv = fs::read_to_string(dir.path(&format!("{file}_output.csv"))).unwrap();
        assert!(csv.lines().count() > 1, "{csv}");
    }
    let own = dir.path("sys").into_os_string().into_encoded_bytes();
    let is_left = |process: fs::DirEntry| {
        let variables = fs::read(process.path().join("environ")).unwrap_or_default();
        variables.windows(own.len()).any(|part| part == own).then(|| process.file_name())
    };
    let left: Vec<_> = fs::read_dir("/proc").unwrap().flatten().filter_map(is_left).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn tools_of_several_libraries_share_a_file() {
    // The first generation of madengine's tools left an empty file where two were stacked.
    let dir = Dir::new();
    let run =
        Run::new(&dir, rpd()).arg("run").arg("--tools").arg("rocblas_trace,hipblaslt_trace,miopen_trace");
    let ran = run.arg("--").arg(program("library_calls")).run();
    assert_eq!(ran.expect(3).stdout, "done 0\n", "{ran}");
    let csv = fs::read_to_string(dir.path("library_trace.csv")).unwrap();
    let calls = |library: &str| {
        let rows = csv
            .lines()
            .filter_map(|row| row.split(',').nth(3).filter(|of| *of == library).and(row.rsplit(',').next()));
        rows.map(|calls| calls.parse::<u32>().unwrap()).sum::<u32>()
    };
    // Of the sums of vectors one threw; the last two are of scalars in the GPU's memory.
    assert_eq!((calls("rocblas"), calls("hipblaslt"), calls("miopen")), (7, 3, 2), "{csv}");
}

#[test]
fn ranks_of_a_job_share_the_trace_and_its_exports() {
    // Of the original's tools the last rank to end replaced the files of the others.
    let dir = Dir::new();
    let rank = |rank: &str| {
        let run =
            Run::new(&dir, rpd()).arg("run").arg("--tools").arg("rpd").arg("--").arg(program("control"));
        let wait = format!("wait=go{rank}");
        let run = ["gpu", "mark=a", "say=ready", &wait].into_iter().fold(run, Run::arg);
        run.env("RANK", rank).env("WORLD_SIZE", "2").env("SLURM_JOB_ID", "77")
    };
    let mut ranks = Run::start_all(&[rank("0"), rank("1")]);
    ranks.iter_mut().for_each(|running| running.wait_for_output("ready"));
    for (number, running) in ranks.into_iter().enumerate() {
        dir.touch(&format!("go{number}"));
        running.finish().expect(0);
    }
    let trace = dir.trace("rpd_output/trace.rpd");
    trace.check_integrity();
    let ranks = "select distinct value from rocpd_metadata where tag like 'session::%::env::RANK' order by 1";
    assert_eq!(trace.texts(ranks), ["0", "1"]);
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.path("rpd_output/trace.json")).unwrap()).unwrap();
    let pids = trace.texts("select distinct value from rocpd_metadata where tag like 'session::%::pid'");
    let events = json["traceEvents"].as_array().unwrap();
    for pid in pids {
        assert!(
            events.iter().any(|event| event["ph"] != "M" && event["pid"].to_string().contains(&pid)),
            "{pid}: {json}"
        );
    }
}
