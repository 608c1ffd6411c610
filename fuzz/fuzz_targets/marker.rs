//! Texts of markers: one that is taken for an operator is the same text again when it is put together.

#![no_main]

#[path = "../../postprocess/src/passes/autograd/marker.rs"]
mod marker;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let marker::MarkerText::Operator(operator) = marker::MarkerText::of(text) {
        assert_eq!(operator.to_string(), text);
    }
});
