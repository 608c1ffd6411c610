//! The two sides of one kernel, copy, call or marker: how much more it takes, and how sure that is.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Serialize, Serializer};

use super::division::{Role, RunPart};
use super::read::{DiffSums, PartTotal, Spent};
use super::replaced::pairs;
use super::{DiffOptions, EFFECT_PERCENT, FALSE_DISCOVERIES, Sampled, UnitKind};
use crate::pass::sorted::Sorted;
use crate::statistics::{Centre, Modes, false_discovery, mean, modes, rank_test, ratio_interval};

/// What is said of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeVerdict {
    /// B takes more time.
    Slower,
    /// B takes less.
    Faster,
    /// A has none of it.
    New,
    /// B has none of it.
    Gone,
    /// It may take as much.
    NoChangeShown,
    /// There are too few values on a side to tell.
    TooFew,
}

impl ChangeVerdict {
    /// Its word for programs; with blanks for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ChangeVerdict::Slower => "slower",
            ChangeVerdict::Faster => "faster",
            ChangeVerdict::New => "new",
            ChangeVerdict::Gone => "gone",
            ChangeVerdict::NoChangeShown => "no-change-shown",
            ChangeVerdict::TooFew => "too-few",
        }
    }

    /// Changes first, what is not known before what did not change.
    fn order(self) -> u8 {
        match self {
            ChangeVerdict::Slower | ChangeVerdict::Faster | ChangeVerdict::New | ChangeVerdict::Gone => 0,
            ChangeVerdict::TooFew => 1,
            ChangeVerdict::NoChangeShown => 2,
        }
    }
}

impl Serialize for ChangeVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Two modes of the durations of a kernel's launches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RowModes {
    /// Median of the shorter ones, ns.
    pub lower_ns: f64,
    /// Median of the longer ones, ns.
    pub upper_ns: f64,
    /// Share of the longer ones, in percent.
    pub upper_percent: f64,
}

/// Something that A and B have, or one of them.
#[derive(Debug, Clone, Serialize)]
pub struct DiffRow {
    /// What it is.
    pub kind: UnitKind,
    /// Its name in A, or in B where A has none of it.
    pub name: String,
    /// The kernel that B has in its place.
    pub replaced_by: Option<String>,
    /// The group of iterations; `run`: all of a run; `outside`: what is in no iteration.
    pub group: String,
    /// What is said of it.
    pub result: ChangeVerdict,
    /// Whether the change is as large as [`EFFECT_PERCENT`] of the run.
    pub counts: bool,
    /// Middle of A's values, ns.
    pub a_ns: f64,
    /// Middle of B's values, ns.
    pub b_ns: f64,
    /// The one less the other, ns.
    pub change_ns: f64,
    /// That as percent of A; none where A takes no time.
    pub change_percent: Option<f64>,
    /// Lower end of the 95 % interval of it.
    pub low_percent: Option<f64>,
    /// Upper end.
    pub high_percent: Option<f64>,
    /// What the change makes of a run, ns.
    pub effect_ns: f64,
    /// Share of a run that it takes, in A or B: of the busy time of its GPUs, or of its length. In percent.
    pub share_percent: f64,
    /// Cliff's delta, from -1 to 1.
    pub delta: Option<f64>,
    /// p-value of Mann and Whitney's test.
    pub p: Option<f64>,
    /// The same after Benjamini and Hochberg, of all rows that were tested.
    pub q: Option<f64>,
    /// How the middle is taken: `median`, or `mean` where a median is 0.
    pub centre: &'static str,
    /// Values of A.
    pub a_samples: usize,
    /// Values of B.
    pub b_samples: usize,
    /// Launches, calls or markers of A for each iteration; of a run without iterations for each run.
    pub a_calls: f64,
    /// The same of B.
    pub b_calls: f64,
    /// All of A, ns.
    pub a_total_ns: u64,
    /// All of B, ns.
    pub b_total_ns: u64,
    /// Where the launches of a kernel in A have two modes.
    pub a_modes: Option<RowModes>,
    /// The same in B.
    pub b_modes: Option<RowModes>,
}

