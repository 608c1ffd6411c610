//! What a call computes and moves, by its arguments.

use super::arguments::{Arguments, NumberType, blas};

/// What one call does. Nothing where its arguments do not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LibraryWork {
    /// Floating point operations; of a product of matrices 2mnk, of complex ones 8mnk, of a Fourier transform of N numbers 5 N log2 N.
    pub flop: Option<f64>,
    /// Bytes that it must read and write; of a collective those that each rank has in the end or gives.
    pub bytes: Option<u64>,
    /// By what the bytes of a collective over its time are multiplied so that the rate can be compared with that of the hardware, whatever
    /// the number of ranks, as rccl-tests and nccl-tests do; nothing where that is not known.
    pub bus_factor: Option<f64>,
}

/// A collective: its arguments that matter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Collective {
    /// Bytes, as rccl-tests count them.
    pub bytes: u64,
    /// Ranks, where they are known.
    pub ranks: Option<u64>,
    /// See [`LibraryWork::bus_factor`].
    pub bus_factor: Option<f64>,
}

impl LibraryWork {
    /// Of a call of `function`; of one that executes a plan, with the arguments that made the plan.
    #[must_use]
    pub fn of(function: &str, arguments: &Arguments<'_>) -> LibraryWork {
        if let Some(Collective { bytes, bus_factor, .. }) = Collective::of(function, arguments) {
            return LibraryWork { flop: None, bytes: Some(bytes), bus_factor };
        }
        let is_convolution =
            function.starts_with("miopenConvolution") || function.starts_with("cudnnConvolution");
        if is_convolution && !function.ends_with("CompileSolution") {
            return of_convolution(arguments).unwrap_or_default();
        }
        if executes_plan(function) {
            return LibraryWork { flop: of_transform(arguments), ..LibraryWork::default() };
        }
        if let Some(name) = function.strip_prefix("rocsparse_") {
            return LibraryWork { flop: of_sparse(name, arguments), ..LibraryWork::default() };
        }
        let Some((name, letter)) = blas(function) else { return LibraryWork::default() };
        let given = |key| arguments.text(key).and_then(NumberType::of_value);
        let types = ["a_type", "aType", "Atype"].into_iter().find_map(given).or(letter);
        types.and_then(|types| of_blas(&name, types, arguments)).unwrap_or_default()
    }
}

fn of_blas(name: &str, types: NumberType, arguments: &Arguments<'_>) -> Option<LibraryWork> {
    let number = |names: &[&str]| arguments.number(names).map(|number| number as f64);
    let batch = number(&["batch_count", "batchCount"]).unwrap_or(1.0);
    // A multiplication and an addition of complex numbers are four of each.
    let multiply_add = if types.is_complex { 8.0 } else { 2.0 };
    let (flop, elements) = match name.split('_').next()? {
        "gemm" => {
            let (m, n, k) = (number(&["m"])?, number(&["n"])?, number(&["k"])?);
            // In elements of A's type, of which those of others are multiples.
            let of = |key| arguments.text(key).and_then(NumberType::of_value).unwrap_or(types).bytes as f64;
            let [b, c, d] = ["b_type", "c_type", "d_type"].map(|key| of(key) / types.bytes as f64);
            // The result is read as well, unless it is known not to be.
            let read = if arguments.is_zero("beta") { 0.0 } else { c };
            (multiply_add * m * n * k, m * k + b * k * n + (read + d) * m * n)
        }
        "gemv" => {
            let (m, n) = (number(&["m"])?, number(&["n"])?);
            (multiply_add * m * n, m * n + m + n)
        }
        "axpy" => (multiply_add * number(&["n"])?, 3.0 * number(&["n"])?),
        "dot" | "dotu" | "dotc" => (multiply_add * number(&["n"])?, 2.0 * number(&["n"])?),
        "scal" => (multiply_add / 2.0 * number(&["n"])?, 2.0 * number(&["n"])?),
        _ => return None,
    };
    let bytes = elements * types.bytes as f64 * batch;
    Some(LibraryWork { flop: Some(flop * batch), bytes: Some(bytes as u64), bus_factor: None })
}

