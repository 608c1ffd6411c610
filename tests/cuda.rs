//! CUDA by CUPTI, on the stand-ins for NVIDIA's libraries (fixtures/simcuda). What real ones do: tests/cuda/run, on a machine that has them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::harness::{Dir, Loading, Ran, Run, Trace, command, not_installed, program, recorder, rpd, tool};

/// Versions of CUPTI from 12.0 to 13.5, as cuptiGetVersion numbers them.
const VERSIONS: [u32; 14] =
    [18, 20, 21, 22, 23, 24, 26, 28, 130_001, 130_101, 130_202, 130_301, 130_401, 130_500];

/// A directory with the stand-ins, CUPTI in that version, for LD_LIBRARY_PATH.
pub(crate) fn libraries(dir: &Dir, version: u32) -> PathBuf {
    let folder = dir.path(&format!("cuda-{version}"));
    if !folder.exists() {
        std::fs::create_dir(&folder).unwrap();
        let major = if version < 130_000 { 12 } else { 13 };
        for name in ["libcuda.so.1", "libcudart.so.13"] {
            std::os::unix::fs::symlink(program(name), folder.join(name)).unwrap();
        }
        let cupti = program(&format!("libcupti-{version}.so"));
        std::os::unix::fs::symlink(cupti, folder.join(format!("libcupti.so.{major}"))).unwrap();
    }
    folder
}

/// work.c doing `what`, on CUPTI 13.0.
fn work<'a>(dir: &'a Dir, what: &str) -> Run<'a> {
    let run = what.split(' ').fold(Run::new(dir, program("cuda_work")), |run, word| run.arg(word));
    run.env("LD_LIBRARY_PATH", libraries(dir, 130_001))
}

/// What the program says it has done: how often, and from when to when.
fn done(ran: &Ran) -> Vec<(String, i64, i64, i64)> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |place: usize| words[place].parse().unwrap();
        (words[0].to_string(), number(1), number(2), number(3))
    };
    ran.stdout.lines().map(line).collect()
}

fn counts(trace: &Trace, sql: &str) -> BTreeMap<String, i64> {
    trace.rows(sql, |row| Ok((row.get(0)?, row.get(1)?))).into_iter().collect()
}

fn operations(trace: &Trace) -> BTreeMap<String, i64> {
    counts(trace, "select opType, count(*) from op group by 1")
}

fn calls(trace: &Trace) -> BTreeMap<String, i64> {
    counts(trace, "select apiName, count(*) from api group by 1")
}

fn map(pairs: &[(&str, i64)]) -> BTreeMap<String, i64> {
    pairs.iter().map(|(name, count)| (name.to_string(), *count)).collect()
}

/// Every operation is of one call, which began before it.
fn expect_linked(trace: &Trace) {
    let operations = trace.number("select count(*) from rocpd_op");
    let linked = "select count(*) from rocpd_api_ops L join rocpd_op O on O.id = L.op_id join rocpd_api A on A.id = L.api_id
        where O.start >= A.start and O.end >= O.start";
    assert_eq!(
        (trace.number(linked), trace.number("select count(*) from rocpd_api_ops")),
        (operations, operations)
    );
    assert_eq!(trace.metadata("session::%::ops_without_call").values().collect::<Vec<_>>(), ["0"]);
}

#[test]
fn everything_is_recorded_once_and_linked_in_every_version() {
    for version in VERSIONS {
        let dir = Dir::new();
        let run = work(&dir, "launch=1000 copy=30 fill=5 graph=4 capture=7 threads=4 launch=2500");
        let run = run.env("LD_LIBRARY_PATH", libraries(&dir, version)).recorded(Loading::Preload);
        let ran = run.run();
        let trace = dir.succeeded(&ran);
        let expected = [
            ("KernelExecution", 1000 + 4 * 10 + 10_000),
            ("CopyHostToDevice", 10),
            ("CopyDeviceToDevice", 10),
            ("CopyDeviceToHost", 10),
            ("FillBuffer", 5),
        ];
        assert_eq!(operations(&trace), map(&expected), "{version}");
        let expected = [
            ("cuLaunchKernel", 1000 + 10 + 7 + 10_000),
            ("cuMemcpyHtoDAsync_v2", 10),
            ("cuMemcpyDtoDAsync_v2", 10),
            ("cuMemcpyDtoHAsync_v2", 10),
            ("cuMemsetD8Async", 5),
            ("cuGraphLaunch", 4),
            ("cuGraphInstantiateWithFlags", 1),
            ("cuStreamBeginCapture_v2", 2),
            ("cuStreamEndCapture", 2),
            ("cuStreamSynchronize", 1 + 1 + 1 + 1 + 1 + 4),
            ("cuMemAlloc_v2", 4),
            ("cuModuleLoadData", 1),
        ];
        assert_eq!(calls(&trace), map(&expected), "{version}");
        expect_linked(&trace);
        // Kernels of the four threads are of their streams, and inside what the program has measured.
        let queues = counts(&trace, "select '' || queueId, count(*) from rocpd_op group by 1");
        assert_eq!(queues.values().sum::<i64>(), 1000 + 40 + 35 + 10_000);
        assert_eq!(queues.len(), 4);
        for (what, count, begin, end) in done(&ran).into_iter().filter(|done| done.0 == "launch") {
            let inside = format!(
                "select count(*) from op where opType = 'KernelExecution' and start >= {begin} and end <= {end} + 32"
            );
            assert_eq!(trace.number(&inside), count, "{what}");
        }
        let threads = "select count(distinct tid) from api where apiName = 'cuLaunchKernel'";
        assert!(trace.number(threads) >= 4);
        let check = tool(rpd().to_str().unwrap(), &["check", dir.path("trace.rpd").to_str().unwrap()]);
        assert!(check.contains("0 errors, 0 warnings, 0 notes"), "{check}");
    }
}

#[test]
fn calls_of_the_runtime_are_recorded_and_linked_in_every_version() {
    for version in VERSIONS {
        let dir = Dir::new();
        let run = Run::new(&dir, program("cuda_runtime")).arg("20");
        let run = run.env("LD_LIBRARY_PATH", libraries(&dir, version)).recorded(Loading::Preload);
        let trace = dir.succeeded(&run.run());
        assert_eq!(
            operations(&trace),
            map(&[("KernelExecution", 40), ("CopyHostToDevice", 20)]),
            "{version}"
        );
        let names =
            ["Malloc", "Memcpy2DAsync", "LaunchKernel", "LaunchKernelExC", "DeviceSynchronize", "Free"];
        let names = names.map(|name| format!("cuda{name}"));
        let expected: Vec<(&str, i64)> = names.iter().map(|name| (name.as_str(), 20)).collect();
        assert_eq!(calls(&trace), map(&expected), "{version}");
        expect_linked(&trace);
        let by_call =
            "select A.apiName || ' ' || K.kernelName || ' ' || K.gridX || ' ' || K.workgroupX, count(*)
            from kernel K join rocpd_api_ops L on L.op_id = K.id join api A on A.id = L.api_id group by 1";
        let expected = [("cudaLaunchKernel plain() 3 64", 20), ("cudaLaunchKernelExC extended() 5 32", 20)];
        assert_eq!(counts(&trace, by_call), map(&expected), "{version}");
        assert_eq!(arguments(&trace, "cudaDeviceSynchronize"), ["context=1"]);
        assert_eq!(arguments(&trace, "cudaLaunchKernelExC"), [""]);
        let says_source =
            arguments(&trace, "cudaMalloc")[0].ends_with("| memory=device | source=cuda_runtime");
        assert_eq!(says_source, version >= 24, "{version} {:?}", arguments(&trace, "cudaMalloc"));
        // Addresses that the file does not know are not shown as 0.
        let shown = tool(rpd().to_str().unwrap(), &["api", dir.path("trace.rpd").to_str().unwrap()]);
        assert!(shown.contains("cudaMemcpy2DAsync(size=1024 | kind=1 | stream=0x7)"), "{shown}");
    }
}

