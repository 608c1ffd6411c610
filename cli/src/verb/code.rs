//! `rpd code`: what kernels need of the hardware, and what limits them.

mod listing;
pub(super) mod rows;
mod sass;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use regex::Regex;
use rpd_postprocess::code::{
    self, Assumed, BuildObject, FoundObject, KernelFacts, Lister, NoListing, TraceCode,
};
use rpd_postprocess::text::{self, counted};

use self::listing::{ListingForm, ListingParts, Listings, Origin};
use self::rows::{KernelRows, RowsColumns, RowsForm, within};
use crate::args::code::{lds, workgroup};
use crate::args::region::{REGION_HELP, RegionArgs};
use crate::output;
use crate::output::candidate::CacheDirectory;
use crate::output::note::note;
use crate::output::progress::notes;
use crate::verb::disassembler;

/// Show what kernels need of the hardware, and what limits how many waves of them fit
///
/// FILE is a code object (.hsaco), a cubin of NVIDIA's, an offload bundle, a program or library with kernels in it, a trace, or a directory.
/// A directory means all .hsaco, .co and .cubin files in it and below it. For a trace, the command looks for code objects where the recorder
/// saved them (rpd record --save-code), then in the files that the program had them from.
#[derive(Args)]
#[command(after_help = format!("\
Columns:
  target     the processor that the code is for
  VGPR, AGPR, SGPR
             vector, accumulation and scalar registers
  LDS        bytes of a workgroup, with what the launch adds (--dynamic-lds); for NVIDIA's
             kernels, shared memory of a block
  scratch    bytes of a work-item; +: more where it calls through pointers
  spills     vector and scalar registers that found no room
  kernarg    bytes of arguments, hidden ones included
  wave       work-items of a wave
  workgroup  work-items of a workgroup: the most that the kernel allows, or those
             of --workgroup; =AxBxC: the kernel allows only this size
  occupancy  waves that a SIMD holds, of those it could hold, in workgroups
             of that size with that LDS
  limit      what allows no more waves: VGPR, SGPR, LDS, workgroup (whole
             ones leave places empty), hardware (the SIMD is full)
  groups     whole workgroups that a CU holds (from gfx10 on a WGP, where a
             workgroup may use both its CUs); 0: it cannot run
  file       for a directory: where the kernel is
  kernel     name, cut in the middle to the width of the terminal

For a trace, each row is a build of a kernel in one size that it was launched in. LDS and workgroup
are those of the launches (with --workgroup and --dynamic-lds in brackets, where they differ), calls
is how many there were, total the sum of their durations; the longest come first. Kernels whose code object
is not found are shown with what the trace says of them; -: it does not say it. Where candidates of a
kernel cache ran:
  ran        original: the program's own kernel; else the candidate's file and the begin of its SHA-256.
             (the program): an instrumented kernel that the program itself has loaded

{REGION_HELP}

A part of a trace means the launches in it. --kernel is for all files, and looks at names as they are shown and mangled.

Example:
  rpd code vadd.hsaco
  rpd code --kernel 'gemm.*f16' --args libmine.so
  rpd code --workgroup 16x16 --dynamic-lds 4KiB vadd.hsaco
  rpd code --json vadd.hsaco | jq '.[].occupancy'
  rpd code trace.rpd
  rpd code trace.rpd --gpu 0 --in 'step 3'"))]
pub(crate) struct Code {
    /// A code object, offload bundle, program, library, trace, or directory of code objects
    file: PathBuf,
    /// Where the trace's code objects are, if not where it says, beside it, in code/ there, or in FILE.code/
    #[arg(long, value_name = "DIR")]
    code: Option<PathBuf>,
    /// Show the arguments: offset, size, kind, type and name
    #[arg(long)]
    args: bool,
    /// Reckon the occupancy for workgroups of N work-items, or of a size such as 16x16
    #[arg(long, value_name = "N", value_parser = workgroup)]
    workgroup: Option<u32>,
    /// Reckon the occupancy for launches that add N bytes of LDS; 4KiB and the like too
    #[arg(long, value_name = "N", value_parser = lds)]
    dynamic_lds: Option<u32>,
    /// Show the instructions, with lines of the source where the code object has them; needs an LLVM
    #[arg(long, conflicts_with_all = ["workgroup", "dynamic_lds"])]
    disasm: bool,
    /// Show the basic blocks and how control goes from one to the next; with --disasm their instructions too
    #[arg(long, conflicts_with_all = ["workgroup", "dynamic_lds"])]
    cfg: bool,
    /// Write the basic blocks as a graph for Graphviz: rpd code --dot FILE | dot -Tsvg
    #[arg(long, conflicts_with_all = ["args", "workgroup", "dynamic_lds", "json", "csv"])]
    dot: bool,
    /// The LLVM to disassemble with, in place of the newest that is found
    #[arg(long, value_name = "LIBRARY")]
    llvm: Option<OsString>,
    /// Write a JSON array, one kernel or function per line; sizes in bytes
    #[arg(long, conflicts_with_all = ["csv", "wide"])]
    json: bool,
    /// Write comma-separated values with a header line; sizes in bytes
    #[arg(long, conflicts_with_all = ["wide", "disasm", "cfg"])]
    csv: bool,
    /// Do not shorten names to the width of the terminal (in a pipe they are not)
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    region: RegionArgs,
}

