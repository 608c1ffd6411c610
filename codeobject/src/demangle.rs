//! Kernel names for people: symbols without the runtime's suffixes, and C++ names with their parameters.

use std::fmt;

use cpp_demangle::{BorrowedSymbol, DemangleOptions, DemangleWrite, ParseOptions};

/// Longest text given back. A short hostile symbol can stand for an endless text, through back references.
const MAX_TEXT: usize = 256 * 1024;
/// Nesting of the name's grammar. Deep enough for the template names of tensor libraries, small enough for the
/// stack of any thread.
const MAX_RECURSION: u32 = 192;

/// A kernel's name for people: `_Z4vaddPf.kd` is `vadd(float*)`.
///
/// Takes off `.kd` and, from names that another demangler has been at, ` [clone .kd]`. A name that is not mangled, or is
/// mangled in a way that is not understood, comes back as it is, without the suffix.
pub fn demangle(symbol: &str) -> String {
    let name = without_suffix(symbol);
    if !name.starts_with("_Z") {
        return name.to_string();
    }
    itanium(name).or_else(|| with_half_floats(name)).unwrap_or_else(|| name.to_string())
}

/// The mangled name that a descriptor's symbol belongs to.
pub(crate) fn without_suffix(symbol: &str) -> &str {
    let name = symbol.strip_suffix(" [clone .kd]").unwrap_or(symbol);
    name.strip_suffix(".kd").unwrap_or(name)
}

/// Text with an end.
struct Text(String);

impl DemangleWrite for Text {
    fn write_string(&mut self, part: &str) -> fmt::Result {
        if self.0.len() + part.len() > MAX_TEXT {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

fn itanium(name: &str) -> Option<String> {
    let parse = ParseOptions::default().recursion_limit(MAX_RECURSION);
    let (symbol, rest) = BorrowedSymbol::with_tail_and_options(name.as_bytes(), &parse).ok()?;
    // A part that is left over means that the name was not understood.
    if !rest.is_empty() {
        return None;
    }
    let mut text = Text(String::new());
    let options = DemangleOptions::new().recursion_limit(MAX_RECURSION);
    symbol.structured_demangle(&mut text, &options).ok()?;
    Some(text.0)
}

/// The same for names with `_Float16` (mangled `DF16_`), which the demangler does not know, by way of the equally
/// long `DF16b`, which it does. Names with both stay mangled.
fn with_half_floats(name: &str) -> Option<String> {
    if !name.contains("DF16_") || name.contains("DF16b") {
        return None;
    }
    let text = itanium(&name.replace("DF16_", "DF16b"))?;
    // Whatever still says DF16b is an identifier that the replacement hit.
    Some(text.replace("std::bfloat16_t", "_Float16").replace("DF16b", "DF16_"))
}
