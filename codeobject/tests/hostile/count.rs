//! Counting kernels made of bytes that nobody vouches for, and what is true of each. Shared with the fuzz target `counting`.

use std::collections::BTreeSet;

use rpd_codeobject::counting::{Options, Refusal, Variant, rewrite};
use rpd_codeobject::instruction::{Control, Instruction};
use rpd_codeobject::loadable;

/// Rewrites all kernels in one of the ways, which `way` chooses.
pub(crate) fn count(bytes: &[u8], way: usize) -> Option<Refusal> {
    let variant = [Variant::Waves, Variant::Lanes, Variant::Time][way % 3];
    let options =
        Options { variant, scalar_first: way % 2 == 1, slots: 2, branch_limit: [60, 1 << 15][way / 2 % 2] };
    let made = match rewrite(bytes, &options, &|_| true) {
        Ok(made) => made,
        Err(refusal) => return Some(refusal),
    };
    for (name, refusal) in &made.refused {
        assert!(!refusal.to_string().contains('\n') || name.contains('\n'));
    }
    if loadable(bytes).is_ok() {
        let again = loadable(&made.object).expect("what can be loaded still can");
        assert_eq!(again.kernels, loadable(bytes).expect("as before").kernels);
    }
    for block in &made.blocks {
        assert!(block.start < block.end && block.instructions > 0);
        assert_eq!(block.classes.iter().sum::<u32>(), block.instructions);
    }
    // The new segment is the last one that is loaded; slots and code are in it.
    let word = |at: usize| u32::from_le_bytes(made.object[at..at + 4].try_into().expect("a word"));
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let mut headers = (0..usize::from(made.object[56])).map(|number| long(32) as usize + 56 * number);
    let load = headers.rfind(|at| word(*at) == 1).expect("a segment");
    let (offset, address, length) = (long(load + 8), long(load + 16), long(load + 32));
    let place = |virtual_address: u64| {
        assert!(virtual_address >= address && virtual_address < address + length);
        (virtual_address - address + offset) as usize
    };
    for kernel in &made.kernels {
        assert!(kernel.counters as usize >= kernel.blocks.len());
        for slot in &kernel.slots {
            assert_eq!(made.object[place(slot.cell)..][..16], [0; 16]);
            let entry = slot.descriptor.wrapping_add(long(place(slot.descriptor) + 16));
            assert!(place(entry) > place(slot.cell) && entry % 256 == 0);
        }
    }
    // Each branch leads to an instruction.
    let (mut begins, mut targets) = (BTreeSet::new(), BTreeSet::new());
    for (new, length, _) in made.map.stretches() {
        let mut at = new;
        while at < new + length {
            let words = (word(place(at)), word(place(at + 4)));
            let instruction = Instruction::decode(words.0, Some(words.1)).expect("an instruction");
            begins.insert(at);
            at += u64::from(instruction.length);
            if let Control::Branch(distance) | Control::Conditional(distance) = instruction.control() {
                targets.insert(at.wrapping_add_signed(i64::from(distance) * 4));
            }
        }
    }
    assert!(targets.is_subset(&begins), "a branch leads to no instruction");
    None
}
