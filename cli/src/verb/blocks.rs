//! `rpd blocks`: which basic blocks of kernels were executed, and how often.

mod roofline;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use regex::Regex;
use rpd_escape::csv_field;
use rpd_postprocess::code::{KernelObjects, Lister, NoListing};
use rpd_postprocess::pattern::pattern;
use rpd_postprocess::report::blocks::{
    BlockGroup, BlockRow, KINDS, KernelBlocks, LANES, Peaks, add_rooflines, blocks, list_instructions,
};
use rpd_postprocess::text::{counted, escape};
use rpd_postprocess::trace;

use crate::args::region::{REGION_HELP, RegionArgs};
use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;
use crate::output::table::{Align, Table};
use crate::verb::disassembler;

/// Rows of a kernel, unless told otherwise.
const ROWS: usize = 10;

/// Digits of a code object's SHA-256 that are shown.
const OBJECT_WIDTH: usize = 12;

/// Show which basic blocks of kernels were executed, and how often
///
/// The trace is one that rpd probe --auto recorded. Counts are sums over all dispatches that were counted. The code objects that rpd probe
/// --auto has saved say what the instructions do and where control goes.
#[derive(Args)]
#[command(after_help = format!("\
Columns:
  %         share of the ticks of the kernel, or without ticks of its executed instructions
  executed  instructions that wavefronts executed in the block
  waves     wavefronts that entered it
  lanes     work-items of a wavefront (lanes) that were active on average, of 64: less
            where branches part them (--auto=lanes)
  ticks     how long a wavefront stayed on average, in ticks of the device's clock
            (--auto=time)
  insns     instructions of the block
  taken     how many of 100 wavefronts took the branch at its end; empty where it ends
            with none, or where the counts do not tell. A wavefront of which only some
            lanes would take it does not: it goes on, with those lanes switched off
  turns     where a loop begins: how often it turned on average each time it was entered
  waits     what its instructions wait for: VMEM (vector memory), LDS/SMEM (LDS, scalar
            memory, messages), barrier, sleep (--auto=time)
  block     where it begins in the code object and in the source, and its function,
            where the kernel calls functions. Where the compiler has inlined code, the
            line is that of the inlined code. Where several code objects have a kernel of
            that name, the first digits of the SHA-256 of the block's one follow. --json and
            --csv have the file's whole path and the whole SHA-256

The lines above the table say for each kernel: what was counted, and where the counts are of more or
fewer dispatches, of how many; the executed instructions of each kind (other: s_waitcnt, s_barrier,
s_nop, s_endpgm and the like); what part of the lanes of a wavefront was active in them; floating-point
operations (flop: additions, multiplications and transcendental functions 1, multiply-adds 2, those of
products of matrices); the bytes that its instructions read and write in memory, before any cache; and
flop/byte, the arithmetic intensity of a roofline. Without --auto=lanes all lanes are taken to be active. With --auto=time they
also say which part of the ticks is from blocks that wait for something: all ticks of such a block
count, once for each thing that it waits for. A trace may have counts of several modes of --auto (rpd
probe --append, rpd merge): then a kernel is there once for each.

With --roofline a line for each kernel, the one that took the most time first:
  time       of a dispatch on average
  of         whose times: of uncounted dispatches of the same kernel, GPU and grid where there are
             some (rpd probe -d 1/10), otherwise of the counted ones themselves, which are slower
  flop/byte  arithmetic intensity
  GFLOP/s    1e9 floating-point operations per second, of all precisions together
  GB/s       1e9 bytes per second that instructions ask for, before any cache: more than memory
             delivers where caches answer
  % roof     of what --peak-gflops and --peak-gbs allow at this intensity
  bound      which of the two is nearer: memory or arithmetic
With both peaks a chart follows, where / and - are the roof and a letter is the kernel that has it in
the first column. A kernel without floating-point operations has no letter. Of kernels at one place
the first has it.

{REGION_HELP}

Dispatches of a kernel that follow each other may have been counted together. In a part of the trace their counts are with
the last of them, and a line on standard error says so.

