//! Kernels whose basic blocks are counted (RPDT_COUNT_BLOCKS): rewritten code of the application's own kernels runs in their place, and adds
//! to counters in memory of the device.
//!
//! A rewritten kernel has several slots, each with counters of its own. A dispatch takes the slot that dispatches of the same grid and workgroup
//! use, or one that nobody uses; where there is none the application's kernel runs. Counters are read when nothing that
//! adds to them is in flight, so sums are of whole dispatches.
//!
//! - `counters`: the memory of the counters, and how they get to the file; `waiting`: dispatches in flight whose workgroups may wait for each other

mod counters;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_queue::SegQueue;
use rpd_codeobject::Launch;
use rpd_codeobject::counting::{self, Options, Residency, Variant};
use rpd_transport::counters::Cause;
use rpd_transport::env::Env;
use rpd_transport::recorder;
use rpd_transport::records::KernelId;

use super::dispatches::Dispatches;
use super::gate::DispatchPlace;
use super::outcomes;
use crate::gpu::{kernels, selection};

pub(super) use self::counters::{BlockCounters, CountedBlock, CounterMemory, Visit, finish, read_all};
pub(super) use self::waiting::WaitingUse;
use self::waiting::{Company, WaitingDispatches, WaitingHistory};

/// Dispatches that have ended and that nobody has looked at yet.
const MOST_ENDED: usize = 1 << 17;
/// Work-items of a wave, of all processors whose code is rewritten, and the most waves of a workgroup.
const WAVEFRONT: u32 = 64;
const MOST_WAVES: u32 = 16;
/// The slots of a kernel.
const SLOTS: u32 = 4;

/// What was asked for.
pub(super) struct CountingConfig {
    /// What is counted, and how.
    pub(super) options: Options,
    /// Also where workgroups that may wait for each other no longer all run at once.
    any_grid: bool,
    /// Whoever loads a code object waits until its kernels are rewritten.
    pub(super) waits: bool,
    /// Of which dispatches.
    dispatches: Dispatches,
    waiting: WaitingDispatches,
}

impl CountingConfig {
    /// RPDT_COUNT_BLOCKS, and LOGDUR_DISPATCHES with it.
    pub(super) fn read(env: &mut Env<'_>) -> Option<CountingConfig> {
        let asked = env.text("RPDT_COUNT_BLOCKS")?.to_string_lossy().into_owned();
        let Some(words) = CountingWords::of(&asked) else {
            env.complain(format!(
                "RPDT_COUNT_BLOCKS={asked} is not count, lanes or time; no basic blocks are counted"
            ));
            return None;
        };
        let CountingWords { options, any_grid, waits } = words;
        let dispatches = Dispatches::read(env);
        Some(CountingConfig { options, any_grid, waits, dispatches, waiting: WaitingDispatches::default() })
    }

    /// A kernel of which nothing is known yet.
    pub(super) fn unknown(&'static self, kernel: KernelId) -> Uncounted {
        let early = EarlyDispatches { kernel, count: AtomicU64::new(0) };
        Uncounted { config: self, history: Arc::default(), early: Some(Arc::new(early)) }
    }

    /// A kernel that is not counted, and whose workgroups may wait for each other.
    pub(super) fn waiting_kernel(&'static self) -> Uncounted {
        Uncounted { config: self, history: Arc::default(), early: None }
    }

    /// Whether it matters whose workgroups may wait for each other.
    pub(super) fn keeps_grids(&self) -> bool {
        !self.any_grid
    }
}

/// What RPDT_COUNT_BLOCKS says.
#[derive(Debug, PartialEq, Eq)]
struct CountingWords {
    options: Options,
    any_grid: bool,
    waits: bool,
}

