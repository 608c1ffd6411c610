//! Kernels that count how often each of their basic blocks is executed, made of finished code objects for gfx9.
//!
//! [`rewrite()`] lays the code of the kernels that are asked for out anew, with a few instructions at the start of each block, in a segment
//! behind all others of a copy of the code object. Nothing in front of it changes. The copy is loaded beside the original, as an executable
//! of its own, and a dispatch runs either the original kernel or the counting one:
//!
//! - **Registers.** Counting needs a few registers for the whole life of a wave: those above all that the kernel and the functions that it
//!   calls use. The kernel's descriptor asks for so many more.
//! - **Slots.** Each kernel has [`Options::slots`] of them: a descriptor, an entry and a [cell](Slot::cell) each, so that as many dispatches can
//!   count into buffers of their own. The entry reads the cell and goes on in the code that all slots share.
//! - **Data.** The code works on the original's data: each address that it works out of its own is the one that the original would work
//!   out. So what the original and the counting kernels share is there once, and function pointers are those of the original code.
//! - **Calls.** Calls of known functions lead to their counting copies. A call by a pointer looks for the original's function there among those
//!   of the code object that a pointer may lead to, and goes on in its counting copy. What it does not find runs as it is, uncounted.
//!
//! Nothing that is added touches SCC where it is in use, VCC or M0; EXEC is what it was behind each sequence. Waits (s_waitcnt) need no
//! change: an added operation can only make fewer of the program's own ones outstanding.

mod assembler;
mod groups;
mod layout;
mod object;
mod program;
mod sequences;
mod waiting;

use std::collections::BTreeSet;
use std::ops::Range;

use crate::blocks::Obstacle;
use crate::descriptor::AllottedRegisters;
use crate::occupancy::{Need, Occupancy};
use crate::{Error, Target};

/// What is counted of each block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// The waves that execute it, also those without an active lane.
    Waves,
    /// The waves, and the active lanes.
    Lanes,
    /// The waves, and the ticks of the core's clock (s_memtime) that they spend from its start to the start of their next block.
    Time,
}

impl Variant {
    /// Counters of each block, 64 bits each: [`RewrittenBlock::counter`] is the first.
    ///
    /// 0: waves. Of [`Variant::Lanes`], 1: lanes. Of [`Variant::Time`], 1: sum of the clock at each entry, 2: sum of the clock at each exit,
    /// both modulo 2^64: the second less the first is the time.
    pub fn counters_per_block(self) -> u32 {
        match self {
            Variant::Waves => 1,
            Variant::Lanes => 2,
            Variant::Time => 3,
        }
    }
}

/// How to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What.
    pub variant: Variant,
    /// Through the scalar unit (s_atomic_add_x2) where it can, not only where vector registers are short: it changes occupancy less, but no
    /// compiler uses these instructions. Lanes are counted by the vector unit alone.
    pub scalar_first: bool,
    /// Slots of each kernel, 1 to 64.
    pub slots: u32,
    /// How far a branch reaches, in words; 32768 is what the hardware has. Less makes branches take their long form: for tests.
    pub branch_limit: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { variant: Variant::Waves, scalar_first: false, slots: 1, branch_limit: 1 << 15 }
    }
}

/// Why a code object, or one kernel of it, cannot count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It cannot be read.
    #[error(transparent)]
    Object(#[from] Error),
    /// Built for a processor whose code is not rewritten.
    #[error("built for {0}: only gfx900 to gfx90c and gfx940 to gfx942 are rewritten")]
    Target(String),
    /// The loader would have to find symbols elsewhere.
    #[error("it refers to {0}, which it does not define")]
    ExternalSymbol(String),
    /// It is larger than any that is loaded.
    #[error("it is too large")]
    TooLarge,
    /// What cannot be followed, in the kernel itself or in a function that it calls.
    #[error("{function}: {obstacle}")]
    Code {
        /// Mangled name.
        function: String,
        /// What.
        obstacle: Obstacle,
    },
    /// It jumps into the middle of another function.
    #[error("{function}: jump into another function at {address:#x}")]
    JumpOutside {
        /// Mangled name.
        function: String,
        /// Virtual address of the jump.
        address: u64,
    },
    /// All scalar registers are in use, or nearly all.
    #[error("no free scalar registers: {used} of 102 are in use, {needed} are needed")]
    NoScalarRegisters {
        /// In use.
        used: u32,
        /// Needed.
        needed: u32,
    },
    /// All vector registers are in use, or nearly all.
    #[error("no free vector registers: {used} of 256 are in use, {needed} are needed")]
    NoVectorRegisters {
        /// In use.
        used: u32,
        /// Needed.
        needed: u32,
    },
    /// A block begins where vector registers are counted from M0 on (s_set_gpr_idx_on).
    #[error("a block begins between s_set_gpr_idx_on and s_set_gpr_idx_off")]
    IndexedRegisters,
    /// More blocks than the instructions that count can name.
    #[error("too many blocks: {0}")]
    TooManyBlocks(usize),
    /// Its descriptor is damaged.
    #[error("its descriptor leads nowhere")]
    NoCode,
}

