//! What kernels need of the hardware, out of code objects: those of a file, and those that a trace names.

mod file;
mod kernel;
mod listing;

pub use file::{FoundObject, each_object, open};
pub use kernel::{Assumed, Fit, KernelArgument, KernelFacts};
pub use listing::{BasicBlock, ListedEdge, ListedInstruction, Lister, Listing, NoListing};
