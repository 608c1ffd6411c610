//! `rpd export timeline`: the page of `rpd view` with its trace in it.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use rpd_postprocess::region::Region;
use rpd_postprocess::text::{counted, escape_path};
use rpd_settings::quantity;
use rpd_view::export::{self, CallArguments, Levels, MOST_BYTES};
use rpd_view::gathering::Progress;
use rpd_view::reading::{GatheredPart, assemble, gather};
use rpd_view::timeline::{Facts, Timeline};

use super::timeline::{Source, TimelineArgs};
use crate::args::region::REGION_HELP;
use crate::output::note::note;

/// Write the timeline of rpd view as a page, for any browser: one file, without network
///
/// The same page as rpd view shows: pan, zoom, search, tables, links from calls to operations. It loads nothing and sends nothing: it can
/// be mailed and kept. What the reports say is another page: rpd export html.
#[derive(Args)]
#[command(after_help = format!("\
It has the names, times, ids and links of events, what sensors read, and the arguments of calls where --args asks for them, which may be
private. All columns of a row stay in the trace. An event takes 6 to 12 bytes, and names come on top; above --max-mb
nothing is written, and the message says what part fits. A page with --levels is for traces with too many events. It divides each row
into short times, and has the name of the longest event in each and how busy the row is, but neither single events nor search. The same
trace gives the same bytes.

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
            let (trace, _) = source.trace;
            let is_whole = source.region.is_everything();
            if !levels && is_whole {
                export::check_rows(trace, most_bytes)?;
            }
            let timeline = timeline_of(source, source.region)?;
            note_far(source, &timeline);
            if levels {
                let mut levels = Levels::of(&timeline);
                out.write_all(&levels.page(most_bytes)?)?;
                return Ok(levels.contents());
            }
            let (page, contents) = page(source, &timeline, args)?;
            let bytes = page.len() as u64;
            if bytes > most_bytes {
                let fits = if is_whole { first_percent(source, args, (bytes, most_bytes))? } else { None };
                bail!("{}", export::too_large(bytes, most_bytes, fits));
            }
            out.write_all(&page)?;
            Ok(contents)
        })?;
        note(format_args!("{name}: the page has {contents}"));
        Ok(ExitCode::SUCCESS)
    }
}

/// Says how many rows the page does not show, because they are too far from the others.
fn note_far(source: &Source<'_>, timeline: &Timeline) {
    let Some(Facts { far, far_from_ns, .. }) = timeline.sources.first().map(|of| &of.facts) else { return };
    if *far > 0 {
        let rows = counted(*far, "row is", "rows are");
        let way = far_from_ns
            .as_ref()
            .map_or_else(String::new, |from| format!("; --start {from} makes a page of them"));
        source.notes.note(format_args!(
            "{}: {rows} left out, which end more than 104 days behind the first begin{way}",
            escape_path(source.file)
        ));
    }
}

/// The timeline of a part of the trace.
fn timeline_of(source: &Source<'_>, region: &Region) -> Result<Timeline> {
    let (trace, version) = source.trace;
    let mut gathered = gather(source.file, source.trace, &Progress::default(), &mut |_| ())?;
    let selected = region.select(trace, version)?;
    if !selected.is_everything() {
        gathered.retain(
            |call| selected.has_call(call),
            |op| selected.has_op(op),
            |gpu, times| selected.of_run(gpu, times),
        );
    }
    assemble(vec![GatheredPart { gathered, shift_ns: 0 }])
}

/// The page of a timeline, and what is in it, for people.
fn page(source: &Source<'_>, timeline: &Timeline, has_args: bool) -> Result<(Vec<u8>, String)> {
    let (trace, version) = source.trace;
    let arguments = has_args.then(|| CallArguments::read(trace, version, timeline)).transpose()?;
    Ok((export::page(timeline, arguments.as_ref())?, export::contents(timeline, arguments.as_ref())))
}

/// How many percent of a trace, from its begin, make a page of at most `most` bytes, where all of it has `bytes`. Found by making such pages.
fn first_percent(source: &Source<'_>, has_args: bool, (bytes, most): (u64, u64)) -> Result<Option<u64>> {
    let mut percent = most * 90 / bytes;
    while percent > 0 {
        let during = format!("0%..{percent}%").parse().map_err(anyhow::Error::msg)?;
        let timeline = timeline_of(source, &Region { during, ..Region::default() })?;
        let bytes = page(source, &timeline, has_args)?.0.len() as u64;
        if bytes <= most {
            return Ok((!timeline.columns.is_empty()).then_some(percent));
        }
        percent = (percent - 1).min(percent * most * 90 / (bytes * 100));
    }
    Ok(None)
}
