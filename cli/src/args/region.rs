//! A part of a trace, on the command line: the same options of every verb that reads one.

use std::fmt::Display;
use std::path::Path;

use anyhow::Result;
use clap::Args;
use regex::Regex;
use rpd_postprocess::moment::{Moment, TimeRange};
use rpd_postprocess::pattern::pattern;
use rpd_postprocess::region::{Region, Selected};
use rpd_postprocess::text::escape;
use rpd_schema::Version;
use rusqlite::Connection;

use super::value;

/// What `--start` and the like mean, for the help of a verb.
pub(crate) const REGION_HELP: &str = "\
Region:
  --start, --end     as rpd trim has them: 2s or 1500 (ns) on the trace's clock, +2s from the first
                     call, -500ms before the last one's end, 25%, marker:NAME, kernel:REGEX
  A call belongs to the part if it starts in that time. An operation belongs to it if its call does.
  --in MARKER        what its process does while a marker of this text is open; MARKER:2 is the
                     second one; or FROM..TO with times as --start has them: 25%..75%, +2s..,
                     marker:a..marker:b
  --gpu, --queue, --stream, --kernel
                     operations of these, the calls that caused them, and markers
  --session N        what the session with this number in rpd info recorded
  --rank R           what sessions of this rank recorded
  --node N           what happened on this host of a merged trace, counted from 0
An option that is given several times means any of its values, but for --start, --end, --in and --kernel,
which may be given once; different options must all hold.";

/// The options by which a part of a trace is named.
pub(crate) const OPTIONS: [&str; 12] = [
    "--start",
    "--end",
    "--gpu",
    "--queue",
    "--stream",
    "--pid",
    "--tid",
    "--session",
    "--rank",
    "--node",
    "--in",
    "--kernel",
];

/// What `--in` names.
#[derive(Debug, Clone)]
enum Within {
    /// The text of a marker.
    Marker(String),
    /// `FROM..TO`.
    Times(TimeRange),
}

/// Anything that is no range of time may be the text of a marker.
#[allow(clippy::unnecessary_wraps)] // clap's way
fn within(text: &str) -> Result<Within, String> {
    let range = text.contains("..").then(|| text.parse().ok()).flatten();
    Ok(range.map_or_else(|| Within::Marker(text.to_string()), Within::Times))
}

/// A part of a trace.
#[derive(Args, Clone)]
#[command(next_help_heading = "Region")]
pub(crate) struct RegionArgs {
    /// What starts at this time or later
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    start: Option<Moment>,
    /// What starts at this time or earlier
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    end: Option<Moment>,
    /// Operations of this GPU
    #[arg(long, value_name = "N", value_parser = value::id, allow_negative_numbers = true)]
    gpu: Vec<i64>,
    /// Operations of this queue
    #[arg(long, value_name = "N", value_parser = value::id, allow_negative_numbers = true)]
    queue: Vec<i64>,
    /// Operations of this stream, as rpd api shows it
    #[arg(long, value_name = "STREAM")]
    stream: Vec<String>,
    /// What this process did
    #[arg(long, value_name = "PID", value_parser = value::id, allow_negative_numbers = true)]
    pid: Vec<i64>,
    /// What this thread did
    #[arg(long, alias = "thread", value_name = "TID", value_parser = value::id, allow_negative_numbers = true)]
    tid: Vec<i64>,
    /// What this session recorded
    #[arg(long, value_name = "N", value_parser = value::id, allow_negative_numbers = true)]
    session: Vec<i64>,
    /// What sessions of this rank recorded
    #[arg(long, value_name = "RANK")]
    rank: Vec<String>,
    /// What happened on this node of a merged trace
    #[arg(long, value_name = "N", value_parser = value::id, allow_negative_numbers = true)]
    node: Vec<i64>,
    /// What happened inside of a marker of this text, or in this range of time
    #[arg(long = "in", value_name = "MARKER", allow_hyphen_values = true, value_parser = within)]
    within: Option<Within>,
    /// Operations in whose names this regular expression is found, or in their types where they have none
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    kernel: Option<Regex>,
}

impl RegionArgs {
    /// What --kernel names, for verbs that look for it in more than the names of operations.
    pub(crate) fn kernel(&self) -> Option<&Regex> {
        self.kernel.as_ref()
    }

    /// The part of `trace` that all the options name.
    ///
    /// # Errors
    /// As [`Region::select`].
    pub(crate) fn select(&self, trace: &Connection, version: Version) -> Result<Selected> {
        Region::from(self.clone()).select(trace, version)
    }

