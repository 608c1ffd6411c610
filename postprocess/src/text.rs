//! Names from traces on their way to a reader: made harmless, and made to fit.
//!
//! A kernel name is whatever a program put into its code object. On a terminal it must not move the
//! cursor, change the title or reverse the direction of the text behind it; in a spreadsheet it must not
//! become a formula. Every string read from a file passes through here before it is printed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

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
/// apostrophe in front where a spreadsheet would otherwise take the field for a formula. Some look behind blanks, and take the
/// wide forms of the signs as well. A number is none, and stays as it is for programs.
pub(crate) fn csv_field(text: &str) -> Cow<'_, str> {
    let escaped = escape(text);
    let begin = escaped.trim_start();
    let is_formula = begin.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠'])
        && begin.trim_end().parse::<f64>().map_or(true, |number| !number.is_finite());
    if is_formula { Cow::Owned(format!("'{escaped}")) } else { escaped }
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

/// `text` in lines of at most `room` columns, broken at blanks; a word that is wider is broken anywhere.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<Cow<'_, str>> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_ascii_whitespace() {
        if !line.is_empty() && width(&line) + 1 + width(word) > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        let mut left = room.saturating_sub(width(&line));
        for c in word.chars() {
            if columns(c) > left && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
                left = room;
            }
            line.push(c);
            left = left.saturating_sub(columns(c));
        }
    }
    lines.push(line);
    lines.into_iter().map(Cow::Owned).collect()
}

/// Characters in front of a difference that [`shorten_apart`] shows.
const BEFORE_DIFFERENCE: usize = 4;
/// Columns of a piece of text that shows a difference: what is in front of it, itself, and an ellipsis; at least.
const LEAST_PIECE: usize = 8;

/// Each of `texts` in at most `room` columns, as [`shorten`] has it, but never two different ones alike: where the middle makes the
/// difference (two instances of a template), it is the middle that is shown. Where there is no room for that, a text stays whole.
pub(crate) fn shorten_apart<'t>(texts: &[&'t str], room: usize) -> Vec<Cow<'t, str>> {
    let mut short: Vec<Cow<'t, str>> = texts.iter().map(|text| shorten(text, room)).collect();
    for group in alike(texts, &short) {
        let members: Vec<(usize, Vec<char>)> =
            group.iter().map(|at| (*at, texts[*at].chars().collect())).collect();
        show_differences(
            &members.iter().collect::<Vec<_>>(),
            &mut Vec::new(),
            &mut |(at, text), differences| {
                short[*at] = pieces(text, differences, room).map_or(Cow::Borrowed(texts[*at]), Cow::Owned);
            },
        );
    }
    // What was made of one group may be like what was made of another.
    for at in alike(texts, &short).into_iter().flatten() {
        short[at] = Cow::Borrowed(texts[at]);
    }
    short
}

/// The places of different texts that were shortened to the same one, group by group.
fn alike(texts: &[&str], short: &[Cow<'_, str>]) -> Vec<Vec<usize>> {
    let mut by_short: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, short) in short.iter().enumerate() {
        by_short.entry(short).or_default().push(at);
    }
    let is_mixed = |group: &Vec<usize>| group.iter().any(|at| texts[*at] != texts[group[0]]);
    by_short.into_values().filter(is_mixed).collect()
}

/// A text and its place among all.
type Member = (usize, Vec<char>);

/// Tells `show` of each text of the group where it differs from others of it: at the end of what all have in common, then at the
/// end of what those have in common that go on alike from there.
fn show_differences(group: &[&Member], found: &mut Vec<usize>, show: &mut impl FnMut(&Member, &[usize])) {
    let Some(((_, first), others)) = group.split_first() else { return };
    let same = |other: &Member| first.iter().zip(&other.1).take_while(|(a, b)| a == b).count();
    let common = others.iter().map(|other| same(other)).min().unwrap_or(first.len());
    if group.iter().all(|(_, text)| text.len() == common) {
        group.iter().for_each(|member| show(member, found));
        return;
    }
    let mut parts: BTreeMap<Option<char>, Vec<&Member>> = BTreeMap::new();
    for member in group {
        parts.entry(member.1.get(common).copied()).or_default().push(member);
    }
    found.push(common);
    for part in parts.values() {
        show_differences(part, found, show);
    }
    found.pop();
}

