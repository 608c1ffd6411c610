//! Iterations that are alike: those that launch the same kernels as often.
//!
//! A prefill and a decode are iterations of one marker, and have nothing to do with each other. Where the two sides have no iterations of
//! exactly the same launches, because a kernel was replaced or runs once more, those most alike are compared.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

/// Shapes that are told apart; what is beyond counts as one.
const MOST: usize = 4096;

/// Shapes for which what runs before and after each kernel is kept.
const WITH_CONTEXTS: usize = 256;

/// Shapes of which all pairs are looked at.
const PAIRED: usize = 256;

/// Rare shapes go with the one that they are alike by the first of these; by the next where most iterations would be compared with none;
/// in the end all go together.
const ALIKE: [f64; 4] = [0.9, 0.7, 0.5, 0.0];

/// Shapes that one side alone has are compared with those of the other one that they are alike by this much.
const ACROSS: f64 = 0.5;

/// Launches by kernel, in the order of their numbers.
pub(super) type Launched = Vec<(u32, u64)>;

/// What runs before and after the first launch of each kernel.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    around: FxHashMap<u32, [Option<u32>; 2]>,
    last: Option<(u32, bool)>,
}

impl Contexts {
    /// The next kernel.
    pub(super) fn next(&mut self, unit: u32) {
        if let Some((last, true)) = self.last
            && let Some(around) = self.around.get_mut(&last)
        {
            around[1] = Some(unit);
        }
        let before = self.last.map(|(last, _)| last);
        let is_first = !self.around.contains_key(&unit);
        if is_first {
            self.around.insert(unit, [before, None]);
        }
        self.last = Some((unit, is_first));
    }

    /// What is before and after a kernel.
    pub(super) fn around(&self, unit: u32) -> Option<[Option<u32>; 2]> {
        self.around.get(&unit).copied()
    }
}

/// The shapes of all iterations.
#[derive(Default)]
pub(super) struct Shapes {
    numbers: FxHashMap<Launched, u32>,
    all: Vec<Launched>,
    contexts: FxHashMap<(u32, usize), Contexts>,
}

impl Shapes {
    /// The number of a shape.
    pub(super) fn number(&mut self, launched: Launched, side: usize, contexts: Contexts) -> u32 {
        let number = match self.numbers.get(&launched) {
            Some(number) => *number,
            None if self.all.len() >= MOST => return MOST as u32,
            None => {
                let number = self.all.len() as u32;
                self.all.push(launched.clone());
                self.numbers.insert(launched, number);
                number
            }
        };
        if (number as usize) < WITH_CONTEXTS {
            self.contexts.entry((number, side)).or_insert(contexts);
        }
        number
    }

    /// What runs around the kernels of a shape on a side.
    pub(super) fn contexts(&self, shape: u32, side: usize) -> Option<&Contexts> {
        self.contexts.get(&(shape, side))
    }

    /// Launches in an iteration of that shape; 0 where it is not known.
    pub(super) fn launches(&self, shape: u32) -> u64 {
        self.all.get(shape as usize).map_or(0, |launched| launched.iter().map(|(_, count)| count).sum())
    }

    /// Puts shapes that are alike into groups; `counts` has how many iterations each has on each side. Groups with `often` iterations on
    /// both sides hold at least half of each side, if it has as many at all.
    pub(super) fn groups(&self, counts: &BTreeMap<u32, [usize; 2]>, often: usize) -> Vec<Vec<u32>> {
        let sum = |shapes: &mut dyn Iterator<Item = &u32>| {
            shapes.fold([0, 0], |[a, b], shape| [a + counts[shape][0], b + counts[shape][1]])
        };
        let all = sum(&mut counts.keys());
        let is_enough = |groups: &Vec<Vec<u32>>| {
            let compared = groups.iter().map(|group| sum(&mut group.iter()));
            let compared =
                compared.filter(|[a, b]| a.min(b) >= &often).fold([0, 0], |[a, b], [c, d]| [a + c, b + d]);
            (0..2).all(|side| 2 * compared[side] >= all[side])
        };
        let mut levels = ALIKE.iter().map(|alike| self.groups_alike(counts, often, *alike));
        let strict = levels.next().unwrap_or_default();
        if all.iter().any(|iterations| *iterations < often) || is_enough(&strict) {
            return strict;
        }
        levels.find(is_enough).unwrap_or(strict)
    }

    /// Groups in which rare shapes are alike by `least`.
    fn groups_alike(&self, counts: &BTreeMap<u32, [usize; 2]>, often: usize, least: f64) -> Vec<Vec<u32>> {
        let count = |shape: &u32| counts[shape];
        // Frequent ones first, whichever side is A.
        let mut shapes: Vec<u32> = counts.keys().copied().collect();
        shapes.sort_by_cached_key(|shape| {
            let [a, b] = count(shape);
            (Reverse(a + b), Reverse(a.min(b)), self.all.get(*shape as usize))
        });
        let mut groups: Vec<Vec<u32>> = Vec::new();
        for shape in shapes {
            let [a, b] = count(&shape);
            let is_frequent = a.max(b) >= often && least > 0.0;
            let alike = |group: &&mut Vec<u32>| self.alike(group[0], shape) >= least;
            match groups.iter_mut().take(PAIRED).find(alike).filter(|_| !is_frequent) {
                Some(group) => group.push(shape),
                None => groups.push(vec![shape]),
            }
        }
        self.paired(groups, counts)
    }