#[test]
fn calls_of_the_runtime_have_their_own_arguments_not_those_of_the_driver_inside() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("cuda_runtime")).arg("20").env("RPDT_CUDA_APIS", "args");
    let run = run.env("LD_LIBRARY_PATH", libraries(&dir, 130_001)).recorded(Loading::Preload);
    let trace = dir.succeeded(&run.run());
    for (function, like) in [
        ("cudaLaunchKernel", "func=0x% | gridDim=3,2,1 | blockDim=64,1,1 | sharedMem=0x80 | stream=0x0"),
        (
            "cudaLaunchKernelExC",
            "func=0x% | gridDim=5,1,1 | blockDim=32,2,1 | dynamicSmemBytes=0x100 | stream=0x0",
        ),
        (
            "cudaMemcpy2DAsync",
            "dst=0x% | dpitch=0x80 | src=0x% | spitch=0x40 | width=0x40 | height=0x10 | kind=1 | stream=0x0",
        ),
        ("cudaMalloc", "devPtr=0x% | size=0x1000"),
        ("cudaFree", "devPtr=0x%"),
    ] {
        let fit = format!("select count(*) from api where apiName = '{function}' and args like '{like}'");
        assert_eq!(trace.number(&fit), 20, "{function} {:?}", arguments(&trace, function));
    }
    expect_linked(&trace);
    let shown = tool(rpd().to_str().unwrap(), &["api", dir.path("trace.rpd").to_str().unwrap()]);
    for call in shown.lines().filter(|line| line.contains("cuda")) {
        assert!(call.matches("stream=").count() <= 1 && call.matches("dst=").count() <= 1, "{call}");
    }
    assert!(!shown.contains("dst=0x0"), "{shown}");
}

#[test]
fn copies_of_every_kind_have_their_direction_bytes_and_arguments() {
    for version in VERSIONS {
        let dir = Dir::new();
        let run = Run::new(&dir, program("cuda_copies")).arg("3").env("SIMCUDA_GPUS", "2");
        let run = run.env("LD_LIBRARY_PATH", libraries(&dir, version)).recorded(Loading::Preload);
        let with_arguments = version == 130_001;
        let ran = if with_arguments { run.env("RPDT_CUDA_APIS", "args") } else { run }.run();
        let trace = dir.succeeded(&ran);
        let copied = "select O.opType || ' ' || C.size, count(*) from rocpd_copyapi C join rocpd_api_ops L on L.api_id = C.api_ptr_id
            join op O on O.id = L.op_id group by 1";
        // Each kind has a number of bytes of its own.
        let is_on_host =
            |side: &str| ["host", "pageable", "pinned"].iter().any(|start| side.starts_with(start));
        let expected: Vec<(String, i64)> = ran
            .stdout
            .lines()
            .map(|line| {
                let [kind, count, size, _] = line.split(' ').collect::<Vec<_>>()[..] else {
                    panic!("{line}")
                };
                let kind = kind.strip_prefix("any-").unwrap_or(kind);
                let (source, destination) =
                    kind.split_once("-to-").or(kind.split_once("-from-")).unwrap_or((kind, ""));
                let (source, destination) =
                    if kind.contains("-from-") { (destination, source) } else { (source, destination) };
                let direction = match [source, destination].map(is_on_host) {
                    [true, true] => "CopyHostToHost",
                    [true, false] => "CopyHostToDevice",
                    [false, true] => "CopyDeviceToHost",
                    [false, false] => "CopyDeviceToDevice",
                };
                (format!("{direction} {size}"), count.parse().unwrap())
            })
            .collect();
        assert_eq!(counts(&trace, copied), expected.into_iter().collect(), "{version}");
        expect_linked(&trace);
        let between = "select distinct C.srcDevice || ' to ' || C.dstDevice from rocpd_copyapi C
            join api A on A.id = C.api_ptr_id where A.apiName = 'cuMemcpyPeerAsync' order by 1";
        assert_eq!(trace.texts(between), ["1 to 2", "2 to 1"], "{version}");
        if with_arguments {
            for (function, glob) in [
                (
                    "cuMemcpy2DAsync_v2",
                    "hStream=0x* | srcMemoryType=[12] | src*=0x* | dstMemoryType=[12] | dst*=0x* | WidthInBytes=0x* | Height=0x20",
                ),
                (
                    "cuMemcpyPeerAsync",
                    "dstDevice=0x* | dstContext=0x* | srcDevice=0x* | srcContext=0x* | ByteCount=0x2[67]000 | hStream=0x*",
                ),
                (
                    "cuMemcpyAtoA_v2",
                    "dstArray=0x* | dstOffset=0x0 | srcArray=0x* | srcOffset=0x0 | ByteCount=0x20000",
                ),
            ] {
                let given = arguments(&trace, function);
                let fit =
                    format!("select count(*) from api where apiName = '{function}' and args glob '{glob}'");
                let all = format!("select count(*) from api where apiName = '{function}'");
                assert_eq!(trace.number(&fit), trace.number(&all), "{function} {given:?}");
            }
        }
    }
}

#[test]
fn times_of_another_clock_are_converted() {
    let dir = Dir::new();
    let run = work(&dir, "launch=200 sleep=300 copy=30 launch=200").env("SIMCUPTI_FAULT", "refuses-clock");
    let ran = run.recorded(Loading::Preload).run();
    let trace = dir.succeeded(&ran);
    expect_linked(&trace);
    for (what, count, begin, end) in done(&ran).into_iter().filter(|done| done.0 == "launch") {
        // Both clocks are read one after the other: what lies between them is known to microseconds, on a busy machine to less.
        let inside = format!(
            "select count(*) from op where opType = 'KernelExecution' and start >= {begin} - 500000 and end <= {end} + 500000"
        );
        assert_eq!(trace.number(&inside), count, "{what}");
    }
    let clock = trace.metadata("session::0::cuda::clock").into_values().next();
    assert!(clock.is_some_and(|clock| clock.starts_with("CLOCK_REALTIME, converted")));
    let other = Dir::new();
    let trace = other.succeeded(&work(&other, "launch=2").recorded(Loading::Preload).run());
    assert!(trace.metadata("session::0::cuda::clock").is_empty());
    // A clock that is neither is not guessed at.
    let none = Dir::new();
    let run = work(&none, "launch=2").env("SIMCUPTI_FAULT", "refuses-clock,other-clock");
    let ran = run.recorded(Loading::Preload).run();
    assert!(ran.expect(0).stderr.contains("its own is not CLOCK_REALTIME"), "{ran}");
    assert!(!none.path("trace.rpd").exists(), "nothing was recorded: {ran}");
}

#[test]
fn columns_say_what_cupti_says() {
    let dir = Dir::new();
    let ran = work(&dir, "launch=1 copy=3 graph=1").recorded(Loading::RpdRecord).run();
    let said = "rpd: trace.rpd: 11 kernels, 3 copies, 0 records lost";
    assert!(ran.expect(0).stderr.starts_with(said), "{ran}");
    let trace = dir.whole_trace();
    let launch = "select N.string || ' ' || stream || ' ' || gridX || ',' || gridY || ',' || gridZ || ' ' || workgroupX || ',' || workgroupY
        || ',' || workgroupZ || ' ' || groupSegmentSize || ' ' || privateSegmentSize from rocpd_kernelapi
        join rocpd_string N on N.id = kernelName_id";
    assert_eq!(
        trace.texts(launch),
        ["empty() 0xd 3,2,1 64,1,1 144 24"],
        "nodes of a graph are of no launch of their own"
    );
    let dispatches =
        "select count(*) from dispatch where gridX = 3 and workgroupX = 64 and groupSegmentSize = 144";
    assert_eq!(trace.number(dispatches), 11);
    assert_eq!(trace.texts("select vgpr || ' ' || sgpr from rocpd_kernelcodeobject"), ["16 0"]);
    // The software GPU, which is one of AMD's to the recorder, is number 0.
    let copies = "select size || ' ' || kind || ' ' || srcDevice || ' ' || dstDevice || ' ' || stream from rocpd_copyapi
        order by kind";
    assert_eq!(trace.texts(copies), ["65536 1 -1 1 0xd", "65536 2 1 -1 0xd", "65536 3 1 1 0xd"]);
    assert_eq!(trace.number("select count(*) from rocpd_op where gpuId = 1 and queueId = 13"), 14);
    let facts = trace.metadata("session::0::%");
    let fact = |name: &str| facts.get(&format!("session::0::{name}")).map(String::as_str);
    assert_eq!((fact("sources"), fact("timing")), (Some("cuda"), Some("cupti")));
    assert_eq!(fact("version::cupti"), Some("13.0 (130001), libcupti.so.13"));
    assert_eq!(fact("version::cuda"), Some("13.0"));
    let gpu = ["name", "target", "bdf", "uuid"]
        .map(|key| trace.metadata(&format!("gpu::1::{key}")).into_values().next());
    let expected = ["NVIDIA stand-in", "sm_90", "0000:0a:00.0", "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"];
    assert_eq!(gpu.map(Option::unwrap), expected);
    let info = tool(rpd().to_str().unwrap(), &["info", dir.path("trace.rpd").to_str().unwrap()]);
    assert!(info.contains("NVIDIA stand-in") && info.contains("sm_90"), "{info}");
    assert!(info.contains("CUDA 13.0, CUPTI 13.0 (130001), libcupti.so.13\n"), "{info}");
}

