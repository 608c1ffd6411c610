//! Registered tables: what is done with the tables that rocprofiler-register hands over (rocprofiler-register 0.4, rocprofiler-sdk 0.6).
//!
//! The tables are the live ones: entries are replaced in place. Several copies of one library in a process have tables of their own,
//! and each its own originals.

mod chain;
pub mod export;

use rpd_transport::log;
use rpd_transport::source::{Answer, Offer};

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
    sources::ALL.iter().all(|source| source.offered(offer) != Answer::Declined)
}
