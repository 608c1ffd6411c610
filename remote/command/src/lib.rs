//! `rpdRemote`, which is also `rpd remote`: starting and stopping recordings in running processes (docs/remote.md).
//!
//! - `cli`: the command line; `targets`: which processes it means; `run`: what it does
//! - `process`: what /proc says of a process; `attach`: finding its block; `request`, `signals`: the two ways to ask
//! - `report`: what is printed about each process; `refusal`: why something cannot be done
//!
//! Everything read from another process is untrusted: lengths are checked, texts are escaped.

mod attach;
mod cli;
mod process;
mod refusal;
mod report;
mod request;
mod run;
mod signals;
mod targets;

pub use cli::{CommandLine, RemoteArguments, command};
pub use run::run;
