//! One group of functions after the other: registers, layout, code.

use super::assembler::Assembler;
use super::layout::{Form, Layout};
use super::object::{Appended, DescriptorWords, Original, RegisterFile};
use super::program::Group;
use super::sequences::Sequences;
use super::{CountedKernel, Options, Refusal, Rewritten, RewrittenBlock, Slot, Variant, waiting};
use crate::descriptor::{self, SECOND_ENTRY};
use crate::instruction::SCALARS;

/// Bytes of a cell.
const CELL: u64 = 16;
/// Alignment of entries, and of the first byte of a group.
const ENTRY: u64 = SECOND_ENTRY;
const VECTORS: u32 = 256;

/// A wanted kernel of a group.
struct Wanted {
    /// Place among the object's functions.
    place: usize,
    address: u64,
    descriptor: DescriptorWords,
    calls_by_pointer: bool,
}

/// Adds a group's counting code.
///
/// # Errors
/// Why it has none. Then nothing was added.
pub(super) fn count(
    original: &Original<'_>,
    options: &Options,
    group: &Group<'_>,
    appended: &mut Appended,
    rewritten: &mut Rewritten,
) -> Result<(), Refusal> {
    let mut kernels = Vec::with_capacity(group.kernels.len());
    for (place, calls_by_pointer) in &group.kernels {
        let (address, descriptor) = original.descriptor(*place).ok_or(Refusal::NoCode)?;
        kernels.push(Wanted { place: *place, address, descriptor, calls_by_pointer: *calls_by_pointer });
    }
    let file = original.register_file();
    let used = registers_in_use(group, &kernels, file);
    let blocks: usize = group.functions.iter().map(|(_, code)| code.blocks.len()).sum();
    let per_block = options.variant.counters_per_block();
    let counters = u32::try_from(blocks).ok().and_then(|blocks| blocks.checked_mul(per_block));
    let counters = counters.filter(|counters| *counters < 1 << 26).ok_or(Refusal::TooManyBlocks(blocks))?;

    let slots = u64::from(options.slots);
    let cells = appended.here().next_multiple_of(CELL);
    let descriptors = (cells + CELL * slots * kernels.len() as u64).next_multiple_of(descriptor::SIZE as u64);
    let code = descriptors + descriptor::SIZE as u64 * slots * kernels.len() as u64;
    let slot_of = |kernel: usize, slot: u32| {
        let number = kernel as u64 * slots + u64::from(slot);
        Slot { cell: cells + CELL * number, descriptor: descriptors + descriptor::SIZE as u64 * number }
    };
    // By function of the group, which of the kernels it is. Both are in the order of their places.
    let kernel_of: Vec<Option<usize>> = group
        .functions
        .iter()
        .map(|(place, _)| kernels.binary_search_by_key(place, |kernel| kernel.place).ok())
        .collect();
    // Each slot has all the entries of its kernel, one behind the other.
    let per_slot =
        |function: usize| ENTRY * if group.functions[function].1.second_entry.is_some() { 2 } else { 1 };
    let room = |function: usize, address: u64| match kernel_of[function] {
        Some(_) => address.next_multiple_of(ENTRY) + per_slot(function) * slots,
        None => address,
    };

    let (layout, sequences, end) = arranged(original, options, group, counters, used, code, &room)?;
    if !appended.may_end_at(end) {
        return Err(Refusal::TooLarge);
    }
    let first_block = rewritten.blocks.len();
    add_blocks(original, group, options.variant, rewritten);
    let may_wait = waiting::may_wait(group.functions.iter().map(|(_, code)| *code), group.calls_by_pointer);

    appended.zeros(cells, CELL * slots * kernels.len() as u64);
    let counting = (0..kernel_of.len()).filter_map(|function| Some((function, kernel_of[function]?)));
    for (function, number) in counting {
        let kernel = &kernels[number];
        let first_entry = layout.placed[layout.firsts[function]].address - per_slot(function) * slots;
        let mut made = Vec::new();
        for slot in 0..options.slots {
            let slot_at = slot_of(number, slot);
            let entry = first_entry + per_slot(function) * u64::from(slot);
            let words =
                kernel.descriptor.with(file, slot_at.descriptor, entry, sequences.scalars, sequences.vectors);
            appended.descriptor(slot_at.descriptor, &words);
            made.push(slot_at);
        }
        let after = kernel.descriptor.with(file, 0, 0, sequences.scalars, sequences.vectors);
        rewritten.kernels.push(CountedKernel {
            name: original.functions[kernel.place].name.to_string(),
            original_descriptor: kernel.address,
            slots: made,
            blocks: first_block..rewritten.blocks.len(),
            counters: counters + u32::from(options.variant == Variant::Time),
            registers: after.allotted(file),
            is_scalar: sequences.is_scalar,
            calls_by_pointer: kernel.calls_by_pointer,
            may_wait,
            original_registers: kernel.descriptor.allotted(file),
            processor: original.target.processor.clone(),
        });
    }

    let mut function = 0;
    let mut code = Assembler { start: code, ..Assembler::default() };
    for (at, placed) in layout.placed.iter().enumerate() {
        while layout.firsts.get(function) == Some(&at) {
            if let Some(kernel) = kernel_of[function] {
                let second = group.functions[function].1.second_entry.map(|second| at + second);
                let first_entry = placed.address - per_slot(function) * slots;
                let entries = (0..options.slots)
                    .flat_map(|slot| [Some(at), second].into_iter().flatten().map(move |into| (slot, into)));
                for (number, (slot, into)) in entries.enumerate() {
                    nops(&mut code, first_entry + ENTRY * number as u64);
                    sequences.prologue(&mut code, slot_of(kernel, slot).cell, layout.wants);
                    let distance = (layout.placed[into].address - code.here() - 4) / 4;
                    code.sopp(crate::instruction::op::S_BRANCH, distance as u32);
                }
                nops(&mut code, placed.address);
            }
            function += 1;
        }
        let original_address = placed.step.address;
        placed.prefix(&sequences, &mut code);
        rewritten.map.add(placed.address, original_address, placed.own_address() - placed.address, true);
        let target = match placed.form {
            Form::Branch { target, .. } | Form::Call { target, .. } => layout.placed[target].address,
            Form::PointerCall { search, .. } | Form::PointerJump { search } => {
                layout.searches[search].address
            }
            Form::Copy | Form::OwnAddress { .. } => 0,
        };
        placed.own(&sequences, &mut code, target);
        let length = placed.bytes() - (placed.own_address() - placed.address);
        rewritten.map.add(placed.own_address(), original_address, length, placed.is_longer());
    }
    let address = |function: usize| layout.placed[function].address;
    for search in &layout.searches {
        sequences.search(&mut code, search.pointer, &layout.pointed, &address);
    }
    appended.code(code.start, &code.words);
    Ok(())
}

