//! Registered tables: what is done with the tables that rocprofiler-register hands over (rocprofiler-register 0.4, rocprofiler-sdk 0.6).
//!
//! The tables are the live ones: entries are replaced in place. Several copies of one library in a process have tables of their own,
//! and each its own originals.

mod chain;
pub mod export;

use rpd_transport::log;
use rpd_transport::source::{Answer, Offer, Source};

use crate::sources;

/// Answer for tables that we leave alone. Only ROCr looks at it: it then starts the tools of HSA_TOOLS_LIB.
pub(crate) const NOT_TAKEN: i32 = 1;

/// Puts our hooks into the tables; true if whoever offers them need look for no other tool. Names we do not know are of no concern to
/// anybody else either.
pub(crate) fn take(offer: &Offer<'_>) -> bool {
    log::info(|| {
        let name = String::from_utf8_lossy(offer.name);
        format!("rocprofiler-register offers {} table(s) of {name:?}", offer.tables.len())
    });
    offer_to(sources::ALL, offer)
}

/// Each source sees the tables, also behind one that leaves them to other tools.
fn offer_to(sources: &[&dyn Source], offer: &Offer<'_>) -> bool {
    sources.iter().filter(|source| source.offered(offer) == Answer::Declined).count() == 0
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    struct Fake(Answer, AtomicU32);

    impl Source for Fake {
        fn name(&self) -> &'static str {
            "fake"
        }

        fn number(&self) -> u8 {
            0
        }

        fn offered(&self, _: &Offer<'_>) -> Answer {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0
        }
    }

    #[test]
    fn a_source_that_declines_hides_nothing_from_the_next() {
        let [declines, takes, other] =
            [Answer::Declined, Answer::Taken, Answer::NotMine].map(|answer| Fake(answer, AtomicU32::new(0)));
        let offer = Offer { name: b"fake", instance: 0, tables: &[] };
        assert!(!offer_to(&[&declines, &takes, &other], &offer));
        assert_eq!([&declines, &takes, &other].map(|fake| fake.1.load(Ordering::Relaxed)), [1; 3]);
        assert!(offer_to(&[&takes, &other], &offer));
    }
}
