//! `rpd dataset`: the traces of jobs as Parquet files for DuckDB, Spark and others.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use rpd_postprocess::dataset::check::{self, Checked, DatasetFinding, DatasetFindingKind};
use rpd_postprocess::dataset::contents::{DatasetContents, Rank};
use rpd_postprocess::dataset::{AddOptions, add};
use rpd_postprocess::text::{self, counted};

use crate::args::value;
use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;

/// To whoever names a part of the trace.
pub(crate) const WHY_NO_PART: &str = "traces are added as a whole; rpd trim makes a trace of a part";

/// Findings that are noted beside a trace.
const MOST_NOTED: usize = 5;

/// Put traces of jobs into Parquet files by job, node and rank, for DuckDB, Spark, pyarrow
///
/// Any number of hosts may add to one dataset at a time: files get their names when they are complete, and there is no
/// lock. A trace that is there already is left; a longer recording of the same takes its place.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Files are part-*.parquet in DIR/TABLE/job=jJOB/node=nNODE/rank=RANK/slice=SLICE. job and node have a letter in front,
so that no reader takes them for numbers. Tables, with their columns as they are in a trace:
  op       what GPUs did: id, gpuId, queueId, sequenceId, start, end, description, opType; api_id: the call that
           caused it
  kernel   ops that a call launched one by one: the same columns, with stream, gridX, ..., workgroupX, ...,
           groupSegmentSize, privateSegmentSize, kernelName in place of description and opType
  api      what threads did: id, pid, tid, start, end, apiName, args, domain, category
  copy     calls that copy: id, pid, tid, start, end, apiName, stream, size, width, height, kind, dst, src, dstDevice,
           srcDevice, sync, pinned
  monitor  sensors: id, deviceType, deviceId, monitorType, start, end, value
  session  facts about sessions: session (id >> 32 of its rows), key, value
  gpu      facts about GPUs: gpuId, key, value
All have the column part, a number for each rank of each trace: ids are unique within a part. start and end are ns since
1970, of all nodes. What a trace does not say is NULL.

Example:
  rpd dataset jobs rank*.rpd
  rpd dataset jobs --append rank3.rpd
  rpd dataset jobs --append --align 'marker:step 0' node1-*.rpd
  rpd dataset check jobs
  rpd dataset extract jobs --rank 3 -o rank3.rpd
  duckdb -c \"select node, rank, count(*)
    from read_parquet('jobs/op/**/*.parquet', hive_partitioning=true) group by all\""
)]
pub(crate) struct Dataset {
    #[command(subcommand)]
    question: Option<Question>,
    /// The dataset's directory
    #[arg(required = true, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The traces
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Add to a dataset that may be there already
    #[arg(long)]
    append: bool,
    /// Write anew what is there already
    #[arg(long)]
    force: bool,
    /// Cut at multiples of that time; all who add to a dataset must say the same
    #[arg(long, value_name = "TIME", value_parser = slice)]
    slice: Option<i64>,
    /// Let the first marker of that text begin at one time on all hosts of a job, in place of what their wall clocks say
    #[arg(long, value_name = "marker:NAME", value_parser = value::marker_name)]
    align: Option<String>,
    /// Of this job [default: what the trace says]
    #[arg(long)]
    job: Option<String>,
    /// On this node [default: the host's name]
    #[arg(long)]
    node: Option<String>,
    /// Of this rank [default: what each session says]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u32))]
    rank: Option<u32>,
    /// Write one JSON object about each part
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Question {
    Check(Check),
    Extract(Extract),
}

/// Find missing, double and damaged parts of a dataset
///
/// Reads every file and compares it with what its manifest says.
#[derive(Args)]
#[command(after_help = "\
Findings:
  missing   a file that a manifest names, or a rank, is not there
  damaged   a file has not the bytes that were written
  double    a recording is there twice, a rank was on two nodes at one time, or two manifests name one file
  leftover  a file that no manifest names: of somebody who writes at this moment, or was killed

Exit status: 0 nothing found; 1 something found, or DIR cannot be read; 2 wrong usage.

Example:
  rpd dataset check jobs
  rpd dataset check jobs --ranks 64 --json")]
struct Check {
    /// The dataset's directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// How many ranks each job has [default: what sessions say, or up to the last that is there]
    #[arg(long, value_name = "N", value_parser = value::count)]
    ranks: Option<std::num::NonZeroUsize>,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
}

/// Write a rank of a dataset as a trace
///
/// The trace has the operations, calls, links, launches, copies, sensors and facts of the rank, with their ids, and times on
/// the clock of its host. What a dataset does not have is not in it: call stacks, code objects, fences, where the arguments
/// of kernels were.
#[derive(Args)]
#[command(after_help = "\
Example:
  rpd dataset extract jobs --rank 3 -o rank3.rpd
  rpd dataset extract jobs --job 4711 --node host1 --rank 0 -o rank0.rpd
  rpd dataset extract jobs --rank 3 --slice 2833333 -o part.rpd")]
struct Extract {
    /// The dataset's directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The job [default: the only one that has such a rank]
    #[arg(long)]
    job: Option<String>,
    /// The node [default: the only one that has such a rank]
    #[arg(long)]
    node: Option<String>,
    /// The rank
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u32))]
    rank: u32,
    /// What began in the time slice with this number, as folders have it [default: all]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    slice: Option<i64>,
    /// The trace to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// A length of slices, ns.
