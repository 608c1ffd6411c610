//! Kernels whose basic blocks are counted (RPDT_COUNT_BLOCKS): rewritten code of the application's own kernels runs in their place, and adds
//! to counters in memory of the device.
//!
//! A rewritten kernel has several slots, each with counters of its own. A dispatch takes the slot that dispatches of the same grid and workgroup
//! use, or one that nobody uses; where there is none the application's kernel runs. Counters are read when nothing that
//! adds to them is in flight, so sums are of whole dispatches.
//!
//! - `counters`: the memory of the counters, and how they get to the file

mod counters;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_queue::SegQueue;
use rpd_codeobject::Launch;
use rpd_codeobject::counting::{Options, Variant};
use rpd_transport::counters::Cause;
use rpd_transport::env::Env;
use rpd_transport::recorder;
use rpd_transport::records::KernelId;

use super::dispatches::Dispatches;
use super::gate::DispatchPlace;

pub(super) use self::counters::{BlockCounters, CountedBlock, CounterMemory, finish};

/// Dispatches that have ended and that nobody has looked at yet.
const MOST_ENDED: usize = 1 << 17;
/// Work-items of a wave, of all processors whose code is rewritten.
const WAVEFRONT: u32 = 64;
/// The slots of a kernel.
const SLOTS: u32 = 4;

/// What was asked for.
pub(super) struct CountingConfig {
    /// What is counted, and how.
    pub(super) options: Options,
    /// Of which dispatches.
    dispatches: Dispatches,
}

impl CountingConfig {
    /// RPDT_COUNT_BLOCKS, and LOGDUR_DISPATCHES with it.
    pub(super) fn read(env: &mut Env<'_>) -> Option<CountingConfig> {
        let asked = env.text("RPDT_COUNT_BLOCKS")?.to_string_lossy().into_owned();
        let Some(options) = options(&asked) else {
            env.complain(format!(
                "RPDT_COUNT_BLOCKS={asked} is not count, lanes or time; no basic blocks are counted"
            ));
            return None;
        };
        Some(CountingConfig { options, dispatches: Dispatches::read(env) })
    }
}

