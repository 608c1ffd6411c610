//! What kernels with counted basic blocks executed (`rpd probe --auto`): how often each block, and so how many instructions of each kind. The
//! code objects that the trace names say what the instructions do and where control goes.
//!
//! - `code`: what a code object says of blocks
//! - `flow`: how often branches were taken and loops turned
//! - `mode`: what each process counted
//! - `roofline`: how fast kernels compute and move data

mod code;
mod flow;
mod mode;
mod roofline;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::AddAssign;

use anyhow::Result;
use regex::Regex;
use rpd_codeobject::demangle;
use rpd_codeobject::instruction::{Wait, Work};
use rpd_schema::text::{shown, text_of};
use rusqlite::{Connection, Row};
use serde::Serialize;

use self::code::{BlockCode, FunctionCode, functions_with};
use self::flow::{EdgeCounts, Node, edge_counts};
pub use self::mode::Mode;
use self::mode::SessionModes;
pub use self::roofline::{Peaks, Roofline, add_rooflines};
use crate::code::{FoundObject, KernelObjects, ListedInstruction, Lister};
use crate::region::Selected;
use crate::text;
use crate::trace::has_table;
use crate::trace::launch::{LaunchJoin, SIZES};

/// Work-items of a wavefront, of all processors whose blocks are counted.
pub const LANES: u64 = 64;
/// How the file calls what has written the counts.
const ANALYZER: &str = "blocks";
/// The kinds of instructions, as columns of `ext_block`.
pub const KINDS: [&str; 8] = ["valu", "salu", "vmem", "smem", "lds", "mfma", "branch", "other"];

/// What counts are added up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockGroup {
    /// Each block by itself.
    Block,
    /// Lines of the source.
    Line,
    /// Functions.
    Function,
}

/// A kernel whose blocks were counted, in one mode: where a trace has several, each has the kernel for itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelBlocks {
    /// Its name.
    pub kernel: String,
    /// What was counted.
    pub mode: Mode,
    /// Dispatches that were counted.
    pub dispatches: u64,
    /// Dispatches that the counts are of: more where some that were counted together with these are outside of the part of the trace, fewer where
    /// counters were not read.
    pub counts_of: u64,
    /// Their work-items; none where the trace does not have their launches.
    pub work_items: Option<u64>,
    /// Instructions that wavefronts executed; none where only lanes were counted.
    pub executed: Option<u64>,
    /// Those of each kind, in the order of [`KINDS`].
    pub executed_kinds: Option<BTreeMap<&'static str, u64>>,
    /// Instructions that lanes executed which were active at the start of the block; none where no lanes were counted.
    pub executed_by_lanes: Option<u64>,
    /// Floating-point operations; none where the code object is not known. See [`Work`] for what is one.
    pub flops: Option<u64>,
    /// Bytes of memory that were read and written by instructions, before any cache; none where the code object is not known.
    pub memory_bytes: Option<u64>,
    /// The first for each of the second.
    pub flops_per_byte: Option<f64>,
    /// How fast that is, where [`add_rooflines`] has said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roofline: Option<Roofline>,
    /// No lanes were counted: both are those of wavefronts whose 64 lanes are all active.
    pub lanes_assumed: bool,
    /// Ticks in blocks that wait for something, by what it is; a block may wait for several. Empty where no ticks were counted.
    pub waits: BTreeMap<&'static str, u64>,
    /// The rows, the one with the most ticks first, or instructions where no ticks were counted.
    pub rows: Vec<BlockRow>,
}

/// One or more blocks of a kernel, as they are grouped.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BlockRow {
    /// Blocks.
    pub blocks: u64,
    /// The function, demangled; that of the first block, where there are several.
    pub function: String,
    /// Where the first of them begins in the code object.
    pub offset: u64,
    /// The SHA-256 of the code object, or where the program had it; none where the trace does not name it, or where they are in several.
    pub code_object: Option<String>,
    /// Bytes of all together.
    pub size: u64,
    /// File of the source; empty where it is not known.
    pub file: String,
    /// Line in it; 0 where it is not known.
    pub line: u64,
    /// Instructions of all together.
    pub instructions: u64,
    /// Wavefronts that entered, added up over the blocks.
    pub waves: Option<u64>,
    /// Lanes that were active, added up over the blocks.
    pub lanes: Option<u64>,
    /// Ticks of the device's clock that wavefronts stayed.
    pub ticks: Option<u64>,
    /// Instructions that wavefronts executed.
    pub executed: Option<u64>,
    /// Those of each kind, in the order of [`KINDS`].
    pub executed_kinds: Option<BTreeMap<&'static str, u64>>,
    /// Instructions that lanes executed which were active at the start of the block.
    pub executed_by_lanes: Option<u64>,
    /// Floating-point operations, as those of the kernel.
    pub flops: Option<u64>,
    /// Bytes of memory, as those of the kernel.
    pub memory_bytes: Option<u64>,
    /// For one block that ends with a branch or call: where that leads, if it is known, in the code object's own addresses.
    pub target: Option<u64>,
    /// For one block that ends with a conditional branch: how often that was taken, where it can be told.
    pub taken: Option<u64>,
    /// For one block that a loop begins with: how often the loop was entered, where it can be told.
    pub loop_entries: Option<u64>,
    /// What the instructions wait for.
    pub waits: BTreeSet<&'static str>,
    /// The instructions, where they were [listed](list_instructions).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<ListedInstruction>,
    #[serde(skip)]
    object: Option<usize>,
}

