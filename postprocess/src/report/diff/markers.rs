//! The names of markers when two runs are compared, and the marker that is one iteration.
//!
//! Texts have numbers that count: `step 7`, or `op_id = 12` of PyTorch's operators. An operator goes by its name, which is all that
//! `rpd autograd` leaves of its text. Digits become `#`, unless what has them is there often in A and in B, as `layer 3` and `aten::conv2d` are.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::{Result, bail};
use bytemuck::{Pod, Zeroable};
use rustc_hash::{FxHashMap, FxHashSet};

use super::source::{ComparedCall, ComparedTrace, ThreadKey};
use crate::pass::sorted::Sorter;
use crate::passes::autograd::marker::MarkerText;
use crate::text;

/// Texts that are told apart at most; more of them are numbered in a way that is not known here.
const TEXTS: usize = 1 << 16;

/// The text with which markers that only differ by numbers are the same.
pub(in crate::report) fn family(text: &str) -> Cow<'_, str> {
    let text = without_fields(text);
    if !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return Cow::Borrowed(text);
    }
    let mut family = String::with_capacity(text.len());
    for part in text.chars() {
        if !part.is_ascii_digit() {
            family.push(part);
        } else if !family.ends_with('#') {
            family.push('#');
        }
    }
    Cow::Owned(family)
}

/// Of the text of an operator its name.
fn without_fields(text: &str) -> &str {
    match MarkerText::of(text) {
        MarkerText::Operator(operator) => operator.name,
        _ => text,
    }
}

/// The names of the markers of all files.
pub(super) struct MarkerNames {
    /// Texts with digits that are names themselves.
    kept: FxHashSet<String>,
    /// Per family how often each file has it.
    families: FxHashMap<String, Vec<u64>>,
}

impl MarkerNames {
    /// Reads the markers of all files; texts that each side has `often` times are names.
    ///
    /// # Errors
    /// When a trace cannot be read.
    pub(super) fn of(sources: &[ComparedTrace<'_>], often: u64) -> Result<MarkerNames> {
        let mut texts: FxHashMap<String, [u64; 2]> = FxHashMap::default();
        let mut families: FxHashMap<String, Vec<u64>> = FxHashMap::default();
        for (at, source) in sources.iter().enumerate() {
            source.each_call(true, |marker| {
                let text = marker.text.unwrap_or_default();
                let family = family(&text);
                if let Some(files) = families.get_mut(family.as_ref()) {
                    files[at] += 1;
                } else if families.len() < TEXTS {
                    let mut files = vec![0; sources.len()];
                    files[at] = 1;
                    families.insert(family.to_string(), files);
                }
                let text = without_fields(&text);
                if family != text {
                    if let Some(sides) = texts.get_mut(text) {
                        sides[source.side] += 1;
                    } else if texts.len() < TEXTS {
                        let mut sides = [0; 2];
                        sides[source.side] = 1;
                        texts.insert(text.to_string(), sides);
                    }
                }
                Ok(())
            })?;
        }
        texts.retain(|_, sides| sides.iter().all(|count| *count >= often));
        Ok(MarkerNames { kept: texts.into_keys().collect(), families })
    }

    /// What a marker of this text is called.
    pub(super) fn name<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let text = without_fields(text);
        if self.kept.contains(text) { Cow::Borrowed(text) } else { family(text) }
    }

    /// The family whose markers are iterations: the one that was asked for, or of those that each file repeats and that are in no other
    /// such marker the one with most time. Python functions and the like are, where no other marker repeats.
    ///
    /// # Errors
    /// When the one that was asked for is not in a file, or a trace cannot be read.
    pub(super) fn iteration(
        &self,
        sources: &[ComparedTrace<'_>],
        asked: Option<&str>,
    ) -> Result<Option<String>> {
        if let Some(asked) = asked {
            let asked = family(asked);
            let missing = |at: usize| self.families.get(asked.as_ref()).is_none_or(|files| files[at] == 0);
            if let Some(at) = (0..sources.len()).find(|at| missing(*at)) {
                bail!("{} has no marker {:?}", sources[at].name, text::escape(&asked));
            }
            return Ok(Some(asked.into_owned()));
        }
        let repeats = |files: &Vec<u64>| files.iter().all(|count| *count >= 2);
        let candidates: Vec<&String> =
            self.families.iter().filter(|(_, files)| repeats(files)).map(|(family, _)| family).collect();
        let numbers: FxHashMap<&str, u32> =
            candidates.iter().enumerate().map(|(at, family)| (family.as_str(), at as u32)).collect();
        for with_text in [true, false] {
            // Per candidate its time, and how often it is outermost in each file.
            let mut found: BTreeMap<u32, (u64, Vec<u64>)> = BTreeMap::new();
            let candidate = |marker: &ComparedCall| {
                let text = marker.text.as_deref().filter(|_| marker.has_text || !with_text)?;
                numbers.get(family(text).as_ref()).copied()
            };
            for (at, source) in sources.iter().enumerate() {
                outermost(source, candidate, |_, (start, end), candidate| {
                    let (time, files) = found.entry(candidate).or_insert_with(|| (0, vec![0; sources.len()]));
                    *time = time.saturating_add(end.abs_diff(start));
                    files[at] += 1;
                })?;
            }
            let best = found
                .into_iter()
                .filter(|(_, (_, files))| repeats(files))
                .map(|(candidate, (time, _))| (time, std::cmp::Reverse(candidates[candidate as usize])))
                .max();
            if let Some((_, std::cmp::Reverse(family))) = best {
                return Ok(Some(family.clone()));
            }
        }
        Ok(None)
    }
}

/// A marker that may be an iteration; ordered as a stack takes them, thread after thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct MarkerRow {
    thread: ThreadKey,
    start: i64,
    /// The end with all bits turned over.
    not_end: i64,
    candidate: i64,
}

/// Shows `visit` each marker that is a candidate, takes time, and is in no other candidate of its thread.
///
/// # Errors
/// When the trace, or a temporary file, cannot be read.
pub(super) fn outermost(
    source: &ComparedTrace<'_>,
    candidate: impl Fn(&ComparedCall) -> Option<u32>,
    mut visit: impl FnMut(ThreadKey, (i64, i64), u32),
) -> Result<()> {
    let mut rows = Sorter::new();
    source.each_call(true, |marker| match candidate(&marker).filter(|_| marker.end > marker.start) {
        Some(candidate) => rows.push(MarkerRow {
            thread: marker.thread,
            start: marker.start,
            not_end: !marker.end,
            candidate: i64::from(candidate),
        }),
        None => Ok(()),
    })?;
    let mut rows = rows.sorted()?;
    let mut covered: Option<(ThreadKey, i64)> = None;
    while let Some(row) = rows.next()? {
        let end = !row.not_end;
        if covered.is_none_or(|(thread, until)| thread != row.thread || until <= row.start) {
            visit(row.thread, (row.start, end), u32::try_from(row.candidate)?);
            covered = Some((row.thread, end));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_count_are_no_part_of_a_name() {
        for (text, expected) in [
            ("step 7", "step #"),
            ("ProfilerStep#12", "ProfilerStep#"),
            ("1", "#"),
            ("", ""),
            ("aten::conv2d, seq = 12, op_id = 7, sizes = [[1, 2]]", "aten::conv#d"),
            ("aten::conv2d", "aten::conv#d"),
            ("layer.3.forward.12", "layer.#.forward.#"),
            ("核 9", "核 #"),
        ] {
            assert_eq!(family(text), expected);
        }
    }
}