/// Expects 30 kernels of HIP's on the software GPU, GPU 0, 50 of CUDA's on GPU 1, each linked to its call, and what is known of both GPUs.
fn expect_both_vendors(dir: &Dir, trace: &Trace, timing: &str) {
    trace.check_integrity();
    let kernels = counts(
        trace,
        "select gpuId || ' ' || description, count(*) from op where opType = 'KernelExecution' group by 1",
    );
    assert_eq!(kernels, map(&[("0 add_one(float*)", 30), ("1 empty()", 50)]));
    let linked =
        "select A.apiName || ' ' || O.gpuId, count(*) from rocpd_api_ops L join rocpd_op O on O.id = L.op_id
        join api A on A.id = L.api_id group by 1";
    assert_eq!(counts(trace, linked), map(&[("cuLaunchKernel 1", 50), ("hipLaunchKernel 0", 30)]));
    let fact = |key: &str| trace.metadata(key).into_values().collect::<Vec<_>>();
    assert_eq!(fact("gpu::%::name"), ["simgpu gfx900", "NVIDIA stand-in"]);
    assert_eq!(fact("gpu::%::target").len(), 2);
    let of_sessions = |key: &str| {
        let mut words: Vec<String> =
            fact(key).iter().flat_map(|text| text.split(',').map(String::from)).collect();
        words.sort();
        words
    };
    assert_eq!(of_sessions("session::%::timing").join(","), timing);
    assert_eq!(of_sessions("session::%::sources"), ["cuda", "hip", "hsa"]);
    for of in ["hsa", "hip", "cuda", "cupti"] {
        assert!(!fact(&format!("session::%::version::{of}")).is_empty(), "{of}");
    }
    let info = tool(rpd().to_str().unwrap(), &["info", dir.path("trace.rpd").to_str().unwrap()]);
    for shown in ["NVIDIA stand-in", "gfx900", "CUDA 13.0"] {
        assert!(info.contains(shown), "no {shown} in {info}");
    }
}

#[test]
fn one_process_may_use_gpus_of_two_vendors() {
    // The second vendor's GPUs are found after the facts of the first are in the file, or right behind them.
    for (order, pause, times) in [
        (["hip", "cuda"], "1500", "hsa"),
        (["cuda", "hip"], "1500", "hsa"),
        (["hip", "cuda"], "0", "hip"),
        (["cuda", "hip"], "0", "hsa"),
    ] {
        let dir = Dir::new();
        let run = order.into_iter().fold(Run::new(&dir, program("both_vendors")), Run::arg).arg(pause);
        let run = run.env("LD_LIBRARY_PATH", libraries(&dir, 130_001)).gpus(1).env("RPDT_TIMING", times);
        let ran = run.recorded(Loading::RpdRecord).run();
        assert_eq!(ran.expect(0).stdout, "done\n", "{ran}");
        let trace = dir.trace("trace.rpd");
        expect_both_vendors(&dir, &trace, if times == "hip" { "cupti,hip" } else { "cupti,hsa" });
        assert_eq!(
            trace.metadata("session::%::timing").into_values().collect::<Vec<_>>(),
            [format!("{times},cupti")]
        );
    }
}

#[test]
fn two_processes_of_two_vendors_share_a_file() {
    let dir = Dir::new();
    let one = |vendor: &'static str| {
        let run = Run::new(&dir, program("both_vendors")).arg(vendor).arg("none").arg("0").gpus(1);
        run.env("LD_LIBRARY_PATH", libraries(&dir, 130_001)).recorded(Loading::Preload)
    };
    for running in Run::start_all(&[one("hip"), one("cuda")]) {
        running.finish().expect(0);
    }
    expect_both_vendors(&dir, &dir.trace("trace.rpd"), "cupti,hsa");
}

/// The arguments of the calls of that function, each once.
fn arguments(trace: &Trace, function: &str) -> Vec<String> {
    trace.texts(&format!("select distinct args from api where apiName = '{function}' order by args"))
}

/// What `rpd memory` says, without spaces.
fn memory(dir: &Dir) -> String {
    let shown = tool(rpd().to_str().unwrap(), &["memory", "--json", dir.path("trace.rpd").to_str().unwrap()]);
    shown.replace(' ', "")
}

#[test]
fn calls_say_what_they_allocate_and_what_they_wait_for() {
    for version in VERSIONS {
        let dir = Dir::new();
        let run = work(&dir, "launch=10 free").env("LD_LIBRARY_PATH", libraries(&dir, version));
        let trace = dir.succeeded(&run.recorded(Loading::Preload).run());
        assert_eq!(arguments(&trace, "cuStreamSynchronize"), ["stream=0xd"], "{version}");
        let [allocated, freed] = ["cuMemAlloc_v2", "cuMemFree_v2"].map(|name| arguments(&trace, name));
        let address = allocated[0].strip_prefix("ptr=0x").and_then(|rest| rest.split(' ').next()).unwrap();
        // 12.6 is the first whose records say who asked.
        let source = if version >= 24 { " | source=cuda_work" } else { "" };
        assert_eq!(
            allocated,
            [format!("ptr=0x{address} | size=0x20000 | memory=device{source}")],
            "{version}"
        );
        assert_eq!(freed, [format!("ptr=0x{address} | size=0x0 | memory=device{source}")], "{version}");
        assert_eq!(arguments(&trace, "cuLaunchKernel"), [""]);
        let facts = trace.metadata("session::0::cuda::%");
        let fact = |name: &str| facts.get(&format!("session::0::cuda::{name}")).map(String::as_str);
        assert_eq!(fact("stream::1::13"), Some("priority 0, non-blocking"), "{version} {facts:?}");
        assert_eq!(fact("context::1"), Some("gpu 1"));
        assert!(fact("overhead::buffer_flush").is_some_and(|text| text.ends_with(" ns")), "{facts:?}");
        let memory = memory(&dir);
        assert!(memory.contains("\"allocated_bytes\":131072") && memory.contains("\"freed\":1"), "{memory}");
    }
}

#[test]
fn cupti_makes_records_of_waits_where_arguments_are_asked_for() {
    // The stand-in ends a program that has it make them.
    let dir = Dir::new();
    let run = || work(&dir, "launch=10").env("SIMCUPTI_FAULT", "records-waits");
    let trace = dir.succeeded(&run().recorded(Loading::Preload).run());
    assert_eq!(arguments(&trace, "cuStreamSynchronize"), ["stream=0xd"]);
    let with_arguments = run().env("RPDT_CUDA_APIS", "args").recorded(Loading::Preload).run();
    with_arguments.expect_signal(libc::SIGABRT);
}

