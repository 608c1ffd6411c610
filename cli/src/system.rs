//! The system calls that the standard library has no safe form for. All of this crate's unsafe code is here.

pub(crate) mod capabilities;
pub(crate) mod descendants;
pub(crate) mod facts;
pub(crate) mod interruption;
pub(crate) mod own_recorder;
pub(crate) mod signals;
