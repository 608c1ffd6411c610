//! A kernel in the place of another one: its name changed with a template argument or a library's choice, and what runs before and after it
//! did not.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::shapes::Contexts;

/// A kernel that one side alone has, with how often an iteration launches it.
pub(super) type OneSided = (u32, u64);

/// What is before or after a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Neighbour {
    /// The begin or the end of the iteration.
    Edge,
    /// A kernel that both sides have.
    Kernel(u32),
    /// One that only one side has.
    OneSided,
}

/// The pairs of kernels that are gone and new, whose places are each other's and no other's.
pub(super) fn pairs(
    (gone, before): (&[OneSided], &Contexts),
    (new, after): (&[OneSided], &Contexts),
) -> Vec<(u32, u32)> {
    let changed: FxHashSet<u32> = gone.iter().chain(new).map(|(unit, _)| *unit).collect();
    let neighbour = |unit: Option<u32>| match unit {
        None => Neighbour::Edge,
        Some(unit) if changed.contains(&unit) => Neighbour::OneSided,
        Some(unit) => Neighbour::Kernel(unit),
    };
    let places = |units: &[OneSided], contexts: &Contexts| {
        let mut places: BTreeMap<(u64, [Neighbour; 2]), Vec<u32>> = BTreeMap::new();
        for (unit, launches) in units {
            if let Some(around) = contexts.around(*unit) {
                places.entry((*launches, around.map(neighbour))).or_default().push(*unit);
            }
        }
        places
    };
    let (gone, new) = (places(gone, before), places(new, after));
    let pair = |(place, gone): (&_, &Vec<u32>)| match (&gone[..], new.get(place).map(Vec::as_slice)) {
        ([gone], Some([new])) => Some((*gone, *new)),
        _ => None,
    };
    let mut pairs: Vec<(u32, u32)> = gone.iter().filter_map(pair).collect();
    pairs.sort_unstable();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(units: &[u32]) -> Contexts {
        let mut contexts = Contexts::default();
        units.iter().for_each(|unit| contexts.next(*unit));
        contexts
    }

    #[test]
    fn kernels_are_paired_by_their_place_if_it_is_theirs_alone() {
        let a = sequence(&[1, 2, 3, 4]);
        let pair = |gone: &[OneSided], new: &[OneSided], b: &[u32]| pairs((gone, &a), (new, &sequence(b)));
        assert_eq!(pair(&[(2, 1)], &[(9, 1)], &[1, 9, 3, 4]), [(2, 9)]);
        assert_eq!(pair(&[(2, 1)], &[(9, 2)], &[1, 9, 9, 3, 4]), [], "it runs more often");
        assert_eq!(pair(&[(2, 1)], &[(9, 1)], &[1, 3, 9, 4]), [], "elsewhere");
        // Neighbours that were both replaced, and all of them.
        assert_eq!(pair(&[(2, 1), (3, 1)], &[(8, 1), (9, 1)], &[1, 8, 9, 4]), [(2, 8), (3, 9)]);
        let all = [(1, 1), (2, 1), (3, 1), (4, 1)];
        let others = [(5, 1), (6, 1), (7, 1), (8, 1)];
        assert_eq!(pair(&all, &others, &[5, 6, 7, 8]), [(1, 5), (4, 8)], "those between look the same");
    }
}
