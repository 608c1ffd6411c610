//! Each counter is what the interpreter executed in the same run: of rocPRIM's and rocRAND's kernels, of what textbooks and collections of samples have,
//! and of the programs that other tests record. With RPD_SOAK in all ways of counting, with branches that are long and that are not.
//!
//! The rewriter makes the same of the same bytes. So the code objects that the recorder has saved are rewritten here once more, and say
//! what each address in the log was.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object as _, ObjectSegment};
use rpd_codeobject::counting::{CountedKernel, Options, Rewritten, Variant, rewrite};
use rpd_codeobject::demangle;
use rpd_codeobject::instruction::Instruction;
use rpd_simgpu::counts::{self, KernelCounts};

use crate::harness::{Dir, Loading, Ran, Run, Trace, aql_code_object, program};

/// What the recorder may be asked for: RPDT_COUNT_BLOCKS, and what it makes of that.
const VARIANTS: [(&str, Variant, bool); 5] = [
    ("count", Variant::Waves, false),
    ("count,scalar", Variant::Waves, true),
    ("lanes", Variant::Lanes, false),
    ("time", Variant::Time, false),
    ("time,scalar", Variant::Time, true),
];
/// Of these, what a short test does.
const SOME: [usize; 2] = [2, 4];
/// How far a branch reaches, in words: as far as it can, and so far that nearly all, or some, are too long.
const REACHES: [u32; 3] = [1 << 15, 40, 200];
/// Slots that the recorder gives each kernel.
const SLOTS: u32 = 4;

/// A wait that counting code has broken, or lacks, makes results wrong.
const LATE: &str = "[execution]\nlate_memory = true\n";

/// By kernel, function and address in the code object: waves, lanes.
type Blocks = BTreeMap<(String, String, i64), (i64, Option<i64>)>;

/// The segment that the rewriter has added.
struct Bytes<'a> {
    bytes: &'a [u8],
    address: u64,
}

impl Bytes<'_> {
    fn of(made: &Rewritten) -> Bytes<'_> {
        let elf = ElfFile64::<LittleEndian>::parse(&*made.object).unwrap();
        let load = elf.segments().last().unwrap();
        Bytes { bytes: load.data().unwrap(), address: load.address() }
    }

    fn holds(&self, address: u64) -> bool {
        address.checked_sub(self.address).is_some_and(|at| at < self.bytes.len() as u64)
    }

    fn long(&self, address: u64) -> u64 {
        let at = (address - self.address) as usize;
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }
}

/// A code object of the program with its counting kernels.
struct Object {
    made: Rewritten,
    /// By the original address of an instruction that a block begins with, where what counts the block begins.
    begins: HashMap<u64, Vec<u64>>,
    /// Where instructions of the new code begin.
    instructions: HashSet<u64>,
}

impl Object {
    fn new(bytes: &[u8], options: &Options) -> Option<Object> {
        let made = rewrite(bytes, options, &|_| true).ok()?;
        let mut begins: HashMap<u64, Vec<u64>> = HashMap::new();
        let mut instructions = HashSet::new();
        let mut before = None;
        let bytes = Bytes::of(&made);
        for (new, length, original) in made.map.stretches() {
            if before != Some(original) {
                begins.entry(original).or_default().push(new);
            }
            before = Some(original);
            let mut at = new;
            while at < new + length {
                instructions.insert(at);
                let words = (bytes.long(at) as u32, (bytes.long(at) >> 32) as u32);
                at += u64::from(Instruction::decode(words.0, Some(words.1)).unwrap().length);
            }
        }
        Some(Object { made, begins, instructions })
    }

    /// Kernels that may be the one that was executed, each with the address that its object was loaded at, behind the number of executed
    /// instructions that are among its own. Addresses that are taken for a search may be anything.
    fn kernels(&self, executed: &KernelCounts) -> Vec<(usize, &CountedKernel, u64)> {
        let bytes = Bytes::of(&self.made);
        let slots = self
            .made
            .kernels
            .iter()
            .flat_map(|kernel| kernel.slots.iter().map(move |slot| (kernel, slot.descriptor)));
        let fit = |(kernel, descriptor): (&CountedKernel, u64)| {
            let base = executed.object.wrapping_sub(descriptor);
            let entry = descriptor.wrapping_add(bytes.long(descriptor + 16));
            let addresses = || executed.instructions.iter().map(|(pc, ..)| pc.wrapping_sub(base));
            // The code, the kernel's entry, and where calls by pointers are looked for.
            let is_its = |address: u64| match self.made.map.original(address) {
                Some(_) => self.instructions.contains(&address),
                None => {
                    let is_search = kernel.calls_by_pointer && bytes.holds(address);
                    is_search || (entry..entry + 256).contains(&address)
                }
            };
            let fits =
                base % 4096 == 0 && addresses().any(|address| address == entry) && addresses().all(is_its);
            let own = addresses().filter(|address| self.instructions.contains(address)).count();
            fits.then_some((own, base))
        };
        slots.filter_map(|slot| fit(slot).map(|(own, base)| (own, slot.0, base))).collect()
    }