/// A code object with kernels that count.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rewritten {
    /// The ELF file: the original one, and a segment behind it. All addresses below are virtual ones in it.
    pub object: Vec<u8>,
    /// Kernels that count.
    pub kernels: Vec<CountedKernel>,
    /// Blocks of all of them and of the functions that they call: [`CountedKernel::blocks`].
    pub blocks: Vec<RewrittenBlock>,
    /// Mangled names of kernels and functions: [`RewrittenBlock::function`].
    pub functions: Vec<String>,
    /// Kernels that were asked for and cannot count, with the reason.
    pub refused: Vec<(String, Refusal)>,
    /// From the new code to the original.
    pub map: AddressMap,
}

/// A kernel that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CountedKernel {
    /// Mangled name, no suffix.
    pub name: String,
    /// The original's descriptor: what the symbol `NAME.kd` says. A loaded address is that symbol's loaded address, less this, plus a
    /// virtual address.
    pub original_descriptor: u64,
    /// Its entries, each with counters of its own.
    pub slots: Vec<Slot>,
    /// The kernel's blocks, and those of the functions that it calls and of the kernels that call these too: a range of
    /// [`Rewritten::blocks`]. They count into one buffer.
    pub blocks: Range<usize>,
    /// Counters of that buffer, 64 bits each. It has to be aligned to 8 bytes, and zero at first.
    pub counters: u32,
    /// Registers as the hardware allots them to the counting kernel.
    pub registers: AllottedRegisters,
    /// It counts through the scalar unit, since too few vector registers were free.
    pub is_scalar: bool,
    /// It, or a function that it calls, calls functions that only a register names. They are counted if the code object has them and they can
    /// be; others run as they are.
    pub calls_by_pointer: bool,
    /// Its workgroups may wait for each other: it, or a function that it calls, has a loop that reads what other workgroups write, or calls what
    /// is not known.
    pub may_wait: bool,
    /// Registers as the hardware allots them to the original.
    original_registers: AllottedRegisters,
    processor: String,
}

impl CountedKernel {
    /// How many workgroups of so many work-items and bytes of LDS a compute unit holds at once.
    pub fn residency(&self, work_items: u32, lds: u32) -> Residency {
        let of = |registers: AllottedRegisters| {
            let need = Need {
                vgprs: registers.vgprs,
                sgprs: registers.sgprs,
                lds,
                workgroup: work_items,
                wavefront_size: 64,
                workgroup_processor_mode: false,
            };
            Occupancy::of(&self.processor, &need).map_or(0, |occupancy| occupancy.workgroups)
        };
        Residency { original: of(self.original_registers), counting: of(self.registers) }
    }
}

/// Whole workgroups of one size that a compute unit holds at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Residency {
    /// Of the original kernel.
    pub original: u32,
    /// Of the counting one. 0: such a workgroup is never launched.
    pub counting: u32,
}

impl Residency {
    /// Whether so many workgroups all run at once as the original, and not all as the counting kernel: if they wait for each other, they would
    /// wait for ever. More than the original has room for would do so in any case. Without a number of compute units: whether some number of
    /// workgroups is like that.
    pub fn loses_some(&self, workgroups: u64, compute_units: Option<u32>) -> bool {
        let Some(compute_units) = compute_units else { return self.counting < self.original };
        let at_once = |each: u32| u64::from(each) * u64::from(compute_units);
        (at_once(self.counting) + 1..=at_once(self.original)).contains(&workgroups)
    }
}

/// An entry of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Virtual address of the descriptor that a dispatch names.
    pub descriptor: u64,
    /// Virtual address of 16 bytes, aligned to 16, that have to be written before a dispatch: the address of the buffer of counters, and the
    /// address at which the program's own, original code object is loaded (that of its virtual address 0). 64 bits each.
    pub cell: u64,
}

/// A basic block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RewrittenBlock {
    /// Whose: place in [`Rewritten::functions`].
    pub function: u32,
    /// First instruction, as a virtual address of the original.
    pub start: u64,
    /// Behind its last instruction.
    pub end: u64,
    /// How many.
    pub instructions: u32,
    /// How many of each kind, by [`InstructionClass::index`](crate::instruction::InstructionClass::index).
    pub classes: [u32; 8],
    /// Its first counter in the buffer: see [`Variant::counters_per_block`].
    pub counter: u32,
}

