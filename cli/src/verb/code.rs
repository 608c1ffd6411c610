//! `rpd code`: what kernels need of the hardware, and what limits them.

mod listing;
mod rows;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use regex::Regex;
use rpd_postprocess::code::{self, Assumed, FoundObject, KernelFacts, Lister, NoListing, TraceCode};
use rpd_postprocess::text::counted;

use self::listing::{ListingForm, ListingParts, Listings};
use self::rows::{KernelRows, RowsColumns, RowsForm};
use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;
use crate::verb::disassembler;

/// Show what kernels need of the hardware, and what limits how many waves of them fit
///
/// FILE is a code object (.hsaco), an offload bundle, a program or library with kernels in it, or a trace. Of a trace, code objects are
/// looked for where the recorder saved them (RPDT_SAVE_CODE), then in the files that the program had them from.
#[derive(Args)]
#[command(after_help = "\
Columns:
  target     the processor that the code is for
  VGPR, AGPR, SGPR
             vector, accumulation and scalar registers
  LDS        bytes of a workgroup, without what the launch adds
  scratch    bytes of a work-item; +: more where it calls through pointers
  spills     vector and scalar registers that found no room
  kernarg    bytes of arguments, hidden ones included
  wave       work-items of a wave
  workgroup  most work-items of a workgroup; =AxBxC: only this size
  occupancy  waves that a SIMD holds, of those it could hold, in workgroups
             of that size (--workgroup) with that LDS (--dynamic-lds)
  limit      what allows no more waves: VGPR, SGPR, LDS, workgroup (whole
             ones leave places empty), hardware (the SIMD is full)
  groups     whole workgroups that a CU holds (from gfx10 on a WGP, where a
             workgroup may use both its CUs); 0: it cannot run
  kernel     name, cut in the middle to the width of the terminal

Of a trace, each row is a kernel in one size that it was launched in: LDS and workgroup are those of the
launches, calls how many there were, total the sum of their durations; the longest first. Kernels whose
code object is not found are shown with what the trace says of them.

Example:
  rpd code vadd.hsaco
  rpd code --kernel 'gemm.*f16' --args libmine.so
  rpd code --json vadd.hsaco | jq '.[].occupancy'
  rpd code trace.rpd")]
pub(crate) struct Code {
    /// A code object, offload bundle, program, library or trace
    file: PathBuf,
    /// Where the trace's code objects were saved, if not beside it: in its folder, in code/ there, or in FILE-code/
    #[arg(long, value_name = "DIR")]
    code: Option<PathBuf>,
    /// Kernels only whose name, as shown or mangled, matches this regular expression
    #[arg(long, value_name = "REGEX")]
    kernel: Option<Regex>,
    /// Show the arguments: offset, size, kind, type and name
    #[arg(long)]
    args: bool,
    /// Reckon the occupancy for workgroups of N work-items
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    workgroup: Option<u32>,
    /// Reckon the occupancy for launches that add N bytes of LDS
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    dynamic_lds: u32,
    /// Show the instructions, with lines of the source where the code object has them; needs an LLVM
    #[arg(long, conflicts_with_all = ["args", "workgroup", "dynamic_lds"])]
    disasm: bool,
    /// Show the basic blocks and how control goes from one to the next; with --disasm their instructions too
    #[arg(long, conflicts_with_all = ["args", "workgroup", "dynamic_lds"])]
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
}

