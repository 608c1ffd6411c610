//! The names of instrumented kernels: `__amd_crk_`, the mangled name of the original, and `Pv` for the pointer that they have more.

const PREFIX: &str = "__amd_crk_";
const SUFFIX: &str = "Pv";
const DESCRIPTOR: &str = ".kd";

/// The symbol of the instrumented kernel for the one of that symbol; nothing where that is none of a kernel.
pub fn instrumented_symbol(original: &str) -> Option<String> {
    let name = original.strip_suffix(DESCRIPTOR)?;
    Some(format!("{PREFIX}{name}{SUFFIX}{DESCRIPTOR}"))
}

/// The symbol of the kernel that the one of that symbol stands for; nothing where that is not instrumented.
pub fn original_symbol(instrumented: &str) -> Option<String> {
    let name = instrumented.strip_suffix(DESCRIPTOR)?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    (!name.is_empty()).then(|| format!("{name}{DESCRIPTOR}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for (original, instrumented) in [
            ("_Z5scalePff.kd", "__amd_crk__Z5scalePffPv.kd"),
            ("_Z1fv.kd", "__amd_crk__Z1fvPv.kd"),
            ("plain.kd", "__amd_crk_plainPv.kd"),
        ] {
            assert_eq!(instrumented_symbol(original).as_deref(), Some(instrumented));
            assert_eq!(original_symbol(instrumented).as_deref(), Some(original));
        }
        assert_eq!(instrumented_symbol("variable"), None);
        for other in ["_Z5scalePff.kd", "__amd_crk_Pv.kd", "__amd_crk_f.kd", "__amd_crk__Z1fvPv"] {
            assert_eq!(original_symbol(other), None, "{other}");
        }
    }
}
