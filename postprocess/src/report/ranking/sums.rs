//! Sums by name, of any number of names.

use std::hash::RandomState;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rustc_hash::FxHashMap;

use super::{Percentiles, RunningSums};
use crate::pass::parts::{Key, Parts, Summand};
use crate::pass::sorted::{Sorted, Sorter};
use crate::report::markers::{GpuTimes, MarkerGpuTime};
use crate::report::named::{NAMELESS, NameIds, NameTexts, key};

/// Pairs of ids that are remembered at once.
const REMEMBERED: usize = 1 << 16;

/// A name: equal texts have equal keys, whichever of their ids are here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Named {
    key: Key,
    ids: [i64; 2],
}

impl Named {
    /// The name of a place, by the place's number.
    pub(super) fn of_place(place: i64) -> Named {
        Named { key: [place.cast_unsigned(), 0], ids: [0, place] }
    }

    pub(super) fn key(&self) -> Key {
        self.key
    }
}

/// The keys of names that are in the trace.
pub(super) struct NameKeys<'trace> {
    texts: NameTexts<'trace>,
    known: FxHashMap<NameIds, (Key, bool)>,
    hasher: RandomState,
}

impl NameKeys<'_> {
    pub(super) fn of(texts: NameTexts<'_>, hasher: RandomState) -> NameKeys<'_> {
        NameKeys { texts, known: FxHashMap::default(), hasher }
    }

    /// The name with these ids, and whether it is not in the file.
    pub(super) fn named(&mut self, ids: NameIds) -> rusqlite::Result<(Named, bool)> {
        let (key, is_nameless) = match self.known.get(&ids) {
            Some(known) => *known,
            None => {
                let text = self.texts.get(ids)?;
                let shown = text.as_deref().unwrap_or(NAMELESS);
                let found = (key(&self.hasher, shown), text.is_none());
                if self.known.len() == REMEMBERED {
                    self.known.clear();
                }
                self.known.insert(ids, found);
                found
            }
        };
        Ok((Named { key, ids: ids.into() }, is_nameless))
    }
}

/// A name and its sums, or a part of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct NameSums {
    name: Named,
    sums: RunningSums,
}

impl Summand for NameSums {
    fn key(&self) -> Key {
        self.name.key
    }

    fn add(&mut self, more: &NameSums) {
        self.sums.add(more.sums);
        // Whatever is read first: the same ids name it.
        self.name.ids = self.name.ids.min(more.name.ids);
    }
}

/// All sums of a name; ordered from the most self time to the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RankedName {
    not_self_ns: u64,
    ids: [i64; 2],
    sums: RunningSums,
    percentiles: [u64; 3],
    has_percentiles: u64,
    /// Of markers, where it is asked for.
    gpu: MarkerGpuTime,
}

impl RankedName {
    pub(super) fn self_ns(&self) -> u64 {
        !self.not_self_ns
    }

    /// The ids of its texts; the second one is the number of a place.
    pub(super) fn name(&self) -> [i64; 2] {
        self.ids
    }

    pub(super) fn sums(&self) -> RunningSums {
        self.sums
    }

    pub(super) fn percentiles(&self) -> Option<Percentiles> {
        let [p50_ns, p90_ns, p99_ns] = self.percentiles;
        (self.has_percentiles == 1).then_some(Percentiles { p50_ns, p90_ns, p99_ns })
    }

    pub(super) fn gpu(&self) -> MarkerGpuTime {
        self.gpu
    }
}

/// The sums of each name, and what percentiles are taken from.
pub(super) struct Sums {
    parts: Parts<NameSums>,
    /// Key and duration, where percentiles are asked for.
    durations: Option<Sorter<[u64; 3]>>,
}

impl Sums {
    pub(super) fn new(percentiles: bool) -> Sums {
        Sums { parts: Parts::new(), durations: percentiles.then(Sorter::new) }
    }

    /// Adds `more` to what is known of a name.
    pub(super) fn add(&mut self, name: Named, more: RunningSums) -> Result<()> {
        self.parts.add(NameSums { name, sums: more })
    }

    /// Keeps a duration for percentiles, where they are asked for.
    pub(super) fn duration(&mut self, name: &Named, ns: u64) -> Result<()> {
        let [first, second] = name.key;
        self.durations.as_mut().map_or(Ok(()), |durations| durations.push([first, second, ns]))
    }

    /// Adds an operation that ran at a place.
    pub(super) fn of_place(&mut self, place: i64, ns: u64) -> Result<()> {
        let name = Named::of_place(place);
        self.add(name, RunningSums::of(ns))?;
        self.duration(&name, ns)
    }

    /// Hands all sums of each name to `each`, with the GPU time that markers of the name have.
    pub(super) fn each(
        self,
        mut gpu_times: Option<GpuTimes>,
        mut each: impl FnMut(RankedName) -> Result<()>,
    ) -> Result<()> {
        let mut sums_by_key = self.parts.sums()?;
        let mut durations = self.durations.map(Sorter::sorted).transpose()?;
        while let Some(NameSums { name: Named { key, ids }, sums }) = sums_by_key.next()? {
            let percentiles = durations.as_mut().map(|all| percentiles(all, sums.calls)).transpose()?;
            let gpu = gpu_times.as_mut().map(|times| times.at(key)).transpose()?;
            each(RankedName {
                not_self_ns: !sums.self_ns,
                ids,
                sums,
                percentiles: percentiles.unwrap_or_default(),
                has_percentiles: u64::from(percentiles.is_some()),
                gpu: gpu.unwrap_or_default(),
            })?;
        }
        Ok(())
    }
}

/// The percentiles of the next `count` durations, which are in order.
fn percentiles(durations: &mut Sorted<[u64; 3]>, count: u64) -> Result<[u64; 3]> {
    // The n-th of them, counted from 1, is the first that so many percent do not exceed.
    let rank = |percent: u64| (u128::from(count) * u128::from(percent)).div_ceil(100) as u64;
    let ranks = [50, 90, 99].map(rank);
    let mut at = [0; 3];
    for nth in 1..=count {
        let Some([_, _, ns]) = durations.next()? else { break };
        for (rank, at) in ranks.iter().zip(&mut at) {
            if *rank == nth {
                *at = ns;
            }
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::parts::IN_MEMORY;

    #[test]
    fn more_names_than_fit_into_memory() {
        let names = 3 * IN_MEMORY as i64;
        let mut sums = Sums::new(true);
        for round in 1..=3 {
            for name in 0..names {
                sums.of_place(name, (name * round).unsigned_abs()).unwrap();
            }
        }
        let mut found = Vec::new();
        sums.each(None, |added| {
            found.push(added);
            Ok(())
        })
        .unwrap();
        found.sort_unstable();
        assert_eq!(found.len(), names as usize);
        for (added, name) in found.iter().zip((0..names.unsigned_abs()).rev()) {
            assert_eq!(added.name(), [0, name.cast_signed()]);
            let RunningSums { calls, self_ns, min_ns, max_ns, .. } = added.sums();
            assert_eq!((calls, self_ns, min_ns, max_ns), (3, 6 * name, name, 3 * name));
            let at = added.percentiles().unwrap();
            assert_eq!((at.p50_ns, at.p90_ns, at.p99_ns), (2 * name, 3 * name, 3 * name));
        }
    }
}
