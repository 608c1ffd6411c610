//! `rpd record --libraries`: calls of GPU libraries, and the kernels that they launch. The libraries are stand-ins with the real functions' names
//! and parameters; tests/libraries.rs has the real ones.

use crate::harness::{Dir, Loading, Ran, Run, Trace, library_symbols, program, recorder, rpd, tool};

fn recorded(dir: &Dir, libraries: &str) -> (Ran, Trace) {
    let run = Run::new(dir, program("library_calls")).recorded(Loading::RpdRecord);
    let ran = run.record_option(&format!("--libraries={libraries}")).run();
    ran.expect(3);
    assert_eq!(ran.stdout, "done 0\n", "{ran}");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    (ran, trace)
}

fn calls(trace: &Trace, columns: &str) -> Vec<String> {
    trace.texts(&format!("select {columns} from libraryCall order by start"))
}

#[test]
fn calls_have_their_arguments_whatever_passes_them() {
    let dir = Dir::new();
    let plain = Run::new(&dir, program("library_calls")).run();
    assert_eq!(plain.expect(3).stdout, "done 0\n", "{plain}");
    let (_, trace) = recorded(&dir, "all");
    let names = calls(&trace, "domain || ' ' || apiName");
    assert_eq!(
        names,
        [
            "rocblas rocblas_create_handle",
            "rocblas rocblas_sgemm",
            "rocblas rocblas_sgemm",
            "rocblas rocblas_sgemm",
            "rocblas rocblas_dgemm",
            "hipblas hipblasSgemm",
            "rocblas rocblas_sgemm",
            "rocblas rocblas_saxpy",
            "nccl ncclCommInitRank",
            "nccl ncclCommInitAll",
            "nccl ncclAllReduce",
            "nccl ncclGroupStart",
            "nccl ncclAllReduce",
            "nccl ncclAllReduce",
            "nccl ncclGroupEnd",
            "rocsolver rocsolver_sgesvdx",
            "hipblaslt hipblasLtMatmul",
            "hipblaslt hipblasLtMatmul",
            "hipblaslt hipblasLtMatmul",
            "hipblaslt hipblasLtMatmul",
            "miopen miopenConvolutionForward",
            "miopen miopenConvolutionForward",
            "miopen miopenConvolutionForward",
            "cudnn cudnnConvolutionForward",
            "cudnn cudnnConvolutionForward",
            "cufft cufftCreate",
            "cufft cufftXtMakePlanMany",
            "cufft cufftXtExec",
            "cufft cufftCreate",
            "cufft cufftXtMakePlanMany",
            "cufft cufftXtExec",
            "cufft cufftCreate",
            "cufft cufftXtMakePlanMany",
            "cufft cufftXtExec",
            "rocblas rocblas_saxpy",
        ],
        "what a library calls of itself is part of its call, and the call that threw is lost"
    );
    let args = calls(&trace, "args");
    assert_eq!(args[0], "handle=0x1234");
    let gemm = "handle=0x1234 | transA=rocblas_operation_transpose | transB=rocblas_operation_none | m=32 | n=64 | k=48 | alpha=2.5 | \
                A=0xa000 | lda=48 | B=0xb000 | ldb=49 | beta=0 | C=0xc000 | ldc=33";
    assert_eq!(args[1], gemm);
    assert!(
        args[3].contains("m=-1 |") && args[3].ends_with(" | status=rocblas_status_invalid_size"),
        "{}",
        args[3]
    );
    assert!(args[4].contains("alpha=1 |"), "{}", args[4]);
    assert_eq!(args[8], "comm=0x4000 | nranks=4 | rank=2");
    assert_eq!(args[9], "comm=0x5000,0x5010 | ndev=2 | devlist=0x0");
    let one = "sendbuff=0x10 | recvbuff=0x20 | count=1024 | datatype=ncclFloat32 | op=ncclSum | comm=0x4000 | stream=0x0 | nranks=4 | rank=2";
    assert_eq!(args[10], one);
    assert!(args[13].contains("comm=0x5010 | ") && args[13].ends_with("nranks=2 | rank=1"), "{}", args[13]);
    assert!(
        args[15].contains(" | vl=0.5 | vu=1.5 | il=1 | ")
            && args[15].ends_with("ldv=9 | ifail=0x0 | info=0xf0"),
        "{}",
        args[15]
    );
    let plan = "plan=1 | rank=2 | n=32,64 | inembed=0x0 | istride=1 | idist=1 | inputtype=CUDA_C_32F | onembed=0x0 | ostride=1 | odist=1 | \
                outputtype=CUDA_C_32F | batch=3 | ";
    assert!(args[26].starts_with(plan) && args[26].ends_with(" | executiontype=CUDA_C_32F"), "{}", args[26]);
    assert_eq!(args[27], "plan=1 | input=0xa | output=0xb | direction=-1");
    assert!(args[34].contains("alpha=0x5000 |"), "a scalar in the GPU's memory: {}", args[34]);
    let product = " | transA=HIPBLAS_OP_T | transB=HIPBLAS_OP_N | m=32 | n=64 | k=48 | a_type=HIP_R_16F | b_type=HIP_R_16F | c_type=HIP_R_16F | \
                   d_type=HIP_R_16F | compute_type=HIPBLAS_COMPUTE_32F | scale_type=HIP_R_32F | lda=50 | ldb=48 | ldc=32 | ldd=32";
    for args in &args[16..18] {
        assert!(
            args.contains(" | alpha=0.5 | ") && args.contains(" | beta=0 | ") && args.ends_with(product),
            "{args}"
        );
    }
    let batch =
        " | batch_count=3 | stride_a=5000 | stride_b=5000 | stride_c=5000 | stride_d=5000 | epilogue=4";
    assert!(args[18].contains(" | m=128 | n=64 | k=48 | ") && args[18].ends_with(batch), "{}", args[18]);
    assert!(!args[19].contains(" | m="), "its descriptor is gone: {}", args[19]);
    let convolution = " | data_type=miopenFloat | mode=miopenConvolution | in=2,3,8,16 | filter=4,3,3,5 | out=2,4,8,14 | out_layout=channels_last | \
                       pad=1,1 | stride=1,1 | dilation=1,1 | groups=1";
    assert!(args[20].ends_with(convolution) && args[21].ends_with(convolution), "{} {}", args[20], args[21]);
    assert!(!args[22].contains(" | in="), "its descriptor is gone: {}", args[22]);
    let convolution = " | data_type=CUDNN_DATA_FLOAT | mode=CUDNN_CROSS_CORRELATION | in=2,6,8,16 | filter=4,3,3,5 | out=2,4,8,14 | pad=1,1 | stride=1,1 | \
                       dilation=1,1 | groups=2";
    assert!(args[23].ends_with(convolution) && !args[24].contains(" | in="), "{} {}", args[23], args[24]);
    let lost = trace.lost();
    assert!(
        lost.len() == 1 && lost.iter().all(|(cause, count)| cause.ends_with("::abandoned") && count == "1"),
        "{lost:?}"
    );
    // As every row of rocpd_api they nest by their times: the kernels are of the calls around them.
    let nested = "select count(*) from rocpd_api_ops O join rocpd_api H on H.id = O.api_id
        join libraryCall L on L.pid = H.pid and L.tid = H.tid and L.start <= H.start and H.end <= L.end
        where L.apiName = ";
    assert_eq!(trace.number(&format!("{nested} 'rocblas_sgemm'")), 3);
    assert_eq!(trace.number(&format!("{nested} 'hipblasSgemm'")), 1);
    assert_eq!(trace.number(&format!("{nested} 'ncclGroupEnd'")), 2);
    let libraries = "select value from rocpd_metadata where tag like 'session::%::libraries'";
    assert!(trace.texts(libraries)[0].starts_with("rocblas,"));
}

