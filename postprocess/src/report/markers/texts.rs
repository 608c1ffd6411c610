//! The names of markers: keys where they are compared, texts where they are shown.

use std::hash::RandomState;
use std::sync::Arc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rpd_schema::Version;
use rusqlite::{Connection, Transaction};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::pass::parts::Key;
use crate::pass::sorted::Sorter;
use crate::passes::autograd::marker::MarkerText;
use crate::report::diff::family;
use crate::report::named::{NAMELESS, NameIds, NameTexts, key};
use crate::report::rank_by::RankBy;

/// Texts that may differ in numbers alone and still be told apart: layers, not steps.
pub(super) const ALIKE: u64 = 64;

/// Pairs of ids that are remembered at once.
const REMEMBERED: usize = 1 << 16;

/// Texts that are remembered at once, bytes.
const REMEMBERED_BYTES: usize = 1 << 20;

/// A marker's text: its key, that of all texts which differ from it in numbers alone, and its ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct MarkerKeys {
    text: Key,
    family: Key,
    ids: [i64; 2],
}

/// What a range is called: `#` stands for a number where it has its name with many others (`is_alike` is 1, else 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RangeName {
    /// The ids of a text that has it.
    ids: [i64; 2],
    is_alike: u64,
}

fn name_texts<'trace>(
    (trace, version): (&'trace Connection, Version),
) -> rusqlite::Result<NameTexts<'trace>> {
    NameTexts::of(trace, RankBy::Marker.texts(version))
}

/// The text that names a marker; unless it is `exact`, PyTorch's operators have their names alone.
fn named(text: &str, exact: bool) -> &str {
    match MarkerText::of(text) {
        MarkerText::Operator(operator) if !exact => operator.name,
        _ => text,
    }
}

/// Finds the keys of markers.
pub(super) struct KeyFinder<'trace> {
    texts: NameTexts<'trace>,
    hasher: RandomState,
    exact: bool,
    known: FxHashMap<NameIds, MarkerKeys>,
    /// Families of texts, by the texts' keys.
    family_of: FxHashMap<Key, Key>,
    /// Family and text.
    met: Sorter<[Key; 2]>,
}

impl KeyFinder<'_> {
    /// No keys yet; texts that are `exact` have no families.
    ///
    /// # Errors
    /// When the trace has no texts.
    pub(super) fn of<'trace>(
        trace: (&'trace Connection, Version),
        exact: bool,
        hasher: &RandomState,
    ) -> Result<KeyFinder<'trace>> {
        let (texts, hasher) = (name_texts(trace)?, hasher.clone());
        Ok(KeyFinder {
            texts,
            hasher,
            exact,
            known: FxHashMap::default(),
            family_of: FxHashMap::default(),
            met: Sorter::new(),
        })
    }

    /// The keys of a marker.
    ///
    /// # Errors
    /// When the trace cannot be read, or a temporary file not be written.
    pub(super) fn keys(&mut self, ids: NameIds) -> Result<MarkerKeys> {
        if let Some(keys) = self.known.get(&ids) {
            return Ok(*keys);
        }
        let text = self.texts.get(ids)?;
        let text = named(text.as_deref().unwrap_or(NAMELESS), self.exact);
        let mut keys = MarkerKeys { text: key(&self.hasher, text), family: Key::default(), ids: ids.into() };
        if !self.exact {
            keys.family = self.family(keys.text, text)?;
        }
        if self.known.len() == REMEMBERED {
            self.known.clear();
        }
        self.known.insert(ids, keys);
        Ok(keys)
    }

    /// The key of all texts that differ from this one in numbers alone: operators have many ids and few names.
    fn family(&mut self, text: Key, of: &str) -> Result<Key> {
        if let Some(family) = self.family_of.get(&text) {
            return Ok(*family);
        }
        let found = key(&self.hasher, &family(of));
        self.met.push([found, text])?;
        if self.family_of.len() == REMEMBERED {
            self.family_of.clear();
        }
        self.family_of.insert(text, found);
        Ok(found)
    }

    /// What has more than [`ALIKE`] texts, when all were met.
    ///
    /// # Errors
    /// When a temporary file cannot be read.
    pub(super) fn families(self) -> Result<Families> {
        drop((self.known, self.family_of, self.texts));
        let mut met = self.met.sorted()?;
        let mut families = Families::default();
        let (mut last, mut texts) = (None, 0);
        loop {
            let next = met.next()?;
            if next.is_some() && next == last {
                continue;
            }
            if let Some([family, _]) = last
                && next.is_none_or(|[other, _]| other != family)
            {
                if texts > ALIKE {
                    families.alike.insert(family);
                    families.texts += texts;
                }
                texts = 0;
            }
            if next.is_none() {
                return Ok(families);
            }
            (last, texts) = (next, texts + 1);
        }
    }
}

