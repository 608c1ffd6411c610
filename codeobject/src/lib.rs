//! Reading AMDGPU code objects and their containers.
//!
//! A code object is an ELF file with the kernels of one processor. This crate says what is in it: the [`Target`] it was
//! built for, and for each [`Kernel`] its names, registers, memory and arguments. [`container`] takes code objects out
//! of what compilers wrap them in, [`descriptor`] decodes the hardware's view of a kernel, [`functions()`] finds the code,
//! [`occupancy`] says how many waves of a kernel a SIMD holds, and [`demangle()`] makes names readable.
//!
//! The bytes come from the program under observation and are not trusted: whatever they are, the result is an answer or
//! an [`Error`], in time and memory proportional to their length.
//!
//! ```no_run
//! let bytes = std::fs::read("vadd.hsaco")?;
//! for part in rpd_codeobject::container::code_objects(&bytes)? {
//!     for kernel in &rpd_codeobject::CodeObject::parse(&part.bytes)?.kernels {
//!         println!("{} uses {} vector registers", kernel.demangled(), kernel.vgpr_count);
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod blocks;
pub mod container;
pub mod counting;
pub mod cubin;
pub mod descriptor;
pub mod flow;
pub mod instruction;
pub mod occupancy;

mod code_object;
mod demangle;
mod elf;
mod error;
mod functions;
mod instrumented;
mod kernel;
mod known_registers;
mod lines;
mod loadable;
mod metadata;
mod pointers;
mod replacement;
mod target;
mod triton;

pub use code_object::{CodeObject, FactsFrom};
pub use demangle::demangle;
pub use error::Error;
pub use functions::{Function, functions};
pub use instrumented::{instrumented_symbol, original_symbol};
pub use kernel::{Argument, Kernel};
pub use lines::SourceLines;
pub use loadable::{loadable, variables};
pub use pointers::{PointerPlace, pointer_places};
pub use replacement::{Launch, Mismatch, Plan};
pub use target::{Feature, Target};
pub use triton::TritonBuild;
