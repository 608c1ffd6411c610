//! From samples to rows: a row is a time in which a sensor's value did not change.

use super::metric::Micro;

/// A row to be. Times in ns of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Which sensor.
    pub(super) sensor: usize,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) value: Micro,
}

/// A run that goes on.
#[derive(Clone, Copy, Debug)]
struct Open {
    start: u64,
    /// The latest sample.
    last: u64,
    /// When the sensor was last asked and had that value.
    asked: u64,
    value: Micro,
    /// Samples that are earlier than now may be still to come.
    is_buffered: bool,
}

/// How long the value of a sample in a driver's buffer is taken to last, ns: until the next one, which is asked for a while later.
const BUFFERED: u64 = 120_000_000;

/// A sample may be of a moment that lies so far back, ns.
const LATEST: u64 = 10_000_000_000;

/// A value is not taken to last until the next sample where that comes so many times later than it should.
const MISSED: u64 = 10;
/// Nor where it comes so much later than the last one, ns, if that is more. A busy machine may hold the thread up for less.
const PAUSED: u64 = 500_000_000;

pub(super) struct Runs {
    open: Vec<Option<Open>>,
    /// Time from one sample to the next: no value is taken to last longer than that after its last sample, but for those of buffers.
    period: u64,
    /// A run that is longer is cut, so that a process that is killed has most of it in its file.
    longest: u64,
}

impl Runs {
    /// Of so many sensors; times in ns.
    pub(super) fn new(sensors: usize, period: u64, longest: u64) -> Runs {
        Runs { open: vec![None; sensors], period, longest }
    }

    /// A sample.
    pub(super) fn sample(&mut self, sensor: usize, time: u64, value: Micro, emit: impl FnMut(Run)) {
        self.add(sensor, Open { start: time, last: time, asked: time, value, is_buffered: false }, emit);
    }

    /// A sample that the driver took before now. One that is not later than the one before counts from there on.
    pub(super) fn buffered(&mut self, sensor: usize, time: u64, value: Micro, emit: impl FnMut(Run)) {
        self.earlier(sensor, (time, time), value, emit);
    }

    /// A sample of an earlier time, and when the sensor was asked for it. As [`Runs::buffered`] else.
    pub(super) fn earlier(
        &mut self,
        sensor: usize,
        (time, asked): (u64, u64),
        value: Micro,
        emit: impl FnMut(Run),
    ) {
        let time = self.open[sensor].map_or(time, |run| time.max(run.last));
        let new = Open { start: time, last: time, asked: asked.max(time), value, is_buffered: true };
        self.add(sensor, new, emit);
    }

    /// The sensor was asked, and has sampled nothing since it was last asked. Its next sample may be of an earlier moment.
    pub(super) fn unchanged(&mut self, sensor: usize, time: u64, value: Micro, emit: impl FnMut(Run)) {
        match self.open[sensor] {
            Some(run) if run.value == value && !self.is_paused(run, time) => {
                self.open[sensor] = Some(Open { asked: run.asked.max(time), ..run });
            }
            _ => self.earlier(sensor, (time, time), value, emit),
        }
    }

    fn add(&mut self, sensor: usize, new: Open, mut emit: impl FnMut(Run)) {
        if let Some(run) = self.open[sensor]
            && self.is_paused(run, new.start)
        {
            self.end(sensor, new.start, &mut emit);
        }
        let open = &mut self.open[sensor];
        match open {
            Some(run) if run.value == new.value && new.start - run.start < self.longest => {
                *run = Open { start: run.start, asked: new.asked.max(run.asked), ..new };
                return;
            }
            Some(run) => emit_sound(sensor, *run, new.start, &mut emit),
            None => {}
        }
        *open = Some(new);
    }

    /// The sensor has no value any more.
    pub(super) fn end(&mut self, sensor: usize, time: u64, mut emit: impl FnMut(Run)) {
        if let Some(run) = self.open[sensor].take() {
            emit_sound(sensor, run, self.end_of(run, time), &mut emit);
        }
    }

    /// Recording ends or pauses.
    pub(super) fn end_all(&mut self, time: u64, mut emit: impl FnMut(Run)) {
        (0..self.open.len()).for_each(|sensor| self.end(sensor, time, &mut emit));
    }

