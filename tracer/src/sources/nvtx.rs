//! The source of NVTX's markers. The application's copies of NVTX version 3 load this library (`NVTX_INJECTION64_PATH`, or because it is
//! preloaded) and let it put its functions into their tables.
//!
//! - `export`: what NVTX calls; `attach`: the tables of one copy; `abi`: NVTX's interface
//! - `callbacks`: the functions in the tables; `registry`: domains, ranges and texts that they name; `text`: texts as NVTX has
//!   them

mod abi;
mod attach;
mod callbacks;
pub mod export;
mod registry;
mod text;

use rpd_preload::environment::put;
use rpd_preload::library::own_path;
use rpd_transport::source::{Loading, Source};

pub(crate) struct Nvtx;

impl Source for Nvtx {
    fn name(&self) -> &'static str {
        "nvtx"
    }

    fn number(&self) -> u8 {
        4
    }

    /// NVTX looks there at the first marker, unless the user names another tool.
    fn loaded(&self, at: Loading) {
        let is_free = std::env::var_os("NVTX_INJECTION64_PATH").is_none_or(|tool| tool.is_empty());
        if let Some(own) = own_path().filter(|_| is_free && !at.by_remote) {
            put(c"NVTX_INJECTION64_PATH", own);
        }
    }
}