impl CountingWords {
    /// What is counted, and behind it, with commas, how.
    fn of(asked: &str) -> Option<CountingWords> {
        let mut words = asked.split(',');
        let variant = match words.next()? {
            "count" => Variant::Waves,
            "lanes" => Variant::Lanes,
            "time" => Variant::Time,
            _ => return None,
        };
        let options = Options { variant, slots: SLOTS, ..Options::default() };
        let mut asked = CountingWords { options, any_grid: false, waits: true };
        for word in words {
            match word.split_once('=') {
                None if word == "scalar" => asked.options.scalar_first = true,
                None if word == "any-grid" => asked.any_grid = true,
                None if word == "no-wait" => asked.waits = false,
                Some(("reach", words)) => asked.options.branch_limit = words.parse().ok()?,
                _ => return None,
            }
        }
        Some(asked)
    }
}

/// A kernel of the application's that runs as it is: since it is not rewritten yet, or since it is not counted and its workgroups may wait for each other.
pub(super) struct Uncounted {
    config: &'static CountingConfig,
    history: Arc<WaitingHistory>,
    /// None where it will not be rewritten.
    pub(super) early: Option<Arc<EarlyDispatches>>,
}

/// Recorded dispatches of a kernel that came before it was rewritten.
#[derive(Default)]
pub(super) struct EarlyDispatches {
    kernel: KernelId,
    count: AtomicU64,
}

impl EarlyDispatches {
    /// Says how many there were, once, if the kernel was to be counted.
    pub(super) fn say(&self) {
        let count = self.count.swap(0, Ordering::Relaxed);
        let name = kernels::get(self.kernel).filter(|_| count > 0).map(|kernel| kernel.name());
        if let Some(name) = name.filter(|name| selection::has(name) && !kernels::is_runtimes(name)) {
            outcomes::refuse(
                "",
                format!("dispatches of {name} that came before it was rewritten were not counted: {count}"),
            );
        }
    }
}

impl Uncounted {
    /// The dispatch at `place` is in flight until what is returned, if anything, is dropped; its workgroups may wait for each other, as far as is known.
    pub(super) fn begin(
        &self,
        place: DispatchPlace,
        is_in_order: bool,
        recorded: bool,
    ) -> Option<WaitingUse> {
        if let Some(early) = self.early.as_ref().filter(|_| recorded) {
            early.count.fetch_add(1, Ordering::Relaxed);
        }
        let enter = || self.config.waiting.enter(place, is_in_order, &self.history);
        self.config.keeps_grids().then(enter)
    }
}

/// What is known of the queue of a dispatch.
#[derive(Clone, Copy)]
pub(crate) struct QueueFacts {
    /// Compute units that it may use, where that is known.
    pub(crate) compute_units: Option<u32>,
    /// Its GPU has had no other queue.
    pub(crate) is_only: bool,
}

/// What dispatches of one kernel have in common, whose counts are added up.
#[derive(Clone, Copy)]
struct Geometry {
    grid: [u32; 3],
    workgroup: [u16; 3],
}

impl Geometry {
    /// Its number, which no other geometry of a kernel is likely to have: one in 2^39.
    fn number(self) -> u64 {
        const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
        let ([x, y, z], [of_x, of_y, of_z]) = (self.grid.map(u64::from), self.workgroup.map(u64::from));
        let words = [x | y << 32, z | of_x << 32 | of_y << 48, of_z];
        let mixed = words.iter().fold(PRIME, |sum, word| {
            let product = (sum ^ word).wrapping_mul(PRIME);
            product ^ product >> 29
        });
        (mixed.wrapping_mul(PRIME) >> 25).max(1)
    }
}

pub(super) struct CountingKernel {
    config: &'static CountingConfig,
    /// Its number in records.
    kernel: KernelId,
    slots: Vec<CounterSlot>,
    rewritten: counting::CountedKernel,
    /// How many workgroups a compute unit holds that have no LDS: by their number of waves, from 1.
    residency: [Residency; MOST_WAVES as usize],
    launched: AtomicU64,
    /// Dispatches that found no slot.
    missed: AtomicU64,
    /// Of the application's kernel.
    early: Arc<EarlyDispatches>,
    /// There was a dispatch with workgroups that are too large for its registers.
    too_large: AtomicBool,
    /// There was one whose workgroups may wait for each other, and would no longer all run at once.
    may_hang: AtomicBool,
    /// There was one beside another one like that, with which it might no longer fit.
    is_beside: AtomicBool,
    /// There was one that showed first whether there is another one like that beside it.
    is_tried: AtomicBool,
    waiting: Arc<WaitingHistory>,
    ended: SegQueue<(usize, DispatchPlace)>,
}