/// A kernel by its name, in one mode.
type CountedKernel = (String, Mode);

/// A row of `ext_block`, without its id, number and kernel: the same code in all sessions and on all GPUs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Code {
    /// Place of the code object among those of the trace.
    object: Option<usize>,
    function: String,
    offset: u64,
    size: u64,
    file: String,
    line: u64,
    kinds: [u64; KINDS.len()],
}

/// Counts of a block; a part that was never counted is none.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Counts {
    waves: Option<u64>,
    lanes: Option<u64>,
    ticks: Option<u64>,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        self.waves = sum(self.waves, other.waves);
        self.lanes = sum(self.lanes, other.lanes);
        self.ticks = sum(self.ticks, other.ticks);
    }
}

/// What the code says of a block that was counted.
#[derive(Debug, Clone, Default)]
struct Known {
    work: Work,
    waits: BTreeSet<Wait>,
    target: Option<u64>,
    taken: Option<u64>,
    loop_entries: Option<u64>,
}

/// The kernels whose names match, the one that executed most first, in dispatches of a part of the trace. Tells `remark` which code objects
/// are not found and why, and which counts are of dispatches outside of the part too: dispatches that follow each other may have been counted
/// together, and such counts are in the part with the last of them.
///
/// # Errors
/// When the trace or a code object cannot be read.
pub fn blocks(
    (trace, selected): (&Connection, &Selected),
    matching: Option<&Regex>,
    group: BlockGroup,
    objects: &KernelObjects,
    mut remark: impl FnMut(String),
) -> Result<Vec<KernelBlocks>> {
    for table in ["ext_block", "ext_blockcount", "ext_instrumentation"] {
        if !has_table(trace, table)? {
            return Ok(Vec::new());
        }
    }
    let is_in = selected.op_condition(trace, "I.op_id")?;
    let modes = SessionModes::of(trace)?;
    let launches = launches(trace, &is_in, &modes)?;
    let mut counted: HashMap<CountedKernel, HashMap<Code, Counts>> = HashMap::new();
    // How many dispatches each count is of.
    let mut together: HashMap<CountedKernel, HashMap<i64, u64>> = HashMap::new();
    let query = format!(
        "SELECT {}, {}, B.offset, B.size, {}, B.line, B.valu, B.salu, B.vmem, B.smem, B.lds, B.mfma, B.branch, B.other,
             C.waves, C.lanes, C.ticks, B.kernel_id, I.id, C.dispatches
         FROM ext_blockcount C JOIN ext_block B ON B.id = C.block_id
             JOIN ext_instrumentation I ON I.id = C.instrumentation_id
             LEFT JOIN rocpd_string S ON S.id = I.kernelName_id
         WHERE {is_in}",
        shown("S.string"),
        shown("B.functionName"),
        shown("B.file"),
    );
    let mut statement = trace.prepare(&query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let kernel = text_of(row.get_ref(0)?);
        if matching.is_some_and(|matching| !matching.is_match(&kernel)) {
            continue;
        }
        let instrumentation: i64 = row.get(18)?;
        // The session has counts: this is one.
        let Some(mode) = modes.get(instrumentation) else { continue };
        let kernel = (kernel.into_owned(), mode);
        if let Some(dispatches) = optional(row, 19)? {
            let counts = together.entry(kernel.clone()).or_default();
            let most = counts.entry(instrumentation).or_default();
            *most = dispatches.max(*most);
        }
        let counts =
            Counts { waves: optional(row, 14)?, lanes: optional(row, 15)?, ticks: optional(row, 16)? };
        *counted.entry(kernel).or_default().entry(code(row, objects)?).or_default() += counts;
    }
    let mut counts_of: HashMap<CountedKernel, u64> = HashMap::new();
    for (kernel, counts) in &together {
        let all = counts.values().fold(0, |sum: u64, dispatches| sum.saturating_add(*dispatches));
        let inside = launches.get(kernel).map_or(0, |(dispatches, _)| *dispatches);
        counts_of.insert(kernel.clone(), all);
        let (name, of) = (&kernel.0, text::counted(all, "dispatch", "dispatches"));
        // Counts may also be of dispatches that have no operation.
        if all < inside || all > inside && !selected.is_everything() {
            remark(match selected.is_everything() {
                true => format!(
                    "{name}: {inside} dispatches ran with counters, which were read for {all} of them: the sums are of these"
                ),
                false => format!(
                    "{name}: its counts are of {of} that were counted together; {inside} of these are in that part of the trace"
                ),
            });
        }
    }
    let functions = functions(&counted, objects, &mut remark)?;
    let kernel = |(kernel, blocks): (CountedKernel, HashMap<Code, Counts>)| {
        let (dispatches, work_items) = launches.get(&kernel).copied().unwrap_or_default();
        let known = known(&blocks, &functions);
        let lanes_assumed = blocks.values().all(|counts| counts.lanes.is_none());
        let rows = grouped(&blocks, &known, group, objects);
        let flops = sum(rows.iter().map(|row| row.flops));
        let memory_bytes = sum(rows.iter().map(|row| row.memory_bytes));
        let mut waits: BTreeMap<&'static str, u64> = BTreeMap::new();
        for (code, known) in &known {
            for (wait, ticks) in known.waits.iter().zip(blocks[code].ticks.iter().cycle()) {
                let sum = waits.entry(wait.name()).or_default();
                *sum = sum.saturating_add(*ticks);
            }
        }
        let counts_of = counts_of.get(&kernel).copied().unwrap_or(dispatches);
        let (kernel, mode) = kernel;
        KernelBlocks {
            mode,
            counts_of,
            flops,
            memory_bytes,
            flops_per_byte: flops
                .zip(memory_bytes.filter(|bytes| *bytes > 0))
                .map(|(flops, bytes)| flops as f64 / bytes as f64),
            roofline: None,
            lanes_assumed,
            waits,
            kernel,
            dispatches,
            work_items,
            executed: sum(rows.iter().map(|row| row.executed)),
            executed_kinds: kinds_of(rows.iter().map(|row| row.executed_kinds.as_ref())),
            executed_by_lanes: sum(rows.iter().map(|row| row.executed_by_lanes)),
            rows,
        }
    };
    let mut kernels: Vec<KernelBlocks> = counted.into_iter().map(kernel).collect();
    kernels.sort_by(|one, other| {
        let place = |kernel: &KernelBlocks| (Reverse(kernel.executed), kernel.mode);
        (place(one), &one.kernel).cmp(&(place(other), &other.kernel))
    });
    Ok(kernels)
}

