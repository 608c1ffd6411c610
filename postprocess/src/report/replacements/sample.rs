//! The times of one build: as many of them as are kept, drawn from all with the same chance.

use fastrand::Rng;

use super::interval::SEED;

/// How many are kept of a build.
pub(super) const MOST: usize = 5000;

/// A dispatch that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SampledDispatch {
    pub(super) start: i64,
    pub(super) duration: u64,
    /// How long its queue was idle before, ns; none of the first dispatch on it.
    pub(super) gap: Option<u64>,
}

/// Dispatches of a build.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    taken: Vec<SampledDispatch>,
    seen: u64,
    random: Rng,
}

impl Sample {
    /// None yet.
    pub(super) fn new() -> Sample {
        Sample { taken: Vec::new(), seen: 0, random: Rng::with_seed(SEED) }
    }

    /// Offers one (Vitter's algorithm R).
    pub(super) fn offer(&mut self, dispatch: SampledDispatch) {
        self.seen += 1;
        if self.taken.len() < MOST {
            self.taken.push(dispatch);
            return;
        }
        let place = self.random.u64(..self.seen) as usize;
        if let Some(taken) = self.taken.get_mut(place) {
            *taken = dispatch;
        }
    }

    /// Those that were taken, in order of time.
    pub(super) fn into_taken(mut self) -> Vec<SampledDispatch> {
        self.taken.sort_unstable();
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: u64) -> Vec<SampledDispatch> {
        let mut sample = Sample::new();
        for number in 0..count {
            sample.offer(SampledDispatch { start: number as i64, duration: number, gap: None });
        }
        sample.into_taken()
    }

    #[test]
    fn all_are_kept_or_the_same_part_of_all() {
        assert_eq!(of(MOST as u64).len(), MOST);
        let some = of(10 * MOST as u64);
        assert_eq!(some.len(), MOST);
        assert!(some.is_sorted_by(|a, b| a.start < b.start), "in order, none twice");
        // Each tenth of all has a tenth of them: 500 with a standard deviation of 20.
        for tenth in 0..10 {
            let inside = |taken: &&SampledDispatch| taken.duration / MOST as u64 == tenth;
            let count = some.iter().filter(inside).count();
            assert!((420..580).contains(&count), "{tenth}: {count}");
        }
        assert_eq!(some, of(10 * MOST as u64));
    }
}
