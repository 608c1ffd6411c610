//! `rpd export collapsed`, `rpd export speedscope`: call trees for flame graphs.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use rpd_postprocess::export::Exported;
use rpd_postprocess::export::call_tree::{TreeOptions, Width};
use rpd_postprocess::export::{collapsed, speedscope};
use rpd_postprocess::region::Region;
use rpd_postprocess::text::counted;

use super::timeline::{TimelineArgs, note_impossible};
use crate::args::region::REGION_HELP;
use crate::output::note::note;

/// What the trees are, for the help of both verbs.
const TREES_HELP: &str = "\
A stack is, from the outermost on: markers and calls around a call, the frames of the program that made it (recorded with
--stackframes), the call, and with --time gpu the operation that it launched. Calls nest by time, as the callstack pass has them;
the pass need not have run. Where calls overlap without nesting, the time in which both are open is the later one's.
With --time gpu an operation counts with its duration, whenever it ran; one that no call launched is below (no call).";

/// Which trees.
#[derive(Args)]
struct TreeArgs {
    /// What the width of a frame is: durations of the operations launched in it, or time of its thread
    #[arg(long, value_enum, default_value = "gpu")]
    time: Time,
    /// Keep PyTorch's operators apart that differ in sequence number, id or sizes alone
    #[arg(long)]
    exact: bool,
}

/// [`Width`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum Time {
    Gpu,
    Cpu,
}

impl TreeArgs {
    fn options(&self, region: &Region) -> TreeOptions {
        let width = match self.time {
            Time::Gpu => Width::Gpu,
            Time::Cpu => Width::Cpu,
        };
        TreeOptions { width, exact: self.exact, region: region.clone() }
    }

    /// Says what is not in the export.
    fn tell(&self, name: &str, exported: Exported) {
        note_impossible(name, exported.impossible);
        let (is_empty, what, other) = match self.time {
            Time::Gpu => (exported.ops == 0, "operation", "; --time cpu has the time of calls"),
            Time::Cpu => (exported.calls == 0, "call", ""),
        };
        if is_empty {
            note(format_args!("{name} has no such {what}{other}; rpd info shows what it holds"));
        }
    }
}

/// Write call trees as collapsed stacks, for flamegraph.pl, inferno and speedscope
///
/// A line for each stack: its frames, outermost first, with semicolons between them, and its own time in nanoseconds.
#[derive(Args)]
#[command(after_help = format!("\
{TREES_HELP}

In names, semicolons become colons, control characters are escaped, and a blank before a number at the end becomes one that does
not break, because tools would take the number for a count. Stacks without time of their own have no line.

{REGION_HELP}

Example:
  rpd export collapsed trace.rpd | inferno-flamegraph --countname ns > flame.svg
  rpd export collapsed trace.rpd --time cpu --threads --in 'step 3' -o step.txt
  flamegraph.pl --countname ns step.txt > step.svg"))]
pub(super) struct Collapsed {
    #[command(flatten)]
    timeline: TimelineArgs,
    #[command(flatten)]
    trees: TreeArgs,
    /// Begin each stack with its process and thread
    #[arg(long)]
    threads: bool,
}

/// Write call trees for speedscope (speedscope.app)
///
/// JSON with a profile for each thread, in which frames open and close in the order of time: with --time cpu at their times, counted from
/// the first call; with --time gpu along a clock that runs while the operations do that the thread launched.
#[derive(Args)]
#[command(after_help = format!("\
{TREES_HELP}

{REGION_HELP}

speedscope keeps the whole file in memory, and some browsers give up at 65 MB: name a part of a long trace.

Example:
  rpd export speedscope trace.rpd -o trace.speedscope.json
  rpd export speedscope trace.rpd --time cpu --in 'step 3' -o step.speedscope.json"))]
pub(super) struct Speedscope {
    #[command(flatten)]
    timeline: TimelineArgs,
    #[command(flatten)]
    trees: TreeArgs,
}

/// Bytes of a file that speedscope may not open.
const LARGE: u64 = 50 << 20;

impl Collapsed {
    /// Writes the stacks to standard output or to the file.
    ///
    /// # Errors
    /// When the trace cannot be read or the output not be written.
    pub(super) fn run(self) -> Result<ExitCode> {
        let Collapsed { timeline, trees, threads } = self;
        let (name, exported) = timeline.write(|source, out| {
            collapsed::export(source.trace, &trees.options(source.region), threads, source.notes, out)
        })?;
        trees.tell(&name, exported);
        Ok(ExitCode::SUCCESS)
    }
}

impl Speedscope {
    /// Writes the profiles to standard output or to the file.
    ///
    /// # Errors
    /// When the trace cannot be read or the output not be written.
    pub(super) fn run(self) -> Result<ExitCode> {
        let Speedscope { timeline, trees } = self;
        let path = timeline.path().map(std::path::Path::to_path_buf);
        let (name, exported) = timeline.write(|source, out| {
            let name = source.file.to_string_lossy();
            speedscope::export(&name, source.trace, &trees.options(source.region), source.notes, out)
        })?;
        trees.tell(&name, exported);
        let written = path.and_then(|path| std::fs::metadata(path).ok()).map_or(0, |file| file.len());
        if written > LARGE {
            note(format_args!(
                "the file has {}, and browsers may fail on it: name a part of the trace, as with --in",
                counted(written >> 20, "MiB", "MiB")
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}
