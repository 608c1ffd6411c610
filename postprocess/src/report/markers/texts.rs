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
use crate::report::ranking::RankBy;

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
        Ok(KeyFinder { texts, hasher, exact, known: FxHashMap::default(), met: Sorter::new() })
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
            keys.family = key(&self.hasher, &family(text));
            self.met.push([keys.family, keys.text])?;
        }
        if self.known.len() == REMEMBERED {
            self.known.clear();
        }
        self.known.insert(ids, keys);
        Ok(keys)
    }

    /// What has more than [`ALIKE`] texts, when all were met.
    ///
    /// # Errors
    /// When a temporary file cannot be read.
    pub(super) fn families(self) -> Result<Families> {
        drop((self.known, self.texts));
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
