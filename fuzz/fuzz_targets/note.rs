//! Notes beside a trace: whatever they say, counts are bounded, and what is read is the same when it is written and read again.

#![no_main]

#[path = "../../schema/src/note/form.rs"]
mod form;
#[path = "../../schema/src/session_fact.rs"]
mod session_fact;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Some(said) = form::Said::read(text) else { return };
    for (key, value) in &said.facts {
        assert!(value.len() <= form::LONGEST_VALUE);
        assert!(!key.starts_with(session_fact::LOST) || value.parse::<u64>().is_ok_and(|count| count < 1 << 48));
    }
    let again = form::Said::read(&said.text()).expect("a whole note");
    assert_eq!((again.trace, again.session), (said.trace, said.session));
    assert!(again.facts.len() <= said.facts.len());
});