/// The functions of each code object that have blocks which were counted, by its place.
fn functions(
    counted: &HashMap<CountedKernel, HashMap<Code, Counts>>,
    objects: &KernelObjects,
    missing: &mut dyn FnMut(String),
) -> Result<HashMap<usize, Vec<FunctionCode>>> {
    let mut starts: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
    for code in counted.values().flat_map(HashMap::keys) {
        if let Some(object) = code.object {
            starts.entry(object).or_default().insert(code.offset);
        }
    }
    let mut all = HashMap::new();
    for (place, starts) in starts {
        match objects.find(place) {
            Ok(object) => drop(all.insert(place, functions_with(&object, &starts)?)),
            Err(why) => missing(why),
        }
    }
    Ok(all)
}

/// What the code says of the blocks of one kernel. Edges have counts in functions all of whose blocks were counted.
fn known<'a>(
    counted: &'a HashMap<Code, Counts>,
    functions: &HashMap<usize, Vec<FunctionCode>>,
) -> HashMap<&'a Code, Known> {
    let by_place: HashMap<_, (&Code, &Counts)> = counted
        .iter()
        .filter_map(|(code, counts)| Some(((code.object?, (code.offset, code.size)), (code, counts))))
        .collect();
    let mut all = HashMap::new();
    for (object, function) in
        functions.iter().flat_map(|(object, all)| all.iter().map(move |one| (*object, one)))
    {
        let found: Vec<Option<&(&Code, &Counts)>> =
            function.places.iter().map(|place| by_place.get(&(object, *place))).collect();
        let with_count = |((_, node), found): (&(BlockCode, Node), &Option<&(&Code, &Counts)>)| {
            Some(Node { count: found.as_ref()?.1.waves?, ..node.clone() })
        };
        let nodes: Option<Vec<Node>> = function.blocks.iter().zip(&found).map(with_count).collect();
        let counted =
            nodes.map_or_else(|| vec![EdgeCounts::default(); found.len()], |nodes| edge_counts(&nodes));
        for (((of_block, node), counts), found) in function.blocks.iter().zip(counted).zip(found) {
            let Some((code, _)) = found else { continue };
            let taken = counts.edges.first().copied().flatten().filter(|_| node.successors.len() == 2);
            let BlockCode { work, waits, target } = of_block.clone();
            all.insert(*code, Known { work, waits, target, taken, loop_entries: counts.loop_entries });
        }
    }
    all
}

