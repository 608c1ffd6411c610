//! Whether the workgroups of a kernel may wait for each other, as those of a grid barrier or a persistent kernel do.
//!
//! A workgroup that waits for another one reads, in a loop, what the other one writes. Both are on compute units with caches of their own, so such
//! a read goes around the cache: it has one of the bits for that (glc and slc; sc0, sc1 and nt from gfx940 on), is an atomic operation
//! that returns a value, or the loop invalidates the cache. A loop without any such instruction waits for no other workgroup. The only other
//! way are the instructions for global wave sync and ordered counts.

use crate::blocks::{FunctionBlocks, Step};
use crate::instruction::{Control, Format, Instruction};

/// Whether workgroups that run this code may wait for each other; `calls_by_pointer`: it calls code that is not among it.
pub(super) fn may_wait<'f>(
    functions: impl Iterator<Item = &'f FunctionBlocks> + Clone,
    calls_by_pointer: bool,
) -> bool {
    let steps = || functions.clone().flat_map(|function| &function.steps);
    if calls_by_pointer || steps().any(|step| is_global_sync(&step.instruction)) {
        return true;
    }
    // Each loop, a recursion too, is between the lowest target of a branch or call backwards and the last of them.
    let backwards = || steps().filter_map(|step| Some((step.target.filter(|to| *to <= step.address)?, step)));
    let Some(first) = backwards().map(|(target, _)| target).min() else { return false };
    let last = backwards().map(|(_, step)| step.address).max().unwrap_or(first);
    let loops = || steps().filter(|step| (first..=last).contains(&step.address));
    let calls = |step: &Step| matches!(step.instruction.control(), Control::Call { .. });
    let reads = |step: &Step| reads_around_caches(&step.instruction);
    match loops().any(calls) {
        // What is called is somewhere else.
        true => steps().any(reads),
        false => loops().any(reads),
    }
}

/// ds_gws_* and ds_ordered_count.
fn is_global_sync(instruction: &Instruction) -> bool {
    instruction.format == Format::Ds && matches!(instruction.op, 152..=157 | 191)
}

/// Whether it may read what another compute unit has written since it last read there, or makes a later read do so.
fn reads_around_caches(instruction: &Instruction) -> bool {
    let has = |bits: &[u32]| bits.iter().any(|bit| instruction.words[0] >> bit & 1 != 0);
    match (instruction.format, instruction.op) {
        // Stores.
        (Format::Flat, 24..=31) => false,
        // glc or sc0, slc or nt, sc1.
        (Format::Flat, _) => has(&[16, 17, 25]),
        // Stores, and a cache that is written back (buffer_wbl2).
        (Format::Mubuf, 4..=7 | 12..=15 | 24..=31 | 39 | 40 | 61) => false,
        // Caches that are invalidated: buffer_invl2 or buffer_inv, buffer_wbinvl1, buffer_wbinvl1_vol.
        (Format::Mubuf, 41 | 62 | 63) => true,
        // glc or sc0, sc1, slc or nt.
        (Format::Mubuf, _) => has(&[14, 15, 17]),
        // Compute kernels hardly have these.
        (Format::Mtbuf | Format::Mimg, _) => true,
        // s_dcache_inv, s_dcache_inv_vol.
        (Format::Smem, 32 | 34) => true,
        // Loads and atomic operations: glc.
        (Format::Smem, 0..=12 | 64..) => has(&[16]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Function;
    use crate::blocks::blocks;

    const LOAD: [u32; 2] = [0xdc50_8000, 0x007f_0000]; // global_load_dword v0, v[0:1], off
    const GLC: u32 = 1 << 16;
    const END: u32 = 0xbf81_0000;
    const NOP: u32 = 0xbf80_0000;

    /// A branch (s_cbranch_scc1) of so many words from its end.
    fn back(words: i16) -> u32 {
        0xbf85_0000 | u32::from(words as u16)
    }

    fn waits(words: &[u32]) -> bool {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let function = Function { name: "f", address: 0x1000, code: &code, descriptor: None };
        may_wait([&blocks(&function).unwrap()].into_iter(), false)
    }

    #[test]
    fn reads_around_the_cache_in_a_loop() {
        let [load, address] = LOAD;
        assert!(!waits(&[load, address, back(-3), END]), "a load that the cache answers");
        assert!(waits(&[load | GLC, address, back(-3), END]));
        assert!(!waits(&[load | GLC, address, NOP, back(-2), END]), "no loop has the load");
        assert!(waits(&[NOP, load | GLC, address, back(-4), END]), "the loop has more than the load");
        assert!(waits(&[load, address, 0xe0fc_0000, 0, back(-5), END]), "buffer_wbinvl1_vol");
        let (store, atomic) = (0xdc70_8000, 0xdd08_8000);
        assert!(!waits(&[store | GLC, address, back(-3), END]), "a store");
        assert!(!waits(&[atomic, address, back(-3), END]), "an atomic operation that returns nothing");
        assert!(waits(&[atomic | GLC, address, back(-3), END]));
        assert!(waits(&[0xc002_0000 | GLC, 0, back(-3), END]), "s_load_dword glc");
        assert!(!waits(&[0xc002_0000, 0, back(-3), END]));
        assert!(!waits(&[0xc090_0000, 0, back(-3), END]), "s_memtime");
    }

    #[test]
    fn global_sync_and_unknown_code_may_wait_anywhere() {
        assert!(waits(&[0xd93b_0000, 0, END]), "ds_gws_barrier");
        assert!(!waits(&[0xd86c_0000, 0, END]), "ds_read_b32");
        assert!(may_wait([&FunctionBlocks::default()].into_iter(), true));
    }
}
