//! Function names for people: C++ as kernels are named, and Rust.

use crate::stack::table::Demangle;

/// `symbol` as the source has it, C++ by `cpp`; a name that is not mangled stays as it is.
pub(super) fn demangle(symbol: &str, cpp: Demangle) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        // Without the hash at its end.
        return format!("{name:#}");
    }
    // What compilers add to a name when they split a function, as c++filt shows it.
    match symbol.split_once('.') {
        Some((name, part)) if symbol.starts_with("_Z") => {
            format!("{} [clone .{part}]", cpp(name))
        }
        _ => cpp(symbol),
    }
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn names_of_several_compilers() {
        for (symbol, name) in [
            ("main", "main"),
            ("_ZN3app5Model5trainEi", "app::Model::train(int)"),
            ("_Z4stepPf.cold", "step(float*) [clone .cold]"),
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("_Znot mangled", "_Znot mangled"),
            ("", ""),
        ] {
            assert_eq!(demangle(symbol, rpd_codeobject::demangle), name);
        }
    }
}
