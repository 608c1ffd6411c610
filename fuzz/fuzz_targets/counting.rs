//! Code objects whose kernels are made to count: whatever the bytes are, a refusal or an object that is sound.

#![no_main]

#[path = "../../codeobject/tests/hostile/count.rs"]
mod count;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| drop(count::count(bytes, bytes.len())));
