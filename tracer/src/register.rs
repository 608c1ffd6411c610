//! Door B: what is done with the tables that rocprofiler-register hands over (rocprofiler-register 0.4, rocprofiler-sdk 0.6).
//!
//! The tables are the live ones: entries are replaced in place. Several copies of one library in a process have tables of their own,
//! and each its own originals.

pub(crate) mod chain;
mod roctx;
pub(crate) mod table;

use std::ffi::c_void;

use crate::hsa::{self, Door};
use crate::{environment, hip, log, recorder};

/// Answer for tables that we leave alone. Only ROCr looks at it: it then starts the tools of HSA_TOOLS_LIB.
pub(crate) const NOT_TAKEN: i32 = 1;

/// Tables of one library.
pub(crate) struct Offer<'a> {
    /// Such as `hsa`, `hip`, `roctx`.
    pub(crate) name: &'a [u8],
    /// Which copy of the library in this process, from 0.
    pub(crate) instance: u64,
    /// Their addresses.
    pub(crate) tables: &'a [*mut c_void],
}

/// Puts our hooks into the tables; true if whoever offers them need look for no other tool. Names we do not know are of no concern to
/// anybody else either.
pub(crate) fn take(offer: &Offer<'_>) -> bool {
    log::info(|| {
        let name = String::from_utf8_lossy(offer.name);
        format!("rocprofiler-register offers {} table(s) of {name:?}", offer.tables.len())
    });
    match (offer.name, offer.tables) {
        (b"hsa", [root]) => {
            // SAFETY: the runtime that calls offers its own table (ROCr LoadTools).
            let loaded = unsafe { hsa::load(root.cast(), Door::Register) };
            // Taking it would leave the tools that the user named in HSA_TOOLS_LIB unstarted.
            loaded && !environment::names_other_tools()
        }
        (b"hip", [table]) => {
            if let Some(recorder) = recorder::get() {
                // SAFETY: HIP offers its own table (hip_api_trace.cpp).
                unsafe { hip::table::patch(recorder, offer.instance, *table) };
            }
            true
        }
        (b"roctx", [core, control, ..]) => {
            // SAFETY: rocprofiler-sdk-roctx offers its own tables.
            unsafe { roctx::patch(offer.instance, *core, *control) };
            true
        }
        _ => true,
    }
}