/// Whether calls of `function` execute a plan of Fourier transforms that another one has made.
pub(crate) fn executes_plan(function: &str) -> bool {
    function == "rocfft_execute"
        || ["cufftExec", "cufftXtExec"].iter().any(|begin| function.starts_with(begin))
}

/// By the convention that transforms are compared with, whatever their algorithm does: 5 N log2 N, and half of it where one side is real. It
/// is what rocfft-bench counts (clients/bench/bench.cpp, October 2024).
fn of_transform(plan: &Arguments<'_>) -> Option<f64> {
    let lengths = match ["lengths", "n"].into_iter().find_map(|name| plan.list(name)) {
        Some(lengths) => lengths,
        None => ["nx", "ny", "nz"].into_iter().map_while(|name| plan.number(&[name])).collect(),
    };
    let size = (!lengths.is_empty()).then(|| lengths.iter().map(|length| *length as f64).product::<f64>())?;
    let kinds: Vec<&str> = ["transform_type", "type", "inputtype", "outputtype"]
        .into_iter()
        .filter_map(|name| plan.text(name))
        .collect();
    let is_real = |kind: &&str| {
        let is_half = |part: &str| matches!(part, "R2C" | "C2R" | "D2Z" | "Z2D");
        kind.contains("_transform_type_real_")
            || kind.strip_prefix("CUFFT_").is_some_and(is_half)
            || kind.starts_with("CUDA_R_")
    };
    let of_one = if kinds.iter().any(is_real) { 2.5 } else { 5.0 };
    let count = plan.number(&["number_of_transforms", "batch"]).unwrap_or(1) as f64;
    (size >= 1.0).then(|| count * of_one * size * size.log2())
}

/// What rocsparse-bench counts (clients/include/flops.hpp, October 2024), complex numbers as real ones, of functions whose arguments have all
/// of it. The generic ones (`rocsparse_spmv`) are passed sizes by descriptors.
fn of_sparse(name: &str, arguments: &Arguments<'_>) -> Option<f64> {
    let name = name.strip_prefix(['s', 'd', 'c', 'z'])?;
    let number = |name: &str| arguments.number(&[name]).map(|number| number as f64);
    // Where the result is added to what is there already.
    let added = |size: f64| {
        let is_known = !arguments.text("beta")?.starts_with("0x");
        is_known.then(|| if arguments.is_zero("beta") { 0.0 } else { size })
    };
    // Numbers that a matrix of blocks has.
    let blocks = || {
        let side = |name| number(name).or_else(|| number("block_dim"));
        Some((number("nnzb")?, side("row_block_dim")?, side("col_block_dim")?))
    };
    let is_plain = |trans: &str| arguments.text(trans) == Some("rocsparse_operation_none");
    match name {
        "axpyi" | "doti" | "dotci" => Some(2.0 * number("nnz")?),
        "roti" => Some(6.0 * number("nnz")?),
        "gemvi" => Some(number("m")? * (1.0 + 2.0 * number("nnz")?)),
        "csrmv" | "coomv" => Some(2.0 * number("nnz")? + added(number("m")?)?),
        "bsrmv" | "gebsrmv" => {
            let (count, rows, columns) = blocks()?;
            Some(2.0 * count * rows * columns + added(number("mb")? * rows)?)
        }
        "csrmm" => {
            let rows = number(if is_plain("trans_A") { "m" } else { "k" })?;
            Some(2.0 * number("nnz")? * number("n")? + added(rows * number("n")?)?)
        }
        "bsrmm" | "gebsrmm" => {
            let (count, rows, columns) = blocks()?;
            let of_result = if is_plain("trans_A") { number("mb")? * rows } else { number("kb")? * columns };
            Some(2.0 * count * rows * columns * number("n")? + added(of_result * number("n")?)?)
        }
        _ => None,
    }
}