    /// Another process has the sensors.
    pub(super) fn forget(&mut self, sensors: std::ops::Range<usize>) {
        self.open[sensors].fill(None);
    }

    /// What there is so far is to be in the file. Runs go on; those that have just begun are left as they are.
    pub(super) fn cut(&mut self, time: u64, mut emit: impl FnMut(Run)) {
        for sensor in 0..self.open.len() {
            let Some(run) = self.open[sensor] else { continue };
            let end = match run.is_buffered {
                true => run.last.max(run.asked.saturating_sub(LATEST)),
                false => self.end_of(run, time),
            };
            if end >= run.start + self.period {
                emit_sound(sensor, run, end, &mut emit);
                self.open[sensor] = Some(Open { start: end, last: end, asked: end.max(run.asked), ..run });
            }
        }
    }

    /// Whether there were no samples for so long before that time that nobody knows what was there.
    fn is_paused(&self, run: Open, time: u64) -> bool {
        time.saturating_sub(run.asked) > PAUSED.max(MISSED * self.lasts(run))
    }

    fn end_of(&self, run: Open, time: u64) -> u64 {
        time.min(run.asked + self.lasts(run))
    }

    /// How long the value of a sample is taken to last where no other follows.
    fn lasts(&self, run: Open) -> u64 {
        if run.is_buffered { self.period.max(BUFFERED) } else { self.period }
    }
}

