//! Lines of the libraries' own logs: a fallback where calls were not recorded.
//!
//! Understood are the logs of rocBLAS (ROCBLAS_LAYER), Tensile (TENSILE_DB), hipBLASLt, MIOpen, RCCL and NCCL (NCCL_DEBUG=INFO with COLL),
//! rocFFT, rocSPARSE, cuBLAS, cuBLASLt and cuDNN, mixed with whatever else a program says.

use std::sync::LazyLock;

use regex::Regex;

/// A call that a line tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// The library, or `rocblas_function` of a line of rocBLAS's profile, or `tensile`.
    pub library: &'static str,
    /// The line, or the part of it that tells the configuration.
    pub configuration: String,
    /// How many calls: a profile counts.
    pub calls: u64,
}

/// A library, and a pattern whose groups, or all of it where there are none, are the configuration.
type Pattern = (&'static str, Regex);

fn compiled(patterns: &[(&'static str, &str)]) -> Vec<Pattern> {
    patterns.iter().filter_map(|(library, text)| Some((*library, Regex::new(text).ok()?))).collect()
}

/// What madengine looks for, in its order.
static MADENGINE: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    compiled(&[
        ("rocblas", r"./rocblas-bench .*$"),
        ("rocblas_function", r"^.*rocblas_function: .*$"),
        ("hipblaslt", r"hipblaslt-bench .*$"),
        // MIOpen may say before it how long ago the line before was.
        ("miopen", r"MIOpen\(HIP\): (?:\S+ )?Command \[.*\] (./bin/MIOpenDriver .*)$"),
        ("tensile", r"^Running kernel: (.*)$"),
    ])
});

/// What it does not know. Who wrote a line that RCCL and NCCL both write is not in it.
static OTHERS: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    compiled(&[
        // Not rocblas_create_handle,atomics_allowed.
        ("rocblas", r"^rocblas_(?:[sdczh]|gemm)\w*,[^a].*$"),
        ("tensile", r"^Kernel (Cijk_\S+)"),
        ("rocfft", r"^rocfft-bench .*$"),
        ("rocfft", r"^rocfft_(?:execute|plan_create),.*$"),
        // What comes next is on the same line.
        ("rocsparse", r"^(\./rocsparse-bench (?:-\S+ \S+\s+)*-\S+ [\d.e+-]+)"),
        ("rocsparse", r"^rocsparse_\w+,.*$"),
        (
            "nccl",
            r"NCCL INFO (\w+): opCount .* (count \d+ datatype \d+ op \d+ root \d+) comm \S+ (\[nranks=\d+\])",
        ),
        ("cublaslt", r"\[cublasLt\]\[\d+\]\[Trace\]\[(cublasLt\w*Matmul)\] (.*)$"),
        (
            "cublas",
            r"^I! cuBLAS \(v[\d.]+\) function cublasStatus_t (cublas(?:[A-FH-RT-Z]|[GS](?:[^e]|e[^t]))\w*)\(",
        ),
        ("cudnn", r"^[IWE]! CuDNN \(v[\d. ]+\) function (cudnn\w+)\("),
        ("cudnn", r"^\[cudnn_frontend\] CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR : ([^\s,]+)"),
    ])
});

/// What a line tells as madengine understands it: the configurations of library_trace.csv.
#[must_use]
pub fn madengine(line: &str) -> Option<Logged> {
    let (library, configuration) = find(&MADENGINE, line)?;
    Some(Logged { library, configuration, calls: 1 })
}

/// What a line tells, of whichever library. Of the lines that RCCL and NCCL write for one collective, those of its ranks are one each.
#[must_use]
pub fn call(line: &str) -> Option<Logged> {
    match madengine(line) {
        Some(logged) if logged.library == "rocblas_function" => Some(profile(logged)),
        Some(logged) => Some(logged),
        None => {
            let (library, text) = find(&OTHERS, line)?;
            Some(Logged { library, configuration: without_addresses(&text), calls: 1 })
        }
    }
}