/// Each value of the result is a sum over one filter; of a transposed convolution each value of the input is spread by one.
fn of_convolution(arguments: &Arguments<'_>) -> Option<LibraryWork> {
    let product = |numbers: &[u64]| numbers.iter().map(|number| *number as f64).product::<f64>();
    let [input, filter, output] = ["in", "filter", "out"].map(|name| arguments.list(name));
    let (input, filter, output) = (input?, filter?, output?);
    let of_one = product(filter.get(1..)?);
    let side = if arguments.text("mode") == Some("miopenTranspose") { &input } else { &output };
    let bytes = match arguments.text("data_type")? {
        "miopenInt8"
        | "miopenFloat8"
        | "miopenBFloat8"
        | "CUDNN_DATA_INT8"
        | "CUDNN_DATA_UINT8"
        | "CUDNN_DATA_FP8_E4M3"
        | "CUDNN_DATA_FP8_E5M2" => 1.0,
        "miopenHalf" | "miopenBFloat16" | "CUDNN_DATA_HALF" | "CUDNN_DATA_BFLOAT16" => 2.0,
        "miopenFloat" | "miopenInt32" | "CUDNN_DATA_FLOAT" | "CUDNN_DATA_INT32" => 4.0,
        "miopenDouble" | "miopenInt64" | "CUDNN_DATA_DOUBLE" | "CUDNN_DATA_INT64" => 8.0,
        _ => return None,
    };
    let elements = product(&input) + product(&filter) + product(&output);
    let (flop, bytes) = (2.0 * product(side) * of_one, elements * bytes);
    Some(LibraryWork { flop: Some(flop), bytes: Some(bytes as u64), bus_factor: None })
}