fn slice(text: &str) -> Result<i64, String> {
    let ns = i64::try_from(value::time(text)?.as_nanos()).ok().filter(|ns| *ns > 0);
    ns.ok_or_else(|| "must be more than nothing".to_string())
}

impl Dataset {
    /// Adds traces, checks what is there, or writes a trace of it.
    ///
    /// # Errors
    /// What failed; complete parts stay.
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self.question {
            Some(Question::Check(check)) => return check.run(),
            Some(Question::Extract(extract)) => return extract.run(),
            None => {}
        }
        let Dataset { directory, files, append, force, slice, align, job, node, rank, json, .. } = self;
        let directory = directory.unwrap_or_default();
        let rank = rank.map(i64::from);
        let options = AddOptions { append, force, slice_ns: slice, align, job, node, rank };
        let added = add(&directory, &files, &options, &notes())?;
        if json {
            output::write_json(&added)?;
            return Ok(ExitCode::SUCCESS);
        }
        for part in &added {
            note(format_args!("{}: {}", text::escape_path(&directory), part.in_words()));
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Check {
    fn run(self) -> Result<ExitCode> {
        let ranks = self.ranks.and_then(|ranks| i64::try_from(ranks.get()).ok());
        let checked = check::check(&self.directory, ranks, &notes())?;
        match self.json {
            true => output::write_json(&checked)?,
            false => output::write(|out| write_text(&checked, out))?,
        }
        Ok(if checked.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl Extract {
    fn run(self) -> Result<ExitCode> {
        let contents = DatasetContents::open(&self.directory)?;
        let is_it = |found: &&Rank| {
            found.rank == i64::from(self.rank)
                && self.job.as_ref().is_none_or(|job| *job == found.job)
                && self.node.as_ref().is_none_or(|node| *node == found.node)
        };
        let mut found = contents.ranks.iter().filter(is_it);
        let (Some(rank), None) = (found.next(), found.next()) else {
            bail!("{}", self.none_or_several(&contents, contents.ranks.iter().filter(is_it).count()));
        };
        let restored = contents.restore(rank, self.slice, &self.output, &notes())?;
        self.tell(&contents);
        let rows = |table: &str| restored.rows.get(table).copied().unwrap_or(0);
        note(format_args!(
            "{}: {} and {} of rank {}",
            text::escape_path(&self.output),
            counted(rows("rocpd_op"), "operation", "operations"),
            counted(rows("rocpd_api"), "call", "calls"),
            rank.rank
        ));
        if restored.without_time > 0 {
            note(format_args!(
                "{} without an id, or without a time that a trace can have, left out",
                counted(restored.without_time, "row", "rows")
            ));
        }
        if restored.cut_links > 0 {
            note(format_args!(
                "{} to calls that are not there, or of other time slices, left out",
                counted(restored.cut_links, "link", "links")
            ));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Says which manifests are left out, and what is there twice.
    fn tell(&self, contents: &DatasetContents) {
        let is_noted = |finding: &&DatasetFinding| {
            [DatasetFindingKind::Damaged, DatasetFindingKind::Double].contains(&finding.kind)
        };
        let noted: Vec<&DatasetFinding> = contents.findings.iter().filter(is_noted).collect();
        for finding in noted.iter().take(MOST_NOTED) {
            note(format_args!("{}: {}", text::escape_path(&self.directory), finding.in_words()));
        }
        if let Some(more) = noted.len().checked_sub(MOST_NOTED).filter(|more| *more > 0) {
            let more = counted(more as u64, "more finding", "more findings");
            note(format_args!(
                "{}: {more}: rpd dataset check {}",
                text::escape_path(&self.directory),
                contents.in_shell()
            ));
        }
    }

    /// Why no rank is the one that was asked for.
    fn none_or_several(&self, contents: &DatasetContents, found: usize) -> String {
        let (dataset, rank) = (text::escape_path(&self.directory), self.rank);
        if found > 1 {
            return format!("{dataset} has {found} times rank {rank}: name one by --job and --node");
        }
        match contents.ranks.len() as u64 {
            0 => contents.without_ranks(),
            all => {
                let directory = contents.in_shell();
                let is_damaged =
                    contents.findings.iter().any(|finding| finding.kind == DatasetFindingKind::Damaged);
                let damaged = match is_damaged {
                    true => format!("; a manifest is damaged: rpd dataset check {directory} says which"),
                    false => String::new(),
                };
                let all = counted(all, "rank", "ranks");
                format!("{dataset} has no such rank among {all}: rpd view {directory} shows them{damaged}")
            }
        }
    }
}

fn write_text(checked: &Checked, out: &mut impl Write) -> std::io::Result<()> {
    for finding in &checked.findings {
        writeln!(out, "{}", finding.in_words())?;
    }
    writeln!(
        out,
        "{}: {} of {}, {} with {}, {} bytes; {}",
        checked.shown(),
        counted(checked.parts, "part", "parts"),
        counted(checked.jobs, "job", "jobs"),
        counted(checked.files, "file", "files"),
        counted(checked.rows.values().copied().fold(0, u64::saturating_add), "row", "rows"),
        checked.bytes,
        match checked.findings.len() as u64 {
            0 => "nothing is wrong".to_string(),
            found => counted(found, "finding", "findings"),
        }
    )
}
