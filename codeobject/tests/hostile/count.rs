//! Counting kernels made of bytes that nobody vouches for. Shared with the fuzz target `counting`.

use rpd_codeobject::counting::{Options, Refusal, Variant, rewrite};

#[path = "sound.rs"]
mod sound;
use sound::sound;

/// Rewrites all kernels in one of the ways, which `way` chooses.
pub(crate) fn count(bytes: &[u8], choice: usize) -> Option<Refusal> {
    let variant = [Variant::Waves, Variant::Lanes, Variant::Time][choice % 3];
    let options = Options {
        variant,
        scalar_first: choice % 2 == 1,
        slots: 2,
        branch_limit: [60, 1 << 15][choice / 2 % 2],
    };
    let made = match rewrite(bytes, &options, &|_| true) {
        Ok(made) => made,
        Err(refusal) => return Some(refusal),
    };
    for (name, refusal) in &made.refused {
        assert!(!refusal.to_string().contains('\n') || name.contains('\n'));
    }
    sound(bytes, &made);
    None
}
