//! Code objects, bundles and what Triton writes beside them: whatever the bytes are, an answer or an error, and a kernel that runs in the
//! place of another one has its arguments.

#![no_main]

#[path = "../../codeobject/tests/hostile/read.rs"]
mod read;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| read::read(bytes));
