//! Runs a kernel of this directory's code objects on the interpreter, as it is and as one that counts.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rpd_codeobject::counting::{CountedKernel, Rewritten, Variant};
use rpd_gfx9::{Counts, Target};

use crate::cpu;
use crate::machine::Machine;

pub(crate) const OBJECTS: [(&str, Target); 4] = [
    ("counting-gfx900-o2.co", Target::Gfx900),
    ("counting-gfx906-o2.co", Target::Gfx906),
    ("counting-gfx906-o0.co", Target::Gfx906),
    ("counting-asm.co", Target::Gfx906),
];
pub(crate) const VARIANTS: [(Variant, bool); 5] = [
    (Variant::Waves, false),
    (Variant::Waves, true),
    (Variant::Lanes, false),
    (Variant::Time, false),
    (Variant::Time, true),
];
/// Where things lie; far apart, so that an address that is wrong by a bit leads nowhere.
pub(crate) const ORIGINAL: u64 = 0x7f12_0000_0000;
pub(crate) const COPY: u64 = 0x7e34_0000_0000;
const MEMORY: u64 = 0x7d56_0000_0000;
const COUNTERS: u64 = 0x7c78_0000_0000;
const NUMBERS: usize = 300;
const RESULTS: u64 = MEMORY + 8192;
const ARGUMENTS: u64 = MEMORY + 16384;

pub(crate) fn bytes(file: &str) -> Vec<u8> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "data", file].iter().collect();
    fs::read(path).expect(file)
}

/// What a run of a kernel leaves.
pub(crate) struct Outcome {
    pub(crate) results: Vec<u8>,
    pub(crate) counters: Vec<u64>,
    pub(crate) counts: Counts,
    /// What the interpreter took.
    pub(crate) time: Duration,
}

/// Runs the original, or slot `slot` of the counting kernel, in fresh memory, which is as late as waits allow.
pub(crate) fn run(
    object: &[u8],
    made: &Rewritten,
    kernel: &CountedKernel,
    target: Target,
    slot: Option<usize>,
) -> Result<Outcome, String> {
    run_on(Machine::new(target), (3, 128), object, made, kernel, slot)
}

/// See [`run`]; `launch`: workgroups, and work-items of each.
pub(crate) fn run_on(
    mut machine: Machine,
    launch: (u32, u16),
    object: &[u8],
    made: &Rewritten,
    kernel: &CountedKernel,
    slot: Option<usize>,
) -> Result<Outcome, String> {
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
    let begin = cpu::time();
    let counts = machine.run(descriptor, ARGUMENTS, launch.0, launch.1)?;
    Ok(Outcome {
        time: cpu::time() - begin,
        results: machine.read(RESULTS, 4096),
        counters: machine.read_u64(COUNTERS, kernel.counters as usize),
        counts,
    })
}
