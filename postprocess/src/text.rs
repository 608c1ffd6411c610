//! Names from traces on their way to a reader: made harmless, and made to fit.
//!
//! A kernel name is whatever a program put into its code object. On a terminal it must not move the
//! cursor, change the title or reverse the direction of the text behind it; in a spreadsheet it must not
//! become a formula. Every string read from a file passes through here before it is printed.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

/// Whether a character does something to a terminal or to the text around it instead of being seen.
///
/// Control characters (C0, DEL, C1), line and paragraph separators, and what reverses, joins or hides
/// text: bidirectional controls, zero-width spaces, tags.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{061c}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// `text` with every unsafe character written out: `\n`, `\t`, `\x1b`, `\u{202e}`.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
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

/// `text` for a field of a CSV file (quoting is the writer's): escaped as on a terminal, and with an
/// apostrophe in front where a spreadsheet would otherwise take the field for a formula.
pub(crate) fn csv_field(text: &str) -> Cow<'_, str> {
    let escaped = escape(text);
    if escaped.starts_with(['=', '+', '-', '@']) { Cow::Owned(format!("'{escaped}")) } else { escaped }
}

/// A JSON text with the unsafe characters that JSON itself allows in strings written as `\uXXXX`.
///
/// Any such character outside ASCII stands inside a string, so the text means the same as before; line
/// ends and spaces between values are left alone.
pub(crate) fn json(text: String) -> String {
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

/// Columns `text` takes on a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

fn columns(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// `text` in at most `room` columns: what does not fit is taken from the middle, where an ellipsis
/// stands for it, because kernel names differ at their beginning (the function) and at their end (the
/// template's last arguments).
pub(crate) fn shorten(text: &str, room: usize) -> Cow<'_, str> {
    if width(text) <= room {
        return Cow::Borrowed(text);
    }
    let Some(kept) = room.checked_sub(1) else { return Cow::Borrowed("") };
    let tail_room = kept / 2;
    let mut head_end = 0;
    let mut head_width = 0;
    for (at, c) in text.char_indices() {
        if head_width + columns(c) > kept - tail_room {
            break;
        }
        head_width += columns(c);
        head_end = at + c.len_utf8();
    }
    let mut tail_start = text.len();
    let mut tail_width = 0;
    for (at, c) in text.char_indices().rev() {
        if tail_width + columns(c) > tail_room || at < head_end {
            break;
        }
        tail_width += columns(c);
        // A mark without width belongs to the character before it: the tail never begins with one.
        if columns(c) > 0 {
            tail_start = at;
        }
    }
    Cow::Owned(format!("{}…{}", &text[..head_end], &text[tail_start..]))
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

    #[test]
    fn a_field_is_no_formula() {
        assert_eq!(csv_field("=cmd()"), "'=cmd()");
        assert_eq!(csv_field("@x"), "'@x");
        assert_eq!(csv_field("a=b"), "a=b");
    }

    #[test]
    fn json_stays_the_same_value() {
        let name = "a\u{9b}b\u{202e}c\u{e0001}d\x7f\n\x1b";
        let text = json(serde_json::to_string_pretty(&[name]).unwrap());
        assert!(text.chars().all(|c| !is_unsafe(c) || c == '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), [name]);
    }

    #[test]
    fn the_middle_goes() {
        assert_eq!(shorten("abcdefghij", 10), "abcdefghij");
        assert_eq!(shorten("abcdefghij", 7), "abc…hij");
        assert_eq!(shorten("abcdefghij", 6), "abc…ij");
        assert_eq!(shorten("abcdefghij", 1), "…");
        assert_eq!(shorten("abcdefghij", 0), "");
    }

    #[test]
    fn wide_and_zero_width_characters_count_as_they_show() {
        let name = "核核核核核核";
        assert_eq!(width(name), 12);
        for room in 0..=12 {
            assert!(width(&shorten(name, room)) <= room, "{room}");
        }
        let marked = "e\u{301}".repeat(20);
        assert_eq!(width(&marked), 20);
        let short = shorten(&marked, 9);
        assert_eq!(width(&short), 9);
        assert!(short.split('…').nth(1).unwrap().starts_with('e'));
    }
}