/// A descriptor with counters of its own.
struct CounterSlot {
    /// Address of the descriptor.
    object: u64,
    /// Whose it is, and how many of their dispatches are in flight.
    state: AtomicU64,
    /// Dispatches that have ended since the counters were read.
    dispatches: AtomicU64,
}

/// A slot's state: the number of its geometry, which is not 0, above the number of dispatches in flight. A free one is 0.
const OWNER: u32 = 24;
/// A state's dispatches in flight.
const IN_FLIGHT: u64 = (1 << OWNER) - 1;
/// The owner of a slot that no further dispatch takes: when those in flight have ended, it is read. Geometries have smaller numbers.
const CLOSED: u64 = 1 << 39;
/// Its counters are being read.
const READ: u64 = u64::MAX;

impl CountingKernel {
    /// The kernel of that number, with descriptors at these addresses.
    pub(super) fn new(
        config: &'static CountingConfig,
        kernel: KernelId,
        objects: &[u64],
        rewritten: counting::CountedKernel,
        early: Arc<EarlyDispatches>,
    ) -> CountingKernel {
        let slot = |object: &u64| CounterSlot {
            object: *object,
            state: AtomicU64::new(0),
            dispatches: AtomicU64::new(0),
        };
        CountingKernel {
            config,
            kernel,
            slots: objects.iter().map(slot).collect(),
            residency: std::array::from_fn(|before| rewritten.residency((before as u32 + 1) * WAVEFRONT, 0)),
            rewritten,
            launched: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            early,
            too_large: AtomicBool::new(false),
            may_hang: AtomicBool::new(false),
            is_beside: AtomicBool::new(false),
            is_tried: AtomicBool::new(false),
            waiting: Arc::default(),
            ended: SegQueue::new(),
        }
    }

    /// Its number in records.
    pub(super) fn number(&self) -> KernelId {
        self.kernel
    }

    /// The dispatch at `place` is in flight until what is returned, if anything, is dropped. `is_in_order`: it begins when all before it on its queue
    /// have ended.
    pub(super) fn enter(&self, place: DispatchPlace, is_in_order: bool) -> Option<WaitingUse> {
        let may_wait = self.rewritten.may_wait && self.config.keeps_grids();
        may_wait.then(|| self.config.waiting.enter(place, is_in_order, &self.waiting))
    }