/// What is counted, and behind it, with commas, how.
fn options(asked: &str) -> Option<Options> {
    let mut words = asked.split(',');
    let variant = match words.next()? {
        "count" => Variant::Waves,
        "lanes" => Variant::Lanes,
        "time" => Variant::Time,
        _ => return None,
    };
    let mut options = Options { variant, slots: SLOTS, ..Options::default() };
    for word in words {
        match word.split_once('=') {
            None if word == "scalar" => options.scalar_first = true,
            Some(("reach", words)) => options.branch_limit = words.parse().ok()?,
            _ => return None,
        }
    }
    Some(options)
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

/// See the module.
pub(super) struct CountedKernel {
    config: &'static CountingConfig,
    /// Its number in records.
    kernel: KernelId,
    slots: Vec<CounterSlot>,
    /// Workgroups that can be launched with the registers of the rewritten kernel: a bit for each number of waves.
    fitting: u64,
    launched: AtomicU64,
    /// Dispatches that found no slot, and those whose workgroup has too many waves.
    missed: AtomicU64,
    too_large: AtomicU64,
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
/// Its counters are being read.
const READ: u64 = u64::MAX;

impl CountedKernel {
    /// The kernel of that number, with descriptors at these addresses.
    pub(super) fn new(
        config: &'static CountingConfig,
        kernel: KernelId,
        objects: &[u64],
        fits: impl Fn(u32) -> bool,
    ) -> CountedKernel {
        let fitting = (1..u64::BITS).filter(|waves| fits(waves * WAVEFRONT));
        let slot = |object: &u64| CounterSlot {
            object: *object,
            state: AtomicU64::new(0),
            dispatches: AtomicU64::new(0),
        };
        CountedKernel {
            config,
            kernel,
            slots: objects.iter().map(slot).collect(),
            fitting: fitting.fold(0, |bits, waves| bits | 1 << waves),
            launched: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            too_large: AtomicU64::new(0),
            ended: SegQueue::new(),
        }
    }

    /// Its number in records.
    pub(super) fn number(&self) -> KernelId {
        self.kernel
    }

    /// A slot for the dispatch at `place`, if that is to be counted and one is free.
    pub(super) fn begin(
        self: &Arc<CountedKernel>,
        place: DispatchPlace,
        launch: &Launch,
    ) -> Option<CountingUse> {
        let number = self.launched.fetch_add(1, Ordering::Relaxed);
        if !self.config.dispatches.takes(number, self.kernel.into()) {
            return None;
        }
        let items: u64 = launch.workgroup.iter().map(|size| u64::from(*size)).product();
        let waves = items.div_ceil(WAVEFRONT.into());
        if waves >= u64::BITS.into() || self.fitting >> waves & 1 == 0 {
            self.too_large.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let geometry = Geometry { grid: launch.grid, workgroup: launch.workgroup };
        let slot = self.take(geometry.number());
        if slot.is_none() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
        Some(CountingUse { counted: Arc::clone(self), slot: slot?, place })
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

    /// Nobody uses the slot while `read` runs, and it is free afterwards; nothing where dispatches are in flight.
    fn while_idle<T>(&self, slot: usize, read: impl FnOnce() -> T) -> Option<T> {
        let state = &self.slots[slot].state;
        let idle = |state: u64| (state != READ && state & IN_FLIGHT == 0).then_some(READ);
        state.fetch_update(Ordering::Acquire, Ordering::Relaxed, idle).ok()?;
        let result = read();
        state.store(0, Ordering::Release);
        Some(result)
    }
}

/// A dispatch whose blocks are counted, until it has completed.
pub(super) struct CountingUse {
    counted: Arc<CountedKernel>,
    slot: usize,
    place: DispatchPlace,
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

    fn counted(dispatches: Dispatches) -> Arc<CountedKernel> {
        let config = Box::leak(Box::new(CountingConfig { options: Options::default(), dispatches }));
        Arc::new(CountedKernel::new(config, 3, &[100, 200], |items| items <= 256))
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
        let begin = |grid| kernel.begin((0, 1, 2), &launch(grid, 64)).map(|used| (used.object(), used));
        let (first, one) = begin(64).unwrap();
        assert_eq!(begin(64).map(|(object, used)| (object, used.complete()).0), Some(first));
        let (second, other) = begin(128).unwrap();
        assert_ne!(first, second);
        assert!(begin(192).is_none(), "both slots are in use");
        assert_eq!(kernel.missed.load(Ordering::Relaxed), 1);
        assert_eq!(kernel.while_idle(0, || ()), None, "a dispatch is in flight");
        one.complete();
        assert!(begin(192).is_none(), "the counters of the first have not been read");
        let dispatches = || kernel.slots[0].dispatches.load(Ordering::Relaxed);
        assert_eq!(kernel.while_idle(0, || (begin(64).is_none(), dispatches())), Some((true, 2)));
        assert_eq!(begin(192).map(|(object, _)| object), Some(first), "free again");
        other.complete();
        assert_eq!(kernel.ended.len(), 3);
    }

    #[test]
    fn what_does_not_fit_or_is_not_meant_runs_as_it_is() {
        let kernel = counted(Dispatches::OneIn(2));
        let begin = |workgroup| kernel.begin((0, 1, 2), &launch(512, workgroup)).is_some();
        assert_eq!([begin(64), begin(64), begin(512), begin(512)], [false, true, false, false]);
        assert_eq!(kernel.too_large.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn what_is_counted_and_how() {
        let default = Options { slots: SLOTS, ..Options::default() };
        assert_eq!(options("count"), Some(default));
        let both = Options { variant: Variant::Time, scalar_first: true, branch_limit: 40, ..default };
        assert_eq!(options("time,scalar,reach=40"), Some(both));
        for wrong in ["", "all", "scalar", "count,", "count,vector", "lanes,reach", "lanes,reach=far"] {
            assert_eq!(options(wrong), None, "{wrong}");
        }
    }

    /// What the thread pays that launches a kernel; docs/speed.md has what this prints.
    #[test]
    #[expect(clippy::print_stdout, reason = "a measurement")]
    fn a_choice_costs_little() {
        let (kernel, shape) = (counted(Dispatches::All), launch(512, 64));
        let round = |_| {
            let mut used = Vec::with_capacity(1000);
            let begin = read(Clock::ThreadCpu);
            (0..1000).for_each(|place| used.extend(kernel.begin((0, 1, place), &shape)));
            let taken = read(Clock::ThreadCpu) - begin;
            assert_eq!(used.len(), 1000);
            used.iter().for_each(CountingUse::complete);
            while kernel.ended.pop().is_some() {}
            taken
        };
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
            let used = kernel.begin((0, 1, grid.into()), &launch(grid, 64)).expect("a free slot");
            used.complete();
            assert!(kernel.while_idle(used.slot, || ()).is_some());
        }
        assert_eq!(kernel.missed.load(Ordering::Relaxed), 0);
    }
}