/// Adds the instructions to rows of single blocks, which `lister` disassembles. Tells `missing` which code objects are not found and why.
///
/// # Errors
/// [`NoListing`](crate::code::NoListing) in the chain, when no LLVM serves; when a code object is damaged.
pub fn list_instructions(
    rows: &mut [BlockRow],
    objects: &KernelObjects,
    lister: &mut Lister,
    mut missing: impl FnMut(String),
) -> Result<()> {
    let mut by_object: BTreeMap<usize, Vec<&mut BlockRow>> = BTreeMap::new();
    for row in rows.iter_mut().filter(|row| row.blocks == 1) {
        if let Some(object) = row.object {
            by_object.entry(object).or_default().push(row);
        }
    }
    for (place, rows) in by_object {
        let object: FoundObject = match objects.find(place) {
            Ok(object) => object,
            Err(why) => {
                missing(why);
                continue;
            }
        };
        let listed = lister.stretches(&object, rows.iter().map(|row| (row.offset, row.size)))?;
        for (row, listed) in rows.into_iter().zip(listed) {
            row.code = listed;
        }
    }
    Ok(())
}

/// Dispatches that were counted and for which the condition holds, and their work-items.
fn launches(
    trace: &Connection,
    is_in: &str,
    modes: &SessionModes,
) -> Result<HashMap<CountedKernel, (u64, Option<u64>)>> {
    let (items, join) = match LaunchJoin::of(trace)? {
        Some(launch) => {
            let sizes = SIZES.map(|size| launch.column(size));
            (
                format!("total({}), count({})", sizes.join(" * "), sizes[0]),
                format!("LEFT JOIN rocpd_op O ON O.id = I.op_id {}", launch.join()),
            )
        }
        None => ("0, 0".to_string(), String::new()),
    };
    let query = format!(
        "SELECT {}, count(*), {items}, I.id
         FROM (SELECT min(id) AS id, op_id, kernelName_id FROM ext_instrumentation
               WHERE analyzer = '{ANALYZER}' AND op_id IS NOT NULL GROUP BY op_id, kernelName_id) I
             LEFT JOIN rocpd_string S ON S.id = I.kernelName_id {join} WHERE {is_in} GROUP BY S.string, I.id >> 32",
        shown("S.string")
    );
    let mut statement = trace.prepare(&query)?;
    let mut rows = statement.query([])?;
    let mut launches: HashMap<CountedKernel, (u64, Option<u64>)> = HashMap::new();
    while let Some(row) = rows.next()? {
        let (dispatches, items, known): (i64, f64, i64) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let Some(mode) = modes.get(row.get(4)?) else { continue };
        let entry = launches.entry((text_of(row.get_ref(0)?).into_owned(), mode)).or_insert((0, Some(0)));
        entry.0 += dispatches.unsigned_abs();
        entry.1 = entry.1.filter(|_| known == dispatches).map(|sum| sum + items as u64);
    }
    Ok(launches)
}