/// Which instruction of the original one of the new code is, or belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressMap {
    /// New address, original address, bytes: instructions that lie one behind the other in both. Sorted.
    runs: Vec<Run>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    new: u64,
    original: u64,
    /// Bytes in the new code.
    length: u64,
    /// One original instruction, which all of these bytes stand for.
    is_one: bool,
}

impl AddressMap {
    /// The original's virtual address of the instruction that is at a virtual address of the new code, or that what is there was put in
    /// front of, or stands for. `None` outside of the new code, and in entries.
    pub fn original(&self, new: u64) -> Option<u64> {
        let run = self.runs[..self.runs.partition_point(|run| run.new <= new)].last()?;
        let into = new - run.new;
        (into < run.length).then(|| run.original + if run.is_one { 0 } else { into })
    }

    /// Each stretch: its new address, its length in bytes, and the original address of its first instruction.
    pub fn stretches(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.runs.iter().map(|run| (run.new, run.length, run.original))
    }

    fn add(&mut self, new: u64, original: u64, length: u64, is_one: bool) {
        match self.runs.last_mut() {
            Some(last)
                if !is_one
                    && !last.is_one
                    && last.new + last.length == new
                    && last.original + last.length == original =>
            {
                last.length += length;
            }
            _ if length > 0 => self.runs.push(Run { new, original, length, is_one }),
            _ => {}
        }
    }
}

/// Makes the kernels whose mangled names are `wanted` count, in a copy of the code object.
///
/// # Errors
/// Why no kernel of it can. What concerns one kernel alone is in [`Rewritten::refused`].
pub fn rewrite(
    object: &[u8],
    options: &Options,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Rewritten, Refusal> {
    let original = object::Original::open(object)?;
    let options = Options {
        slots: options.slots.clamp(1, 64),
        branch_limit: options.branch_limit.clamp(1, 1 << 15),
        ..*options
    };
    let program = program::Program::of(&original.functions, options.variant == Variant::Lanes, wanted);
    let mut made = object::Appended::new(original.end);
    let mut rewritten = Rewritten {
        object: Vec::new(),
        kernels: Vec::new(),
        blocks: Vec::new(),
        functions: Vec::new(),
        refused: program.refused.clone(),
        map: AddressMap::default(),
    };
    for group in program.groups(&program.kernels, true) {
        let Err(refusal) = groups::count(&original, &options, &group, &mut made, &mut rewritten) else {
            continue;
        };
        let kernels: Vec<usize> = group.kernels.iter().map(|(place, _)| *place).collect();
        if group.pointed.is_empty() {
            refuse(&original, &kernels, &refusal, &mut rewritten);
            continue;
        }
        // Functions that pointers may lead to tie many kernels together; each may do without them.
        for group in program.groups(&kernels, false) {
            if let Err(refusal) = groups::count(&original, &options, &group, &mut made, &mut rewritten) {
                let kernels: Vec<usize> = group.kernels.iter().map(|(place, _)| *place).collect();
                refuse(&original, &kernels, &refusal, &mut rewritten);
            }
        }
    }
    rewritten.object = object::append(object, &original, made);
    Ok(rewritten)
}

/// Those of the kernels whose mangled names are `wanted` whose workgroups may wait for each other, or whose code is not understood.
///
/// # Errors
/// Why nothing of it is understood.
pub fn waiting(object: &[u8], wanted: &dyn Fn(&str) -> bool) -> Result<BTreeSet<String>, Refusal> {
    let original = object::Original::open(object)?;
    let program = program::Program::of(&original.functions, false, wanted);
    let mut found: BTreeSet<String> = program.refused.iter().map(|(name, _)| name.clone()).collect();
    for group in program.groups(&program.kernels, true) {
        if waiting::may_wait(group.functions.iter().map(|(_, code)| *code), group.calls_by_pointer) {
            found.extend(group.kernels.iter().map(|(place, _)| original.functions[*place].name.to_string()));
        }
    }
    Ok(found)
}

fn refuse(original: &object::Original<'_>, kernels: &[usize], why: &Refusal, rewritten: &mut Rewritten) {
    let named = |place: &usize| (original.functions[*place].name.to_string(), why.clone());
    rewritten.refused.extend(kernels.iter().map(named));
}

/// Processors whose code is rewritten: what differs in their instructions does not matter here.
const PROCESSORS: [&str; 11] = [
    "gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90a", "gfx90c", "gfx940", "gfx941",
    "gfx942",
];

fn is_rewritten(target: &Target) -> bool {
    PROCESSORS.contains(&target.processor.as_str())
}