Example:
  rpd probe --auto -o probed.rpd -- ./app
  rpd blocks probed.rpd gemm
  rpd blocks --disasm -n 3 probed.rpd gemm
  rpd blocks --line --json probed.rpd
  rpd blocks --roofline --peak-gflops 13400 --peak-gbs 1024 probed.rpd
  rpd blocks probed.rpd --gpu 0 --in 'step 3'"))]
pub(crate) struct Blocks {
    /// The trace
    file: PathBuf,
    /// Kernels only whose names match this regular expression
    #[arg(value_name = "KERNEL", value_parser = pattern)]
    matching: Option<Regex>,
    /// Add the blocks of a line of the source together
    #[arg(long, conflicts_with = "function")]
    line: bool,
    /// Add the blocks of a function together
    #[arg(long)]
    function: bool,
    /// Show how fast each kernel computes and moves data, in place of its blocks
    #[arg(long, conflicts_with_all = ["line", "function", "disasm", "csv"])]
    roofline: bool,
    /// The most floating-point operations per second that the GPU can do, in 1e9: those of the precision of the kernels
    #[arg(long, value_name = "N", requires = "roofline", value_parser = roofline::peak)]
    peak_gflops: Option<f64>,
    /// The most bytes per second that its memory moves, in 1e9
    #[arg(long, value_name = "N", requires = "roofline", value_parser = roofline::peak)]
    peak_gbs: Option<f64>,
    /// Show the instructions of each block too; needs an LLVM
    #[arg(long, conflicts_with_all = ["line", "function", "csv"])]
    disasm: bool,
    /// The LLVM to disassemble with, in place of the newest that is found
    #[arg(long, value_name = "LIBRARY", requires = "disasm")]
    llvm: Option<OsString>,
    /// Where the trace's code objects are, if not where it says, beside it, in code/ there, or in FILE.code/
    #[arg(long, value_name = "DIR")]
    code: Option<PathBuf>,
    /// Show N rows of each kernel, 0 for all
    #[arg(short, value_name = "N", default_value_t = ROWS)]
    n: usize,
    /// Write a JSON array with an object for each kernel, with all rows
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values with a header line, all rows of all kernels
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    region: RegionArgs,
}

