//! The lines of rocBLAS's profile (ROCBLAS_LAYER=4), which counts calls by their arguments: madengine has them as `rocblas_function`.
//!
//! Facts: the calls of log_profile in rocBLAS b520bc8 (October 2024), and what 5.5.1 has printed. A line has the function's numbers under the
//! names below, in the order in which they are passed. Scalars are there for products of matrices alone, and not as they are: anything but
//! 0, 1 and -1 is 2.

use std::fmt::Write;

use super::arguments::{Arguments, NumberType, blas, operation};
use super::bench::{algorithm, initial, stride};

/// Whether kernels of a handle may add by atomics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Atomics {
    /// As rocblas_create_handle has it.
    #[default]
    Allowed,
    /// By rocblas_set_atomics_mode.
    NotAllowed,
}

impl Atomics {
    /// What a call of rocblas_set_atomics_mode has set.
    #[must_use]
    pub fn set_by(arguments: &Arguments<'_>) -> Option<Atomics> {
        match arguments.text("atomics_mode")? {
            "rocblas_atomics_allowed" => Some(Atomics::Allowed),
            "rocblas_atomics_not_allowed" => Some(Atomics::NotAllowed),
            _ => None,
        }
    }
}

/// How names go on behind the letter of their type where lines have other keys or another order than the arguments, or there are none.
const OTHERS: [&str; 14] = [
    "syr2_strided",
    "spr2_strided",
    "rotg_strided",
    "rotm_strided",
    "rotmg_strided",
    "trmm",
    "trsm_strided",
    "trtri_strided",
    "gemmt",
    "dgmm_",
    "geam_",
    "gemm_kernel_name",
    "set_",
    "get_",
];

/// The first part of a line, up to the number of calls; nothing where it is not known what rocBLAS would write: of functions that have other
/// lines, and where a scalar of a product lies in the GPU's memory.
#[must_use]
pub fn line(function: &str, arguments: &Arguments<'_>, atomics: Atomics) -> Option<String> {
    let bare = function.strip_prefix("rocblas_")?.trim_end_matches("_64");
    let name = blas(function).map_or_else(|| bare.to_string(), |(name, _)| name);
    if name == "syr2" || OTHERS.iter().any(|other| name.starts_with(other)) {
        return None;
    }
    let is_product = name == "gemm" || name.starts_with("gemm_");
    let is_extended = name.contains("_ex");
    if is_extended && !(is_product && name.ends_with("_ex")) {
        return None;
    }
    let mode = match atomics {
        Atomics::Allowed => "atomics_allowed",
        Atomics::NotAllowed => "atomics_not_allowed",
    };
    let mut line = format!("- {{ rocblas_function: \"{function}\", atomics_mode: {mode}");
    // Writing to a String cannot fail.
    if is_extended {
        for key in ["a_type", "b_type", "c_type", "d_type", "compute_type"] {
            let _ = write!(line, ", {key}: \"{}\"", NumberType::of_value(arguments.text(key)?)?.name);
        }
    }
    let mut has_numbers = false;
    for (key, value) in arguments.each().filter(|(key, _)| *key != "status") {
        let number = |text: &str| value.parse::<i64>().is_ok().then(|| format!(", {text}: {value}"));
        let part = match key {
            "transA" | "trans" if name.starts_with("her2k") || name.starts_with("herkx") => {
                format!(", trans: '{}'", operation(value)?)
            }
            "transA" | "trans" => format!(", transA: '{}'", operation(value)?),
            "transB" => format!(", transB: '{}'", operation(value)?),
            "side" | "uplo" | "diag" => format!(", {key}: '{}'", initial(value)?),
            "k" if name.starts_with("tbmv") || name.starts_with("hbmv_strided") => number("k")?,
            "m" | "n" if name.starts_with("trsm") => number(key)?,
            "m" | "n" | "k" => number(&key.to_ascii_uppercase())?,
            "alpha" | "beta" if is_product => format!(", {key}: {}", category(value)?),
            "batch_count" if name.starts_with("axpy") => number("batch")?,
            "kl" | "ku" | "lda" | "ldb" | "ldc" | "ldd" | "incx" | "incy" | "ldinvA" | "batch_count"
            | "solution_index" => number(key)?,
            "algo" => format!(", algo: {}", algorithm(value)?),
            "flags" => format!(", flags: {}", flags(value)?),
            _ => match stride(key) {
                Some(of) => number(&format!("stride_{of}"))?,
                None => continue,
            },
        };
        has_numbers = true;
        line.push_str(&part);
    }
    has_numbers.then_some(line)
}

