//! The process that has a handler of the user's own: a library that sees the messages of instrumented kernels. Whatever it does, it does
//! to this process alone.
//!
//! - `bounds`: what it may take
//! - [`library`]: the library, with the functions of include/rpd_handler.h
//! - [`serve()`]: what recorders ask of it

mod bounds;
pub mod library;
mod serve;

pub use serve::serve;
