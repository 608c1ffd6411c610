//! A GPU from its first operation to its last, beside the steps of its sensor.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use anyhow::Result;

use super::groups::GroupedOp;
use super::sensor::EnergyStep;

/// What ran in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunningOps {
    /// Nothing so far.
    Nothing,
    /// Operations of that group alone.
    Only(i64),
    /// Those of several groups, all of which are that one or parts of it.
    Within(i64),
    /// Those of several groups that are no parts of one.
    Several,
}

/// The group that each group is a part of, before it among all.
#[derive(Debug, Clone, Default)]
pub(super) struct Parents(pub(super) Vec<Option<usize>>);

impl Parents {
    /// The innermost group that both are, or are parts of.
    fn common(&self, mut one: i64, mut other: i64) -> Option<i64> {
        while one != other {
            let later = if one > other { &mut one } else { &mut other };
            let parent = usize::try_from(*later).ok().and_then(|group| self.0.get(group).copied().flatten());
            *later = i64::try_from(parent?).ok()?;
        }
        Some(one)
    }
}

impl RunningOps {
    fn and(self, other: RunningOps, parents: &Parents) -> RunningOps {
        use RunningOps::{Nothing, Only, Several, Within};
        match (self, other) {
            (Nothing, runs) | (runs, Nothing) => runs,
            (one, other) if one == other => one,
            (Only(one) | Within(one), Only(other) | Within(other)) => {
                parents.common(one, other).map_or(Several, Within)
            }
            _ => Several,
        }
    }
}

/// What an operation, or a group of them, got of the steps.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Share {
    /// Above the idle floor.
    pub(super) joules: f64,
    /// Of that, what is of steps in which nothing ran but the group and its parts.
    pub(super) measured: f64,
    /// Time in steps.
    pub(super) ns: u64,
    /// Operations that ran while no sensor was read.
    pub(super) unread: u64,
}

impl Share {
    pub(super) fn add(&mut self, other: &Share) {
        self.joules += other.joules;
        self.measured += other.measured;
        self.ns += other.ns;
        self.unread += other.unread;
    }

    fn since(&self, earlier: &Share) -> Share {
        Share {
            joules: self.joules - earlier.joules,
            measured: self.measured - earlier.measured,
            ns: self.ns - earlier.ns,
            unread: 0,
        }
    }
}

/// Everything before `now` has been counted.
pub(super) struct EnergySweep<'a> {
    now: i64,
    /// The step that is not over at `now`.
    step: usize,
    /// How many operations of each group run, and how many in all.
    running: BTreeMap<i64, u64>,
    all: u64,
    /// What an operation would have got that ran from the beginning on, always as one of those that run.
    one: Share,
    /// Ends of what runs, with its group, and the place of its start and of what `one` was then.
    ends: BinaryHeap<Reverse<(i64, i64, usize)>>,
    begun: Vec<(i64, Share)>,
    free: Vec<usize>,
    parents: &'a Parents,
}

impl<'a> EnergySweep<'a> {
    pub(super) fn new(now: i64, parents: &'a Parents) -> EnergySweep<'a> {
        EnergySweep {
            parents,
            now,
            step: 0,
            running: BTreeMap::new(),
            all: 0,
            one: Share::default(),
            ends: BinaryHeap::new(),
            begun: Vec::new(),
            free: Vec::new(),
        }
    }

    /// An operation begins, none before those that have begun. `ended` is told of each that is over: its group and share.
    ///
    /// # Errors
    /// Those of `ended`.
    pub(super) fn begin(
        &mut self,
        steps: &mut [EnergyStep],
        op: &GroupedOp,
        ended: &mut impl FnMut(i64, Share) -> Result<()>,
    ) -> Result<()> {
        self.end_until(steps, op.start, ended)?;
        self.advance(steps, op.start);
        *self.running.entry(op.group).or_default() += 1;
        self.all += 1;
        let place = match self.free.pop() {
            Some(place) => {
                self.begun[place] = (op.start, self.one);
                place
            }
            None => {
                self.begun.push((op.start, self.one));
                self.begun.len() - 1
            }
        };
        self.ends.push(Reverse((op.end, op.group, place)));
        Ok(())
    }

    /// Ends what runs.
    ///
    /// # Errors
    /// Those of `ended`.
    pub(super) fn finish(
        mut self,
        steps: &mut [EnergyStep],
        ended: &mut impl FnMut(i64, Share) -> Result<()>,
    ) -> Result<()> {
        self.end_until(steps, i64::MAX, ended)
    }

    fn end_until(
        &mut self,
        steps: &mut [EnergyStep],
        time: i64,
        ended: &mut impl FnMut(i64, Share) -> Result<()>,
    ) -> Result<()> {
        while let Some(&Reverse((end, group, place))) = self.ends.peek()
            && end <= time
        {
            self.ends.pop();
            self.advance(steps, end);
            if let Some(running) = self.running.get_mut(&group) {
                *running -= 1;
                if *running == 0 {
                    self.running.remove(&group);
                }
            }
            self.all -= 1;
            self.free.push(place);
            let (start, begun) = &self.begun[place];
            let mut share = self.one.since(begun);
            share.unread = u64::from(share.ns == 0 && end > *start);
            ended(group, share)?;
        }
        Ok(())
    }

    fn runs(&self) -> RunningOps {
        let mut runs = RunningOps::Nothing;
        for group in self.running.keys() {
            runs = runs.and(RunningOps::Only(*group), self.parents);
            if runs == RunningOps::Several {
                break;
            }
        }
        runs
    }

    fn advance(&mut self, steps: &mut [EnergyStep], time: i64) {
        while self.now < time {
            let Some(step) = steps.get_mut(self.step) else { break };
            if step.end <= self.now {
                self.step += 1;
                continue;
            }
            let until = step.end.min(time);
            if self.all > 0 && step.start < until {
                let ns = until.abs_diff(self.now.max(step.start));
                step.busy_ns += ns;
                if step.runs != RunningOps::Several {
                    step.runs = step.runs.and(self.runs(), self.parents);
                }
                // Nothing on the first sweep, after which it is known what ran in the whole step.
                let joules = step.joules_per_busy_ns * ns as f64 / self.all as f64;
                self.one.joules += joules;
                self.one.ns += ns;
                if matches!(step.runs, RunningOps::Only(_)) {
                    self.one.measured += joules;
                }
            }
            self.now = until;
        }
        self.now = self.now.max(time);
    }
}