    /// Brings groups together that are on one side each.
    fn paired(&self, groups: Vec<Vec<u32>>, counts: &BTreeMap<u32, [usize; 2]>) -> Vec<Vec<u32>> {
        let on = |group: &[u32], side: usize| group.iter().any(|shape| counts[shape][side] > 0);
        let (mut both, mut sides) = (Vec::new(), [Vec::new(), Vec::new()]);
        for group in groups {
            match (on(&group, 0), on(&group, 1)) {
                (true, true) => both.push(group),
                (true, false) => sides[0].push(group),
                _ => sides[1].push(group),
            }
        }
        let [mut only_a, mut only_b] = sides;
        let mut pairs = Vec::new();
        for (at_a, a) in only_a.iter().take(PAIRED).enumerate() {
            for (at_b, b) in only_b.iter().take(PAIRED).enumerate() {
                pairs.push((self.alike(a[0], b[0]), at_a, at_b));
            }
        }
        pairs.retain(|(alike, ..)| *alike >= ACROSS);
        pairs.sort_by(|(alike, a, b), (other, c, d)| {
            other.total_cmp(alike).then((a + b, a.abs_diff(*b)).cmp(&(c + d, c.abs_diff(*d))))
        });
        for (_, a, b) in pairs {
            if !only_a[a].is_empty() && !only_b[b].is_empty() {
                let mut pair = std::mem::take(&mut only_a[a]);
                pair.append(&mut only_b[b]);
                both.push(pair);
            }
        }
        both.extend(only_a.into_iter().chain(only_b).filter(|group| !group.is_empty()));
        let size =
            |group: &Vec<u32>| group.iter().map(|shape| counts[shape].iter().sum::<usize>()).sum::<usize>();
        both.sort_by_cached_key(|group| (Reverse(size(group)), self.all.get(group[0] as usize)));
        both
    }

    /// How much of what two shapes launch is the same: 1 of equal ones.
    fn alike(&self, one: u32, other: u32) -> f64 {
        let (Some(one), Some(other)) = (self.all.get(one as usize), self.all.get(other as usize)) else {
            return f64::from(u8::from(one == other));
        };
        let (mut same, mut all) = (0, 0);
        let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
        loop {
            match (one.peek(), other.peek()) {
                (None, None) => break,
                (Some((unit, a)), Some((of, b))) if unit == of => {
                    same += a.min(b);
                    all += a.max(b);
                    one.next();
                    other.next();
                }
                (Some((unit, count)), Some((of, _))) if unit < of => {
                    all += count;
                    one.next();
                }
                (Some((_, count)), None) => {
                    all += count;
                    one.next();
                }
                (_, Some((_, count))) => {
                    all += count;
                    other.next();
                }
            }
        }
        if all == 0 { 1.0 } else { same as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(all: &[&[(u32, u64)]]) -> Shapes {
        let mut shapes = Shapes::default();
        for launched in all {
            shapes.number(launched.to_vec(), 0, Contexts::default());
        }
        shapes
    }

    #[test]
    fn iterations_of_other_launches_are_not_compared() {
        let shapes = shapes(&[&[(1, 10), (2, 5)], &[(1, 10), (3, 40)]]);
        let counts = BTreeMap::from([(0, [20, 18]), (1, [2, 2])]);
        assert_eq!(shapes.groups(&counts, 6), [[0], [1]]);
    }

    #[test]
    fn a_replaced_kernel_does_not_part_what_belongs_together() {
        // Decodes and prefills; B has kernel 9 in the place of 2.
        let shapes =
            shapes(&[&[(1, 10), (2, 5)], &[(1, 10), (9, 5)], &[(1, 2), (4, 40)], &[(1, 2), (4, 39), (9, 1)]]);
        let counts = BTreeMap::from([(0, [20, 0]), (1, [0, 20]), (2, [3, 0]), (3, [0, 3])]);
        let other_way: BTreeMap<u32, [usize; 2]> =
            counts.iter().map(|(shape, [a, b])| (*shape, [*b, *a])).collect();
        for counts in [counts, other_way] {
            let mut groups = shapes.groups(&counts, 6);
            groups.iter_mut().for_each(|group| group.sort_unstable());
            assert_eq!(groups, [[0, 1], [2, 3]]);
        }
    }

    #[test]
    fn rare_shapes_go_with_those_they_are_like() {
        let shapes = shapes(&[&[(1, 100)], &[(1, 101)], &[(1, 103)], &[(2, 5)]]);
        let counts = BTreeMap::from([(0, [20, 20]), (1, [1, 0]), (2, [0, 2]), (3, [1, 0])]);
        assert_eq!(shapes.groups(&counts, 6), [vec![0, 2, 1], vec![3]]);
    }

    #[test]
    fn where_no_two_iterations_are_alike_all_go_together() {
        let all: Vec<Vec<(u32, u64)>> = (0..20).map(|at| vec![(at, 5), (99, 1)]).collect();
        let shapes = shapes(&all.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let counts = |each: [usize; 2]| (0..20).map(|at| (at, each)).collect::<BTreeMap<u32, [usize; 2]>>();
        assert_eq!(shapes.groups(&counts([1, 1]), 6).len(), 1);
        assert_eq!(shapes.groups(&counts([6, 6]), 6).len(), 20);
        let few = BTreeMap::from([(0, [1, 9]), (1, [2, 0])]);
        assert_eq!(shapes.groups(&few, 6).len(), 2, "there is no hope for so few");
    }

    #[test]
    fn what_is_around_the_first_launch_is_known() {
        let mut contexts = Contexts::default();
        for unit in [1, 2, 2, 3, 2, 1] {
            contexts.next(unit);
        }
        assert_eq!(contexts.around(1), Some([None, Some(2)]));
        assert_eq!(contexts.around(2), Some([Some(1), Some(2)]));
        assert_eq!(contexts.around(3), Some([Some(2), Some(2)]));
        assert_eq!(contexts.around(4), None);
    }
}