#[test]
fn only_libraries_that_were_asked_for_are_recorded() {
    let dir = Dir::new();
    let (_, trace) = recorded(&dir, "hipblas,rocsolver");
    assert_eq!(calls(&trace, "distinct domain"), ["hipblas", "rocsolver"]);
    let none = Dir::new();
    let ran = Run::new(&none, program("library_calls")).recorded(Loading::RpdRecord).run();
    assert_eq!(ran.expect(3).stdout, "done 0\n", "{ran}");
    assert_eq!(
        none.trace("trace.rpd").number("select count(*) from sqlite_master where name = 'libraryCall'"),
        0
    );
}

#[test]
fn the_names_alone_change_nothing() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("library_calls")).preload(&[library_symbols()]).run();
    assert_eq!(run.expect(3).stdout, "done 0\n", "{run}");
    let paused = Run::new(&dir, program("library_calls")).preload(&[recorder(), library_symbols()]);
    let paused = paused.env("RPDT_LIBRARIES", "all").env("RPDT_AUTOSTART", "0").run();
    assert_eq!(paused.expect(3).stdout, "done 0\n", "{paused}");
}

#[test]
fn a_signal_handler_may_make_the_first_call() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("library_handler")).arg(program("library_of_nothing"));
    let ran = run.recorded(Loading::RpdRecord).record_option("--libraries=rocblas").run();
    assert_eq!(ran.expect(0).stdout, "done\n", "{ran}");
}