impl Collective {
    /// Nothing where `function` is none.
    #[must_use]
    pub fn of(function: &str, arguments: &Arguments<'_>) -> Option<Collective> {
        let size = match arguments.text("datatype")? {
            "ncclInt8" | "ncclUint8" | "ncclFloat8e4m3" | "ncclFloat8e5m2" => 1,
            "ncclFloat16" | "ncclBfloat16" => 2,
            "ncclInt32" | "ncclUint32" | "ncclFloat32" => 4,
            "ncclInt64" | "ncclUint64" | "ncclFloat64" => 8,
            _ => return None,
        };
        let own = arguments.number(&["count", "sendcount", "recvcount"])?.checked_mul(size)?;
        let ranks = arguments.number(&["nranks"]).filter(|ranks| *ranks > 0);
        let share = ranks.map(|ranks| (ranks - 1) as f64 / ranks as f64);
        // Of what each rank gives or gets as many as there are ranks are moved.
        let all = || ranks.and_then(|ranks| own.checked_mul(ranks));
        let (bytes, bus_factor) = match function {
            "ncclAllReduce" => (own, share.map(|share| 2.0 * share)),
            "ncclAllGather" | "ncclReduceScatter" | "ncclAllToAll" | "ncclGather" | "ncclScatter" => {
                (all()?, share)
            }
            "ncclBroadcast" | "ncclBcast" | "ncclReduce" | "ncclSend" | "ncclRecv" => (own, Some(1.0)),
            _ => return None,
        };
        Some(Collective { bytes, ranks, bus_factor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(function: &str, arguments: &str) -> LibraryWork {
        LibraryWork::of(function, &Arguments::of(arguments))
    }

    #[test]
    fn products_of_matrices() {
        let real = of("rocblas_sgemm", "m=2 | n=3 | k=4 | alpha=1 | beta=0");
        assert_eq!(real, LibraryWork { flop: Some(48.0), bytes: Some(4 * (8 + 12 + 6)), bus_factor: None });
        let complex = of("cublasZgemm_v2", "m=2 | n=3 | k=4 | beta=0x7ffd");
        assert_eq!((complex.flop, complex.bytes), (Some(192.0), Some(16 * (8 + 12 + 12))));
        let parts = |beta: &str| of("rocblas_cgemm", &format!("m=2 | n=3 | k=4 | alpha=1,2 | beta={beta}"));
        assert_eq!(["0,0", "-0,0"].map(|beta| parts(beta).bytes), [Some(8 * (8 + 12 + 6)); 2]);
        assert_eq!(["0,1", "1,0"].map(|beta| parts(beta).bytes), [Some(8 * (8 + 12 + 12)); 2]);
        let many = of("rocblas_sgemm_strided_batched", "m=2 | n=3 | k=4 | beta=0 | batch_count=5");
        assert_eq!(many.flop, Some(240.0));
        let half = of("rocblas_gemm_ex", "m=2 | n=3 | k=4 | a_type=rocblas_datatype_f16_r | beta=0");
        assert_eq!((half.flop, half.bytes), (Some(48.0), Some(2 * 26)));
        assert_eq!(of("rocblas_strsv", "m=2"), LibraryWork::default());
        assert_eq!(of("rocblas_saxpy", "n=10").bytes, Some(120));
    }

    #[test]
    fn products_and_convolutions_whose_descriptors_are_known() {
        let product = of(
            "hipblasLtMatmul",
            "m=2 | n=3 | k=4 | a_type=HIP_R_16F | b_type=HIP_R_16F | batch_count=5 | beta=0",
        );
        assert_eq!((product.flop, product.bytes), (Some(5.0 * 48.0), Some(5 * 2 * 26)));
        let wider = of(
            "cublasLtMatmul",
            "m=2 | n=3 | k=4 | a_type=CUDA_R_8I | b_type=CUDA_R_8I | c_type=CUDA_R_32I | d_type=CUDA_R_32I | beta=1",
        );
        assert_eq!(wider.bytes, Some(8 + 12 + 2 * 4 * 6));
        assert_eq!(of("cublasLtMatmul", "A=0x10"), LibraryWork::default());
        // Each of 2 x 4 x 6 x 12 results is a sum over 3 channels of 3 x 5.
        let sizes =
            "data_type=miopenHalf | mode=miopenConvolution | in=2,3,8,16 | filter=4,3,3,5 | out=2,4,6,12";
        let forward = of("miopenConvolutionForward", sizes);
        let elements = 2 * 3 * 8 * 16 + 4 * 3 * 3 * 5 + 2 * 4 * 6 * 12;
        assert_eq!(
            (forward.flop, forward.bytes),
            (Some(2.0 * (2 * 4 * 6 * 12) as f64 * 45.0), Some(2 * elements))
        );
        assert_eq!(of("miopenConvolutionBackwardWeightsImmediate", sizes), forward);
        let of_cudnn = sizes
            .replace("miopenHalf", "CUDNN_DATA_HALF")
            .replace("miopenConvolution", "CUDNN_CROSS_CORRELATION");
        for function in ["cudnnConvolutionForward", "cudnnConvolutionBackwardFilter"] {
            assert_eq!(of(function, &of_cudnn), forward, "{function}");
        }
        let packed = of_cudnn.replace("CUDNN_DATA_HALF", "CUDNN_DATA_INT8x4");
        assert_eq!(
            of("cudnnConvolutionForward", &packed),
            LibraryWork::default(),
            "what a channel is depends on the layout"
        );
        // Two groups: a filter has half of the channels.
        let groups = "data_type=miopenFloat | mode=miopenConvolution | in=1,4,8,8 | filter=6,2,3,3 | out=1,6,6,6 | groups=2";
        assert_eq!(of("miopenConvolutionForward", groups).flop, Some(2.0 * 216.0 * 18.0));
        let transposed =
            "data_type=miopenFloat | mode=miopenTranspose | in=1,6,6,6 | filter=6,4,3,3 | out=1,4,8,8";
        assert_eq!(of("miopenConvolutionForward", transposed).flop, Some(2.0 * 216.0 * 36.0));
        assert_eq!(
            of("miopenFindConvolutionForwardAlgorithm", sizes),
            LibraryWork::default(),
            "many, to choose one"
        );
        assert_eq!(of("miopenConvolutionBackwardBias", ""), LibraryWork::default());
    }

    #[test]
    fn transforms_are_counted_by_the_convention() {
        let flop = |function: &str, plan: &str| of(function, plan).flop;
        let complex = "transform_type=rocfft_transform_type_complex_forward | precision=rocfft_precision_single | lengths=64,32 | number_of_transforms=3";
        assert_eq!(flop("rocfft_execute", complex), Some(3.0 * 5.0 * 2048.0 * 11.0));
        assert_eq!(
            flop("rocfft_execute", &complex.replace("complex", "real")),
            Some(3.0 * 2.5 * 2048.0 * 11.0)
        );
        assert_eq!(
            flop("cufftExecC2C", "nx=1024 | type=CUFFT_C2C | batch=2"),
            Some(2.0 * 5.0 * 1024.0 * 10.0)
        );
        assert_eq!(flop("cufftExecR2C", "nx=16 | ny=64 | type=CUFFT_R2C"), Some(2.5 * 1024.0 * 10.0));
        assert_eq!(flop("cufftExecZ2Z", "n=16,64 | type=CUFFT_Z2Z | batch=1"), Some(5.0 * 1024.0 * 10.0));
        for (inputs, of_one) in [("CUDA_C_32F", 5.0), ("CUDA_R_32F", 2.5)] {
            let plan = format!(
                "n=4096 | inputtype={inputs} | outputtype=CUDA_C_32F | batch=64 | executiontype=CUDA_C_32F"
            );
            assert_eq!(flop("cufftXtExec", &plan), Some(64.0 * of_one * 4096.0 * 12.0));
        }
        assert_eq!(flop("rocfft_execute", "plan=0x10"), None, "its plan is not known");
        assert_eq!(flop("cufftPlan1d", "nx=1024 | type=CUFFT_C2C | batch=2"), None, "makes one");
    }

    #[test]
    fn products_of_sparse_matrices_are_counted_as_rocsparse_bench_does() {
        let flop = |function: &str, arguments: &str| of(function, arguments).flop;
        assert_eq!(flop("rocsparse_scsrmv", "m=10 | n=20 | nnz=30 | beta=0"), Some(60.0));
        assert_eq!(flop("rocsparse_zcoomv", "m=10 | n=20 | nnz=30 | beta=1,0"), Some(70.0));
        assert_eq!(
            flop("rocsparse_scsrmv", "m=10 | n=20 | nnz=30 | beta=0x7f00"),
            None,
            "it is in the GPU's memory"
        );
        let product = "trans_A=rocsparse_operation_none | m=10 | n=4 | k=20 | nnz=30 | beta=1";
        assert_eq!(flop("rocsparse_dcsrmm", product), Some(2.0 * 30.0 * 4.0 + 40.0));
        assert_eq!(
            flop("rocsparse_dcsrmm", &product.replace("_none", "_transpose")),
            Some(2.0 * 30.0 * 4.0 + 80.0)
        );
        assert_eq!(
            flop("rocsparse_sbsrmv", "mb=5 | nb=6 | nnzb=7 | block_dim=2 | beta=1"),
            Some(2.0 * 28.0 + 10.0)
        );
        let blocks = "trans_A=rocsparse_operation_none | mb=5 | n=3 | kb=6 | nnzb=7 | row_block_dim=2 | col_block_dim=4 | beta=1";
        assert_eq!(flop("rocsparse_sgebsrmm", blocks), Some(2.0 * 56.0 * 3.0 + 30.0));
        assert_eq!(flop("rocsparse_sroti", "nnz=5"), Some(30.0));
        assert_eq!(flop("rocsparse_sgemvi", "m=4 | n=6 | nnz=5 | beta=0"), Some(44.0));
        assert_eq!(flop("rocsparse_spmv", "beta=0"), None);
        assert_eq!(flop("rocsolver_sgetrf", "m=10 | n=10"), None, "rocsolver-bench counts nothing");
    }

    #[test]
    fn collectives_are_counted_as_the_tests_of_the_libraries_do() {
        let sum = of("ncclAllReduce", "count=1024 | datatype=ncclFloat32 | op=ncclSum | nranks=2");
        assert_eq!((sum.bytes, sum.bus_factor), (Some(4096), Some(1.0)));
        let gather = of("ncclAllGather", "sendcount=1024 | datatype=ncclFloat16 | nranks=4");
        assert_eq!((gather.bytes, gather.bus_factor), (Some(8192), Some(0.75)));
        assert_eq!(
            of("ncclAllReduce", "count=1024 | datatype=ncclFloat32").bus_factor,
            None,
            "ranks are not known"
        );
        assert_eq!(of("ncclSend", "count=10 | datatype=ncclInt8").bytes, Some(10));
    }
}