impl Code {
    /// Writes a row per kernel to standard output.
    ///
    /// # Errors
    /// When the file cannot be read or has no code for AMD GPUs, or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        if self.disasm || self.cfg || self.dot { self.list() } else { self.tabulate() }
    }

    fn tabulate(&self) -> Result<ExitCode> {
        let form = match (self.json, self.csv) {
            (true, _) => RowsForm::Json,
            (false, true) => RowsForm::Csv,
            (false, false) => RowsForm::Table { room: if self.wide { None } else { output::line_width() } },
        };
        let assumed = Assumed { workgroup: self.workgroup, dynamic_lds: self.dynamic_lds, lds: None };
        let trace = self.trace()?;
        let columns = RowsColumns { arguments: self.args, launches: trace.is_some() };
        if self.args && trace.as_ref().is_some_and(|trace| !trace.names_objects()) {
            note(format_args!(
                "{} has no arguments of its kernels: those are in code objects, which RPDT_SAVE_CODE=DIR saves",
                self.file.display()
            ));
        }
        let of_trace = match &trace {
            Some(trace) => trace.rows(assumed, self.args, note)?,
            None => Vec::new(),
        };
        let (mut read, mut shown) = (Ok(()), 0);
        output::write(|out| {
            let mut rows = KernelRows::begin(out, form, columns)?;
            let mut written = Ok(());
            let mut write = |kernels: Vec<KernelFacts>| {
                let wanted = kernels.iter().filter(|kernel| self.is_wanted(&kernel.kernel, &kernel.symbol));
                for kernel in wanted {
                    shown += 1;
                    written = rows.row(kernel);
                    if written.is_err() {
                        return ControlFlow::Break(());
                    }
                }
                ControlFlow::Continue(())
            };
            if trace.is_some() {
                let _ = write(of_trace);
            } else {
                read = code::each_object(&self.file, |object| Ok(write(object.kernels(assumed, self.args)?)));
            }
            written.and_then(|()| rows.end())
        })?;
        read?;
        self.note_if_none(shown);
        Ok(ExitCode::SUCCESS)
    }

    /// The kernels of the trace that FILE is.
    fn trace(&self) -> Result<Option<TraceCode>> {
        if code::is_database(&self.file)? {
            return TraceCode::open(&self.file, self.code.as_deref(), &*notes()).map(Some);
        }
        if self.code.is_some() {
            bail!("--code is for a trace, which {} is not", self.file.display());
        }
        Ok(None)
    }

    /// Instructions and basic blocks.
    fn list(&self) -> Result<ExitCode> {
        let form = match (self.dot, self.json) {
            (true, _) => ListingForm::Dot,
            (false, true) => ListingForm::Json,
            (false, false) => ListingForm::Text,
        };
        let parts = ListingParts { instructions: self.disasm, blocks: self.cfg || self.dot };
        let trace = self.trace()?;
        if trace.as_ref().is_some_and(|trace| !trace.names_objects()) {
            bail!(
                "{} does not say which code objects its kernels are from: record with RPDT_SAVE_CODE=DIR, or give the program or \
                 library itself",
                self.file.display()
            );
        }
        let mut lister = Lister::new(disassembler::command, self.llvm.clone());
        let (mut read, mut shown) = (Ok(()), 0);
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
            let mut list = |object: &FoundObject, of_trace: Option<&BTreeSet<&str>>| {
                let is_wanted = |name: &str, symbol: &str| {
                    of_trace.is_none_or(|names| names.contains(name)) && self.is_wanted(name, symbol)
                };
                let listed = lister.each_function(object, is_wanted, |listing| {
                    shown += 1;
                    if written.is_ok() {
                        written = listings.function(&listing);
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
            read = match &trace {
                Some(trace) => trace.each_object(|found, names| match found {
                    Ok(object) => list(&object, Some(names)).map(drop),
                    Err(why) => {
                        note(why);
                        Ok(())
                    }
                }),
                None => code::each_object(&self.file, |object| list(&object, None)),
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
        self.note_if_none(shown);
        Ok(ExitCode::SUCCESS)
    }

    fn note_if_none(&self, shown: usize) {
        if shown == 0 {
            note(format_args!("{} has no such kernel", self.file.display()));
        }
    }

    /// Whether a kernel or function was asked for, by its name with parameters or its mangled one.
    fn is_wanted(&self, name: &str, symbol: &str) -> bool {
        let matches = |pattern: &Regex| pattern.is_match(name) || pattern.is_match(symbol);
        self.kernel.as_ref().is_none_or(matches)
    }
}
