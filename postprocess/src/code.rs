//! What kernels need of the hardware, out of code objects: those of a file, and those that a trace names.

mod file;
mod kernel;
mod kernel_objects;
mod listing;
mod saved;
mod trace;
mod triton;

pub use file::{FoundObject, code_objects, each_object, is_cubin, is_database};
pub use kernel::{
    Assumed, BuildLaunches, Candidate, Fit, KernelArgument, KernelFacts, KernelNeeds, work_items,
};
pub use kernel_objects::KernelObjects;
pub use listing::{BasicBlock, ListedEdge, ListedInstruction, Lister, Listing, NoListing};
pub use trace::{BuildObject, TraceCode};