/// A whole line of what [`line()`] has, for so many calls.
#[must_use]
pub fn with_calls(line: &str, calls: u64) -> String {
    format!("{line}, call_count: {calls} }}")
}

/// As rocBLAS rounds a scalar: real, or its parts with a comma between them.
fn category(value: &str) -> Option<&'static str> {
    let (real, imaginary) = value.split_once(',').unwrap_or((value, "0"));
    let [real, imaginary] = [real, imaginary].map(|part| part.parse::<f64>().ok());
    Some(match (real?, imaginary?) {
        (0.0, 0.0) => "0.0",
        (1.0, 0.0) => "1.0",
        (-1.0, 0.0) => "-1.0",
        _ => "2.0",
    })
}

/// The name of one of rocblas_gemm_flags.
fn flags(value: &str) -> Option<&'static str> {
    Some(match value {
        "0" => "none",
        "2" => "use_cu_efficiency",
        "4" => "fp16_alt_impl",
        "8" => "check_solution_index",
        "16" => "fp16_alt_impl_round",
        "32" => "stochastic_rounding",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(function: &str, arguments: &str) -> Option<String> {
        line(function, &Arguments::of(arguments), Atomics::Allowed).map(|line| with_calls(&line, 1))
    }

    /// What rocBLAS 5.5.1 printed for the sample program, but for the three calls of one kind.
    #[test]
    fn lines_are_rocblas_s_own() {
        let (n, t) = ("rocblas_operation_none", "rocblas_operation_transpose");
        let gemm = |a: &str, rest: &str| format!("handle=0x1 | transA={a} | transB={n} | {rest}");
        let calls = [
            (
                "rocblas_sgemv",
                format!(
                    "handle=0x1 | trans={n} | m=64 | n=64 | alpha=1 | A=0xa | lda=64 | x=0xb | incx=1 | beta=0 | y=0xc | incy=1"
                ),
            ),
            ("rocblas_sscal", "handle=0x1 | n=1000 | alpha=2.5 | x=0xa | incx=1".to_string()),
            (
                "rocblas_sdot",
                "handle=0x1 | n=1000 | x=0xa | incx=1 | y=0xb | incy=1 | result=0xc".to_string(),
            ),
            (
                "rocblas_saxpy",
                "handle=0x1 | n=1000 | alpha=2.5 | x=0xa | incx=1 | y=0xb | incy=1".to_string(),
            ),
            (
                "rocblas_gemm_ex",
                gemm(
                    n,
                    "m=32 | n=32 | k=32 | alpha=1 | a=0xa | a_type=rocblas_datatype_f32_r | lda=32 | b=0xb | b_type=rocblas_datatype_f32_r | ldb=32 | \
                     beta=0 | c=0xc | c_type=rocblas_datatype_f32_r | ldc=32 | d=0xd | d_type=rocblas_datatype_f32_r | ldd=32 | \
                     compute_type=rocblas_datatype_f32_r | algo=rocblas_gemm_algo_standard | solution_index=0 | flags=0",
                ),
            ),
            (
                "rocblas_sgemm_strided_batched",
                gemm(
                    n,
                    "m=16 | n=16 | k=16 | alpha=1 | A=0xa | lda=16 | stride_a=256 | B=0xb | ldb=16 | stride_b=256 | beta=0 | C=0xc | ldc=16 | \
                     stride_c=256 | batch_count=4",
                ),
            ),
            (
                "rocblas_dgemm",
                gemm(
                    n,
                    "m=16 | n=16 | k=16 | alpha=1 | A=0xa | lda=16 | B=0xb | ldb=16 | beta=0 | C=0xc | ldc=16",
                ),
            ),
            (
                "rocblas_sgemm",
                gemm(
                    t,
                    "m=32 | n=64 | k=48 | alpha=2.5 | A=0xa | lda=48 | B=0xb | ldb=48 | beta=1 | C=0xc | ldc=32",
                ),
            ),
        ];
        let printed = include_str!("../../../fixtures/library-logs/rocblas-layer4-profile.yaml");
        let printed: Vec<&str> = printed.lines().filter(|line| line.contains("call_count: 1")).collect();
        let made: Vec<String> =
            calls.iter().map(|(function, arguments)| of(function, arguments).unwrap()).collect();
        assert_eq!(made, printed);
    }

    #[test]
    fn other_functions() {
        let triangle = "side=rocblas_side_left | uplo=rocblas_fill_upper | transA=rocblas_operation_none | diag=rocblas_diagonal_unit | m=4 | n=5 | \
                        alpha=1 | A=0xa | lda=4 | B=0xb | ldb=6";
        let start = |name: &str| format!("- {{ rocblas_function: \"{name}\", atomics_mode: atomics_allowed");
        assert_eq!(
            of("rocblas_ctrsm", triangle),
            Some(
                start("rocblas_ctrsm")
                    + ", side: 'L', uplo: 'U', transA: 'N', diag: 'U', m: 4, n: 5, lda: 4, ldb: 6, call_count: 1 }"
            )
        );
        assert_eq!(
            of(
                "rocblas_saxpy_strided_batched_64",
                "n=3 | alpha=1 | incx=1 | stridex=9 | incy=1 | stridey=9 | batch_count=2"
            ),
            Some(
                start("rocblas_saxpy_strided_batched_64")
                    + ", N: 3, incx: 1, stride_x: 9, incy: 1, stride_y: 9, batch: 2, call_count: 1 }"
            )
        );
        assert_eq!(
            of(
                "rocblas_ssyr2k",
                "uplo=rocblas_fill_lower | trans=rocblas_operation_none | n=1 | k=2 | alpha=1 | lda=3 | ldb=4 | beta=0 | ldc=5"
            ),
            Some(
                start("rocblas_ssyr2k")
                    + ", uplo: 'L', transA: 'N', N: 1, K: 2, lda: 3, ldb: 4, ldc: 5, call_count: 1 }"
            )
        );
        assert_eq!(
            of(
                "rocblas_cher2k",
                "uplo=rocblas_fill_lower | trans=rocblas_operation_none | n=1 | k=2 | lda=3 | ldb=4 | beta=0 | ldc=5"
            ),
            Some(
                start("rocblas_cher2k")
                    + ", uplo: 'L', trans: 'N', N: 1, K: 2, lda: 3, ldb: 4, ldc: 5, call_count: 1 }"
            )
        );
        assert_eq!(
            of("rocblas_isamax", "n=5 | incx=2"),
            Some(start("rocblas_isamax") + ", N: 5, incx: 2, call_count: 1 }")
        );
        let scaled = "m=1 | n=2 | k=3 | alpha=-1,0 | beta=1,0.5";
        let made = of("rocblas_zgemm", scaled).unwrap();
        assert!(made.ends_with(", alpha: -1.0, beta: 2.0, call_count: 1 }"), "{made}");
        let never = line("rocblas_sgemm", &Arguments::of(scaled), Atomics::NotAllowed).unwrap();
        assert!(never.contains(", atomics_mode: atomics_not_allowed, M: 1,"), "{never}");
        for (function, arguments) in [
            ("rocblas_sgemm", "m=1 | n=2 | k=3 | alpha=0x7f00 | beta=0"),
            ("rocblas_strmm", triangle),
            ("rocblas_sgeam_batched", "m=1"),
            ("rocblas_gemm_ex", "m=1 | flags=6"),
            ("rocblas_axpy_ex", "n=1"),
            ("rocblas_ssyr2", "n=1"),
            ("rocblas_set_matrix", "rows=1 | lda=1"),
            ("rocblas_set_atomics_mode", "atomics_mode=rocblas_atomics_allowed"),
            ("rocblas_create_handle", "handle=0x1"),
            ("hipblasSgemm", "m=1"),
            ("rocblas_sgemm", "m=1, call_count: 9 | n=2"),
        ] {
            assert_eq!(of(function, arguments), None, "{function}");
        }
    }
}
