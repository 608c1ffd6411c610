//! The command that runs a call again by itself: a line for rocblas-bench, hipblaslt-bench, MIOpenDriver, rccl-tests or rocfft-bench.

use std::fmt::Write;

use super::arguments::{Arguments, NumberType, blas, is_zero, operation};
use super::replay::is_value;
use super::work::Collective;

/// The command for a call of `function`; nothing where there is none, or its arguments do not tell. Nothing too where an argument is neither
/// a number nor a word: people put commands into a shell.
#[must_use]
pub fn command(library: &str, function: &str, arguments: &Arguments<'_>) -> Option<String> {
    if !arguments.each().all(|(key, value)| is_value(key) && is_value(value)) || !is_value(function) {
        return None;
    }
    match library {
        "rocblas" => rocblas(function, arguments),
        "hipblaslt" if function == "hipblasLtMatmul" => hipblaslt(arguments),
        "miopen" => miopen(function, arguments),
        "rccl" | "nccl" => collective(function, arguments),
        "rocfft" => rocfft(arguments),
        _ => None,
    }
}

/// As rocBLAS's own log has it (ROCBLAS_LAYER=2).
fn rocblas(function: &str, arguments: &Arguments<'_>) -> Option<String> {
    let (name, letter) = blas(function)?;
    // csscal: a complex vector and a real scalar.
    let real = name.strip_prefix(['s', 'd']).filter(|name| *name == "scal" || name.starts_with("scal_"));
    let mut line = format!("./rocblas-bench -f {}", real.unwrap_or(&name));
    match letter {
        Some(letter) if real.is_some() => {
            let _ = write!(line, " --a_type {} --b_type {}", letter.name, letter.name.replace("_c", "_r"));
        }
        Some(letter) => {
            let _ = write!(line, " -r {}", letter.name);
        }
        None => {}
    }
    let mut options = 0;
    // Functions of vectors have types of their scalars and vectors, which rocblas-bench takes in the same order as those of matrices.
    let mut letters = ["a_type", "b_type", "c_type"].into_iter();
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
                Some((real, imaginary)) if !is_zero(imaginary) => {
                    write!(line, " --{key} {} --{key}i {}", six_digits(real), six_digits(imaginary))
                }
                Some((real, _)) => write!(line, " --{key} {}", six_digits(real)),
                None => write!(line, " --{key} {}", six_digits(value)),
            },
            // Where scalars lie in the GPU's memory their values are not known.
            "alpha" | "beta" => Ok(()),
            "a_type" | "b_type" | "c_type" | "d_type" | "compute_type" => {
                write!(line, " --{key} {}", NumberType::of_value(value)?.name)
            }
            "alpha_type" | "x_type" | "y_type" | "cs_type" | "result_type" => {
                write!(line, " --{} {}", letters.next()?, NumberType::of_value(value)?.name)
            }
            "execution_type" => write!(line, " --compute_type {}", NumberType::of_value(value)?.name),
            "algo" => write!(line, " --algo {}", algorithm(value)?),
            "kl" | "ku" | "lda" | "ldb" | "ldc" | "ldd" | "incx" | "incy" | "batch_count"
            | "solution_index" | "flags" => {
                write!(line, " --{key} {value}")
            }
            _ => match stride(key) {
                Some(of) => write!(line, " --stride_{of} {value}"),
                None => continue,
            },
        };
        options += 1;
    }
    (options > 0).then_some(line)
}

