//! Texts for JSON.

use std::fmt::Write as _;

use crate::is_unsafe;

/// A JSON text with the unsafe characters that JSON itself allows in strings written as `\uXXXX`.
///
/// Any such character outside ASCII stands inside a string, so the text means the same as before; line
/// ends and spaces between values are left alone.
pub fn json(text: String) -> String {
    if !text.chars().any(|c| is_unsafe(c) && c != '\n') {
        return text;
    }
    let mut safe = String::with_capacity(text.len() + 16);
    let mut units = [0; 2];
    for c in text.chars() {
        if is_unsafe(c) && c != '\n' {
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_the_same_value() {
        let name = "a\u{9b}b\u{202e}c\u{e0001}d\x7f\n\x1b";
        let text = json(serde_json::to_string_pretty(&[name]).unwrap());
        assert!(text.chars().all(|c| !is_unsafe(c) || c == '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), [name]);
    }
}