/// The rows of a kernel's blocks.
fn grouped(
    blocks: &HashMap<Code, Counts>,
    known: &HashMap<&Code, Known>,
    group: BlockGroup,
    objects: &KernelObjects,
) -> Vec<BlockRow> {
    let mut blocks: Vec<(&Code, &Counts)> = blocks.iter().collect();
    blocks.sort_by_key(|(code, _)| *code);
    let mut rows: BTreeMap<(&str, u64), BlockRow> = BTreeMap::new();
    for (place, (code, counts)) in blocks.into_iter().enumerate() {
        let key = match group {
            BlockGroup::Block => ("", place as u64),
            BlockGroup::Line if code.file.is_empty() => (&*code.function, 0),
            BlockGroup::Line => (&*code.file, code.line),
            BlockGroup::Function => (&*code.function, 0),
        };
        let instructions = code.kinds.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let of_kind = |waves: u64| -> BTreeMap<&'static str, u64> {
            KINDS.iter().zip(code.kinds).map(|(kind, count)| (*kind, count.saturating_mul(waves))).collect()
        };
        let executed = counts.waves.map(|waves| waves.saturating_mul(instructions));
        let executed_kinds = counts.waves.map(of_kind);
        let executed_by_lanes = counts.lanes.map(|lanes| lanes.saturating_mul(instructions));
        let known = known.get(code);
        let waves = counts.waves.unwrap_or_default();
        let lanes = counts.lanes.unwrap_or_else(|| waves.saturating_mul(LANES));
        let all = |of_lane: u64, of_wave: u64| {
            lanes.saturating_mul(of_lane).saturating_add(waves.saturating_mul(of_wave))
        };
        let flops = known.map(|known| all(known.work.lane_flops, known.work.wave_flops));
        let memory_bytes = known.map(|known| all(known.work.lane_bytes, known.work.wave_bytes));
        let waits = known.into_iter().flat_map(|known| &known.waits).map(|wait| wait.name());
        let Some(row) = rows.get_mut(&key) else {
            let Code { object, function, offset, size, file, line, .. } = code.clone();
            let Counts { waves, lanes, ticks } = *counts;
            let row = BlockRow {
                blocks: 1,
                function,
                offset,
                code_object: object.map(|place| objects.name(place).to_string()),
                size,
                file,
                line,
                instructions,
                waves,
                lanes,
                ticks,
                executed,
                executed_kinds,
                executed_by_lanes,
                flops,
                memory_bytes,
                target: known.and_then(|known| known.target),
                taken: known.and_then(|known| known.taken),
                loop_entries: known.and_then(|known| known.loop_entries),
                waits: waits.collect(),
                code: Vec::new(),
                object,
            };
            rows.insert(key, row);
            continue;
        };
        row.blocks += 1;
        if row.object != code.object {
            (row.object, row.code_object) = (None, None);
        }
        row.size = row.size.saturating_add(code.size);
        row.instructions = row.instructions.saturating_add(instructions);
        let mut sums = Counts { waves: row.waves, lanes: row.lanes, ticks: row.ticks };
        sums += *counts;
        (row.waves, row.lanes, row.ticks) = (sums.waves, sums.lanes, sums.ticks);
        row.executed = sum([row.executed, executed]);
        row.executed_by_lanes = sum([row.executed_by_lanes, executed_by_lanes]);
        row.flops = sum([row.flops, flops]);
        row.memory_bytes = sum([row.memory_bytes, memory_bytes]);
        row.waits.extend(waits);
        (row.target, row.taken, row.loop_entries) = (None, None, None);
        row.executed_kinds = kinds_of([row.executed_kinds.as_ref(), executed_kinds.as_ref()]);
    }
    let mut rows: Vec<BlockRow> = rows.into_values().collect();
    rows.sort_by_key(|row| Reverse((row.ticks, row.executed, row.lanes)));
    rows
}

/// The sum of what is known.
fn sum(all: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
    all.into_iter().flatten().reduce(u64::saturating_add)
}

fn kinds_of<'a>(
    all: impl IntoIterator<Item = Option<&'a BTreeMap<&'static str, u64>>>,
) -> Option<BTreeMap<&'static str, u64>> {
    all.into_iter().flatten().fold(None, |sums, kinds| {
        let mut sums: BTreeMap<&'static str, u64> = sums.unwrap_or_default();
        for (kind, count) in kinds {
            let sum = sums.entry(kind).or_default();
            *sum = sum.saturating_add(*count);
        }
        Some(sums)
    })
}

fn code(row: &Row<'_>, objects: &KernelObjects) -> rusqlite::Result<Code> {
    let number = |at: usize| optional(row, at).map(Option::unwrap_or_default);
    let text = |at: usize| row.get_ref(at).map(|value| text_of(value).into_owned());
    let mut kinds = [0; KINDS.len()];
    for (place, kind) in kinds.iter_mut().enumerate() {
        *kind = number(6 + place)?;
    }
    Ok(Code {
        object: row.get_ref(17)?.as_i64().ok().and_then(|kernel| objects.of_kernel(kernel)),
        function: demangle(&text(1)?),
        offset: number(2)?,
        size: number(3)?,
        file: text(4)?,
        line: number(5)?,
        kinds,
    })
}

/// A count; none where it is none.
fn optional(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<u64>> {
    Ok(row.get_ref(at)?.as_i64().ok().and_then(|number| u64::try_from(number).ok()))
}
