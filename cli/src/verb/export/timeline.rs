//! The common part of the exports of timelines: the trace, the destination, the part of the trace, and the messages.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use rpd_postprocess::export::Exported;
use rpd_postprocess::notes::Notes;
use rpd_postprocess::region::Region;
use rpd_postprocess::text::{self, counted};
use rpd_postprocess::trace;
use rpd_schema::Version;
use rusqlite::Connection;

use super::destination::OutputArgs;
use crate::args::region::RegionArgs;
use crate::output::note::note;
use crate::output::progress::notes;

/// A trace that is exported, and where to.
#[derive(Args)]
pub(super) struct TimelineArgs {
    /// The trace
    file: PathBuf,
    #[command(flatten)]
    to: OutputArgs,
    #[command(flatten)]
    region: RegionArgs,
}

/// An export: of a file that is open, a part, to an output.
pub(super) struct Source<'a> {
    pub(super) file: &'a Path,
    pub(super) trace: (&'a Connection, Version),
    pub(super) region: &'a Region,
    pub(super) notes: &'a dyn Notes,
}

impl TimelineArgs {
    /// Where it goes to, if not to standard output.
    pub(super) fn path(&self) -> Option<&Path> {
        self.to.path()
    }

    /// Keeps bytes that are no text off a terminal.
    ///
    /// # Errors
    /// When standard output is one, and no file was named.
    pub(super) fn check_binary(&self) -> Result<()> {
        if self.path().is_none() && io::stdout().is_terminal() {
            bail!("this format is not for a terminal: name a file with -o");
        }
        Ok(())
    }

    /// Writes what `export` makes of the trace to standard output or to the file.
    ///
    /// # Errors
    /// When the trace cannot be read or the output not be written.
    pub(super) fn run(
        self,
        export: impl FnOnce(&Source<'_>, &mut (dyn Write + Send)) -> Result<Exported>,
    ) -> Result<Exported> {
        let mut is_whole = false;
        let (name, exported) = self.write(|source, out| {
            is_whole = source.region.is_everything();
            export(source, out)
        })?;
        tell(&name, is_whole, exported);
        Ok(exported)
    }

    /// The same, but says nothing of what was exported: gives that to the caller, with the trace's name as messages have it.
    ///
    /// # Errors
    /// When the trace cannot be read or the output not be written.
    pub(super) fn write<T>(
        self,
        export: impl FnOnce(&Source<'_>, &mut (dyn Write + Send)) -> Result<T>,
    ) -> Result<(String, T)> {
        let notes = notes();
        let name = text::escape_path(&self.file);
        let (trace, version) = trace::open(&self.file, &*notes)?;
        let region = self.region.into();
        let source = Source { file: &self.file, trace: (&trace, version), region: &region, notes: &*notes };
        let exported = self.to.write(&*notes, |out| {
            export(&source, out).map_err(|error| match error.is::<io::Error>() {
                true => error,
                false => error.context(format!("cannot export {name}")),
            })
        })?;
        drop(notes);
        Ok((name, exported))
    }
}

/// Says what is not in the export.
pub(super) fn tell(
    name: &str,
    is_whole: bool,
    Exported { calls, ops, impossible, no_numbers, far_values, .. }: Exported,
) {
    note_impossible(name, impossible);
    if no_numbers > 0 {
        let values = counted(no_numbers, "value of a sensor is", "values of sensors are");
        note(format_args!("{name}: {values} left out: no numbers"));
    }
    if far_values > 0 {
        let values = counted(far_values, "value of a sensor is", "values of sensors are");
        note(format_args!(
            "{name}: {values} left out: far from all calls and operations, which rpd check lists"
        ));
    }
    if calls + ops == 0 && is_whole {
        note(format_args!("{name} holds no calls and no operations"));
    } else if calls + ops == 0 {
        note(format_args!("{name} has no such call and no such operation; rpd info shows what it holds"));
    } else if ops == 0 && is_whole {
        note(format_args!("{name} holds no operations"));
    } else if ops == 0 {
        note(format_args!("{name} has no such operation; rpd info shows what it holds"));
    }
}

/// Says how many rows of the trace `name` were left out.
pub(super) fn note_impossible(name: &str, impossible: u64) {
    if impossible > 0 {
        let rows = counted(impossible, "call or operation is", "calls and operations are");
        note(format_args!("{name}: {rows} left out: impossible times or places, which rpd check lists"));
    }
}