impl Blocks {
    /// Writes the blocks to standard output.
    ///
    /// # Errors
    /// When the trace cannot be read, has no counts or no kernel that was asked for, or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let name = self.file.display();
        let group = match (self.line, self.function) {
            (true, _) => BlockGroup::Line,
            (_, true) => BlockGroup::Function,
            _ => BlockGroup::Block,
        };
        let notes = notes();
        let (trace, version) = trace::open(&self.file, &*notes)?;
        let selected = self.region.select(&trace, version)?;
        notes.show("adding up what the blocks were counted");
        let cannot = || format!("cannot read the basic blocks of {name}");
        let objects = KernelObjects::of(&trace, &self.file, self.code.as_deref()).with_context(cannot)?;
        let mut missing = BTreeSet::new();
        let mut read = |matching: Option<&Regex>| {
            blocks((&trace, &selected), matching, group, &objects, |why| {
                missing.insert(why);
            })
        };
        let of_part = if selected.is_everything() { "" } else { " in that part of it" };
        let mut kernels = read(self.matching.as_ref()).with_context(cannot)?;
        if kernels.is_empty() && self.matching.is_some() && !read(None).with_context(cannot)?.is_empty() {
            bail!("{name} has basic blocks of no kernel whose name matches{of_part}");
        }
        let peaks = Peaks { gflops: self.peak_gflops, gbytes: self.peak_gbs };
        if self.roofline {
            notes.show("adding up the times of dispatches");
            add_rooflines((&trace, &selected), &mut kernels, &peaks)
                .with_context(|| format!("cannot read the times of dispatches in {name}"))?;
        }
        let mut status = ExitCode::SUCCESS;
        if self.disasm {
            notes.show("disassembling");
            let mut lister = Lister::new(disassembler::command, self.llvm.clone());
            for kernel in &mut kernels {
                let most = if self.json { 0 } else { self.n };
                let shown = shown_of(kernel.rows.len(), most);
                let rows = &mut kernel.rows[..shown];
                match list_instructions(rows, &objects, &mut lister, |why| {
                    missing.insert(why);
                }) {
                    Err(error) if error.is::<NoListing>() => {
                        missing.insert(error.to_string());
                        status = ExitCode::FAILURE;
                    }
                    listed => listed.with_context(cannot)?,
                }
            }
        }
        drop((trace, notes));
        missing.iter().for_each(note);
        let has_line = |kernel: &KernelBlocks| kernel.rows.iter().any(|row| !row.file.is_empty());
        for kernel in kernels.iter().filter(|kernel| self.line && !has_line(kernel)) {
            note(format_args!(
                "{}: its blocks have no lines of the source: it was compiled without -g",
                escape(&kernel.kernel)
            ));
        }
        if self.json {
            output::write_json(&kernels)?;
        } else if self.csv {
            write_csv(&kernels)?;
        } else if kernels.is_empty() {
            note(format_args!(
                "{name} has no counts of basic blocks{of_part}; rpd probe --auto records them, of the dispatches that -d chooses"
            ));
        } else if self.roofline {
            output::write(|out| roofline::write(out, &kernels, &peaks, self.n))?;
            roofline::say_what_is_missing(&kernels);
        } else {
            output::write(|out| {
                for (place, kernel) in kernels.iter().enumerate() {
                    if place > 0 {
                        writeln!(out)?;
                    }
                    self.write_kernel(out, kernel)?;
                }
                Ok(())
            })?;
        }
        Ok(status)
    }

    fn write_kernel(&self, out: &mut impl Write, kernel: &KernelBlocks) -> io::Result<()> {
        for line in head(kernel) {
            writeln!(out, "{line}")?;
        }
        let places = Places::of(kernel, self.function);
        table(kernel, self.n, &places).write(out, 2, output::line_width())?;
        let shown = shown(kernel, self.n);
        let hidden = kernel.rows.len() - shown.len();
        if hidden > 0 {
            writeln!(out, "  {}: -n 0 shows all", counted(hidden as u64, "more row", "more rows"))?;
        }
        for row in shown.iter().filter(|row| !row.code.is_empty()) {
            writeln!(out, "\n  {}", escape(&places.whole(row)))?;
            let mut last = None;
            for (place, instruction) in row.code.iter().enumerate() {
                let source = instruction.file.as_deref().zip(instruction.line);
                if source.is_some() && source != last {
                    let (file, line) = source.unwrap_or_default();
                    writeln!(out, "    ; {}:{line}", escape(file))?;
                    last = source;
                }
                let is_last = place + 1 == row.code.len();
                let target = row.target.filter(|_| is_last).map(|target| format!("  ; {target:#x}"));
                let (text, target) = (escape(&instruction.text), target.unwrap_or_default());
                writeln!(out, "    {:x}  {text}{target}", instruction.address)?;
            }
        }
        Ok(())
    }
}

/// How many of so many rows are shown.
fn shown_of(rows: usize, most: usize) -> usize {
    if most == 0 { rows } else { most.min(rows) }
}

/// How the places of a kernel's blocks are written.
struct Places<'a> {
    /// Rows are functions.
    are_functions: bool,
    names_functions: bool,
    /// Kernels of this name are in several code objects.
    names_objects: bool,
    /// Files that have their name for themselves.
    unique: BTreeSet<&'a str>,
}

impl Places<'_> {
    fn of(kernel: &KernelBlocks, are_functions: bool) -> Places<'_> {
        let files: BTreeSet<&str> = kernel.rows.iter().map(|row| &*row.file).collect();
        let is_alone =
            |file: &&str| files.iter().filter(|other| last_part(other) == last_part(file)).count() == 1;
        Places {
            are_functions,
            names_functions: kernel.rows.iter().any(|row| row.function != kernel.rows[0].function),
            names_objects: kernel.rows.iter().any(|row| row.code_object != kernel.rows[0].code_object),
            unique: files.iter().copied().filter(is_alone).collect(),
        }
    }

    /// In a table.
    fn short(&self, row: &BlockRow) -> String {
        let file = if self.unique.contains(&*row.file) { last_part(&row.file) } else { &row.file };
        self.place(row, file, self.names_functions)
    }

    /// With nothing left out.
    fn whole(&self, row: &BlockRow) -> String {
        self.place(row, &row.file, true)
    }

    fn place(&self, row: &BlockRow, file: &str, names_function: bool) -> String {
        let mut words = Vec::new();
        if row.blocks == 1 && !self.are_functions {
            words.push(format!("{:#x}", row.offset));
        }
        if !file.is_empty() && !self.are_functions {
            words.push(format!("{file}:{}", row.line));
        }
        if names_function || words.is_empty() {
            words.push(row.function.clone());
        }
        if row.blocks > 1 {
            words.push(format!("({} blocks)", row.blocks));
        }
        if let Some(object) = row.code_object.as_ref().filter(|_| self.names_objects) {
            words.push(format!("in {}", object.get(..OBJECT_WIDTH).unwrap_or(object)));
        }
        words.join(" ")
    }
}

