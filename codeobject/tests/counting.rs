//! Counting kernels on the software GPU's interpreter: results are those of the original kernels, and each counter is what the
//! interpreter has executed.

use std::fs;
use std::path::PathBuf;

use rpd_codeobject::counting::{CountedKernel, Options, Rewritten, Variant, rewrite};
use rpd_gfx9::{Counts, Target};

#[path = "counting/machine.rs"]
mod machine;
use machine::Machine;

const OBJECTS: [(&str, Target); 3] = [
    ("counting-gfx900-o2.co", Target::Gfx900),
    ("counting-gfx906-o2.co", Target::Gfx906),
    ("counting-gfx906-o0.co", Target::Gfx906),
];
const WAYS: [(Variant, bool); 5] = [
    (Variant::Waves, false),
    (Variant::Waves, true),
    (Variant::Lanes, false),
    (Variant::Time, false),
    (Variant::Time, true),
];
/// Where things lie; far apart, so that an address that is wrong by a bit leads nowhere.
const ORIGINAL: u64 = 0x7f12_0000_0000;
const COPY: u64 = 0x7e34_0000_0000;
const MEMORY: u64 = 0x7d56_0000_0000;
const COUNTERS: u64 = 0x7c78_0000_0000;
const NUMBERS: usize = 300;
const RESULTS: u64 = MEMORY + 8192;
const ARGUMENTS: u64 = MEMORY + 16384;

fn bytes(file: &str) -> Vec<u8> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "data", file].iter().collect();
    fs::read(path).expect(file)
}

/// What a run of a kernel leaves.
struct Outcome {
    results: Vec<u8>,
    counters: Vec<u64>,
    counts: Counts,
}

/// Runs the original, or slot `slot` of the counting kernel, in fresh memory.
fn run(
    object: &[u8],
    made: &Rewritten,
    kernel: &CountedKernel,
    target: Target,
    slot: Option<usize>,
) -> Result<Outcome, String> {
    let mut machine = Machine::new(target);
    machine.load(object, ORIGINAL);
    machine.load(&made.object, COPY);
    machine.area(MEMORY, 32768);
    machine.area(COUNTERS, kernel.counters as usize * 8);
    let mut number = 12345u32;
    for at in 0..NUMBERS as u64 {
        number = number.wrapping_mul(1664525).wrapping_add(1013904223);
        machine.write(MEMORY + 4 * at, &(number >> 12).to_le_bytes());
    }
    machine.write(ARGUMENTS, &RESULTS.to_le_bytes());
    machine.write(ARGUMENTS + 8, &MEMORY.to_le_bytes());
    machine.write(ARGUMENTS + 16, &(NUMBERS as u32 - 3).to_le_bytes());
    let descriptor = match slot {
        None => ORIGINAL + kernel.original_descriptor,
        Some(slot) => {
            let slot = kernel.slots[slot];
            machine.write(COPY + slot.cell, &COUNTERS.to_le_bytes());
            machine.write(COPY + slot.cell + 8, &ORIGINAL.to_le_bytes());
            COPY + slot.descriptor
        }
    };
    let counts = machine.run(descriptor, ARGUMENTS, 3, 128)?;
    Ok(Outcome {
        results: machine.read(RESULTS, 4096),
        counters: machine.read_u64(COUNTERS, kernel.counters as usize),
        counts,
    })
}

/// Executions of the instruction at an original address, in the counting run: the map says where it is now.
fn executed(made: &Rewritten, counts: &Counts, original: u64) -> (u64, u64) {
    let mut found = (0, 0);
    for (address, executed) in &counts.instructions {
        let Some(new) = address.checked_sub(COPY) else { continue };
        // The last instruction that stands for the original one: what is in front of it is executed as often.
        if made.map.original(new) == Some(original) && made.map.original(new + 4) != Some(original) {
            found = (executed.executions, executed.lanes);
        }
    }
    found
}

#[test]
fn counters_are_what_was_executed() {
    let mut compared = 0;
    for (file, target) in OBJECTS {
        let object = bytes(file);
        for (variant, scalar_first) in WAYS {
            for branch_limit in [40, 100, 200, 1 << 15] {
                let options = Options { variant, scalar_first, slots: 2, branch_limit };
                let made = rewrite(&object, &options, &|_| true).unwrap();
                assert!(made.refused.is_empty(), "{file}: {:?}", made.refused);
                for kernel in &made.kernels {
                    let named = format!("{file} {} {variant:?} {scalar_first} {branch_limit}", kernel.name);
                    assert_eq!(kernel.is_scalar, scalar_first, "{named}");
                    let plain = run(&object, &made, kernel, target, None).unwrap();
                    let counted = run(&object, &made, kernel, target, Some(1))
                        .unwrap_or_else(|trap| panic!("{named}: {trap}"));
                    assert!(plain.results == counted.results, "{named}: results differ");
                    assert!(plain.results.iter().any(|byte| *byte != 0), "{named}: no results");
                    for block in &made.blocks[kernel.blocks.clone()] {
                        let (waves, lanes) = executed(&made, &counted.counts, block.start);
                        let counter = block.counter as usize;
                        let told = format!("{named}: block {:#x}", block.start);
                        assert_eq!(counted.counters[counter], waves, "{told}");
                        if variant == Variant::Lanes {
                            assert_eq!(counted.counters[counter + 1], lanes, "{told}: lanes");
                        }
                        if !kernel.calls_by_pointer {
                            let before = plain
                                .counts
                                .instructions
                                .get(&(ORIGINAL + block.start))
                                .copied()
                                .unwrap_or_default();
                            assert_eq!(
                                (waves, lanes),
                                (before.executions, before.lanes),
                                "{told}: the original"
                            );
                        }
                        compared += usize::from(waves > 0);
                    }
                }
            }
        }
    }
    assert!(compared > 3000, "{compared} blocks executed");
}
