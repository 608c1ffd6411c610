//! What a library of ours needs inside somebody else's process, so that the program does not notice it. Needs the C library alone.
//!
//! On the program's threads:
//! - [`guard`]: the border that no panic crosses; [`cancellation`]: no function of ours is a cancellation point
//! - [`lock`]: locks that outlive a panic; [`clock`]: the clocks of the file
//! - [`memory`]: a look at memory that may be gone; [`stack_bounds`]: where a thread's stack is
//! - [`stderr`]: lines on standard error that raise no signal
//!
//! In the process:
//! - [`library`]: where this library is, and which others are loaded; [`loaded`]: functions of those by name; [`next`]: the function behind
//!   one that is interposed; [`got`]: calls of libraries that have bound their functions already
//! - [`environment`]: variables for the program's children; [`tools_list`]: the list of libraries that the HSA runtime loads;
//!   [`cuda_injection`]: the one that CUDA's driver loads
//! - [`descriptors`]: a descriptor for a file of ours where the program has used up its own
//! - [`threads`]: our own threads; [`errands`]: work for one that comes and goes; [`fork`]: what a fork must not happen in
//!
//! Nothing here is exported or runs by itself: exports and constructors are the libraries' own.

pub mod cancellation;
pub mod clock;
pub mod cuda_injection;
pub mod descriptors;
pub mod environment;
pub mod errands;
pub mod fork;
pub mod got;
pub mod guard;
pub mod library;
pub mod loaded;
pub mod lock;
pub mod memory;
pub mod next;
pub mod stack_bounds;
pub mod stderr;
pub mod threads;
pub mod tools_list;
