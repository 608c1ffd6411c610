//! Calls of libraries whose functions are described by a text: GPU libraries, whose symbols are interposed, and the HSA runtime, in whose
//! tables trampolines stand.
//!
//! - `description`: what the functions are called and passed, from the libraries' headers
//! - `trampoline`: one function for each, which lets the recorder see a call begin and end
//! - `call`: a call, from its beginning to its record; `arguments`: what is kept of it, and as text
//! - `communicators`: how many ranks the communicators of collectives have; `descriptors`: what the descriptors of products and convolutions
//!   say

mod arguments;
mod call;
mod communicators;
mod description;
mod descriptors;
mod trampoline;

use rpd_transport::records;

pub(crate) use description::Library;
pub(crate) use trampoline::{is_trampoline, stand_in};

/// The number of the source under which they are recorded.
pub(crate) const SOURCE: u8 = 8;

/// What the writer asks about a call.
pub(crate) struct CallDescription {
    pub(crate) name: &'static str,
    pub(crate) library: Library,
    pub(crate) arguments: String,
}

/// Reads what the functions are, if that has not been done.
pub(crate) fn read_description() {
    description::get();
}

/// The library of the function `name`.
pub(crate) fn library_of(name: &str) -> Option<Library> {
    let description = description::get();
    Some(description.functions.get(description.place(name, "")?)?.library)
}

/// The name of function number `place`.
pub(crate) fn name(place: u16) -> &'static str {
    description::get().functions.get(usize::from(place)).map_or("", |function| function.name)
}

/// Of the call in that record, of which `kept` was kept.
pub(crate) fn describe(call: &records::Call, kept: &[u8]) -> Option<CallDescription> {
    let function = description::get().functions.get(usize::from(call.function))?;
    let mut arguments = arguments::text(function, kept);
    if let Some(communicator) = arguments::communicator(function, kept) {
        arguments.push_str(&communicators::text(communicator, call.start));
    }
    Some(CallDescription { name: function.name, library: function.library, arguments })
}
