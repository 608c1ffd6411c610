//! Making a trace out of others: it appears whole, or not at all.
//!
//! It grows in a directory beside the place where it will be (`growing.rs`), and gets its name when it is complete and has
//! been read again: what takes a trace's place must be one.

pub(crate) mod derive;
pub(crate) mod duplicate_texts;
mod growing;
pub(crate) mod objects;
