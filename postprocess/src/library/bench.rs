//! The command that runs a call again by itself: a line for rocblas-bench, rccl-tests or rocfft-bench.

use std::fmt::Write;

use super::arguments::{Arguments, NumberType, blas, operation};
use super::work::Collective;

/// The command for a call of `function`; nothing where there is none, or its arguments do not tell.
#[must_use]
pub fn command(library: &str, function: &str, arguments: &Arguments<'_>) -> Option<String> {
    match library {
        "rocblas" => rocblas(function, arguments),
        "rccl" | "nccl" => collective(function, arguments),
        "rocfft" => rocfft(arguments),
        _ => None,
    }
}

/// As rocBLAS's own log has it (ROCBLAS_LAYER=2).
fn rocblas(function: &str, arguments: &Arguments<'_>) -> Option<String> {
    let (name, letter) = blas(function)?;
    let mut line = format!("./rocblas-bench -f {name}");
    if let Some(letter) = letter {
        let _ = write!(line, " -r {}", letter.name);
    }
    let mut options = 0;
    for (key, value) in arguments.each().filter(|(key, _)| *key != "status") {
        // Writing to a String cannot fail.
        let _ = match key {
            "transA" | "trans" => write!(line, " --transposeA {}", operation(value)?),
            "transB" => write!(line, " --transposeB {}", operation(value)?),
            "side" => write!(line, " --side {}", initial(value)?),
            "uplo" => write!(line, " --uplo {}", initial(value)?),
            "diag" => write!(line, " --diag {}", initial(value)?),
            "m" | "n" | "k" => write!(line, " -{key} {value}"),
            "alpha" | "beta" if !value.starts_with("0x") => match value.split_once(',') {
                Some((real, imaginary)) => write!(line, " --{key} {real} --{key}i {imaginary}"),
                None => write!(line, " --{key} {value}"),
            },
            // Where scalars lie in the GPU's memory their values are not known.
            "alpha" | "beta" => Ok(()),
            "a_type" | "b_type" | "c_type" | "d_type" | "x_type" | "y_type" | "compute_type"
            | "execution_type" => {
                write!(line, " --{key} {}", NumberType::of_value(value)?.name)
            }
            "algo" => write!(line, " --algo {}", if value.ends_with("_standard") { "0" } else { value }),
            "kl" | "ku" | "lda" | "ldb" | "ldc" | "ldd" | "incx" | "incy" | "batch_count"
            | "solution_index" | "flags" => {
                write!(line, " --{key} {value}")
            }
            _ if key.starts_with("stride") => write!(line, " --{key} {value}"),
            _ => continue,
        };
        options += 1;
    }
    (options > 0).then_some(line)
}

/// `rocblas_fill_upper`: U.
fn initial(value: &str) -> Option<char> {
    let word = value.rsplit('_').next()?;
    // rocblas_diagonal_non_unit.
    if value.ends_with("non_unit") {
        return Some('N');
    }
    word.chars().next().map(|c| c.to_ascii_uppercase())
}

fn collective(function: &str, arguments: &Arguments<'_>) -> Option<String> {
    let test = match function {
        "ncclAllReduce" => "all_reduce_perf",
        "ncclAllGather" => "all_gather_perf",
        "ncclReduceScatter" => "reduce_scatter_perf",
        "ncclBroadcast" | "ncclBcast" => "broadcast_perf",
        "ncclReduce" => "reduce_perf",
        "ncclAllToAll" => "alltoall_perf",
        "ncclGather" => "gather_perf",
        "ncclScatter" => "scatter_perf",
        "ncclSend" | "ncclRecv" => "sendrecv_perf",
        _ => return None,
    };
    let Collective { bytes, ranks, .. } = Collective::of(function, arguments)?;
    let mut line = format!("{test} -b {bytes} -e {bytes}");
    let bare = |key| Some(arguments.text(key)?.strip_prefix("nccl")?.to_ascii_lowercase());
    if let Some(kind) = bare("datatype") {
        let kind = match &*kind {
            "float16" => "half",
            "float32" => "float",
            "float64" => "double",
            other => other,
        };
        let _ = write!(line, " -d {kind}");
    }
    if let Some(op) = bare("op") {
        let _ = write!(line, " -o {op}");
    }
    if let Some(root) = arguments.text("root") {
        let _ = write!(line, " -r {root}");
    }
    if let Some(ranks) = ranks {
        let _ = write!(line, " -g {ranks}");
    }
    Some(line)
}

/// The arguments are those of the plan.
fn rocfft(plan: &Arguments<'_>) -> Option<String> {
    // The first length is that of neighbouring elements; the command wants it last.
    let mut lengths: Vec<&str> = plan.text("lengths")?.split(',').collect();
    lengths.reverse();
    let kind = match plan.text("transform_type")?.strip_prefix("rocfft_transform_type_")? {
        "complex_forward" => 0,
        "complex_inverse" => 1,
        "real_forward" => 2,
        "real_inverse" => 3,
        _ => return None,
    };
    let precision = plan.text("precision")?.strip_prefix("rocfft_precision_")?;
    let batch = plan.text("number_of_transforms")?;
    let mut line =
        format!("rocfft-bench --length {} -b {batch} -t {kind} --precision {precision}", lengths.join(" "));
    if plan.text("placement")?.ends_with("_notinplace") {
        line.push_str(" -o");
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert(library: &str, function: &str, arguments: &str, command: &str) {
        assert_eq!(super::command(library, function, &Arguments::of(arguments)).as_deref(), Some(command));
    }

    #[test]
    fn rocblas_bench_gets_what_rocblas_logs() {
        let gemm = "handle=0x1 | transA=rocblas_operation_transpose | transB=rocblas_operation_none | m=32 | n=64 | k=48 | \
                    alpha=2.5 | A=0xa | lda=48 | B=0xb | ldb=48 | beta=1 | C=0xc | ldc=32";
        assert(
            "rocblas",
            "rocblas_sgemm",
            gemm,
            "./rocblas-bench -f gemm -r f32_r --transposeA T --transposeB N -m 32 -n 64 -k 48 --alpha 2.5 --lda 48 --ldb 48 --beta 1 --ldc 32",
        );
        let triangle = "handle=0x1 | side=rocblas_side_left | uplo=rocblas_fill_upper | transA=rocblas_operation_none | \
                        diag=rocblas_diagonal_non_unit | m=4 | n=5 | alpha=1,-2 | A=0xa | lda=4 | B=0xb | ldb=4";
        assert(
            "rocblas",
            "rocblas_ctrsm",
            triangle,
            "./rocblas-bench -f trsm -r f32_c --side L --uplo U --transposeA N --diag N -m 4 -n 5 --alpha 1 --alphai -2 --lda 4 --ldb 4",
        );
    }

    #[test]
    fn tests_of_rccl_and_rocfft() {
        let sum = "sendbuff=0x1 | recvbuff=0x2 | count=1024 | datatype=ncclFloat32 | op=ncclSum | comm=0x3 | stream=0x4 | nranks=2 | rank=0";
        assert("rccl", "ncclAllReduce", sum, "all_reduce_perf -b 4096 -e 4096 -d float -o sum -g 2");
        let plan = "plan=0x1 | placement=rocfft_placement_notinplace | transform_type=rocfft_transform_type_real_forward | \
                    precision=rocfft_precision_double | dimensions=2 | lengths=64,32 | number_of_transforms=3";
        assert(
            "rocfft",
            "rocfft_execute",
            plan,
            "rocfft-bench --length 32 64 -b 3 -t 2 --precision double -o",
        );
    }
}
