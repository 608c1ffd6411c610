//! The workgroups whose messages analyzers get (DH_COMMS_GROUP_FILTER_X, _Y, _Z).

use std::ops::Range;

/// Ranges of workgroups in three dimensions; all of them at first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockFilter([Option<Range<u32>>; 3]);

impl BlockFilter {
    /// Selects in the dimension `axis` as `text` says: `N` one workgroup, `N:M` those from N up to, not including, M.
    ///
    /// # Errors
    /// What it must be.
    pub fn set(&mut self, axis: usize, text: &str) -> Result<(), String> {
        let must =
            || "must be N, or N:M with N below M, both 0 or more: M itself is not selected".to_string();
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| must());
        let range = match text.split_once(':') {
            Some((first, end)) => number(first)?..number(end)?,
            None => {
                let only = number(text)?;
                only..only.saturating_add(1)
            }
        };
        if range.is_empty() {
            return Err(must());
        }
        self.0[axis] = Some(range);
        Ok(())
    }

    /// The ranges, each from one number up to, not including, another.
    pub fn ranges(&self) -> [Option<(u32, u32)>; 3] {
        [0, 1, 2].map(|axis| self.0[axis].as_ref().map(|range| (range.start, range.end)))
    }

    /// Those ranges.
    pub fn of(ranges: [Option<(u32, u32)>; 3]) -> BlockFilter {
        BlockFilter(ranges.map(|range| range.map(|(start, end)| start..end)))
    }

    /// Whether messages of a workgroup are wanted.
    pub fn allows(&self, block: [u16; 3]) -> bool {
        self.0
            .iter()
            .zip(block)
            .all(|(range, place)| range.as_ref().is_none_or(|range| range.contains(&place.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_and_ranges() {
        let filter = |axis, text: &str| {
            let mut filter = BlockFilter::default();
            filter.set(axis, text).map(|()| filter)
        };
        let allowed = |filter: &BlockFilter| (0..6).filter(|x| filter.allows([*x, 0, 9])).collect::<Vec<_>>();
        assert_eq!(allowed(&BlockFilter::default()), [0, 1, 2, 3, 4, 5]);
        assert_eq!(allowed(&filter(0, "3").unwrap()), [3]);
        assert_eq!(allowed(&filter(0, "1:3").unwrap()), [1, 2]);
        assert_eq!(allowed(&filter(2, "8").unwrap()), [0; 0]);
        for wrong in ["-1", "3:1", "2:2", "", "a", "1:", "1:2:3", "-1:4"] {
            assert!(filter(0, wrong).is_err(), "{wrong}");
        }
    }
}