#[test]
fn arguments_are_kept_where_they_are_asked_for() {
    for injected in [false, true] {
        let dir = Dir::new();
        let run = work(&dir, "threads=3 launch=2000 free").env("RPDT_CUDA_APIS", "args");
        let run = if injected {
            run.env("CUDA_INJECTION64_PATH", recorder()).env("SIMCUPTI_FAULT", "late")
        } else {
            run.recorded(Loading::Preload)
        };
        run.run().expect(0);
        let trace = dir.whole_trace();
        assert_eq!(operations(&trace), map(&[("KernelExecution", 6000)]));
        expect_linked(&trace);
        let launches = "select count(*) from api where apiName = 'cuLaunchKernel' and args glob
            'f=0x* | gridDimX=3 | gridDimY=2 | gridDimZ=1 | blockDimX=64 | blockDimY=1 | blockDimZ=1 | sharedMemBytes=128 | hStream=0x*'";
        assert_eq!(trace.number(launches), 6000);
        let allocated = arguments(&trace, "cuMemAlloc_v2");
        assert_eq!(allocated.len(), 3, "{allocated:?}");
        assert!(
            allocated.iter().all(|text| text.starts_with("dptr=0x") && text.ends_with("| bytesize=0x20000"))
        );
        let freed: Vec<String> =
            allocated.iter().map(|text| text.split(' ').next().unwrap().into()).collect();
        assert_eq!(arguments(&trace, "cuMemFree_v2"), freed);
        let memory = memory(&dir);
        assert!(memory.contains("\"allocated_bytes\":393216") && memory.contains("\"freed\":3"), "{memory}");
    }
}

#[test]
fn graphs_are_recorded_as_a_whole_where_that_is_asked_for() {
    for version in VERSIONS {
        let dir = Dir::new();
        let run = work(&dir, "launch=10 graph=4").env("LD_LIBRARY_PATH", libraries(&dir, version));
        let ran = run.env("RPDT_CUDA_GRAPHS", "launch").recorded(Loading::Preload).run();
        let trace = dir.succeeded(&ran);
        assert_eq!(operations(&trace), map(&[("KernelExecution", 10), ("GraphExecution", 4)]), "{version}");
        expect_linked(&trace);
        let graphs = "select distinct O.description || ' ' || O.queueId || ' ' || A.apiName from op O
            join rocpd_api_ops L on L.op_id = O.id join api A on A.id = L.api_id where O.opType = 'GraphExecution'";
        assert_eq!(trace.texts(graphs), ["graph 1 13 cuGraphLaunch"]);
        let check = tool(rpd().to_str().unwrap(), &["check", dir.path("trace.rpd").to_str().unwrap()]);
        assert!(check.contains("0 errors, 0 warnings"), "{check}");
    }
    let dir = Dir::new();
    let words = ["record", "--cuda-graphs", "launch", "-o", "t.rpd", "--"];
    let run = words.into_iter().fold(Run::new(&dir, rpd()), |run, word| run.arg(word));
    let run = run.arg(program("cuda_work")).arg("graph=4").env("LD_LIBRARY_PATH", libraries(&dir, 130_001));
    run.run().expect(0);
    assert_eq!(operations(&dir.trace("t.rpd")), map(&[("GraphExecution", 4)]));
}

#[test]
fn kernels_of_graphs_have_their_nodes_and_kernels_in_clusters_their_clusters() {
    let attributes = "select count(*) || ' of ' || count(distinct graph || ' ' || graphNode) || ': ' || max(graph) || ' ' || clusterX
        || clusterY || clusterZ from ext_launchattribute L join op O on O.id = L.op_id where O.opType = 'KernelExecution'";
    for version in VERSIONS {
        let dir = Dir::new();
        let run = work(&dir, "launch=10 graph=4").env("LD_LIBRARY_PATH", libraries(&dir, version));
        let trace = dir.succeeded(&run.recorded(Loading::Preload).run());
        assert_eq!(trace.texts(attributes), ["40 of 10: 1 000"], "{version}");
        let dir = Dir::new();
        let run = work(&dir, "launch=10").env("LD_LIBRARY_PATH", libraries(&dir, version));
        let trace = dir.succeeded(&run.env("SIMCUPTI_CLUSTER", "2").recorded(Loading::Preload).run());
        assert_eq!(trace.texts(attributes), ["10 of 1: 0 211"], "{version}");
    }
    let dir = Dir::new();
    let trace = dir.succeeded(&work(&dir, "launch=10").recorded(Loading::Preload).run());
    assert!(!trace.has_table("ext_launchattribute"));
}

/// What ptxas of CUDA 12.4 made of scale.ptx beside it.
const CUBIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../codeobject/tests/data/scale.cubin");

#[test]
fn code_is_saved_and_shown() {
    let dir = Dir::new();
    let run = work(&dir, "launch=5").env("SIMCUDA_CUBIN", CUBIN).env("RPDT_SAVE_CODE", dir.path("code"));
    let trace = dir.succeeded(&run.recorded(Loading::Preload).run());
    let saved = trace.texts("select target || ' ' || size || ' ' || sha256 from ext_codeobject");
    let [saved] = &saved[..] else { panic!("{saved:?}") };
    let sha256 = saved.strip_prefix("sm_90 4936 ").unwrap();
    let file = dir.path(&format!("code/{sha256}.cubin"));
    assert!(std::fs::read(&file).unwrap() == std::fs::read(CUBIN).unwrap());
    assert_eq!(trace.number("select count(*) from ext_codeobject_kernel"), 1);
    let shown = tool(rpd().to_str().unwrap(), &["code", "--csv", file.to_str().unwrap()]);
    let rows: Vec<&str> = shown.lines().collect();
    assert_eq!(rows.len(), 3, "{shown}");
    assert!(rows[1..].iter().any(|row| row.contains("scale(float*, float, int)") && row.contains("sm_90")));
    let shown = tool(rpd().to_str().unwrap(), &["code", "--args", dir.path("trace.rpd").to_str().unwrap()]);
    assert!(shown.contains("sm_90") && shown.contains("empty()"), "{shown}");
}

#[test]
fn nvidias_disassembler_shows_instructions_where_it_is_installed() {
    let dir = Dir::new();
    let folder = dir.path("tools");
    std::fs::create_dir(&folder).unwrap();
    let run =
        |path: PathBuf| Run::new(&dir, rpd()).arg("code").arg("--disasm").arg(CUBIN).env("PATH", path).run();
    if !std::path::Path::new("/usr/local/cuda/bin/nvdisasm").exists() {
        assert!(run(folder.clone()).expect(1).stderr.contains("nvdisasm is not on PATH"));
    }
    let tool = folder.join("nvdisasm");
    std::fs::write(
        &tool,
        "#!/bin/sh\nprintf '\\tFADD R1, R2, R3 \\033[31m;\\n'; for word; do :; done; echo \"$1 $2 ${word##*/}\"",
    )
    .unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let shown = run(folder);
    let lines: Vec<&str> = shown.expect(0).stdout.lines().collect();
    assert!(lines[0].starts_with("    FADD R1, R2, R3 ") && !lines[0].contains('\u{1b}'), "{shown}");
    assert_eq!(lines[1], "--print-code --print-line-info scale.cubin");
    let real = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/nvdisasm/nvidia"));
    if !real.exists() {
        return not_installed("the Python package nvidia-cuda-nvdisasm");
    }
    // As pip puts it into an environment, which it does not add to PATH.
    let packages = dir.path("[venv]/lib/python3.13/site-packages");
    std::fs::create_dir_all(&packages).unwrap();
    std::os::unix::fs::symlink(real, packages.join("nvidia")).unwrap();
    let shown = Run::new(&dir, rpd()).arg("code").arg("--disasm").arg(CUBIN);
    let shown =
        shown.env("PATH", "/usr/bin").env("VIRTUAL_ENV", dir.path("[venv]")).run().expect(0).stdout.clone();
    assert!(shown.contains("FFMA R9, R9, UR4, R0 ;") && shown.contains("_Z5scalePffi:"), "{shown}");
    assert!(!shown.contains("\\t") && !shown.contains("EIATTR"), "{shown}");
}

