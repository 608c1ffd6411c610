//! Times of `rpd trim` and `rpd merge`: no text breaks the parser, and no duration is negative.

#![no_main]

#[path = "../../postprocess/src/moment/expression.rs"]
mod expression;
#[path = "../../postprocess/src/pattern.rs"]
mod pattern;

use libfuzzer_sys::fuzz_target;

use expression::Moment;

fuzz_target!(|text: &str| {
    if let Ok(Moment::At(ns) | Moment::AfterStart(ns) | Moment::BeforeEnd(ns) | Moment::Part(ns)) = text.parse() {
        assert!(ns >= 0, "{text:?}");
    }
    assert!(expression::duration_ns(text).is_none_or(|ns| ns >= 0), "{text:?}");
});
