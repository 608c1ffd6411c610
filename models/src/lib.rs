//! Files of the recorder with loom's atomics, and a chunk of memory that finds unordered access to its bytes.

#![allow(missing_docs)]

use loom::sync::atomic;

pub mod correlation;
pub mod records;