#[test]
fn another_profiler_gets_cupti_where_that_is_allowed() {
    for (yields, answer, kernels) in [("1", 0, 100), ("0", 39, 100 + 50 + 30)] {
        let dir = Dir::new();
        let what = "launch=100 profile launch=50 stop start launch=30";
        let run =
            what.split(' ').fold(Run::new(&dir, program("cuda_work_profile")), |run, word| run.arg(word));
        let run = run.env("LD_LIBRARY_PATH", libraries(&dir, 130_001)).env("RPDT_CUPTI_YIELD", yields);
        let ran = run.recorded(Loading::Preload).run();
        ran.expect(0);
        let (_, answered, ..) = done(&ran).into_iter().find(|done| done.0 == "profile").unwrap();
        assert_eq!(answered, answer, "{ran}");
        let said = "another profiler takes CUPTI (RPDT_CUPTI_YIELD)";
        assert_eq!(ran.stderr.contains(said), yields == "1", "{ran}");
        let trace = dir.whole_trace();
        let left = trace.metadata("session::0::cuda_unavailable");
        assert_eq!(left.len(), usize::from(yields == "1"), "{left:?}");
        // The other one keeps it.
        assert_eq!(operations(&trace), map(&[("KernelExecution", kernels)]), "{ran}");
        expect_linked_so_far(&trace);
    }
}

#[test]
fn every_way_in_and_every_end() {
    // By the driver alone, no function of the recorder's stands in front of the C library's when the program is loaded.
    for (end, code) in [("_exit", Some(5)), ("exit", Some(6)), ("", Some(0)), ("abort", None)] {
        for injected in [false, true] {
            let dir = Dir::new();
            let run = work(&dir, format!("threads=2 launch=3000 {end}").trim());
            let run = if injected {
                run.env("CUDA_INJECTION64_PATH", recorder())
            } else {
                run.recorded(Loading::Preload)
            };
            let ran = run.run();
            match code {
                Some(code) => ran.expect(code),
                None => ran.expect_signal(libc::SIGABRT),
            };
            let trace = dir.whole_trace();
            assert_eq!(operations(&trace), map(&[("KernelExecution", 6000)]), "{end} {injected}");
            expect_linked_so_far(&trace);
        }
    }
}

/// As [`expect_linked`], of a session that may not have said how it ended.
fn expect_linked_so_far(trace: &Trace) {
    let without =
        "select count(*) from rocpd_op O left join rocpd_api_ops L on L.op_id = O.id where L.id is null";
    assert_eq!(trace.number(without), 0);
    assert_eq!(trace.number("select count(*) from api where apiName = 'cudaOperation'"), 0);
}

#[test]
fn a_killed_program_leaves_what_was_committed() {
    let dir = Dir::new();
    let ran = work(&dir, "launch=1000 sleep=3000 launch=10 kill").recorded(Loading::Preload).run();
    ran.expect_signal(libc::SIGKILL);
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert!((1000..=1010).contains(&operations(&trace)["KernelExecution"]));
    expect_linked_so_far(&trace);
}

#[test]
fn forked_children_never_call_cupti() {
    let dir = Dir::new();
    // A child that flushes CUPTI would not come back.
    let ran = work(&dir, "launch=500 fork=4 launch=500").recorded(Loading::Preload).run();
    let trace = dir.succeeded(&ran);
    assert!(!ran.stdout.contains("child ended by"), "{ran}");
    assert_eq!(operations(&trace), map(&[("KernelExecution", 1000)]));
    assert_eq!(trace.session_count(), 1, "a child that records nothing has no session");
    // What a child records brings its writer, which looks for CUDA. CUPTI aborts there.
    let dir = Dir::new();
    let ran = work(&dir, "launch=100 fork-marks=4 launch=100").recorded(Loading::Preload).run();
    let trace = dir.succeeded(&ran);
    assert!(!ran.stdout.contains("child ended by"), "{ran}");
    assert_eq!(operations(&trace), map(&[("KernelExecution", 200)]));
    assert_eq!(trace.session_count(), 1 + 4);
}

#[test]
fn stopped_and_started_again() {
    let dir = Dir::new();
    // The first pause is so short that CUPTI stays, the second is not.
    let what =
        "launch=100 stop launch=50 start launch=200 stop sleep=3000 launch=70 start launch=400 graph=1 flush";
    let ran = work(&dir, what).recorded(Loading::Preload).run();
    let trace = dir.succeeded(&ran);
    assert_eq!(operations(&trace), map(&[("KernelExecution", 100 + 200 + 400 + 10)]));
    assert_eq!(calls(&trace)["cuLaunchKernel"], 100 + 200 + 400 + 10);
    expect_linked(&trace);
    for (what, _, begin, end) in
        done(&ran).into_iter().filter(|done| ["rpdstop", "rpdstart"].contains(&done.0.as_str()))
    {
        assert!(begin > 0 && end >= begin, "{what}");
    }
}

#[test]
fn recording_that_begins_later() {
    let dir = Dir::new();
    let ran =
        work(&dir, "launch=100 start launch=30").env("RPDT_AUTOSTART", "0").recorded(Loading::Preload).run();
    let trace = dir.succeeded(&ran);
    assert_eq!(operations(&trace), map(&[("KernelExecution", 30)]));
    expect_linked(&trace);
    // The first launches come inside the delay, which a busy machine needs a longer one for.
    let is_alone = |delay: u32| {
        let dir = Dir::new();
        let acts = format!("launch=100 sleep={} launch=30", 3000 * delay);
        let ran = work(&dir, &acts).env("RPDT_DELAY", delay.to_string()).recorded(Loading::Preload).run();
        operations(&dir.succeeded(&ran)) == map(&[("KernelExecution", 30)])
    };
    assert!([1, 10, 60].into_iter().any(is_alone), "what came before is not recorded");
}

#[test]
fn records_that_come_late_are_linked_all_the_same() {
    let dir = Dir::new();
    let run = work(&dir, "threads=3 launch=4000 copy=300 graph=5").env("SIMCUPTI_FAULT", "late");
    let trace = dir.succeeded(&run.recorded(Loading::Preload).run());
    assert_eq!(operations(&trace)["KernelExecution"], 3 * (4000 + 50));
    expect_linked(&trace);
}

#[test]
fn nothing_begins_before_its_call() {
    let dir = Dir::new();
    // Launches by themselves begin at once, where the machine is not busy.
    let alone = " launch=1 sleep=2".repeat(50);
    let run = work(&dir, &format!("launch=1000 copy=30 graph=4{alone}")).env("SIMCUPTI_FAULT", "early");
    let trace = dir.succeeded(&run.recorded(Loading::Preload).run());
    assert_eq!(operations(&trace)["KernelExecution"], 1090);
    expect_linked(&trace);
    let clamped = trace.metadata("session::%::clamped_times").into_values().next().unwrap();
    assert_ne!(clamped, "0");
}

#[test]
fn losses_are_counted() {
    let dir = Dir::new();
    let ran = work(&dir, "launch=1000").env("SIMCUPTI_FAULT", "full").recorded(Loading::Preload).run();
    ran.expect(0);
    let trace = dir.trace("trace.rpd");
    assert_eq!(operations(&trace), map(&[("KernelExecution", 100)]));
    assert_eq!(trace.lost().into_values().collect::<Vec<_>>(), ["900"]);
    assert!(trace.lost().into_keys().all(|cause| cause.ends_with("cupti_full")), "{:?}", trace.lost());
    let dir = Dir::new();
    work(&dir, "launch=10").env("SIMCUPTI_FAULT", "no-times").recorded(Loading::Preload).run().expect(0);
    let trace = dir.trace("trace.rpd");
    assert!(operations(&trace).is_empty());
    assert_eq!(trace.lost().into_values().collect::<Vec<_>>(), ["10"]);
}