    /// Adds what was executed of a kernel to `blocks`.
    fn add(
        &self,
        kernel: &CountedKernel,
        base: u64,
        executed: &KernelCounts,
        has_lanes: bool,
        blocks: &mut Blocks,
    ) {
        let by_address: HashMap<u64, (u64, u64)> = executed
            .instructions
            .iter()
            .map(|(pc, _, lanes, executions)| (pc.wrapping_sub(base), (*executions, *lanes)))
            .collect();
        let of_kernel = &self.made.blocks[kernel.blocks.clone()];
        for block in of_kernel {
            let function = &self.made.functions[block.function as usize];
            let is_other =
                self.made.kernels.iter().any(|other| other.name == *function && other.name != kernel.name);
            let here = self.begins[&block.start].iter().filter_map(|new| by_address.get(new));
            let (waves, lanes) = here.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            if is_other {
                assert_eq!(waves, 0, "{} is in {}", kernel.name, function);
                continue;
            }
            let key = (demangle(&kernel.name), function.clone(), block.start as i64);
            let sum = blocks.entry(key).or_insert((0, has_lanes.then_some(0)));
            sum.0 += waves as i64;
            sum.1 = sum.1.map(|sum| sum + lanes as i64);
        }
        // Nothing but what is counted, and what leads there.
        for address in by_address.keys() {
            // An entry, or a search behind a call by a pointer.
            let Some(original) = self.made.map.original(*address) else { continue };
            assert!(
                of_kernel.iter().any(|block| (block.start..block.end).contains(&original)),
                "{original:#x}"
            );
        }
    }
}

/// The blocks of a trace; times are there if and only if waves were.
fn counted(trace: &Trace, is_timed: bool) -> Blocks {
    let sql = "select S.string, B.functionName, B.offset, sum(C.waves), sum(C.lanes), sum(C.ticks) from ext_blockcount C
        join ext_block B on B.id = C.block_id join ext_instrumentation I on I.id = C.instrumentation_id
        join rocpd_string S on S.id = I.kernelName_id group by 1, 2, 3";
    let rows = trace.rows(sql, |row| {
        let (waves, ticks): (i64, Option<i64>) = (row.get(3)?, row.get(5)?);
        assert_eq!(ticks.is_some(), is_timed);
        assert!(ticks.is_none_or(|ticks| (ticks > 0) == (waves > 0)), "{ticks:?} of {waves}");
        Ok(((row.get(0)?, row.get(1)?, row.get(2)?), (waves, row.get(4)?)))
    });
    rows.into_iter().collect()
}

/// Runs a program that counts in that way; its output is that of the plain run, and its counters are what was executed. Returns how many kernels
/// and executed blocks there were.
#[track_caller]
fn compare<'a>(
    run: impl Fn(&'a Dir) -> Run<'a>,
    dir: &'a Dir,
    plain: &Ran,
    number: usize,
    reach: u32,
) -> (usize, usize) {
    let (what, variant, scalar_first) = VARIANTS[number];
    let options = Options { variant, scalar_first, slots: SLOTS, branch_limit: reach };
    let run = run(dir).recorded(Loading::Preload).env("SIMGPU_COUNTS", dir.path("counts")).config(LATE);
    let run =
        run.env("RPDT_SAVE_CODE", dir.path("code")).env("RPDT_COUNT_BLOCKS", format!("{what},reach={reach}"));
    let ran = run.run();
    let context = format!("{what}, reach {reach}: {ran}");
    assert_eq!((ran.status, &ran.stdout), (plain.status, &plain.stdout), "{context}");
    // A kernel may take longer than 10 s here: the interpreter is slow, the more so the more runs beside it.
    let is_refusal = |line: &str| line.contains("is not counted on GPU");
    let is_slow = |line: &str| line.contains("has held its queue up for 10 s");
    assert!(ran.stderr.lines().all(|line| is_refusal(line) || is_slow(line)), "{context}");
    let saved = fs::read_dir(dir.path("code")).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap());
    let objects: Vec<Object> = saved.filter_map(|bytes| Object::new(&bytes, &options)).collect();
    let mut executed = Blocks::new();
    for kernel in counts::read(dir.path("counts"), ran.pid).unwrap() {
        // The software GPU knows no names of kernels that the recorder has made.
        if !kernel.name.starts_with('?') {
            let is_internal = kernel.name.starts_with("rocr:") || kernel.name.starts_with("__amd_rocclr");
            let is_refused = ran.stderr.lines().any(is_refusal);
            assert!(is_internal || is_refused, "{} ran as it is: {context}", kernel.name);
            continue;
        }
        let of_object = |object| Object::kernels(object, &kernel).into_iter().map(move |fit| (object, fit));
        let fits: Vec<_> = objects.iter().flat_map(of_object).collect();
        let most = fits.iter().map(|(_, (own, ..))| *own).max();
        let best: Vec<_> = fits.iter().filter(|(_, (own, ..))| Some(*own) == most).collect();
        let [(object, (_, of, base))] = best[..] else {
            panic!("{} may be {}: {context}", kernel.name, best.len())
        };
        object.add(of, *base, &kernel, variant == Variant::Lanes, &mut executed);
    }
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let counted = counted(&trace, variant == Variant::Time);
    for (block, truth) in &executed {
        assert_eq!(counted.get(block), Some(truth), "{block:?}: {context}");
    }
    assert_eq!(counted.len(), executed.len(), "{context}");
    let kernels = executed.keys().map(|(kernel, ..)| kernel).collect::<BTreeSet<_>>();
    (kernels.len(), executed.values().filter(|(waves, _)| *waves > 0).count())
}