/// The beginning of `text` and the pieces around `differences` in `room` columns, ellipses between them. None if they do not fit.
fn pieces(text: &[char], differences: &[usize], room: usize) -> Option<String> {
    let each = room * 3 / 4 / differences.len().max(1);
    if each < LEAST_PIECE {
        return None;
    }
    // The beginning comes first, and gets its room last.
    let mut shown = Vec::with_capacity(differences.len() + 1);
    shown.push(0..0);
    for &at in differences {
        let last = shown.last_mut()?;
        let start = at.saturating_sub(BEFORE_DIFFERENCE).max(last.end);
        let end = (start + fitting(&text[start..], each - 1)).max(at + 1).min(text.len());
        if start == last.end {
            last.end = end.max(last.end);
        } else {
            shown.push(start..end);
        }
    }
    let width = |shown: &[Range<usize>]| {
        let pieces = shown.iter().map(|piece| columns_of(&text[piece.clone()])).sum::<usize>();
        pieces + shown.len() - usize::from(shown.last().is_some_and(|last| last.end == text.len()))
    };
    let left = room.checked_sub(width(&shown))?;
    let until = shown.get(1).map_or(text.len(), |next| next.start);
    let begin = &mut shown[0];
    begin.end += fitting(&text[begin.end..until], left);
    let mut line = String::new();
    let mut end = 0;
    for piece in shown {
        if piece.start > end {
            line.push('…');
        }
        end = piece.end;
        line.extend(&text[piece]);
    }
    if end < text.len() {
        line.push('…');
    }
    Some(line)
}

/// How many characters of the beginning of `text` fit into `room` columns.
fn fitting(text: &[char], room: usize) -> usize {
    let mut taken = 0;
    text.iter()
        .take_while(|c| {
            taken += columns(**c);
            taken <= room
        })
        .count()
}

fn columns_of(text: &[char]) -> usize {
    text.iter().map(|c| columns(*c)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_blanks_and_lose_nothing() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a verylongword b", 6), ["a", "verylo", "ngword", "b"]);
        assert_eq!(wrap("核核核", 4), ["核核", "核"]);
        assert_eq!(wrap("", 4), [""]);
    }

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
        for formula in [" =1", "\u{a0}+1+1", "＝1", "-x", "-", "+inf", "--1", "-1+1", "@1", "=1"] {
            assert!(csv_field(formula).starts_with('\''), "{formula}");
        }
        for blank in ["\t=1", "\r=1", "\n-x"] {
            assert!(csv_field(blank).starts_with('\\'), "{blank:?}");
        }
        for number in ["-5", "+3.5e2", "-0.25", "7", ""] {
            assert_eq!(csv_field(number), number);
        }
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
    fn different_names_stay_different() {
        let reduce = |kind: &str, size: usize| {
            format!(
                "void at::native::reduce_kernel<{size}, 1, at::native::ReduceOp<{kind}, at::native::func_wrapper_t<{kind}>, unsigned int, double, 4> >(signed int)"
            )
        };
        let mut names = Vec::new();
        for kind in ["float", "double", "c10::Half", "c10::BFloat16"] {
            names.extend([128, 256, 512].map(|size| reduce(kind, size)));
        }
        names.extend([
            "short".to_string(),
            "x".repeat(300),
            "x".repeat(301),
            "核".repeat(90),
            "核".repeat(91),
        ]);
        names.push(names[0].clone());
        let texts: Vec<&str> = names.iter().map(String::as_str).collect();
        for room in 16..120 {
            let short = shorten_apart(&texts, room);
            for (at, one) in short.iter().enumerate() {
                assert!(width(one) <= room || *one == texts[at], "{room}: {one}");
                for (other, text) in short.iter().zip(&texts) {
                    assert_eq!(one == other, texts[at] == *text, "{room}: {one} and {other}");
                }
            }
        }
        let shown = shorten_apart(&texts[..6], 50);
        assert!(shown.iter().all(|name| width(name) <= 50 && name.contains('…')), "{shown:?}");
        assert!(shown[4].contains("256") && shown[4].contains("double"), "{shown:?}");
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
