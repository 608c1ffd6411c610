//! Arguments: the values of options, and the message for a command line that is wrong.

pub(crate) mod apis;
pub(crate) mod code;
pub(crate) mod help;
pub(crate) mod libraries;
pub(crate) mod misunderstood;
pub(crate) mod monitor;
pub(crate) mod region;
pub(crate) mod replacement;
pub(crate) mod value;
