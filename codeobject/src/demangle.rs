//! Kernel names for people: symbols without the runtime's suffixes, and C++ names with their parameters.

use std::fmt;

use cpp_demangle::{BorrowedSymbol, DemangleOptions, DemangleWrite, ParseOptions};

/// Longest text given back. A short hostile symbol can stand for an endless text, through back references.
const MAX_TEXT: usize = 256 * 1024;
/// Qualifiers put right in one text. Real ones need a handful.
const MAX_MOVES: usize = 10_000;
/// Nesting of the name's grammar. Deep enough for the template names of tensor libraries, small enough for the
/// stack of any thread.
const MAX_RECURSION: u32 = 192;

/// A kernel's name for people: `_Z4vaddPf.kd` is `vadd(float*)`.
///
/// Takes off `.kd` and, from names that another demangler has been at, ` [clone .kd]`. A name that is not mangled, or is
/// mangled in a way that is not understood, comes back as it is, without the suffix.
///
/// The text is that of c++filt and of the C++ runtime, but for expressions in signatures, packs of references and some
/// pointers to nested types, which come out spelled otherwise.
pub fn demangle(symbol: &str) -> String {
    let name = without_suffix(symbol);
    if !name.starts_with("_Z") {
        return name.to_string();
    }
    itanium(name).or_else(|| with_half_floats(name)).unwrap_or_else(|| name.to_string())
}

/// The mangled name that a descriptor's symbol belongs to.
fn without_suffix(symbol: &str) -> &str {
    let name = symbol.strip_suffix(" [clone .kd]").unwrap_or(symbol);
    name.strip_suffix(".kd").unwrap_or(name)
}

/// Text with an end.
struct BoundedText(String);

impl DemangleWrite for BoundedText {
    fn write_string(&mut self, part: &str) -> fmt::Result {
        if self.0.len() + part.len() > MAX_TEXT {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

/// The text that other demanglers give, the C++ runtime's among them, so that names can be compared between recorders.
fn itanium(name: &str) -> Option<String> {
    let parse = ParseOptions::default().recursion_limit(MAX_RECURSION);
    let (symbol, rest) = BorrowedSymbol::with_tail_and_options(name.as_bytes(), &parse).ok()?;
    // A part that is left over means that the name was not understood.
    if !rest.is_empty() {
        return None;
    }
    let options = DemangleOptions::new().recursion_limit(MAX_RECURSION);
    let print = |options: &DemangleOptions| {
        let mut text = BoundedText(String::new());
        symbol.structured_demangle(&mut text, options).ok().map(|()| text.0)
    };
    let full = print(&options)?;
    let text = match print(&options.no_return_type()) {
        // The name is that of something inside a template function: there the others leave out that function's return
        // type, and keep only the kernel's own.
        Some(short) if full.starts_with("void ") && !full.ends_with(&short) && !name.contains("L_Z") => {
            format!("void {short}")
        }
        _ => full,
    };
    let text = usual_literals(&text.replace("std::nullptr_t", "decltype(nullptr)"));
    Some(with_qualifiers_last(without_empty_packs(&without_expansions(&text))))
}

/// Numbers in template arguments with the suffix of their type, `64u`, for `(unsigned int)64`.
fn usual_literals(text: &str) -> String {
    const CASTS: [(&str, &str); 5] = [
        ("(unsigned int)", "u"),
        ("(long)", "l"),
        ("(unsigned long)", "ul"),
        ("(long long)", "ll"),
        ("(unsigned long long)", "ull"),
    ];
    let mut usual = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('(') {
        let (before, after) = rest.split_at(open);
        usual.push_str(before);
        let literal = CASTS.iter().find_map(|(cast, suffix)| {
            let number = after.strip_prefix(cast)?;
            let digits = number.strip_prefix('-').unwrap_or(number);
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            (end > 0).then(|| (number.split_at(number.len() - digits.len() + end), suffix))
        });
        rest = match literal {
            Some(((number, after), suffix)) => {
                usual.extend([number, suffix]);
                after
            }
            None => {
                usual.push('(');
                &after[1..]
            }
        };
    }
    usual + rest
}

/// Packs as the list that they are, `Sequence<1, 2>`, for `Sequence<(1, 2)...>`.
fn without_expansions(text: &str) -> String {
    let mut plain = Vec::with_capacity(text.len());
    // For each open parenthesis, where it is in the result, and whether a pack could begin there.
    let mut open = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'(' => open.push((plain.len(), matches!(plain.last(), None | Some(b'<' | b' ' | b'(')))),
            b')' => {
                if let Some((at, true)) = open.pop()
                    && let Some(behind) = rest.strip_prefix(b"...")
                {
                    plain.remove(at);
                    rest = behind;
                    continue;
                }
            }
            _ => {}
        }
        plain.push(*byte);
    }
    // Only whole ASCII characters were taken out.
    String::from_utf8(plain).unwrap_or_else(|_| text.to_string())
}

/// Lists without the place of an empty pack, `A<int>`, for `A<int, >`; nor its qualifiers, for `(int, const*)`.
fn without_empty_packs(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(comma) = rest.find(", ") {
        let (before, after) = rest.split_at(comma);
        plain.push_str(before);
        let mut end = &after[2..];
        while let Some(shorter) =
            ["const", "volatile", "*", "&", " "].iter().find_map(|part| end.strip_prefix(part))
        {
            end = shorter;
        }
        rest = match end.starts_with([')', '>']) {
            true => end,
            false => {
                plain.push_str(", ");
                &after[2..]
            }
        };
    }
    plain + rest
}

/// A qualified type with its qualifiers at the end, `N::A::B const*`, for `N::A const::B*`, which is how the demangler
/// spells a nested type when the type around it has been named before.
fn with_qualifiers_last(mut text: String) -> String {
    const QUALIFIERS: [&str; 4] = ["*", "&", " const", " volatile"];
    let mut from = 0;
    for _ in 0..MAX_MOVES {
        let Some(scope) = text[from..].find("::").map(|at| from + at) else { break };
        from = scope + 2;
        let mut stem = &text[..scope];
        while let Some(shorter) = QUALIFIERS.iter().find_map(|qualifier| stem.strip_suffix(qualifier)) {
            stem = shorter;
        }
        // Behind a parenthesis they belong to a member function whose local names follow, `f() const::{lambda()#1}`.
        if stem.len() == scope || stem.ends_with(')') {
            continue;
        }
        let (start, end) = (stem.len(), end_of_name(&text, from));
        let qualifiers = text[start..scope].to_string();
        text.insert_str(end, &qualifiers);
        text.replace_range(start..scope, "");
        from = start + 2;
    }
    text
}

/// Where the qualified name ends that continues at `from`: template arguments are part of it, spaces are not.
fn end_of_name(text: &str, from: usize) -> usize {
    let mut nesting = 0;
    let end = text[from..].bytes().position(|byte| {
        match byte {
            b'<' => nesting += 1,
            b'>' => nesting -= 1,
            _ => {}
        }
        let is_part = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'>') || !byte.is_ascii();
        nesting < 0 || nesting == 0 && !is_part
    });
    end.map_or(text.len(), |end| from + end)
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
