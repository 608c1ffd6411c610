//! Lines for rocblas-bench and hipblaslt-bench as commands that may be run, and what these programs print.
//!
//! Lines come from traces, which nobody vouches for. So a command has only options that describe a computation: none that names a file, and
//! none that a later version of a program may have. Each value is a number or a word.

/// A program that runs a call of a library by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bench {
    /// rocBLAS's.
    Rocblas,
    /// hipBLASLt's.
    Hipblaslt,
}

impl Bench {
    /// What its file is called.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Bench::Rocblas => "rocblas-bench",
            Bench::Hipblaslt => "hipblaslt-bench",
        }
    }

    /// The packages that have it, in words.
    #[must_use]
    pub fn packages(self) -> &'static str {
        match self {
            Bench::Rocblas => {
                "ROCm's package rocblas-clients has it, and Debian's librocblas0-bench or librocblas4-bench"
            }
            Bench::Hipblaslt => "ROCm's package hipblaslt-clients has it",
        }
    }

    fn has_option(self, option: &str) -> bool {
        let own = match self {
            Bench::Rocblas => ROCBLAS.as_slice(),
            Bench::Hipblaslt => &HIPBLASLT,
        };
        option.strip_prefix('-').is_some_and(|name| BOTH.contains(&name) || own.contains(&name))
    }

    /// The column with the rate of floating point operations.
    fn gflop_per_s(self) -> &'static str {
        match self {
            Bench::Rocblas => "rocblas-Gflops",
            Bench::Hipblaslt => "hipblaslt-Gflops",
        }
    }

    /// Reads what it has printed: a line of names of columns, and a line of values below. Of several results the last one, which is the
    /// best where it tried several kernels. Nothing where there is no time.
    #[must_use]
    pub fn timing(self, printed: &str) -> Option<Timing> {
        let lines: Vec<&str> = printed.lines().collect();
        let is_header = |line: &&str| line.split(',').any(|name| name.trim() == "us") && line.contains(',');
        let header = lines.iter().rposition(is_header)?;
        let cells = |line: &str| -> Vec<String> {
            line.trim().trim_end_matches(',').split(',').map(|cell| cell.trim().to_string()).collect()
        };
        let (names, values) = (cells(lines[header]), cells(lines.get(header + 1)?));
        if values.len() < names.len() {
            return None;
        }
        // A value in front, as a complex number, may have a comma.
        let value = |name: &str| -> Option<f64> {
            let behind = names.len() - names.iter().position(|known| known == name)?;
            values[values.len() - behind].parse().ok()
        };
        let is_real = |number: &f64| number.is_finite() && *number > 0.0;
        Some(Timing {
            us: value("us").filter(is_real)?,
            gflop_per_s: value(self.gflop_per_s()).filter(is_real),
        })
    }
}

/// Options of both, and of one of them, without the first hyphen.
const BOTH: [&str; 23] = [
    "f",
    "r",
    "m",
    "n",
    "k",
    "-alpha",
    "-beta",
    "-lda",
    "-ldb",
    "-ldc",
    "-ldd",
    "-stride_a",
    "-stride_b",
    "-stride_c",
    "-stride_d",
    "-batch_count",
    "-a_type",
    "-b_type",
    "-c_type",
    "-d_type",
    "-compute_type",
    "-solution_index",
    "-flags",
];
const ROCBLAS: [&str; 14] = [
    "-transposeA",
    "-transposeB",
    "-side",
    "-uplo",
    "-diag",
    "-alphai",
    "-betai",
    "-algo",
    "-kl",
    "-ku",
    "-incx",
    "-incy",
    "-stride_x",
    "-stride_y",
];
const HIPBLASLT: [&str; 39] = [
    "-sizem",
    "-sizen",
    "-sizek",
    "-function",
    "-precision",
    "-lde",
    "-stride_e",
    "-any_stride",
    "-transA",
    "-transB",
    "-scale_type",
    "-bias_type",
    "-aux_type",
    "-compute_input_typeA",
    "-compute_input_typeB",
    "-activation_type",
    "-activation_arg1",
    "-activation_arg2",
    "-bias_vector",
    "-bias_source",
    "-scaleA",
    "-scaleB",
    "-scaleC",
    "-scaleD",
    "-scaleAlpha_vector",
    "-amaxScaleA",
    "-amaxScaleB",
    "-amaxD",
    "-use_e",
    "-gradient",
    "-grouped_gemm",
    "-use_user_args",
    "-c_equal_d",
    "-api_method",
    "-algo_method",
    "-splitk",
    "-wgm",
    "-swizzleA",
    "-swizzleB",
];

/// What a program says that a call takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// Of one call, us, on average.
    pub us: f64,
    /// Floating point operations of a call over that time, 10^9 a second; none where it does not say.
    pub gflop_per_s: Option<f64>,
}

