//! madengine's tools: what a configuration asks for, and what of it one recording gives.
//!
//! - `configuration`: the tools that a configuration names, with their commands, variables and scripts
//! - `ours`: what a recording has to have, and which files it is written out to, in the place of a tool
//! - `configured`: the tools' own commands and scripts
//! - `performance`: the line by which a program says how fast it was

pub(crate) mod configuration;
pub(crate) mod configured;
pub(crate) mod ours;
pub(crate) mod performance;