    /// The part that the options but --kernel name.
    pub(crate) fn without_kernel(&self) -> Region {
        Region { kernel: None, ..Region::from(self.clone()) }
    }

    /// Says that there is no `what` in the trace, or in the part of it that is named, and which options have values that the trace has nothing of.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn nothing(
        &self,
        file: &Path,
        (trace, version): (&Connection, Version),
        what: &str,
    ) -> Result<String> {
        let name = file.display();
        if Region::from(self.clone()).is_everything() {
            return Ok(format!("{name} holds no {what}; rpd info shows what it holds"));
        }
        let mut absent = Vec::new();
        for (option, region) in self.one_by_one() {
            let selected = region.select(trace, version)?;
            let is_there = selected.has_ops() || (!region.is_about_operations() && selected.has_calls());
            if !is_there {
                absent.push(escape(&option).into_owned());
            }
        }
        Ok(match absent.is_empty() {
            true => format!("{name}: no {what} in the named part; rpd info shows what the file holds"),
            false => format!(
                "{name}: no {what} in the named part: the file has nothing of {}; rpd info shows what it holds",
                absent.join(" and ")
            ),
        })
    }

    /// The values of options that need not be in a trace, each as a region of its own.
    fn one_by_one(&self) -> Vec<(String, Region)> {
        let RegionArgs { gpu, queue, stream, pid, tid, session, node, kernel, .. } = self;
        let mut all = Vec::new();
        let mut add = |option: &str, value: &dyn Display, region: Region| {
            all.push((format!("{option} {value}"), region));
        };
        let none = Region::default;
        gpu.iter().for_each(|gpu| add("--gpu", gpu, Region { gpus: vec![*gpu], ..none() }));
        queue.iter().for_each(|queue| add("--queue", queue, Region { queues: vec![*queue], ..none() }));
        stream
            .iter()
            .for_each(|stream| add("--stream", stream, Region { streams: vec![stream.clone()], ..none() }));
        pid.iter().for_each(|pid| add("--pid", pid, Region { pids: vec![*pid], ..none() }));
        tid.iter().for_each(|tid| add("--tid", tid, Region { tids: vec![*tid], ..none() }));
        session
            .iter()
            .for_each(|session| add("--session", session, Region { sessions: vec![*session], ..none() }));
        node.iter().for_each(|node| add("--node", node, Region { nodes: vec![*node], ..none() }));
        kernel
            .iter()
            .for_each(|kernel| add("--kernel", kernel, Region { kernel: Some(kernel.clone()), ..none() }));
        all
    }

    /// The first option that is about operations.
    pub(crate) fn first_about_operations(&self) -> Option<&'static str> {
        let given = [
            ("--gpu", !self.gpu.is_empty()),
            ("--queue", !self.queue.is_empty()),
            ("--stream", !self.stream.is_empty()),
            ("--kernel", self.kernel.is_some()),
        ];
        given.into_iter().find_map(|(option, is_given)| is_given.then_some(option))
    }

    /// The first option but --kernel that was given.
    pub(crate) fn first_but_kernel(&self) -> Option<&'static str> {
        let given = [
            self.start.is_some(),
            self.end.is_some(),
            !self.gpu.is_empty(),
            !self.queue.is_empty(),
            !self.stream.is_empty(),
            !self.pid.is_empty(),
            !self.tid.is_empty(),
            !self.session.is_empty(),
            !self.rank.is_empty(),
            !self.node.is_empty(),
            self.within.is_some(),
        ];
        OPTIONS.into_iter().zip(given).find_map(|(option, is_given)| is_given.then_some(option))
    }
}

impl From<RegionArgs> for Region {
    fn from(args: RegionArgs) -> Region {
        let RegionArgs { start, end, gpu, queue, stream, pid, tid, session, rank, node, within, kernel } =
            args;
        let (within, during) = match within {
            None => (None, TimeRange::default()),
            Some(Within::Marker(text)) => (Some(text), TimeRange::default()),
            Some(Within::Times(range)) => (None, range),
        };
        Region {
            time: TimeRange { start, end },
            during,
            gpus: gpu,
            queues: queue,
            streams: stream,
            pids: pid,
            tids: tid,
            sessions: session,
            ranks: rank,
            nodes: node,
            within,
            kernel,
        }
    }
}
