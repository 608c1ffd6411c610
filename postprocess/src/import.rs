//! What other tools recorded, as a trace.

pub mod tinygrad;