fn nops(code: &mut Assembler, until: u64) {
    while code.here() < until {
        code.sopp(0, 0);
    }
}

/// Registers, and a layout that fits them: through the vector unit if its registers suffice.
fn arranged<'p>(
    original: &Original<'_>,
    options: &Options,
    group: &Group<'p>,
    counters: u32,
    used: (u32, u32),
    start: u64,
    room: &dyn Fn(usize, u64) -> u64,
) -> Result<(Layout<'p>, Sequences, u64), Refusal> {
    let is_indexed = group.functions.iter().any(|(_, code)| code.has_indexed_block());
    let has_one_file = original.target.has_one_register_file();
    let orders: &[bool] = match (options.variant, options.scalar_first) {
        // Nobody has seen these processors add through the scalar unit.
        _ if has_one_file => &[false],
        (Variant::Lanes, _) => &[false],
        (_, true) => &[true, false],
        (_, false) => &[false, true],
    };
    let mut first_refusal = None;
    for is_scalar in orders.iter().copied() {
        let attempt = || {
            if is_indexed && !is_scalar {
                return Err(Refusal::IndexedRegisters);
            }
            let mut layout = Layout::new(original, group, options.variant.counters_per_block());
            let sequences =
                |wants| Sequences::new(options.variant, is_scalar, counters, wants, used, has_one_file);
            let provisional = sequences(layout.wants)?;
            let end = layout.place(&provisional, start, options.branch_limit, room);
            // Long branches may want more registers; their numbers change no length.
            Ok((sequences(layout.wants)?, layout, end))
        };
        match attempt() {
            Ok((sequences, layout, end)) => return Ok((layout, sequences, end)),
            Err(refusal) => drop(first_refusal.get_or_insert(refusal)),
        }
    }
    Err(first_refusal.unwrap_or(Refusal::NoCode))
}

/// Scalar and vector registers of the group: one more than the highest of each.
fn registers_in_use(group: &Group<'_>, kernels: &[Wanted], file: RegisterFile) -> (u32, u32) {
    let most = |number: &dyn Fn(&Wanted) -> u32| kernels.iter().map(number).max().unwrap_or(0);
    let initial = most(&|kernel| kernel.descriptor.initial_scalars());
    let allotted = most(&|kernel| kernel.descriptor.most_vectors(file));
    // Code that only pointers lead to may name all that the descriptor has.
    let scalars = match group.registers.is_scalar_open || group.calls_by_pointer {
        true => most(&|kernel| kernel.descriptor.most_scalars(file)).max(group.registers.scalar),
        false => group.registers.scalar,
    };
    // No code under a descriptor may name more vector registers than it has.
    let vectors = match group.registers.is_vector_open || group.calls_by_pointer {
        true => allotted,
        false => group.registers.vector.min(allotted),
    };
    (scalars.max(initial).min(SCALARS), vectors.min(VECTORS))
}

fn add_blocks(original: &Original<'_>, group: &Group<'_>, variant: Variant, rewritten: &mut Rewritten) {
    let mut counter = 0;
    for (place, code) in &group.functions {
        let function = rewritten.functions.len() as u32;
        rewritten.functions.push(original.functions[*place].name.to_string());
        for block in &code.blocks {
            let steps = &code.steps[block.clone()];
            let mut classes = [0; 8];
            for step in steps {
                classes[step.instruction.class().index()] += 1;
            }
            rewritten.blocks.push(RewrittenBlock {
                function,
                start: steps.first().map_or(0, |step| step.address),
                end: steps.last().map_or(0, |step| step.next()),
                instructions: steps.len() as u32,
                classes,
                counter,
            });
            counter += variant.counters_per_block();
        }
    }
}
