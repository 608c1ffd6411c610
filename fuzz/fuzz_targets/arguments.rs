//! Arguments of calls: keys and values are parts of the text, keys are never empty, and each key has a value.

#![no_main]

#[path = "../../postprocess/src/trace/arguments.rs"]
mod arguments;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for (key, value) in arguments::pairs(text) {
        assert!(!key.is_empty() && text.contains(key) && text.contains(value));
        assert!(arguments::value(text, key).is_some());
    }
});
