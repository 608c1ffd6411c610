//! `rpd export timeline`: the page of `rpd view` with its trace in it.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rpd_settings::quantity;
use rpd_view::export::{self, CallArguments, Levels, MOST_BYTES};
use rpd_view::gathering::Progress;
use rpd_view::reading::{GatheredPart, assemble, gather};

use super::timeline::TimelineArgs;
use crate::args::region::REGION_HELP;
use crate::output::note::note;

/// Write the timeline of rpd view as a page, for any browser: one file, without network
///
/// The same page as rpd view shows: pan, zoom, search, tables, links from calls to operations. It loads nothing and sends nothing: it can
/// be mailed and kept. What the reports say is another page: rpd export html.
#[derive(Args)]
#[command(after_help = format!("\
It has the names, times, ids and links of events, what sensors read, and the arguments of calls where --args asks for them, which may be
private. All columns of a row stay in the trace. An event takes 6 to 12 bytes; above --max-mb nothing is written, and the
message says what part would fit. A page with --levels is for traces with too many events. It divides each row into short times, and has
the name of the longest event in each and how busy the row is, but neither single events nor search. The same trace gives the same bytes.

{REGION_HELP}

Example:
  rpd export timeline trace.rpd -o trace.html
  rpd export timeline trace.rpd --in 'step 7' --args -o step7.html
  rpd export timeline trace.rpd --start 25% --end 30% -o part.html
  rpd export timeline large.rpd --levels -o large.html"))]
pub(super) struct Page {
    #[command(flatten)]
    timeline: TimelineArgs,
    /// Write the arguments of calls as well
    #[arg(long)]
    args: bool,
    /// Write how busy rows are and what takes longest, and no single events: for large traces
    #[arg(long, conflicts_with = "args")]
    levels: bool,
    /// The most that the page may have: 100MB, 20MiB; MB without a unit, and at most 268MB
    #[arg(long = "max-mb", value_name = "SIZE", default_value = "50MB", value_parser = most_bytes)]
    most_bytes: u64,
}

/// Bytes of a MB: what a number alone counts.
const MEGABYTE: i64 = 1_000_000;

fn most_bytes(text: &str) -> Result<u64, String> {
    let bytes = quantity::size_bytes(text, MEGABYTE).ok_or_else(|| format!("not {}", quantity::SIZES))?;
    let possible = Some(bytes).filter(|bytes| (1..=MOST_BYTES).contains(bytes));
    possible.ok_or_else(|| format!("must be more than nothing, and at most {}MB", MOST_BYTES / 1_000_000))
}

impl Page {
    /// Writes the page to standard output or to the file.
    ///
    /// # Errors
    /// When the trace cannot be read, the page would be too large, or the output cannot be written.
    pub(super) fn run(self) -> Result<ExitCode> {
        let Page { timeline, args, levels, most_bytes } = self;
        let (name, contents) = timeline.write(|source, out| {
            let (trace, version) = source.trace;
            if !levels && source.region.is_everything() {
                export::check_rows(trace, most_bytes)?;
            }
            let mut gathered = gather(source.file, source.trace, &Progress::default(), &mut |_| ())?;
            let selected = source.region.select(trace, version)?;
            if !selected.is_everything() {
                gathered.retain(
                    |call| selected.has_call(call),
                    |op| selected.has_op(op),
                    |gpu, times| selected.of_run(gpu, times),
                );
            }
            let timeline = assemble(vec![GatheredPart { gathered, shift_ns: 0 }])?;
            if levels {
                let mut levels = Levels::of(&timeline);
                out.write_all(&levels.page(most_bytes)?)?;
                return Ok(levels.contents());
            }
            let arguments = args.then(|| CallArguments::read(trace, version, &timeline)).transpose()?;
            out.write_all(&export::page(&timeline, arguments.as_ref(), most_bytes)?)?;
            Ok(export::contents(&timeline, arguments.as_ref()))
        })?;
        note(format_args!("{name}: the page has {contents}"));
        Ok(ExitCode::SUCCESS)
    }
}