fn find(patterns: &[Pattern], line: &str) -> Option<(&'static str, String)> {
    patterns.iter().find_map(|(library, pattern)| {
        let found = pattern.captures(line)?;
        let groups: Vec<&str> = found.iter().flatten().map(|group| group.as_str()).collect();
        let (all, groups) = groups.split_first()?;
        Some((*library, if groups.is_empty() { (*all).to_string() } else { groups.join(" ") }))
    })
}

/// A line of the profile counts itself.
fn profile(logged: Logged) -> Logged {
    let count = logged.configuration.rsplit_once(", call_count: ");
    let Some((text, calls)) =
        count.and_then(|(text, rest)| Some((text, rest.strip_suffix(" }")?.parse().ok()?)))
    else {
        return logged;
    };
    Logged { library: "rocblas_function", configuration: format!("{text} }}"), calls }
}

static ADDRESS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\b0[xX][0-9a-fA-F]+").ok());

/// Calls with other addresses are of one configuration.
fn without_addresses(text: &str) -> String {
    match &*ADDRESS {
        Some(address) => address.replace_all(text, "*").trim_end().to_string(),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! sample {
        ($file:literal) => {
            include_str!(concat!("../../../fixtures/library-logs/", $file))
        };
    }

    /// The configurations of a log with their calls, in order.
    fn calls(log: &str) -> Vec<(&'static str, String, u64)> {
        let mut calls: Vec<(&str, String, u64)> = Vec::new();
        for Logged { library, configuration, calls: more } in log.lines().filter_map(call) {
            match calls.iter_mut().find(|(of, known, _)| *of == library && *known == configuration) {
                Some((.., count)) => *count += more,
                None => calls.push((library, configuration, more)),
            }
        }
        calls
    }

    #[track_caller]
    fn assert(log: &str, library: &str, configurations: usize, all: u64) {
        let found = calls(log);
        assert!(found.iter().all(|(of, ..)| *of == library), "{found:#?}");
        assert_eq!(
            (found.len(), found.iter().map(|(.., count)| count).sum::<u64>()),
            (configurations, all),
            "{found:#?}"
        );
    }

    #[test]
    fn logs_of_rocblas_and_tensile() {
        assert(sample!("rocblas-layer1-trace.log"), "rocblas", 9, 11);
        assert(sample!("rocblas-layer2-bench.log"), "rocblas", 9, 11);
        assert(sample!("rocblas-layer4-profile.yaml"), "rocblas_function", 9, 11);
        assert(sample!("tensile-db-0x8000.log"), "tensile", 5, 7);
        let both = calls(sample!("rocblas-layer6.log"));
        let of =
            |library| both.iter().filter(|(of, ..)| *of == library).map(|(.., calls)| calls).sum::<u64>();
        assert_eq!((of("rocblas"), of("rocblas_function")), (11, 11));
        let [first, ..] = &*calls(sample!("tensile-db-0x40-head.log")) else { panic!("no kernel") };
        assert!(first.0 == "tensile" && first.1.starts_with("Cijk_Ailk_Bljk_SB_MT64x64x16_"), "{first:?}");
    }

    #[test]
    fn logs_of_rocfft_and_rocsparse() {
        let fft = calls(sample!("rocfft-layer7.log"));
        assert_eq!(fft.len(), 3, "{fft:#?}");
        assert!(fft[1].1.starts_with("rocfft-bench --length 64 -b 1 -t 0 --precision single"), "{fft:#?}");
        let sparse = calls(sample!("rocsparse-layer7.log"));
        assert_eq!(sparse[0].1, "rocsparse_scsrmv,111,3,3,3,1,*,*,*,*,*,*,0,*");
        assert_eq!(
            sparse[1].1, "./rocsparse-bench -f csrmv -r s --mtx <matrix.mtx>  --alpha 1 --beta 0",
            "the program's own text is glued on"
        );
    }

    #[test]
    fn logs_of_collectives() {
        let log = calls(sample!("rccl-info-init-coll-2gpus.log"));
        let counts: Vec<(&str, u64)> = log.iter().map(|(_, text, calls)| (text.as_str(), *calls)).collect();
        assert_eq!(
            counts[..4],
            [
                ("AllReduce count 1024 datatype 7 op 0 root 0 [nranks=2]", 4),
                ("Broadcast count 4096 datatype 0 op 0 root 0 [nranks=2]", 2),
                ("AllGather count 4096 datatype 0 op 0 root 0 [nranks=2]", 2),
                ("ReduceScatter count 1024 datatype 6 op 2 root 0 [nranks=2]", 2),
            ]
        );
        assert_eq!(counts.len(), 8, "each rank sends to another one and receives from it");
        for log in [sample!("nvidia/nccl_info.txt"), sample!("nvidia/nccl_trace.txt")] {
            assert(log, "nccl", 3, 4);
        }
    }

    #[test]
    fn logs_of_nvidias_libraries() {
        let blas = calls(sample!("nvidia/cublas.txt"));
        let names: Vec<(&str, u64)> = blas.iter().map(|(_, name, calls)| (name.as_str(), *calls)).collect();
        assert_eq!(
            names,
            [
                ("cublasCreate_v2", 1),
                ("cublasSgemm_v2", 3),
                ("cublasGemmEx", 1),
                ("cublasSgemmStridedBatched", 1)
            ],
            "what sets something is no call"
        );
        let lt = calls(sample!("nvidia/cublaslt.txt"));
        assert_eq!(lt.iter().map(|(.., calls)| calls).sum::<u64>(), 6, "{lt:#?}");
        assert!(
            lt[0].1.starts_with("cublasLtSSSMatmul A=* Adesc=[type=R_32F rows=32 cols=48 ld=32] B=* "),
            "{lt:#?}"
        );
        assert_eq!(calls(sample!("nvidia/cudnn.txt")), [("cudnn", "cudnnBackendFinalize".to_string(), 1)]);
        let plans = calls(sample!("nvidia/cudnn_frontend.txt"));
        assert!(plans.iter().any(|(_, plan, _)| plan.starts_with("ConvFwd_eng")), "{plans:#?}");
    }

    #[test]
    fn lines_of_libraries_that_no_sample_has() {
        let miopen = "MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 1 -c 3 -H 8 -W 8 -k 4 -F 1 -t 1";
        let driver = "./bin/MIOpenDriver conv -n 1 -c 3 -H 8 -W 8 -k 4 -F 1 -t 1";
        let found = |line| call(line).map(|logged| (logged.library, logged.configuration));
        assert_eq!(found(miopen), Some(("miopen", driver.to_string())));
        let elapsed = miopen.replace("(HIP): ", "(HIP): 0.254 ");
        assert_eq!(found(&elapsed), Some(("miopen", driver.to_string())), "a time in front");
        let matmul = "hipblaslt-bench --api_method c -m 64 -n 64 -k 1024 --transA N --transB N";
        assert_eq!(found(matmul), Some(("hipblaslt", matmul.to_string())));
        for other in [
            "",
            "performance: 3.5 samples_per_second",
            "rocblas-benchmarks are fun",
            "NCCL INFO Connected all rings",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
    }

    #[test]
    fn library_trace_is_madengines_byte_for_byte() {
        use crate::library::trace_csv::{Job, Seen};
        let mut seen = Seen::default();
        for line in sample!("rocblas-layer6.log").lines().chain(sample!("tensile-db-0x8000.log").lines()) {
            if let Some(logged) = madengine(line) {
                seen.add(logged.library, &logged.configuration, logged.calls);
            }
        }
        let job = Job { id: "0".into(), created: "2026-11-22 10:03:46".into(), model: "blas_sample".into() };
        let mut written = Vec::new();
        seen.write(&job, &mut written).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), sample!("library_trace.csv"));
    }
}
