//! `rpd merge`: traces of several ranks and hosts in one.

use std::path::PathBuf;

use anyhow::Result;
use rpd_postprocess::merge::{Options, merge};
use rpd_postprocess::text;
use rpd_postprocess::text::counted;

use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;

/// Process ids that are named.
const SHOWN_PIDS: usize = 5;

/// What is asked for.
pub(crate) struct Request {
    /// The new trace.
    pub(crate) output: PathBuf,
    /// The traces.
    pub(crate) files: Vec<PathBuf>,
    /// How clocks and hosts are found.
    pub(crate) options: Options,
    /// One JSON object about it on standard output.
    pub(crate) json: bool,
}

/// Merges the traces and says what was done.
///
/// # Errors
/// What failed; there is no new trace then.
pub(crate) fn run(request: &Request) -> Result<()> {
    let merged = merge(&request.output, &request.files, &request.options, &notes())?;
    for dropped in &merged.dropped {
        note(format_args!("left out: {}", text::escape(dropped)));
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
    if request.json {
        return output::write_json(&merged);
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
    Ok(())
}
