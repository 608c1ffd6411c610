//! What may run in the place of one of the application's kernels, and whose turn it is.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use rpd_codeobject::{Launch, Plan};
use rpd_transport::env::Env;
use rpd_transport::log;
use rpd_transport::records::KernelId;

use super::kernargs::Slots;
use crate::gpu::kernels;
use crate::hsa_runtime::abi::Executable;

/// Launch geometries of one kernel that have turns of their own.
const GEOMETRIES: usize = 64;

/// A candidate's code object in the runtime. What runs of it, or may still do so, has one of these.
pub(super) struct Loaded {
    pub(super) executable: Executable,
    /// It was said that a kernel of it does not end.
    pub(super) said_long: AtomicBool,
}

/// A kernel of a candidate.
pub(super) struct Planned {
    pub(super) plan: Plan,
    /// Address of its descriptor on the device.
    pub(super) object: u64,
    /// Its number in records.
    pub(super) kernel: KernelId,
    pub(super) loaded: Arc<Loaded>,
    /// LDS of a workgroup at most, bytes.
    pub(super) most_lds: u32,
    /// Memory for its arguments, where they are made anew.
    pub(super) slots: Option<Arc<Slots>>,
    /// The first launch in which it cannot run.
    pub(super) refused: OnceLock<Launch>,
    /// That was said.
    pub(super) said: AtomicBool,
}

/// What may run where the application launches one kernel.
pub(super) struct Choice {
    alternate: Alternate,
    /// In the order of their turns; at least one.
    pub(super) planned: Vec<Planned>,
    turns: [AtomicU32; GEOMETRIES],
}

impl Choice {
    /// One or more candidates.
    pub(super) fn new(alternate: Alternate, planned: Vec<Planned>) -> Choice {
        Choice { alternate, planned, turns: [const { AtomicU32::new(0) }; GEOMETRIES] }
    }

    /// Says in which launches candidates could not run: the first of each candidate, once.
    pub(super) fn say_refusals(&self) {
        for planned in &self.planned {
            let Some(launch) = planned.refused.get().filter(|_| !planned.said.swap(true, Ordering::Relaxed))
            else {
                continue;
            };
            let refused = planned.plan.segments(launch, planned.most_lds);
            if let (Err(why), Some(kernel)) = (refused, kernels::get(planned.kernel)) {
                log::problem(&format!("{} is not replaced in a launch: {why}", kernel.name()));
            }
        }
    }

    /// The candidate for this launch; none where it is the original's turn.
    pub(super) fn next(&self, launch: &Launch) -> Option<&Planned> {
        if self.alternate == Alternate::Never {
            return self.planned.first();
        }
        // A kernel may be launched by turns with two geometries: each of them gets the original and the candidates.
        let place = geometry(launch);
        let turn = self.turns[place % GEOMETRIES].fetch_add(1, Ordering::Relaxed);
        let whose = self.alternate.whose(turn, place as u64, self.planned.len() as u32 + 1);
        self.planned.get((whose as usize).checked_sub(1)?)
    }
}

/// A number for the geometry of a launch.
fn geometry(launch: &Launch) -> usize {
    let parts = launch.grid.into_iter().chain(launch.workgroup.map(u32::from));
    let mixed = parts.fold(launch.group_segment.into(), |hash: u64, part| mix(hash ^ u64::from(part)));
    (mixed >> 32) as usize
}

/// Whether the original and the candidates of a kernel run by turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alternate {
    /// The candidate always runs.
    Never,
    /// One after the other, the original first.
    InTurn,
    /// Each with the same chance, by this seed.
    Random(u64),
    /// One after the other, each so many times.
    Blocks(u32),
}

impl Alternate {
    /// RPDT_ALTERNATE and RPDT_SEED.
    pub(super) fn read(env: &mut Env<'_>) -> Alternate {
        let seed = env.number("RPDT_SEED", 0, 0..=u64::MAX);
        let Some(text) = env.text("RPDT_ALTERNATE") else { return Alternate::Never };
        let text = text.to_string_lossy().into_owned();
        let blocks = || text.strip_prefix("blocks=")?.parse().ok().filter(|length| *length > 0);
        match text.as_str() {
            "ABAB" | "abab" => Alternate::InTurn,
            "random" => Alternate::Random(seed),
            _ => blocks().map_or_else(
                || {
                    env.complain(format!(
                        "RPDT_ALTERNATE={text} is not ABAB, random or blocks=N; candidates always run"
                    ));
                    Alternate::Never
                },
                Alternate::Blocks,
            ),
        }
    }

    /// The words for it in the file; none where the candidate always runs.
    pub(super) fn name(self) -> Option<String> {
        match self {
            Alternate::Never => None,
            Alternate::InTurn => Some("ABAB".into()),
            Alternate::Random(_) => Some("random".into()),
            Alternate::Blocks(length) => Some(format!("blocks={length}")),
        }
    }

    /// Whose turn number `turn` of the launches with that `geometry` is, among `takers`; 0 is the original.
    fn whose(self, turn: u32, geometry: u64, takers: u32) -> u32 {
        match self {
            Alternate::Never => 1,
            Alternate::InTurn => turn % takers,
            Alternate::Blocks(length) => turn / length % takers,
            Alternate::Random(seed) => {
                let random = mix(mix(seed ^ geometry) ^ u64::from(turn));
                ((u128::from(random) * u128::from(takers)) >> 64) as u32
            }
        }
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every bit of the result depends on every bit of `value`.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_gets_turns() {
        let turns = |alternate: Alternate, takers| -> Vec<u32> {
            (0..12).map(|turn| alternate.whose(turn, 5, takers)).collect()
        };
        assert_eq!(turns(Alternate::InTurn, 2), [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
        assert_eq!(turns(Alternate::InTurn, 3), [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
        assert_eq!(turns(Alternate::Blocks(3), 2), [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1]);
        let random = Alternate::Random(1);
        let counts = (0..30_000).fold([0; 3], |mut counts, turn| {
            counts[random.whose(turn, 5, 3) as usize] += 1;
            counts
        });
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        assert_eq!(turns(random, 3), turns(Alternate::Random(1), 3), "a seed says what happens");
        assert_ne!(turns(random, 3), turns(Alternate::Random(2), 3));
    }

    #[test]
    fn the_words_of_the_variable() {
        let read = |value: &str| {
            let value = value.to_string();
            let get = move |name: &str| (name == "RPDT_ALTERNATE").then(|| value.clone().into());
            let mut env = Env::new(&get);
            let alternate = Alternate::read(&mut env);
            (alternate, env.complaints().len())
        };
        assert_eq!(read("ABAB"), (Alternate::InTurn, 0));
        assert_eq!(read("random"), (Alternate::Random(0), 0));
        assert_eq!(read("blocks=100"), (Alternate::Blocks(100), 0));
        for wrong in ["blocks=0", "blocks", "ABBA", "blocks=-1"] {
            assert_eq!(read(wrong), (Alternate::Never, 1), "{wrong}");
        }
    }
}