fn emit_sound(sensor: usize, run: Open, end: u64, emit: &mut impl FnMut(Run)) {
    if end > run.start {
        emit(Run { sensor, start: run.start, end, value: run.value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of samples of one sensor, and of what is done at the end.
    fn runs(
        samples: &[(u64, Micro)],
        end: impl FnOnce(&mut Runs, &mut Vec<(u64, u64, Micro)>),
    ) -> Vec<(u64, u64, Micro)> {
        let (mut runs, mut rows) = (Runs::new(1, 10, 100), Vec::new());
        for (time, value) in samples {
            runs.sample(0, *time, *value, |run| rows.push((run.start, run.end, run.value)));
        }
        end(&mut runs, &mut rows);
        rows
    }

    #[test]
    fn a_row_ends_where_another_value_begins() {
        let rows = runs(&[(0, 5), (10, 5), (20, 7), (30, 5)], |runs, rows| {
            runs.end_all(35, |run| rows.push((run.start, run.end, run.value)));
            runs.end_all(36, |run| rows.push((run.start, run.end, run.value)));
        });
        assert_eq!(rows, [(0, 20, 5), (20, 30, 7), (30, 35, 5)]);
    }

    #[test]
    fn a_value_does_not_outlast_its_last_sample() {
        let ended = |at| {
            runs(&[(0, 5)], |runs, rows| runs.end(0, at, |run| rows.push((run.start, run.end, run.value))))
        };
        assert_eq!(ended(7), [(0, 7, 5)]);
        assert_eq!(ended(7000), [(0, 10, 5)]);
        // Recording had paused before the sample that came all the same.
        assert_eq!(
            runs(&[(50, 5)], |runs, rows| runs.end(0, 40, |run| rows.push((run.start, run.end, run.value)))),
            []
        );
    }

    /// The process was stopped, say.
    #[test]
    fn a_value_does_not_last_over_a_time_without_samples() {
        let late = 10 + PAUSED;
        let rows = |samples: &[(u64, Micro)]| {
            runs(samples, |runs, rows| {
                runs.end_all(samples[samples.len() - 1].0 + 3, |run| {
                    rows.push((run.start, run.end, run.value))
                });
            })
        };
        assert_eq!(rows(&[(0, 5), (10, 5), (late, 5)]), [(0, late, 5), (late, late + 3, 5)]);
        let later = late + 1;
        for value in [5, 6] {
            assert_eq!(rows(&[(0, 5), (10, 5), (later, value)]), [(0, 20, 5), (later, later + 3, value)]);
        }
    }

    #[test]
    fn runs_go_on_where_they_are_cut() {
        let rows = runs(&[(0, 5), (10, 5)], |runs, rows| {
            for time in [15, 16, 24] {
                runs.cut(time, |run| rows.push((run.start, run.end, run.value)));
            }
            runs.sample(0, 25, 5, |run| rows.push((run.start, run.end, run.value)));
            runs.sample(0, 30, 6, |run| rows.push((run.start, run.end, run.value)));
        });
        assert_eq!(rows, [(0, 15, 5), (15, 30, 5)]);
    }

    #[test]
    fn samples_of_the_drivers_buffer_lie_before_now() {
        let mut rows = Vec::new();
        let mut runs = Runs::new(1, 10, 100);
        let mut emit = |run: Run| rows.push((run.start, run.end, run.value));
        // What is read at once, of which the first two are of a time before the recording.
        for (time, value) in [(50, 3), (50, 4), (70, 5), (90, 6)] {
            runs.buffered(0, time, value, &mut emit);
        }
        // The next one is of this time, but is read later.
        runs.cut(105, &mut emit);
        for (time, value) in [(95, 7), (85, 8), (120, 8)] {
            runs.buffered(0, time, value, &mut emit);
        }
        runs.cut(125, &mut emit);
        runs.end_all(140, &mut emit);
        assert_eq!(rows, [(50, 70, 4), (70, 90, 5), (90, 95, 6), (95, 120, 8), (120, 140, 8)]);
    }

    /// A counter that stands still for a while, and then has moved some time ago.
    #[test]
    fn a_change_is_of_its_own_moment_however_late_it_is_seen() {
        let mut rows = Vec::new();
        let mut runs = Runs::new(1, 10, 100);
        let mut emit = |run: Run| rows.push((run.start, run.end, run.value));
        runs.buffered(0, 5, 3, &mut emit);
        let late = 10 * PAUSED;
        (1..=10).for_each(|count| runs.unchanged(0, count * PAUSED, 3, &mut emit));
        runs.cut(late, &mut emit);
        runs.earlier(0, (60, late + 5), 4, &mut emit);
        runs.unchanged(0, late + 10, 4, &mut emit);
        runs.end_all(late + 15, &mut emit);
        assert_eq!(rows, [(5, 60, 3), (60, late + 15, 4)]);
        // One that has stopped for good does not wait for ever to be written.
        let mut rows = Vec::new();
        let mut emit = |run: Run| rows.push((run.start, run.end, run.value));
        runs.buffered(0, 5, 3, &mut emit);
        (1..=LATEST / PAUSED).for_each(|count| runs.unchanged(0, count * PAUSED + 100, 3, &mut emit));
        runs.cut(LATEST + 100, &mut emit);
        let end = LATEST + BUFFERED + 100;
        runs.end_all(end + 100, &mut emit);
        // Recording goes on after a pause.
        runs.unchanged(0, end + 1000, 3, &mut emit);
        runs.end_all(end + 1005, &mut emit);
        assert_eq!(rows, [(5, 100, 3), (100, end, 3), (end + 1000, end + 1005, 3)]);
        // So it does after one that nobody has said: the machine was busy.
        let mut rows = Vec::new();
        let mut emit = |run: Run| rows.push((run.start, run.end, run.value));
        runs.buffered(0, 5, 3, &mut emit);
        let resumed = 2 * MISSED * BUFFERED;
        for later in [0, 50, 100] {
            runs.unchanged(0, resumed + later, 3, &mut emit);
            runs.cut(resumed + later, &mut emit);
        }
        runs.earlier(0, (resumed + 20, resumed + 110), 4, &mut emit);
        runs.end_all(resumed + 120, &mut emit);
        let paused = 5 + BUFFERED;
        assert_eq!(rows, [(5, paused, 3), (resumed, resumed + 20, 3), (resumed + 20, resumed + 120, 4)]);
    }

    #[test]
    fn long_runs_come_in_parts() {
        let samples: Vec<(u64, Micro)> = (0..25).map(|place| (place * 10, 3)).collect();
        let rows =
            runs(&samples, |runs, rows| runs.end_all(245, |run| rows.push((run.start, run.end, run.value))));
        assert_eq!(rows, [(0, 100, 3), (100, 200, 3), (200, 245, 3)]);
    }
}
