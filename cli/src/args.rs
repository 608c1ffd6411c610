//! Arguments: the values of options, and the message for a command line that is wrong.

pub(crate) mod code;
pub(crate) mod cuda_apis;
pub(crate) mod help;
pub(crate) mod hip_apis;
pub(crate) mod hsa_apis;
pub(crate) mod libraries;
pub(crate) mod log_format;
pub(crate) mod misunderstood;
pub(crate) mod monitor;
pub(crate) mod region;
pub(crate) mod replacement;
pub(crate) mod value;
