//! `rpd merge`: traces of several ranks and hosts in one.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rpd_postprocess::merge::{MergeOptions, merge};
use rpd_postprocess::moment::duration_ns;
use rpd_postprocess::text::{self, counted};

use crate::args::value;
use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;

/// To whoever names a part of the trace.
pub(crate) const WHY_NO_PART: &str = "traces are merged as a whole; rpd trim makes a trace of a part";

/// Put traces of several ranks and hosts into one
///
/// Sessions are renumbered, and each text but the empty one is written once. Process and GPU numbers of a second host get strides (views
/// napi and nop take them apart); times are moved to the first trace's host by what the sessions say of
/// their clocks.
#[derive(Args)]
#[command(after_help = "\
Sessions of one boot of a host share its clock, and are not moved. Traces that do not say where they
were recorded, as those of other recorders, need one of --same-host, --align and --offset.

Example:
  rpd merge -o all.rpd rank0.rpd rank1.rpd
  rpd merge -o all.rpd --align 'marker:step 0' node1.rpd node2.rpd
  rpd merge -o all.rpd --offset node2.rpd=-1.5ms node1.rpd node2.rpd
  sqlite3 all.rpd 'select node, count(*) from nop group by 1'")]
pub(crate) struct Merge {
    /// The traces
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The new trace
    #[arg(short, long, value_name = "OUT", value_parser = value::output())]
    output: PathBuf,
    /// All were recorded on one host
    #[arg(long)]
    same_host: bool,
    /// Let the first marker of that text begin at one time everywhere
    #[arg(long, value_name = "marker:NAME", value_parser = value::marker_name)]
    align: Option<String>,
    /// Add that to the times of FILE, which are not aligned then; ns without a unit
    #[arg(long = "offset", value_name = "FILE=TIME", value_parser = file_and_shift)]
    offsets: Vec<(PathBuf, i64)>,
    /// Write one JSON object about it
    #[arg(long)]
    json: bool,
}

fn file_and_shift(text: &str) -> Result<(PathBuf, i64), String> {
    let (file, shift) = text.rsplit_once('=').ok_or_else(|| "not FILE=TIME".to_string())?;
    let (sign, duration) = match shift.strip_prefix('-') {
        Some(duration) => (-1, duration),
        None => (1, shift.strip_prefix('+').unwrap_or(shift)),
    };
    let ns =
        duration_ns(duration).ok_or_else(|| format!("{shift} is no time: write 1500 (ns), -1.5ms, 2s"))?;
    Ok((PathBuf::from(file), sign * ns))
}

/// Process ids that are named.
const SHOWN_PIDS: usize = 5;

impl Merge {
    /// Merges the traces and says what was done.
    ///
    /// # Errors
    /// What failed; there is no new trace then.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let Merge { files, output: out, same_host, align, offsets, json } = self;
        let options = MergeOptions { is_same_host: same_host, align, offsets };
        let merged = merge(&out, &files, &options, &notes())?;
        for dropped in &merged.dropped {
            note(format_args!("left out: {}", text::escape(dropped)));
        }
        for doubt in &merged.doubts {
            note(doubt);
        }
        if !merged.shared_pids.is_empty() {
            let shown: Vec<String> = merged.shared_pids.iter().take(SHOWN_PIDS).map(i64::to_string).collect();
            let more = if merged.shared_pids.len() > SHOWN_PIDS { ", ..." } else { "" };
            note(format_args!(
                "{}: several processes have the same id ({}{more}): queries must tell them apart by session, id >> 32, as the \
                 passes do",
                text::escape(&merged.output),
                shown.join(", ")
            ));
        }
        if json {
            output::write_json(&merged)?;
            return Ok(ExitCode::SUCCESS);
        }
        for part in &merged.inputs {
            let placed: Vec<String> = part
                .nodes
                .iter()
                .zip(&part.shifts_ns)
                .map(|(node, shift)| format!("node {node}, times {shift:+} ns"))
                .collect();
            let file = text::escape(&part.file);
            note(format_args!("{file}: from session {}, {}", part.first_session, placed.join("; ")));
        }
        note(format_args!(
            "{}: {} of {}; {} there already",
            text::escape(&merged.output),
            counted(merged.inputs.len() as u64, "trace", "traces"),
            counted(merged.nodes.len() as u64, "host", "hosts"),
            counted(merged.equal_texts, "text was", "texts were")
        ));
        Ok(ExitCode::SUCCESS)
    }
}
