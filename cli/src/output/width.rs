//! Texts in the columns that a terminal has.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rpd_postprocess::text::{columns, shorten, width};

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
/// Columns of a piece of text that shows a difference: what is in front of it, itself, and an ellipsis; where there is room for the
/// beginning of the text too, and at least.
const GOOD_PIECE: usize = 8;
const LEAST_PIECE: usize = BEFORE_DIFFERENCE + 2;

/// Each of `texts` in at most `room` columns, as [`shorten`] has it, but never two different ones alike: where the middle makes the
/// difference (two instances of a template), it is the middle that is shown. Where there is no room for that, a text stays whole.
pub(crate) fn shorten_apart<'t>(texts: &[&'t str], room: usize) -> Vec<Cow<'t, str>> {
    let mut short: Vec<Cow<'t, str>> = texts.iter().map(|text| shorten(text, room)).collect();
    let mut groups = alike(texts, &short);
    loop {
        for group in &groups {
            let members: Vec<(usize, Vec<char>)> =
                group.iter().map(|at| (*at, texts[*at].chars().collect())).collect();
            show_differences(
                &members.iter().collect::<Vec<_>>(),
                &mut Vec::new(),
                &mut |(at, text), differences| {
                    short[*at] =
                        pieces(text, differences, room).map_or(Cow::Borrowed(texts[*at]), Cow::Owned);
                },
            );
        }
        // What was made of one group may be like what was made of another: all of them are told apart together then.
        let still = alike(texts, &short);
        let merged = merged(&groups, &still);
        if merged == groups {
            still.into_iter().flatten().for_each(|at| short[at] = Cow::Borrowed(texts[at]));
            return short;
        }
        groups = merged;
    }
}

/// The groups, and those of `more`, with what has a member in common put together.
fn merged(groups: &[Vec<usize>], more: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = groups.to_vec();
    for added in more {
        let (touched, mut others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|group| group.iter().any(|at| added.contains(at)));
        let members: BTreeSet<usize> = touched.iter().flatten().chain(added).copied().collect();
        others.push(members.into_iter().collect());
        all = others;
    }
    all.sort_unstable();
    all
}

/// The places of different texts that were shortened to the same one, group by group.
fn alike(texts: &[&str], short: &[Cow<'_, str>]) -> Vec<Vec<usize>> {
    let mut by_short: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, short) in short.iter().enumerate() {
        by_short.entry(short).or_default().push(at);
    }
    let is_mixed = |group: &Vec<usize>| group.iter().any(|at| texts[*at] != texts[group[0]]);
    let mut groups: Vec<Vec<usize>> = by_short.into_values().filter(is_mixed).collect();
    groups.sort_unstable();
    groups
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
    let count = differences.len().max(1);
    let each = match room * 3 / 4 / count {
        each if each >= GOOD_PIECE => each,
        _ => room.saturating_sub(1) / count,
    };
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
    fn groups_whose_differences_look_alike_are_distinguished_together() {
        let gemm = |tile: &str, panel: u32, group: &str| {
            let (a, b) = ("Alik_Bljk_".repeat(4), "LDSB1_AFC1_".repeat(12));
            format!("Cijk_{a}MT{tile}_MI16x16x1_{b}LBSPPA{panel}_LPA8_SVW4_{b}WG{group}_WGMXCC1_WGMXCCG0")
        };
        let names = [
            gemm("256x224x128", 512, "64_4_1"),
            gemm("256x224x128", 1024, "32_8_1"),
            gemm("64x32x256", 512, "32_8_1"),
            gemm("64x16x512", 512, "64_4_1"),
        ];
        let texts: Vec<&str> = names.iter().map(String::as_str).collect();
        for room in 16..120 {
            let short = shorten_apart(&texts, room);
            assert!(short.iter().all(|name| width(name) <= room), "{room}: {short:?}");
            assert_eq!(BTreeSet::from_iter(&short).len(), texts.len(), "{room}: {short:?}");
        }
    }
}