    /// A slot for the dispatch at `place`, on that queue, if it is to be counted and one is free. `is_in_order`: as for [`CountingKernel::enter`].
    ///
    /// # Errors
    /// It runs the application's kernel. What is returned then, if anything, is to be kept until it has completed.
    pub(super) fn begin(
        self: &Arc<CountingKernel>,
        place: DispatchPlace,
        launch: &Launch,
        queue: QueueFacts,
        is_in_order: bool,
    ) -> Result<CountingUse, Option<WaitingUse>> {
        let waiting = self.enter(place, is_in_order);
        let items: u64 = launch.workgroup.iter().map(|size| u64::from(*size)).product();
        let waves = items.div_ceil(WAVEFRONT.into()) as usize;
        let residency = waves.checked_sub(1).and_then(|before| self.residency.get(before));
        // LDS makes fewer fit of both kernels.
        let with_lds = || self.rewritten.residency(waves as u32 * WAVEFRONT, launch.group_segment);
        let is_larger = |residency: Residency| residency.counting < residency.original;
        let gets_larger =
            || residency.is_some_and(|residency| is_larger(*residency)) && is_larger(with_lds());
        let company = waiting.as_ref().map_or(Company::Nobody, WaitingUse::company);
        // Others need another queue, or no order on this one.
        let may_be_joined = !(queue.is_only && is_in_order);
        // It has no number, so that the first dispatch that is to be counted is one that can be.
        if company == Company::Unknown && may_be_joined && gets_larger() {
            self.is_tried.store(true, Ordering::Relaxed);
            return Err(waiting);
        }
        let number = self.launched.fetch_add(1, Ordering::Relaxed);
        if !self.config.dispatches.takes(number, self.kernel.into()) {
            return Err(waiting);
        }
        let Some(residency) = residency.filter(|residency| residency.counting > 0) else {
            self.too_large.store(true, Ordering::Relaxed);
            return Err(waiting);
        };
        if waiting.is_some() {
            let sizes = launch.grid.iter().zip(launch.workgroup);
            let counts = sizes.map(|(grid, size)| u64::from(grid.div_ceil(u32::from(size).max(1))));
            let workgroups = counts.fold(1, u64::saturating_mul);
            let loses_some = |residency: &Residency| residency.loses_some(workgroups, queue.compute_units);
            if loses_some(residency) && loses_some(&with_lds()) {
                self.may_hang.store(true, Ordering::Relaxed);
                return Err(waiting);
            }
            if company == Company::Others && gets_larger() {
                self.is_beside.store(true, Ordering::Relaxed);
                return Err(waiting);
            }
        }
        let geometry = Geometry { grid: launch.grid, workgroup: launch.workgroup };
        let Some(slot) = self.take(geometry.number()) else {
            self.missed.fetch_add(1, Ordering::Relaxed);
            return Err(waiting);
        };
        Ok(CountingUse { counted: Arc::clone(self), slot, place, _waiting: waiting })
    }

    /// A slot of that owner, with one more dispatch in flight.
    fn take(&self, owner: u64) -> Option<usize> {
        let join = |slot: &CounterSlot| {
            let more = |state: u64| (state != READ && state >> OWNER == owner).then(|| state + 1);
            slot.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, more).is_ok()
        };
        let occupy = |slot: &CounterSlot| {
            slot.state.compare_exchange(0, owner << OWNER | 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        self.slots.iter().position(join).or_else(|| self.slots.iter().position(occupy))
    }

    /// A slot that is never idle would never be read: further dispatches of its owner take another one, if one is free.
    fn close(&self, slot: usize) {
        if self.slots.iter().any(|other| other.state.load(Ordering::Relaxed) == 0) {
            let closed =
                |state: u64| (state != READ && state != 0).then_some(CLOSED << OWNER | state & IN_FLIGHT);
            let _ = self.slots[slot].state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, closed);
        }
    }

    /// Nobody uses the slot while `read` runs. It is free afterwards, or its owner's where `read` returns false. Nothing is read where dispatches are
    /// in flight; whether it was.
    fn while_idle(&self, slot: usize, read: impl FnOnce() -> bool) -> bool {
        let state = &self.slots[slot].state;
        let idle = |state: u64| (state != READ && state & IN_FLIGHT == 0).then_some(READ);
        let Ok(before) = state.fetch_update(Ordering::Acquire, Ordering::Relaxed, idle) else { return false };
        state.store(if read() { 0 } else { before }, Ordering::Release);
        true
    }
}

/// A dispatch whose blocks are counted, until it has completed.
pub(super) struct CountingUse {
    counted: Arc<CountingKernel>,
    slot: usize,
    place: DispatchPlace,
    _waiting: Option<WaitingUse>,
}

impl CountingUse {
    /// Address of the descriptor that runs.
    pub(super) fn object(&self) -> u64 {
        self.counted.slots[self.slot].object
    }