/// The group of what is of all of a run.
pub(super) const WHOLE_RUN: &str = "run";

/// Parts of runs that are compared with each other.
struct Scope {
    label: String,
    /// How many of them each file has.
    files: Vec<usize>,
}

impl Scope {
    fn new(label: String, files: usize) -> Scope {
        Scope { label, files: vec![0; files] }
    }

    fn parts(&self, of_side: &[usize], side: usize) -> usize {
        self.files.iter().zip(of_side).filter(|(_, of)| **of == side).map(|(parts, _)| parts).sum()
    }
}

/// Values of something in a scope.
struct Taken {
    kind: UnitKind,
    /// By file.
    values: Vec<Vec<f64>>,
    counts: [u64; 2],
    totals: [u64; 2],
}

/// Kernels of one side alone, in one scope: each with its samples.
type OneSided = [Vec<(u32, Vec<PartTotal>)>; 2];

/// What is compared, and how.
pub(super) struct Comparing<'a> {
    sums: &'a DiffSums<'a>,
    parts: &'a [RunPart],
    runs: &'a [Spent],
    of_side: &'a [usize],
    sampled: Sampled,
    options: &'a DiffOptions<'a>,
    scopes: Vec<Scope>,
    /// Per part its scope.
    scope_of: Vec<Option<usize>>,
    /// The shapes of each scope that has some.
    shapes: &'a [Vec<u32>],
}

impl<'a> Comparing<'a> {
    pub(super) fn new(
        (sums, parts, runs, of_side): (&'a DiffSums<'a>, &'a [RunPart], &'a [Spent], &'a [usize]),
        shapes: &'a [Vec<u32>],
        sampled: Sampled,
        options: &'a DiffOptions<'a>,
    ) -> Comparing<'a> {
        let scope = |label: String| Scope::new(label, of_side.len());
        let mut scopes: Vec<Scope> = (1..=shapes.len()).map(|number| scope(number.to_string())).collect();
        let has_outside = parts.iter().any(|part| part.role == Role::Outside);
        let rest = scopes.len();
        scopes.push(scope(if has_outside { "outside" } else { "run" }.to_string()));
        let group_of: BTreeMap<u32, usize> = shapes
            .iter()
            .enumerate()
            .flat_map(|(at, shapes)| shapes.iter().map(move |shape| (*shape, at)))
            .collect();
        let mut scope_of = Vec::with_capacity(parts.len());
        for (part, RunPart { file, role, .. }) in parts.iter().enumerate() {
            let of = match role {
                Role::Skipped => None,
                Role::Outside => Some(rest),
                Role::Counts => Some(group_of.get(&sums.shape_of(part as u32)).copied().unwrap_or(rest)),
            };
            if let Some(of) = of {
                scopes[of].files[*file] += 1;
            }
            scope_of.push(of);
        }
        Comparing { sums, parts, runs, of_side, sampled, options, scopes, scope_of, shapes }
    }

    /// How many iterations of a group A and B have.
    pub(super) fn iterations(&self, group: usize) -> [usize; 2] {
        [0, 1].map(|side| self.scopes[group].parts(self.of_side, side))
    }

    /// Whether a run is cut into blocks: values are mean durations then.
    fn has_blocks(&self) -> bool {
        self.shapes.is_empty() && self.scopes.first().is_some_and(|scope| scope.label == "run")
    }

