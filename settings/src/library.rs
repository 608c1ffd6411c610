//! The names of the libraries whose calls the recorder records (RPDT_LIBRARIES, `rpd record --libraries`).

/// All of them. RCCL and NCCL have the same functions: either name means both.
pub const NAMES: [&str; 13] = [
    "rocblas",
    "hipblas",
    "hipblaslt",
    "miopen",
    "rccl",
    "rocfft",
    "rocsparse",
    "rocsolver",
    "cublas",
    "cublaslt",
    "cudnn",
    "nccl",
    "cufft",
];

/// Reads `all` or names with commas between them: those known, and the others.
#[must_use]
pub fn list(text: &str) -> (Vec<&'static str>, Vec<&str>) {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match NAMES.into_iter().find(|name| *name == word) {
            Some(name) if known.contains(&name) => {}
            Some(name) => known.push(name),
            None if word == "all" => known = NAMES.to_vec(),
            None => unknown.push(word),
        }
    }
    (known, unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_all_and_what_is_neither() {
        assert_eq!(list("rccl, rocblas,rccl"), (vec!["rccl", "rocblas"], vec![]));
        assert_eq!(list("all,rocblas").0, NAMES);
        assert_eq!(list("rocblass,,rocfft"), (vec!["rocfft"], vec!["rocblass"]));
    }
}