    /// The kernel has run to its end. One that never does keeps its slot.
    pub(super) fn complete(&self) {
        let slot = &self.counted.slots[self.slot];
        slot.dispatches.fetch_add(1, Ordering::Relaxed);
        if self.counted.ended.len() < MOST_ENDED {
            self.counted.ended.push((self.slot, self.place));
        } else if let Some(recorder) = recorder::get() {
            recorder.counters.lose(Cause::BufferFull, 1);
        }
        slot.state.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rpd_preload::clock::{Clock, read};

    use super::*;

    /// A kernel of codeobject/tests/data/counting.hip, whose workgroups do not wait for each other; its descriptors are at 100 and 200.
    fn counted(dispatches: Dispatches) -> Arc<CountingKernel> {
        let config = CountingConfig {
            options: Options::default(),
            any_grid: false,
            waits: true,
            dispatches,
            waiting: WaitingDispatches::default(),
        };
        let object = include_bytes!("../../../codeobject/tests/data/counting-gfx906-o2.co");
        let made = counting::rewrite(object, &config.options, &|name| name == "straight").unwrap();
        let rewritten = made.kernels[0].clone();
        Arc::new(CountingKernel::new(Box::leak(Box::new(config)), 3, &[100, 200], rewritten, Arc::default()))
    }

    /// The same with registers for one wave of each SIMD, where the original has room for 10.
    fn large(may_wait: bool, any_grid: bool) -> Arc<CountingKernel> {
        of_large(may_wait, any_grid, Dispatches::All)
    }

    fn of_large(may_wait: bool, any_grid: bool, dispatches: Dispatches) -> Arc<CountingKernel> {
        let mut kernel = Arc::into_inner(counted(Dispatches::All)).unwrap();
        kernel.rewritten.registers.vgprs = 256;
        kernel.rewritten.may_wait = may_wait;
        let config = CountingConfig {
            options: Options::default(),
            any_grid,
            waits: true,
            dispatches,
            waiting: WaitingDispatches::default(),
        };
        Arc::new(CountingKernel::new(
            Box::leak(Box::new(config)),
            3,
            &[100, 200],
            kernel.rewritten,
            Arc::default(),
        ))
    }

    /// One of several queues.
    fn beside_others(compute_units: Option<u32>) -> QueueFacts {
        QueueFacts { compute_units, is_only: false }
    }

    fn launch(grid: u32, workgroup: u16) -> Launch {
        Launch {
            grid: [grid, 1, 1],
            workgroup: [workgroup, 1, 1],
            dimensions: 1,
            group_segment: 0,
            private_segment: 0,
        }
    }

    #[test]
    fn dispatches_of_one_geometry_share_a_slot() {
        let kernel = counted(Dispatches::All);
        let begin = |grid| {
            kernel
                .begin((0, 1, 2), &launch(grid, 64), beside_others(None), true)
                .ok()
                .map(|used| (used.object(), used))
        };
        let (first, one) = begin(64).unwrap();
        assert_eq!(begin(64).map(|(object, used)| (object, used.complete()).0), Some(first));
        let (second, other) = begin(128).unwrap();
        assert_ne!(first, second);
        assert!(begin(192).is_none(), "both slots are in use");
        assert_eq!(kernel.missed.load(Ordering::Relaxed), 1);
        assert!(!kernel.while_idle(0, || true), "a dispatch is in flight");
        one.complete();
        assert!(begin(192).is_none(), "the counters of the first have not been read");
        let dispatches = || kernel.slots[0].dispatches.load(Ordering::Relaxed);
        let read = |is_known: bool| {
            kernel.while_idle(0, || {
                assert_eq!((begin(64).is_none(), dispatches()), (true, 2));
                is_known
            })
        };
        assert!(read(false) && begin(192).is_none(), "they could not be read, and are the first grid's");
        assert!(read(true));
        assert_eq!(begin(192).map(|(object, _)| object), Some(first), "free again");
        other.complete();
        assert_eq!(kernel.ended.len(), 3);
    }

    /// A program that always has a dispatch of the kernel in flight.
    #[test]
    fn a_slot_that_is_never_idle_is_closed_and_read() {
        let kernel = counted(Dispatches::All);
        let begin = || {
            let used = kernel.begin((0, 1, 2), &launch(64, 64), beside_others(None), true).ok().unwrap();
            (used.object(), used)
        };
        let (first, one) = begin();
        kernel.close(0);
        let (second, other) = begin();
        assert_ne!(first, second, "no further dispatch adds to what is to be read");
        kernel.close(1);
        assert_eq!(begin().0, second, "no slot is free: its dispatches share it");
        assert!(!kernel.while_idle(0, || true));
        one.complete();
        assert!(kernel.while_idle(0, || true));
        assert_eq!(kernel.slots[0].state.load(Ordering::Relaxed), 0);
        kernel.close(1);
        let (third, last) = begin();
        assert_eq!(third, first);
        [other, last].iter().for_each(CountingUse::complete);
    }

    #[test]
    fn what_does_not_fit_or_is_not_meant_runs_as_it_is() {
        let kernel = counted(Dispatches::OneIn(2));
        let begin =
            |workgroup| kernel.begin((0, 1, 2), &launch(512, workgroup), beside_others(None), true).is_ok();
        assert_eq!([begin(64), begin(64), begin(0), begin(0)], [false, true, false, false]);
        assert!(kernel.too_large.load(Ordering::Relaxed));
        let kernel = large(true, true);
        assert!(
            kernel.begin((0, 1, 2), &launch(512, 512), beside_others(None), true).is_err(),
            "eight waves, one of each SIMD"
        );
        assert!(kernel.too_large.load(Ordering::Relaxed));
    }

    #[test]
    fn workgroups_that_wait_are_counted_where_all_still_run_at_once_or_never_did() {
        let begins = |any_grid: bool, workgroups: u32, lds: u32, compute_units: Option<u32>| {
            let kernel = large(true, any_grid);
            // One that ends alone.
            drop(kernel.enter((0, 1, 1), true));
            let launch = Launch { group_segment: lds, ..launch(workgroups * 256 - 7, 256) };
            let begins = kernel.begin((0, 1, 2), &launch, beside_others(compute_units), true).is_ok();
            assert_eq!(kernel.may_hang.load(Ordering::Relaxed), !begins);
            begins
        };
        // Four waves: one workgroup on each compute unit in place of ten.
        let of_three = |workgroups| begins(false, workgroups, 0, Some(3));
        assert_eq!([1, 3, 4, 30, 31, 1000].map(of_three), [true, true, false, false, true, true]);
        // LDS for two workgroups of the original.
        let with_lds = |workgroups| begins(false, workgroups, 25_000, Some(3));
        assert_eq!([3, 4, 6, 7].map(with_lds), [true, false, false, true]);
        assert!(!begins(false, 1, 0, None), "the number of compute units is not known");
        assert!([1, 4, 30].iter().all(|workgroups| begins(true, *workgroups, 0, Some(3))));
        // Workgroups that do not wait may run one after the other.
        let kernel = large(false, false);
        assert!(kernel.begin((0, 1, 2), &launch(30 * 256, 256), beside_others(Some(3)), true).is_ok());
    }

    #[test]
    fn a_kernel_that_waits_gets_no_larger_beside_another_one() {
        let kernel = large(true, false);
        let other =
            Arc::new(CountingKernel::new(kernel.config, 4, &[300], kernel.rewritten.clone(), Arc::default()));
        let begin = |kernel: &Arc<CountingKernel>, queue| {
            kernel.begin((0, queue, 2), &launch(256, 256), beside_others(Some(3)), true)
        };
        for kernel in [&kernel, &other] {
            drop(kernel.enter((0, 1, 1), true));
        }
        let first = begin(&kernel, 1).ok().expect("alone");
        assert!(begin(&kernel, 1).is_ok(), "one behind the other");
        assert!(!kernel.is_beside.load(Ordering::Relaxed));
        let original = begin(&other, 2).err().expect("beside the first");
        assert!(other.is_beside.load(Ordering::Relaxed));
        drop(first);
        assert!(begin(&kernel, 3).is_err(), "beside one that is not counted");
        drop(original);
        // Where the user says so, and where nobody waits.
        for (may_wait, any_grid) in [(true, true), (false, false)] {
            let kernel = large(may_wait, any_grid);
            assert!(matches!((begin(&kernel, 1), begin(&kernel, 2)), (Ok(_), Ok(_))));
            assert!(!kernel.is_tried.load(Ordering::Relaxed));
        }
    }

    /// Of two kernels that wait for each other the first one comes alone, each time: it must not be larger by then.
    #[test]
    fn the_first_of_two_that_wait_for_each_other_is_no_larger_either() {
        let begin = |kernel: &Arc<CountingKernel>, queue| {
            kernel.begin((0, queue, 2), &launch(256, 256), beside_others(Some(3)), true)
        };
        for dispatches in [Dispatches::All, Dispatches::First, Dispatches::OneIn(1)] {
            let first = of_large(true, false, dispatches);
            let second = Arc::new(CountingKernel::new(
                first.config,
                4,
                &[300],
                first.rewritten.clone(),
                Arc::default(),
            ));
            for turn in 0..3 {
                let early = begin(&first, 1).err().expect("the original");
                assert_eq!(first.is_beside.load(Ordering::Relaxed), turn > 0);
                let late = begin(&second, 2).err().expect("the original");
                drop((early, late));
            }
            assert!(first.is_tried.load(Ordering::Relaxed));
            // One that nobody joins, also where the first dispatch alone is asked for.
            let alone = Arc::new(CountingKernel::new(
                first.config,
                5,
                &[400],
                first.rewritten.clone(),
                Arc::default(),
            ));
            assert!(begin(&alone, 1).is_err());
            assert!(alone.is_tried.load(Ordering::Relaxed));
            assert!(begin(&alone, 1).is_ok());
            // On the only queue of the GPU nobody joins one, unless it has no order.
            let only = QueueFacts { compute_units: Some(3), is_only: true };
            let begins = |is_in_order| {
                let kernel = Arc::new(CountingKernel::new(
                    first.config,
                    5,
                    &[400],
                    first.rewritten.clone(),
                    Arc::default(),
                ));
                kernel.begin((0, 1, 2), &launch(256, 256), only, is_in_order).is_ok()
            };
            assert_eq!([begins(true), begins(false)], [true, false]);
            // And one that gets no larger.
            let mut same = first.rewritten.clone();
            same.registers.vgprs = 4;
            let same = Arc::new(CountingKernel::new(first.config, 6, &[500], same, Arc::default()));
            assert!(begin(&same, 1).is_ok() && !same.is_tried.load(Ordering::Relaxed));
        }
    }

    #[test]
    fn what_is_counted_and_how() {
        let default = || CountingWords {
            options: Options { slots: SLOTS, ..Options::default() },
            any_grid: false,
            waits: true,
        };
        let of = CountingWords::of;
        assert_eq!(of("count"), Some(default()));
        assert_eq!(of("count,any-grid"), Some(CountingWords { any_grid: true, ..default() }));
        assert_eq!(of("count,no-wait"), Some(CountingWords { waits: false, ..default() }));
        let options =
            Options { variant: Variant::Time, scalar_first: true, branch_limit: 40, ..default().options };
        assert_eq!(of("time,scalar,reach=40"), Some(CountingWords { options, ..default() }));
        for wrong in ["", "all", "scalar", "count,", "count,vector", "lanes,reach", "lanes,reach=far"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    /// Its recorded dispatches are counted, and each of its dispatches may be one that another kernel waits for.
    #[test]
    fn a_kernel_that_is_not_rewritten_yet_is_taken_for_one_that_waits() {
        let kernel = large(true, false);
        drop(kernel.enter((0, 1, 1), true));
        let begins = || kernel.begin((0, 1, 2), &launch(256, 256), beside_others(Some(3)), true).is_ok();
        assert!(begins(), "alone");
        let unknown = kernel.config.unknown(3);
        let used = [true, false, true].map(|recorded| unknown.begin((0, 2, 1), true, recorded));
        let early = unknown.early.as_ref().map(|early| early.count.load(Ordering::Relaxed));
        assert_eq!((early, used.iter().flatten().count()), (Some(2), 3));
        assert!(!begins() && kernel.is_beside.load(Ordering::Relaxed), "beside one that is not known");
        // Also later, and beside one that is left out.
        drop(used);
        assert!(!begins());
        let kernel = large(true, false);
        drop(kernel.enter((0, 1, 1), true));
        let left_out = kernel.config.waiting_kernel();
        let used = left_out.begin((0, 2, 1), true, true);
        assert!(used.is_some() && left_out.early.is_none());
        assert!(kernel.begin((0, 1, 2), &launch(256, 256), beside_others(Some(3)), true).is_err());
        // Where the user says so nobody waits.
        assert!(large(true, true).config.unknown(3).begin((0, 2, 1), true, true).is_none());
    }

    /// What the thread pays that launches a kernel: no memory is allocated, whatever is chosen. docs/speed.md has what this prints.
    #[test]
    #[expect(clippy::print_stdout, reason = "a measurement")]
    fn a_choice_costs_little() {
        let (kernel, shape) = (counted(Dispatches::All), launch(512, 64));
        let round = |_| {
            let mut used = Vec::with_capacity(1000);
            let begin = read(Clock::ThreadCpu);
            let allocated = allocation_counter::measure(|| {
                (0..1000).for_each(|place| {
                    used.extend(kernel.begin((0, 1, place), &shape, beside_others(Some(64)), true))
                })
            });
            let taken = read(Clock::ThreadCpu) - begin;
            assert_eq!((used.len(), allocated.count_total), (1000, 0));
            used.iter().for_each(CountingUse::complete);
            while kernel.ended.pop().is_some() {}
            taken
        };
        let (waiting, unknown) = (large(true, false), kernel.config.unknown(3));
        let others = allocation_counter::measure(|| {
            let begun =
                [1, 2].map(|queue| waiting.begin((0, queue, 1), &shape, beside_others(Some(3)), true));
            assert!(begun.iter().all(Result::is_err) && unknown.begin((0, 1, 1), true, true).is_some());
        });
        assert_eq!(
            others.count_total, 0,
            "one that waits runs the original, and one that is not rewritten yet"
        );
        let mut rounds: Vec<_> = (0..100).map(round).collect();
        rounds.sort_unstable();
        println!(
            "a dispatch that counts: {} ns (least {}) of the launching thread",
            rounds[50] / 1000,
            rounds[0] / 1000
        );
    }

    #[test]
    fn geometries_have_numbers_of_their_own() {
        let sizes = [1, 2, 3, 64, 65, 1000, 1 << 20, u32::MAX];
        let mut all = HashSet::new();
        for x in 1..=2000 {
            for (y, of_x) in [(1, 64), (1, 256), (2, 64), (x, 128)] {
                all.insert(Geometry { grid: [x, y, 1], workgroup: [of_x, 1, 1] }.number());
            }
        }
        for (x, y) in sizes.iter().flat_map(|x| sizes.map(|y| (*x, y))) {
            all.extend(sizes.map(|z| Geometry { grid: [x, y, z], workgroup: [7, 5, 3] }.number()));
        }
        assert_eq!(all.len(), 4 * 2000 + 8 * 8 * 8);
        assert!(all.iter().all(|number| (1..1 << 39).contains(number)));
    }

    #[test]
    fn any_number_of_geometries_is_counted_where_a_slot_is_free() {
        let kernel = counted(Dispatches::All);
        for grid in 1..500 {
            let used = kernel
                .begin((0, 1, grid.into()), &launch(grid, 64), beside_others(None), true)
                .ok()
                .expect("a free slot");
            used.complete();
            assert!(kernel.while_idle(used.slot, || true));
        }
        assert_eq!(kernel.missed.load(Ordering::Relaxed), 0);
    }
}