    /// All rows, and how many of them were tested.
    ///
    /// # Errors
    /// When a temporary file cannot be read.
    pub(super) fn rows(&self, mut samples: Sorted<PartTotal>) -> Result<(Vec<DiffRow>, usize)> {
        let mut rows = self.totals();
        let mut one_sided: BTreeMap<usize, OneSided> = BTreeMap::new();
        let mut next = samples.next()?;
        while let Some(first) = next {
            let mut of_unit: BTreeMap<usize, Vec<PartTotal>> = BTreeMap::new();
            while let Some(sample) = next.filter(|sample| sample.unit == first.unit) {
                if let Some(scope) = self.scope_of[sample.part as usize] {
                    of_unit.entry(scope).or_default().push(sample);
                }
                next = samples.next()?;
            }
            self.unit(first.unit, of_unit, &mut rows, &mut one_sided);
        }
        for (scope, sides) in one_sided {
            self.replaced(scope, sides, &mut rows);
        }
        let tested: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].p.is_some()).collect();
        let p: Vec<f64> = tested.iter().filter_map(|at| rows[*at].p).collect();
        for (at, q) in tested.iter().zip(false_discovery(&p)) {
            let row = &mut rows[*at];
            row.q = Some(q);
            let (less, more) = (row.a_ns.min(row.b_ns), row.a_ns.max(row.b_ns));
            let is_large = more > less && more >= less * (1.0 + self.options.change_percent / 100.0);
            if q < FALSE_DISCOVERIES && is_large && row.counts {
                row.result = if row.b_ns > row.a_ns { ChangeVerdict::Slower } else { ChangeVerdict::Faster };
            }
        }
        rows.sort_by(|one, other| {
            let key = |row: &DiffRow| match row.kind {
                UnitKind::Total => u8::from(row.group != WHOLE_RUN),
                _ => 2 + row.result.order(),
            };
            let by_effect = other.effect_ns.abs().total_cmp(&one.effect_ns.abs());
            let by_effect = if one.kind == UnitKind::Total { std::cmp::Ordering::Equal } else { by_effect };
            key(one).cmp(&key(other)).then(by_effect).then_with(|| {
                let name = |row: &DiffRow| {
                    (row.kind != UnitKind::Total).then(|| (row.kind, row.name.clone(), row.group.clone()))
                };
                name(one).cmp(&name(other))
            })
        });
        Ok((rows, tested.len()))
    }

    /// The rows of the whole runs, and of the iterations of each group.
    fn totals(&self) -> Vec<DiffRow> {
        const NAMES: [&str; 5] = ["wall", "busy", "idle", "exposed communication", "exposed copies"];
        let each = |spent: &Spent| {
            [
                spent.wall_ns,
                spent.busy_ns,
                spent.idle_ns,
                spent.exposed_communication_ns,
                spent.exposed_copies_ns,
            ]
        };
        let mut rows = Vec::new();
        let whole = {
            let mut scope = Scope::new(WHOLE_RUN.to_string(), self.of_side.len());
            scope.files.fill(1);
            scope
        };
        let runs: Vec<(usize, [u64; 5])> = self.runs.iter().map(each).enumerate().collect();
        let of_scope = |scope: usize| -> Vec<(usize, [u64; 5])> {
            let of = |(part, _): &(usize, &RunPart)| self.scope_of[*part] == Some(scope);
            let spent = |(number, part): (usize, &RunPart)| {
                let spent =
                    self.sums.spent.get(&(number as u32)).map(|(spent, _)| *spent).unwrap_or_default();
                (part.file, each(&Spent { wall_ns: part.wall_ns, ..spent }))
            };
            self.parts.iter().enumerate().filter(of).map(spent).collect()
        };
        let groups = (0..self.shapes.len()).map(|at| (&self.scopes[at], of_scope(at)));
        for (scope, values) in std::iter::once((&whole, runs)).chain(groups) {
            for (at, name) in NAMES.iter().enumerate() {
                let mut taken = Taken {
                    kind: UnitKind::Total,
                    values: vec![Vec::new(); self.of_side.len()],
                    counts: [0; 2],
                    totals: [0; 2],
                };
                for (file, values) in &values {
                    let side = self.of_side[*file];
                    taken.values[*file].push(values[at] as f64);
                    taken.totals[side] = taken.totals[side].saturating_add(values[at]);
                }
                if taken.totals != [0; 2] {
                    rows.extend(self.row(scope, (*name).to_string(), &taken));
                }
            }
        }
        rows
    }

    /// Adds the rows of a unit.
    fn unit(
        &self,
        unit: u32,
        of_unit: BTreeMap<usize, Vec<PartTotal>>,
        rows: &mut Vec<DiffRow>,
        one_sided: &mut BTreeMap<usize, OneSided>,
    ) {
        let side = |sample: &PartTotal| self.of_side[self.parts[sample.part as usize].file];
        let is_on = |wanted: usize| of_unit.values().flatten().any(|sample| side(sample) == wanted);
        let is_everywhere = [is_on(0), is_on(1)];
        let of = self.sums.units.get(unit);
        for (at, samples) in of_unit {
            let scope = &self.scopes[at];
            let is_group = at < self.shapes.len();
            let is_compared = (0..2).all(|side| scope.parts(self.of_side, side) > 0);
            let missing = (0..2).find(|wanted| samples.iter().all(|sample| side(sample) != *wanted));
            match missing {
                Some(missing) if (is_group && is_compared) || !is_everywhere[missing] => {
                    if is_group && is_compared && of.kind == UnitKind::Kernel {
                        one_sided.entry(at).or_default()[1 - missing].push((unit, samples));
                    } else {
                        rows.push(self.alone(scope, unit, &samples, 1 - missing));
                    }
                }
                // It is in iterations that have none like them on the other side.
                Some(_) if is_group && !is_compared => {}
                _ => {
                    let mut found = self.row(scope, of.name.clone(), &self.taken(at, of.kind, &samples));
                    if let Some(row) = found.as_mut().filter(|_| of.kind == UnitKind::Kernel) {
                        row.a_modes = self.modes(unit, 0);
                        row.b_modes = self.modes(unit, 1);
                    }
                    rows.extend(found);
                }
            }
        }
    }

    /// Adds rows of kernels that one side alone has: of those in the place of others together with these.
    fn replaced(&self, at: usize, [gone, new]: OneSided, rows: &mut Vec<DiffRow>) {
        let scope = &self.scopes[at];
        let launches = |units: &[(u32, Vec<PartTotal>)], side: usize| -> Vec<(u32, u64)> {
            let parts = scope.parts(self.of_side, side).max(1) as f64;
            let each = |samples: &Vec<PartTotal>| {
                (samples.iter().map(|sample| sample.count as f64).sum::<f64>() / parts).round() as u64
            };
            units.iter().map(|(unit, samples)| (*unit, each(samples))).collect()
        };
        let contexts =
            |side| self.shapes[at].iter().find_map(|shape| self.sums.shapes.contexts(*shape, side));
        let pairs = match (contexts(0), contexts(1)) {
            (Some(before), Some(after)) => pairs((&launches(&gone, 0), before), (&launches(&new, 1), after)),
            _ => Vec::new(),
        };
        let [gone, new] =
            [gone, new].map(|units| units.into_iter().collect::<BTreeMap<u32, Vec<PartTotal>>>());
        for (a, b) in &pairs {
            let mut samples = gone[a].clone();
            samples.extend(&new[b]);
            let taken = self.taken(at, UnitKind::Kernel, &samples);
            let found = self.row(scope, self.sums.units.get(*a).name.clone(), &taken);
            rows.extend(found.map(|row| DiffRow {
                replaced_by: Some(self.sums.units.get(*b).name.clone()),
                a_modes: self.modes(*a, 0),
                b_modes: self.modes(*b, 1),
                ..row
            }));
        }
        for (side, units) in [gone, new].into_iter().enumerate() {
            let is_alone = |unit: &u32| pairs.iter().all(|pair| [pair.0, pair.1][side] != *unit);
            for (unit, samples) in units.iter().filter(|(unit, _)| is_alone(unit)) {
                rows.push(self.alone(scope, *unit, samples, side));
            }
        }
    }

    /// The row of what one side alone has.
    fn alone(&self, scope: &Scope, unit: u32, samples: &[PartTotal], side: usize) -> DiffRow {
        let at = self.scopes.iter().position(|other| other.label == scope.label).unwrap_or(0);
        let of = self.sums.units.get(unit);
        let taken = self.taken(at, of.kind, samples);
        let mut row = self.blank(scope, of.name.clone(), &taken);
        let parts = scope.parts(self.of_side, side).max(1);
        let each = if self.has_blocks() {
            taken.totals[side] as f64 / taken.counts[side].max(1) as f64
        } else {
            taken.totals[side] as f64 / parts as f64
        };
        let values = if self.has_blocks() { samples.len() } else { parts };
        let effect = taken.totals[side] as f64 / self.files(side);
        if side == 0 {
            (row.a_ns, row.change_ns, row.effect_ns, row.a_samples) = (each, -each, -effect, values);
            (row.result, row.change_percent) = (ChangeVerdict::Gone, Some(-100.0));
            row.a_modes = (of.kind == UnitKind::Kernel).then(|| self.modes(unit, 0)).flatten();
        } else {
            (row.b_ns, row.change_ns, row.effect_ns, row.b_samples) = (each, each, effect, values);
            row.result = ChangeVerdict::New;
            row.b_modes = (of.kind == UnitKind::Kernel).then(|| self.modes(unit, 1)).flatten();
        }
        row.centre = Centre::Mean.name();
        row.counts = effect >= self.reference(of.kind) * EFFECT_PERCENT / 100.0 && effect > 0.0;
        row
    }

    /// What a unit took in each part of a scope.
    fn taken(&self, at: usize, kind: UnitKind, samples: &[PartTotal]) -> Taken {
        let scope = &self.scopes[at];
        let mut taken =
            Taken { kind, values: vec![Vec::new(); self.of_side.len()], counts: [0; 2], totals: [0; 2] };
        for sample in samples {
            let file = self.parts[sample.part as usize].file;
            let side = self.of_side[file];
            taken.counts[side] += sample.count;
            taken.totals[side] = taken.totals[side].saturating_add(sample.total_ns);
            let total = sample.total_ns as f64;
            taken.values[file].push(if self.has_blocks() {
                total / sample.count.max(1) as f64
            } else {
                total
            });
        }
        if !self.has_blocks() {
            for (values, parts) in taken.values.iter_mut().zip(&scope.files) {
                values.resize(*parts, 0.0);
            }
        }
        taken
    }

    /// Compares two sides; None where there is nothing on one of them.
    fn row(&self, scope: &Scope, name: String, taken: &Taken) -> Option<DiffRow> {
        let of = |side: usize| {
            let files = taken.values.iter().zip(self.of_side);
            files.filter(move |(values, of)| **of == side && !values.is_empty()).map(|(values, _)| values)
        };
        let all = |side| -> Vec<f64> { of(side).flatten().copied().collect() };
        let alike = [all(0), all(1)];
        if alike.iter().any(Vec::is_empty) {
            return None;
        }
        let is_run = self.sampled == Sampled::Runs;
        let has_median = |values: &[f64]| Centre::Median.of(values) > 0.0;
        let have_medians = if is_run {
            of(0).chain(of(1)).all(|values| has_median(values))
        } else {
            alike.iter().all(|values| has_median(values))
        };
        let centre = if have_medians { Centre::Median } else { Centre::Mean };
        let samples = match is_run {
            true => [0, 1].map(|side| of(side).map(|values| centre.of(values)).collect::<Vec<f64>>()),
            false => alike,
        };
        let [a, b] = [0, 1].map(|side| centre.of(&samples[side]));
        let mut row = self.blank(scope, name, taken);
        (row.a_ns, row.b_ns, row.change_ns) = (a, b, b - a);
        row.change_percent = (a > 0.0).then(|| 100.0 * (b - a) / a);
        row.centre = centre.name();
        (row.a_samples, row.b_samples) = (samples[0].len(), samples[1].len());
        row.effect_ns = (b - a) * self.per_run(scope, taken);
        row.counts = row.effect_ns.abs() >= self.reference(taken.kind) * EFFECT_PERCENT / 100.0 && a != b;
        if row.a_samples.min(row.b_samples) < self.options.least {
            return Some(row);
        }
        if let Some(test) = rank_test(&samples[0], &samples[1]) {
            (row.p, row.delta) = (Some(test.p), Some(test.delta));
            row.result = ChangeVerdict::NoChangeShown;
        }
        if let Some(interval) = ratio_interval(&samples[0], &samples[1], centre) {
            let percent = |ratio: f64| Some(100.0 * (ratio - 1.0)).filter(|percent| percent.is_finite());
            (row.low_percent, row.high_percent) = (percent(interval.low), percent(interval.high));
        }
        Some(row)
    }

    /// A row with what is known before anything is compared.
    fn blank(&self, scope: &Scope, name: String, taken: &Taken) -> DiffRow {
        let parts =
            |side| if self.has_blocks() { self.files(side) } else { scope.parts(self.of_side, side) as f64 };
        let calls =
            |side: usize| if parts(side) > 0.0 { taken.counts[side] as f64 / parts(side) } else { 0.0 };
        let share = |side: usize| {
            let all = self.spent(side, taken.kind);
            if all > 0.0 { 100.0 * taken.totals[side] as f64 / self.files(side) / all } else { 0.0 }
        };
        DiffRow {
            kind: taken.kind,
            name,
            replaced_by: None,
            group: scope.label.clone(),
            result: ChangeVerdict::TooFew,
            counts: false,
            a_ns: 0.0,
            b_ns: 0.0,
            change_ns: 0.0,
            change_percent: None,
            low_percent: None,
            high_percent: None,
            effect_ns: 0.0,
            share_percent: share(0).max(share(1)),
            delta: None,
            p: None,
            q: None,
            centre: Centre::Median.name(),
            a_samples: 0,
            b_samples: 0,
            a_calls: calls(0),
            b_calls: calls(1),
            a_total_ns: taken.totals[0],
            b_total_ns: taken.totals[1],
            a_modes: None,
            b_modes: None,
        }
    }

    fn files(&self, side: usize) -> f64 {
        self.of_side.iter().filter(|of| **of == side).count().max(1) as f64
    }

    /// How many values of a scope make a run: of the side that has fewer.
    fn per_run(&self, scope: &Scope, taken: &Taken) -> f64 {
        if self.has_blocks() && taken.kind != UnitKind::Total {
            let [a, b] = [0, 1].map(|side| taken.counts[side] as f64 / self.files(side));
            return a.min(b);
        }
        let [a, b] = [0, 1].map(|side| scope.parts(self.of_side, side) as f64 / self.files(side));
        a.min(b)
    }

    /// What the runs of a side took: of work the busy time, else their length.
    fn spent(&self, side: usize, kind: UnitKind) -> f64 {
        let of = self.runs.iter().zip(self.of_side).filter(|(_, of)| **of == side);
        let taken = of.map(|(run, _)| if kind.is_work() { run.busy_ns } else { run.wall_ns } as f64);
        mean(&taken.collect::<Vec<f64>>())
    }

    /// What changes are a share of, the same whichever side is A.
    fn reference(&self, kind: UnitKind) -> f64 {
        f64::midpoint(self.spent(0, kind), self.spent(1, kind))
    }

    fn modes(&self, unit: u32, side: usize) -> Option<RowModes> {
        let launches = self.sums.launches.get(&(unit, side))?;
        modes(&launches.drawn).map(|Modes { lower, upper, upper_share }| RowModes {
            lower_ns: lower,
            upper_ns: upper,
            upper_percent: 100.0 * upper_share,
        })
    }
}
