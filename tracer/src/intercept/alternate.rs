//! The choice whose turn it is, where the original and the candidates of a kernel run by turns (RPDT_ALTERNATE).

use rpd_transport::env::Env;

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
    pub(super) fn whose(self, turn: u32, geometry: u64, takers: u32) -> u32 {
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
pub(super) fn mix(value: u64) -> u64 {
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