/// A product whose descriptors are known, and have no attributes that the command has no options for here. hipBLASLt's own log (HIPBLASLT_LOG_MASK=32)
/// has more options, which are as here where they are left out.
fn hipblaslt(arguments: &Arguments<'_>) -> Option<String> {
    const RELU: u64 = 2;
    const BIAS: u64 = 4;
    const GELU: u64 = 32;
    if arguments.text("further_attributes").is_some() {
        return None;
    }
    let mut line = "hipblaslt-bench --api_method c".to_string();
    for key in ["m", "n", "k"] {
        let _ = write!(line, " -{key} {}", arguments.number(&[key])?);
    }
    for key in ["lda", "ldb", "ldc", "ldd", "stride_a", "stride_b", "stride_c", "stride_d"] {
        if let Some(number) = arguments.number(&[key]) {
            let _ = write!(line, " --{key} {number}");
        }
    }
    for key in ["alpha", "beta"] {
        // Where scalars lie in the GPU's memory their values are not known.
        if let Some(value) = arguments.text(key).filter(|value| !value.starts_with("0x")) {
            let _ = write!(line, " --{key} {value}");
        }
    }
    for key in ["transA", "transB"] {
        let _ = write!(line, " --{key} {}", operation(arguments.text(key)?)?);
    }
    let _ = write!(line, " --batch_count {}", arguments.number(&["batch_count"]).unwrap_or(1));
    let epilogue = arguments.number(&["epilogue"]).unwrap_or(1);
    if epilogue & BIAS != 0 {
        line.push_str(" --bias_vector");
    }
    for key in ["a_type", "b_type", "c_type", "d_type"] {
        let _ = write!(line, " --{key} {}", NumberType::of_value(arguments.text(key)?)?.name);
    }
    let compute =
        match arguments.text("compute_type")?.strip_prefix("HIPBLAS_COMPUTE_")?.trim_end_matches("_PEDANTIC")
        {
            "16F" => "f16_r",
            "32F" => "f32_r",
            "32F_FAST_16F" => "f32_f16_r",
            "32F_FAST_16BF" => "f32_bf16_r",
            "32F_FAST_TF32" => "xf32_r",
            "64F" => "f64_r",
            "32I" => "i32_r",
            _ => return None,
        };
    let _ = write!(line, " --compute_type {compute}");
    match epilogue & !BIAS {
        0 | 1 => {}
        RELU => line.push_str(" --activation_type relu"),
        GELU => line.push_str(" --activation_type gelu"),
        _ => return None,
    }
    Some(line)
}

/// A convolution whose descriptors are known, as MIOpen's own log has it (MIOPEN_ENABLE_LOGGING_CMD=1).
fn miopen(function: &str, arguments: &Arguments<'_>) -> Option<String> {
    const SPATIAL_OPTIONS: [[&str; 3]; 5] = [
        ["--in_d", "-H", "-W"],
        ["--fil_d", "-y", "-x"],
        ["--pad_d", "-p", "-q"],
        ["--conv_stride_d", "-u", "-v"],
        ["--dilation_d", "-l", "-j"],
    ];
    let bare = function.strip_prefix("miopenFind").or_else(|| function.strip_prefix("miopen"))?;
    if bare.ends_with("CompileSolution") {
        return None;
    }
    let direction = match bare.strip_prefix("Convolution")? {
        rest if rest.starts_with("Forward") => 1,
        rest if rest.starts_with("BackwardData") => 2,
        rest if rest.starts_with("BackwardWeights") => 4,
        _ => return None,
    };
    let driver = match arguments.text("data_type")? {
        "miopenHalf" => "convfp16",
        "miopenBFloat16" => "convbfp16",
        "miopenInt8" => "convint8",
        _ => "conv",
    };
    let is_transposed = arguments.text("mode")? == "miopenTranspose";
    let (input, filter) = (arguments.list("in")?, arguments.list("filter")?);
    let dimensions = input.len().checked_sub(2).filter(|dimensions| (2..=3).contains(dimensions))?;
    let of = |place: usize, numbers: Option<&[u64]>| {
        let options = SPATIAL_OPTIONS[place].get(3 - dimensions..)?;
        let numbers = numbers.filter(|numbers| numbers.len() == dimensions)?;
        let options = options.iter().zip(numbers).map(|(option, number)| format!(" {option} {number}"));
        Some(options.collect::<String>())
    };
    let mut line = format!("./bin/MIOpenDriver {driver} -n {} -c {}", input.first()?, input.get(1)?);
    line += &of(0, input.get(2..))?;
    let _ = write!(line, " -k {}", filter.get(usize::from(is_transposed))?);
    line += &of(1, filter.get(2..))?;
    for (place, key) in (2..).zip(["pad", "stride", "dilation"]) {
        line += &of(place, arguments.list(key).as_deref())?;
    }
    if dimensions == 3 {
        line.push_str(" --spatial_dim 3");
    }
    for (key, option) in
        [("in_layout", "--in_layout"), ("filter_layout", "--fil_layout"), ("out_layout", "--out_layout")]
    {
        match arguments.text(key) {
            None => {}
            Some("channels_last") if dimensions == 2 => line += &format!(" {option} NHWC"),
            Some("channels_last") => line += &format!(" {option} NDHWC"),
            Some(_) => return None,
        }
    }
    let groups = arguments.number(&["groups"])?;
    let mode = if is_transposed { "trans" } else { "conv" };
    let _ = write!(line, " -m {mode} -g {groups} -F {direction} -t 1");
    if bare.ends_with("Immediate") {
        line.push_str(" -S 0");
    }
    Some(line)
}