fn is_soak() -> bool {
    std::env::var_os("RPD_SOAK").is_some()
}

/// The same in some ways, or in all of them.
#[track_caller]
fn compare_variants(run: &dyn for<'a> Fn(&'a Dir) -> Run<'a>, least: (usize, usize)) {
    let all = (0..VARIANTS.len()).flat_map(|number| REACHES.map(|reach| (number, reach))).collect();
    compare_in(run, least, if is_soak() { all } else { SOME.map(|number| (number, 40)).to_vec() });
}

/// Kernels and executed blocks are at least so many.
#[track_caller]
fn compare_in(run: &dyn for<'a> Fn(&'a Dir) -> Run<'a>, least: (usize, usize), cases: Vec<(usize, u32)>) {
    let without = Dir::new();
    let plain = run(&without).run();
    plain.expect(0);
    for (number, reach) in cases {
        let dir = Dir::new();
        let (kernels, blocks) = compare(run, &dir, &plain, number, reach);
        println!("{}, reach {reach}: {kernels} kernels, {blocks} blocks executed", VARIANTS[number].0);
        assert!(kernels >= least.0 && blocks >= least.1, "{kernels} kernels, {blocks} blocks");
    }
}

#[test]
fn of_rocprim_and_rocrand() {
    compare_variants(&|dir| Run::new(dir, program("primitives")), (4, 200));
    if is_soak() {
        compare_variants(&|dir| Run::new(dir, program("more_primitives")), (9, 500));
    }
}

#[test]
fn of_kernels_as_textbooks_have_them() {
    compare_variants(&|dir| Run::new(dir, program("classics")), (22, 200));
    if is_soak() {
        compare_variants(&|dir| Run::new(dir, program("classics_o0")), (22, 200));
    }
}

/// With RPD_SOAK also the generators that take the interpreter long to begin; philox4_32_10 is in the program above.
#[test]
fn of_each_generator_of_rocrand() {
    let few = ["mtgp32", "sobol32", "sobol64"];
    compare_variants(&|dir| super::with(Run::new(dir, program("generators")), &few), (12, 100));
    if is_soak() {
        let others = ["xorwow", "mrg32k3a", "philox4_32_10"];
        let cases = vec![(0, 1 << 15), (2, 40)];
        compare_in(&|dir| super::with(Run::new(dir, program("generators")), &others), (12, 100), cases);
    }
}

/// Programs as public collections of samples have them: several kernels, streams, events, graphs, constants; each checks its own results.
#[test]
fn of_programs_as_collections_have_them() {
    let programs = [
        ("jacobi", 1, 10),
        ("kmeans", 2, 15),
        ("fft", 2, 10),
        ("alignment", 1, 8),
        ("life", 2, 5),
        ("graph_search", 2, 10),
    ];
    for (name, kernels, blocks) in programs {
        compare_variants(&|dir| Run::new(dir, program(name)), (kernels, blocks));
    }
}

/// Functions that call themselves by pointers: all of their blocks, and the kernel's, are executed.
#[test]
fn of_functions_that_call_themselves_by_pointers() {
    for (name, blocks) in [("recursion", 15), ("recursion_o0", 40)] {
        compare_variants(&|dir| Run::new(dir, program(name)), (1, blocks));
    }
}

/// With RPD_SOAK: what other tests record.
#[test]
fn of_the_programs_that_are_recorded_elsewhere() {
    if !is_soak() {
        return;
    }
    let long = |run: &dyn for<'a> Fn(&'a Dir) -> Run<'a>, least| {
        compare_in(run, least, (0..VARIANTS.len()).map(|number| (number, 40)).collect());
    };
    let kernels = super::KERNELS;
    long(&|dir| Run::new(dir, program("aql")).arg(aql_code_object("gfx900")), (1, 1));
    long(&|dir| Run::new(dir, program("durations")).arg("launch=20").arg("graph=5"), (1, 1));
    long(&|dir| Run::new(dir, program("streams")).arg("2").arg("2").arg("20"), (1, 1));
    long(&|dir| Run::new(dir, program("long")).arg("20"), (2, 2));
    for name in ["replace", "validate", "inside", "graph", "demo"] {
        long(&|dir| Run::new(dir, program(name)), (1, 1));
    }
    long(&|dir| super::with(Run::new(dir, program("blocks")), &kernels), (kernels.len(), 30));
}
