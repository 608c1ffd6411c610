//! Traces as this crate makes, opens and reads them. All in one test program, so that SQLite is linked once.

// Tests and their harness may unwrap: a panic is how they fail.
#![allow(clippy::unwrap_used)]

mod append;
mod facts;
mod format;
mod identify;
mod leaves;
mod other_readers;
mod processes;
mod queries;
mod real_traces;
mod sample;
mod session;
#[path = "../../../tests/harness/skip.rs"]
mod skip;
mod skips;
mod transfer;