/// The number of rocblas_gemm_algo, which rocblas-bench takes.
pub(super) fn algorithm(value: &str) -> Option<u32> {
    match value {
        "rocblas_gemm_algo_standard" => Some(0),
        "rocblas_gemm_algo_solution_index" => Some(1),
        number => number.parse().ok(),
    }
}

/// What the stride of is meant: `stride_A`, `strideA` and `stride_a`; not `stride_invA`.
pub(super) fn stride(key: &str) -> Option<char> {
    let mut letters = key.strip_prefix("stride")?.trim_start_matches('_').chars();
    let of = letters.next()?.to_ascii_lowercase();
    (letters.next().is_none() && "abcdxy".contains(of)).then_some(of)
}

/// `rocblas_fill_upper`: U.
pub(super) fn initial(value: &str) -> Option<char> {
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

/// A number as rocBLAS prints it: as C++'s streams do, with six digits.
fn six_digits(text: &str) -> String {
    let Ok(number) = text.parse::<f64>() else { return text.to_string() };
    let scientific = format!("{number:.5e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific.to_lowercase() };
    let Ok(exponent) = exponent.parse::<i32>() else { return scientific };
    let without_zeros = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => digits.to_string(),
    };
    match usize::try_from(5 - exponent) {
        Ok(decimals) if decimals < 10 => without_zeros(&format!("{number:.decimals$}")),
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", without_zeros(digits), exponent.unsigned_abs())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert(library: &str, function: &str, arguments: &str, command: &str) {
        assert_eq!(super::command(library, function, &Arguments::of(arguments)).as_deref(), Some(command));
    }

    #[test]
    fn scalars_are_printed_as_by_c_plus_plus() {
        for (value, printed) in [
            ("2.5", "2.5"),
            ("1", "1"),
            ("-0", "-0"),
            ("0.099975586", "0.0999756"),
            ("0.33333334", "0.333333"),
            ("123456.7", "123457"),
            ("999999.5", "1e+06"),
            ("1234567", "1.23457e+06"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("-0.000012345678", "-1.23457e-05"),
            ("1e300", "1e+300"),
            ("NaN", "nan"),
            ("-inf", "-inf"),
        ] {
            assert_eq!(super::six_digits(value), printed, "{value}");
        }
        let half = "transA=rocblas_operation_none | transB=rocblas_operation_none | m=2 | n=3 | k=4 | alpha=0.099975586 | lda=2 | ldb=4 | \
                    beta=-2 | ldc=2";
        assert(
            "rocblas",
            "rocblas_hgemm",
            half,
            "./rocblas-bench -f gemm -r f16_r --transposeA N --transposeB N -m 2 -n 3 -k 4 --alpha 0.0999756 --lda 2 --ldb 4 --beta -2 --ldc 2",
        );
        assert(
            "rocblas",
            "rocblas_haxpy",
            "n=10 | alpha=0.5 | incx=1 | incy=1",
            "./rocblas-bench -f axpy -r f16_r -n 10 --alpha 0.5 --incx 1 --incy 1",
        );
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
        assert(
            "rocblas",
            "rocblas_cgemm",
            "transA=rocblas_operation_none | transB=rocblas_operation_none | m=16 | n=16 | k=16 | alpha=1,2 | lda=16 | ldb=16 | beta=0,0 | ldc=16",
            "./rocblas-bench -f gemm -r f32_c --transposeA N --transposeB N -m 16 -n 16 -k 16 --alpha 1 --alphai 2 --lda 16 --ldb 16 --beta 0 --ldc 16",
        );
        for (function, arguments, command) in [
            ("rocblas_isamax", "n=52 | incx=1", "./rocblas-bench -f iamax -r f32_r -n 52 --incx 1"),
            (
                "rocblas_izamin_batched",
                "n=5 | incx=1 | batch_count=2",
                "./rocblas-bench -f iamin_batched -r f64_c -n 5 --incx 1 --batch_count 2",
            ),
            (
                "rocblas_csscal",
                "n=12 | alpha=1.25 | incx=1",
                "./rocblas-bench -f scal --a_type f32_c --b_type f32_r -n 12 --alpha 1.25 --incx 1",
            ),
            (
                "rocblas_zdscal_batched",
                "n=12 | alpha=1.25 | incx=1 | batch_count=2",
                "./rocblas-bench -f scal_batched --a_type f64_c --b_type f64_r -n 12 --alpha 1.25 --incx 1 --batch_count 2",
            ),
        ] {
            assert("rocblas", function, arguments, command);
        }
        assert(
            "rocblas",
            "rocblas_sgemv_strided_batched",
            "trans=rocblas_operation_none | m=4 | n=5 | lda=4 | strideA=20 | incx=1 | stridex=5 | incy=1 | stride_y=4 | batch_count=2",
            "./rocblas-bench -f gemv_strided_batched -r f32_r --transposeA N -m 4 -n 5 --lda 4 --stride_a 20 --incx 1 --stride_x 5 --incy 1 --stride_y 4 --batch_count 2",
        );
        assert(
            "rocblas",
            "rocblas_axpy_ex",
            "n=10 | alpha=2 | alpha_type=rocblas_datatype_f32_r | x_type=rocblas_datatype_f16_r | incx=1 | y_type=rocblas_datatype_bf16_r | incy=1 | execution_type=rocblas_datatype_f32_r",
            "./rocblas-bench -f axpy_ex -n 10 --alpha 2 --a_type f32_r --b_type f16_r --incx 1 --c_type bf16_r --incy 1 --compute_type f32_r",
        );
    }

    #[test]
    fn products_whose_descriptors_are_known_have_a_line() {
        let product = "alpha=2.5 | beta=0xa0 | transA=HIPBLAS_OP_T | transB=HIPBLAS_OP_N | m=32 | n=64 | k=48 | a_type=HIP_R_16F | b_type=HIP_R_16F | \
                       c_type=HIP_R_16F | d_type=HIP_R_32F | compute_type=HIPBLAS_COMPUTE_32F_PEDANTIC | scale_type=HIP_R_32F | lda=50 | ldb=48 | ldc=32 | ldd=33";
        let command = "hipblaslt-bench --api_method c -m 32 -n 64 -k 48 --lda 50 --ldb 48 --ldc 32 --ldd 33 --alpha 2.5 --transA T --transB N \
                       --batch_count 1 --a_type f16_r --b_type f16_r --c_type f16_r --d_type f32_r --compute_type f32_r";
        assert("hipblaslt", "hipblasLtMatmul", product, command);
        let relu_and_bias = format!(
            "{product} | batch_count=3 | stride_a=9 | stride_b=8 | stride_c=7 | stride_d=6 | epilogue=6"
        );
        let command = command
            .replace(" --alpha", " --stride_a 9 --stride_b 8 --stride_c 7 --stride_d 6 --alpha")
            .replace("--batch_count 1", "--batch_count 3 --bias_vector");
        assert("hipblaslt", "hipblasLtMatmul", &relu_and_bias, &format!("{command} --activation_type relu"));
        let scaled = format!("{product} | further_attributes=set");
        assert_eq!(super::command("hipblaslt", "hipblasLtMatmul", &Arguments::of(&scaled)), None);
        let gradient = format!("{product} | epilogue=192");
        assert_eq!(super::command("hipblaslt", "hipblasLtMatmul", &Arguments::of(&gradient)), None);
        assert_eq!(super::command("hipblaslt", "hipblasLtMatmul", &Arguments::of("A=0x10")), None);
    }

    /// As MIOpen's ConvArgsForMIOpenDriver (src/driver_arguments.cpp, October 2024) writes them.
    #[test]
    fn convolutions_whose_descriptors_are_known_have_a_line() {
        let sizes = "data_type=miopenHalf | mode=miopenConvolution | in=2,3,8,16 | filter=4,3,3,5 | out=2,4,8,14 | pad=1,2 | stride=1,1 | dilation=1,1 | groups=1";
        let command = "./bin/MIOpenDriver convfp16 -n 2 -c 3 -H 8 -W 16 -k 4 -y 3 -x 5 -p 1 -q 2 -u 1 -v 1 -l 1 -j 1 -m conv -g 1 -F 1 -t 1";
        assert("miopen", "miopenConvolutionForward", sizes, command);
        assert("miopen", "miopenFindConvolutionForwardAlgorithm", sizes, command);
        let data = command.replace("-F 1", "-F 2") + " -S 0";
        assert("miopen", "miopenConvolutionBackwardDataImmediate", sizes, &data);
        assert("miopen", "miopenConvolutionBackwardWeights", sizes, &command.replace("-F 1", "-F 4"));
        let last = sizes.replace(" | filter=", " | in_layout=channels_last | filter=");
        let layout = command.replace(" -m conv", " --in_layout NHWC -m conv");
        assert("miopen", "miopenConvolutionForward", &last, &layout);
        let volume = "data_type=miopenFloat | mode=miopenTranspose | in=2,3,7,8,16 | filter=3,4,2,3,5 | out=2,4,8,10,20 | pad=0,1,2 | stride=1,2,3 | dilation=1,1,1 | groups=1";
        let command = "./bin/MIOpenDriver conv -n 2 -c 3 --in_d 7 -H 8 -W 16 -k 4 --fil_d 2 -y 3 -x 5 --pad_d 0 -p 1 -q 2 --conv_stride_d 1 -u 2 -v 3 \
                       --dilation_d 1 -l 1 -j 1 --spatial_dim 3 -m trans -g 1 -F 1 -t 1";
        assert("miopen", "miopenConvolutionForward", volume, command);
        let other = Arguments::of(sizes).configuration() + " | in_layout=other";
        assert_eq!(super::command("miopen", "miopenConvolutionForward", &Arguments::of(&other)), None);
        assert_eq!(super::command("miopen", "miopenConvolutionBackwardBias", &Arguments::of(sizes)), None);
    }

    #[test]
    fn rocblas_bench_takes_algorithms_as_numbers() {
        for (algo, number) in
            [("rocblas_gemm_algo_standard", 0), ("rocblas_gemm_algo_solution_index", 1), ("2", 2)]
        {
            let arguments = format!("m=4 | algo={algo} | solution_index=7");
            let command = format!("./rocblas-bench -f gemm_ex -m 4 --algo {number} --solution_index 7");
            assert("rocblas", "rocblas_gemm_ex", &arguments, &command);
        }
        let unknown = Arguments::of("m=4 | algo=rocblas_gemm_algo_other");
        assert_eq!(command("rocblas", "rocblas_gemm_ex", &unknown), None);
    }

    /// Whoever writes a trace must not have a say in what those who read it put into a shell.
    #[test]
    fn arguments_that_are_no_numbers_and_no_words_have_no_command() {
        for (library, function, arguments) in [
            ("rocblas", "rocblas_sgemm", "m=1;reboot | n=2 | k=3"),
            ("rocblas", "rocblas_sgemm", "m=1 --yaml x | n=2 | k=3"),
            ("rocblas", "rocblas_sgemm", "m=--yaml | n=2 | k=3"),
            ("rocblas", "rocblas_sgemm", "m=1 | stride_a --yaml x=3"),
            ("rocblas", "rocblas_sgemm $(reboot)", "m=1 | n=2 | k=3"),
            ("rccl", "ncclAllReduce", "count=1 | datatype=ncclFloat32 | op=nccl`reboot` | nranks=2"),
            ("rocfft", "rocfft_execute", "lengths=8>x | transform_type=rocfft_transform_type_real_forward"),
        ] {
            assert_eq!(command(library, function, &Arguments::of(arguments)), None, "{arguments}");
        }
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
