//! What arguments may be: values of options, and what to say of a command line that cannot be.

pub(crate) mod code;
pub(crate) mod hip_apis;
pub(crate) mod libraries;
pub(crate) mod log_format;
pub(crate) mod misunderstood;
pub(crate) mod monitor;
pub(crate) mod region;
pub(crate) mod replacement;
pub(crate) mod value;