/// Texts that are one name because they differ in numbers alone.
#[derive(Default)]
pub(super) struct Families {
    alike: FxHashSet<Key>,
    /// How many texts they have.
    pub(super) texts: u64,
}

impl Families {
    /// The name of a marker, and its key.
    pub(super) fn name(&self, keys: &MarkerKeys) -> (Key, RangeName) {
        let is_alike = self.alike.contains(&keys.family);
        let name = RangeName { ids: keys.ids, is_alike: u64::from(is_alike) };
        (if is_alike { keys.family } else { keys.text }, name)
    }
}

/// The texts of names, those that were read last remembered.
pub(super) struct RangeTexts<'trace> {
    trace: &'trace Connection,
    texts: NameTexts<'trace>,
    exact: bool,
    known: FxHashMap<RangeName, Arc<str>>,
    bytes: usize,
}

impl<'trace> RangeTexts<'trace> {
    /// Those of a trace, as [`KeyFinder::of`] has them.
    ///
    /// # Errors
    /// When the trace has no texts.
    pub(super) fn of(trace: (&'trace Connection, Version), exact: bool) -> Result<RangeTexts<'trace>> {
        Ok(RangeTexts {
            trace: trace.0,
            texts: name_texts(trace)?,
            exact,
            known: FxHashMap::default(),
            bytes: 0,
        })
    }

    /// While it lives, SQLite does not take the file's lock for each text. A recorder waits for it, so it must not live while output is written.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn reading(&self) -> rusqlite::Result<Option<Transaction<'trace>>> {
        self.trace.is_autocommit().then(|| self.trace.unchecked_transaction()).transpose()
    }

    /// The text of a name.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn get(&mut self, name: RangeName) -> Result<Arc<str>> {
        if let Some(text) = self.known.get(&name) {
            return Ok(Arc::clone(text));
        }
        let text = self.texts.get(name.ids.into())?;
        let text = named(text.as_deref().unwrap_or(NAMELESS), self.exact);
        let text: Arc<str> = if name.is_alike == 1 { family(text).into() } else { text.into() };
        self.bytes += text.len() + size_of::<(RangeName, Arc<str>)>() * 2;
        if self.bytes > REMEMBERED_BYTES {
            self.known.clear();
            self.bytes = 0;
        }
        self.known.insert(name, Arc::clone(&text));
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and how many texts are alike.
    fn names(texts: &[String], exact: bool) -> (Vec<Arc<str>>, u64) {
        let trace = Connection::open_in_memory().unwrap();
        trace.execute_batch("CREATE TABLE rocpd_string (id integer primary key, string text)").unwrap();
        for (at, text) in texts.iter().enumerate() {
            trace.execute("INSERT INTO rocpd_string VALUES (?1, ?2)", (at as i64 + 1, text)).unwrap();
        }
        let trace = (&trace, Version::V2);
        let mut finder = KeyFinder::of(trace, exact, &RandomState::new()).unwrap();
        let ids = (1..=texts.len() as i64).map(|id| (id, 0));
        let keys: Vec<MarkerKeys> = ids.map(|ids| finder.keys(ids).unwrap()).collect();
        let families = finder.families().unwrap();
        let mut shown = RangeTexts::of(trace, exact).unwrap();
        let mut names: Vec<(Key, Arc<str>)> = keys
            .iter()
            .map(|keys| {
                let (key, name) = families.name(keys);
                (key, shown.get(name).unwrap())
            })
            .collect();
        names.sort();
        names.dedup();
        let keys: FxHashSet<Key> = names.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys.len(), names.len(), "one name has one key");
        (names.into_iter().map(|(_, name)| name).collect(), families.texts)
    }

    #[test]
    fn steps_become_one_and_layers_do_not() {
        let mut texts: Vec<String> =
            (0..1000).flat_map(|n| [format!("step {n}"), format!("layer {}", n % 48)]).collect();
        texts.push("aten::mm".into());
        let (merged, alike) = names(&texts, false);
        assert_eq!((merged.len(), alike), (50, 1000));
        for name in ["step #", "layer 7", "aten::mm"] {
            assert!(merged.iter().any(|known| &**known == name), "{name}");
        }
        let (exact, alike) = names(&texts, true);
        assert_eq!((exact.len(), alike), (1049, 0));
    }
}
