//! The source of calls of GPU libraries: rocBLAS, RCCL, cuBLAS and others, by symbol interposition (librpd_libraries.so).
//!
//! - `config`: whose calls are recorded; `export`: what librpd_libraries.so asks
//! - `description`: what the functions are called and passed, from the libraries' headers
//! - `trampoline`: one function for each, which lets the recorder see a call begin and end
//! - `call`: a call, from its beginning to its record; `arguments`: what is kept of it, and as text
//! - `communicators`: how many ranks the communicators of collectives have

mod arguments;
mod call;
mod communicators;
mod config;
mod description;
pub mod export;
mod trampoline;

use rpd_transport::env::Env;
use rpd_transport::records::Call;
use rpd_transport::source::{CallText, Detail, Source};

/// The source's number.
const SOURCE: u8 = 8;

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
        description::get().functions.get(usize::from(index)).map_or("", |function| function.name)
    }

    fn describe(&self, call: &Call, kept: &[u8]) -> Option<CallText> {
        let function = description::get().functions.get(usize::from(call.function))?;
        let domain = export::domain(function.library);
        let mut arguments = arguments::text(function, kept);
        if let Some(communicator) = arguments::communicator(function, kept) {
            arguments.push_str(&communicators::text(communicator, call.start));
        }
        let detail = Detail::Library { domain, category: function.library.category() };
        Some(CallText { name: function.name, arguments, launches: false, detail })
    }

    fn facts(&self, add: &mut dyn FnMut(&str, &str)) {
        let wanted = config::wanted();
        if !wanted.is_empty() {
            add("libraries", &wanted.join(","));
        }
    }
}
