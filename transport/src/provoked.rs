//! Panics on demand, to see what they do to a program: `RPDT_PANIC_IN=PLACE:N` makes the N-th passage of that place panic. Only
//! with the feature `panic-in-hooks`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Panics if it is this passage's turn. Places: `hook` (twice in each exported function and hook), `writer`, `completion`,
/// `messages` and `analysis` (of instrumented kernels).
pub fn panic(place: &str) {
    static WANTED: OnceLock<Option<(String, u32)>> = OnceLock::new();
    static PASSED: AtomicU32 = AtomicU32::new(0);
    let wanted = WANTED.get_or_init(|| {
        let value = std::env::var("RPDT_PANIC_IN").ok()?;
        let (place, turn) = value.split_once(':')?;
        Some((place.to_string(), turn.parse().ok()?))
    });
    if let Some((wanted, turn)) = wanted
        && wanted == place
        && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == *turn
    {
        panic!("provoked");
    }
}