#[test]
fn what_cannot_be_recorded_is_one_line() {
    let start = "rpd_tracer: no kernels and copies of this process's NVIDIA GPUs are recorded: ";
    let refused = |variables: &[(&str, &str)]| {
        let dir = Dir::new();
        let run = work(&dir, "launch=10 sleep=1500 launch=10").recorded(Loading::Preload);
        let ran = variables.iter().fold(run, |run, (name, value)| run.env(name, *value)).run();
        ran.expect(0);
        assert!(!dir.path("trace.rpd").exists(), "{ran}");
        let lines: Vec<&str> = ran.stderr.lines().collect();
        let line = lines
            .first()
            .and_then(|line| line.split_once(start.split_once(':').unwrap().1))
            .unwrap_or_default();
        assert_eq!(lines.len(), 1, "{ran}");
        line.1.to_string()
    };
    let why = refused(&[("SIMCUPTI_FAULT", "taken")]);
    assert_eq!(why, "another profiler (another) has CUPTI, which serves one at a time; markers are");
    let older = program("libcupti-26.so");
    for nameless in [
        &[("SIMCUPTI_FAULT", "taken"), ("RPDT_CUPTI", older.to_str().unwrap())][..],
        &[("SIMCUPTI_FAULT", "nameless")],
    ] {
        assert_eq!(refused(nameless), "another profiler has CUPTI, which serves one at a time; markers are");
    }
    let why = refused(&[("SIMCUPTI_FAULT", "refuses")]);
    assert!(why.starts_with("libcupti.so.13 does not work with this driver"), "{why}");
    let why = refused(&[("RPDT_CUPTI", "/nowhere/libcupti.so.13")]);
    let reason = "/nowhere/libcupti.so.13: cannot open shared object file: No such file or directory";
    assert_eq!(why, format!("RPDT_CUPTI: /nowhere/libcupti.so.13 cannot be loaded ({reason}); markers are"));
    let old = program("libcupti-17.so");
    let why = refused(&[("RPDT_CUPTI", old.to_str().unwrap())]);
    assert!(why.ends_with("is older than CUPTI 12.0; markers are"), "{why}");
}

/// What CUPTI was asked for.
fn asked_of_cupti(dir: &Dir) -> Vec<String> {
    let log = std::fs::read_to_string(dir.path("cupti.log")).unwrap_or_default();
    log.lines().map(str::to_string).collect()
}

#[test]
fn cupti_alone_is_measured_with_what_the_recorder_asks_for() {
    let asked = |injected: PathBuf| {
        let dir = Dir::new();
        let run = work(&dir, "launch=1000 copy=30 fill=5").env("SIMCUPTI_LOG", dir.path("cupti.log"));
        let run = run.env("FLOOR_RECORDS", dir.path("records")).env("RPDT_FILENAME", dir.path("trace.rpd"));
        run.env("CUDA_INJECTION64_PATH", injected).run().expect(0);
        let mut asked = asked_of_cupti(&dir);
        asked.sort();
        (asked, std::fs::read_to_string(dir.path("records")).unwrap_or_default())
    };
    let ((recorder, _), (floor, records)) = (asked(recorder()), asked(program("libfloor.so")));
    assert_eq!(floor, recorder);
    let count = |line: &str| records.lines().filter(|said| *said == line).count();
    let counts = ["copy 1 65536", "copy 8 65536", "copy 2 65536", "fill 0 65536"].map(count);
    assert_eq!((counts, records.lines().count()), ([10, 10, 10, 5], 35), "{records}");
}

#[test]
fn what_a_command_takes_is_also_what_its_daemons_take() {
    let dir = Dir::new();
    let daemon = "import pathlib, time\nmemory = bytearray(b'x') * (96 << 20)\nwhile time.process_time() < 0.5: pass\ntime.sleep(0.5)
pathlib.Path('done').touch()\ntime.sleep(600)";
    let command = "setsid python3 -c \"$0\" & while [ ! -e done ]; do sleep 0.1; done; exit 3";
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/cuda/peak.py");
    let words = [script, "taken", "sh", "-c", command, daemon];
    words.into_iter().fold(Run::new(&dir, "python3"), |run, word| run.arg(word)).run().expect(3);
    let taken = std::fs::read_to_string(dir.path("taken")).unwrap();
    let taken: serde_json::Value = serde_json::from_str(&taken).unwrap();
    let number = |name: &str| taken[name].as_f64().unwrap();
    assert!(number("cpu_s") >= 0.5 && number("mib") >= 96.0 && number("processes") >= 2.0, "{taken}");
}

/// How often CUPTI was subscribed to.
pub(crate) fn subscriptions(dir: &Dir) -> usize {
    asked_of_cupti(dir).iter().filter(|line| line.starts_with("cuptiSubscribe ")).count()
}

#[test]
fn what_was_refused_is_tried_again_by_the_next_start_alone() {
    // Of one that is taken CUPTI is asked a second time, who has it.
    for (fault, each) in [("refuses-kind", 1), ("refuses", 1), ("taken", 2)] {
        let dir = Dir::new();
        let run = work(&dir, "marks=12 start marks=12").env("SIMCUPTI_FAULT", fault);
        let ran = run.env("SIMCUPTI_LOG", dir.path("cupti.log")).recorded(Loading::Preload).run();
        assert_eq!(ran.expect(0).stderr.lines().count(), 1, "{ran}");
        assert_eq!(subscriptions(&dir), 2 * each, "{fault}");
        let info = tool(rpd().to_str().unwrap(), &["info", dir.path("trace.rpd").to_str().unwrap()]);
        assert!(info.contains("CUDA was not recorded: "), "{info}");
    }
    let dir = Dir::new();
    let folder = without_cupti(&dir);
    let run = work(&dir, "marks=12").env("LD_LIBRARY_PATH", folder).env("LD_DEBUG", "libs");
    run.env("LD_DEBUG_OUTPUT", dir.path("ld")).recorded(Loading::Preload).run().expect(0);
    let said = dir.names().into_iter().filter(|name| name.starts_with("ld."));
    let said: String = said.map(|name| std::fs::read_to_string(dir.path(&name)).unwrap()).collect();
    assert_eq!(said.matches("find library=libcupti.so.13").count(), 1);
}

#[test]
fn pauses_leave_no_memory_and_no_kernels_behind() {
    let dir = Dir::new();
    let cycles = "stop sleep=1500 start launch=10 rss ".repeat(8);
    let run = work(&dir, &format!("launch=10 {}", cycles.trim()));
    let ran = run.env("SIMCUPTI_LOG", dir.path("cupti.log")).recorded(Loading::Preload).run();
    let trace = dir.succeeded(&ran);
    assert_eq!(operations(&trace), map(&[("KernelExecution", 90)]));
    assert!(subscriptions(&dir) >= 6, "it was given back in the pauses");
    assert_eq!(trace.number("select count(*) from rocpd_kernelcodeobject"), 1);
    let memory: Vec<i64> = done(&ran).into_iter().filter(|done| done.0 == "rss").map(|done| done.1).collect();
    // In KiB, where the buffers of one attachment are 5 MiB.
    assert!(memory[7] < memory[1] + 8 * 1024, "{memory:?}");
}

#[test]
fn launches_without_their_operation_are_counted_and_said() {
    let dir = Dir::new();
    let run = work(&dir, "async=50 drain=1 _exit").env("SIMCUDA_KERNEL_US", "100000");
    let ran = run.recorded(Loading::RpdRecord).run();
    let open = done(ran.expect(5)).into_iter().find(|done| done.0 == "drain").unwrap().1;
    assert!((1..=50).contains(&open), "{ran}");
    let trace = dir.trace("trace.rpd");
    let without = trace.number(
        "select cast(value as integer) from rocpd_metadata where tag = 'session::0::launches_without_op'",
    );
    assert_eq!(without + trace.number("select count(*) from rocpd_op"), 50);
    assert!(ran.stderr.contains(&format!("{without} launches without an operation")), "{ran}");
    let check = command(rpd()).arg("check").arg(dir.path("trace.rpd")).output().unwrap();
    let check = String::from_utf8_lossy(&check.stdout);
    assert!(!check.contains("0 errors, 0 warnings, 0 notes"), "{check}");
}