/// A file's name without its directories.
fn last_part(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

fn shown(kernel: &KernelBlocks, most: usize) -> &[BlockRow] {
    &kernel.rows[..shown_of(kernel.rows.len(), most)]
}

/// What is known of the kernel as a whole.
fn head(kernel: &KernelBlocks) -> Vec<String> {
    let mut lines = vec![rpd_postprocess::text::escape(&kernel.kernel).into_owned()];
    let mut parts = vec![format!(
        "{} counted by --auto={}",
        counted(kernel.dispatches, "dispatch", "dispatches"),
        kernel.mode.name()
    )];
    if kernel.dispatches > 0 && kernel.counts_of != kernel.dispatches {
        parts.push(format!("counts of {}", kernel.counts_of));
    }
    if let Some(executed) = kernel.executed {
        parts.push(format!("{executed} instructions executed by waves"));
    }
    if let (Some(executed), Some(items)) = (
        kernel.executed_by_lanes,
        kernel.work_items.filter(|items| *items > 0 && kernel.counts_of == kernel.dispatches),
    ) {
        parts.push(format!(
            "{:.1} instructions by each of {items} work-items",
            executed as f64 / items as f64
        ));
    }
    lines.push(format!("  {}", parts.join(", ")));
    if let (Some(kinds), Some(executed)) = (&kernel.executed_kinds, kernel.executed.filter(|all| *all > 0)) {
        let share = |kind: &&str| {
            let count = kinds.get(kind).copied().unwrap_or_default();
            let name =
                if ["branch", "other"].contains(kind) { kind.to_string() } else { kind.to_uppercase() };
            (count > 0).then(|| format!("{name} {:.1} %", 100.0 * count as f64 / executed as f64))
        };
        lines.push(format!("  {}", KINDS.iter().filter_map(share).collect::<Vec<_>>().join(", ")));
        if let Some(by_lanes) = kernel.executed_by_lanes {
            lines.push(format!(
                "  {:.1} of {LANES} lanes active on average",
                by_lanes as f64 / executed as f64
            ));
        }
    }
    if let (Some(flops), Some(bytes)) = (kernel.flops, kernel.memory_bytes) {
        let intensity =
            kernel.flops_per_byte.map(|ratio| format!(", {ratio:.2} flop/byte")).unwrap_or_default();
        let assumed = if kernel.lanes_assumed { ", with all lanes active" } else { "" };
        lines.push(format!("  {flops} flop, {bytes} bytes of memory{intensity}{assumed}"));
    }
    let ticks = kernel.rows.iter().filter_map(|row| row.ticks).fold(0, u64::saturating_add);
    if ticks > 0 && !kernel.waits.is_empty() {
        let mut waits: Vec<(&&str, &u64)> = kernel.waits.iter().collect();
        waits.sort_by_key(|(_, of_wait)| std::cmp::Reverse(**of_wait));
        let share = |(wait, of_wait): (&&str, &u64)| {
            format!("{wait} {:.1} %", 100.0 * *of_wait as f64 / ticks as f64)
        };
        let shares: Vec<String> = waits.into_iter().map(share).collect();
        lines.push(format!("  ticks of blocks that wait: {}", shares.join(", ")));
    }
    lines
}

fn table(kernel: &KernelBlocks, most: usize, places: &Places<'_>) -> Table {
    use Align::{Left, Right};
    let has = |what: fn(&BlockRow) -> Option<u64>| kernel.rows.iter().any(|row| what(row).is_some());
    let (has_waves, has_lanes, has_ticks) =
        (has(|row| row.waves), has(|row| row.lanes), has(|row| row.ticks));
    let (has_taken, has_turns) = (has(|row| row.taken), has(|row| row.loop_entries));
    let has_waits = has_ticks && kernel.rows.iter().any(|row| !row.waits.is_empty());
    let columns = [
        ("%", Right, true),
        ("executed", Right, has_waves),
        ("waves", Right, has_waves),
        ("lanes", Right, has_lanes),
        ("ticks", Right, has_ticks),
        ("insns", Right, true),
        ("taken", Right, has_taken),
        ("turns", Right, has_turns),
        ("waits", Left, has_waits),
        ("block", Left, true),
    ];
    let columns: Vec<(&'static str, Align)> =
        columns.iter().filter(|(_, _, there)| *there).map(|(title, align, _)| (*title, *align)).collect();
    let weight =
        |row: &BlockRow| if has_ticks { row.ticks } else { row.executed.or(row.lanes) }.unwrap_or(0) as f64;
    let all: f64 = kernel.rows.iter().map(weight).sum();
    let mut table = Table::new(&columns).sparing(&["insns", "executed", "waits", "turns", "taken"]);
    for row in shown(kernel, most) {
        let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
        let per_wave = |value: Option<u64>| match (value, row.waves) {
            (Some(value), Some(waves)) if waves > 0 => format!("{:.1}", value as f64 / waves as f64),
            (value, None) => number(value),
            _ => String::new(),
        };
        let percent = if all > 0.0 { 100.0 * weight(row) / all } else { 0.0 };
        let mut cells = vec![format!("{percent:.1}")];
        if has_waves {
            cells.extend([number(row.executed), number(row.waves)]);
        }
        if has_lanes {
            cells.push(per_wave(row.lanes));
        }
        if has_ticks {
            cells.push(per_wave(row.ticks));
        }
        cells.push(row.instructions.to_string());
        let of = |part: u64, whole: u64| part as f64 / whole as f64;
        if has_taken {
            let taken = row.taken.zip(row.waves.filter(|waves| *waves > 0));
            cells.push(
                taken.map(|(taken, waves)| format!("{:.1}", 100.0 * of(taken, waves))).unwrap_or_default(),
            );
        }
        if has_turns {
            let turns = row.waves.zip(row.loop_entries.filter(|entries| *entries > 0));
            cells
                .push(turns.map(|(waves, entries)| format!("{:.1}", of(waves, entries))).unwrap_or_default());
        }
        if has_waits {
            cells.push(row.waits.iter().copied().collect::<Vec<_>>().join(", "));
        }
        cells.push(places.short(row));
        table.row(cells);
    }
    table
}

fn write_csv(kernels: &[KernelBlocks]) -> Result<()> {
    output::write(|out| {
        let names = [
            "kernel",
            "mode",
            "blocks",
            "function",
            "offset",
            "size",
            "file",
            "line",
            "instructions",
            "waves",
            "lanes",
            "ticks",
            "executed",
            "flops",
            "memory_bytes",
            "target",
            "taken",
            "loop_entries",
            "waits",
            "code_object",
        ];
        output::write_csv_record(out, names.iter().chain(&KINDS))?;
        for (kernel, row) in
            kernels.iter().flat_map(|kernel| kernel.rows.iter().map(move |row| (kernel, row)))
        {
            let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
            let mut record = vec![
                csv_field(&kernel.kernel).into_owned(),
                kernel.mode.name().to_string(),
                row.blocks.to_string(),
                csv_field(&row.function).into_owned(),
                row.offset.to_string(),
                row.size.to_string(),
                csv_field(&row.file).into_owned(),
                row.line.to_string(),
                row.instructions.to_string(),
            ];
            let numbers = [row.waves, row.lanes, row.ticks, row.executed, row.flops, row.memory_bytes];
            record.extend(numbers.into_iter().chain([row.target, row.taken, row.loop_entries]).map(number));
            record.push(row.waits.iter().copied().collect::<Vec<_>>().join(" "));
            record.push(csv_field(row.code_object.as_deref().unwrap_or_default()).into_owned());
            let kind = |kind: &&'static str| {
                number(row.executed_kinds.as_ref().and_then(|kinds| kinds.get(kind).copied()))
            };
            record.extend(KINDS.iter().map(kind));
            output::write_csv_record(out, record)?;
        }
        Ok(())
    })
}
