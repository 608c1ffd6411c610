//! What the kernels executed whose basic blocks were counted (`rpd probe --auto`): how often each block, and so how many instructions of
//! each kind.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::AddAssign;

use anyhow::Result;
use regex::Regex;
use rpd_codeobject::demangle;
use rpd_schema::text::{shown, text_of};
use rusqlite::{Connection, Row};
use serde::Serialize;

use crate::trace::has_table;

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

/// A kernel whose blocks were counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelBlocks {
    /// Its name.
    pub kernel: String,
    /// Dispatches that were counted.
    pub dispatches: u64,
    /// Their work-items; none where the trace does not have their launches.
    pub work_items: Option<u64>,
    /// Instructions that wavefronts executed; none where only lanes were counted.
    pub executed: Option<u64>,
    /// Those of each kind, in the order of [`KINDS`].
    pub executed_kinds: Option<BTreeMap<&'static str, u64>>,
    /// Instructions that lanes executed which were active at the start of the block; none where no lanes were counted.
    pub executed_by_lanes: Option<u64>,
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
}

/// A row of `ext_block`, without its id and kernel: the same code in all sessions and on all GPUs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Code {
    number: u64,
    function: String,
    offset: u64,
    size: u64,
    file: String,
    line: u64,
    kinds: [u64; KINDS.len()],
}

/// What was counted; a part that was never counted is none.
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

/// The kernels whose names match, the one that executed most first.
///
/// # Errors
/// When the trace cannot be read.
pub fn blocks(trace: &Connection, matching: Option<&Regex>, group: BlockGroup) -> Result<Vec<KernelBlocks>> {
    for table in ["ext_block", "ext_blockcount", "ext_instrumentation"] {
        if !has_table(trace, table)? {
            return Ok(Vec::new());
        }
    }
    let launches = launches(trace)?;
    let mut counted: HashMap<String, HashMap<Code, Counts>> = HashMap::new();
    let query = format!(
        "SELECT {}, B.number, {}, B.offset, B.size, {}, B.line, B.valu, B.salu, B.vmem, B.smem, B.lds, B.mfma, B.branch, B.other,
             C.waves, C.lanes, C.ticks
         FROM ext_blockcount C JOIN ext_block B ON B.id = C.block_id
             JOIN ext_instrumentation I ON I.id = C.instrumentation_id
             LEFT JOIN rocpd_string S ON S.id = I.kernelName_id",
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
        let blocks = match counted.get_mut(kernel.as_ref()) {
            Some(known) => known,
            None => counted.entry(kernel.into_owned()).or_default(),
        };
        let counts =
            Counts { waves: optional(row, 15)?, lanes: optional(row, 16)?, ticks: optional(row, 17)? };
        *blocks.entry(code(row)?).or_default() += counts;
    }
    let kernel = |(kernel, blocks): (String, HashMap<Code, Counts>)| {
        let (dispatches, work_items) = launches.get(&kernel).copied().unwrap_or_default();
        let rows = grouped(blocks, group);
        KernelBlocks {
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
    kernels
        .sort_by(|one, other| other.executed.cmp(&one.executed).then_with(|| one.kernel.cmp(&other.kernel)));
    Ok(kernels)
}

/// Dispatches that were counted and their work-items, by the names of kernels.
fn launches(trace: &Connection) -> Result<HashMap<String, (u64, Option<u64>)>> {
    let (items, join) = match has_table(trace, "ext_dispatch")? {
        true => (
            "total(D.gridX * D.gridY * D.gridZ * D.workgroupX * D.workgroupY * D.workgroupZ), count(D.op_id)",
            "LEFT JOIN ext_dispatch D ON D.op_id = I.op_id",
        ),
        false => ("0, 0", ""),
    };
    let query = format!(
        "SELECT {}, count(*), {items}
         FROM (SELECT DISTINCT op_id, kernelName_id FROM ext_instrumentation
               WHERE analyzer = '{ANALYZER}' AND op_id IS NOT NULL) I
             LEFT JOIN rocpd_string S ON S.id = I.kernelName_id {join} GROUP BY S.string",
        shown("S.string")
    );
    let mut statement = trace.prepare(&query)?;
    let mut rows = statement.query([])?;
    let mut launches: HashMap<String, (u64, Option<u64>)> = HashMap::new();
    while let Some(row) = rows.next()? {
        let (dispatches, items, known): (i64, f64, i64) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let entry = launches.entry(text_of(row.get_ref(0)?).into_owned()).or_insert((0, Some(0)));
        entry.0 += dispatches.unsigned_abs();
        entry.1 = entry.1.filter(|_| known == dispatches).map(|sum| sum + items as u64);
    }
    Ok(launches)
}

/// The rows of a kernel's blocks.
fn grouped(blocks: HashMap<Code, Counts>, group: BlockGroup) -> Vec<BlockRow> {
    let mut blocks: Vec<(Code, Counts)> = blocks.into_iter().collect();
    blocks.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut rows: BTreeMap<(String, u64), BlockRow> = BTreeMap::new();
    for (place, (code, counts)) in blocks.into_iter().enumerate() {
        let key = match group {
            BlockGroup::Block => (String::new(), place as u64),
            BlockGroup::Line => (code.file.clone(), code.line),
            BlockGroup::Function => (code.function.clone(), 0),
        };
        let instructions = code.kinds.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let of_kind = |waves: u64| -> BTreeMap<&'static str, u64> {
            KINDS.iter().zip(code.kinds).map(|(kind, count)| (*kind, count.saturating_mul(waves))).collect()
        };
        let executed = counts.waves.map(|waves| waves.saturating_mul(instructions));
        let executed_kinds = counts.waves.map(of_kind);
        let executed_by_lanes = counts.lanes.map(|lanes| lanes.saturating_mul(instructions));
        let Some(row) = rows.get_mut(&key) else {
            let Code { function, offset, size, file, line, .. } = code;
            let Counts { waves, lanes, ticks } = counts;
            let row = BlockRow {
                blocks: 1,
                function,
                offset,
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
            };
            rows.insert(key, row);
            continue;
        };
        row.blocks += 1;
        row.size = row.size.saturating_add(code.size);
        row.instructions = row.instructions.saturating_add(instructions);
        let mut all = Counts { waves: row.waves, lanes: row.lanes, ticks: row.ticks };
        all += counts;
        (row.waves, row.lanes, row.ticks) = (all.waves, all.lanes, all.ticks);
        row.executed = sum([row.executed, executed]);
        row.executed_by_lanes = sum([row.executed_by_lanes, executed_by_lanes]);
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

fn code(row: &Row<'_>) -> rusqlite::Result<Code> {
    let number = |at: usize| optional(row, at).map(Option::unwrap_or_default);
    let text = |at: usize| row.get_ref(at).map(|value| text_of(value).into_owned());
    let mut kinds = [0; KINDS.len()];
    for (place, kind) in kinds.iter_mut().enumerate() {
        *kind = number(7 + place)?;
    }
    Ok(Code {
        number: number(1)?,
        function: demangle(&text(2)?),
        offset: number(3)?,
        size: number(4)?,
        file: text(5)?,
        line: number(6)?,
        kinds,
    })
}

/// A count; none where it is none.
fn optional(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<u64>> {
    Ok(row.get_ref(at)?.as_i64().ok().and_then(|number| u64::try_from(number).ok()))
}
