//! The arguments of a library call: `key=value | key=value`.

/// Arguments as a trace has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Arguments<'a> {
    /// Reads them; what is no `key=value` is left out.
    #[must_use]
    pub fn of(text: &'a str) -> Arguments<'a> {
        Arguments(text.split(" | ").filter_map(|pair| pair.split_once('=')).collect())
    }

    /// Each with its name, in the order of the function's parameters.
    pub fn each(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().copied()
    }

    /// The argument of that name.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    /// The first argument with one of these names that is a number.
    #[must_use]
    pub fn number(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| self.text(name)?.parse().ok())
    }

    /// What two calls of one kind have in common: all but addresses, handles, plans, streams and whose turn it was.
    #[must_use]
    pub fn configuration(&self) -> String {
        let is_common = |(key, value): &(&str, &str)| {
            !value.starts_with("0x") && !matches!(*key, "plan" | "rank" | "status")
        };
        let pairs: Vec<String> =
            self.each().filter(is_common).map(|(key, value)| format!("{key}={value}")).collect();
        pairs.join(" | ")
    }

    /// Whether a scalar is known to be 0, with both parts where it is complex.
    pub(super) fn is_zero(&self, name: &str) -> bool {
        self.text(name).is_some_and(|value| value.split(',').all(is_zero))
    }

    /// Numbers with commas between them.
    #[must_use]
    pub fn list(&self, name: &str) -> Option<Vec<u64>> {
        self.text(name)?.split(',').map(|number| number.parse().ok()).collect()
    }

    /// A handle or address.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<u64> {
        address(self.text(name)?)
    }
}

/// Whether text is the number 0, of whichever sign.
pub(super) fn is_zero(number: &str) -> bool {
    number.parse() == Ok(0.0)
}

