//! What is true of each object with counting kernels. Shared with the fuzz target `counting`, and with the test of real libraries.

use rpd_codeobject::counting::Rewritten;
use rpd_codeobject::descriptor::AllottedRegisters;
use rpd_codeobject::instruction::{Control, Instruction};
use rpd_codeobject::loadable;

/// What was made of these bytes is an object that can be loaded where they could, whose slots lead to its code, and whose branches lead to
/// instructions.
pub(crate) fn sound(bytes: &[u8], made: &Rewritten) {
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
    let (mut begins, mut targets, mut scalars) = (Vec::new(), Vec::new(), 0);
    for (new, length, _) in made.map.stretches() {
        let mut at = new;
        while at < new + length {
            let words = (word(place(at)), word(place(at + 4)));
            let instruction = Instruction::decode(words.0, Some(words.1)).expect("an instruction");
            begins.push(at);
            at += u64::from(instruction.length);
            scalars = scalars.max(instruction.registers().scalar);
            if let Control::Branch(distance) | Control::Conditional(distance) = instruction.control() {
                targets.push(at.wrapping_add_signed(i64::from(distance) * 4));
            }
        }
    }
    assert!(begins.is_sorted());
    // What the code names is allotted, with the six behind it (VCC and others), and nobody asks for more than a wave can have.
    let allotted = made.kernels.iter().map(|kernel| kernel.registers.sgprs).max().unwrap_or(0);
    assert!(begins.is_empty() || scalars + 6 <= allotted, "{scalars} of {allotted}");
    let can_be = |registers: AllottedRegisters| registers.vgprs <= 512 && registers.agprs <= 256;
    assert!(made.kernels.iter().all(|kernel| can_be(kernel.registers)));
    let is_instruction = |target: &u64| begins.binary_search(target).is_ok();
    assert!(targets.iter().all(is_instruction), "a branch leads to no instruction");
}