#[test]
fn what_was_captured_or_not_recorded_or_may_be_lost_is_not_waited_for() {
    for (what, variable, value) in [
        ("capture=7", "RPDT_CUDA_APIS", ""),
        ("capture=7", "RPDT_CUDA_APIS", "none,+cuLaunchKernel"),
        ("capture=7", "RPDT_CUDA_APIS", "args"),
        ("elsewhere=7", "RPDT_CUDA_APIS", ""),
        ("launch=1 stop async=600", "SIMCUDA_KERNEL_US", "10000"),
        ("launch=100", "SIMCUPTI_FAULT", "full"),
    ] {
        let dir = Dir::new();
        let run = work(&dir, &format!("{what} stop drain=5000")).env(variable, value);
        let ran = run.recorded(Loading::Preload).run();
        let drained = done(ran.expect(0)).into_iter().find(|done| done.0 == "drain").unwrap();
        assert!(drained.3 - drained.2 < 1_500_000_000, "{value} {ran}");
        assert_eq!(drained.1 > 0, value == "full", "{value} {ran}");
        let without = "select value from rocpd_metadata where tag like '%launches_without_op'";
        let without = dir.trace("trace.rpd").texts(without);
        assert!(value == "full" || without.iter().all(|count| count == "0"), "{what} {value}: {without:?}");
    }
}

#[test]
fn what_cupti_cannot_do_is_said_and_counted() {
    let dir = Dir::new();
    let ran = work(&dir, "launch=100 sleep=500 launch=100").env("SIMCUPTI_FAULT", "bad-record");
    let ran = ran.recorded(Loading::Preload).run();
    let said = "cuptiActivityGetNextRecord answers CUPTI_ERROR_UNKNOWN (999)";
    assert_eq!(ran.expect(0).stderr.matches(said).count(), 1, "{ran}");
    let lost = dir.trace("trace.rpd").lost();
    assert!(lost.keys().any(|cause| cause.ends_with("cupti_unreadable")), "{lost:?}");
    let dir = Dir::new();
    let ran = work(&dir, "launch=100 sleep=500").env("SIMCUPTI_FAULT", "flush-fails");
    let ran = ran.recorded(Loading::Preload).run();
    let said = "cuptiActivityFlushAll answers CUPTI_ERROR_UNKNOWN (999)";
    assert_eq!(ran.expect(0).stderr.matches(said).count(), 1, "{ran}");
    // The buffers that CUPTI keeps are in the file, which has nothing else.
    let trace = dir.trace("trace.rpd");
    let lost = trace.lost();
    assert!(
        lost.iter().any(|(cause, count)| cause.ends_with("cupti_unreadable") && count != "0"),
        "{lost:?}"
    );
    assert_eq!(operations(&trace), map(&[]));
}

#[test]
fn streams_of_each_context_are_queues_of_their_own() {
    let dir = Dir::new();
    let trace =
        dir.succeeded(&work(&dir, "context=5 context=3 copy=3 launch=2").recorded(Loading::Preload).run());
    let queues = counts(&trace, "select '' || queueId, count(*) from rocpd_op group by 1");
    assert_eq!(queues, map(&[("7", 5), ("13", 5), ("196615", 3), ("196621", 3), ("65549", 5)]));
    // Rows of launches and copies, and waits for streams, have the same numbers.
    let same = "select count(*) from rocpd_op O join rocpd_api_ops L on L.op_id = O.id join (select api_ptr_id, stream from rocpd_kernelapi
        union all select api_ptr_id, stream from rocpd_copyapi) S on S.api_ptr_id = L.api_id where S.stream = printf('0x%x', O.queueId)";
    assert_eq!(trace.number(same), 21);
    let waits =
        counts(&trace, "select args, count(*) from api where apiName = 'cuStreamSynchronize' group by 1");
    assert_eq!(
        waits.into_keys().collect::<Vec<_>>(),
        ["stream=0x1000d", "stream=0x30007", "stream=0x3000d", "stream=0x7", "stream=0xd"]
    );
    let facts = trace.metadata("session::0::cuda::stream::%");
    let streams: Vec<&str> =
        facts.keys().map(|key| key.strip_prefix("session::0::cuda::stream::").unwrap()).collect();
    assert_eq!(streams, ["1::13", "2::13", "3::13"]);
}

/// A directory with libcuda alone, for LD_LIBRARY_PATH.
fn without_cupti(dir: &Dir) -> PathBuf {
    let folder = dir.path("alone");
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(program("libcuda.so.1"), folder.join("libcuda.so.1")).unwrap();
    folder
}

#[test]
fn cupti_is_found_among_pythons_packages() {
    use std::os::unix::fs::symlink;
    let packages = "lib/python3.11/site-packages/nvidia/cu13/lib";
    for (prefix, python) in [("venv", "venv/bin/python3"), ("home/.local", "python3")] {
        let dir = Dir::new();
        let python = dir.path(python);
        for folder in [&dir.path(prefix).join(packages), python.parent().unwrap()] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(dir.path(prefix).join("pyvenv.cfg"), "").unwrap();
        let cupti = dir.path(prefix).join(packages).join("libcupti.so.13");
        symlink(program("libcupti-130001.so"), &cupti).unwrap();
        symlink(program("cuda_work"), &python).unwrap();
        let run = Run::new(&dir, python).arg("launch=10").env("LD_LIBRARY_PATH", without_cupti(&dir));
        let trace = dir.succeeded(&run.env("HOME", dir.path("home")).recorded(Loading::Preload).run());
        let expected = format!("13.0 (130001), {}", cupti.display());
        let version = trace.metadata("session::0::version::cupti").into_values().next();
        assert_eq!(version, Some(expected));
    }
}

#[test]
fn a_program_without_a_gpu_or_without_cupti_runs_as_without_us() {
    let dir = Dir::new();
    let plain = work(&dir, "launch=10").env("SIMCUDA_GPUS", "0").run();
    let ran = work(&dir, "launch=10").env("SIMCUDA_GPUS", "0").recorded(Loading::Preload).run();
    assert_eq!(
        (plain.expect(4).stdout.split(' ').nth(1), ran.expect(4).stdout.split(' ').nth(1)),
        (Some("100"), Some("100"))
    );
    assert!(!dir.path("trace.rpd").exists());
    let dir = Dir::new();
    let ran = work(&dir, "launch=10")
        .env("LD_LIBRARY_PATH", without_cupti(&dir))
        .recorded(Loading::RpdRecord)
        .run();
    assert!(ran.expect(0).stderr.contains("no libcupti.so.13 or .12 was found"), "{ran}");
    assert!(ran.stderr.contains("could not use CUPTI there"), "{ran}");
}

#[test]
fn calls_are_those_that_were_asked_for() {
    let traced = |list: &str| {
        let dir = Dir::new();
        let ran = work(&dir, "launch=20 copy=3").env("RPDT_CUDA_APIS", list).recorded(Loading::Preload).run();
        let trace = dir.succeeded(&ran);
        assert_eq!(operations(&trace)["KernelExecution"], 20);
        calls(&trace)
    };
    let all = traced("all");
    assert_eq!((all["cuLaunchKernel"], all["cuStreamCreate"], all["cuCtxSetCurrent"]), (20, 1, 3));
    let launches = traced("none,+cuLaunchKernel");
    // Copies have no call then, and get one of their own.
    assert_eq!(launches, map(&[("cuLaunchKernel", 20), ("cudaOperation", 3)]));
    assert_eq!(traced("none"), map(&[("cudaOperation", 23)]));
    let dir = Dir::new();
    let ran =
        work(&dir, "launch=1").env("RPDT_CUDA_APIS", "+cudaMaloc,hipMalloc").recorded(Loading::Preload).run();
    ran.expect(0);
    assert!(ran.stderr.contains("RPDT_CUDA_APIS: hipMalloc ignored"), "{ran}");
    assert!(ran.stderr.contains("RPDT_CUDA_APIS: this CUDA has no cudaMaloc"), "{ran}");
}

