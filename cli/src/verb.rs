//! The verbs of the command line, one module each.

pub(crate) mod api;
pub(crate) mod apply;
pub(crate) mod check;
pub(crate) mod create;
pub(crate) mod deserialize;
pub(crate) mod info;
pub(crate) mod merge;
pub(crate) mod passes;
pub(crate) mod record;
pub(crate) mod strings;
pub(crate) mod subclass;
pub(crate) mod top;
pub(crate) mod trim;
