//! What the recorder and its loader do in the process of a program so that the program does not notice. Needs the C library alone.
//!
//! - [`cancellation`]: no function of ours is a cancellation point
//! - [`memory`]: a look at memory that may be gone
//! - [`stderr`]: lines on standard error that raise no signal

pub mod cancellation;
pub mod memory;
pub mod stderr;
