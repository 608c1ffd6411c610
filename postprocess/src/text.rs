//! Names from traces on their way to a reader: made harmless, and made to fit.
//!
//! A kernel name is whatever a program put into its code object. On a terminal it must not move the
//! cursor, change the title or reverse the direction of the text behind it; in a spreadsheet it must not
//! become a formula. Every string read from a file passes through here before it is printed.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

pub use rpd_escape::{escape, escape_path, is_unsafe};

/// Columns `text` takes on a terminal.
pub fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// Columns `c` takes on a terminal.
pub fn columns(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// `text` in at most `room` columns: what does not fit is taken from the middle, where an ellipsis
/// stands for it, because kernel names differ at their beginning (the function) and at their end (the
/// template's last arguments).
pub fn shorten(text: &str, room: usize) -> Cow<'_, str> {
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

/// `text` as one word of a shell's line.
#[must_use]
pub fn in_shell(text: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_./+-".contains(char);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        return text.to_string();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// `number` of `what`: `1 kernel`, `2 kernels`, `0 copies`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn one_is_singular() {
        assert_eq!(counted(1, "copy", "copies"), "1 copy");
        assert_eq!(counted(0, "copy", "copies"), "0 copies");
    }
}
