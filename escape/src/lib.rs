//! Names from programs and traces on their way to a reader, made harmless.
//!
//! A kernel name is whatever a program put into its code object. On a terminal it must not move the
//! cursor, change the title or reverse the direction of the text behind it; in a spreadsheet it must not
//! become a formula. Every string of a program or a file passes through here before it is printed.

#![forbid(unsafe_code)]

mod csv_field;
mod json;

pub use csv_field::csv_field;
pub use json::json;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

/// Whether a character does something to a terminal or to the text around it instead of being seen.
///
/// Control characters (C0, DEL, C1), line and paragraph separators, and what reverses, joins or hides
/// text: bidirectional controls, zero-width spaces, tags.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{061c}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// `text` with every unsafe character written out: `\n`, `\t`, `\x1b`, `\u{202e}`.
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            c if !is_unsafe(c) => escaped.push(c),
            c if u32::from(c) < 0x100 => {
                let _ = write!(escaped, "\\x{:02x}", u32::from(c));
            }
            c => {
                let _ = write!(escaped, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    Cow::Owned(escaped)
}

/// [`escape`] of a path.
pub fn escape_path(path: impl AsRef<Path>) -> String {
    escape(&path.as_ref().to_string_lossy()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_a_cursor_survives() {
        assert_eq!(escape("a\x1b[2Jb\nc\td\u{9b}1m\x7f"), "a\\x1b[2Jb\\nc\\td\\x9b1m\\x7f");
        assert_eq!(escape("safe\u{202e}esrever"), "safe\\u{202e}esrever");
        assert!(matches!(escape("gemm<float, 4>(µ, 核)"), Cow::Borrowed(_)));
    }
}