/// Reads `0x1f` and `31`.
#[must_use]
pub fn address(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A type of numbers, such as `f32_r`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberType {
    /// As rocblas-bench has it.
    pub name: &'static str,
    /// Bytes of one.
    pub bytes: u64,
    /// It has an imaginary part.
    pub is_complex: bool,
}

const fn number_type(name: &'static str, bytes: u64, is_complex: bool) -> NumberType {
    NumberType { name, bytes, is_complex }
}

/// Types by how the names of rocBLAS's, hipBLAS's and cuBLAS's values end.
const TYPES: [(&str, &str, NumberType); 12] = [
    ("_f16_r", "_R_16F", number_type("f16_r", 2, false)),
    ("_bf16_r", "_R_16BF", number_type("bf16_r", 2, false)),
    ("_f32_r", "_R_32F", number_type("f32_r", 4, false)),
    ("_f64_r", "_R_64F", number_type("f64_r", 8, false)),
    ("_f32_c", "_C_32F", number_type("f32_c", 8, true)),
    ("_f64_c", "_C_64F", number_type("f64_c", 16, true)),
    ("_i8_r", "_R_8I", number_type("i8_r", 1, false)),
    ("_i32_r", "_R_32I", number_type("i32_r", 4, false)),
    ("_f8_r", "_R_8F_E4M3", number_type("f8_r", 1, false)),
    ("_bf8_r", "_R_8F_E5M2", number_type("bf8_r", 1, false)),
    ("_f8_fnuz_r", "_R_8F_E4M3_FNUZ", number_type("f8_fnuz_r", 1, false)),
    ("_bf8_fnuz_r", "_R_8F_E5M2_FNUZ", number_type("bf8_fnuz_r", 1, false)),
];

impl NumberType {
    /// The type that a value of an enumeration is.
    #[must_use]
    pub fn of_value(value: &str) -> Option<NumberType> {
        let is = |end: &str| value.ends_with(end);
        TYPES.into_iter().find(|(one, other, _)| is(one) || is(other)).map(|(.., found)| found)
    }

    /// That which BLAS's letter means.
    #[must_use]
    pub fn of_letter(letter: char) -> Option<NumberType> {
        let name = match letter.to_ascii_lowercase() {
            'h' => "f16_r",
            's' => "f32_r",
            'd' => "f64_r",
            'c' => "f32_c",
            'z' => "f64_c",
            _ => return None,
        };
        TYPES.into_iter().map(|(.., found)| found).find(|found| found.name == name)
    }
}

/// Functions whose `_ex` has types as arguments.
const EXTENDED: [&str; 7] = ["axpy_", "dot", "geam_", "nrm2_", "rot_", "scal_", "trsm_"];

/// A function of BLAS: what it is called without the library and the letter of its type, and that type.
#[must_use]
pub fn blas(function: &str) -> Option<(String, Option<NumberType>)> {
    let bare = ["rocblas_", "hipblas", "cublas"].iter().find_map(|prefix| function.strip_prefix(prefix))?;
    let bare = bare.trim_end_matches("_v2").trim_end_matches("_64");
    if bare == "LtMatmul" {
        return Some(("gemm".to_string(), None));
    }
    // hipBLAS and cuBLAS: SgemmStridedBatched.
    let mut snake = String::new();
    for (place, c) in bare.char_indices() {
        if c.is_ascii_uppercase() && place > 1 && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    // gemm_ex, axpy_batched_ex; not sgemm_ex.
    let begins = |names: &[&str]| names.iter().any(|name| snake.starts_with(name));
    if begins(&["gemm"]) || (snake.ends_with("_ex") && begins(&EXTENDED)) {
        return Some((snake, None));
    }
    if begins(&["set_", "get_"]) {
        return None;
    }
    // isamax: the letter is behind the i.
    let index = ["amax", "amin"].iter().any(|name| snake.get(2..).is_some_and(|rest| rest.starts_with(name)));
    let (before, typed) = if index { ("i", snake.strip_prefix('i')?) } else { ("", snake.as_str()) };
    let mut letters = typed.chars();
    let found = NumberType::of_letter(letters.next()?)?;
    Some((format!("{before}{}", letters.as_str()), Some(found)))
}

/// N, T or C: how a matrix is taken.
#[must_use]
pub fn operation(value: &str) -> Option<char> {
    match value {
        _ if value.ends_with("conjugate_transpose") || value.ends_with("_OP_C") => Some('C'),
        _ if value.ends_with("transpose") || value.ends_with("_OP_T") => Some('T'),
        _ if value.ends_with("_none") || value.ends_with("_OP_N") => Some('N'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_have_no_addresses() {
        let arguments = Arguments::of("handle=0x10 | m=32 | A=0xa000 | alpha=2.5 | nranks=2 | rank=1");
        assert_eq!(arguments.configuration(), "m=32 | alpha=2.5 | nranks=2");
        assert_eq!((arguments.number(&["n", "m"]), arguments.address("A")), (Some(32), Some(0xa000)));
        assert_eq!(Arguments::of("").configuration(), "");
    }

    #[test]
    fn functions_of_blas_have_a_type() {
        let named = |function| blas(function).map(|(name, found)| (name, found.map(|found| found.name)));
        assert_eq!(named("rocblas_sgemm"), Some(("gemm".into(), Some("f32_r"))));
        assert_eq!(named("rocblas_gemm_ex"), Some(("gemm_ex".into(), None)));
        assert_eq!(named("cublasZgemv_v2"), Some(("gemv".into(), Some("f64_c"))));
        assert_eq!(named("cublasGemmEx"), Some(("gemm_ex".into(), None)));
        assert_eq!(named("hipblasSgemmStridedBatched"), Some(("gemm_strided_batched".into(), Some("f32_r"))));
        assert_eq!(
            named("rocblas_scal_strided_batched_ex_64"),
            Some(("scal_strided_batched_ex".into(), None))
        );
        assert_eq!(named("cublasDotcEx"), Some(("dotc_ex".into(), None)));
        assert_eq!(named("cublasSgemmEx"), Some(("gemm_ex".into(), Some("f32_r"))));
        assert_eq!(named("hipblasLtMatmul"), Some(("gemm".into(), None)));
        assert_eq!(named("rocblas_set_matrix"), None);
        assert_eq!(named("ncclAllReduce"), None);
    }
}