#[test]
fn another_tool_that_the_user_names_has_its_way() {
    let dir = Dir::new();
    let run = work(&dir, "launch=10").env("CUDA_INJECTION64_PATH", "/nowhere/libother.so");
    let ran = run.recorded(Loading::RpdRecord).run();
    assert!(ran.expect(0).stderr.contains("CUDA_INJECTION64_PATH names another tool"), "{ran}");
    let line = "no kernels and copies of this process's NVIDIA GPUs are recorded: CUDA_INJECTION64_PATH names another tool, /nowhere/libother.so; \
                markers are";
    // Markers bring the writer, which looks at the process; without them its end does. Children that are forked say nothing, nor does a program
    // that has no device of NVIDIA's.
    let device = dir.path("dev/nvidia0");
    std::fs::create_dir(dir.path("dev")).unwrap();
    std::fs::write(&device, [0; 4096]).unwrap();
    let device = device.to_str().unwrap();
    for (what, device, is_traced) in [
        ("launch=10 marks=12 fork=2 launch=10", device, true),
        ("launch=10 fork=2", device, false),
        ("launch=10", "", false),
    ] {
        let dir = Dir::new();
        let run = work(&dir, what).env("SIMCUPTI_LOG", dir.path("cupti.log"));
        let run = if device.is_empty() {
            run
        } else {
            run.env("SIMCUDA_DEVICE", device).env("SIMCUDA_CONTEXT_MS", "10")
        };
        let run = run.env("CUDA_INJECTION64_PATH", "/nowhere/libother.so").recorded(Loading::Preload);
        let ran = run.run();
        let lines: Vec<&str> = ran.expect(0).stderr.lines().collect();
        assert!(lines.iter().all(|said| said.ends_with(line)), "{ran}");
        assert_eq!((lines.len(), subscriptions(&dir)), (usize::from(!device.is_empty()), 0), "{ran}");
        assert_eq!(dir.path("trace.rpd").exists(), is_traced);
        if is_traced {
            assert_eq!(operations(&dir.trace("trace.rpd")), map(&[]));
        }
    }
    // A program without CUDA has nothing to hear of it.
    let dir = Dir::new();
    let run = Run::new(&dir, "/bin/true").env("CUDA_INJECTION64_PATH", "/nowhere/libother.so");
    let ran = run.recorded(Loading::Preload).run();
    assert_eq!(ran.expect(0).stderr, "", "{ran}");
}

#[test]
fn kernels_in_flight_are_waited_for_when_recording_stops() {
    let dir = Dir::new();
    let run = work(&dir, "launch=40 stop sleep=2500 launch=10").env("SIMCUDA_KERNEL_US", "20000");
    let trace = dir.succeeded(&run.recorded(Loading::Preload).run());
    assert_eq!(operations(&trace), map(&[("KernelExecution", 40)]));
}

#[test]
fn the_stream_of_an_operation_is_its_queue_in_reports_and_exports() {
    let dir = Dir::new();
    let work = work(&dir, "launch=10 graph=4 fill=5 copy=3 context=5 context=3").recorded(Loading::Preload);
    let trace = dir.succeeded(&work.run());
    let gpu = trace.number("select gpuId from rocpd_op");
    let file = dir.path("trace.rpd");
    let file = file.to_str().unwrap();
    let rpd = |words: &[&str]| tool(rpd().to_str().unwrap(), &[words, &[file]].concat());
    // Also of kernels of graphs and of fills, which have no launch of their own. The first context has no launches on its default stream.
    let by_stream = [("13", 10 + 4 * 10 + 5 + 3), ("7", 5), ("131085", 5), ("196615", 3), ("196621", 3)];
    let top = rpd(&["top", "--by", "stream", "--csv"]);
    let found: BTreeMap<String, i64> = top
        .lines()
        .skip(1)
        .filter_map(|line| {
            let (place, rest) = line.split_once(&format!(" of GPU {gpu},"))?;
            Some((place.rsplit(' ').next()?.to_string(), rest.split(',').next()?.parse().ok()?))
        })
        .collect();
    assert_eq!(found, map(&by_stream), "{top}");
    assert_eq!(top.lines().filter(|line| line.contains("stream")).count(), 5, "{top}");
    // As tables have it, and as `rpd api` shows it.
    for (stream, count) in by_stream.into_iter().chain([("0xd", by_stream[0].1)]) {
        let ops = rpd(&["top", "--by", "gpu", "--csv", "--stream", stream]);
        assert!(ops.lines().any(|line| line.starts_with(&format!("GPU {gpu},{count},"))), "{stream}: {ops}");
    }
    let out = dir.path("kineto.json");
    rpd(&["export", "kineto", "-o", out.to_str().unwrap()]);
    let exported: serde_json::Value = serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap();
    let mut streams = BTreeMap::new();
    for event in exported["traceEvents"].as_array().unwrap() {
        if let Some(stream) = event["args"]["stream"].as_i64() {
            *streams.entry(stream.to_string()).or_default() += 1;
            assert_eq!(event["args"].get("hip_stream"), None, "{event}");
        }
        let is_of_driver = event["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("cuLaunch") || name.starts_with("cuGraph"));
        assert!(!is_of_driver || event["cat"] == "cuda_driver", "{event}");
    }
    assert_eq!(streams, map(&by_stream));
}

#[test]
fn record_says_which_options_are_for_amd_alone() {
    let dir = Dir::new();
    let record = |options: &[&str]| {
        let words = ["record", "--force", "-o", "t.rpd"].iter().chain(options).chain(&["--"]);
        let run = words.fold(Run::new(&dir, rpd()), |run, word| run.arg(*word));
        let run =
            run.arg(program("cuda_work")).arg("launch=10").env("LD_LIBRARY_PATH", libraries(&dir, 130_001));
        run.run().expect(0).stderr.clone()
    };
    let said = record(&["--stackframes", "--hsa-apis", "all", "--cuda-graphs", "launch"]);
    assert!(said.contains("; for AMD's GPUs alone: --stackframes, --hsa-apis"), "{said}");
    assert!(!record(&["--cuda-apis", "args", "--log", "log.csv"]).contains("AMD"));
    let lines = std::fs::read_to_string(dir.path("log.csv")).unwrap();
    assert_eq!(lines.lines().filter(|line| line.contains("empty")).count(), 10, "{lines}");
    let arguments =
        dir.trace("t.rpd").texts("select distinct args from api where apiName = 'cuLaunchKernel'");
    assert!(arguments.len() == 1 && arguments[0].contains("gridDimX=3"), "{arguments:?}");
    let refused =
        Run::new(&dir, rpd()).arg("record").arg("--cuda-apis").arg("cudaFree").arg("--").arg("true").run();
    assert!(refused.expect(2).stderr.contains("cudaFree is none of all, none, args"), "{refused}");
}

#[test]
fn another_installation_of_the_recorder_is_not_loaded_beside_this_one() {
    let other = Dir::new();
    let copy = other.path("librpd_tracer.so");
    std::fs::copy(recorder(), &copy).unwrap();
    let dir = Dir::new();
    let run = work(&dir, "launch=3000 marks=2 launch=2000 _exit").env("CUDA_INJECTION64_PATH", &copy);
    let ran = run.recorded(Loading::Preload).run();
    assert_eq!(ran.expect(5).stderr, "", "{ran}");
    assert_eq!(operations(&dir.whole_trace()), map(&[("KernelExecution", 5000)]), "{ran}");
}

#[test]
fn a_cupti_that_is_no_file_is_refused() {
    let dir = Dir::new();
    let pipe = dir.path("libcupti.so.13");
    tool("mkfifo", &[pipe.to_str().unwrap()]);
    let ran = work(&dir, "launch=10").env("RPDT_CUPTI", &pipe).recorded(Loading::Preload).run();
    let line = format!("RPDT_CUPTI: {} cannot be loaded (it is no file)", pipe.display());
    assert!(ran.expect(0).stderr.contains(&line), "{ran}");
}
