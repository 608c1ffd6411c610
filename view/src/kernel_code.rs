//! A kernel's code: what it needs, its instructions and blocks, and how often these were executed.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use regex::Regex;
use rpd_postprocess::code::{
    Assumed, Candidate, KernelFacts, KernelObjects, Lister, Listing, NoListing, TraceCode,
};
use rpd_postprocess::region::{Region, Selected};
use rpd_postprocess::report::blocks::{BlockGroup, KernelBlocks, blocks};
use rpd_schema::THE_PROGRAM;
use rusqlite::Connection;
use serde::Serialize;

use crate::console::Silent;

/// Instructions of a build that are sent.
const MOST_INSTRUCTIONS: usize = 20_000;

/// Makes the command that disassembles.
pub type Disassembler = fn() -> io::Result<Command>;

/// The code of one build of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Build {
    /// The file whose kernel ran in the place of the program's own; none for that, also where it ran with counters.
    pub candidate: Option<Candidate>,
    /// The code.
    pub listing: Listing,
    /// How many instructions there are.
    pub all_instructions: usize,
}

/// What is known of a kernel's code.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct KernelCode {
    /// Registers and memory, by build and size of launches.
    pub facts: Vec<KernelFacts>,
    /// Its builds.
    pub builds: Vec<Build>,
    /// How often its blocks were executed, where that was counted.
    pub blocks: Option<KernelBlocks>,
    /// What is not there, and why.
    pub missing: BTreeSet<String>,
    /// The command that gives the same.
    pub command: String,
}

/// The code of the kernel `name` of the trace `file`.
///
/// # Errors
/// When the trace, or a code object that it names, cannot be read.
pub fn code(
    file: &Path,
    trace: &Connection,
    name: &str,
    disassembler: Option<Disassembler>,
) -> Result<KernelCode> {
    let mut found = KernelCode::default();
    let is_it = |kernel: &str, symbol: &str| kernel == name || (!symbol.is_empty() && symbol == name);
    match TraceCode::open(file, None, &Region::default(), &Silent) {
        Err(error) => {
            found.missing.insert(format!("{error:#}"));
        }
        Ok(code) => {
            let missing = &mut found.missing;
            let rows = code.rows(Assumed::default(), true, |why| {
                missing.insert(why);
            })?;
            found.facts = rows.into_iter().filter(|row| is_it(&row.kernel, &row.symbol)).collect();
            if !code.names_objects() {
                let how = "the trace does not say which code objects its kernels are from: rpd record --save-code does";
                found.missing.insert(how.to_string());
            }
            if let Some(disassembler) = disassembler {
                list(&code, &mut found, disassembler, is_it)?;
            }
        }
    }
    let objects = KernelObjects::of(trace, file, None)?;
    let pattern = Regex::new(&format!("^{}$", regex::escape(name)))?;
    let missing = &mut found.missing;
    let counted =
        blocks((trace, &Selected::everything()), Some(&pattern), BlockGroup::Block, &objects, |why| {
            missing.insert(why);
        })?;
    found.blocks = counted.into_iter().next();
    Ok(found)
}

/// Adds the instructions of all builds.
fn list(
    code: &TraceCode,
    found: &mut KernelCode,
    disassembler: Disassembler,
    is_it: impl Fn(&str, &str) -> bool,
) -> Result<()> {
    let mut lister = Lister::new(disassembler, None);
    let KernelCode { builds, missing, .. } = found;
    code.each_object(|build| {
        let object = match build.found {
            Ok(object) => object,
            // The rows have said so.
            Err(_) => return Ok(()),
        };
        let is_wanted = |kernel: &str, symbol: &str| build.names.contains(kernel) && is_it(kernel, symbol);
        let listed = lister.each_function(&object, is_wanted, |mut listing| {
            let all_instructions = listing.instructions.len();
            listing.instructions.truncate(MOST_INSTRUCTIONS);
            let candidate = build.candidate.filter(|candidate| candidate.path != THE_PROGRAM).cloned();
            builds.push(Build { candidate, listing, all_instructions });
            Ok(())
        });
        match listed {
            Err(error) if error.is::<NoListing>() => {
                missing.insert(error.to_string());
            }
            listed => listed?,
        }
        Ok(())
    })
}
