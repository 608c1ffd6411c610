//! madengine's tools: what a configuration asks for, and which part of that one recording gives.
//!
//! - `configuration`: the tools that a configuration names, with their commands, variables and scripts
//! - `ours`: what a recording must have, and which files are written from it, in the place of a tool
//! - `configured`: the tools' own commands and scripts
//! - `therock`: whether ROCm comes from TheRock
//! - `performance`: the line by which a program says how fast it was

pub(crate) mod configuration;
pub(crate) mod configured;
pub(crate) mod ours;
pub(crate) mod performance;
pub(crate) mod therock;
