//! What is known of GPUs and their kernels, whichever source found it out.
//!
//! - [`kernels`]: every kernel that the process has loaded or named, by its number in records
//! - [`code_objects`]: what the kernels came in, and its bytes
//! - [`selection`]: which of them the user means; [`name_pattern`]: how that is said
//! - [`buses`]: where GPUs are, by which they are numbered
//! - [`timing`]: which source times operations; [`version`]: of the driver and the runtimes

pub(crate) mod buses;
pub(crate) mod code_objects;
pub(crate) mod kernels;
pub(crate) mod name_pattern;
pub(crate) mod selection;
pub(crate) mod timing;
pub(crate) mod version;
