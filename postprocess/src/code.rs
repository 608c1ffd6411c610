//! What kernels need of the hardware, out of code objects: those of a file, and those that a trace names.

mod file;
mod kernel;
mod listing;
mod saved;
mod trace;

pub use file::{FoundObject, each_object, is_database};
pub use kernel::{Assumed, Fit, KernelArgument, KernelFacts, Launches};
pub use listing::{BasicBlock, ListedEdge, ListedInstruction, Lister, Listing, NoListing};
pub use trace::TraceCode;