/// A command that may be run: a program, and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BenchCommand {
    /// The program.
    pub bench: Bench,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl BenchCommand {
    /// Reads a line. Nothing where it is for another program.
    ///
    /// # Errors
    /// What in it may not be run, in words.
    pub fn of(line: &str) -> Option<Result<BenchCommand, String>> {
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        let bench = match words.next()? {
            "./rocblas-bench" => Bench::Rocblas,
            "hipblaslt-bench" => Bench::Hipblaslt,
            _ => return None,
        };
        let mut arguments: Vec<String> = Vec::new();
        let mut takes_value = false;
        for word in words {
            let is_option = bench.has_option(word);
            let is_known = is_option || (takes_value && is_value(word));
            if !is_known {
                return Some(Err(format!(
                    "rpd does not pass {word:?} on to {}, because a trace is not to choose it",
                    bench.program()
                )));
            }
            takes_value = is_option;
            arguments.push(word.to_string());
        }
        Some(Ok(BenchCommand { bench, arguments }))
    }
}

/// Whether a line has nothing but a program, options, numbers and words.
pub(crate) fn is_plain(line: &str) -> bool {
    let is_option =
        |word: &str| word.trim_start_matches('-').chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    line.split(' ').all(|word| is_option(word) || is_value(word))
}

/// Whether it is a number or a word, also several with commas between: nothing that a shell or a program takes for something else.
pub(super) fn is_value(text: &str) -> bool {
    let is_word = |part: &str| {
        part.chars().all(|c| c.is_ascii_alphanumeric() || "_.+-".contains(c))
            && (!part.starts_with('-') || part.parse::<f64>().is_ok())
    };
    !text.is_empty() && text.split(',').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn command(line: &str) -> Result<Vec<String>, String> {
        BenchCommand::of(line).unwrap().map(|command| command.arguments)
    }

    #[test]
    fn lines_are_split_as_they_are_written() {
        let line = "./rocblas-bench -f gemm -r f32_c --transposeA N -m 8 --alpha 1 --alphai -2.5e-3 --beta nan --stride_a 64";
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        assert_eq!(command(line).unwrap(), words);
        let line = "hipblaslt-bench --api_method c -m 64 -m 32  --alpha 1.000000 --bias_vector --bias_source d --activation_type none";
        let words: Vec<&str> = line.split(' ').skip(1).filter(|word| !word.is_empty()).collect();
        assert_eq!(command(line).unwrap(), words);
        assert_eq!(BenchCommand::of("all_reduce_perf -b 1 -e 1"), None);
        assert_eq!(BenchCommand::of("rocblas-bench -f gemm"), None);
        assert_eq!(BenchCommand::of(""), None);
    }

    #[test]
    fn what_a_trace_may_not_choose_is_refused() {
        for (line, word) in [
            ("./rocblas-bench -f gemm --yaml x.yaml", "--yaml"),
            ("./rocblas-bench -m --yaml -n x.yaml", "--yaml"),
            ("./rocblas-bench -m 1 2", "2"),
            ("./rocblas-bench gemm", "gemm"),
            ("./rocblas-bench -m -x", "-x"),
            ("./rocblas-bench -m --", "--"),
            ("./rocblas-bench -m 1;reboot", "1;reboot"),
            ("./rocblas-bench -f $(reboot)", "$(reboot)"),
            ("./rocblas-bench -f /etc/passwd", "/etc/passwd"),
            ("./rocblas-bench -f gemm\n-m 1", "gemm\n-m"),
            ("./rocblas-bench -i 1000000000", "-i"),
            ("./rocblas-bench --transA N", "--transA"),
            ("hipblaslt-bench --data x", "--data"),
            ("hipblaslt-bench -m 1 > x", ">"),
            ("hipblaslt-bench --alpha=1", "--alpha=1"),
        ] {
            let why = command(line).unwrap_err();
            assert!(why.contains(&format!("{word:?} on to ")), "{line}: {why}");
        }
    }

    #[test]
    fn times_are_read_from_what_the_programs_print() {
        let timing = |bench: Bench, printed: &str| bench.timing(printed).map(|of| (of.us, of.gflop_per_s));
        let run = include_str!("../../../fixtures/library-logs/rocblas-bench-run.txt");
        assert_eq!(timing(Bench::Rocblas, run), Some((6964.0, Some(0.0752855))));
        let scal = "N,alpha,incx,rocblas-Gflops,rocblas-GB/s,us\n1000,2.5,1, 0.0188324, 0.150659, 53.1\n";
        assert_eq!(timing(Bench::Rocblas, scal), Some((53.1, Some(0.0188324))));
        let complex = "M,alpha,rocblas-Gflops,us\n8,(1, 2), 0.5, 138.3\n";
        assert_eq!(timing(Bench::Rocblas, complex), Some((138.3, Some(0.5))));
        let checked = "M,rocblas-Gflops,us,CPU-Gflops,us,norm-error\n8, 0.5, 138.3,2,7,0\n";
        assert_eq!(timing(Bench::Rocblas, checked), Some((138.3, Some(0.5))));
        let several = "[0]:transA,hipblaslt-Gflops,hipblaslt-GB/s,us\n    T, 2e3, 5, 20\n[1]:transA,hipblaslt-Gflops,hipblaslt-GB/s,us\n    \
                       T,1.30708e+06,234.327,21871.2\n    --Solution index: 302128\n";
        assert_eq!(timing(Bench::Hipblaslt, several), Some((21871.2, Some(1.30708e+06))));
        for nothing in
            ["", "us", "M,us", "M,us\n", "M,us\n1", "M,us\n1,nan", "M,us\n1,0", "M,rocblas-Gflops\n1,2"]
        {
            assert_eq!(timing(Bench::Rocblas, nothing), None, "{nothing}");
        }
    }
}
