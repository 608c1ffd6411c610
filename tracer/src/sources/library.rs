//! The source of calls of libraries: rocBLAS, RCCL, cuBLAS and others, by symbol interposition (librpd_libraries.so). Calls of the HSA
//! runtime are recorded under its number too (`library_call`).
//!
//! - `config`: whose calls are recorded; `export`: what librpd_libraries.so asks

mod config;
pub mod export;

use rpd_transport::env::Env;
use rpd_transport::records::Call;
use rpd_transport::source::{CallText, Detail, Source};

use crate::library_call::{self, SOURCE};

/// The source of library calls.
pub(crate) struct LibraryCalls;

impl Source for LibraryCalls {
    fn name(&self) -> &'static str {
        "library"
    }

    fn number(&self) -> u8 {
        SOURCE
    }

    fn configure(&self, env: &mut Env<'_>) {
        config::configure(env);
    }

    fn function(&self, index: u16) -> &'static str {
        library_call::name(index)
    }

    fn describe(&self, call: &Call, kept: &[u8]) -> Option<CallText> {
        let described = library_call::describe(call, kept)?;
        let domain = export::domain(described.library);
        let detail = Detail::Library { domain, category: described.library.category() };
        // Of these libraries, the HSA runtime alone is handed packets.
        let launches = call.submitted != 0;
        Some(CallText { name: described.name, arguments: described.arguments, launches, detail })
    }

    fn facts(&self, add: &mut dyn FnMut(&str, &str)) {
        let wanted = config::wanted();
        if !wanted.is_empty() {
            add("libraries", &wanted.join(","));
        }
    }
}
