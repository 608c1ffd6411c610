//! Times of CUPTI's own clock, CLOCK_REALTIME, as times of the recorder's: where CUPTI refuses that clock.
//!
//! Both clocks are read together again and again. What lies between them changes where CLOCK_REALTIME is corrected; between two readings it
//! is taken to change evenly.

use std::collections::VecDeque;

use rpd_preload::clock::{self, Clock};

use super::record::Activity;

/// Readings that are remembered: two minutes, where they are 0.1 s apart.
const MOST: usize = 1200;

/// How often both are read, of which the reading that took the shortest counts.
const TRIES: u32 = 5;

#[derive(Default)]
pub(super) struct WallClock {
    /// In the order of CLOCK_REALTIME: that time, and what CLOCK_MONOTONIC is less.
    readings: VecDeque<(u64, i128)>,
    /// What it was less before CLOCK_REALTIME was set back: no time of since then is behind the last reading.
    before: Option<i128>,
}

impl WallClock {
    /// With a first reading.
    pub(super) fn new() -> WallClock {
        let mut clock = WallClock::default();
        clock.read();
        clock
    }

    /// Reads both.
    pub(super) fn read(&mut self) {
        let read = |_| {
            let before = clock::monotonic();
            let wall = clock::read(Clock::Realtime);
            let took = clock::monotonic() - before;
            (took, wall, before + took / 2)
        };
        if let Some((_, wall, monotonic)) = (0..TRIES).map(read).min() {
            self.add(wall, monotonic);
        }
    }

    fn add(&mut self, wall: u64, monotonic: u64) {
        if let Some((last, less)) = self.readings.back()
            && *last >= wall
        {
            self.before = Some(*less);
            self.readings.clear();
        }
        if self.readings.len() == MOST {
            self.readings.pop_front();
        }
        self.readings.push_back((wall, i128::from(wall) - i128::from(monotonic)));
    }

    /// A record with its times on the recorder's clock.
    pub(super) fn converted(&self, mut activity: Activity) -> Activity {
        let times = match &mut activity {
            Activity::Call(call) => [&mut call.start, &mut call.end],
            Activity::Operation(operation) => [&mut operation.start, &mut operation.end],
            Activity::Detail(..) | Activity::Fact(_) => return activity,
        };
        for time in times {
            *time = self.monotonic(*time);
        }
        activity
    }

    /// 0, which stands for no time, stays.
    fn monotonic(&self, wall: u64) -> u64 {
        let after = self.readings.partition_point(|(known, _)| *known <= wall);
        let before = after.checked_sub(1).and_then(|place| self.readings.get(place));
        let after = self.readings.get(after);
        let less = match (before, after) {
            (Some((from, one)), Some((to, other))) => {
                one + (other - one) * i128::from(wall - from) / i128::from(to - from)
            }
            (Some((_, less)), None) => self.before.unwrap_or(*less),
            (None, Some((_, less))) => *less,
            (None, None) => 0,
        };
        if wall == 0 { 0 } else { u64::try_from(i128::from(wall) - less).unwrap_or(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_between_two_readings_are_moved_by_what_lies_between_them() {
        let mut clock = WallClock::default();
        assert_eq!(clock.monotonic(77), 77);
        clock.add(1_000, 100);
        // By then CLOCK_REALTIME was slowed down by 20 ns, and later by none.
        clock.add(2_000, 1_120);
        clock.add(3_000, 2_120);
        let of = |wall| clock.monotonic(wall);
        assert_eq!(
            [of(900), of(1_000), of(1_500), of(2_000), of(2_500), of(3_500)],
            [0, 100, 610, 1_120, 1_620, 2_620]
        );
        assert_eq!(of(0), 0);
    }

    #[test]
    fn a_clock_that_is_set_back_has_two_times_for_a_moment() {
        let mut clock = WallClock::default();
        clock.add(1_000, 100);
        clock.add(5_000, 4_100);
        clock.add(2_000, 4_200);
        // Read before it was set back, and records of then that come now.
        assert_eq!([clock.monotonic(1_900), clock.monotonic(5_100)], [4_100, 4_200]);
        assert_eq!(clock.readings.len(), 1);
        (0..2 * MOST as u64).for_each(|time| clock.add(10_000 + time, time));
        assert_eq!(clock.readings.len(), MOST);
    }
}