/// How code objects come to be saved.
const SAVE: &str = "rpd record --save-code (or RPDT_SAVE_CODE=DIR)";

/// Where kernels are looked for.
enum Source {
    Trace(TraceCode),
    /// The file, or the code objects in the directory that it is.
    Files(Vec<PathBuf>),
}

impl Code {
    /// Writes a row per kernel to standard output.
    ///
    /// # Errors
    /// When the file cannot be read, has no code for AMD GPUs or no kernel that was asked for, or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        if self.disasm || self.cfg || self.dot { self.list() } else { self.tabulate() }
    }

    fn source(&self) -> Result<Source> {
        let is_directory = self.file.is_dir();
        if !is_directory && code::is_database(&self.file)? {
            let part = self.region.without_kernel();
            return TraceCode::open(&self.file, self.code.as_deref(), &part, &*notes()).map(Source::Trace);
        }
        if let Some(option) = self.region.first_but_kernel() {
            bail!("{option} names a part of a trace, which {} is not", self.file.display());
        }
        if self.code.is_some() {
            bail!("--code is for a trace, which {} is not", self.file.display());
        }
        let files = if is_directory { code::code_objects(&self.file)? } else { vec![self.file.clone()] };
        Ok(Source::Files(files))
    }

    /// Hands the code objects in `files` to `visit`: of a directory with the file that each is in. There a file that cannot be read hides
    /// nothing of the others.
    fn each_object(
        &self,
        files: &[PathBuf],
        mut visit: impl FnMut(&FoundObject, Option<&str>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let is_directory = self.file.is_dir();
        let mut unread = 0_u64;
        for file in files {
            let name = is_directory.then(|| file.to_string_lossy());
            let mut flow = ControlFlow::Continue(());
            let read = code::each_object(file, |object| {
                flow = visit(&object, name.as_deref())?;
                Ok(flow)
            });
            if !is_directory {
                return read;
            }
            if let Err(error) = read {
                note(format_args!("{error:#}"));
                unread += 1;
            }
            if flow.is_break() {
                break;
            }
        }
        if unread > 0 {
            let all = counted(files.len() as u64, "code object", "code objects");
            bail!("{unread} of the {all} in {} cannot be read", self.file.display());
        }
        Ok(())
    }

    fn tabulate(&self) -> Result<ExitCode> {
        let form = match (self.json, self.csv) {
            (true, _) => RowsForm::Json,
            (false, true) => RowsForm::Csv,
            (false, false) => RowsForm::Table { room: if self.wide { None } else { output::line_width() } },
        };
        let assumed = Assumed { workgroup: self.workgroup, dynamic_lds: self.dynamic_lds };
        let source = self.source()?;
        let directory = self.file.is_dir().then_some(self.file.as_path());
        let mut columns = RowsColumns {
            arguments: self.args,
            says_unknown_arguments: false,
            launches: false,
            ran: None,
            directory,
        };
        let mut of_trace = Vec::new();
        if let Source::Trace(trace) = &source {
            columns.says_unknown_arguments = self.args && trace.names_objects();
            if self.args && !trace.names_objects() {
                note(format_args!(
                    "{} has no arguments of its kernels: those are in code objects, which {SAVE} saves",
                    self.file.display()
                ));
            }
            of_trace = trace.rows(assumed, self.args, note)?;
            columns.launches = true;
            let ran = |row: &KernelFacts| row.launches.as_ref().is_some_and(|ran| ran.candidate.is_some());
            columns.ran = of_trace.iter().any(ran).then(|| CacheDirectory::of(trace.kernel_caches()));
        }
        let (mut read, mut shown, mut others) = (Ok(()), 0_u64, BTreeSet::new());
        output::write(|out| {
            let mut rows = KernelRows::begin(out, form, columns)?;
            let mut written = Ok(());
            let mut write = |kernels: Vec<KernelFacts>| {
                for kernel in kernels {
                    if !self.is_wanted(&kernel.kernel, &kernel.symbol) {
                        others.insert(kernel.kernel);
                        continue;
                    }
                    shown += 1;
                    written = rows.row(&kernel);
                    if written.is_err() {
                        return ControlFlow::Break(());
                    }
                }
                ControlFlow::Continue(())
            };
            match &source {
                Source::Trace(_) => {
                    let _ = write(of_trace);
                }
                Source::Files(files) => {
                    read = self.each_object(files, |object, file| {
                        let mut kernels = object.kernels(assumed, self.args)?;
                        kernels.iter_mut().for_each(|kernel| kernel.file = file.map(str::to_string));
                        Ok(write(kernels))
                    });
                }
            }
            written.and_then(|()| rows.end())
        })?;
        read?;
        self.fail_if_none(shown, &others, ["kernel", "kernels"])?;
        Ok(ExitCode::SUCCESS)
    }

    /// Instructions and basic blocks.
    fn list(&self) -> Result<ExitCode> {
        let form = match (self.dot, self.json) {
            (true, _) => ListingForm::Dot,
            (false, true) => ListingForm::Json,
            (false, false) => ListingForm::Text,
        };
        let parts =
            ListingParts { arguments: self.args, instructions: self.disasm, blocks: self.cfg || self.dot };
        let source = self.source()?;
        if let Source::Trace(trace) = &source {
            self.note_unsaved(trace)?;
        }
        if let Source::Files(files) = &source
            && let [file] = &files[..]
            && code::is_cubin(file)?
        {
            if self.cfg || self.dot || self.json || self.args || self.region.kernel().is_some() {
                bail!(
                    "{}: of a cubin, --disasm shows all instructions as they are; leave out the other options",
                    file.display()
                );
            }
            return sass::list(file);
        }
        let mut lister = Lister::new(disassembler::command, self.llvm.clone());
        let (mut read, mut shown, mut others) = (Ok(()), 0_u64, BTreeSet::new());
        let mut said: Vec<String> = Vec::new();
        output::write(|out| {
            let mut listings = Listings::begin(out, form, parts)?;
            let mut written = Ok(());
            let mut say = |why: String| {
                if !said.contains(&why) {
                    note(&why);
                    said.push(why);
                }
            };
            let mut list = |object: &FoundObject, launched: Option<&BTreeSet<&str>>, origin: Origin<'_>| {
                let is_wanted = |name: &str, symbol: &str| {
                    if launched.is_some_and(|names| !names.contains(name)) {
                        return false;
                    }
                    let is_wanted = self.is_wanted(name, symbol);
                    if !is_wanted {
                        others.insert(name.to_string());
                    }
                    is_wanted
                };
                let listed = lister.each_function(object, is_wanted, |listing| {
                    shown += 1;
                    if written.is_ok() {
                        written = listings.function(&listing, &origin);
                    }
                    Ok(())
                });
                match listed {
                    // The other code objects may be for processors that LLVM knows.
                    Err(error) if error.is::<NoListing>() => say(error.to_string()),
                    listed => listed?,
                }
                Ok(if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            };
            read = match &source {
                Source::Trace(trace) => {
                    let cache = CacheDirectory::of(trace.kernel_caches());
                    trace.each_object(|BuildObject { found, candidate, names }| match found {
                        Ok(object) => {
                            let words =
                                candidate.map(|of| format!(" of {}", cache.named(&of.path, &of.sha256)));
                            let origin = Origin { file: None, candidate, words: words.unwrap_or_default() };
                            list(&object, Some(&names), origin).map(drop)
                        }
                        Err(why) => {
                            note(why);
                            Ok(())
                        }
                    })
                }
                Source::Files(files) => self.each_object(files, |object, file| {
                    let words = file.map(|file| format!(" in {}", within(&self.file, file)));
                    let origin = Origin { file, candidate: None, words: words.unwrap_or_default() };
                    list(object, None, origin)
                }),
            };
            written.and_then(|()| listings.end())
        })?;
        read?;
        if lister.failures() > 0 {
            note(format_args!(
                "{}: LLVM did not survive {}, shown as data; code that was not damaged has none",
                self.file.display(),
                counted(lister.failures(), "instruction", "instructions")
            ));
        }
        if !said.is_empty() {
            return Ok(ExitCode::FAILURE);
        }
        self.fail_if_none(shown, &others, ["function", "functions"])?;
        Ok(ExitCode::SUCCESS)
    }

    /// Says of how many kernels that are wanted the trace names no code object.
    ///
    /// # Errors
    /// When it names none at all.
    fn note_unsaved(&self, trace: &TraceCode) -> Result<()> {
        let name = self.file.display();
        if !trace.names_objects() {
            bail!(
                "{name} does not say which code objects its kernels are from: record with {SAVE}, or give the program or library itself"
            );
        }
        let unsaved = trace.without_object().filter(|name| self.is_wanted(name, "")).count();
        if unsaved > 0 {
            let kernels = counted(unsaved as u64, "kernel", "kernels");
            note(format_args!(
                "{name} does not say which code objects {kernels} came from: {SAVE} saves them"
            ));
        }
        Ok(())
    }

    fn fail_if_none(&self, shown: u64, others: &BTreeSet<String>, [one, many]: [&str; 2]) -> Result<()> {
        let name = self.file.display();
        match self.region.kernel() {
            _ if shown > 0 => Ok(()),
            Some(pattern) if !others.is_empty() => bail!(
                "{name}: none of its {many} matches --kernel {}; it has {}",
                text::escape(pattern.as_str()),
                counted(others.len() as u64, one, many)
            ),
            _ => bail!("{name} has no {one} that can be shown"),
        }
    }

    /// Whether a kernel or function was asked for, by its name with parameters or its mangled one.
    fn is_wanted(&self, name: &str, symbol: &str) -> bool {
        let matches = |pattern: &Regex| pattern.is_match(name) || pattern.is_match(symbol);
        self.region.kernel().is_none_or(matches)
    }
}
