//! `rpd deserialize`: calls and ops that were written as markers become rows of calls and ops.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rpd_postprocess::pass::change;
use rpd_postprocess::passes::deserialize::Deserialized;
use rpd_postprocess::text::counted;
use rpd_postprocess::{passes, text};

use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;

#[derive(Args)]
#[command(about = rpd_postprocess::passes::deserialize::DEFINITION.about, after_help = "\
A marker with `s_api=NAME` in its text becomes a call of that name. One with `s_op=TYPE` becomes an
operation: the text may contain gpuId, queueId, sequenceId, completionSignal, start and end.

Example:
  roctxMark(\"s_api=BlockAlloc | size=4096\")      in the program
  rpd deserialize trace.rpd
  rpd subclass trace.rpd --base api --name block --apis BlockAlloc")]
pub(crate) struct Deserialize {
    /// The trace
    file: PathBuf,
    /// Names of the calls that are such markers
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "UserMarker")]
    apis: Vec<String>,
    /// Write one JSON object about it
    #[arg(long)]
    json: bool,
}

impl Deserialize {
    /// Makes rows of the markers, which are the calls with these names, and says how many.
    ///
    /// # Errors
    /// When the file is no trace or cannot be written; it is as it was then.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let made = change(&self.file, "no marker was made a row", &notes(), |change| {
            passes::deserialize(change, &self.apis)
        })?;
        if self.json {
            output::write_json(&made)?;
            return Ok(ExitCode::SUCCESS);
        }
        let shown = text::escape_path(&self.file);
        let Deserialized { calls, ops, wrong } = made;
        note(format_args!(
            "{shown}: {} and {} made of markers",
            counted(calls, "call", "calls"),
            counted(ops, "operation", "operations")
        ));
        if wrong > 0 {
            note(format_args!(
                "{shown}: {} as it is: a number in it is none, or it ends before it starts",
                counted(wrong, "marker stays", "markers stay")
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}