/// With what the first library left behind, the second call would go to where nothing is.
#[test]
fn a_library_may_leave_and_come_again_elsewhere() {
    let (first, second) = (program("library_first"), program("library_second"));
    for names in [&[library_symbols()][..], &[recorder(), library_symbols()]] {
        let dir = Dir::new();
        let run = [&first, &first, &second, &first]
            .iter()
            .fold(Run::new(&dir, program("library_reopened")), |run, library| run.arg(library));
        let ran = run.preload(names).env("RPDT_LIBRARIES", "rocblas").run();
        assert_eq!(ran.expect(0).stdout, "10\n10\n20\n10\n", "{ran}");
        if names.len() > 1 {
            assert_eq!(calls(&dir.trace("trace.rpd"), "apiName"), ["rocblas_sscal"; 4]);
        }
    }
}

#[test]
fn what_is_no_library_is_refused_before_the_program_runs() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("library_calls")).recorded(Loading::RpdRecord);
    let ran = run.record_option("--libraries=rocblass").run();
    assert_eq!(ran.expect(2).stdout, "");
    assert!(ran.stderr.contains("there is no library \"rocblass\"; did you mean rocblas?"), "{ran}");
}

#[test]
fn configurations_have_time_speed_kernels_and_a_command() {
    let dir = Dir::new();
    recorded(&dir, "all");
    let file = dir.path("trace.rpd");
    let said = tool(rpd().to_str().unwrap(), &["libraries", "--json", file.to_str().unwrap()]);
    let all: Vec<serde_json::Value> = serde_json::from_str(&said).unwrap();
    let of = |function: &str, part: &str| {
        let is = |of: &&serde_json::Value| {
            of["function"] == function && of["configuration"].as_str().unwrap().contains(part)
        };
        all.iter().find(is).unwrap_or_else(|| panic!("{function} {part} is not in {said}"))
    };
    let gemm = of("rocblas_sgemm", "m=32");
    assert_eq!((gemm["calls"].as_u64(), gemm["operations"].as_u64()), (Some(3), Some(3)), "{gemm}");
    assert_eq!(gemm["kernels"][0]["name"], "multiply(float*)");
    let ns = gemm["gpu_ns"].as_f64().unwrap();
    let rate = gemm["gflop_per_s"].as_f64().unwrap();
    assert!((rate - 3.0 * 2.0 * 32.0 * 64.0 * 48.0 / ns).abs() < 1e-6 * rate, "{gemm}");
    assert_eq!(
        gemm["bench"],
        "./rocblas-bench -f gemm -r f32_r --transposeA T --transposeB N -m 32 -n 64 -k 48 --alpha 2.5 --lda 48 --ldb 49 --beta 0 --ldc 33"
    );
    assert_eq!(of("rocblas_sgemm", "m=-1")["failed"], 1);
    assert_eq!(
        of("hipblasSgemm", "m=32")["gpu_ns"].as_f64().map(|own| own * 3.0),
        Some(ns),
        "all kernels take as long"
    );
    // What a group launched is of the collective on that stream.
    let (four, two) = (of("ncclAllReduce", "nranks=4"), of("ncclAllReduce", "nranks=2"));
    assert_eq!((two["calls"].as_u64(), two["operations"].as_u64()), (Some(2), Some(2)));
    assert_eq!(of("ncclGroupEnd", "")["operations"], 0);
    for (of, ranks) in [(four, 4.0), (two, 2.0)] {
        let (ns, calls) = (of["gpu_ns"].as_f64().unwrap(), of["calls"].as_f64().unwrap());
        assert_eq!(of["bytes"], 4096, "{of}");
        let algorithm = 4096.0 * calls / ns;
        assert!((of["gb_per_s"].as_f64().unwrap() - algorithm).abs() < 1e-9, "{of}");
        let bus = algorithm * 2.0 * (ranks - 1.0) / ranks;
        assert!((of["bus_gb_per_s"].as_f64().unwrap() - bus).abs() < 1e-9, "{of}");
    }
    assert_eq!(two["bench"], "all_reduce_perf -b 4096 -e 4096 -d float -o sum -g 2");
    // What descriptors say is a configuration with its speed and its command.
    let product = of("hipblasLtMatmul", "m=32 | n=64 | k=48");
    assert_eq!((product["calls"].as_u64(), product["operations"].as_u64()), (Some(2), Some(2)), "{product}");
    let rate = product["gflop_per_s"].as_f64().unwrap() * product["gpu_ns"].as_f64().unwrap();
    assert!((rate - 2.0 * 2.0 * 32.0 * 64.0 * 48.0).abs() < 1e-6 * rate, "{product}");
    let line = "hipblaslt-bench --api_method c -m 32 -n 64 -k 48 --lda 50 --ldb 48 --ldc 32 --ldd 32 --alpha 0.5 --beta 0 --transA T --transB N \
                --batch_count 1 --a_type f16_r --b_type f16_r --c_type f16_r --d_type f16_r --compute_type f32_r";
    assert_eq!(product["bench"], line);
    let batch = of("hipblasLtMatmul", "batch_count=3");
    let rate = batch["gflop_per_s"].as_f64().unwrap() * batch["gpu_ns"].as_f64().unwrap();
    assert!((rate - 3.0 * 2.0 * 128.0 * 64.0 * 48.0).abs() < 1e-6 * rate, "{batch}");
    let convolution = of("miopenConvolutionForward", "in=2,3,8,16");
    let rate = convolution["gflop_per_s"].as_f64().unwrap() * convolution["gpu_ns"].as_f64().unwrap();
    assert!((rate - 2.0 * 2.0 * (2 * 4 * 8 * 14) as f64 * 45.0).abs() < 1e-6 * rate, "{convolution}");
    let driver = "./bin/MIOpenDriver conv -n 2 -c 3 -H 8 -W 16 -k 4 -y 3 -x 5 -p 1 -q 1 -u 1 -v 1 -l 1 -j 1 --out_layout NHWC -m conv -g 1 -F 1 -t 1";
    assert_eq!(convolution["bench"], driver);
    // Twice as many channels in two groups: as many products.
    let of_cudnn = of("cudnnConvolutionForward", "in=2,6,8,16");
    let rate = of_cudnn["gflop_per_s"].as_f64().unwrap() * of_cudnn["gpu_ns"].as_f64().unwrap();
    assert!((rate - 2.0 * (2 * 4 * 8 * 14) as f64 * 45.0).abs() < 1e-6 * rate, "{of_cudnn}");
    // What plans say is a configuration, whichever plan it is.
    for (input, calls, of_one) in [("CUDA_C_32F", 2, 5.0), ("CUDA_R_32F", 1, 2.5)] {
        let transform = of("cufftXtExec", &format!("n=32,64 | istride=1 | idist=1 | inputtype={input}"));
        assert_eq!(
            (transform["calls"].as_u64(), transform["operations"].as_u64()),
            (Some(calls), Some(calls)),
            "{transform}"
        );
        let flop = transform["gflop_per_s"].as_f64().unwrap() * transform["gpu_ns"].as_f64().unwrap();
        let expected = calls as f64 * 3.0 * of_one * 2048.0 * 11.0;
        assert!((flop - expected).abs() < 1e-6 * flop, "{transform}");
    }
    let written = tool(
        rpd().to_str().unwrap(),
        &["export", "library-trace", "--date", "today", file.to_str().unwrap()],
    );
    let rows: Vec<&str> =
        written.split("\r\n").filter(|row| row.contains("miopen") || row.contains("hipblaslt")).collect();
    assert!(rows.iter().any(|row| row.ends_with(&format!(",hipblaslt,{line},2"))), "{written}");
    assert!(
        rows.iter().any(|row| row.ends_with(&format!(",miopen,{driver},2"))) && rows.len() == 3,
        "{written}"
    );
    let text = tool(rpd().to_str().unwrap(), &["libraries", "--bench", file.to_str().unwrap()]);
    assert!(
        text.contains("  3 x multiply(float*)") && text.contains("  $ ./rocblas-bench -f gemm"),
        "{text}"
    );
}
