//! The dispatches of a kernel that run instrumented (LOGDUR_DISPATCHES), where instrumented kernels were asked for.

use rpd_transport::env::Env;

use super::alternate::mix;

/// With `random`, one dispatch in so many is instrumented, as in omniprobe.
const RANDOM: u64 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dispatches {
    All,
    /// One in a hundred, by this seed.
    Random(u64),
    /// The first of each kernel.
    First,
    /// The last of each so many of a kernel: those before it, which run as they are, show what it costs.
    OneIn(u64),
}

impl Dispatches {
    /// LOGDUR_DISPATCHES and RPDT_SEED.
    pub(super) fn read(env: &mut Env<'_>) -> Dispatches {
        let seed = env.number("RPDT_SEED", 0, 0..=u64::MAX);
        let Some(text) = env.text("LOGDUR_DISPATCHES") else { return Dispatches::All };
        let text = text.to_string_lossy().into_owned();
        let one_in = || text.strip_prefix("1/")?.parse().ok().filter(|count| *count > 0);
        match text.as_str() {
            "all" => Dispatches::All,
            "random" => Dispatches::Random(seed),
            "1" => Dispatches::First,
            _ => one_in().map_or_else(
                || {
                    env.complain(format!(
                        "LOGDUR_DISPATCHES={text} is not all, random, 1 or 1/N; all dispatches are instrumented"
                    ));
                    Dispatches::All
                },
                Dispatches::OneIn,
            ),
        }
    }

    /// Whether the dispatch of that number, counted from 0, of a kernel with that number of its own is instrumented.
    pub(super) fn takes(self, number: u64, kernel: u64) -> bool {
        match self {
            Dispatches::All => true,
            Dispatches::First => number == 0,
            Dispatches::OneIn(count) => number % count == count - 1,
            Dispatches::Random(seed) => mix(mix(seed ^ kernel) ^ number).is_multiple_of(RANDOM),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_variable() {
        let read = |value: &str| {
            let value = value.to_string();
            let get = move |name: &str| (name == "LOGDUR_DISPATCHES").then(|| value.clone().into());
            let mut env = Env::new(&get);
            let dispatches = Dispatches::read(&mut env);
            (dispatches, env.complaints().len())
        };
        assert_eq!(read("all"), (Dispatches::All, 0));
        assert_eq!(read("1"), (Dispatches::First, 0));
        assert_eq!(read("random"), (Dispatches::Random(0), 0));
        assert_eq!(read("1/8"), (Dispatches::OneIn(8), 0));
        for wrong in ["2", "1/0", "1/", "1/x", "ALL"] {
            assert_eq!(read(wrong), (Dispatches::All, 1), "{wrong}");
        }
    }

    #[test]
    fn which_dispatches_are_taken() {
        let taken =
            |dispatches: Dispatches| (0..9).map(|number| dispatches.takes(number, 7)).collect::<Vec<_>>();
        assert_eq!(taken(Dispatches::OneIn(3)), [false, false, true, false, false, true, false, false, true]);
        assert_eq!(taken(Dispatches::First), [true, false, false, false, false, false, false, false, false]);
        let random =
            |kernel| (0..100_000).filter(|number| Dispatches::Random(1).takes(*number, kernel)).count();
        assert!((800..1_200).contains(&random(1)), "{}", random(1));
    }
}
